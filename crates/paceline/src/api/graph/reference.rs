//! What nodes of a graph are ordered by: what `run` returns, conditions, names.

use std::num::NonZeroU32;

use super::NodeKind;
use crate::store::Name;

/// A job, a sync point or a nested graph, by which others are ordered. It is a plain copy.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let mut graph = js.graph("frame");
/// let steps: Vec<paceline::GraphNode> =
///     (0..4).map(|_| graph.job("step").run(|_| ())).collect();
/// graph.job("draw").after_all(steps).run(|_| ());
/// graph.build().run(&mut ());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphNode {
    pub(super) graph: NonZeroU32,
    pub(super) span: (usize, usize),
}

/// A condition, on which other jobs can hang; from
/// [`GraphBuilder::condition`](crate::GraphBuilder::condition).
///
/// ```
/// let js = paceline::JobSystem::new();
/// let mut graph = js.graph("frame");
/// let never: paceline::Condition = graph.condition("never").run(|_| false);
/// graph.job("left out").only_if(never).run(|_| unreachable!());
/// graph.build().run(&mut ());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition(pub(super) GraphNode);

/// What a job can come after or before: what [`run`](crate::GraphJob::run) returned, or a name, also that of
/// a job that is declared later.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let mut graph = js.graph("frame");
/// graph.job("draw").after("move").run(|_| ());
/// graph.job("move").run(|_| ());
/// graph.build().run(&mut ());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NodeRef(pub(super) Target);

#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Node(GraphNode),
    Name(&'static str),
}

impl From<GraphNode> for NodeRef {
    fn from(node: GraphNode) -> NodeRef {
        NodeRef(Target::Node(node))
    }
}

impl From<&GraphNode> for NodeRef {
    fn from(node: &GraphNode) -> NodeRef {
        NodeRef(Target::Node(*node))
    }
}

impl From<Condition> for NodeRef {
    fn from(condition: Condition) -> NodeRef {
        NodeRef(Target::Node(condition.0))
    }
}

impl From<&'static str> for NodeRef {
    fn from(name: &'static str) -> NodeRef {
        NodeRef(Target::Name(name))
    }
}

impl From<String> for NodeRef {
    #[inline]
    fn from(name: String) -> NodeRef {
        NodeRef(Target::Name(Name::from(name).as_str()))
    }
}

impl From<Name> for NodeRef {
    fn from(name: Name) -> NodeRef {
        NodeRef(Target::Name(name.as_str()))
    }
}

/// An edge that a node asked for. Names are looked up when the graph is built.
pub(super) struct Wish {
    pub(super) target: Target,
    /// The first and the last node of what asked.
    pub(super) span: (usize, usize),
    pub(super) is_before: bool,
    pub(super) is_condition: bool,
}

/// The result of a node's body: none, or that of a condition. It has no example, because programs do not name
/// it.
#[doc(hidden)]
pub trait NodeResult: Sized {
    /// What `run` returns.
    type Node;

    #[doc(hidden)]
    const KIND: NodeKind;

    #[doc(hidden)]
    fn holds(self) -> bool;

    #[doc(hidden)]
    fn node(node: GraphNode) -> Self::Node;
}

impl NodeResult for () {
    type Node = GraphNode;
    const KIND: NodeKind = NodeKind::Job;

    fn holds(self) -> bool {
        true
    }

    fn node(node: GraphNode) -> GraphNode {
        node
    }
}

impl NodeResult for bool {
    type Node = Condition;
    const KIND: NodeKind = NodeKind::Condition;

    fn holds(self) -> bool {
        self
    }

    fn node(node: GraphNode) -> Condition {
        Condition(node)
    }
}
