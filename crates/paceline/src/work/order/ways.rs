//! The longest ways through jobs that come after each other, and which of the jobs are worth a rank.
//!
//! The *rank* of a job is its time and that of the longest way behind it (the upward rank of HEFT: Topcuoglu,
//! Hariri and Wu, 2002). Any order that leaves no thread idle beside a ready job takes less than twice as
//! long as the best one (Graham, 1966), and a bad one does come near that: a chain that is begun last.
//!
//! A rank has its price: the job passes through a queue that all threads share (`lanes/ranks.rs`). So only as
//! many jobs get one as the whole can pay for, and of these the ones with the least slack, which is the time
//! that they could be put off without making the whole longer.

use event::Nanos;

use crate::policy::Tuning;
use crate::store::{JobRanks, Rank};

/// A job, as far as its times are known.
#[derive(Clone, Copy, Default)]
pub(crate) struct JobWay {
    /// Its own time, that the ranks are made of.
    pub(crate) time: Nanos,
    /// Whether it goes through a queue when it is ready.
    pub(crate) takes_turns: bool,
    /// That time, and the longest way behind it.
    ahead: Nanos,
    /// The longest way before it.
    before: Nanos,
}

impl JobWay {
    /// A job of which nothing is known.
    pub(crate) fn unknown(takes_turns: bool) -> JobWay {
        JobWay {
            takes_turns,
            ..JobWay::default()
        }
    }

    /// Learns that the job takes so long of late. Returns whether that is news: a change by less than an
    /// eighth is noise, and to follow it would change the order from time to time.
    pub(crate) fn learn(&mut self, recent: Nanos) -> bool {
        let is_news = recent.0.abs_diff(self.time.0) > self.time.0 / 8;
        if is_news {
            self.time = recent;
        }
        is_news
    }

    /// The longest way that leads through this job.
    fn way(&self) -> Nanos {
        self.before + self.ahead
    }
}

/// Whether a run, or a frame, is timed that comes after so many: the first four, and then one in eight.
pub(crate) fn is_timed_after(runs: u64) -> bool {
    const FIRST: u64 = 4;
    const EVERY: u64 = 8;
    runs < FIRST || runs.is_multiple_of(EVERY)
}

/// The mean of late: the last time counts a quarter, and what came before it the rest.
pub(crate) fn mean_of_late(recent: Nanos, time: Nanos) -> Nanos {
    match recent {
        Nanos::ZERO => time,
        recent => Nanos(recent.0 - recent.0 / 4 + time.0 / 4),
    }
}

/// The ranks that jobs get by their ways.
pub(crate) struct WayRanks {
    longest: Nanos,
    /// Jobs with less slack than this get a rank.
    slack_max: Nanos,
}

impl WayRanks {
    /// Finds the ways of all jobs. `order`: their numbers, each behind those that it comes after. `behind`:
    /// the jobs that come after one. `slacks`: memory for the call.
    pub(crate) fn find<O, B>(
        jobs: &mut [JobWay],
        order: impl Fn() -> O,
        behind: impl Fn(u32) -> B,
        slacks: &mut Vec<Nanos>,
        threads: u64,
    ) -> WayRanks
    where
        O: DoubleEndedIterator<Item = u32>,
        B: Iterator<Item = u32>,
    {
        for number in order().rev() {
            let longest = behind(number).map(|next| jobs[next as usize].ahead).max();
            let job = &mut jobs[number as usize];
            job.ahead = job.time + longest.unwrap_or(Nanos::ZERO);
            job.before = Nanos::ZERO;
        }
        for number in order() {
            let job = jobs[number as usize];
            for next in behind(number) {
                let next = &mut jobs[next as usize];
                next.before = next.before.max(job.before + job.time);
            }
        }
        let ways = jobs.iter().map(|job| job.ahead);
        let longest = ways.max().unwrap_or(Nanos::ZERO);
        WayRanks {
            longest,
            slack_max: slack_max(jobs, longest, slacks, threads),
        }
    }

    /// The ranks of a job. Helpers of its loops come by rank if it is near the longest way.
    pub(crate) fn of(&self, job: &JobWay) -> JobRanks {
        let slack = self.longest - job.way();
        if !job.takes_turns || slack >= self.slack_max {
            return JobRanks::NONE;
        }
        let own = Rank::of(job.ahead);
        let hurries = job.time >= Tuning::PIECE && slack.0 <= self.longest.0 / 16;
        JobRanks {
            own,
            of_loops: if hurries { own } else { Rank::NONE },
        }
    }
}

fn slack_max(jobs: &[JobWay], longest: Nanos, slacks: &mut Vec<Nanos>, threads: u64) -> Nanos {
    let mut work = 0;
    slacks.clear();
    slacks.extend(jobs.iter().filter(|job| job.takes_turns).map(|job| {
        work += job.time.0;
        longest - job.way()
    }));
    let price = Tuning::RANK.0.max(threads * Tuning::RANK_TURN.0);
    let affordable = usize::try_from(work / price).unwrap_or(usize::MAX);
    if affordable >= slacks.len() {
        return Nanos::MAX;
    }
    *slacks.select_nth_unstable(affordable).1
}
