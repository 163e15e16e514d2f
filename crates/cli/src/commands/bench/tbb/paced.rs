//! Requests of a program with a frame rate, and of one with nothing to do.

use std::time::Duration;

use event::Nanos;
use workload::busy::chain;

use super::Tbb;

/// Frames that begin at the slots of an absolute schedule; one that is late begins at the first slot
/// that has not passed.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands::bench) struct Paced {
    pub(in crate::commands::bench) threads: usize,
    /// Those that count.
    pub(in crate::commands::bench) frames: u32,
    /// Those before, on the same schedule.
    pub(in crate::commands::bench) warmup: u32,
    pub(in crate::commands::bench) period: Nanos,
    /// A frame is a parallel loop over so many pieces …
    pub(in crate::commands::bench) pieces: u32,
    /// … of so many steps of [`chain`], piece p from seed p + 1.
    pub(in crate::commands::bench) steps: u64,
    pub(in crate::commands::bench) wait: PacedWait,
}

/// What the main thread does until a frame is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands::bench) enum PacedWait {
    Sleep,
    Spin,
}

/// What became of them.
#[derive(Clone, Debug)]
pub(in crate::commands::bench) struct PacedRun {
    pub(in crate::commands::bench) frames: Vec<PacedFrame>,
    /// What all threads used from the beginning of the first frame to the slot after the last.
    pub(in crate::commands::bench) cpu: Nanos,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands::bench) struct PacedFrame {
    /// How long after its slot it began.
    pub(in crate::commands::bench) late: Nanos,
    /// From its beginning to its end.
    pub(in crate::commands::bench) length: Nanos,
}

/// A while of nothing to do.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands::bench) struct IdleRun {
    /// What all threads used.
    pub(in crate::commands::bench) cpu: Nanos,
    /// Context switches of all threads but the one that called.
    pub(in crate::commands::bench) switches_of_workers: u64,
    /// Those of the caller, whose sleep is one.
    pub(in crate::commands::bench) switches_of_caller: u64,
}

impl Tbb {
    /// Runs the frames on a fresh pool, and checks that each did all its pieces.
    pub(in crate::commands::bench) fn frames(&self, paced: &Paced) -> Result<PacedRun, String> {
        let Paced {
            threads,
            frames,
            warmup,
            period,
            pieces,
            steps,
            wait,
        } = *paced;
        let request = format!(
            "frames threads={threads} count={frames} warmup={warmup} period={} pieces={pieces} \
             steps={steps} spin={}",
            period.0,
            u32::from(wait == PacedWait::Spin)
        );
        let slots = Duration::from(period) * (frames + warmup);
        // On a loaded machine frames take several slots each.
        let numbers = self.ask(&request, slots * 10)?;
        let (head, frame_numbers) = numbers.split_at_checked(2).unwrap_or_default();
        let (pairs, rest) = frame_numbers.as_chunks();
        let (&[cpu, sum], true, []) = (head, pairs.len() == frames as usize, rest) else {
            return Err(format!("the runner tells of other than {frames} frames"));
        };
        let frame_sum =
            (1..=u64::from(pieces)).fold(0, |sum: u64, seed| sum.wrapping_add(chain(steps, seed)));
        let expected = frame_sum.wrapping_mul(u64::from(frames + warmup));
        if sum != expected {
            return Err(format!("the pieces add up to {sum} instead of {expected}"));
        }
        let frame = |&[late, length]: &[u64; 2]| PacedFrame {
            late: Nanos(late),
            length: Nanos(length),
        };
        Ok(PacedRun {
            frames: pairs.iter().map(frame).collect(),
            cpu: Nanos(cpu),
        })
    }

    /// Warms a fresh pool up with one loop over pieces, sleeps for `settle`, and looks at what the
    /// process does while its main thread sleeps for `length`.
    pub(in crate::commands::bench) fn idle(
        &self,
        threads: usize,
        (pieces, steps): (u32, u64),
        settle: Duration,
        length: Duration,
    ) -> Result<IdleRun, String> {
        let request = format!(
            "idle threads={threads} pieces={pieces} steps={steps} settle={} length={}",
            settle.as_nanos(),
            length.as_nanos()
        );
        let [cpu, switches_of_workers, switches_of_caller] =
            self.numbers(&request, settle + length)?;
        Ok(IdleRun {
            cpu: Nanos(cpu),
            switches_of_workers,
            switches_of_caller,
        })
    }
}
