//! The kernel's state of a CPU.

use event::{Nanos, Task};

use super::task::Busy;
use crate::quantity::FULL;

/// A CPU.
#[derive(Debug)]
pub(crate) struct Core {
    /// The running task.
    pub(crate) task: Option<Task>,
    /// Whether it takes tasks.
    pub(crate) active: bool,
    /// The time from which `busy` counts, and the work itself. It lies in the future while the kernel is at
    /// work here.
    began: Nanos,
    busy: Busy,
    /// The speed of work on this CPU at this moment.
    speed: u32,
    /// The time since which the CPU has had no task.
    pub(crate) idle_since: Nanos,
    /// The earliest event but for the end of the task's step, as [`Core::look`] found it.
    pub(super) besides: Nanos,
    /// The times of the CPU's events: the task's program continues; a tick; the class's timer; the next pick
    /// of a task.
    pub(crate) done_at: Nanos,
    pub(crate) tick_at: Nanos,
    pub(crate) timer_at: Nanos,
    pub(crate) resched_at: Nanos,
}

impl Core {
    pub(crate) fn new(speed: u32) -> Core {
        Core {
            task: None,
            active: true,
            began: Nanos::ZERO,
            busy: Busy::NOTHING,
            speed,
            idle_since: Nanos::ZERO,
            besides: Nanos::MAX,
            done_at: Nanos::MAX,
            tick_at: Nanos::MAX,
            timer_at: Nanos::MAX,
            resched_at: Nanos::MAX,
        }
    }

    /// Finds the earliest event.
    #[inline]
    pub(super) fn look(&mut self) -> Nanos {
        self.besides = self.tick_at.min(self.timer_at).min(self.resched_at);
        self.besides.min(self.done_at)
    }

    /// Whether [`Core::look`] was called since the last change.
    pub(super) fn is_looked_at(&self) -> bool {
        self.besides == self.tick_at.min(self.timer_at).min(self.resched_at)
    }

    /// Whether no task runs here and none is about to.
    pub(crate) fn is_idle(&self) -> bool {
        self.task.is_none() && self.resched_at == Nanos::MAX
    }

    /// The task is busy with this, from `began` on.
    pub(crate) fn begin(&mut self, began: Nanos, busy: Busy) {
        self.began = began;
        self.busy = busy;
        self.done_at = self.end();
    }

    /// As [`begin`](Core::begin), with a known end.
    #[inline]
    pub(super) fn begin_until(&mut self, began: Nanos, busy: Busy, end: Nanos) {
        self.began = began;
        self.busy = busy;
        self.done_at = end;
        debug_assert!(end == self.end(), "a step of {busy:?} ends at {end}");
    }

    /// The task waits by spinning: until it is told to stop, or until this time.
    pub(crate) fn spin(&mut self, now: Nanos, until: Nanos) {
        self.began = now;
        self.busy = Busy::NOTHING;
        self.done_at = until;
    }

    /// The part of the task's work that is left.
    pub(crate) fn left(&self, now: Nanos) -> Busy {
        if self.done_at == Nanos::MAX {
            return Busy::NOTHING;
        }
        let Busy { fixed, work } = self.busy;
        if now <= self.began {
            return Busy {
                fixed: fixed + (self.began - now),
                work,
            };
        }
        let passed = now - self.began;
        let worked = (passed - fixed).0 as u128 * u128::from(self.speed) / u128::from(FULL);
        Busy {
            fixed: fixed - passed,
            work: work - Nanos(worked as u64),
        }
    }

    /// The kernel takes this much time from the task.
    pub(crate) fn delay(&mut self, by: Nanos) {
        if self.done_at != Nanos::MAX {
            self.began += by;
            self.done_at += by;
        }
    }

    /// From now on work is done at another speed.
    pub(crate) fn set_speed(&mut self, speed: u32, now: Nanos) {
        if self.busy.work > Nanos::ZERO && self.done_at != Nanos::MAX {
            let left = self.left(now);
            self.speed = speed;
            self.begin(now, left);
        }
        self.speed = speed;
    }

    fn end(&self) -> Nanos {
        self.began + self.busy.fixed + self.takes(self.busy.work)
    }

    /// How long this work takes here at this moment.
    #[inline]
    pub(crate) fn takes(&self, work: Nanos) -> Nanos {
        if self.speed == FULL {
            return work;
        }
        let time = (u128::from(work.0) * u128::from(FULL)).div_ceil(u128::from(self.speed.max(1)));
        Nanos(time.min(u128::from(u64::MAX)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the work that is left and the work that is done add up to the whole, at any speed and across
    /// changes of it. Method: 100 of overhead, 50 fixed and 1000 of work at half speed, looked at from each
    /// phase.
    #[test]
    fn what_is_left_is_what_has_not_been_done() {
        let mut core = Core::new(FULL / 2);
        let busy = Busy {
            fixed: Nanos(50),
            work: Nanos(1000),
        };
        core.begin(Nanos(100), busy);
        assert_eq!(core.done_at, Nanos(100 + 50 + 2000));
        assert_eq!(core.left(Nanos(40)).fixed, Nanos(110));
        assert_eq!(core.left(Nanos(120)).fixed, Nanos(30));
        assert_eq!(core.left(Nanos(150 + 600)).work, Nanos(700));
        core.set_speed(FULL, Nanos(750));
        assert_eq!(core.done_at, Nanos(750 + 700));
        core.delay(Nanos(10));
        assert_eq!(core.done_at, Nanos(1460));
        assert_eq!(core.left(Nanos(1460)), Busy::NOTHING);
    }
}
