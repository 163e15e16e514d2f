//! Source 002's benchmark: one thread computes, the other waits for it, and both share a CPU.
//!
//! The source counts points of the Mandelbrot set and pins both threads to one logical CPU. Here the
//! computation is [`Busy`] (ours: its length is known, and a simulated platform can be told of it), in
//! pieces, so that a simulated thread can be looked at in between. As in the source each yield is
//! timed, and a wait that never leaves user space is timed as a whole.

use std::sync::Arc;

use event::Nanos;
use platform::{CpuSet, Lock, Machine, Platform, Polling, SpawnError, Usage};

use super::{Flag, NaiveWait, Statistic};
use crate::busy::Busy;
use crate::flag::Turns;
use crate::gang::run_together;

/// The program to run.
#[derive(Clone, Debug)]
pub struct PollBeside {
    /// How the second thread waits.
    pub wait: NaiveWait,
    /// The length of the first thread's computation. Source: 2.38 s, if it had the CPU for itself.
    pub work: Nanos,
    /// In how many pieces; at least 1.
    pub pieces: u32,
    /// Where both threads may run. Source: one CPU.
    pub mask: Option<CpuSet>,
}

/// The results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BesideReport {
    /// From the first piece to the end of the last.
    pub elapsed: Nanos,
    /// The CPU time and switches of the computing thread in this time.
    pub compute: Usage,
    /// The CPU time and switches of the waiting thread until it saw the end.
    pub waiter: Usage,
    /// How long the turns of the wait took, in the source "yields". One length for the whole of a wait
    /// that spins or pauses.
    pub turns: Statistic,
}

impl PollBeside {
    /// Runs it, with bodies that compute by `busy`, on two new threads, and waits for them.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn run<P: Polling>(&self, platform: &P, busy: Busy) -> Result<BesideReport, SpawnError> {
        let both = Arc::new(Both::<P> {
            platform: platform.clone(),
            what: self.clone(),
            busy,
            over: Flag::new(0),
            computed: P::Lock::new((Nanos::ZERO, Usage::default())),
            waited: P::Lock::new((Statistic::default(), Usage::default())),
        });
        let theirs = Arc::clone(&both);
        let names = ["compute".to_owned(), "waiter".to_owned()];
        run_together(
            platform,
            &names,
            self.mask.as_slice(),
            move |number| match number {
                0 => theirs.compute(),
                _ => theirs.wait(),
            },
        )?;
        let (elapsed, compute) = both.computed.with(|computed| *computed);
        let (turns, waiter) = both.waited.with(|waited| waited.clone());
        Ok(BesideReport {
            elapsed,
            compute,
            waiter,
            turns,
        })
    }
}

/// The state that the two threads share.
struct Both<P: Platform> {
    platform: P,
    what: PollBeside,
    busy: Busy,
    /// 1 when the computation is over.
    over: Flag<P>,
    computed: P::Lock<(Nanos, Usage)>,
    waited: P::Lock<(Statistic, Usage)>,
}

impl<P: Polling> Both<P> {
    fn compute(&self) {
        let pieces = u64::from(self.what.pieces.max(1));
        let (begin, before) = (self.platform.now(), self.platform.machine().usage());
        for piece in 0..pieces {
            // The pieces differ by a nanosecond where the work cannot be divided evenly.
            let until =
                |piece: u64| u128::from(self.what.work.0) * u128::from(piece) / u128::from(pieces);
            let length = Nanos((until(piece + 1) - until(piece)) as u64);
            self.platform.charge(length);
            self.busy.spin_for(length, piece);
        }
        let elapsed = self.platform.now() - begin;
        let used = used(before, self.platform.machine().usage());
        self.over.set(1);
        self.computed.with(|computed| *computed = (elapsed, used));
    }

    fn wait(&self) {
        let before = self.platform.machine().usage();
        let mut turns = Statistic::default();
        let is_over = |value| value != 0;
        let wait = self.what.wait;
        if matches!(wait, NaiveWait::Spin | NaiveWait::Pause) {
            let begin = self.platform.now();
            wait.until(&self.platform, &self.over, is_over);
            turns.add(self.platform.now() - begin);
        } else {
            let mut state = Turns::new(wait, &self.platform);
            while !is_over(self.over.get()) {
                let begin = self.platform.now();
                state.turn(&self.platform, &self.over, is_over);
                turns.add(self.platform.now() - begin);
            }
        }
        let used = used(before, self.platform.machine().usage());
        self.waited.with(|waited| *waited = (turns, used));
    }
}

/// The CPU time and switches of a thread between two looks.
pub(crate) fn used(before: Usage, after: Usage) -> Usage {
    let time = |before: Option<Nanos>, after: Option<Nanos>| Some(after? - before?);
    let count = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
    Usage {
        cpu: time(before.cpu, after.cpu),
        runnable: time(before.runnable, after.runnable),
        involuntary: count(before.involuntary, after.involuntary),
        voluntary: count(before.voluntary, after.voluntary),
    }
}
