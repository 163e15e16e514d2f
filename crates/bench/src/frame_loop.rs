//! A loop of frames as a display paces it, for the rows `frame`, `load` and `idle`.
//!
//! A frame is one parallel loop over equal pieces of work. The thread that calls it sleeps until the frame is
//! due. The length of a frame is from the moment when that thread is awake and begins the loop to the loop's
//! end. The moment when it was due is noted as well, because only that decides whether it came in time.

use std::time::Duration;

use event::Nanos;
use platform::{Os, Platform};
use workload::busy::Busy;

use measure::process_cpu;
use workload::pace::{Pace, Pause};

/// 60 frames a second.
pub(crate) const PERIOD: Nanos = Nanos(16_666_667);

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLoop {
    /// The number of measured frames.
    pub(crate) frames: usize,
    /// The number of frames before these.
    pub(crate) warm_up: usize,
    pub(crate) period: Nanos,
    /// The number of pieces of work in a frame.
    pub(crate) pieces: u64,
    /// The length of each piece on one thread.
    pub(crate) piece: Nanos,
    /// How the calling thread passes the time between frames.
    pub(crate) pause: Pause,
}

/// The times of a run in nanoseconds, a number for each measured frame.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// From the beginning of each frame to its end.
    pub(crate) lasted: Vec<f64>,
    /// From the moment when each frame was due to its end.
    pub(crate) since_due: Vec<f64>,
    /// CPU time of the whole process per frame, from the beginning of the first frame to the moment when the
    /// one after the last is due. So the time that a pool uses between frames counts. None: this system does
    /// not count it.
    pub(crate) cpu: Option<f64>,
}

/// A piece of work. It borrows nothing, so that it can go to threads that outlive the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) busy: Busy,
    /// Its length on one thread.
    pub(crate) length: Nanos,
}

impl Piece {
    /// Does the piece of this number and gives the number back.
    pub(crate) fn run(&self, number: u64) -> u64 {
        self.busy.spin_for(self.length, number);
        number
    }
}

/// A pool that runs frames: the sum of `piece` for each number below `pieces`.
pub(crate) trait Pieces {
    fn sum(&self, pieces: u64, piece: Piece) -> u64;
}

impl FrameLoop {
    /// Runs the frames from the calling thread and checks the result of each.
    pub(crate) fn run(&self, pool: &dyn Pieces, busy: Busy) -> Result<Frames, String> {
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
    pub(crate) fn frame(&self, pool: &dyn Pieces, busy: Busy) -> Result<(), String> {
        let length = self.piece;
        let sum = pool.sum(self.pieces, Piece { busy, length });
        let expected = self.checksum();
        if sum == expected {
            Ok(())
        } else {
            Err(format!("a frame gave {sum} instead of {expected}"))
        }
    }

    /// The sum of a frame: each piece gives its number.
    pub(crate) fn checksum(&self) -> u64 {
        self.pieces * self.pieces.saturating_sub(1) / 2
    }
}

impl Frames {
    /// The number of frames that ended after the next one was due.
    pub(crate) fn missed(&self, period: Nanos) -> usize {
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

    /// Goal: every measured frame has its numbers, none ends before it began or was due, and CPU time is
    /// counted where the system can. Method: a short loop on the calling thread.
    #[test]
    fn every_measured_frame_has_its_times() {
        let frames = LOOP.run(&Alone, Busy::NONE).unwrap();
        assert_eq!((frames.lasted.len(), frames.since_due.len()), (4, 4));
        let both = frames.lasted.iter().zip(&frames.since_due);
        assert!(both.into_iter().all(|(lasted, since)| lasted <= since));
        assert_eq!(frames.cpu.is_some(), process_cpu().is_some());
    }

    /// Goal: a frame that left out work is an error with both sums. Method: a pool that forgets the first and
    /// the last piece.
    #[test]
    fn a_forgotten_piece_is_found() {
        let wrong = LOOP.run(&Forgetful, Busy::NONE).unwrap_err();
        assert_eq!(wrong, "a frame gave 36 instead of 45");
    }

    /// Goal: a frame is missed if the next one was due before its end, and not at that moment. Method: one of
    /// each.
    #[test]
    fn a_frame_is_missed_after_its_period() {
        let frames = Frames {
            since_due: vec![99.0, 100.0, 101.0, 250.0],
            ..Frames::default()
        };
        assert_eq!(frames.missed(Nanos(100)), 2);
    }
}
