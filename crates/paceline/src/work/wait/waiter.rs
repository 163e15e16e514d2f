//! One wait in progress. Its steps are in the files beside this one: `help`, `find`, `mark`, `watch`, `poll`,
//! `deadlock`, `long`.

use event::Nanos;
use platform::Platform;

use super::walk::Walk;
use crate::error::WaitError;
use crate::store::{CallSite, Slot, Ticket};
use crate::work::context::Context;

/// A wait for the job `target` on the thread of a context.
pub(super) struct Waiter<'c, 'a, P: Platform> {
    pub(super) cx: &'c Context<'a, P>,
    pub(super) target: Ticket,
    pub(super) slot: &'c Slot<P>,
    /// [`Nanos::MAX`] for none.
    pub(super) deadline: Nanos,
    /// Where the program called it, if that is known.
    pub(super) site: Option<CallSite>,
    /// The search for ancestors that can be run.
    pub(super) walk: Walk,
    /// If the wait underneath has marked all that it needs: from which number on its marks count. Otherwise
    /// 0.
    outer_marks: u64,
}

impl<'c, 'a, P: Platform> Waiter<'c, 'a, P> {
    pub(super) fn begin(
        cx: &'c Context<'a, P>,
        target: Ticket,
        deadline: Nanos,
        site: Option<CallSite>,
    ) -> Self {
        let (outer_marks, mut stack) = cx.own(|own| {
            let outer_marks = std::mem::take(&mut own.wait.all_marked_from);
            own.wait.marks_from = own.wait.serial + 1;
            own.wait.awaited.push(target);
            (outer_marks, std::mem::take(&mut own.wait.search))
        });
        stack.clear();
        Waiter {
            cx,
            target,
            slot: cx.shared.slot(target),
            deadline,
            site,
            walk: Walk::with(stack),
            outer_marks,
        }
    }

    /// Runs the jobs it may run, then watches. `Ok(false)`: the deadline has come.
    pub(super) fn wait(&mut self) -> Result<bool, WaitError> {
        let result = if self.help_until_stuck() {
            Ok(true)
        } else if self.is_late() {
            Ok(false)
        } else {
            self.watch()
        };
        if self.is_timed() {
            self.note_poll(matches!(result, Ok(false)));
        }
        result
    }

    #[inline]
    pub(super) fn end(self) {
        // The memory is kept for the next wait. (A wait inside a job that this one runs has memory of its
        // own.)
        self.cx.own(|own| {
            own.wait.search = self.walk.stack;
            own.wait.awaited.pop();
            // The wait underneath has to mark the jobs it needs again.
            own.wait.marks_from = own.wait.serial + 1;
            own.wait.all_marked_from = 0;
        });
        if self.outer_marks != 0 {
            keep_marks(self.cx, self.outer_marks, self.slot.is_over(self.target));
        }
    }

    /// Whether the wait ends by itself.
    pub(super) fn is_timed(&self) -> bool {
        self.deadline != Nanos::MAX
    }

    pub(super) fn is_late(&self) -> bool {
        self.is_timed() && self.cx.shared.platform.now() >= self.deadline
    }

    /// Whether the job is over.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.slot.is_over(self.target)
    }
}

/// If the job that the inner wait was for is over, so is all that it has marked, and the marks of the wait
/// underneath are as they were.
#[cold]
#[inline(never)]
fn keep_marks<P: Platform>(cx: &Context<'_, P>, outer_marks: u64, is_over: bool) {
    if is_over {
        cx.own(|own| {
            own.wait.marks_from = outer_marks;
            own.wait.all_marked_from = outer_marks;
        });
    }
}
