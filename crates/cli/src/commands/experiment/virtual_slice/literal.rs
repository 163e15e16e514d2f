//! How often the merged code switches in the worked example, and what that depends on.
//!
//! By hand one gets fewer switches than in the simulation. By hand, each task has a past, as in the article's
//! table, and all ready tasks are dispatched before any is queued again, as in its diagrams. The code does
//! neither: a task that begins has used nothing, and of tasks that wait for a busy CPU one is dispatched at a
//! time. So each of the two is tried alone, on paper and with the code itself.

use event::Nanos;
use policy::ops::rustland::{Batch, Constants, merged, pre333};
use policy::ops::{Ops, PaperTask, run_on_paper};

use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};

/// Units of A, B, C and D, and how often they are active.
const TASKS: [(u64, u32); 4] = [(1, 2), (3, 1), (6, 1), (6, 1)];

/// One way to begin and to dispatch.
#[derive(Clone, Copy)]
struct DispatchRule {
    past: bool,
    batch: Batch,
}

const WAYS: [DispatchRule; 4] = [
    DispatchRule {
        past: false,
        batch: Batch::IdleCpus,
    },
    DispatchRule {
        past: true,
        batch: Batch::IdleCpus,
    },
    DispatchRule {
        past: false,
        batch: Batch::All,
    },
    DispatchRule {
        past: true,
        batch: Batch::All,
    },
];

/// The result of one of them.
struct Course {
    switches: f64,
    longest: Nanos,
}

fn course(ops: &mut dyn Ops, unit: Nanos, past: bool) -> Course {
    let task = |(units, times)| PaperTask {
        used: if past {
            Nanos(units * unit.0)
        } else {
            Nanos::ZERO
        },
        needs: Nanos(units * unit.0),
        times,
    };
    let runs = run_on_paper(ops, &TASKS.map(task));
    let longest = runs.iter().map(|(_, time)| *time).max();
    Course {
        switches: runs.len() as f64 - 1.0,
        longest: longest.unwrap_or_default(),
    }
}

/// `unit`: the length of a unit. `simulated`: switches of the merged code in the simulation, and those of
/// the code before.
pub(super) fn run(unit: Nanos, simulated: (f64, f64), findings: &mut Findings) {
    let columns = [
        "tasks have run before",
        "dispatched",
        "switches before the change",
        "with it",
        "longest run with it",
    ];
    let title =
        "The code of scx_rustland on the worked example, on paper: what its switches depend on";
    let mut table = Table::new(title, columns);
    let mut found = Vec::new();
    for way in WAYS {
        let constants = Constants {
            batch: way.batch,
            ..Constants::default()
        };
        let before = course(&mut pre333(constants), unit, way.past);
        let with = course(&mut merged(constants), unit, way.past);
        table.row([
            if way.past { "as the table says" } else { "no" }.into(),
            match way.batch {
                Batch::All => "in bursts",
                Batch::IdleCpus => "one at a time",
            }
            .into(),
            before.switches.into(),
            with.switches.into(),
            with.longest.into(),
        ]);
        found.push((before.switches, with.switches));
    }
    findings.tables.push(table);
    let fewest = found.iter().map(|(_, with)| *with).fold(f64::MAX, f64::min);
    let most = found.iter().map(|(before, _)| *before).fold(0.0, f64::max);
    findings.claims.push(
        Claim::ours(
            "004-p",
            "However tasks begin and are dispatched, the merged code switches more often in this example \
             than the code before it",
        )
        .is(Expect::MoreThan(most.max(simulated.1)), fewest.min(simulated.0), "switches, the fewest")
        .note(format!(
            "on paper {} in bursts with a past, {} one at a time without one; the simulation has {} fewer, \
             since A, which finds the CPU idle, is not asked about its first slice",
            found[3].1,
            found[0].1,
            found[0].1 - simulated.0
        )),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: with a past and in bursts the number is the one that one gets by hand, and without both every
    /// slice is the least one. Method: both ways; 17 units in slices of a quarter.
    #[test]
    fn the_number_by_hand_needs_a_past_and_bursts() {
        let switches = |way: DispatchRule| {
            let constants = Constants {
                batch: way.batch,
                ..Constants::default()
            };
            course(&mut merged(constants), Nanos::from_millis(1), way.past).switches
        };
        assert_eq!(switches(WAYS[3]), 36.0);
        let least = switches(WAYS[0]);
        assert!((60.0..=67.0).contains(&least), "{least}");
    }
}
