//! Futures that run as jobs.
//!
//! A future is the body of a job with a result. To run the job is to poll the future. If it is pending, the
//! job waits again, in the same slot, until it is woken ([`hold_from_outside`]); then it is ready like any
//! other job. So a future that is pending holds no thread, and its wake-up needs no memory and cannot fail.
//!
//! If a future awaits a job of the same job system by its handle, that job is noted among its predecessors,
//! without holding it back ([`awaits`](crate::graph::OnGraph::awaits)). A thread that waits for the future
//! finds it there and helps.
//!
//! # The word
//!
//! A waker may be called by any thread, at any time, also after the job system has gone. So what a waker
//! needs is apart from the slot, in a [`FutureWaker`]. Its word says which side makes the job ready:
//!
//! | word | the job | a wake-up |
//! |---|---|---|
//! | IDLE | waits, held back by one | W sets WOKEN, and makes the job ready |
//! | WOKEN | is ready, or is about to be | changes nothing |
//! | POLLING | runs | W sets WOKEN |
//! | POLLING, WOKEN | runs, and will be polled again | changes nothing |
//!
//! POLLING stays when the job ends, so later wake-ups change nothing. A job that is dropped unrun may be
//! IDLE. Its wake-up then releases a job that is never ready, however often it is released (`DROPPED`).
//!
//! ```text
//! wake-up                                    poll
//!   what the future waits for                B  IDLE, WOKEN → POLLING, in exchange for the word
//! W  sets WOKEN, always by an RMW               polls the future; it is pending
//!    it was IDLE: releases the job              the job waits again
//!                                            E  takes POLLING away; WOKEN was there: releases the job
//! ```
//!
//! Of W and E the later one finds the bit of the other, and releases the job; so it is released once. W is an
//! RMW also where it changes nothing. So each wake-up comes before some B in the order of the word, and that
//! poll sees what the wake-up was for. When E lets the next release come, the job waits already.
//!
//! [`hold_from_outside`]: crate::graph::OnGraph::hold_from_outside

use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context as Task, Poll, Wake, Waker};

use platform::{Atomic, Ordering, Platform, SharedCell};

use super::context::Context;
use super::shared::Shared;
use crate::border::{Payload, UserValue, caught};
use crate::graph::Ending;
use crate::queues::Queue;
use crate::store::{Body, BodyTable, Ticket};

/// The future of a job, as its wakers know it.
pub(crate) struct FutureWaker<P: Platform> {
    /// See the module.
    word: P::AtomicU64,
    job: Ticket,
    shared: Weak<Shared<P>>,
}

impl<P: Platform> FutureWaker<P> {
    const IDLE: u64 = 0;
    const WOKEN: u64 = 1;
    const POLLING: u64 = 1 << 1;

    /// B: the job of the future runs.
    fn begin_poll(&self) {
        // Acquire, partner: the Release in `wake_by_ref`: what the wake-up was for.
        self.word.swap(FutureWaker::<P>::POLLING, Ordering::Acquire);
    }

    /// E: the job waits again. Whether the caller has to release it.
    fn end_poll(&self) -> bool {
        // AcqRel, partner: the same in `wake_by_ref`, both ways: the thread that releases the job sees that
        // it waits.
        let before = self
            .word
            .fetch_and(!FutureWaker::<P>::POLLING, Ordering::AcqRel);
        before & FutureWaker::<P>::WOKEN != 0
    }
}

impl<P: Platform> Wake for FutureWaker<P> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // W. AcqRel, partner: the same in `end_poll`, and the Acquire in `begin_poll`.
        let before = self
            .word
            .fetch_or(FutureWaker::<P>::WOKEN, Ordering::AcqRel);
        if before != FutureWaker::<P>::IDLE {
            return;
        }
        if let Some(shared) = self.shared.upgrade()
            && let Ok(context) = shared.context_at_last()
        {
            shared.release_from_outside(&context, self.job);
        }
    }
}

/// The body of a job that is a future. It never moves.
pub(crate) struct FutureBody<P: Platform, F> {
    waker: Arc<FutureWaker<P>>,
    future: F,
}

impl<P: Platform, F> FutureBody<P, F> {
    /// The body of a new job, which is going to be made ready.
    pub(crate) fn new(shared: &Arc<Shared<P>>, job: Ticket, future: F) -> FutureBody<P, F> {
        let waker = Arc::new(FutureWaker {
            word: P::AtomicU64::new(FutureWaker::<P>::WOKEN),
            job,
            shared: Arc::downgrade(shared),
        });
        FutureBody { waker, future }
    }
}

/// One poll of a future.
struct Turn<'c, 'a, P: Platform> {
    cx: &'c Context<'a, P>,
    waker: Cell<Option<Arc<FutureWaker<P>>>>,
    /// The ending of the job. Without one the future is pending.
    ending: Cell<Option<Ending>>,
}

/// The table of a future, which its value replaces in the slot.
pub(crate) struct Polled<P, F>(PhantomData<(P, F)>);

impl<P: Platform, F: Future> Polled<P, F> {
    pub(crate) const TABLE: BodyTable = BodyTable {
        run: |_, context| {
            // SAFETY: the table is stored in a slot of a job system on `P`.
            let context = unsafe { context.get::<Context<'_, P>>() };
            context.run_future(poll::<P, F>);
        },
        join: |_, _, _| unreachable!("only ranges can be joined"),
        discard: |body| {
            // SAFETY: as above. The job will not run any more, so nothing else touches its body.
            unsafe { Body::drop_in_place::<FutureBody<P, F>>(body) };
        },
        drop_result: |body| {
            // SAFETY: `poll` has put a value there.
            drop(unsafe { Body::take::<F::Output>(body) });
        },
    };
}

/// Polls the future in a body, and replaces it by its value.
///
/// # Safety
/// The body holds a `FutureBody`, which the caller has to itself.
unsafe fn poll<P: Platform, F: Future>(body: *mut Body, turn: &Turn<'_, '_, P>) {
    // SAFETY: the caller's promise.
    let place = unsafe { Body::place::<FutureBody<P, F>>(body) };
    // SAFETY: as above; this reference ends with the statement.
    let waker = unsafe { (*place).waker.clone() };
    waker.begin_poll();
    let polled = {
        let waker = Waker::from(waker.clone());
        // SAFETY: as above. The future stays where it is until it is dropped there: its body lies in the
        // slot, or in a box, and is not moved from there.
        let future = unsafe { Pin::new_unchecked(&mut (*place).future) };
        caught(|| future.poll(&mut Task::from_waker(&waker)))
    };
    if !matches!(polled, Ok(Poll::Pending)) {
        // SAFETY: as above; the future is not used again.
        let dropped = caught(|| unsafe { Body::drop_in_place::<FutureBody<P, F>>(body) });
        turn.ending.set(ending(turn.cx, polled, dropped, |value| {
            // SAFETY: the body is empty.
            unsafe { Body::put(body, value) }
        }));
    }
    turn.waker.set(Some(waker));
}

/// How the job of a future ends. `put` takes its value. `dropped`: the drop of the future.
fn ending<P: Platform, T>(
    cx: &Context<'_, P>,
    polled: Result<Poll<T>, Payload>,
    dropped: Result<(), Payload>,
    put: impl FnOnce(T),
) -> Option<Ending> {
    let panics = &cx.shared.panics;
    match (polled, dropped) {
        (Ok(Poll::Pending), _) => None,
        (Ok(Poll::Ready(value)), Ok(())) => {
            put(value);
            Some(Ending::Done)
        }
        // As for a body, what the drop of its captures panics with is the job's panic.
        (Ok(Poll::Ready(value)), Err(payload)) => {
            panics.discard(UserValue::new(value));
            Some(Ending::Panicked(payload))
        }
        (Err(payload), dropped) => {
            panics.count_drop(dropped);
            Some(Ending::Panicked(payload))
        }
    }
}

impl<P: Platform> Context<'_, P> {
    /// The code that runs here awaits `job`: if it is a future of this job system, waits for that one help
    /// with `job`.
    pub(crate) fn is_awaited_here(&self, job: Ticket) {
        let current = self.current_job();
        if !current.is_none() {
            self.graph().awaits(current, job);
        }
    }

    /// Runs a future's job that this thread has claimed, which is its current one: polls the future once, by
    /// `poll`, and ends the job or lets it wait.
    fn run_future(&self, poll: unsafe fn(*mut Body, &Turn<'_, '_, P>)) {
        let job = self.current_job();
        let slot = self.shared.slot(job);
        // Relaxed: read by the thread that has claimed the job.
        let flags = slot.flags.load(Ordering::Relaxed);
        let turn = Turn {
            cx: self,
            waker: Cell::new(None),
            ending: Cell::new(None),
        };
        self.thread.counters.jobs.add(1);
        self.body_begins(job, slot);
        // SAFETY: the claim was won, so no other thread touches the body until the job waits or is over; and
        // `poll` is for this body.
        unsafe { slot.body.with_mut(|body| poll(body, &turn)) };
        self.body_has_ended(job, slot);
        let (ending, waker) = (turn.ending.take(), turn.waker.take());
        // From here on the job is no longer this thread's.
        self.in_frame(Ticket::NONE, || {
            match (ending, waker) {
                (Some(ending), _) => self.graph().finish(job, slot, flags, ending, Queue::Own),
                (None, Some(waker)) => {
                    self.graph().hold_from_outside(slot, job);
                    if waker.end_poll() {
                        self.graph().release_from_outside(job, Queue::Own);
                    }
                }
                (None, None) => {}
            }
            self.after_job();
        });
    }
}
