//! How long threads without work spin, and how.

use event::Nanos;
use platform::Platform;

use super::context::Context;
use super::shared::Shared;
use crate::policy::Tuning;

impl<P: Platform> Shared<P> {
    /// How long a thread without work spins at this moment.
    pub(crate) fn spin_time(&self) -> Nanos {
        self.spin.spin_time(
            self.wake_cost.get(),
            self.threads_that_run_jobs(),
            self.adapt.width(),
        )
    }

    /// How many threads could work on the same thing at a time.
    pub(crate) fn threads_at_once(&self) -> u32 {
        let threads = self.threads_that_run_jobs();
        threads.min(self.adapt.width().threads).max(1) as u32
    }

    /// The workers, and the thread of the program that waits, unless callers sleep.
    fn threads_that_run_jobs(&self) -> usize {
        self.workers.active() + usize::from(!self.hooks.has_make_way_hook())
    }
}

impl<P: Platform> Context<'_, P> {
    /// Spins until the epoch is no longer `seen` or `deadline` has come, after a look that found nothing.
    ///
    /// Where callers sleep it makes way first: one of them may be waiting for this CPU. The thread that has
    /// work is looked at less often then, and so keeps its cache lines.
    pub(crate) fn spin(&self, seen: u16, deadline: Nanos) {
        let shared = self.shared;
        if !shared.hooks.has_make_way_hook() {
            return shared.idle.spin(seen, deadline);
        }
        loop {
            self.call_hook(|| shared.hooks.make_way().unwrap_or(Ok(())));
            let until = shared.platform.now() + Tuning::LOOK;
            shared.idle.spin(seen, deadline.min(until));
            if shared.idle.epoch() != seen || deadline <= until {
                return;
            }
        }
    }
}
