//! The pieces of an idempotent job: taken, run, repeated, decided. The protocol is in the README beside this
//! file.

use std::ops::Range;

use event::Nanos;
use platform::{Atomic, Lock, Machine, Ordering, Platform, SharedCell};

use super::late_work::{LateWork, PieceRun, Repeat};
use crate::border::{Payload, UserValue, caught};

/// How an idempotent job ends.
pub(crate) enum RepeatEnd<R> {
    /// With the results of all pieces, in their order.
    Done(Vec<R>),
    Panicked(Payload),
    /// Some pieces were never run, and none of them will be.
    Gone,
}

/// Called once, with the end of the job.
pub(crate) type OnEnd<R> = Box<dyn FnOnce(RepeatEnd<R>) + Send>;

/// The state of a piece that has been taken or will be: it has begun at most once.
const TAKEN: u64 = 0;
/// It has begun twice.
const REPEATED: u64 = 1;
/// One run of it has ended.
const DECIDED: u64 = 2;

/// A runner that runs nothing.
const NO_PIECE: u64 = u64::MAX;

/// Threads that are on a CPU, pieces whose length is not known, and jobs that have not begun, are looked at
/// again after this time.
const LOOK_AGAIN: Nanos = Nanos::from_micros(100);

/// What a thread runs that takes part: hints.
struct Runner<P: Platform> {
    /// The system's number of the thread.
    thread: P::AtomicU64,
    piece: P::AtomicU64,
    since: P::AtomicU64,
}

/// A piece.
struct Piece<P: Platform, R> {
    state: P::AtomicU64,
    result: P::Cell<Option<R>>,
}

/// See the README.
pub(crate) struct Pieces<P: Platform, R: Send, F> {
    body: F,
    items: Range<usize>,
    /// How many items are in a piece; the last one may have fewer.
    size: usize,
    pieces: Box<[Piece<P, R>]>,
    next: P::AtomicU64,
    left: P::AtomicU64,
    runners: Box<[Runner<P>]>,
    /// How many of the runners are in use, or more.
    entered: P::AtomicU64,
    /// When a waiting thread has first looked before the job had begun; 0 if none has.
    looked_at: P::AtomicU64,
    /// How long a piece takes, in ns; 0 while that is not known.
    typical: P::AtomicU64,
    on_end: P::Lock<Option<OnEnd<R>>>,
}

// SAFETY: the body is shared by reference only (F: Sync). A result is written by the thread that has decided
// the piece (`decide`), and read by the one that brought `left` to zero, after all of them (`keep`); then it
// moves to that thread (R: Send).
unsafe impl<P: Platform, R: Send, F: Send + Sync> Sync for Pieces<P, R, F> {}
// SAFETY: as above; the results are R: Send.
unsafe impl<P: Platform, R: Send, F: Send> Send for Pieces<P, R, F> {}

impl<P: Platform, R: Send, F: Fn(Range<usize>) -> R> Pieces<P, R, F> {
    /// `size`: how many items are in a piece. `threads`: how many can take part, at most. `typical`: how long
    /// a piece takes; 0 if that is not known.
    pub(crate) fn new(
        (items, size): (Range<usize>, usize),
        threads: usize,
        typical: Nanos,
        body: F,
        on_end: OnEnd<R>,
    ) -> Pieces<P, R, F> {
        let size = size.max(1);
        let count = items.len().div_ceil(size);
        let piece = |_| Piece {
            state: P::AtomicU64::new(TAKEN),
            result: P::Cell::new(None),
        };
        let runner = |_| Runner {
            thread: P::AtomicU64::new(0),
            piece: P::AtomicU64::new(NO_PIECE),
            since: P::AtomicU64::new(0),
        };
        Pieces {
            body,
            items,
            size,
            pieces: (0..count).map(piece).collect(),
            next: P::AtomicU64::new(0),
            left: P::AtomicU64::new(count as u64),
            runners: (0..threads).map(runner).collect(),
            entered: P::AtomicU64::new(0),
            looked_at: P::AtomicU64::new(0),
            typical: P::AtomicU64::new(typical.0),
            on_end: P::Lock::new(Some(on_end)),
        }
    }

    /// Runs pieces until none is left that no thread has begun. Returns how many drops panicked.
    pub(crate) fn take_part(&self, platform: &P) -> u64 {
        if self.pieces.is_empty() {
            self.end(RepeatEnd::Done(Vec::new()));
        }
        let Some(runner) = self.enter(platform) else {
            return 0; // There are words for no more.
        };
        let mut drop_panics = 0;
        let mut since = platform.now();
        while let Some(piece) = self.take() {
            // Relaxed, both: hints.
            runner.since.store(since.0, Ordering::Relaxed);
            runner.piece.store(piece as u64, Ordering::Relaxed);
            let run = self.run(piece);
            let now = platform.now();
            drop_panics += run.drop_panics;
            if run.counts && self.part(piece).len() == self.size {
                self.learn(now - since);
            }
            since = now;
        }
        // Relaxed: as above.
        runner.piece.store(NO_PIECE, Ordering::Relaxed);
        drop_panics
    }

    /// How long a piece takes, as far as it is known.
    pub(crate) fn typical(&self) -> Nanos {
        // Relaxed: a statistic.
        Nanos(self.typical.load(Ordering::Relaxed))
    }

    fn enter(&self, platform: &P) -> Option<&Runner<P>> {
        // Release, partner: the Acquire load in `help`. A waiting thread that runs a body sees what a
        // participant has seen: what the job waits for is over.
        let number = self.entered.fetch_add(1, Ordering::Release);
        let runner = self.runners.get(usize::try_from(number).ok()?)?;
        // Relaxed: a hint.
        runner.thread.store(platform.thread_id(), Ordering::Relaxed);
        Some(runner)
    }

    /// Takes a piece that no thread has begun.
    pub(crate) fn take(&self) -> Option<usize> {
        if !self.has_fresh() {
            return None; // Or the number would grow with each look.
        }
        // Relaxed: it only hands out numbers.
        let piece = self.next.fetch_add(1, Ordering::Relaxed) as usize;
        (piece < self.pieces.len()).then_some(piece)
    }

    fn has_fresh(&self) -> bool {
        // Relaxed: `take` decides.
        self.next.load(Ordering::Relaxed) < self.pieces.len() as u64
    }

    /// The items of a piece.
    fn part(&self, piece: usize) -> Range<usize> {
        let start = self.items.start + piece * self.size;
        start..self.items.end.min(start.saturating_add(self.size))
    }

    /// Whether the caller is the one that runs this piece a second time.
    pub(crate) fn repeats(&self, piece: usize) -> bool {
        let state = &self.pieces[piece].state;
        // Relaxed, both: it only decides which thread that is.
        let repeated =
            state.compare_exchange(TAKEN, REPEATED, Ordering::Relaxed, Ordering::Relaxed);
        repeated.is_ok()
    }

    /// Runs a piece that the caller has taken or repeats.
    pub(crate) fn run(&self, piece: usize) -> PieceRun {
        let outcome = caught(|| (self.body)(self.part(piece)));
        if !self.decide(piece) {
            let drop_panics = match outcome {
                Ok(result) => UserValue::new(result).discard(),
                Err(payload) => payload.discard(),
            };
            return PieceRun {
                counts: false,
                drop_panics,
            };
        }
        match outcome {
            Ok(result) => self.keep(piece, result),
            Err(payload) => {
                // Relaxed: pieces that are taken at this moment are run for nothing.
                let none = self.pieces.len() as u64;
                self.next.store(none, Ordering::Relaxed);
                self.end(RepeatEnd::Panicked(payload));
            }
        }
        PieceRun {
            counts: true,
            drop_panics: 0,
        }
    }

    /// Whether this is the first run of the piece that has ended.
    fn decide(&self, piece: usize) -> bool {
        // Relaxed: the results are ordered by `left`.
        self.pieces[piece].state.swap(DECIDED, Ordering::Relaxed) != DECIDED
    }

    /// The caller has decided the piece.
    fn keep(&self, piece: usize, result: R) {
        // SAFETY: only the thread that has decided the piece comes here, and it has not counted that yet.
        unsafe {
            self.pieces[piece]
                .result
                .with_mut(|place| *place = Some(result));
        }
        // AcqRel, partner: the subtractions of the other threads: the last one sees all results.
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: each piece is decided and its result is written; no thread comes here again.
            let take =
                |piece: &Piece<P, R>| unsafe { piece.result.with_mut(|place| (*place).take()) };
            let results = self.pieces.iter().filter_map(take).collect();
            self.end(RepeatEnd::Done(results));
        }
    }

    /// A piece took this time. Short times count for more: a long one is that of a thread which was
    /// interrupted.
    fn learn(&self, took: Nanos) {
        let known = self.typical().0;
        let typical = match known {
            0 => took.0,
            known if took.0 < known => known - (known - took.0) / 2,
            known => known + (took.0.min(2 * known) - known) / 8,
        };
        // Relaxed: a statistic.
        self.typical.store(typical.max(1), Ordering::Relaxed);
    }

    /// The first piece that is late and has not been repeated, which is the caller's then; or when to look
    /// again.
    pub(crate) fn take_late(&self, platform: &P) -> Result<usize, Nanos> {
        let (now, me) = (platform.now(), platform.thread_id());
        let mut look_at = Nanos::MAX;
        for runner in &self.runners {
            // Relaxed, all: hints, which may belong to two pieces.
            let piece = runner.piece.load(Ordering::Relaxed);
            let since = Nanos(runner.since.load(Ordering::Relaxed));
            let thread = runner.thread.load(Ordering::Relaxed);
            let Some(state) = self.pieces.get(piece as usize).map(|piece| &piece.state) else {
                continue;
            };
            if state.load(Ordering::Relaxed) != TAKEN || thread == me {
                continue;
            }
            let due = match self.typical() {
                Nanos(0) => Nanos::MAX,
                typical => since + Nanos(2 * typical.0),
            };
            if now < due && due != Nanos::MAX {
                look_at = look_at.min(due);
                continue;
            }
            if due == Nanos::MAX || platform.machine().is_on_cpu(thread) != Some(false) {
                look_at = look_at.min(now + LOOK_AGAIN.max(Nanos((now - since).0 / 2)));
                continue;
            }
            if self.repeats(piece as usize) {
                return Ok(piece as usize);
            }
        }
        Err(look_at)
    }
}

impl<P: Platform, R: Send, F> Pieces<P, R, F> {
    /// When to look again whether the job has begun: less and less often.
    fn look_for_begin(&self, now: Nanos) -> Nanos {
        // Relaxed, both: a hint.
        let first = match self.looked_at.load(Ordering::Relaxed) {
            0 => now.0,
            first => first,
        };
        self.looked_at.store(first, Ordering::Relaxed);
        now + LOOK_AGAIN.max(Nanos((now.0 - first.min(now.0)) / 2))
    }

    /// The job ends, unless it has.
    fn end(&self, end: RepeatEnd<R>) {
        if let Some(on_end) = self.on_end.with(Option::take) {
            on_end(end);
        }
    }
}

impl<P: Platform, R: Send, F> Drop for Pieces<P, R, F> {
    fn drop(&mut self) {
        self.end(RepeatEnd::Gone);
    }
}

impl<P, R, F> Repeat<P> for Pieces<P, R, F>
where
    P: Platform,
    R: Send,
    F: Fn(Range<usize>) -> R + Send + Sync,
{
    fn help(&self, platform: &P) -> LateWork {
        // Acquire, partner: the Release in `enter`. The participants are jobs that come after what this one
        // waits for. Until one of them has begun, no piece may.
        let entered = self.entered.load(Ordering::Acquire);
        if entered == 0 {
            return LateWork::LookAt(self.look_for_begin(platform.now()));
        }
        if self.has_fresh() && entered < self.runners.len() as u64 {
            return LateWork::TookPart(self.take_part(platform));
        }
        match self.take_late(platform) {
            Ok(piece) => LateWork::Repeated(self.run(piece)),
            Err(look_at) => LateWork::LookAt(look_at),
        }
    }
}
