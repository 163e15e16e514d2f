//! The worked example: four tasks on one CPU, letter by letter.

use console::Failure;
use event::Nanos;
use sim::scenario::{Phase, Ran, Scenario};

use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort, Run};
use crate::commands::experiment::plot::{PieceFill, Plot, PlotLane, PlotPiece, PlotShape};
use crate::commands::experiment::virtual_slice::literal;

/// The schedules that the article prints.
const UNIFORM: &str = "A B B C C D D A B C C D D C C D D";
const VIRTUAL: &str = "A B B C C C D A B C C C D D D D D";

const EXAMPLE: [&str; 5] = [
    "uniform-slice",
    "virtual-slice",
    "rustland-pre333",
    "rustland-333",
    "rustland-333-capped",
];

/// The schedule of one policy in the worked example.
struct Schedule {
    policy: &'static str,
    runs: Vec<Run>,
    /// As the article prints it, if every run is of whole units; else a letter for each run.
    printed: String,
    makespan: Nanos,
}

/// The article's unit of time.
pub(super) const UNIT: ChosenValue = ChosenValue {
    name: "unit",
    about: "the unit of the worked example, which has none",
    unit: ValueUnit::Millis,
    chosen: 1.0,
    others: &[0.05, 0.25, 0.5, 2.0, 5.0, 20.0],
    why: "the code's constants (slices of 0.25 to 5 ms) are of that size",
};
/// The unit in the scenario.
const IN_SCENARIO: Nanos = Nanos::from_millis(1);

/// The policy with slices of whole units.
fn policy_of(name: &str, unit: Nanos) -> String {
    let micros = unit.0 / 1_000;
    match name {
        "uniform-slice" => format!("{name}-{}", 2 * micros),
        "virtual-slice" => format!("{name}-{micros}"),
        _ => name.to_owned(),
    }
}

/// The example, with a unit of this length.
fn example(unit: Nanos) -> Scenario {
    let scaled = |time: Nanos| Nanos(time.0 * unit.0 / IN_SCENARIO.0);
    let mut scenario = lab::scenario("virtual-slice-example");
    for thread in &mut scenario.threads {
        thread.slice = thread.slice.map(scaled);
        for phase in &mut thread.phases {
            if let Phase::Work(span) = phase {
                (span.least, span.most) = (scaled(span.least), scaled(span.most));
            }
        }
    }
    scenario
}

const NAMES: [&str; 4] = ["A", "B", "C", "D"];

impl Schedule {
    fn of(policy: &'static str, unit: Nanos, ran: &Ran) -> Schedule {
        let mut runs: Vec<Run> = Vec::new();
        for run in lab::runs(&ran.report) {
            match runs.last_mut() {
                // The same task goes on: no boundary.
                Some(last) if last.task == run.task => last.end = run.end,
                _ => runs.push(run),
            }
        }
        Schedule {
            policy,
            printed: printed(&runs, unit),
            runs,
            makespan: ran.report.now,
        }
    }

    /// Boundaries between runs, as the article counts.
    fn switches(&self) -> f64 {
        self.runs.len() as f64 - 1.0
    }

    fn longest(&self) -> Nanos {
        self.runs.iter().map(Run::length).max().unwrap_or_default()
    }
}

fn printed(runs: &[Run], unit: Nanos) -> String {
    let is_whole = runs.iter().all(|run| run.length().0 % unit.0 == 0);
    let letters = runs.iter().flat_map(|run| {
        let units = if is_whole { run.length().0 / unit.0 } else { 1 };
        std::iter::repeat_n(NAMES[run.task as usize], units as usize)
    });
    let letters: Vec<&str> = letters.collect();
    letters.join(" ")
}

/// As much of it as fits a table.
fn shortened(printed: &str) -> String {
    const LETTERS: usize = 20;
    let letters: Vec<&str> = printed.split(' ').collect();
    if letters.len() > LETTERS {
        format!("{} …", letters[..LETTERS].join(" "))
    } else {
        printed.to_owned()
    }
}

/// How many letters stand where the other text has them.
fn equal_letters(a: &str, b: &str) -> f64 {
    let equal = a.split(' ').zip(b.split(' ')).filter(|(a, b)| a == b);
    equal.count() as f64
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let unit = effort.time(&UNIT);
    let scenario = example(unit);
    let schedules = lab::each("schedules", &EXAMPLE, |policy| {
        let ran = lab::run(&scenario, &policy_of(policy, unit), effort.seed)?;
        Ok(Schedule::of(policy, unit, &ran))
    })?;
    let columns = [
        "policy",
        "schedule",
        "switches",
        "longest run",
        "all done at",
    ];
    let mut table = Table::new("The worked example on ideal-1", columns);
    for schedule in &schedules {
        table.row([
            schedule.policy.into(),
            shortened(&schedule.printed).into(),
            schedule.switches().into(),
            schedule.longest().into(),
            schedule.makespan.into(),
        ]);
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "schedules",
        title: "Tasks of 1, 3, 6 and 6 units: which runs when".into(),
        picture: PlotShape::Lanes {
            unit: "ms",
            lanes: schedules.iter().map(lane).collect(),
            marks: Vec::new(),
        },
    });
    let [uniform, ideal, before, merged, capped] = schedules.as_slice() else {
        return Err(Failure::failed("five policies were run"));
    };
    findings
        .claims
        .extend(claims([uniform, ideal, before, merged, capped]));
    literal::run(unit, (merged.switches(), before.switches()), findings);
    Ok(())
}

fn lane(schedule: &Schedule) -> PlotLane {
    let millis = |time: Nanos| time.0 as f64 / 1e6;
    let piece = |run: &Run| PlotPiece {
        begin: millis(run.begin),
        end: millis(run.end),
        name: NAMES[run.task as usize].to_owned(),
        fill: PieceFill::Kind(run.task as usize),
    };
    PlotLane {
        name: schedule.policy.to_owned(),
        pieces: schedule.runs.iter().map(piece).collect(),
        result: format!("{} switches", schedule.switches()),
    }
}

fn claims([uniform, ideal, before, merged, capped]: [&Schedule; 5]) -> Vec<Claim> {
    let letters = |printed: &str| printed.split(' ').count() as f64;
    let sequence = |claim: Claim, schedule: &Schedule, source: &str| {
        let equal = equal_letters(&schedule.printed, source);
        let length = (letters(&schedule.printed) - letters(source)).abs();
        claim.is(
            Expect::Exactly(letters(source)),
            equal - length,
            "equal letters",
        )
    };
    vec![
        Claim::source("004-a", "A uniform slice of 2 units makes 9 switches", "example, first diagram")
            .is(Expect::Exactly(9.0), uniform.switches(), "switches")
            .note("boundaries between runs, as the article counts; without the first run's begin"),
        sequence(
            Claim::source("004-b", "… and this order: A BB CC DD A B CC DD CC DD", "example, first diagram"),
            uniform,
            UNIFORM,
        ),
        Claim::source("004-c", "The virtual slice makes 7 switches", "example, second diagram")
            .is(Expect::Exactly(7.0), ideal.switches(), "switches")
            .note("by the idealised rule: bursts, and slices of what tasks promise"),
        sequence(
            Claim::source("004-d", "… and this order: A BB CCC D A B CCC DDDDD", "example, second diagram"),
            ideal,
            VIRTUAL,
        ),
        Claim::source(
            "004-e",
            "With the change there are fewer switches in this example than before it",
            "example, both diagrams; the code as merged",
        )
        .is(Expect::LessThan(before.switches()), merged.switches(), "switches")
        .or_else("the merged code takes the time that tasks have used for their promise, not the table's")
        .note("scx_rustland before and with the change, its constants at 1 ms a unit"),
        Claim::source(
            "004-f",
            "Tasks that compute much get longer slices, and their time is packed together",
            "Virtual time slice, last paragraph; the code as merged",
        )
        .is(
            Expect::MoreThan(before.longest().0 as f64 / 1e6),
            merged.longest().0 as f64 / 1e6,
            "ms, longest run of a task",
        )
        .or_else("two tasks that compute wear each other's slices down: the next is the difference of the \
                  last two")
        .note("before the change against with it"),
        Claim::ours("004-g", "The limit of a day later changes nothing here: no slice reaches it").is(
            Expect::Exactly(merged.switches()),
            capped.switches(),
            "switches",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: schedules are printed as the article prints them where runs are whole units, and by runs where
    /// they are not. Method: both.
    #[test]
    fn schedules_are_printed_as_in_the_article() {
        let run = |task, begin, end| Run {
            task,
            cpu: 0,
            begin: Nanos(begin),
            end: Nanos(end),
        };
        let whole = [run(0, 0, 1_000_000), run(1, 1_000_000, 3_000_000)];
        assert_eq!(printed(&whole, IN_SCENARIO), "A B B");
        let parts = [run(0, 0, 250_000), run(1, 250_000, 2_250_000)];
        assert_eq!(printed(&parts, IN_SCENARIO), "A B");
        assert_eq!(equal_letters("A B C", "A C C D"), 2.0);
    }
}
