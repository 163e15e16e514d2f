//! The description of a node of a graph.

use std::marker::PhantomData;

use platform::{Lane, Os, Platform};

use super::reference::{Condition, GraphNode, NodeRef, NodeResult, Target, Wish};
use super::resources::Resources;
use super::touch::{Readable, Writable};
use super::{GraphBuilder, NodeKind, NodePart, Section};
use crate::access::{Access, And, Declared};
use crate::plan::DeclaredNode;
use crate::store::Label;
use crate::work::built::NodeBody;

/// The accesses of a job that has declared some. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct Touches<A>(pub(super) A);

/// Of a description: that of a nested graph. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct NestedGraph;

/// One more declared access. It has no example, because programs do not name it.
#[doc(hidden)]
pub trait DeclareMore<A: Access> {
    type With;

    #[doc(hidden)]
    fn declare(self, access: A) -> Self::With;
}

impl<A: Access> DeclareMore<A> for () {
    type With = Touches<(A,)>;

    fn declare(self, access: A) -> Touches<(A,)> {
        Touches((access,))
    }
}

impl<T: And<A>, A: Access> DeclareMore<A> for Touches<T> {
    type With = Touches<T::With>;

    fn declare(self, access: A) -> Touches<T::With> {
        Touches(self.0.and(access))
    }
}

/// The description of a job of a graph, from [`GraphBuilder::job`], of a condition, or of a nested graph.
/// Nothing is added to the graph until [`run`](GraphJob::run), `for_each` or [`of`](GraphJob::of).
///
/// ```
/// struct World {
///     speeds: Vec<f32>,
///     positions: Vec<f32>,
/// }
/// paceline::resources! { World: WorldKeys { speeds: Vec<f32>, positions: Vec<f32> } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// let travel = graph.job("travel").reads(w.speeds).writes(w.positions);
/// travel.run(|cx, (speeds, positions)| {
///     cx.over((positions, speeds)).for_each(|(position, speed)| *position += speed);
/// });
/// let mut world = World { speeds: vec![2.0; 100], positions: vec![0.0; 100] };
/// graph.build().run(&mut world);
/// assert_eq!(world.positions[99], 2.0);
/// ```
#[must_use = "describe the job, then give it a body"]
pub struct GraphJob<'g, 'b, D: Resources + ?Sized, A, R, P: Platform = Os> {
    pub(super) graph: &'g mut GraphBuilder<'b, D, P>,
    pub(super) accesses: A,
    pub(super) about: About,
    _result: PhantomData<fn() -> R>,
}

/// All of a description but accesses and body.
pub(super) struct About {
    pub(super) label: Label,
    kind: NodeKind,
    wishes: Vec<Wish>,
    lane: Option<Lane>,
    is_on_main: bool,
    is_auto: bool,
}

impl About {
    fn new(label: Label, kind: NodeKind) -> About {
        About {
            label,
            kind,
            wishes: Vec::new(),
            lane: None,
            is_on_main: false,
            is_auto: false,
        }
    }

    /// Adds the node that was described.
    pub(super) fn add<'b, D: Resources + ?Sized, P: Platform>(
        self,
        graph: &mut GraphBuilder<'b, D, P>,
        accesses: Vec<Declared>,
        body: NodeBody<'b, P>,
    ) -> GraphNode {
        let node = DeclaredNode {
            label: self.label,
            accesses,
            is_auto: self.is_auto,
        };
        let part = NodePart {
            body: Some(body),
            kind: self.kind,
            lane: self.lane,
            is_on_main: self.is_on_main,
        };
        let number = graph.add(node, part);
        self.wish_for(graph, (number, number))
    }

    /// The nodes of the description are there: they have a name, and what was wished for them is noted.
    fn wish_for<D: Resources + ?Sized, P: Platform>(
        self,
        graph: &mut GraphBuilder<'_, D, P>,
        span: (usize, usize),
    ) -> GraphNode {
        let wishes = self.wishes.into_iter();
        graph
            .wishes
            .extend(wishes.map(|wish| Wish { span, ..wish }));
        graph.named(self.label.name, span)
    }
}

impl<'g, 'b, D: Resources + ?Sized, R: NodeResult, P: Platform> GraphJob<'g, 'b, D, (), R, P> {
    pub(super) fn new(graph: &'g mut GraphBuilder<'b, D, P>, label: Label) -> Self {
        GraphJob {
            graph,
            accesses: (),
            about: About::new(label, R::KIND),
            _result: PhantomData,
        }
    }
}

impl<'g, 'b, D: Resources + ?Sized, P: Platform> GraphJob<'g, 'b, D, NestedGraph, (), P> {
    pub(super) fn nested(graph: &'g mut GraphBuilder<'b, D, P>, label: Label) -> Self {
        GraphJob {
            graph,
            accesses: NestedGraph,
            about: About::new(label, NodeKind::Begin),
            _result: PhantomData,
        }
    }

    /// Declares the jobs of the nested graph. `declare` gets the builder, and may as well be a function that
    /// several graphs use. It is called at once.
    ///
    /// ```
    /// fn physics<'b>(graph: &mut paceline::GraphBuilder<'b, ()>) {
    ///     graph.job("collide").run(|_| ());
    ///     graph.job("solve").after("collide").run(|_| ());
    /// }
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// let goes_on = graph.condition("goes on").run(|_| true);
    /// let physics = graph.nest("physics").only_if(goes_on).of(physics);
    /// graph.job("draw").after(physics).run(|_| ());
    /// graph.build().run(&mut ());
    /// ```
    pub fn of(self, declare: impl FnOnce(&mut GraphBuilder<'b, D, P>)) -> GraphNode {
        let GraphJob { graph, about, .. } = self;
        let label = about.label;
        let begin = graph.add_passing(label, NodeKind::Begin);
        let outer = graph.section();
        let hangs =
            about.wishes.iter().any(|wish| wish.is_condition) || outer.has_condition.is_some();
        let inner = Section {
            begin: Some(begin),
            since: Vec::new(),
            has_condition: hangs.then_some(begin),
            lane: about.lane.or(outer.lane),
            is_on_main: outer.is_on_main | about.is_on_main,
            is_auto: outer.is_auto | about.is_auto,
        };
        graph.sections.push(inner);
        declare(graph);
        let inner = graph.sections.pop().into_iter();
        let ends: Vec<usize> = inner
            .flat_map(|inner| inner.since.into_iter().chain(inner.begin))
            .collect();
        let end = graph.add_passing(label, NodeKind::End);
        for before in ends {
            graph.edge(before, end);
        }
        about.wish_for(graph, (begin, end))
    }
}

impl<'g, 'b, D: Resources + ?Sized, A, R, P: Platform> GraphJob<'g, 'b, D, A, R, P> {
    fn wish(mut self, target: Target, is_before: bool, is_condition: bool) -> Self {
        self.about.wishes.push(Wish {
            target,
            span: (0, 0), // Known when it is added.
            is_before,
            is_condition,
        });
        self
    }

    /// It starts only after this one has ended, which may be declared later if it is given by name. Calls add
    /// up.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// let aim = graph.job("aim").run(|_| ());
    /// graph.job("draw").after(aim).after("cull").run(|_| ());
    /// graph.job("cull").run(|_| ());
    /// assert_eq!(graph.build().to_string().lines().count(), 4);
    /// ```
    pub fn after(self, node: impl Into<NodeRef>) -> Self {
        self.wish(node.into().0, false, false)
    }

    /// It starts only after all of these have ended.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("draw").after_all(["move", "cull"]).run(|_| ());
    /// graph.job("move").run(|_| ());
    /// graph.job("cull").run(|_| ());
    /// graph.build().run(&mut ());
    /// ```
    pub fn after_all(self, nodes: impl IntoIterator<Item = impl Into<NodeRef>>) -> Self {
        nodes.into_iter().fold(self, |job, node| job.after(node))
    }

    /// It ends before this one starts.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let order = std::sync::Mutex::new(Vec::new());
    /// let mut graph = js.graph("frame");
    /// graph.job("draw").run(|_| order.lock().unwrap().push("draw"));
    /// graph.job("cull").before("draw").run(|_| order.lock().unwrap().push("cull"));
    /// graph.build().run(&mut ());
    /// assert_eq!(*order.lock().unwrap(), ["cull", "draw"]);
    /// ```
    pub fn before(self, node: impl Into<NodeRef>) -> Self {
        self.wish(node.into().0, true, false)
    }

    /// It runs only if this condition was true in the same run (and all others that it was given). Otherwise
    /// it counts as over, and what comes after it goes on. A condition that was not run itself is not true.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// let never = graph.condition("never").run(|_| false);
    /// let skipped = graph.job("skipped").only_if(never).run(|_| unreachable!());
    /// let mut ran = false;
    /// graph.job("then").after(skipped).run(|_| ran = true);
    /// graph.build().run(&mut ());
    /// assert!(ran);
    /// ```
    pub fn only_if(self, condition: Condition) -> Self {
        self.wish(Target::Node(condition.0), false, true)
    }

    /// Its lane, as [`NewJob::lane`](crate::NewJob::lane). Of a nested graph it is the lane of all its jobs
    /// that say none. Without one, a job is in the lane of the thread that runs the graph.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("input").lane(paceline::Lane::Frame).run(|_| ());
    /// graph.build().run(&mut ());
    /// ```
    pub fn lane(mut self, lane: Lane) -> Self {
        self.about.lane = Some(lane);
        self
    }

    /// It has no deadline, as [`NewJob::background`](crate::NewJob::background). The run ends only when it
    /// has.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("tidy up").background().run(|_| ());
    /// graph.build().run(&mut ());
    /// ```
    pub fn background(self) -> Self {
        self.lane(Lane::Background)
    }

    /// It is run by the thread that runs the graph (or that waits for it). That thread runs other jobs of the
    /// graph until this one is ready.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let main = std::thread::current().id();
    /// let mut graph = js.graph("frame");
    /// graph.job("cull").run(|_| ());
    /// graph.job("draw").after("cull").on_main().run(move |_| {
    ///     assert_eq!(std::thread::current().id(), main);
    /// });
    /// graph.build().run(&mut ());
    /// ```
    pub fn on_main(mut self) -> Self {
        self.about.is_on_main = true;
        self
    }

    /// Where it touches the same data as a job that was declared before it, and nothing orders the two, it
    /// comes after that job. For a whole graph: [`GraphBuilder::auto`].
    ///
    /// ```
    /// struct World {
    ///     number: u32,
    /// }
    /// paceline::resources! { World: Keys { number: u32 } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// graph.job("add").writes(w.number).run(|_, number| *number += 1);
    /// graph.job("double").auto().writes(w.number).run(|_, number| *number *= 2);
    /// let mut world = World { number: 20 };
    /// graph.build().run(&mut world);
    /// assert_eq!(world.number, 42);
    /// ```
    pub fn auto(mut self) -> Self {
        self.about.is_auto = true;
        self
    }

    /// The same description with other accesses.
    fn with<B>(self, change: impl FnOnce(A) -> B) -> GraphJob<'g, 'b, D, B, R, P> {
        GraphJob {
            graph: self.graph,
            accesses: change(self.accesses),
            about: self.about,
            _result: PhantomData,
        }
    }

    /// It reads this field, or [an item](crate::Res::at), [a part](crate::Res::part) or [some
    /// items](crate::Res::each) of it: the body gets `&T`. Of several accesses the body gets a tuple, in the
    /// order of the calls, up to eight.
    ///
    /// ```
    /// struct World {
    ///     number: u32,
    /// }
    /// paceline::resources! { World: Keys { number: u32 } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// graph.job("show").reads(w.number).run(|_, number| println!("{number}"));
    /// graph.build().run(&mut World { number: 42 });
    /// ```
    pub fn reads<K: Readable<D>>(self, field: K) -> GraphJob<'g, 'b, D, A::With, R, P>
    where
        A: DeclareMore<K::Access>,
    {
        self.graph.check(field.field());
        self.with(|accesses| accesses.declare(field.read()))
    }

    /// It changes this field, or an item or a part of it: the body gets `&mut T`.
    ///
    /// ```
    /// struct World {
    ///     number: u32,
    /// }
    /// paceline::resources! { World: Keys { number: u32 } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// graph.job("count").writes(w.number).run(|_, number| *number += 1);
    /// let mut world = World { number: 41 };
    /// graph.build().run(&mut world);
    /// assert_eq!(world.number, 42);
    /// ```
    pub fn writes<K: Writable<D>>(self, field: K) -> GraphJob<'g, 'b, D, A::With, R, P>
    where
        A: DeclareMore<K::Access>,
    {
        self.graph.check(field.field());
        self.with(|accesses| accesses.declare(field.write()))
    }
}
