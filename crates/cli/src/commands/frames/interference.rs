//! The effect of other threads of the machine on a run of frames, real or simulated, for people and as JSON.

use comfy_table::Table;
use paceline::Interference;
use serde::Serialize;

use console::output;

use crate::commands::accounts::interfered;

#[derive(Serialize)]
pub(in crate::commands) struct InterferenceJson {
    noticed: bool,
    most_workers: Option<usize>,
    decisions: Vec<DecisionJson>,
}

#[derive(Serialize)]
struct DecisionJson {
    /// How many frames had ended.
    frame: u64,
    decided: &'static str,
    workers: usize,
    /// The share of the time that threads ran or waited for a CPU in which they waited, before the decision.
    waited: f64,
    switches_per_frame: f64,
}

pub(in crate::commands) fn json(found: &Interference) -> InterferenceJson {
    let decisions = found.decisions.iter().map(|decision| DecisionJson {
        frame: decision.frames,
        decided: interfered(decision.what),
        workers: decision.workers,
        waited: f64::from(decision.waited_thousandths) / 1e3,
        switches_per_frame: f64::from(decision.switches_per_1000_frames) / 1e3,
    });
    InterferenceJson {
        noticed: found.is_noticed,
        most_workers: found.most_workers,
        decisions: decisions.collect(),
    }
}

/// The latest decisions; empty if there were none.
pub(in crate::commands) fn table(found: &Interference) -> Table {
    const SHOWN: usize = 12;
    let mut table = output::table();
    if found.decisions.is_empty() {
        return table;
    }
    table.set_header([
        "other threads want the CPUs",
        "frame",
        "workers",
        "waited",
        "preempted",
    ]);
    let left_out = found.decisions.len().saturating_sub(SHOWN);
    for decision in &found.decisions[left_out..] {
        table.add_row([
            interfered(decision.what).to_owned(),
            decision.frames.to_string(),
            decision.workers.to_string(),
            format!("{:.0} %", f64::from(decision.waited_thousandths) / 10.0),
            format!(
                "{:.1} a frame",
                f64::from(decision.switches_per_1000_frames) / 1e3
            ),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use event::{Interfered, Nanos};
    use paceline::Decision;

    use super::*;

    /// Goal: people and programs are told the same, and of many decisions people see the latest. Method:
    /// twenty decisions; none.
    #[test]
    fn decisions_are_told() {
        let decision = |frames| Decision {
            time: Nanos::ZERO,
            frames,
            what: Interfered::Kept,
            workers: 3,
            waited_thousandths: 375,
            switches_per_1000_frames: 1_500,
        };
        let mut found = Interference::default();
        assert!(table(&found).is_empty());
        found.decisions = (101..=120).map(decision).collect();
        let shown = table(&found).to_string();
        assert!(
            !shown.contains("108") && shown.contains("109") && shown.contains("120"),
            "{shown}"
        );
        for part in ["left alone", "38 %", "1.5 a frame"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let json = serde_json::to_value(json(&found)).unwrap();
        let last = &json["decisions"][19];
        assert_eq!(
            (&last["frame"], &last["waited"]),
            (&120.into(), &0.375.into())
        );
    }
}
