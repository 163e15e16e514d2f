//! Goal: the model checker behind the facade sees weak memory as C11 has it, and its parker, lock,
//! spin and thread-local word keep the facade's contracts.
//! Method: litmus tests in pairs, one that must hold and one with the decisive part weakened, which
//! must fail; outcomes that are allowed are counted outside the model and must have been seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as HostU64, Ordering as Host};

use event::Nanos;
use paceline_testkit::Loom;
use paceline_testkit::loom::{expect_bug, model};
use platform::{Atomic, Lock, Memory, Ordering, Parker, Platform, SharedCell, Thread, ThreadSpec};

type Word = <Loom as Memory>::AtomicU64;
type LoomThread = <Loom as Platform>::Thread;

fn word(value: u64) -> Arc<Word> {
    Arc::new(Word::new(value))
}

fn start(body: impl FnOnce() + Send + 'static) -> LoomThread {
    Loom.spawn(ThreadSpec::default(), Box::new(body))
        .expect("the model has a thread left")
}

/// Each of two threads writes its own word and reads the other's. Counts the executions in which
/// both read the old value.
fn store_buffering(fenced: bool) -> u64 {
    let both_old = Arc::new(HostU64::new(0));
    let counter = both_old.clone();
    model(3, move || {
        let (x, y, result) = (word(0), word(0), word(9));
        let (x2, y2, result2) = (x.clone(), y.clone(), result.clone());
        let side = move |mine: &Word, other: &Word| {
            mine.store(1, Ordering::Relaxed);
            if fenced {
                Loom::fence(Ordering::SeqCst);
            }
            other.load(Ordering::Relaxed)
        };
        let other = start(move || result2.store(side(&y2, &x2), Ordering::Relaxed));
        let mine = side(&x, &y);
        other.join().unwrap();
        if mine == 0 && result.load(Ordering::Relaxed) == 0 {
            counter.fetch_add(1, Host::Relaxed);
        }
    });
    both_old.load(Host::Relaxed)
}

#[test]
fn store_buffering_is_seen_without_the_full_fence_and_not_with_it() {
    assert!(store_buffering(false) > 0);
    assert_eq!(store_buffering(true), 0);
}

struct Mail {
    full: Word,
    letter: <Loom as Memory>::Cell<u64>,
}

// SAFETY: the letter is written before `full` is set and read after it was seen set; the tests ask the model
// checker whether the orderings make that true.
unsafe impl Sync for Mail {}

fn message_passing(publish: Ordering, look: Ordering) {
    let mail = Arc::new(Mail {
        full: Word::new(0),
        letter: SharedCell::new(0),
    });
    let theirs = mail.clone();
    let sender = start(move || {
        // SAFETY: the receiver does not touch the letter until `full` is set.
        unsafe { theirs.letter.with_mut(|letter| *letter = 42) };
        theirs.full.store(1, publish);
    });
    if mail.full.load(look) == 1 {
        // SAFETY: the sender is done with the letter once `full` is set.
        assert_eq!(unsafe { mail.letter.with(|letter| *letter) }, 42);
    }
    sender.join().unwrap();
}

#[test]
fn a_message_is_passed_by_release_and_acquire_and_by_nothing_less() {
    assert!(model(3, || message_passing(Ordering::Release, Ordering::Acquire)) > 1);
    for (publish, look) in [
        (Ordering::Relaxed, Ordering::Acquire),
        (Ordering::Release, Ordering::Relaxed),
    ] {
        let said = expect_bug(3, move || message_passing(publish, look));
        assert!(said.contains("Causality violation"), "{said}");
    }
}

/// A sleeper that looks for work once more before it parks, and a waker that looks for sleepers
/// after it has published: right if both have a full fence in between.
fn sleep_and_wake(fenced: bool, publish: Ordering) {
    let (work, sleeping, parker) = (word(0), word(0), Arc::new(Loom.parker()));
    let (work2, sleeping2, parker2) = (work.clone(), sleeping.clone(), parker.clone());
    let fence = move || {
        if fenced {
            Loom::fence(Ordering::SeqCst);
        }
    };
    let sleeper = start(move || {
        sleeping2.store(1, Ordering::Relaxed);
        fence();
        while work2.load(Ordering::Acquire) == 0 {
            parker2.park(Nanos::MAX);
        }
    });
    work.store(1, publish);
    fence();
    if sleeping.load(Ordering::Relaxed) == 1 {
        parker.unpark();
    }
    sleeper.join().unwrap();
}

#[test]
fn a_lost_wake_up_is_a_deadlock() {
    model(3, || sleep_and_wake(true, Ordering::Release));
    let said = expect_bug(3, || sleep_and_wake(false, Ordering::Release));
    assert!(said.contains("deadlock"), "{said}");
}

/// Goal: the parker makes no edge that the OS's does not make. Method: the parked thread writes
/// plain data before it parks and never says so; that unparking it orders the data must be refused.
#[test]
fn unparking_does_not_acquire_what_the_sleeper_wrote() {
    let said = expect_bug(3, || {
        let mail = Arc::new(Mail {
            full: Word::new(0),
            letter: SharedCell::new(0),
        });
        let parker = Arc::new(Loom.parker());
        let (mail2, parker2) = (mail.clone(), parker.clone());
        let sleeper = start(move || {
            // SAFETY: a race on purpose, for the model checker to find.
            unsafe { mail2.letter.with_mut(|letter| *letter = 1) };
            parker2.park(Nanos::MAX);
        });
        if parker.unpark() {
            // SAFETY: as above.
            unsafe { mail.letter.with(|letter| *letter) };
        }
        sleeper.join().unwrap();
    });
    assert!(said.contains("Causality violation"), "{said}");
}

#[test]
fn what_was_written_before_unparking_is_seen_after_parking() {
    model(3, || {
        let (parker, data) = (Arc::new(Loom.parker()), word(0));
        let (parker2, data2) = (parker.clone(), data.clone());
        let waker = start(move || {
            data2.store(1, Ordering::Relaxed);
            parker2.unpark();
        });
        while data.load(Ordering::Relaxed) == 0 {
            parker.park(Nanos::MAX);
        }
        waker.join().unwrap();
    });
}

#[test]
fn a_parker_holds_one_token_and_a_timed_park_returns() {
    model(3, || {
        let parker = Loom.parker();
        assert!(!parker.unpark());
        assert!(!parker.unpark(), "two tokens are one");
        parker.park(Nanos::MAX);
        parker.park(Nanos::ZERO);
        parker.park(Nanos(5));
    });
    let said = expect_bug(3, || {
        let parker = Loom.parker();
        parker.unpark();
        parker.park(Nanos::MAX);
        // The second may return spuriously, in some executions; the third does not.
        parker.park(Nanos::MAX);
        parker.park(Nanos::MAX);
    });
    assert!(said.contains("deadlock"), "{said}");
}

#[test]
fn spinning_lets_the_writer_run() {
    model(3, || {
        let flag = word(0);
        let theirs = flag.clone();
        let writer = start(move || theirs.store(1, Ordering::Release));
        while Loom::spin_until(&flag, |value| value == 1, Nanos::MAX) == 0 {}
        writer.join().unwrap();
    });
}

#[test]
fn a_lock_excludes_and_locks_in_two_orders_deadlock() {
    model(3, || {
        let counter = Arc::new(<Loom as Memory>::Lock::new(0));
        let theirs = counter.clone();
        let other = start(move || theirs.with(|n| *n += 1));
        counter.with(|n| *n += 1);
        other.join().unwrap();
        assert_eq!(counter.with(|n| *n), 2);
    });
    let said = expect_bug(3, || {
        let (a, b) = (
            Arc::new(<Loom as Memory>::Lock::new(())),
            Arc::new(<Loom as Memory>::Lock::new(())),
        );
        let (a2, b2) = (a.clone(), b.clone());
        let other = start(move || a2.with(|()| b2.with(|()| ())));
        b.with(|()| a.with(|()| ()));
        other.join().unwrap();
    });
    assert!(said.contains("deadlock"), "{said}");
}

/// Goal: `at_exit` runs on the thread it belongs to, before `join` returns. Method: the word points
/// to a modelled atomic that the destructor raises.
#[test]
fn a_word_s_destructor_runs_before_join_returns() {
    /// # Safety
    /// As `Platform::set_local` demands: once for each word that was set, which is a reference count.
    unsafe fn raise(word: *const ()) {
        assert!(
            Loom.local().is_null(),
            "the word is taken out before its destructor runs"
        );
        // SAFETY: the test leaks one reference count of the word for this call.
        let word = unsafe { Arc::from_raw(word.cast::<Word>()) };
        word.fetch_add(1, Ordering::Relaxed);
    }
    model(3, || {
        let raised = word(0);
        let theirs = raised.clone();
        let thread = start(move || {
            assert!(Loom.local().is_null());
            let pointer = Arc::into_raw(theirs).cast();
            Loom.set_local(pointer, raise);
            assert_eq!(Loom.local(), pointer);
        });
        thread.join().unwrap();
        assert_eq!(raised.load(Ordering::Relaxed), 1);
        assert!(Loom.local().is_null(), "every thread has its own word");
    });
}

#[test]
#[should_panic(expected = "the planted bug was not found")]
fn a_bug_that_is_not_there_is_not_found() {
    expect_bug(2, || assert_eq!(word(1).load(Ordering::Relaxed), 1));
}
