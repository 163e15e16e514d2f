//! Requests for frames at a rate, and for the use of an idle pool.

use std::time::Duration;

use event::Nanos;
use measure::Used;
use workload::busy::chain;

use super::Tbb;

/// Frames that begin at the slots of an absolute schedule. A late frame begins at the first slot that has not
/// passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paced {
    pub(crate) threads: usize,
    /// The number of frames that count.
    pub(crate) frames: usize,
    /// The number of frames before these, on the same schedule.
    pub(crate) warmup: usize,
    pub(crate) period: Nanos,
    /// A frame is a parallel loop over this many pieces.
    pub(crate) pieces: u64,
    /// The number of steps of [`chain`] in a piece. Piece p begins with seed p + 1.
    pub(crate) steps: u64,
    pub(crate) wait: PacedWait,
}

/// The main thread's way to pass the time until a frame is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacedWait {
    Sleep,
    Spin,
}

/// The results of frames.
#[derive(Clone, Debug)]
pub(crate) struct PacedRun {
    pub(crate) frames: Vec<PacedFrame>,
    /// CPU time of all threads from the beginning of the first frame to the slot after the last.
    pub(crate) cpu: Nanos,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacedFrame {
    /// From its slot to its beginning.
    pub(crate) late: Nanos,
    /// From its beginning to its end.
    pub(crate) length: Nanos,
}

impl Tbb {
    /// Runs the frames on a fresh pool, and checks that all pieces were done.
    pub(crate) fn frames(&self, paced: &Paced) -> Result<PacedRun, String> {
        let (frames, words) = (paced.frames, paced.words());
        let spin = u32::from(paced.wait == PacedWait::Spin);
        let request = format!("frames count={frames} spin={spin} {words}");
        let numbers = self.ask(&request, paced.lasts())?;
        let (head, frame_numbers) = numbers.split_at_checked(2).unwrap_or_default();
        let (pairs, rest) = frame_numbers.as_chunks();
        let (&[cpu, sum], true, []) = (head, pairs.len() == frames, rest) else {
            return Err(format!("the runner tells of other than {frames} frames"));
        };
        let expected = paced.checksum();
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

    /// Warms a fresh pool up with the frames for that and leaves it alone for `settle`. The result is what
    /// all threads but the calling one use while that sleeps for `length`.
    pub(crate) fn idle(
        &self,
        paced: &Paced,
        settle: Duration,
        length: Duration,
    ) -> Result<Used, String> {
        let (settle_ns, length_ns) = (settle.as_nanos(), length.as_nanos());
        let words = paced.words();
        let request = format!("idle settle={settle_ns} length={length_ns} {words}");
        let [cpu, switches] = self.numbers(&request, paced.lasts() + settle + length)?;
        Ok(Used {
            cpu: Nanos(cpu),
            switches,
        })
    }
}

impl Paced {
    /// The words of the request that both kinds have.
    fn words(&self) -> String {
        format!(
            "threads={} warmup={} period={} pieces={} steps={}",
            self.threads, self.warmup, self.period.0, self.pieces, self.steps
        )
    }

    /// The longest time it may take: on a loaded machine a frame takes several slots.
    fn lasts(&self) -> Duration {
        let slots = (self.frames + self.warmup) as u64 * 10;
        Nanos(self.period.0.saturating_mul(slots)).into()
    }

    /// The sum over all pieces of all frames.
    fn checksum(&self) -> u64 {
        let pieces = (1..=self.pieces).map(|seed| chain(self.steps, seed));
        let frame = pieces.fold(0, u64::wrapping_add);
        frame.wrapping_mul((self.frames + self.warmup) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the sum counts every piece of every frame, those to warm up included. Method: two pieces without
    /// steps; the result of each is its seed made odd.
    #[test]
    fn all_pieces_add_up() {
        let paced = Paced {
            threads: 2,
            frames: 3,
            warmup: 1,
            period: Nanos(1_000),
            pieces: 2,
            steps: 0,
            wait: PacedWait::Sleep,
        };
        assert_eq!(paced.checksum(), 4 * (1 + 3));
        assert_eq!(paced.lasts(), Duration::from_micros(40));
        assert_eq!(
            paced.words(),
            "threads=2 warmup=1 period=1000 pieces=2 steps=0"
        );
    }
}
