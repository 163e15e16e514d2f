//! Outside threads that wait for a moment, again and again.
//!
//! A wait of an outside thread that has a deadline leaves all work to the workers (see the module above). A
//! worker may be blocked where the job system does not see it, in the middle of a job: in a lock of the
//! program, or because it joins the very thread that polls. Then no thread would ever run what is polled for.
//! So polls are counted, as long as each ends in vain while something it needs could be run; from
//! [`VAIN_POLLS_MAX`] of them on the thread runs that itself.

use platform::Platform;

use super::Wait;
use super::find::{Look, Walk};
use crate::context::Context;

/// So many polls in a row may find that no thread runs what they need.
const VAIN_POLLS_MAX: u32 = 64;

impl<P: Platform> Context<'_, P> {
    /// Whether this thread has polled for so long that it has to run what it needs.
    pub(super) fn has_polled_enough(&self) -> bool {
        self.own(|own| own.vain_polls >= VAIN_POLLS_MAX)
    }

    /// A wait with a deadline ends, in vain or not.
    pub(super) fn note_poll(&self, wait: &Wait, walk: &mut Walk, is_vain: bool) {
        let is_neglected =
            is_vain && !self.is_called_back() && self.could_run_something(wait, walk);
        self.own(|own| {
            own.vain_polls = match is_neglected {
                true => own.vain_polls.saturating_add(1),
                false => 0,
            }
        });
    }

    fn could_run_something(&self, wait: &Wait, walk: &mut Walk) -> bool {
        self.shared.has_work()
            && (self.find_ancestor(wait.target, walk).is_some()
                || self.find_descendant(wait.target, Look::Thorough).is_some())
    }
}
