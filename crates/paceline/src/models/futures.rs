//! Goal: a future is polled after each of its wake-ups, and sees what the wake-up was for; its job is made
//! ready once for each poll; and a waker that is called late does nothing to the next job of the slot.
//! Method: one thread runs the job of a future that has been woken before, and that is pending or ready then.
//! Another thread writes what the future looks for, and calls the waker. Afterwards all ready jobs are run.
//! By the real code of `work/future`, `graph` and `run`. Bounds: two threads, one future, three preemptions.
//! Planted bugs: the end of a poll is a load and a store, so that it forgets a wake-up in between; a wake-up
//! that publishes nothing, so that the poll after it sees nothing new; the beginning of a poll does not say
//! that the future is polled, so that a late wake-up releases a job.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};

use platform::{Atomic, Lock, Memory, Ordering, Os, Platform};

use super::{
    Ordered, Part, Site, Spoil, Spoiled, Word32, check, held_job, must_find, must_find_or_assert,
    parts, site_of, together,
};
use crate::store::Ticket;

/// What a future waits for. The waker is no part of the model.
#[derive(Clone)]
struct Signal {
    given: Arc<Word32>,
    waker: Arc<<Os as Memory>::Lock<Option<Waker>>>,
}

impl Signal {
    fn new() -> Signal {
        Signal {
            given: Arc::new(Word32::new(0)),
            waker: Arc::new(Lock::new(None)),
        }
    }

    /// Relaxed: the waker orders it.
    fn give(&self) {
        self.given.store(1, Ordering::Relaxed);
    }

    fn waker(&self) -> Waker {
        let waker = self.waker.with(|waker| waker.clone());
        waker.expect("the future has been polled")
    }
}

impl Future for Signal {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<()> {
        let waker = task.waker().clone();
        self.waker.with(|known| _ = known.get_or_insert(waker));
        match self.given.load(Ordering::Relaxed) {
            0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

/// A job system, and a future that was polled once, is pending, and has been woken.
fn woken<P: Platform>(platform: P) -> (Site<P>, Signal, Ticket) {
    let (site, signal) = (site_of(parts(platform, 4, 0, 3)), Signal::new());
    let context = site.shared.context().expect("there is a slot");
    let job = context.job("future").run_future(signal.clone());
    let ticket = job.id().ticket();
    drop(job);
    assert!(context.run_any());
    signal.waker().wake();
    (site, signal, ticket)
}

/// Runs ready jobs on a thread of its own.
fn runner<P: Platform>(site: &Site<P>, then: impl FnOnce(&Site<P>) + Send + 'static) -> Part {
    let site = site.clone();
    Box::new(move || {
        let context = site.shared.context().expect("there is a slot");
        while context.run_any() {}
        then(&site);
    })
}

const LOST: &str = "the future is never polled again";

fn wake_while_it_is_polled<P: Platform>(platform: P, first: usize) {
    let (site, signal, job) = woken(platform);
    let giver = signal.clone();
    let waker = Box::new(move || {
        giver.give();
        giver.waker().wake();
    });
    together(first, [runner(&site, |_| ()), waker]);
    let context = site.shared.context().expect("there is a slot");
    while context.run_any() {}
    assert!(site.shared.slot(job).is_over(job), "{LOST}");
}

#[test]
fn a_wake_up_is_followed_by_a_poll() {
    check(3, 2, |first| {
        wake_while_it_is_polled(Spoiled::by::<Ordered>(), first);
    });
}

/// The end of a poll is a load and a store.
#[derive(Clone, Copy)]
struct Torn;

impl Spoil for Torn {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["work/future.rs"];
    const TORN: bool = true;
}

#[test]
fn a_torn_end_of_a_poll_loses_a_wake_up() {
    must_find(LOST, 3, || {
        wake_while_it_is_polled(Spoiled::by::<Torn>(), 0);
    });
}

/// The bits of the word.
const WOKEN: u64 = 1;
const POLLING: u64 = 1 << 1;

/// A wake-up orders nothing.
#[derive(Clone, Copy)]
struct Unpublished;

impl Spoil for Unpublished {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["work/future.rs"];
    fn change(operand: u64, order: Ordering) -> Ordering {
        if operand == WOKEN {
            Ordering::Relaxed
        } else {
            order
        }
    }
}

#[test]
fn a_wake_up_that_publishes_nothing_is_in_vain() {
    must_find(LOST, 3, || {
        wake_while_it_is_polled(Spoiled::by::<Unpublished>(), 0);
    });
}

fn wake_while_it_ends<P: Platform>(platform: P, first: usize) {
    let (site, signal, job) = woken(platform);
    signal.give();
    let late = signal.waker();
    let next = runner(&site, move |site| {
        let context = site.shared.context().expect("there is a slot");
        let next = held_job(&context);
        assert_eq!(next.index(), job.index(), "the slot is used again");
    });
    together(first, [next, Box::new(move || late.wake())]);
    let slot = site.shared.slot(job);
    // Relaxed: both threads have ended.
    let next = Ticket::new(job.index(), job.generation() + 1);
    assert_eq!(slot.pending.load(Ordering::Relaxed), 1, "{RELEASED}");
    assert!(!slot.is_over(next), "{RELEASED}");
}

const RELEASED: &str = "the next job of the slot is released";

#[test]
fn a_late_wake_up_changes_nothing() {
    check(3, 2, |first| {
        wake_while_it_ends(Spoiled::by::<Ordered>(), first);
    });
}

/// The beginning of a poll does not say that the future is polled.
#[derive(Clone, Copy)]
struct Silent;

impl Spoil for Silent {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["work/future.rs"];
    fn operand(value: u64) -> u64 {
        match value {
            POLLING => 0,
            _ => value,
        }
    }
}

#[test]
fn without_a_word_from_the_poll_it_releases_the_next_job() {
    must_find_or_assert(["is closed twice", RELEASED], 3, || {
        wake_while_it_ends(Spoiled::by::<Silent>(), 0);
    });
}
