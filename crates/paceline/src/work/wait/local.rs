//! The data of a thread's waits.

use crate::policy::SpinHabit;
use crate::store::Ticket;

/// The data of a thread's waits.
pub(crate) struct WaitLocal {
    /// The jobs that this thread waits for, the innermost wait last.
    pub(crate) awaited: Vec<Ticket>,
    /// The innermost wait has nothing to run, and this thread is counted as watching.
    pub(super) is_watching: bool,
    /// It has run a body since it last had nothing to run.
    pub(super) has_helped: bool,
    /// How many waits with a deadline, one after the other, ran nothing although no worker ran it either; see
    /// `poll`.
    pub(super) vain_polls: u32,
    /// Reused memory for the search for runnable ancestors.
    pub(super) search: Vec<Ticket>,
    /// The number of the current walk for runnable ancestors. The walk has visited a job that is marked with
    /// this number.
    pub(super) serial: u64,
    /// Marks of the innermost wait have this number or a greater one.
    pub(super) marks_from: u64,
    /// The innermost wait that may run the jobs of a group.
    pub(super) group: GroupWait,
    /// The same if the innermost wait has marked all that it needs. Otherwise 0.
    pub(super) all_marked_from: u64,
    /// How useful spinning inside waits has been.
    pub(super) habit: SpinHabit,
}

impl WaitLocal {
    /// The serial of a mark that says which thread to wake, and that no walk has made: walks have greater
    /// ones.
    pub(super) const NO_WALK: u64 = 1;

    pub(crate) fn new() -> WaitLocal {
        WaitLocal {
            awaited: Vec::new(),
            is_watching: false,
            has_helped: false,
            vain_polls: 0,
            search: Vec::new(),
            serial: WaitLocal::NO_WALK,
            marks_from: 0,
            group: GroupWait::NONE,
            all_marked_from: 0,
            habit: SpinHabit::default(),
        }
    }

    /// The group whose jobs the innermost wait may run; [`Ticket::NONE`] if there is none.
    #[inline]
    pub(super) fn innermost_group(&self) -> Ticket {
        if self.group.depth == self.awaited.len() {
            self.group.group
        } else {
            Ticket::NONE
        }
    }
}

/// A wait that may run the jobs of a group.
#[derive(Clone, Copy)]
pub(super) struct GroupWait {
    pub(super) group: Ticket,
    /// How many waits of the thread are in progress, this one included.
    pub(super) depth: usize,
}

impl GroupWait {
    /// There is none.
    pub(super) const NONE: GroupWait = GroupWait {
        group: Ticket::NONE,
        depth: 0,
    };
}
