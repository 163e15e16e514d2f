//! The outcome of a run, as data, and questions about it.

use event::{Cpu, Nanos, Task};

use super::script::Script;

/// A task had a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stint {
    pub(crate) cpu: Cpu,
    pub(crate) task: Task,
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
}

/// The totals of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) cpu: Nanos,
    /// The longest time that it was ready without running.
    pub(crate) longest_wait: Nanos,
    /// How long each of its yields kept it away: zero if it went on at once.
    pub(crate) yields: Vec<Nanos>,
}

/// The stints of one CPU as letters, A for task 0, one for each unit of time; shorter stints are not seen.
pub(crate) fn letters(stints: &[Stint], unit: Nanos) -> String {
    let letter = |task: Task| char::from(b'A' + task.0 as u8);
    let units = |stint: &Stint| ((stint.to - stint.from).0 / unit.0) as usize;
    let words = stints
        .iter()
        .map(|stint| letter(stint.task).to_string().repeat(units(stint)));
    words.collect()
}

/// How often a CPU went over from one task to another.
pub(crate) fn switches(stints: &[Stint]) -> usize {
    let between = stints.windows(2).filter(|two| two[0].task != two[1].task);
    between.count()
}

/// How long each of the first `tasks` tasks had a CPU.
pub(crate) fn shares(stints: &[Stint], tasks: usize) -> Vec<Nanos> {
    let mut shares = vec![Nanos::ZERO; tasks];
    for stint in stints {
        shares[stint.task.index()] += stint.to - stint.from;
    }
    shares
}

/// Panics unless each task had exactly the CPU time that it needs to its end, and ran where it may.
pub(crate) fn everybody_got_its_time(stints: &[Stint], scripts: &[Script], label: &str) {
    let needs: Vec<Nanos> = scripts.iter().map(Script::need).collect();
    assert_eq!(shares(stints, scripts.len()), needs, "{label}");
    for stint in stints {
        let mask = &scripts[stint.task.index()].mask;
        let may = mask.is_empty() || mask.has(stint.cpu);
        assert!(may, "{label}: {stint:?}");
    }
}
