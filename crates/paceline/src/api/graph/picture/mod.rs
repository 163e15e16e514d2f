//! A graph as text and as a picture.

mod dot;
mod svg;

use std::fmt;

use platform::Platform;

use super::NodeKind;
use super::built::{BuiltGraph, NodeFacts};
use super::resources::Resources;
use super::timings::duration;

/// A graph, as it is drawn.
struct Drawing {
    title: String,
    nodes: Vec<DrawnNode>,
    /// From, to, and whether it is a condition.
    edges: Vec<(usize, usize, bool)>,
}

struct DrawnNode {
    text: String,
    time: Option<String>,
    kind: NodeKind,
    is_on_main: bool,
    /// On the longest way.
    is_critical: bool,
    /// How many nodes there are before it on the longest way to it.
    depth: usize,
}

impl NodeFacts {
    /// Whether it has a body.
    #[inline]
    pub(super) fn is_job(&self) -> bool {
        matches!(self.kind, NodeKind::Job | NodeKind::Condition)
    }

    /// The node, for a reader.
    #[inline]
    fn text(&self) -> String {
        let name = self.label.name;
        match self.kind {
            NodeKind::Job => name.to_owned(),
            NodeKind::Condition => format!("{name}?"),
            NodeKind::Sync => format!("sync {name}"),
            NodeKind::Begin => format!("{name} begins"),
            NodeKind::End => format!("{name} ends"),
        }
    }
}

impl<D: Resources + ?Sized, P: Platform> BuiltGraph<'_, D, P> {
    /// The graph in the language of Graphviz. Edges from conditions are dashed, and the longest way through
    /// the graph ([`critical_path`](BuiltGraph::critical_path)) is red. Allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// let input = graph.job("input").run(|_| ());
    /// graph.job("draw").after(input).run(|_| ());
    /// let dot = graph.build().to_dot();
    /// assert!(dot.starts_with("digraph \"frame\" {") && dot.contains("n0 -> n1"));
    /// ```
    pub fn to_dot(&self) -> String {
        dot::draw(&self.drawing())
    }

    /// The graph as a picture: a document in SVG, which browsers show. Each column has the jobs that could
    /// run at the same time, the longest way through the graph is red, and jobs that were
    /// [measured](BuiltGraph::measure) have their mean times. Allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// let input = graph.job("input").run(|_| ());
    /// graph.job("draw").after(input).run(|_| ());
    /// let picture = graph.build().to_svg();
    /// assert!(picture.starts_with("<svg") && picture.contains(">draw</text>"));
    /// // std::fs::write("frame.svg", picture)?;
    /// ```
    pub fn to_svg(&self) -> String {
        svg::draw(&self.drawing())
    }

    fn drawing(&self) -> Drawing {
        let shape = &self.shape;
        let critical = self.critical_nodes();
        let mut depth = vec![0_usize; shape.nodes.len()];
        for &node in &shape.checked.order {
            for &(next, _) in &shape.checked.successors[node] {
                depth[next] = depth[next].max(depth[node] + 1);
            }
        }
        let drawn = |(number, node): (usize, &NodeFacts)| {
            let timing = self.timing(number);
            let mean = duration(timing.mean());
            DrawnNode {
                text: node.text(),
                time: (timing.runs > 0).then(|| format!("{mean:.1?}")),
                kind: node.kind,
                is_on_main: node.is_on_main,
                is_critical: critical.contains(&number),
                depth: depth[number],
            }
        };
        Drawing {
            title: shape.label.name.to_owned(),
            nodes: shape.nodes.iter().enumerate().map(drawn).collect(),
            edges: self.edges().collect(),
        }
    }

    /// All edges: from, to, and whether it is a condition.
    fn edges(&self) -> impl Iterator<Item = (usize, usize, bool)> {
        let all = self.shape.checked.successors.iter().enumerate();
        all.flat_map(|(from, next)| next.iter().map(move |&(to, when)| (from, to, when)))
    }
}

impl<D: Resources + ?Sized, P: Platform> fmt::Display for BuiltGraph<'_, D, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = &self.shape;
        let jobs = shape.nodes.iter().filter(|node| node.is_job()).count();
        let edges = self.edges().count();
        write!(f, "graph {}: jobs {jobs}, edges {edges}", shape.label)?;
        let mut before = vec![Vec::new(); shape.nodes.len()];
        for (from, to, is_condition) in self.edges() {
            before[to].push((from, is_condition));
        }
        for &node in &shape.checked.order {
            write!(f, "\n  {}", shape.nodes[node].text())?;
            if shape.nodes[node].is_on_main {
                f.write_str(", on the main thread")?;
            }
            before[node].sort_unstable();
            for &(from, is_condition) in &before[node] {
                let word = if is_condition { "only if" } else { "after" };
                write!(f, ", {word} {}", shape.nodes[from].text())?;
            }
        }
        Ok(())
    }
}

impl<D: Resources + ?Sized, P: Platform> fmt::Debug for BuiltGraph<'_, D, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
