//! Graphs that are built once and run every frame: [`GraphBuilder`], and what it builds, [`BuiltGraph`].

mod bodies;
mod building;
mod built;
mod items;
mod keys;
mod node;
mod picture;
mod reference;
mod resources;
mod started;
mod timings;
mod touch;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use platform::{Lane, Os, Platform};

use super::submit::owner;
use super::system::JobSystem;
use crate::error::or_panic;
use crate::plan::{DeclaredEdge, DeclaredGraph, DeclaredNode};
use crate::store::{Label, Name};
use crate::work::Shared;
use crate::work::built::{NodeBody, label_here};

pub use built::BuiltGraph;
pub use items::Items;
pub use keys::{Res, ResEach, ResItem, ResPart};
pub use node::GraphJob;
use node::NestedGraph;
use reference::Wish;
pub use reference::{Condition, GraphNode, NodeRef};
use resources::Field;

pub use resources::{Fields, KeyMaker, Resources};
pub use started::{NotStarted, StartedGraph};
pub use timings::{CriticalPath, NodeTiming};

/// A graph that is being declared, from [`JobSystem::graph`] or [`JobSystem::graph_of`]. Jobs say what they
/// come after and what they read and write. [`build`](GraphBuilder::build) checks that once, and makes a
/// graph that runs every frame at the least cost.
///
/// `'b` is how long the bodies may borrow for; `D` is the data that each run gets.
///
/// ```
/// struct World {
///     speeds: Vec<f32>,
///     positions: Vec<f32>,
///     visible: usize,
/// }
/// paceline::resources! {
///     World: WorldKeys { speeds: Vec<f32>, positions: Vec<f32>, visible: usize }
/// }
///
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// let brake = graph.job("brake").writes(w.speeds).for_each(|speed| *speed *= 0.5);
/// let travel = graph.job("travel").after(brake).reads(w.speeds).writes(w.positions);
/// travel.for_each(|(speed, position)| *position += speed);
/// let cull = graph.job("cull").after("travel").reads(w.positions).writes(w.visible);
/// cull.run(|cx, (positions, visible)| {
///     let seen = cx.over(positions).reduce(|x| usize::from(*x < 1.0), |a, b| a + b);
///     *visible = seen.unwrap_or(0);
/// });
/// let mut graph = graph.build();
///
/// let mut world = World { speeds: vec![2.0; 100], positions: vec![0.0; 100], visible: 0 };
/// graph.run(&mut world);
/// graph.run(&mut world);
/// assert_eq!((world.positions[0], world.visible), (1.5, 0));
/// ```
pub struct GraphBuilder<'b, D: Resources + ?Sized, P: Platform = Os> {
    shared: Arc<Shared<P>>,
    label: Label,
    id: NonZeroU32,
    fields: Vec<Field>,
    declared: DeclaredGraph,
    parts: Vec<NodePart<'b, P>>,
    wishes: Vec<Wish>,
    /// The first and the last node of everything with a name.
    names: BTreeMap<&'static str, Vec<(usize, usize)>>,
    /// Sections, from the outermost to the one that is being declared.
    sections: Vec<Section>,
    _data: std::marker::PhantomData<fn(&mut D)>,
}

/// The part of a node that is not for the checks.
struct NodePart<'b, P: Platform> {
    body: Option<NodeBody<'b, P>>,
    kind: NodeKind,
    lane: Option<Lane>,
    is_on_main: bool,
}

/// A graph, or a nested one, while its nodes are declared.
struct Section {
    /// The node behind which its nodes come: its first one, or the last sync point.
    begin: Option<usize>,
    /// The nodes behind that.
    since: Vec<usize>,
    /// The first node, if it may be left out, and all of the section with it.
    has_condition: Option<usize>,
    lane: Option<Lane>,
    is_on_main: bool,
    is_auto: bool,
}

/// What a node is. It has no example, because programs do not name it.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    Job,
    Condition,
    Sync,
    /// The first and the last node of a nested graph.
    Begin,
    End,
}

impl<P: Platform> JobSystem<P> {
    /// Begins a graph without data of its own: its bodies use what they capture. It is built once and run
    /// many times.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// let js = paceline::JobSystem::new();
    /// let ticks = AtomicU32::new(0);
    /// let mut graph = js.graph("tick");
    /// let count = graph.job("count").run(|_| _ = ticks.fetch_add(1, Ordering::Relaxed));
    /// graph.job("show").after(count).run(|_| assert!(ticks.load(Ordering::Relaxed) > 0));
    /// let mut graph = graph.build();
    /// for _ in 0..10 {
    ///     graph.run(&mut ());
    /// }
    /// assert_eq!(ticks.load(Ordering::Relaxed), 10);
    /// ```
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn graph<'b>(&self, name: impl Into<Name>) -> GraphBuilder<'b, (), P> {
        let label = label_here(name.into().as_str());
        GraphBuilder::new(self.shared(), label).0
    }

    /// Begins a graph whose jobs read and write fields of `D`, and returns the keys of these fields. Each run
    /// gets the data.
    ///
    /// ```
    /// struct World {
    ///     ticks: u32,
    /// }
    /// paceline::resources! { World: Keys { ticks: u32 } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("tick");
    /// graph.job("count").writes(w.ticks).run(|_, ticks| *ticks += 1);
    /// let mut graph = graph.build();
    /// let mut world = World { ticks: 0 };
    /// graph.run(&mut world);
    /// assert_eq!(world.ticks, 1);
    /// ```
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn graph_of<'b, D: Resources + ?Sized>(
        &self,
        name: impl Into<Name>,
    ) -> (GraphBuilder<'b, D, P>, D::Keys) {
        let label = label_here(name.into().as_str());
        GraphBuilder::new(self.shared(), label)
    }
}

impl<'b, D: Resources + ?Sized, P: Platform> GraphBuilder<'b, D, P> {
    #[track_caller]
    fn new(shared: &Shared<P>, label: Label) -> (Self, D::Keys) {
        or_panic(shared.context().map(drop));
        let mut maker = resources::KeyMaker::new();
        let keys = D::keys(&mut maker);
        let fields = maker.into_fields();
        let declared = DeclaredGraph {
            resources: fields.iter().map(Field::name).collect(),
            ..DeclaredGraph::default()
        };
        let builder = GraphBuilder {
            shared: owner(shared),
            label,
            id: platform::fresh_pool_id(),
            fields,
            declared,
            parts: Vec::new(),
            wishes: Vec::new(),
            names: BTreeMap::new(),
            sections: vec![Section {
                begin: None,
                since: Vec::new(),
                has_condition: None,
                lane: None,
                is_on_main: false,
                is_auto: false,
            }],
            _data: std::marker::PhantomData,
        };
        (builder, keys)
    }

    /// Begins the description of a job. It belongs to the graph when `run` or `for_each` has given it a body.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// let input = graph.job("input").run(|_| println!("reading input"));
    /// graph.job("draw").after(input).run(|_| println!("drawing"));
    /// graph.build().run(&mut ());
    /// ```
    #[track_caller]
    pub fn job(&mut self, name: impl Into<Name>) -> GraphJob<'_, 'b, D, (), (), P> {
        GraphJob::new(self, label_here(name.into().as_str()))
    }

    /// Begins the description of a condition: a job whose body says whether the jobs that hang on it
    /// ([`only_if`](GraphJob::only_if)) run this time.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// let mut frame = 0;
    /// let tenth = graph.condition("tenth frame").run(|_| {
    ///     frame += 1;
    ///     frame % 10 == 0
    /// });
    /// let mut saved = 0;
    /// graph.job("save").only_if(tenth).run(|_| saved += 1);
    /// let mut graph = graph.build();
    /// for _ in 0..30 {
    ///     graph.run(&mut ());
    /// }
    /// drop(graph);
    /// assert_eq!(saved, 3);
    /// ```
    #[track_caller]
    pub fn condition(&mut self, name: impl Into<Name>) -> GraphJob<'_, 'b, D, (), bool, P> {
        GraphJob::new(self, label_here(name.into().as_str()))
    }

    /// All jobs that were declared before this call end before those that are declared after it begin. In a
    /// nested graph it is about the jobs of that one.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let order = std::sync::Mutex::new(Vec::new());
    /// let mut graph = js.graph("frame");
    /// graph.job("a").run(|_| order.lock().unwrap().push(1));
    /// graph.job("b").run(|_| order.lock().unwrap().push(1));
    /// graph.sync("simulated");
    /// graph.job("c").run(|_| order.lock().unwrap().push(2));
    /// graph.build().run(&mut ());
    /// assert_eq!(*order.lock().unwrap(), [1, 1, 2]);
    /// ```
    #[track_caller]
    pub fn sync(&mut self, name: impl Into<Name>) -> GraphNode {
        let label = label_here(name.into().as_str());
        let since = std::mem::take(&mut self.section().since);
        let sync = self.add_passing(label, NodeKind::Sync);
        for node in since {
            self.edge(node, sync);
        }
        let section = self.section();
        section.begin = Some(sync);
        section.since.clear();
        self.named(label.name, (sync, sync))
    }

    /// Begins the description of a nested graph: jobs that belong together. What comes after it comes after
    /// all of them, and a condition is for all of them.
    ///
    /// A graph with data of its own is a job that runs it: [`BuiltGraph::run_in`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let done = std::sync::Mutex::new(Vec::new());
    /// let mut graph = js.graph("frame");
    /// graph.nest("physics").of(|physics| {
    ///     physics.job("collide").run(|_| done.lock().unwrap().push("collide"));
    ///     physics.job("solve").after("collide").run(|_| done.lock().unwrap().push("solve"));
    /// });
    /// graph.job("draw").after("physics").run(|_| done.lock().unwrap().push("draw"));
    /// graph.build().run(&mut ());
    /// assert_eq!(*done.lock().unwrap(), ["collide", "solve", "draw"]);
    /// ```
    #[track_caller]
    pub fn nest(&mut self, name: impl Into<Name>) -> GraphJob<'_, 'b, D, NestedGraph, (), P> {
        GraphJob::nested(self, label_here(name.into().as_str()))
    }

    /// Where two jobs touch the same data, one of them changes it, and nothing orders them, the order of the
    /// calls is their order. Without this it is an error, unless the later one says [`auto`](GraphJob::auto).
    ///
    /// ```
    /// struct World {
    ///     number: u32,
    /// }
    /// paceline::resources! { World: Keys { number: u32 } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// graph.auto();
    /// graph.job("add").writes(w.number).run(|_, number| *number += 1);
    /// graph.job("double").writes(w.number).run(|_, number| *number *= 2);
    /// let mut world = World { number: 20 };
    /// graph.build().run(&mut world);
    /// assert_eq!(world.number, 42);
    /// ```
    pub fn auto(&mut self) -> &mut Self {
        self.section().is_auto = true;
        self
    }

    /// References are made by the number of a key alone, so it has to lead to a field of its type.
    fn check(&self, (number, of): (u32, TypeId)) {
        assert!(
            Field::fits(&self.fields, number, of),
            "the keys of a graph differ from call to call: use `paceline::resources!`"
        );
    }

    fn section(&mut self) -> &mut Section {
        let innermost = self.sections.len() - 1;
        &mut self.sections[innermost]
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.declared.edges.push(DeclaredEdge {
            from,
            to,
            is_condition: false,
        });
    }

    /// Adds a node to the section that is being declared.
    fn add(&mut self, node: DeclaredNode, part: NodePart<'b, P>) -> usize {
        let number = self.declared.nodes.len();
        let section = self.section();
        let is_job = part.body.is_some();
        let part = NodePart {
            lane: part.lane.or(section.lane).filter(|_| is_job),
            is_on_main: part.is_on_main || is_job && section.is_on_main,
            ..part
        };
        let is_auto = node.is_auto || section.is_auto;
        section.since.push(number);
        let (begin, condition) = (section.begin, section.has_condition);
        self.declared.nodes.push(DeclaredNode { is_auto, ..node });
        self.parts.push(part);
        if let Some(begin) = begin {
            self.edge(begin, number);
        }
        if let Some(from) = condition {
            self.declared.edges.push(DeclaredEdge {
                from,
                to: number,
                is_condition: true,
            });
        }
        number
    }

    /// Adds a node that does nothing.
    fn add_passing(&mut self, label: Label, kind: NodeKind) -> usize {
        let node = DeclaredNode {
            label,
            accesses: Vec::new(),
            is_auto: false,
        };
        let part = NodePart {
            body: None,
            kind,
            lane: None,
            is_on_main: false,
        };
        self.add(node, part)
    }

    /// Something with a name is there: from its first to its last node.
    fn named(&mut self, name: &'static str, span: (usize, usize)) -> GraphNode {
        self.names.entry(name).or_default().push(span);
        GraphNode {
            graph: self.id,
            span,
        }
    }
}
