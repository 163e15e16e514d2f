//! Whether workers are to be near the thread that waits for them: not while others want its CPUs.
//!
//! A mask of one cache ([`place`](crate::adapt::place)) leaves out CPUs that may be idle. So it goes when
//! threads are preempted. Then they are not any more, which says nothing about how it would be with the mask:
//! it comes back on trial, after twice as many looks each time that was in vain.
//!
//! Several threads may wait for the workers, each in another cache. These stay with the one where they are as
//! long as every third look finds it.

/// How many looks to do without after the first time, and at most: a look is once a second.
const HOLD: u32 = 2;
const HOLD_MAX: u32 = 64;
/// So many looks in a row that find who waits elsewhere mean that it has moved.
const MOVED: u32 = 3;

/// What is remembered of it from look to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Near {
    /// A CPU in the cache of the thread that waits, if workers are to be near it.
    waiter: Option<u32>,
    /// Looks in a row that found it elsewhere.
    elsewhere: u32,
    /// How many looks to do without the next time, and how many of these are left.
    hold: u32,
    left: u32,
    /// Looks near that thread that found nobody else.
    calm: u32,
}

impl Near {
    /// From the beginning on, if the CPU is known.
    pub(super) fn to(waiter: Option<u32>) -> Near {
        Near {
            waiter,
            elsewhere: 0,
            hold: HOLD,
            left: 0,
            calm: 0,
        }
    }

    /// The CPU to be near to by now.
    pub(super) fn waiter(self) -> Option<u32> {
        self.waiter
    }

    /// A look: where that thread is (for one cache always the same CPU), and whether threads are preempted.
    pub(super) fn learn(&mut self, waiter: Option<u32>, are_preempted: bool) {
        let was_near = self.waiter.is_some();
        if are_preempted {
            if was_near {
                self.left = self.hold;
                self.hold = (2 * self.hold).min(HOLD_MAX);
            }
            self.waiter = None;
            return;
        }
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        self.calm = if was_near { self.calm + 1 } else { 0 };
        if self.calm >= self.hold {
            self.hold = HOLD;
        }
        self.elsewhere = if was_near && waiter != self.waiter {
            self.elsewhere + 1
        } else {
            0
        };
        if !was_near || self.elsewhere >= MOVED {
            (self.waiter, self.elsewhere) = (waiter, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at a thread on CPU 7: `.` nobody is there, `!` others are. Returns whether workers are near
    /// after each.
    fn looks(near: &mut Near, what: &str) -> String {
        let look = |what| {
            near.learn(Some(7), what == '!');
            if near.waiter().is_some() { 'n' } else { '-' }
        };
        what.chars().map(look).collect()
    }

    /// Goal: workers are near while nobody is in the way, come back after a pause, which is longer each
    /// time that was in vain, and as short as at first when they could stay for as long. Method: courses of
    /// looks; the thread moves.
    #[test]
    fn trials_become_rarer() {
        let mut near = Near::to(Some(3));
        assert_eq!(near.waiter(), Some(3));
        assert_eq!(looks(&mut near, "..!!..."), "nn----n");
        assert_eq!(near.waiter(), Some(7));
        assert_eq!(looks(&mut near, "!....."), "-----n");
        assert_eq!(looks(&mut near, "!........."), "---------n");
        assert_eq!(
            looks(&mut near, "................!..."),
            "nnnnnnnnnnnnnnnn---n"
        );
        let mut unknown = Near::to(None);
        unknown.learn(None, false);
        assert_eq!(unknown.waiter(), None);
    }

    /// Goal: workers follow a thread that has moved, and stay where they are while threads in several
    /// caches wait. Method: courses of where each look finds one.
    #[test]
    fn who_moves_is_followed_and_who_visits_is_not() {
        let mut near = Near::to(Some(0));
        let mut at = |cpu| {
            near.learn(Some(cpu), false);
            near.waiter()
        };
        let moves = [0, 4, 4, 4, 4, 0, 4, 0, 0, 4].map(&mut at);
        let expected = [0, 0, 0, 4, 4, 4, 4, 4, 4, 4];
        assert_eq!(moves, expected.map(Some));
    }

    /// Goal: there is an end to that. Method: others are always there when it is tried.
    #[test]
    fn pauses_have_a_limit() {
        let mut near = Near::to(Some(7));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            near.learn(Some(7), true);
            let mut pause = 0;
            while near.waiter().is_none() {
                near.learn(Some(7), false);
                pause += 1;
            }
            pauses.push(pause - 1);
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 64, 64]);
    }
}
