//! A graph of C while it is declared, and how it is told to the job system.
//!
//! Rust declares a nested graph in a closure, C between two calls. So all that C says is kept, and told when
//! the graph is built, in the order of the calls. Of two jobs that are to be in an order, the one that was
//! added later says so: the job system knows the other one then.

use std::vec::IntoIter;

use paceline::{
    BuiltGraph, Condition, GraphBuilder, GraphJob, GraphNode, JobSystem, Lane, Name, NodeRef,
};

use crate::status::{Answer, Refusal, pl_status};

/// A description of the job system's that lacks its body.
type Job<'g, R> = GraphJob<'g, 'static, (), (), R>;
/// Gives a job its body.
pub(crate) type JobMaker = Box<dyn for<'g> FnOnce(Job<'g, ()>) -> GraphNode + Send>;
/// Gives a condition its body.
pub(crate) type ConditionMaker = Box<dyn for<'g> FnOnce(Job<'g, bool>) -> Condition + Send>;

/// What a node is.
pub(crate) enum NodePart {
    Job(JobMaker),
    Condition(ConditionMaker),
    Sync,
    Nested,
}

/// What is said of a node besides what it is.
pub(crate) struct NodeWishes {
    pub(crate) name: Name,
    /// Nodes by their place, as all places here.
    pub(crate) after: Vec<usize>,
    pub(crate) only_if: Vec<usize>,
    pub(crate) lane: Option<Lane>,
    pub(crate) is_on_main: bool,
}

impl NodeWishes {
    /// Nothing but a name.
    pub(crate) fn of(name: Name) -> NodeWishes {
        NodeWishes {
            name,
            after: Vec::new(),
            only_if: Vec::new(),
            lane: None,
            is_on_main: false,
        }
    }
}

/// A node as it was added.
struct AddedNode {
    /// Taken when the node is told.
    part: Option<NodePart>,
    is_condition: bool,
    is_sync: bool,
    wishes: NodeWishes,
    /// Nodes that were added before it, and come after it.
    before: Vec<usize>,
    /// The nested graph that it is in.
    inside: Option<usize>,
}

/// What was called, in the order of the calls.
enum Step {
    Node(usize),
    EndNested,
}

/// All that was declared.
pub(crate) struct Declaration {
    graph: Name,
    nodes: Vec<AddedNode>,
    steps: Vec<Step>,
    /// The nested graphs that are open, from the outermost.
    open: Vec<usize>,
}

/// The most nodes of a graph, and the most nested graphs in each other.
const NODES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 64;

impl Declaration {
    pub(crate) fn new(graph: Name) -> Declaration {
        Declaration {
            graph,
            nodes: Vec::new(),
            steps: Vec::new(),
            open: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a node, and returns its place. Takes the part if it does: what else becomes of it is the
    /// caller's, outside of locks.
    ///
    /// # Errors
    /// If the graph has no room, or if the node is to come after a nested graph that it is in, or hangs on
    /// what is no condition.
    pub(crate) fn add(&mut self, part: &mut Option<NodePart>, wishes: NodeWishes) -> Answer<usize> {
        let place = self.nodes.len();
        let is_nested = matches!(part, Some(NodePart::Nested));
        if place >= NODES_MAX || is_nested && self.open.len() >= DEPTH_MAX {
            return Err(Refusal::new(
                pl_status::PL_FULL,
                format!(
                    "graph '{}' has no room for '{}': it may have {NODES_MAX} jobs, and nested graphs \
                     {DEPTH_MAX} deep",
                    self.graph, wishes.name
                ),
            ));
        }
        let mut all = wishes.after.iter().chain(&wishes.only_if);
        if let Some(&nested) = all.find(|before| self.open.contains(before)) {
            return Err(self.in_each_other(wishes.name, nested));
        }
        if let Some(&other) = wishes
            .only_if
            .iter()
            .find(|&&at| !self.nodes[at].is_condition)
        {
            let other = self.nodes[other].wishes.name;
            return Err(Refusal::invalid(format!(
                "'{}' can hang on a condition only, and '{other}' is none",
                wishes.name
            )));
        }
        self.nodes.push(AddedNode {
            is_condition: matches!(part, Some(NodePart::Condition(_))),
            is_sync: matches!(part, Some(NodePart::Sync)),
            part: part.take(),
            wishes,
            before: Vec::new(),
            inside: self.open.last().copied(),
        });
        self.steps.push(Step::Node(place));
        if is_nested {
            self.open.push(place);
        }
        Ok(place)
    }

    /// Ends the nested graph that was begun last.
    pub(crate) fn end_nested(&mut self) -> Answer {
        let last = self.open.pop();
        last.ok_or_else(|| {
            Refusal::invalid(format!(
                "graph '{}' has no nested graph to end: begin one with pl_graph_begin_nested",
                self.graph
            ))
        })?;
        self.steps.push(Step::EndNested);
        Ok(())
    }

    /// `node` comes after `before`, too. Circles of more than one node are found when the graph is built.
    pub(crate) fn order(&mut self, node: usize, before: usize) -> Answer {
        let name = self.nodes[node].wishes.name;
        if node == before {
            return Err(Refusal::new(
                pl_status::PL_CYCLE,
                format!("'{name}' cannot come after itself"),
            ));
        }
        let other = self.nodes[before].wishes.name;
        if self.is_inside(node, before) || self.is_inside(before, node) {
            return Err(self.in_each_other(name, before));
        }
        let (later, earlier) = (node.max(before), node.min(before));
        if self.nodes[later].is_sync {
            return Err(Refusal::invalid(format!(
                "'{name}' cannot be put behind '{other}': what a sync point comes after and before follows \
                 from the order of the calls"
            )));
        }
        let is_after = later == node;
        let later = &mut self.nodes[later];
        let list = if is_after {
            &mut later.wishes.after
        } else {
            &mut later.before
        };
        list.push(earlier);
        Ok(())
    }

    /// Whether a node is in this nested graph.
    fn is_inside(&self, node: usize, nested: usize) -> bool {
        let mut inside = self.nodes[node].inside;
        while let Some(at) = inside {
            if at == nested {
                return true;
            }
            inside = self.nodes[at].inside;
        }
        false
    }

    fn in_each_other(&self, name: Name, other: usize) -> Refusal {
        let other = self.nodes[other].wishes.name;
        Refusal::new(
            pl_status::PL_CYCLE,
            format!("'{name}' cannot come after '{other}': one of them is in the other"),
        )
    }

    /// Makes the graph. The bodies are gone if it cannot be made.
    pub(crate) fn build(mut self, js: &JobSystem) -> Answer<BuiltGraph<'static, ()>> {
        if let Some(&open) = self.open.last() {
            return Err(Refusal::invalid(format!(
                "the nested graph '{}' has no end: call pl_graph_end_nested",
                self.nodes[open].wishes.name
            )));
        }
        let mut graph = js.graph(self.graph);
        let mut steps = std::mem::take(&mut self.steps).into_iter();
        let mut telling = Telling {
            made: self.nodes.iter().map(|_| None).collect(),
            nodes: self.nodes,
        };
        telling.tell(&mut graph, &mut steps);
        Ok(graph.try_build()?)
    }
}

/// A node that the job system knows.
#[derive(Clone, Copy)]
enum Made {
    Node(GraphNode),
    Condition(Condition),
}

impl From<Made> for NodeRef {
    fn from(made: Made) -> NodeRef {
        match made {
            Made::Node(node) => node.into(),
            Made::Condition(condition) => condition.into(),
        }
    }
}

struct Telling {
    nodes: Vec<AddedNode>,
    /// For each node that was told.
    made: Vec<Option<Made>>,
}

impl Telling {
    /// Tells all of a graph, or of the nested graph that has just begun.
    fn tell(&mut self, graph: &mut GraphBuilder<'static, ()>, steps: &mut IntoIter<Step>) {
        while let Some(Step::Node(place)) = steps.next() {
            let name = self.nodes[place].wishes.name;
            let made = match self.nodes[place].part.take() {
                Some(NodePart::Job(make)) => {
                    Made::Node(make(self.described(graph.job(name), place)))
                }
                Some(NodePart::Condition(make)) => {
                    Made::Condition(make(self.described(graph.condition(name), place)))
                }
                Some(NodePart::Nested) => {
                    let nested = self.described(graph.nest(name), place);
                    Made::Node(nested.of(|graph| self.tell(graph, steps)))
                }
                Some(NodePart::Sync) | None => Made::Node(graph.sync(name)),
            };
            self.made[place] = Some(made);
        }
    }

    /// The description with all that was said of the node.
    fn described<'g, A, R>(
        &self,
        mut job: GraphJob<'g, 'static, (), A, R>,
        place: usize,
    ) -> GraphJob<'g, 'static, (), A, R> {
        let AddedNode { wishes, before, .. } = &self.nodes[place];
        let known = |places: &[usize]| -> Vec<Made> {
            places
                .iter()
                .filter_map(|&place| self.made[place])
                .collect()
        };
        job = job.after_all(known(&wishes.after));
        for later in known(before) {
            job = job.before(later);
        }
        for made in known(&wishes.only_if) {
            if let Made::Condition(condition) = made {
                job = job.only_if(condition);
            }
        }
        if let Some(lane) = wishes.lane {
            job = job.lane(lane);
        }
        if wishes.is_on_main {
            job = job.on_main();
        }
        job
    }
}
