//! Waits that may run the jobs of a group.
//!
//! A group is an event that is never awaited. The jobs of the group name it as their parent, as the jobs of a
//! scope name that. So a wait that counts the group among what it needs finds them by the search that finds
//! the jobs of scopes. It says so in a word of its thread, and only while it is the innermost wait there: the
//! waits of jobs that run on top of it are others'.
//!
//! The group's mark says which thread to wake for a new job, as that of a scope does. Of several waiters each
//! overwrites the mark of the one before, and from then on all threads that wait are woken.

use event::Nanos;
use platform::Platform;

use super::local::{GroupWait, WaitLocal};
use super::waiter::Waiter;
use crate::error::WaitError;
use crate::store::{CallSite, Ticket};
use crate::work::context::Context;

impl<P: Platform> Waiter<'_, '_, P> {
    /// Whether the wait may run the jobs of a group.
    #[inline]
    pub(super) fn is_in_group(&self) -> bool {
        !self.cx.own(|own| own.wait.innermost_group()).is_none()
    }

    /// Whether this is the group whose jobs the wait may run.
    #[inline]
    pub(super) fn is_group(&self, parent: Ticket) -> bool {
        self.cx.own(|own| own.wait.innermost_group()) == parent
    }
}

impl<P: Platform> Context<'_, P> {
    /// Whether the innermost wait may run this job because of its group.
    pub(crate) fn waits_in_group_of(&self, job: Ticket) -> bool {
        const NESTING_MAX: usize = 256;
        let group = self.own(|own| own.wait.innermost_group());
        if group.is_none() {
            return false;
        }
        let parents = std::iter::successors(Some(job), |&job| self.graph().parent_of(job));
        parents
            .skip(1)
            .take(NESTING_MAX)
            .any(|parent| parent == group)
    }

    /// As [`wait_at`](Context::wait_at). Meanwhile this thread may run the jobs of the group, too.
    pub(crate) fn wait_in_group(
        &self,
        site: CallSite,
        group: Ticket,
        (target, deadline): (Ticket, Nanos),
    ) -> Result<bool, WaitError> {
        /// Takes the group off, also during an unwind.
        struct Within<'c, 'a, P: Platform>(&'c Context<'a, P>, GroupWait);
        impl<P: Platform> Drop for Within<'_, '_, P> {
            fn drop(&mut self) {
                self.0.own(|own| own.wait.group = self.1);
            }
        }
        let outer = self.own(|own| {
            let depth = own.wait.awaited.len() + 1;
            std::mem::replace(&mut own.wait.group, GroupWait { group, depth })
        });
        let _within = Within(self, outer);
        // Before the fence of this thread's last look, as all marks are (see the module above). It is of no
        // walk, so that to the waits of this thread, this one and others, the group is not marked.
        self.mark_for(self.shared.slot(group), WaitLocal::NO_WALK);
        self.wait_at(site, target, deadline)
    }
}
