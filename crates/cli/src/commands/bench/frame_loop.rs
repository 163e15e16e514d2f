//! A loop of frames as a display paces it: what the rows `frame`, `load` and `idle` run.
//!
//! A frame is one parallel loop over equal pieces of work, called by the thread that sleeps until
//! the frame is due. It lasts from when that thread is awake and begins it to the end of the loop;
//! when it was due is noted as well, for only that says whether it came in time.

use std::time::Duration;

use event::Nanos;
use platform::{Os, Platform};
use workload::busy::Busy;

use crate::pace::{Pace, Pause};
use measure::process_cpu;

/// 60 frames a second.
pub(super) const PERIOD: Nanos = Nanos(16_666_667);

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLoop {
    /// Frames that are measured.
    pub(super) frames: usize,
    /// Frames before these.
    pub(super) warm_up: usize,
    pub(super) period: Nanos,
    /// Pieces of work in a frame.
    pub(super) pieces: u64,
    /// How long each takes one thread.
    pub(super) piece: Nanos,
    /// How the calling thread passes the time between frames.
    pub(super) pause: Pause,
}

/// What was found, in nanoseconds, a number for each measured frame.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// From the beginning of each to its end.
    pub(super) lasted: Vec<f64>,
    /// From when each was due to its end.
    pub(super) since_due: Vec<f64>,
    /// CPU time per frame of the whole process, from the beginning of the first to when the one after
    /// the last is due: what a pool does between frames counts. None: not counted here.
    pub(super) cpu: Option<f64>,
}

/// A piece of work. It borrows nothing, so threads that outlive the frame can be given it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) busy: Busy,
    /// How long it takes one thread.
    pub(super) length: Nanos,
}

impl Piece {
    /// Does the piece of this number and gives the number back.
    pub(super) fn run(&self, number: u64) -> u64 {
        self.busy.spin_for(self.length, number);
        number
    }
}

/// Who runs a frame: adds up what `piece` gives for each number below `pieces`.
pub(super) trait Pieces {
    fn sum(&self, pieces: u64, piece: Piece) -> u64;
}

impl FrameLoop {
    /// Runs it on the calling thread and checks every frame's result.
    pub(super) fn run(&self, pool: &dyn Pieces, busy: Busy) -> Result<Frames, String> {
        let mut pace = Pace::new(Os, Some(Duration::from(self.period)), self.pause);
        for _ in 0..self.warm_up {
            pace.next_frame();
            self.frame(pool, busy)?;
        }
        pace.next_frame();
        let before = process_cpu();
        let mut frames = Frames::default();
        for _ in 0..self.frames {
            let (due, begin) = (pace.due(), Os.now());
            self.frame(pool, busy)?;
            let end = Os.now();
            frames.lasted.push((end - begin).0 as f64);
            frames.since_due.push((end - due).0 as f64);
            pace.next_frame();
        }
        let used = before
            .zip(process_cpu())
            .map(|(before, after)| after - before);
        frames.cpu = used.map(|used| used.0 as f64 / self.frames.max(1) as f64);
        Ok(frames)
    }

    /// One frame, now.
    pub(super) fn frame(&self, pool: &dyn Pieces, busy: Busy) -> Result<(), String> {
        let length = self.piece;
        let sum = pool.sum(self.pieces, Piece { busy, length });
        let expected = self.checksum();
        match sum == expected {
            true => Ok(()),
            false => Err(format!("a frame gave {sum} instead of {expected}")),
        }
    }

    /// What a frame adds up to: each piece gives its number.
    pub(super) fn checksum(&self) -> u64 {
        self.pieces * self.pieces.saturating_sub(1) / 2
    }
}

impl Frames {
    /// How many ended after the next one was due.
    pub(super) fn missed(&self, period: Nanos) -> usize {
        let late = |&&since_due: &&f64| since_due > period.0 as f64;
        self.since_due.iter().filter(late).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Alone;

    impl Pieces for Alone {
        fn sum(&self, pieces: u64, piece: Piece) -> u64 {
            (0..pieces).map(|number| piece.run(number)).sum()
        }
    }

    struct Forgetful;

    impl Pieces for Forgetful {
        fn sum(&self, pieces: u64, piece: Piece) -> u64 {
            (1..pieces - 1).map(|number| piece.run(number)).sum()
        }
    }

    const LOOP: FrameLoop = FrameLoop {
        frames: 4,
        warm_up: 2,
        period: Nanos::from_micros(200),
        pieces: 10,
        piece: Nanos::ZERO,
        pause: Pause::Sleep,
    };

    /// Goal: there is a number for every measured frame, none ends before it began or was due, and
    /// CPU time is counted where it can be. Method: a short loop on the calling thread.
    #[test]
    fn every_measured_frame_has_its_times() {
        let frames = LOOP.run(&Alone, Busy::NONE).unwrap();
        assert_eq!((frames.lasted.len(), frames.since_due.len()), (4, 4));
        let both = frames.lasted.iter().zip(&frames.since_due);
        assert!(both.into_iter().all(|(lasted, since)| lasted <= since));
        assert_eq!(frames.cpu.is_some(), process_cpu().is_some());
    }

    /// Goal: a frame that left out work is an error with both sums. Method: a pool that forgets the
    /// first and the last piece.
    #[test]
    fn a_forgotten_piece_is_found() {
        let wrong = LOOP.run(&Forgetful, Busy::NONE).unwrap_err();
        assert_eq!(wrong, "a frame gave 36 instead of 45");
    }

    /// Goal: a frame is missed if the next one was due before its end, and not at that moment.
    /// Method: one of each.
    #[test]
    fn a_frame_is_missed_after_its_period() {
        let frames = Frames {
            since_due: vec![99.0, 100.0, 101.0, 250.0],
            ..Frames::default()
        };
        assert_eq!(frames.missed(Nanos(100)), 2);
    }
}
