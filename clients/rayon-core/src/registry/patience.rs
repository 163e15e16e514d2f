//! How long a thread that has handed over work looks on before it sleeps.
//!
//! To sleep and to be woken takes some microseconds, on a virtual machine ten to thirty: as long as many a
//! short loop. So the thread spins first, for about as long as sleeping would take in all (Karlin, Li,
//! Manasse and Owicki, "Empirical Studies of Competitive Spinning for a Shared-Memory Multiprocessor", 1991).
//! Each time in vain halves the next one, down to nothing, until a sleep was short again: a program that
//! hands over a millisecond of work sleeps at once. So does one that has a single CPU, which the work needs.
//!
//! It does not yield in between. The kernel may give the CPU to another program then, for milliseconds, where
//! a thread that sleeps gets it back as soon as it wakes up: beside four hogs, calls that yielded took six
//! times as long in the mean.

use std::cell::Cell;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// The longest time of looking on.
const LONGEST: Duration = Duration::from_micros(20);

/// A sleep of this time was too short: what was handed over took less than looking on, and the rest are
/// wake-ups, which take longer while no thread of the pool spins.
const SHORT_SLEEP: Duration = Duration::from_micros(80);

/// After so many times in vain in a row it sleeps at once.
const GIVES_UP: u32 = 4;

/// Looks between two at the clock.
const LOOKS: u32 = 16;

/// What a thread has learnt of its waits.
#[derive(Debug)]
pub(crate) struct Patience {
    /// How often in a row looking on was in vain.
    in_vain: Cell<u32>,
}

impl Patience {
    pub(super) const fn new() -> Patience {
        Patience {
            in_vain: Cell::new(0),
        }
    }

    /// Looks on until `is_over`, but not for long. Returns whether it is.
    pub(crate) fn look_on(&self, is_over: impl Fn() -> bool) -> bool {
        let times = self.in_vain.get();
        if times >= GIVES_UP || has_one_cpu() {
            return is_over();
        }
        let began = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if is_over() {
                    self.in_vain.set(0);
                    return true;
                }
                std::hint::spin_loop();
            }
            if began.elapsed() >= LONGEST / (1 << times) {
                return false;
            }
        }
    }

    /// Sleeps, and learns from how long that was.
    pub(crate) fn sleep(&self, sleep: impl FnOnce()) {
        let began = Instant::now();
        sleep();
        self.slept(began.elapsed());
    }

    fn slept(&self, time: Duration) {
        let times = if time <= SHORT_SLEEP {
            0
        } else {
            (self.in_vain.get() + 1).min(GIVES_UP)
        };
        self.in_vain.set(times);
    }
}

/// Whether this process had one CPU when it was asked first.
fn has_one_cpu() -> bool {
    static HAS_ONE: OnceLock<bool> = OnceLock::new();
    *HAS_ONE.get_or_init(|| thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a thread looks on as long as that pays, gives up where it does not, and begins again after a
    /// short sleep. Method: how often it looks, after sleeps of given times.
    #[test]
    fn it_learns() {
        let patience = Patience::new();
        let at_least = if has_one_cpu() { 1 } else { LOOKS };
        let looks = || {
            let count = Cell::new(0_u32);
            let over = patience.look_on(|| {
                count.set(count.get() + 1);
                false
            });
            assert!(!over);
            count.get()
        };
        for _ in 0..GIVES_UP {
            assert!(looks() >= at_least);
            patience.slept(Duration::from_millis(1));
        }
        assert_eq!(looks(), 1);
        patience.slept(Duration::from_millis(1));
        assert_eq!(looks(), 1);
        patience.slept(Duration::from_micros(1));
        assert!(looks() >= at_least);
        assert!(patience.look_on(|| true));
    }
}
