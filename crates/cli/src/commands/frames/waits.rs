//! The waits of the main thread, timed; the longest are kept.

use event::Nanos;
use platform::{Os, Platform};
use serde::Serialize;

/// How many are kept.
const KEPT: usize = 10;

/// One wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TimedWait {
    thread: &'static str,
    /// The name of the awaited job.
    pub(super) name: &'static str,
    /// In which frame, counted from 0.
    pub(super) frame: u64,
    /// Since the first frame began.
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    /// Null: only a recorded run tells.
    pub(super) causes: Option<()>,
}

/// All waits of a run.
pub(super) struct TimedWaits {
    origin: Nanos,
    frame: u64,
    worst: Vec<TimedWait>,
}

impl TimedWaits {
    /// `origin`: when the first frame begins.
    pub(super) fn new(origin: Nanos) -> TimedWaits {
        TimedWaits {
            origin,
            frame: 0,
            worst: Vec::with_capacity(KEPT + 1),
        }
    }

    /// When the first frame began.
    pub(super) fn origin(&self) -> Nanos {
        self.origin
    }

    /// The waits that follow are this frame's.
    pub(super) fn begin_frame(&mut self, frame: u64) {
        self.frame = frame;
    }

    /// Times a wait.
    pub(super) fn time<R>(&mut self, name: &'static str, wait: impl FnOnce() -> R) -> R {
        let begin = Os.now();
        let result = wait();
        self.add(name, begin, Os.now());
        result
    }

    fn add(&mut self, name: &'static str, begin: Nanos, end: Nanos) {
        let duration_ns = (end - begin).0;
        let place = self
            .worst
            .partition_point(|kept| kept.duration_ns >= duration_ns);
        if place < KEPT {
            let wait = TimedWait {
                thread: "main",
                name,
                frame: self.frame,
                start_ns: (begin - self.origin).0,
                duration_ns,
                causes: None,
            };
            self.worst.insert(place, wait);
            self.worst.truncate(KEPT);
        }
    }

    /// The longest waits, the longest first.
    pub(super) fn worst(self) -> Vec<TimedWait> {
        self.worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the ten longest are kept, the longest first. Method: 30 waits in a mixed order.
    #[test]
    fn the_longest_waits_are_kept() {
        let mut waits = TimedWaits::new(Nanos(1_000));
        for n in 0..30u64 {
            waits.begin_frame(n);
            let begin = Nanos(1_000 + 100 * n);
            waits.add("x", begin, begin + Nanos(n * 7 % 30));
        }
        let worst = waits.worst();
        let lengths: Vec<u64> = worst.iter().map(|wait| wait.duration_ns).collect();
        assert_eq!(lengths, [29, 28, 27, 26, 25, 24, 23, 22, 21, 20]);
        assert_eq!(worst[0].start_ns, 100 * worst[0].frame);
    }
}
