//! How long threads without work spin, and how.

use event::Nanos;
use platform::Platform;

use super::shared::Shared;
use crate::policy::Tuning;

impl<P: Platform> Shared<P> {
    /// How long a thread without work spins at this moment.
    pub(crate) fn spin_time(&self) -> Nanos {
        let threads = self.spin.threads_with(self.workers.active());
        self.spin
            .spin_time(self.wake_cost.get(), threads, self.adapt.width())
    }

    /// How many threads could work on the same thing at a time.
    pub(crate) fn threads_at_once(&self) -> u32 {
        let threads = self.spin.threads_with(self.workers.active());
        threads.min(self.adapt.width().threads).max(1) as u32
    }

    /// Spins until the epoch is no longer `seen` or `deadline` has come, after a look that found nothing.
    ///
    /// Where callers sleep it makes way first: one of them may be waiting for this CPU. The thread that has
    /// work is looked at less often then, and so keeps its cache lines.
    pub(crate) fn spin(&self, seen: u16, deadline: Nanos) {
        match self.spin.make_way {
            Some(make_way) if cfg!(feature = "pools") => loop {
                make_way();
                let until = self.platform.now() + Tuning::LOOK;
                self.idle.spin(seen, deadline.min(until));
                if self.idle.epoch() != seen || deadline <= until {
                    return;
                }
            },
            _ => self.idle.spin(seen, deadline),
        }
    }
}
