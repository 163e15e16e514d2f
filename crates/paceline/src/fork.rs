//! `join`: fork-join without jobs, until somebody is hungry.
//!
//! A fork is a frame on the stack of the thread that joins, linked into a private list of its seat by
//! plain stores. Nobody else can see it; if nobody asks for work, the thread comes back and runs it
//! itself, for the price of those stores. When a worker searches, the thread that passes the next
//! `join` turns its *oldest* fork into a job, which anybody can take (Spice and chili call that
//! promotion; the oldest, because it is the largest). From then on the fork is an ordinary job: who
//! runs it, the thief or its owner coming back, is decided by the claim on its slot.
//!
//! At most [`Tuning::FORKS_ON_OFFER`] forks are kept on the list. Thieves take from its old end, so
//! more would only cost; joins beyond that run both halves in place. The two halves of one join may
//! run at the same time; a program must not rely on it.
//!
//! Invariant: the list holds unpromoted forks only, oldest at `first`, newest at `last`, and every
//! frame on it belongs to a `join` further down this thread's stack.

use std::cell::{Cell, UnsafeCell};
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr;

use event::{EventKind, Nanos};
use platform::Platform;

use crate::border::{Once, Payload, UnwindGuard, UserValue, caught};
use crate::context::{Context, Queue};
use crate::job::{Label, Slot, Ticket};
use crate::policy::Tuning;

/// A seat's unpromoted forks.
pub(crate) struct ForkList<P: Platform> {
    first: *const Header<P>,
    last: *const Header<P>,
    len: u32,
    /// When the outermost join that is still open began, if that was looked at.
    since: Nanos,
    /// Counts considerations, so that the clock is not read at each.
    tick: u32,
}

impl<P: Platform> ForkList<P> {
    pub(crate) fn new() -> Self {
        ForkList {
            first: ptr::null(),
            last: ptr::null(),
            len: 0,
            since: Nanos::MAX,
            tick: 0,
        }
    }

    /// Adds the newest fork.
    ///
    /// # Safety
    /// The frame stays where it is until it is removed.
    #[inline]
    unsafe fn push(&mut self, fork: *const Header<P>) {
        // SAFETY: frames on the list are alive (the list's invariant), and only this thread
        // touches their links.
        unsafe {
            (*fork).older.set(self.last);
            match self.last.is_null() {
                true => self.first = fork,
                false => (*self.last).newer.set(fork),
            }
        }
        self.last = fork;
        self.len += 1;
    }

    /// Puts the oldest fork back.
    ///
    /// # Safety
    /// As for [`push`](ForkList::push).
    unsafe fn push_oldest(&mut self, fork: *const Header<P>) {
        // SAFETY: as in `push`.
        unsafe {
            (*fork).newer.set(self.first);
            match self.first.is_null() {
                true => self.last = fork,
                false => (*self.first).older.set(fork),
            }
        }
        self.first = fork;
        self.len += 1;
    }

    /// Takes the newest fork off: the owner has come back to it.
    #[inline]
    fn pop(&mut self) {
        // SAFETY: as in `push`.
        unsafe {
            self.last = (*self.last).older.get();
            match self.last.is_null() {
                true => self.first = ptr::null(),
                false => (*self.last).newer.set(ptr::null()),
            }
        }
        self.len -= 1;
    }

    /// Takes the oldest fork off, to be promoted.
    fn pop_oldest(&mut self) -> Option<*const Header<P>> {
        let fork = self.first;
        if fork.is_null() {
            return None;
        }
        // SAFETY: as in `push`.
        unsafe {
            self.first = (*fork).newer.get();
            match self.first.is_null() {
                true => self.last = ptr::null(),
                false => (*self.first).older.set(ptr::null()),
            }
        }
        self.len -= 1;
        Some(fork)
    }
}

/// The part of a fork that does not depend on the closure's type.
struct Header<P: Platform> {
    older: Cell<*const Header<P>>,
    newer: Cell<*const Header<P>>,
    /// The job it became; [`Ticket::NONE`] while it is on the list.
    job: Cell<Ticket>,
    /// Runs the fork this header belongs to.
    run: unsafe fn(*const Header<P>, &Context<'_, P>),
    site: &'static Location<'static>,
    /// The job that joins.
    parent: Ticket,
}

/// A fork: the second half of a join and room for its result. `repr(C)`: a pointer to the header is
/// one to the fork.
#[repr(C)]
struct Fork<P: Platform, B, R> {
    header: Header<P>,
    body: UnsafeCell<ManuallyDrop<B>>,
    result: UnsafeCell<Option<Result<R, Payload>>>,
}

/// A promoted fork, as the body of a job.
struct Promoted<P: Platform>(*const Header<P>);

impl<P: Platform> Promoted<P> {
    fn run(self, context: &Context<'_, P>) {
        // SAFETY: the frame outlives the job (its owner waits for it), `run` is that of the fork's
        // type, and the claim on the job makes sure that it is run once.
        unsafe { ((*self.0).run)(self.0, context) }
    }
}

impl<P, B, R> Fork<P, B, R>
where
    P: Platform,
    B: FnOnce(&Context<'_, P>) -> R + Send,
    R: Send,
{
    /// Runs the body and leaves its result in the frame.
    ///
    /// # Safety
    /// `fork` points to the header of a live fork of this type, and this is called once.
    unsafe fn run(fork: *const Header<P>, context: &Context<'_, P>) {
        // SAFETY: the caller's promise; whoever runs the fork has it to itself, and its owner looks
        // at the result only after the job is over.
        unsafe {
            let fork = fork.cast::<Fork<P, B, R>>();
            let body = ManuallyDrop::take(&mut *(*fork).body.get());
            *(*fork).result.get() = Some(caught(|| body(context)));
        }
    }
}

impl<P: Platform> Context<'_, P> {
    /// Runs both closures, possibly at the same time, and gives both results.
    ///
    /// Costs a few nanoseconds if no worker is free to help, so it can be called down to the leaves of a
    /// recursion. `a` runs on this thread. A recursion takes stack as it would without joins: a few words a
    /// level besides its own.
    ///
    /// # Panics
    /// If either closure panics, when both are through with what they had begun. If `a` panics
    /// before `b` was begun, `b` is dropped without being run.
    ///
    /// ```
    /// use paceline::{Context, JobSystem};
    /// use platform::Platform;
    /// fn sum<P: Platform>(cx: &Context<'_, P>, values: &[u64]) -> u64 {
    ///     match values {
    ///         [] => 0,
    ///         [one] => *one,
    ///         _ => {
    ///             let (left, right) = values.split_at(values.len() / 2);
    ///             let (a, b) = cx.join(|cx| sum(cx, left), |cx| sum(cx, right));
    ///             a + b
    ///         }
    ///     }
    /// }
    /// let values: Vec<u64> = (0..1000).collect();
    /// assert_eq!(JobSystem::new().enter(|cx| sum(cx, &values)), 499_500);
    /// ```
    #[inline]
    #[track_caller]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Context<'_, P>) -> RA,
        B: FnOnce(&Context<'_, P>) -> RB + Send,
        RB: Send,
    {
        let len = self.own(|own| own.forks.len);
        if len >= Tuning::FORKS_ON_OFFER && !self.shared.idle.load().is_hungry() {
            return (a(self), b(self));
        }
        self.fork_and_join(a, b, len, Location::caller())
    }

    fn fork_and_join<A, B, RA, RB>(
        &self,
        a: A,
        b: B,
        len: u32,
        site: &'static Location<'static>,
    ) -> (RA, RB)
    where
        A: FnOnce(&Context<'_, P>) -> RA,
        B: FnOnce(&Context<'_, P>) -> RB + Send,
        RB: Send,
    {
        let fork = Fork {
            header: Header {
                older: Cell::new(ptr::null()),
                newer: Cell::new(ptr::null()),
                job: Cell::new(Ticket::NONE),
                run: Fork::<P, B, RB>::run,
                site,
                parent: self.current_job(),
            },
            body: UnsafeCell::new(ManuallyDrop::new(b)),
            result: UnsafeCell::new(None),
        };
        // From the whole fork: the pointer is cast back to it.
        let header = (&raw const fork).cast::<Header<P>>();
        let guard = UnwindGuard::<P>::new("a join whose second half is on offer");
        // SAFETY: the frame is this function's and is left only when the fork is off the list.
        self.own(|own| unsafe { own.forks.push(header) });
        self.offer(len == 0);
        let ra = caught(|| a(self));
        let job = fork.header.job.get();
        if job.is_none() {
            // Everything pushed after it is gone again, so it is the newest.
            self.own(|own| own.forks.pop());
            guard.disarm();
            // SAFETY: it is off the list and was never promoted: no other thread has the body.
            let b = unsafe { ManuallyDrop::take(&mut *fork.body.get()) };
            return match ra {
                Ok(ra) => {
                    let rb = b(self);
                    if len == 0 {
                        self.note_tree_end(site);
                    }
                    (ra, rb)
                }
                Err(payload) => {
                    // The second half is dropped instead of run.
                    self.shared.discard(UserValue::new(b));
                    payload.resume()
                }
            };
        }
        self.wait_for_borrowers(job);
        guard.disarm();
        if len == 0 {
            self.note_tree_end(site);
        }
        let rb = fork.result.into_inner();
        match (ra, rb.expect("a finished fork has a result")) {
            (Ok(ra), Ok(rb)) => (ra, rb),
            (Err(payload), rb) => {
                match rb {
                    Ok(rb) => self.shared.discard(UserValue::new(rb)),
                    Err(second) => self.shared.discard(second),
                }
                payload.resume()
            }
            (Ok(ra), Err(payload)) => {
                self.shared.discard(UserValue::new(ra));
                payload.resume()
            }
        }
    }

    /// Promotes the oldest fork if somebody would take it.
    #[inline]
    fn offer(&self, is_first: bool) {
        let idle = self.shared.idle.load();
        if idle.is_hungry() || idle.sleeping > 0 {
            self.consider_promotion(is_first, idle.is_hungry());
        }
    }

    /// Somebody is idle. Those who search take a fork at once, if there is nothing else to take
    /// here. Sleepers are worth waking if the tree is known (or not known) to last longer than a
    /// wake-up, or has done so already.
    #[cold]
    fn consider_promotion(&self, is_first: bool, is_hungry: bool) {
        let worth = if is_hungry {
            self.seat.deque.len() == 0
        } else {
            let price = 2 * self.shared.wake_cost.get().0;
            let lasted = self.tree_lasted(is_first);
            lasted.is_none_or(|lasted| lasted.0 > price)
        };
        if worth && let Some(fork) = self.own(|own| own.forks.pop_oldest()) {
            self.promote(fork);
        }
    }

    /// This thread is going to rest: what it keeps for itself is offered to everybody, because one
    /// half of a join may be waiting for what the other one does (rayon PR 1311).
    pub(crate) fn promote_all(&self) {
        while let Some(fork) = self.own(|own| own.forks.pop_oldest()) {
            if !self.promote(fork) {
                return;
            }
        }
    }

    /// How long the current tree of joins has lasted; if it begins just now: how long such trees
    /// last, as far as known.
    fn tree_lasted(&self, is_first: bool) -> Option<Nanos> {
        const LOOKS_PER_CLOCK: u32 = 16;
        if is_first {
            let now = self.shared.platform.now();
            let label = self.own(|own| {
                own.forks.since = now;
                // SAFETY: the list's invariant; the newest fork was pushed by the caller.
                let site = unsafe { (*own.forks.last).site };
                self.shared
                    .labels
                    .number(&mut own.labels, Label { name: "join", site })
            });
            return self.cost_of_label(label).map(|ps| Nanos(ps / 1000));
        }
        let (look, since) = self.own(|own| {
            own.forks.tick = own.forks.tick.wrapping_add(1);
            (own.forks.tick % LOOKS_PER_CLOCK == 0, own.forks.since)
        });
        let lasted = if look {
            self.shared.platform.now() - since
        } else {
            Nanos::ZERO
        };
        Some(lasted)
    }

    /// The outermost join has ended: learns how long the tree lasted, if its beginning was noted.
    fn note_tree_end(&self, site: &'static Location<'static>) {
        let since = self.own(|own| std::mem::replace(&mut own.forks.since, Nanos::MAX));
        if since != Nanos::MAX {
            let lasted = self.shared.platform.now() - since;
            let label = Label { name: "join", site };
            let number = self.own(|own| self.shared.labels.number(&mut own.labels, label));
            self.learn(number, Some(lasted.0.saturating_mul(1000).max(1)));
        }
    }

    /// Turns a fork that was taken off the list into a job; false if there is no slot to be had.
    fn promote(&self, fork: *const Header<P>) -> bool {
        // SAFETY: frames of unfinished joins are alive.
        let header = unsafe { &*fork };
        let label = Label {
            name: "join",
            site: header.site,
        };
        let flags = Slot::<P>::HAS_BODY;
        let Some((job, slot)) = self.allocate_slot(label, flags, header.parent) else {
            // No slot to be had: back on the list as the newest would break its order, so it is
            // put where it came from.
            // SAFETY: as for `push`; it was the oldest and is again.
            self.own(|own| unsafe { own.forks.push_oldest(fork) });
            return false;
        };
        // SAFETY: the table is that of the body; what the fork borrows outlives the join, which
        // waits for the job.
        unsafe {
            let body = move |context: &Context<'_, P>| Promoted(fork).run(context);
            self.put_fork(slot, body);
        }
        header.job.set(job);
        self.seat.counters.promotions.add(1);
        self.record(EventKind::Promoted, job, 0);
        self.make_ready(job, slot, Queue::Own);
        self.publish(Queue::Own, false);
        true
    }

    /// # Safety
    /// As `put_body`.
    unsafe fn put_fork<F: FnOnce(&Context<'_, P>)>(&self, slot: &Slot<P>, body: F) {
        // SAFETY: the caller's promise; the table is `F`'s.
        unsafe { self.put_body(slot, body, &Once::<P, F>::TABLE) };
    }
}
