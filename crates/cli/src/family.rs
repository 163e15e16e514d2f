//! A program and all that it started, by the forks in the kernel's text.

use std::collections::BTreeSet;

/// The event that says that a task was started.
const FORK: &str = ": sched_process_fork: ";

/// Every fork so far, parent and child, by the kernel's numbers.
#[derive(Debug, Default)]
pub(crate) struct Forks(Vec<(u32, u32)>);

impl Forks {
    /// Learns from a line of the kernel's text; lines of other events say nothing.
    pub(crate) fn line(&mut self, line: &str) {
        self.0.extend(fork(line));
    }

    /// The tasks of this parent and all that they started, in turn.
    pub(crate) fn of(&self, parent: u32) -> BTreeSet<u32> {
        let mut family = BTreeSet::new();
        for &(by, child) in &self.0 {
            if by == parent || family.contains(&by) {
                family.insert(child);
            }
        }
        family
    }
}

/// Parent and child: `… sched_process_fork: comm=sh pid=7 child_comm=sh child_pid=8`. Names may hold
/// anything.
fn fork(line: &str) -> Option<(u32, u32)> {
    let (_, what) = line.split_once(FORK)?;
    let (what, child) = what.rsplit_once(" child_pid=")?;
    let (what, _) = what.rsplit_once(" child_comm=")?;
    let (_, parent) = what.rsplit_once(" pid=")?;
    Some((parent.parse().ok()?, child.trim_end().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: children and their children belong to a program, others do not. Method: lines as Linux 6.18
    /// prints them, with names that hold words of the format.
    #[test]
    fn a_family_is_all_descendants() {
        let mut forks = Forks::default();
        for (name, parent, child) in [
            ("paceline", 10, 11),
            ("bash", 20, 21),
            ("a pid=3 child_pid=4", 11, 12),
            ("cc1", 12, 13),
        ] {
            forks.line(&format!(
                "   {name}-{parent} [000] ..... 1.0: sched_process_fork: comm={name} pid={parent} \
                 child_comm={name} child_pid={child}\n"
            ));
        }
        forks.line("x-1 [000] ..... 1.0: sched_process_exit: comm=x pid=13 prio=120");
        forks.line("x-1 [000] ..... 1.0: sched_process_fork: comm=x pid=1");
        assert_eq!(forks.of(10), [11, 12, 13].into());
        assert_eq!(forks.of(12), [13].into());
        assert_eq!(forks.of(9), [].into());
    }
}
