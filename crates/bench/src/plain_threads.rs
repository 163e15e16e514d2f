//! Plain threads that run a frame with the least possible overhead: the cost of a frame on this machine
//! without a job system.
//!
//! The caller wakes each parked thread once. All threads take pieces one by one from a shared counter. A
//! thread that finds no piece left parks at once. The caller spins until the last piece is done. Nothing here
//! steals, splits, nests, or could run other work.
//!
//! Invariant: a thread that has taken a piece reports it before it parks, and the frame waits for the report.
//! So no thread takes a piece of one frame and counts it in another, however late it wakes.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::frame_loop::{Piece, Pieces};
use crate::sleeper::Sleeper;

pub(crate) struct PlainThreads {
    frame: Arc<Frame>,
    sleepers: Vec<Sleeper>,
}

/// The current frame.
struct Frame {
    /// The kind of its pieces; written before there are any to take.
    piece: Mutex<Option<Piece>>,
    /// The number of pieces that no thread has taken. To take one is to count it down; the result is the
    /// number of the piece. Below zero: attempts in vain. The count goes down so that its end needs no second
    /// number, which a late thread could read of another frame.
    left: AtomicI64,
    /// The number of pieces that the sleepers have done.
    done: AtomicU64,
    /// The sum of these.
    sum: AtomicU64,
}

impl PlainThreads {
    /// Starts one thread less than `threads`: the caller is the last.
    pub(crate) fn start(threads: usize) -> Result<PlainThreads, String> {
        let frame = Arc::new(Frame {
            piece: Mutex::new(None),
            left: AtomicI64::new(0),
            done: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        });
        let sleeper = |_| {
            let frame = Arc::clone(&frame);
            Sleeper::start(move || frame.help())
        };
        let sleepers: Result<Vec<Sleeper>, String> = (1..threads).map(sleeper).collect();
        Ok(PlainThreads {
            sleepers: sleepers?,
            frame,
        })
    }
}

impl Pieces for PlainThreads {
    fn sum(&self, pieces: u64, piece: Piece) -> u64 {
        let frame = &self.frame;
        *frame.piece.lock().unwrap_or_else(PoisonError::into_inner) = Some(piece);
        frame.done.store(0, Ordering::Relaxed);
        frame.sum.store(0, Ordering::Relaxed);
        // Release: a thread that takes a piece sees the rest of the frame.
        frame.left.store(pieces as i64, Ordering::Release);
        for sleeper in &self.sleepers {
            sleeper.wake();
        }
        let (mine, sum) = frame.take_all(piece, 0, 0);
        // Acquire: with the Release of `help`; the sum is complete with the last piece.
        while mine + frame.done.load(Ordering::Acquire) < pieces {
            std::hint::spin_loop();
        }
        sum + frame.sum.load(Ordering::Relaxed)
    }
}

impl Frame {
    /// Runs in a sleeper when it is woken.
    fn help(&self) {
        let Some(first) = self.take() else { return };
        // A frame with a piece that is not reported stays the current one.
        let piece = *self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(piece) = piece else { return };
        let (done, sum) = self.take_all(piece, 1, piece.run(first));
        self.sum.fetch_add(sum, Ordering::Relaxed);
        // Release, partner: the Acquire load in `sum`, which sees the sum with the pieces.
        self.done.fetch_add(done, Ordering::Release);
    }

    /// Runs pieces until none is left. Adds their number to `done` and their results to `sum`.
    fn take_all(&self, piece: Piece, mut done: u64, mut sum: u64) -> (u64, u64) {
        while let Some(number) = self.take() {
            sum += piece.run(number);
            done += 1;
        }
        (done, sum)
    }

    fn take(&self) -> Option<u64> {
        // Acquire, partner: the Release store in `sum`. Each decrement continues its release sequence.
        let left = self.left.fetch_sub(1, Ordering::Acquire);
        u64::try_from(left - 1).ok()
    }
}

#[cfg(test)]
mod tests {
    use event::Nanos;
    use workload::busy::Busy;

    use super::*;

    /// Goal: every piece of every frame is run once, however late threads wake. Method: the sums of thousands
    /// of frames in a row without a pause, of different sizes (no piece is one of them), on up to four
    /// threads.
    #[test]
    fn every_piece_is_run_once() {
        let piece = Piece {
            busy: Busy::NONE,
            length: Nanos::ZERO,
        };
        for threads in 1..=4 {
            let plain = PlainThreads::start(threads).unwrap();
            for frame in 0..5_000u64 {
                let pieces = frame % 37;
                let expected = pieces * pieces.saturating_sub(1) / 2;
                assert_eq!(plain.sum(pieces, piece), expected, "{threads}, {frame}");
            }
        }
    }
}
