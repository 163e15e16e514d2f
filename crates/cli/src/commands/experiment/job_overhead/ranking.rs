//! Which job system is the faster: on this machine, and on the simulated one that is like it.

use console::Failure;
use event::Nanos;

use super::frame_times::{CLEARLY, FrameTimes, cells_in_words};
use super::scaling::{NEW, ScalingTrial};
use super::subject::{SystemUnderTest, reading};
use crate::commands::experiment::claim::{Claim, Expect, short};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// The simulated machine with as many CPUs as it has, and its policy.
const MACHINE: &str = "vm-2";
const POLICY: &str = "eevdf-6.18";
/// A machine with another number of CPUs is not like it.
const CPUS: usize = 2;

/// Compares, if this machine is like the simulated one.
pub(super) fn compared(
    here: &FrameTimes,
    cpus: usize,
    frames: u32,
    effort: &Effort,
    findings: &mut Findings,
) -> Result<(), Failure> {
    findings.claims.push(no_slower_here(here));
    if cpus != CPUS {
        findings.notes.push(format!(
            "The order of the job systems on this machine is compared with no simulated one: it has {cpus} \
             CPUs, and {MACHINE} has {CPUS}."
        ));
        return Ok(());
    }
    let there = simulated(&here.cells(), frames, effort)?;
    findings.tables.push(table(here, &there));
    findings.notes.push(in_words(turned_of_all(here, &there)));
    Ok(())
}

/// The same cells on the simulated machine.
fn simulated(
    cells: &[(Nanos, usize)],
    frames: u32,
    effort: &Effort,
) -> Result<FrameTimes, Failure> {
    let all = cells.iter().flat_map(|&(piece, workers)| {
        SystemUnderTest::ALL.map(|system| ScalingTrial {
            piece,
            workers,
            system,
        })
    });
    let all: Vec<ScalingTrial> = all.collect();
    let times = lab::each("graphs on vm-2", &all, |trial| {
        let machine = (lab::machine(MACHINE), POLICY);
        trial.times(machine, reading(effort), frames, effort)
    })?;
    let mut there = FrameTimes::default();
    for (trial, times) in all.into_iter().zip(times) {
        there.add(trial, &times);
    }
    Ok(there)
}

/// The pairs of job systems of which one is clearly faster in one place and clearly slower in the other.
fn turned(
    here: &FrameTimes,
    there: &FrameTimes,
    cell: (Nanos, usize),
) -> Vec<[SystemUnderTest; 2]> {
    let is_turned = |&[a, b]: &[SystemUnderTest; 2]| {
        let leads = [here, there].map(|times| times.lead(cell, a, b));
        let [Some(here), Some(there)] = leads else {
            return false;
        };
        let are_clear = here.errors.abs() > CLEARLY && there.errors.abs() > CLEARLY;
        are_clear && (here.errors > 0.0) != (there.errors > 0.0)
    };
    pairs().filter(is_turned).collect()
}

fn pairs() -> impl Iterator<Item = [SystemUnderTest; 2]> {
    let all = SystemUnderTest::ALL;
    (0..all.len())
        .flat_map(move |first| (first + 1..all.len()).map(move |other| [all[first], all[other]]))
}

/// The job systems of a cell in words, the fastest first; `=` where nothing tells two apart.
fn order(times: &FrameTimes, cell: (Nanos, usize)) -> String {
    let ranked = times.ranked(cell);
    let mut words = ranked[0].name().to_owned();
    for pair in ranked.windows(2) {
        let lead = times.lead(cell, pair[0], pair[1]);
        let is_clear = lead.is_some_and(|lead| lead.errors > CLEARLY);
        words += if is_clear { ", " } else { " = " };
        words += pair[1].name();
    }
    words
}

fn table(here: &FrameTimes, there: &FrameTimes) -> Table {
    let title = format!(
        "The job systems from the fastest to the slowest, on this machine and on the simulated {MACHINE}; \
         = between two that two standard errors do not tell apart"
    );
    let columns = [
        "a piece",
        "workers",
        "on this machine",
        "simulated",
        "the other way round",
    ];
    let mut table = Table::new(title, columns);
    for cell in here.cells() {
        let turned = turned(here, there, cell);
        let turned = turned
            .iter()
            .map(|[a, b]| format!("{} and {}", a.name(), b.name()));
        let turned: Vec<String> = turned.collect();
        table.row([
            cell.0.into(),
            (cell.1 as u64).into(),
            order(here, cell).into(),
            order(there, cell).into(),
            if turned.is_empty() {
                "none".to_owned()
            } else {
                turned.join("; ")
            }
            .into(),
        ]);
    }
    table
}

/// How many pairs are turned, of how many.
fn turned_of_all(here: &FrameTimes, there: &FrameTimes) -> [usize; 2] {
    let cells = here.cells();
    let turned = cells.iter().map(|&cell| turned(here, there, cell).len());
    [turned.sum(), cells.len() * pairs().count()]
}

/// That is no claim: of so many pairs chance alone turns some, and which ones it is the table says.
fn in_words([turned, all]: [usize; 2]) -> String {
    format!(
        "On this machine {turned} of {all} pairs of job systems are the other way round than on the \
         simulated {MACHINE}, by two standard errors on both: the table of their order says which. Between \
         two that are alike chance alone does that to one of forty."
    )
}

/// Paceline against 2022.2 on this machine.
fn no_slower_here(here: &FrameTimes) -> Claim {
    let leads = here.leads(SystemUnderTest::Paceline, NEW);
    let least = leads
        .iter()
        .map(|lead| lead.errors)
        .fold(f64::MAX, f64::min);
    let slower = leads.iter().filter(|lead| lead.errors < -CLEARLY);
    let slower = cells_in_words(slower.map(|lead| (lead.piece, lead.workers)));
    let faster = leads.iter().filter(|lead| lead.errors > CLEARLY).count();
    Claim::ours(
        "001-za",
        "On this machine Paceline is nowhere slower than 2022.2, with any workers and pieces",
    )
    .is(
        Expect::AtLeast(-CLEARLY),
        least,
        "standard errors faster than 2022.2, the least of all",
    )
    .note(format!(
        "by {} standard errors slower {}; faster in {faster} of {}",
        short(CLEARLY),
        slower.as_deref().unwrap_or("nowhere"),
        leads.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::scaling::OLD;
    use super::*;

    /// Frames that take so long in microseconds, each about as long as the others.
    fn times(of: impl Fn(SystemUnderTest) -> f64) -> FrameTimes {
        let mut times = FrameTimes::default();
        for system in SystemUnderTest::ALL {
            let trial = ScalingTrial {
                piece: Nanos(500),
                workers: 1,
                system,
            };
            let frame = of(system) * 1e3;
            times.add(trial, &[frame * 0.99, frame, frame * 1.01]);
        }
        times
    }

    fn by_age(system: SystemUnderTest) -> f64 {
        let place = SystemUnderTest::ALL.iter().position(|one| *one == system);
        100.0 - place.map_or(0.0, |place| place as f64 * 10.0)
    }

    /// Goal: a pair counts if both places tell it apart, and in opposite ways. Method: the same order twice;
    /// one whose last two are swapped; one in which those two are alike, so that nothing can be said of them.
    #[test]
    fn a_pair_is_turned_if_both_places_are_clear() {
        let swapped = |system| match system {
            NEW => by_age(SystemUnderTest::Paceline),
            SystemUnderTest::Paceline => by_age(NEW),
            other => by_age(other),
        };
        let alike = |system| match system {
            NEW => by_age(SystemUnderTest::Paceline) * 1.001,
            other => by_age(other),
        };
        let here = times(by_age);
        let count = |there: &FrameTimes| turned_of_all(&here, there);
        assert_eq!(count(&times(by_age)), [0, 6]);
        assert_eq!(count(&times(swapped)), [1, 6]);
        assert_eq!(count(&times(alike)), [0, 6]);
        let cell = (Nanos(500), 1);
        let both = vec![[NEW, SystemUnderTest::Paceline]];
        assert_eq!(turned(&here, &times(swapped), cell), both);
        let words = order(&times(alike), cell);
        assert_eq!(words, "paceline = unity-2022.2, unity-2021.3, unity-2017.3");
    }

    /// Goal: the row about Paceline can hold and can fail, and noise does not decide it. Method: Paceline as
    /// the fastest, as the slowest, and a thousandth behind 2022.2.
    #[test]
    fn paceline_is_judged_by_two_standard_errors() {
        let holds = |of: &dyn Fn(SystemUnderTest) -> f64| no_slower_here(&times(of)).holds_here();
        let slowest = |system| match system {
            SystemUnderTest::Paceline => by_age(OLD) * 1.5,
            other => by_age(other),
        };
        let behind = |system| match system {
            SystemUnderTest::Paceline => by_age(NEW) * 1.001,
            other => by_age(other),
        };
        assert_eq!(holds(&by_age), Some(true));
        assert_eq!(holds(&slowest), Some(false));
        assert_eq!(holds(&behind), Some(true));
    }
}
