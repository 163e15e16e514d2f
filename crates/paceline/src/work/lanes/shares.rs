//! The shares of lanes in the workers' time.
//!
//! A share is a part of the time of all threads that take whatever there is, as long as several lanes have
//! work; the rest is that of the normal lane. A lane that has no work saves nothing for later, and its time
//! goes to the others. The rule is that of fair queueing by start times (Goyal, Vin and Cheng, "Start-time
//! Fair Queueing", 1996), with the time measured as it is used: each lane has an *account*, the time used
//! times 100 by its percentage, and the lane with the least account goes next. The *floor* is the greatest
//! account that a job was ever taken with. A lane that gets work again begins at the floor.
//!
//! A thread is charged from one job that it takes to the next look for one. So a look costs a clock, as soon
//! as there has been a lane with a share. What a job runs in its waits, and the time in which it waits, are
//! charged to its lane. Frame jobs, jobs that a wait has raised, and background jobs that have their turn
//! while there is other work count as normal ones.

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Padded};

/// How many lanes have a share, without the normal one.
pub(crate) const SHARES: usize = platform::Lane::SHARES.len();
/// The number of the normal lane among those with accounts.
pub(super) const NORMAL: usize = 0;
/// No lane: the thread has found nothing to do.
pub(super) const NO_LANE: usize = u32::MAX as usize;
/// The percentage of a lane for which none was set.
const UNSET: u64 = 10;
/// A thread adds to the account that all threads share when it has used so much time.
const BATCH: Nanos = Nanos::from_micros(5);

/// What was asked for a lane with a share.
#[derive(Clone, Copy)]
pub(crate) struct ShareSetting {
    /// Its part of the time in percent; 0: not set.
    pub(super) percent: u8,
    /// How many workers may work for it at a time; 0: all.
    pub(super) most: u16,
}

impl ShareSetting {
    pub(crate) const UNSET: ShareSetting = ShareSetting {
        percent: 0,
        most: 0,
    };

    pub(crate) fn of(self, percent: u8) -> ShareSetting {
        ShareSetting { percent, ..self }
    }

    pub(crate) fn at_most(self, most: u16) -> ShareSetting {
        ShareSetting { most, ..self }
    }
}

/// The accounts of the lanes with a share and of the normal lane, which has number 0.
pub(super) struct Shares<M: Memory> {
    percents: [u64; SHARES + 1],
    /// Of each: the time used, times 100 by the percentage.
    accounts: [Padded<M::AtomicU64>; SHARES + 1],
    /// The greatest account that a job was ever taken with.
    floor: Padded<M::AtomicU64>,
    /// 1: there has been work in a lane with a share.
    used: M::AtomicU32,
}

/// What a thread is being charged for.
#[derive(Clone, Copy)]
pub(crate) struct ShareLocal {
    /// The number of the lane, or [`NO_LANE`].
    lane: u32,
    /// The thread has a place in that lane (`caps.rs`).
    has_place: bool,
    /// It rests in the middle of a job of that lane, without its place.
    rests: bool,
    since: Nanos,
    /// The time used that is not in the account yet.
    pending: Nanos,
}

impl ShareLocal {
    pub(crate) const fn new() -> ShareLocal {
        ShareLocal {
            lane: NO_LANE as u32,
            has_place: false,
            rests: false,
            since: Nanos::ZERO,
            pending: Nanos::ZERO,
        }
    }

    /// Whether the thread has a place in a lane that is limited.
    pub(super) fn has_place(&self) -> bool {
        self.has_place
    }

    /// Whether it has one in this lane.
    pub(super) fn has_place_in(&self, lane: usize) -> bool {
        self.has_place && self.lane == lane as u32
    }

    /// The thread has taken a place in its lane.
    pub(super) fn takes_place(&mut self) {
        // If it rests in the middle of another job of the lane, it goes on with that in this place.
        (self.has_place, self.rests) = (true, false);
    }

    /// The thread rests in the middle of a job of its lane, of which this is the number.
    pub(super) fn vacates(&mut self) -> usize {
        (self.has_place, self.rests) = (false, true);
        self.lane as usize
    }

    /// It goes on with the job. Returns the lane in which it is to have its place back: none if it has taken
    /// something else meanwhile.
    pub(super) fn goes_on(&mut self) -> Option<usize> {
        if !std::mem::replace(&mut self.rests, false) {
            return None;
        }
        self.has_place = true;
        Some(self.lane as usize)
    }
}

impl<M: Memory> Shares<M> {
    pub(super) fn new(settings: [ShareSetting; SHARES]) -> Shares<M> {
        let percents = settings.map(|setting| setting.percent);
        let given: u64 = percents.iter().map(|&percent| u64::from(percent)).sum();
        let percent = |lane: usize| match lane {
            NORMAL => 100 - given.min(99),
            lane => match percents[lane - 1] {
                0 => UNSET,
                percent => u64::from(percent),
            },
        };
        Shares {
            percents: std::array::from_fn(percent),
            accounts: std::array::from_fn(|_| Padded(M::AtomicU64::new(0))),
            floor: Padded(M::AtomicU64::new(0)),
            used: M::AtomicU32::new(0),
        }
    }

    /// Whether there has been work in a lane with a share.
    pub(super) fn are_used(&self) -> bool {
        // Relaxed: a thread that sees it late charges later.
        self.used.load(Ordering::Relaxed) != 0
    }

    /// Relaxed, as all accesses here: accounts order nothing, and a thread that reads an old one takes a job
    /// of the other lane once more.
    pub(super) fn account(&self, lane: usize) -> u64 {
        self.accounts[lane].load(Ordering::Relaxed)
    }

    /// A lane gets work, or had no use for what was its turn: it does not save the time for later.
    pub(super) fn begins_again(&self, lane: usize) {
        if !self.are_used() {
            self.used.store(1, Ordering::Relaxed);
        }
        let floor = self.floor.load(Ordering::Relaxed);
        if self.account(lane) < floor {
            self.accounts[lane].fetch_max(floor, Ordering::Relaxed);
        }
    }

    /// The thread looks for a job: the time since its last look was that of the lane it took its last one
    /// from.
    pub(super) fn charge(&self, thread: &mut ShareLocal, now: Nanos) {
        if thread.lane != NO_LANE as u32 {
            thread.pending += now - thread.since;
            if thread.pending >= BATCH {
                self.settle(thread);
            }
        }
        thread.since = now;
    }

    fn settle(&self, thread: &mut ShareLocal) {
        let pending = std::mem::replace(&mut thread.pending, Nanos::ZERO);
        if pending > Nanos::ZERO {
            let lane = thread.lane as usize;
            let used = pending.0 * 100 / self.percents[lane];
            self.accounts[lane].fetch_add(used, Ordering::Relaxed);
        }
    }

    /// The thread takes a job of this lane, which has this account. As [`turn_to`](Shares::turn_to).
    pub(super) fn takes(&self, thread: &mut ShareLocal, lane: usize, account: u64) -> usize {
        if self.floor.load(Ordering::Relaxed) < account {
            self.floor.fetch_max(account, Ordering::Relaxed);
        }
        self.turn_to(thread, lane)
    }

    /// The thread works for this lane from now on; [`NO_LANE`]: it is about to rest. Returns the lane in
    /// which it leaves a place, or [`NO_LANE`].
    #[must_use]
    pub(super) fn turn_to(&self, thread: &mut ShareLocal, lane: usize) -> usize {
        if thread.lane == lane as u32 {
            return NO_LANE;
        }
        self.settle(thread);
        let before = std::mem::replace(&mut thread.lane, lane as u32);
        thread.rests = false;
        if std::mem::replace(&mut thread.has_place, false) {
            before as usize
        } else {
            NO_LANE
        }
    }
}
