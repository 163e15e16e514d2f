//! Building: from what was declared to what can be run.

use platform::Platform;

use super::GraphBuilder;
use super::built::{BuiltGraph, NodeFacts, Shape};
use super::reference::{Target, Wish};
use super::resources::Resources;
use crate::error::or_panic;
use crate::plan::{DeclaredEdge, PlanError};
use crate::work::built::{Built, NodePlan};

impl<'b, D: Resources + ?Sized, P: Platform> GraphBuilder<'b, D, P> {
    /// Checks the graph, and makes what can be run. Allocates; runs do not.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("draw").run(|_| ());
    /// let mut graph = graph.build();
    /// graph.run(&mut ());
    /// ```
    ///
    /// # Panics
    /// Where [`try_build`](GraphBuilder::try_build) gives an error.
    #[track_caller]
    pub fn build(self) -> BuiltGraph<'b, D, P> {
        or_panic(self.try_build())
    }

    /// As [`build`](GraphBuilder::build), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("a").after("b").run(|_| ());
    /// graph.job("b").after("a").run(|_| ());
    /// let error = graph.try_build().err().expect("there is no order");
    /// assert!(error.to_string().starts_with("the graph has a cycle: 'a' ("));
    /// ```
    ///
    /// # Errors
    /// Cycles, names that no job or several jobs have, and jobs that touch the same data in no order; see
    /// [`PlanError`]. Each names the jobs with their places in the program.
    #[track_caller]
    pub fn try_build(mut self) -> Result<BuiltGraph<'b, D, P>, PlanError> {
        self.grant_wishes()?;
        let checked = self.declared.checked()?;
        let kinds = self.parts.iter().map(|part| (part.kind, part.is_on_main));
        let labels = self.declared.nodes.iter().map(|node| node.label);
        let nodes = labels.zip(kinds);
        let facts = nodes.map(|(label, (kind, is_on_main))| NodeFacts {
            label,
            kind,
            is_on_main,
        });
        let facts = facts.collect();
        let nodes = self.declared.nodes.iter().zip(self.parts).enumerate();
        let plans = nodes.map(|(number, (node, part))| NodePlan {
            label: node.label,
            body: part.body,
            lane: part.lane,
            is_on_main: part.is_on_main,
            predecessors: checked.predecessors[number],
            successors: checked.successors[number].clone(),
        });
        let plans = plans.collect();
        let built = Built::new(&or_panic(self.shared.context()), self.label, plans);
        let shape = Shape {
            label: self.label,
            nodes: facts,
            checked,
        };
        let needed = self.declared.needed_items();
        Ok(BuiltGraph::new(
            self.shared,
            built,
            self.fields,
            needed,
            shape,
        ))
    }

    /// Makes edges of what nodes asked for, now that all names are known.
    fn grant_wishes(&mut self) -> Result<(), PlanError> {
        for wish in std::mem::take(&mut self.wishes) {
            let (first, last) = self.span_of(&wish)?;
            let (from, to) = if wish.is_before {
                (wish.span.1, first)
            } else {
                (last, wish.span.0)
            };
            self.declared.edges.push(DeclaredEdge {
                from,
                to,
                is_condition: wish.is_condition,
            });
        }
        Ok(())
    }

    fn span_of(&self, wish: &Wish) -> Result<(usize, usize), PlanError> {
        let asked_by = self.declared.nodes[wish.span.0].label;
        let name = match wish.target {
            Target::Node(node) if node.graph == self.id => return Ok(node.span),
            Target::Node(_) => return Err(PlanError::OtherGraph { asked_by }),
            Target::Name(name) => name,
        };
        match self.names.get(name).map(Vec::as_slice) {
            None | Some([]) => Err(PlanError::UnknownName { name, asked_by }),
            Some(&[span]) => Ok(span),
            Some(&[first, second, ..]) => Err(PlanError::AmbiguousName {
                name,
                asked_by,
                jobs: [first, second].map(|span| self.declared.nodes[span.0].label),
            }),
        }
    }
}
