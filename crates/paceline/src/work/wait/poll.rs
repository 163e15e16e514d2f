//! Outside threads that wait for a moment, again and again.
//!
//! A wait of an outside thread that has a deadline leaves all work to the workers (see the module above). A
//! worker may be blocked where the job system does not see it, in the middle of a job: in a lock of the
//! program, or because it joins the very thread that polls. Then no thread would ever run what the polling
//! thread waits for. So polls are counted, as long as each ends in vain while a job that it needs could be
//! run. After [`VAIN_POLLS_MAX`] of them the thread runs such jobs itself.

use platform::Platform;

use super::waiter::Waiter;

/// How many polls in a row may find that no thread runs the jobs they need.
const VAIN_POLLS_MAX: u32 = 64;

impl<P: Platform> Waiter<'_, '_, P> {
    /// Whether this thread has polled for so long that it has to run the jobs it needs.
    pub(super) fn has_polled_enough(&self) -> bool {
        self.cx.own(|own| own.wait.vain_polls >= VAIN_POLLS_MAX)
    }

    /// Counts a wait with a deadline that has ended, in vain or not.
    pub(super) fn note_poll(&mut self, is_vain: bool) {
        let is_neglected = is_vain && !self.cx.is_called_back() && self.could_run_something();
        self.cx.own(|own| {
            own.wait.vain_polls = if is_neglected {
                own.wait.vain_polls.saturating_add(1)
            } else {
                0
            }
        });
    }

    fn could_run_something(&mut self) -> bool {
        self.cx.shared.has_work() && self.find_one().is_some()
    }
}
