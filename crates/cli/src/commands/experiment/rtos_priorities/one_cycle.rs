//! One cycle as the article's Figure 10 shows it: which thread runs when, by the threads' priorities.

use event::Nanos;

use super::messages::{Cycles, NAMES, PriorityCase};
use crate::commands::experiment::plot::{
    PieceFill, Plot, PlotLane, PlotMark, PlotPiece, PlotShape,
};
use crate::commands::experiment::timeline::{Doing, Stint};

fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

/// The second cycle with equal priorities above the one with unique ones.
pub(super) fn picture(equal: &Cycles, unique: &Cycles) -> Plot {
    let cases = [(PriorityCase::Equal, equal), (PriorityCase::Unique, unique)];
    let lanes = cases
        .iter()
        .flat_map(|(case, cycles)| (0..NAMES.len()).map(|thread| lane(*case, cycles, thread)));
    let mark = |(case, cycles): &(PriorityCase, &Cycles)| PlotMark {
        at: micros(cycles.second_length),
        what: format!("{}: D relinquishes", case.name()),
    };
    Plot {
        file: "one-cycle",
        title: "One cycle: a thread runs (blue), or is ready while another one runs (grey)".into(),
        picture: PlotShape::Lanes {
            unit: "µs",
            lanes: lanes.collect(),
            marks: cases.iter().map(mark).collect(),
        },
    }
}

fn lane(case: PriorityCase, cycles: &Cycles, thread: usize) -> PlotLane {
    let piece = |stint: &Stint| PlotPiece {
        begin: micros(stint.begin),
        end: micros(stint.end),
        name: String::new(),
        fill: match stint.doing {
            Doing::RunsOn(_) => PieceFill::Kind(0),
            Doing::Ready => PieceFill::Pale,
        },
    };
    let of_thread = cycles.second.iter().filter(|stint| stint.thread == thread);
    PlotLane {
        name: format!("{}: {}", case.name(), NAMES[thread]),
        pieces: of_thread.map(piece).collect(),
        result: String::new(),
    }
}
