//! Requests of a program with a frame rate, and of one with nothing to do.

use std::time::Duration;

use event::Nanos;
use workload::busy::chain;

use super::Tbb;
use measure::Used;

/// Frames that begin at the slots of an absolute schedule; one that is late begins at the first slot
/// that has not passed.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands::bench) struct Paced {
    pub(in crate::commands::bench) threads: usize,
    /// Those that count.
    pub(in crate::commands::bench) frames: usize,
    /// Those before, on the same schedule.
    pub(in crate::commands::bench) warmup: usize,
    pub(in crate::commands::bench) period: Nanos,
    /// A frame is a parallel loop over so many pieces …
    pub(in crate::commands::bench) pieces: u64,
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

impl Tbb {
    /// Runs the frames on a fresh pool, and checks that each did all its pieces.
    pub(in crate::commands::bench) fn frames(&self, paced: &Paced) -> Result<PacedRun, String> {
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

    /// Warms a fresh pool up with the frames for that, leaves it alone for `settle`, and looks at
    /// what all threads but the calling one use while that sleeps for `length`.
    pub(in crate::commands::bench) fn idle(
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
    /// What the runner has to know in any case.
    fn words(&self) -> String {
        format!(
            "threads={} warmup={} period={} pieces={} steps={}",
            self.threads, self.warmup, self.period.0, self.pieces, self.steps
        )
    }

    /// How long it may take: on a loaded machine frames take several slots each.
    fn lasts(&self) -> Duration {
        let slots = (self.frames + self.warmup) as u64 * 10;
        Nanos(self.period.0.saturating_mul(slots)).into()
    }

    /// The sum of what all pieces of all frames give.
    fn checksum(&self) -> u64 {
        let pieces = (1..=self.pieces).map(|seed| chain(self.steps, seed));
        let frame = pieces.fold(0, u64::wrapping_add);
        frame.wrapping_mul((self.frames + self.warmup) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the sum counts every piece of every frame, those to warm up included. Method: two
    /// pieces without steps, whose results are their seeds made odd.
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
