//! The article on time slices: shares of a block by percentages, and the same slice for all.

use console::Failure;
use sim::scenario::Scenario;

use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

pub(super) const SLICE: ChosenValue = ChosenValue {
    name: "equal-slice",
    about: "the slice of threads that all have the same",
    unit: ValueUnit::Of("cycles"),
    chosen: 250.0,
    others: &[50.0, 1_000.0, 20_000.0],
    why: "the article has no number; a quarter of its block",
};

/// The article's block is of 1000 cycles at 200 MHz.
const CYCLE: f64 = 5.0;
const SHARES: [(&str, u8, f64); 4] = [
    ("A", 25, 250.0),
    ("B", 10, 100.0),
    ("C", 10, 100.0),
    ("D", 55, 550.0),
];

pub(super) fn percentages(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let threads =
        SHARES.map(|(name, percent, _)| format!("name = '{name}'\npercent = {percent}\n"));
    let all = turns(&threads, effort)?;
    let mut table = Table::new(
        "Shares of a block of 1000 cycles at 200 MHz, on ideal-1",
        [
            "thread",
            "percent",
            "cycles at a time, article",
            "cycles at a time",
        ],
    );
    let mut wrong = 0.0;
    for (task, (name, percent, cycles)) in SHARES.into_iter().enumerate() {
        let full = &all[task];
        wrong += of_another_length(full, cycles);
        table.row([
            name.into(),
            u64::from(percent).into(),
            cycles.into(),
            Cell::Number(lab::mean(full)),
        ]);
    }
    findings.tables.push(table);
    findings.claims.push(
        Claim::source(
            "003-s",
            "Percentages deal a block of 1000 cycles out: 250, 100, 100, 550, and again",
            "Time Slicing, example",
        )
        .is(Expect::Exactly(0.0), wrong, "turns of another length")
        .note("switches cost nothing here; with 70 cycles each they would be 28 % of the block"),
    );
    Ok(())
}

/// Four threads of one priority that compute without end, each with the same slice.
pub(super) fn equal_slices(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let cycles = effort.value(&SLICE);
    let slice = (cycles * CYCLE) as u64;
    let threads = SHARES.map(|(name, ..)| format!("name = '{name}'\nslice = '{slice} ns'\n"));
    let all = turns(&threads, effort)?;
    let columns = ["thread", "cycles at a time", "turns"];
    let title = format!("Equal slices of {cycles} cycles at 200 MHz among equals, on ideal-1");
    let mut table = Table::new(title, columns);
    for ((name, ..), turns) in SHARES.iter().zip(&all) {
        table.row([
            (*name).into(),
            lab::mean(turns).into(),
            (turns.len() as u64).into(),
        ]);
    }
    findings.tables.push(table);
    findings.claims.push(
        Claim::source(
            "003-sa",
            "Threads of one priority take turns of as many cycles each, and then the first again",
            "Time Slicing, first paragraph",
        )
        .is(
            Expect::Exactly(0.0),
            all.iter()
                .map(|turns| of_another_length(turns, cycles))
                .sum(),
            "turns of another length",
        )
        .note("switches cost nothing here"),
    );
    Ok(())
}

/// How many of these turns have another length than this, and one if there are none.
fn of_another_length(turns: &[f64], cycles: f64) -> f64 {
    let others = turns.iter().filter(|&&turn| turn != cycles).count();
    (others + usize::from(turns.is_empty())) as f64
}

/// The turns of threads of one priority that compute without end, in cycles, without the last one of each,
/// which the end may have cut off.
fn turns(threads: &[String; 4], effort: &Effort) -> Result<Vec<Vec<f64>>, Failure> {
    let threads = threads.iter().map(|thread| {
        format!(
            "[[thread]]\n{thread}priority = 4\nrepeat = 'forever'\nphases = [{{ work = '1 ms' }}]\n"
        )
    });
    let text = format!(
        "about = 'shares of a block'\nmachine = 'ideal-1'\npolicy = 'rtos'\nuntil = '1 ms'\n{}",
        threads.collect::<String>()
    );
    let scenario = Scenario::parse("shares", &text);
    let scenario = scenario.map_err(|error| Failure::failed(error.to_string()))?;
    let ran = lab::run(&scenario, "rtos", effort.seed)?;
    let all = lab::runs(&ran.report);
    let of = |task: u32| {
        let turns = all.iter().filter(|run| run.task == task);
        let mut turns: Vec<f64> = turns.map(|run| run.length().0 as f64 / CYCLE).collect();
        turns.pop();
        turns
    };
    Ok((0..4).map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the counts of turns can be other than none. Method: turns that are as long, one that is not,
    /// and no turns.
    #[test]
    fn a_turn_of_another_length_is_seen() {
        assert_eq!(of_another_length(&[5.0, 5.0], 5.0), 0.0);
        assert_eq!(of_another_length(&[5.0, 6.0], 5.0), 1.0);
        assert_eq!(of_another_length(&[], 5.0), 1.0);
    }
}
