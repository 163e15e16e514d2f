//! Calls that are about graphs.

use std::mem::zeroed;
use std::ptr::null;

use capi::pl_status::{PL_BUSY, PL_CYCLE, PL_INVALID, PL_TOO_LATE, PL_UNKNOWN};
use capi::{
    pl_graph_add, pl_graph_add_dependency, pl_graph_build, pl_graph_create, pl_graph_destroy,
    pl_graph_is_done, pl_graph_run, pl_graph_start, pl_graph_start_in, pl_graph_wait, pl_node_desc,
    pl_status,
};

use super::bodies::{Data, Happened, body, release};
use super::model::{GraphState, Phase};
use super::{Bytes, MayRun, Program};

impl Program {
    pub(super) fn make_graph(&mut self, bytes: &mut Bytes<'_>) {
        let (system, mut out) = (self.system(bytes), 0);
        // SAFETY: the job system is null or was made; null is a name.
        let status = unsafe { pl_graph_create(self.systems[system], null(), &mut out) };
        if self.judge_plain(status, &self.wrong_system(system)) {
            self.graphs.push(out);
            self.model.graphs.push(GraphState {
                system,
                phase: Phase::Declared,
                nodes: Vec::new(),
                has_run: Vec::new(),
            });
        }
    }

    /// A job system, a graph, and what is wrong with them.
    fn graph(&self, bytes: &mut Bytes<'_>) -> (usize, u64, Option<usize>, Vec<pl_status>) {
        let system = self.system(bytes);
        let (number, place) = Program::pick(&self.graphs, bytes);
        let known = place
            .map(|at| &self.model.graphs[at])
            .filter(|graph| graph.phase != Phase::Gone);
        let mut wrong = self.wrong_system(system);
        match number {
            0 if wrong.is_empty() => wrong.push(PL_INVALID),
            _ => wrong.extend(self.wrong_number(system, known.map(|graph| graph.system))),
        }
        let place = place.filter(|_| wrong.is_empty());
        (system, number, place, wrong)
    }

    /// A node, with its place in this graph.
    fn node(&self, graph: Option<usize>, bytes: &mut Bytes<'_>) -> (u64, Option<usize>) {
        let numbers: Vec<u64> = self.nodes.iter().map(|&(_, _, number)| number).collect();
        let (number, at) = Program::pick(&numbers, bytes);
        let place = at
            .map(|at| self.nodes[at])
            .filter(|&(of, ..)| Some(of) == graph);
        (number, place.map(|(_, place, _)| place))
    }

    pub(super) fn add_node(&mut self, bytes: &mut Bytes<'_>) {
        let (system, number, graph, mut wrong) = self.graph(bytes);
        let after = [self.node(graph, bytes), self.node(graph, bytes)];
        let more = bytes.next();
        if let Some(graph) = graph {
            if self.model.graphs[graph].phase != Phase::Declared {
                wrong.push(PL_TOO_LATE);
            }
            let strange = |&(number, place): &(u64, Option<usize>)| number != 0 && place.is_none();
            wrong.extend(after.iter().any(strange).then_some(PL_UNKNOWN));
            wrong.extend((more < 16).then_some(PL_INVALID));
        }
        let of = graph.unwrap_or(usize::MAX);
        let place = graph.map_or(0, |graph| self.model.graphs[graph].nodes.len());
        let numbers = after.map(|(number, _)| number);
        let desc = pl_node_desc {
            size: size_of::<pl_node_desc>(),
            body: (more >= 16).then_some(body),
            data: Data::of_node(&self.log, of, place),
            release: Some(release),
            after: numbers.as_ptr(),
            after_count: 2,
            // SAFETY: zero is a value of each field.
            ..unsafe { zeroed() }
        };
        let mut out = 0;
        // SAFETY: the description is right but for what is in `wrong`.
        let status = unsafe { pl_graph_add(self.systems[system], number, &desc, &mut out) };
        if let (true, Some(graph)) = (self.judge_plain(status, &wrong), graph) {
            self.open.push(Happened::NodeReleased(graph, place));
            self.nodes.push((graph, place, out));
            let after = after.iter().filter_map(|&(_, place)| place).collect();
            self.model.graphs[graph].nodes.push(after);
        } else {
            self.refused(Happened::NodeReleased(of, place));
        }
    }

    pub(super) fn order_nodes(&mut self, bytes: &mut Bytes<'_>) {
        let (system, number, graph, mut wrong) = self.graph(bytes);
        let (node, before) = (self.node(graph, bytes), self.node(graph, bytes));
        if let Some(graph) = graph {
            if self.model.graphs[graph].phase != Phase::Declared {
                wrong.push(PL_TOO_LATE);
            }
            for (number, place) in [node, before] {
                match (number, place) {
                    (0, _) => wrong.push(PL_INVALID),
                    (_, None) => wrong.push(PL_UNKNOWN),
                    (_, Some(_)) => {}
                }
            }
            if node.1.is_some() && node == before {
                wrong.push(PL_CYCLE);
            }
        }
        // SAFETY: as above.
        let status =
            unsafe { pl_graph_add_dependency(self.systems[system], number, node.0, before.0) };
        if let (true, Some(graph)) = (self.judge_plain(status, &wrong), graph)
            && let (Some(node), Some(before)) = (node.1, before.1)
        {
            self.model.graphs[graph].nodes[node].push(before);
        }
    }

    pub(super) fn graph_call(&mut self, bytes: &mut Bytes<'_>) {
        let how = bytes.next() % 8;
        let (system, number, graph, mut wrong) = self.graph(bytes);
        let phase = graph.map(|graph| self.model.graphs[graph].phase);
        let raw = self.systems[system];
        let mut done = 7;
        wrong.extend(phase.and_then(|phase| wrong_phase(how, phase)));
        let frame = match how {
            4 => self.frame(system, bytes, &mut wrong).0,
            _ => 0,
        };
        if let (0 | 1, Some(Phase::Declared), Some(graph)) = (how, phase, graph) {
            let has_circle = self.model.graphs[graph].has_circle();
            wrong.extend(has_circle.then_some(PL_CYCLE));
            self.model.graphs[graph].phase = if has_circle {
                Phase::Broken
            } else {
                Phase::Built
            };
        }
        if let (true, 2..5, Some(graph)) = (wrong.is_empty(), how, graph) {
            let state = &mut self.model.graphs[graph];
            state.phase = Phase::Started;
            state.has_run = vec![false; state.nodes.len()];
        }
        if let (true, 7, Some(graph)) = (wrong.is_empty(), how, graph) {
            self.model.graphs[graph].phase = Phase::Gone;
        }
        // SAFETY: as above; the bodies expect no data.
        let status = unsafe {
            match how {
                0 | 1 => pl_graph_build(raw, number),
                2 => pl_graph_run(raw, number, std::ptr::null_mut()),
                3 => pl_graph_start(raw, number, std::ptr::null_mut()),
                4 => pl_graph_start_in(raw, number, frame, std::ptr::null_mut()),
                5 => pl_graph_wait(raw, number),
                6 => pl_graph_is_done(raw, number, &mut done),
                _ => pl_graph_destroy(raw, number),
            }
        };
        let is_right = self.judge_plain(status, &wrong);
        let runs = is_right && matches!(how, 2 | 5);
        match graph.filter(|_| runs) {
            Some(graph) => self.follow(&MayRun::Graph(graph)),
            None => self.follow(&MayRun::Nothing),
        };
        let Some(graph) = graph.filter(|_| is_right) else {
            return;
        };
        let state = &mut self.model.graphs[graph];
        let is_over = state.has_run.iter().all(|&has| has);
        if runs {
            assert!(is_over, "the run left out a node");
            state.phase = Phase::Built;
        }
        if how == 6 {
            let goes_on = state.phase == Phase::Started && !is_over;
            assert_eq!(done, i32::from(!goes_on));
        }
    }
}

/// What is wrong with a call on a graph in this phase.
fn wrong_phase(how: usize, phase: Phase) -> Option<pl_status> {
    match (how, phase) {
        (6, _) | (0 | 1, Phase::Declared) | (2..5, Phase::Built) | (5, Phase::Started) => None,
        (0 | 1, Phase::Built | Phase::Started) | (5, Phase::Built) => Some(PL_TOO_LATE),
        (2..5 | 7, Phase::Started) => Some(PL_BUSY),
        (7, _) => None,
        (_, Phase::Declared | Phase::Broken) => Some(PL_INVALID),
        (_, Phase::Gone | Phase::Built | Phase::Started) => Some(PL_UNKNOWN),
    }
}
