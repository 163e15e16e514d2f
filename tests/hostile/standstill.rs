//! Whether threads can still get anywhere, told apart from a machine that is only slow.
//!
//! The clock on the wall says little: another program may have the CPUs. The kernel knows more about a
//! thread that makes no progress:
//!
//! - it *sleeps* if its state is `S` and it has had no CPU time for a while: it does not wait for a CPU;
//! - it runs *in vain* if it has had enough CPU time to finish anything that it could have been doing.
//!
//! A thread that wants a CPU and has had little of it may be about to do the missing step. As long as there
//! is one, nothing is decided.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use crate::threads::Thread;

/// CPU time in which every body of these programs is done: a thousand times as long as the longest takes.
pub(crate) const LONGEST: Duration = Duration::from_millis(100);

/// When threads that make no progress are taken to be stuck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// All of them have slept for this long.
    pub(crate) asleep: Duration,
    /// All have slept or run in vain, and the last progress is this long ago.
    pub(crate) in_vain: Duration,
    /// CPU time that is in vain if it brings no progress.
    pub(crate) longest: Duration,
    /// Nothing can be told from the threads, and the last progress is this long ago.
    pub(crate) patience: Duration,
}

/// A verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Undecided,
    Asleep,
    InVain,
    /// Without evidence but time: the machine may be slow.
    Patience,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Undecided => "undecided",
            Verdict::Asleep => "every thread sleeps",
            Verdict::InVain => "every thread sleeps or has had CPU time in vain",
            Verdict::Patience => "the threads do not tell why, the machine may be slow",
        })
    }
}

/// One thread, watched since the last progress.
struct Track {
    ran_then: u64,
    ran: u64,
    /// Since when it has been asleep without CPU time.
    still: Option<Instant>,
}

/// Watches threads since their last progress.
pub(crate) struct Standstill {
    limits: Limits,
    since: Instant,
    tracks: BTreeMap<u32, Track>,
}

impl Standstill {
    pub(crate) fn new(limits: Limits, now: Instant) -> Standstill {
        Standstill {
            limits,
            since: now,
            tracks: BTreeMap::new(),
        }
    }

    /// From now on this much CPU time without progress is in vain.
    pub(crate) fn allow(&mut self, longest: Duration) {
        self.limits.longest = longest;
    }

    /// There was progress.
    pub(crate) fn progressed(&mut self, now: Instant) {
        self.since = now;
        self.tracks.clear();
    }

    /// How long ago it was.
    pub(crate) fn lasts(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    /// Looks at the threads that could make progress. `None`: this system does not show them.
    pub(crate) fn look(&mut self, now: Instant, threads: Option<&[Thread]>) -> Verdict {
        if let Some(threads) = threads {
            self.follow(now, threads);
            let asleep = |track: &Track| {
                let slept = track
                    .still
                    .map(|since| now.saturating_duration_since(since));
                slept.is_some_and(|slept| slept >= self.limits.asleep)
            };
            let longest = self.limits.longest.as_nanos();
            let in_vain = |track: &Track| u128::from(track.ran - track.ran_then) >= longest;
            if self.tracks.values().all(asleep) && self.lasts(now) >= self.limits.asleep {
                return Verdict::Asleep;
            }
            let both = |track: &Track| asleep(track) || in_vain(track);
            if self.tracks.values().all(both) && self.lasts(now) >= self.limits.in_vain {
                return Verdict::InVain;
            }
        }
        if self.lasts(now) >= self.limits.patience {
            Verdict::Patience
        } else {
            Verdict::Undecided
        }
    }

    fn follow(&mut self, now: Instant, threads: &[Thread]) {
        let mut before = std::mem::take(&mut self.tracks);
        for thread in threads {
            let ran = thread.ran;
            let track = before.remove(&thread.id);
            let mut track = track.unwrap_or(Track {
                ran_then: ran,
                ran: u64::MAX,
                still: None,
            });
            let is_still = thread.state == 'S' && track.ran == ran;
            track.still = if is_still {
                track.still.or(Some(now))
            } else {
                None
            };
            track.ran = ran;
            self.tracks.insert(thread.id, track);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        asleep: Duration::from_secs(2),
        in_vain: Duration::from_secs(5),
        longest: LONGEST,
        patience: Duration::from_secs(60),
    };

    /// The verdicts of looks at these seconds; each thread is its state and the CPU time in ms that it has
    /// had by then.
    fn verdicts(looks: &[(u64, &[(char, u64)])]) -> Vec<Verdict> {
        let begin = Instant::now();
        let mut standstill = Standstill::new(LIMITS, begin);
        let look = |(second, threads): &(u64, &[(char, u64)])| {
            let thread = |(id, (state, ms)): (usize, &(char, u64))| Thread {
                id: id as u32,
                name: String::new(),
                state: *state,
                ran: ms * 1_000_000,
            };
            let threads: Vec<Thread> = threads.iter().enumerate().map(thread).collect();
            standstill.look(begin + Duration::from_secs(*second), Some(&threads))
        };
        looks.iter().map(look).collect()
    }

    /// Goal: threads that sleep all the time are told as soon as the limit is over. Method: two sleepers, one
    /// of which has just fallen asleep at the first look.
    #[test]
    fn sleepers_are_found() {
        let found = verdicts(&[
            (0, &[('R', 10), ('S', 5)]),
            (1, &[('S', 11), ('S', 5)]),
            (2, &[('S', 11), ('S', 5)]),
            (4, &[('S', 11), ('S', 5)]),
        ]);
        assert_eq!(found[..3], [Verdict::Undecided; 3]);
        assert_eq!(found[3], Verdict::Asleep);
    }

    /// Goal: a machine that is slow is not taken for a lost job. Method: a thread that wants a CPU and gets
    /// little of it, for half a minute, beside one that sleeps.
    #[test]
    fn a_thread_that_gets_no_cpu_decides_nothing() {
        let found = verdicts(&[
            (0, &[('R', 10), ('S', 5)]),
            (10, &[('R', 12), ('S', 5)]),
            (30, &[('R', 15), ('S', 5)]),
            (60, &[('R', 15), ('S', 5)]),
        ]);
        assert_eq!(found[..3], [Verdict::Undecided; 3]);
        assert_eq!(found[3], Verdict::Patience);
    }

    /// Goal: spinning workers that had their CPU time and found nothing are stuck. Method: one spins for six
    /// seconds, one sleeps.
    #[test]
    fn spinning_in_vain_is_found() {
        let found = verdicts(&[
            (0, &[('R', 10), ('S', 5)]),
            (4, &[('R', 4_000), ('S', 5)]),
            (6, &[('R', 6_000), ('S', 5)]),
        ]);
        assert_eq!(found[1], Verdict::Undecided);
        assert_eq!(found[2], Verdict::InVain);
    }

    /// Goal: a thread that was not there before is given its time. Method: it comes at second 3.
    #[test]
    fn a_thread_that_comes_is_waited_for() {
        let found = verdicts(&[
            (0, &[('S', 5)]),
            (3, &[('S', 5), ('S', 1)]),
            (4, &[('S', 5), ('S', 1)]),
            (7, &[('S', 5), ('S', 1)]),
        ]);
        assert_eq!(found[1..3], [Verdict::Undecided; 2]);
        assert_eq!(found[3], Verdict::Asleep);
    }

    /// Goal: where threads cannot be seen only patience counts, and progress begins it anew. Method: looks
    /// without threads.
    #[test]
    fn without_states_only_time_counts() {
        let begin = Instant::now();
        let mut standstill = Standstill::new(LIMITS, begin);
        let at = |second| begin + Duration::from_secs(second);
        assert_eq!(standstill.look(at(59), None), Verdict::Undecided);
        standstill.progressed(at(59));
        assert_eq!(standstill.look(at(60), None), Verdict::Undecided);
        assert_eq!(standstill.look(at(119), None), Verdict::Patience);
    }
}
