//! A kernel on paper: one CPU on which nothing but work takes time, and decisions cost nothing. It only
//! serves to follow the decisions of a scheduler in user space.
//!
//! The other parts of [`Ext`](super::Ext) are left out: no idle CPU is bypassed to, slices end exactly, and a
//! message is there as soon as a slice is over.

use event::{Nanos, Task};

use super::Ops;
use super::desk::{Desk, message};

/// A task on paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperTask {
    /// The CPU time of its last turn; zero if it never had one.
    pub used: Nanos,
    /// The CPU time of each of its activations.
    pub needs: Nanos,
    /// How often it is active; the next time as soon as it is done.
    pub times: u32,
}

/// Lets the scheduler decide until all tasks are done; gives the tasks and how long each ran, slices of one
/// task that follow each other taken as one.
///
/// # Panics
/// If the scheduler dispatches nothing although tasks wait.
///
/// ```
/// use event::{Nanos, Task};
/// use paceline_policy::ops::{PaperTask, rustland, run_on_paper};
///
/// let task = |millis| PaperTask { used: Nanos::ZERO, needs: Nanos::from_millis(millis), times: 1 };
/// let mut policy = rustland::pre333(rustland::Constants::default());
/// // Two that wait have the base slice of 5 ms each.
/// let runs = run_on_paper(&mut policy, &[task(6), task(2)]);
/// let millis: Vec<_> = runs.iter().map(|(Task(task), time)| (*task, time.0 / 1_000_000)).collect();
/// assert_eq!(millis, [(0, 5), (1, 2), (0, 1)]);
/// ```
pub fn run_on_paper(ops: &mut dyn Ops, tasks: &[PaperTask]) -> Vec<(Task, Nanos)> {
    // One CPU, on which the scheduler's process is at that moment.
    let mut desk = Desk::new(1, 1);
    let mut left: Vec<(Nanos, u32)> = tasks.iter().map(|it| (it.needs, it.times)).collect();
    for (number, task) in (0..).zip(tasks) {
        desk.messages.push_back(message(Task(number), task.used));
    }
    let mut runs: Vec<(Task, Nanos)> = Vec::new();
    let mut held = 0;
    while held > 0 || !desk.messages.is_empty() {
        held = ops.round(&mut desk);
        let answers = std::mem::take(&mut desk.answers);
        assert!(!answers.is_empty(), "{} leaves tasks waiting", ops.name());
        for answer in answers {
            let (need, times) = &mut left[answer.task.index()];
            let time = answer.slice.min(*need);
            desk.now += time;
            *need = *need - time;
            match runs.last_mut() {
                Some((last, ran)) if *last == answer.task => *ran += time,
                _ => runs.push((answer.task, time)),
            }
            if *need == Nanos::ZERO && *times > 1 {
                (*need, *times) = (tasks[answer.task.index()].needs, *times - 1);
            }
            if *need > Nanos::ZERO {
                desk.messages.push_back(message(answer.task, time));
            }
        }
    }
    runs
}
