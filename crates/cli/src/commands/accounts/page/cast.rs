//! The threads that matter in a wait, and their colours: the same in all lanes of its picture.

use std::collections::BTreeMap;

use event::{Nanos, Task};
use trace::explain::{Wait, Who};

use crate::html::lanes::Ink;

/// As many as can be told apart.
const COLOURS: [&str; 8] = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"];
/// How many threads have a lane of their own.
const LANES_MAX: usize = 6;

/// The threads of a wait.
pub(super) struct Cast {
    /// The waiter, then the threads on the path, the longest first.
    pub(super) path: Vec<Task>,
    /// All threads with a colour, in the order of colours: these, then the threads that ran instead, the
    /// longest first.
    coloured: Vec<Task>,
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
        let mut coloured = path.clone();
        coloured.extend(longest(instead).filter(|task| !path.contains(task)));
        coloured.truncate(COLOURS.len());
        Cast { path, coloured }
    }

    /// A thread's colour, when it runs.
    pub(super) fn ink(&self, task: Task) -> Ink {
        let position = self.coloured.iter().position(|known| *known == task);
        Ink::Fill(position.map_or("other", |position| COLOURS[position]))
    }
}

/// The threads that have some time, the most first.
fn longest(of: BTreeMap<Task, Nanos>) -> impl Iterator<Item = Task> {
    let mut of: Vec<(Task, Nanos)> = of.into_iter().collect();
    of.sort_by_key(|(task, ns)| (std::cmp::Reverse(*ns), *task));
    of.into_iter().map(|(task, _)| task)
}
