//! Goal: a piece of an idempotent job that is run twice counts once, and what ends the job sees the results
//! of all pieces.
//! Method: the pieces alone, by the real code. One thread takes a piece and runs it, another one repeats it,
//! if it may, and takes what is left. The end notes the results that it is given. The checker sees the
//! accesses to the results. Then two threads would repeat the same piece. And a thread that waits helps with
//! a piece that reads what another thread has written, which then begins as a participant.
//! Bounds: two threads, one piece or two, three preemptions. Planted bugs: a thread counts its piece without
//! AcqRel; a run does not say that its piece is decided; two threads repeat a piece; a participant that
//! begins publishes nothing.

use std::sync::Arc;

use event::Nanos;
use platform::{Ordering, Platform, SharedCell};

use super::{Notes, Ordered, Part, RACE, Spoil, Spoiled, check, must_find, spoiled, together};
use crate::work::{Pieces, Repeat, RepeatEnd};

const SYMPTOM: &str = "the job's results";

const BEGUN: &str = "how often a piece was begun";

/// One thread takes pieces, and so does the other one, which repeats the first one before.
fn taken_and_repeated<P: Platform>(first: usize, count: usize) {
    let ends = Notes::new();
    let noted = ends.clone();
    let on_end = Box::new(move |end: RepeatEnd<usize>| {
        if let RepeatEnd::Done(results) = end {
            noted.add(results);
        }
    });
    let body = |part: std::ops::Range<usize>| part.start;
    let pieces = Pieces::<P, usize, _>::new((0..count, 1), 2, Nanos::ZERO, body, on_end);
    let pieces = Arc::new(pieces);
    let (one, other) = (pieces.clone(), pieces.clone());
    let takes = Box::new(move || {
        while let Some(piece) = one.take() {
            one.run(piece);
        }
    }) as Part;
    let repeats = Box::new(move || {
        if other.repeats(0) {
            other.run(0);
        }
        while let Some(piece) = other.take() {
            other.run(piece);
        }
    });
    together(first, [takes, repeats]);
    drop(pieces);
    let all: Vec<usize> = (0..count).collect();
    assert_eq!(ends.take(), [all], "{SYMPTOM}");
}

/// A thread takes a piece, and two others would repeat it.
fn repeated_by_two<P: Platform>(first: usize) {
    let begun = Notes::new();
    let noted = begun.clone();
    let body = move |_| noted.add(0);
    let pieces = Pieces::<P, (), _>::new((0..1, 1), 2, Nanos::ZERO, body, Box::new(drop));
    let pieces = Arc::new(pieces);
    let piece = pieces.take().expect("there is one");
    let part = || {
        let pieces = pieces.clone();
        Box::new(move || {
            if pieces.repeats(piece) {
                pieces.run(piece);
            }
        }) as Part
    };
    together(first, [part(), part()]);
    pieces.run(piece);
    assert_eq!(begun.take().len(), 2, "{BEGUN}");
}

/// What a job waits for.
struct Earlier<P: Platform>(P::Cell<usize>);

// SAFETY: the checker is asked whether the accesses are ordered.
unsafe impl<P: Platform> Sync for Earlier<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Send for Earlier<P> {}

/// A participant begins after what the job waits for, and a waiting thread helps.
fn helped_after_what_is_earlier<P: Platform>(platform: P, first: usize) {
    let earlier = Arc::new(Earlier::<P>(P::Cell::new(0)));
    let ends = Notes::new();
    let noted = ends.clone();
    let on_end = Box::new(move |end: RepeatEnd<usize>| {
        if let RepeatEnd::Done(results) = end {
            noted.add(results);
        }
    });
    let read = earlier.clone();
    // SAFETY: see `Earlier`.
    let body = move |_| unsafe { read.0.with(|earlier| *earlier) };
    let pieces = Pieces::<P, usize, _>::new((0..2, 1), 2, Nanos::ZERO, body, on_end);
    let pieces = Arc::new(pieces);
    let (one, other, waits) = (pieces.clone(), pieces.clone(), platform.clone());
    let participates = Box::new(move || {
        // SAFETY: see `Earlier`.
        unsafe { earlier.0.with_mut(|earlier| *earlier = 1) };
        one.take_part(&platform);
    }) as Part;
    let helps = Box::new(move || {
        Repeat::help(&*other, &waits);
    });
    together(first, [participates, helps]);
    drop(pieces);
    assert_eq!(ends.take(), [[1, 1]], "{SYMPTOM}");
}

/// Counting a piece publishes nothing.
#[derive(Clone, Copy)]
struct NotReleased;

impl Spoil for NotReleased {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["repeat/pieces.rs"];
    fn change(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// A run does not say that it has decided its piece.
#[derive(Clone, Copy)]
struct NotDecided;

impl Spoil for NotDecided {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["repeat/pieces.rs"];
    fn operand(_: u64) -> u64 {
        0
    }
}

/// Who repeats a piece is decided by a load and a store.
#[derive(Clone, Copy)]
struct TornRepeat;

impl Spoil for TornRepeat {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["repeat/pieces.rs"];
    const TORN: bool = true;
}

#[test]
fn a_piece_that_is_repeated_counts_once() {
    for count in [1, 2] {
        check(3, 2, move |first| {
            taken_and_repeated::<Spoiled>(first, count);
        });
    }
}

#[test]
fn a_piece_is_repeated_by_one_thread() {
    check(3, 2, |first| {
        spoiled::<Ordered>(|| repeated_by_two::<Spoiled>(first))
    });
}

#[test]
fn a_waiting_thread_begins_after_what_is_earlier() {
    check(3, 2, |first| {
        helped_after_what_is_earlier(Spoiled::by::<Ordered>(), first);
    });
}

/// A participant that begins publishes nothing.
#[derive(Clone, Copy)]
struct EntersInSilence;

impl Spoil for EntersInSilence {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["repeat/pieces.rs"];
    fn change(_: u64, order: Ordering) -> Ordering {
        match order {
            // Partner: the Acquire in `help`.
            Ordering::Release => Ordering::Relaxed,
            order => order,
        }
    }
}

#[test]
fn a_participant_that_begins_in_silence_is_found() {
    // The checker panics in the body, which ends the job.
    must_find(SYMPTOM, 3, || {
        helped_after_what_is_earlier(Spoiled::by::<EntersInSilence>(), 0);
    });
}

#[test]
fn a_piece_that_is_counted_in_silence_is_found() {
    must_find(RACE, 3, || {
        spoiled::<NotReleased>(|| taken_and_repeated::<Spoiled>(0, 2));
    });
}

#[test]
fn a_piece_that_counts_twice_is_found() {
    must_find(RACE, 3, || {
        spoiled::<NotDecided>(|| taken_and_repeated::<Spoiled>(0, 1));
    });
}

#[test]
fn a_piece_that_two_threads_repeat_is_found() {
    must_find(BEGUN, 3, || {
        spoiled::<TornRepeat>(|| repeated_by_two::<Spoiled>(0))
    });
}
