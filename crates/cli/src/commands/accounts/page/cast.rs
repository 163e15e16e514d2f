//! The threads that matter in a wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use event::{Nanos, Task};
use trace::explain::{Wait, Who};

/// As many as can be told apart, and how many of them have a lane of their own.
const CAST_MAX: usize = 8;
const LANES_MAX: usize = 6;

/// The threads of a wait.
pub(super) struct Cast {
    /// The waiter, then the threads on the path, the longest first.
    pub(super) path: Vec<Task>,
    /// The threads that ran instead, the longest first.
    pub(super) instead: Vec<Task>,
}

impl Cast {
    pub(super) fn of(wait: &Wait) -> Cast {
        let (mut on_path, mut instead) = (BTreeMap::new(), BTreeMap::new());
        for segment in &wait.segments {
            if let Some(task) = segment.thread {
                *on_path.entry(task).or_insert(Nanos::ZERO) += segment.length();
            }
            for share in &segment.by {
                if let Who::Task(task) = share.who {
                    *instead.entry(task).or_insert(Nanos::ZERO) += share.ns;
                }
            }
        }
        let mut path = vec![wait.thread];
        path.extend(longest(on_path).filter(|task| *task != wait.thread));
        path.truncate(LANES_MAX);
        let instead = longest(instead).filter(|task| !path.contains(task));
        let instead = instead.take(CAST_MAX - path.len()).collect();
        Cast { path, instead }
    }
}

/// The threads that have some time, the most first.
fn longest(of: BTreeMap<Task, Nanos>) -> impl Iterator<Item = Task> {
    let mut of: Vec<(Task, Nanos)> = of.into_iter().collect();
    of.sort_by_key(|(task, ns)| (Reverse(*ns), *task));
    of.into_iter().map(|(task, _)| task)
}
