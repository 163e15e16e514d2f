//! `join`: fork-join without jobs, until a thread looks for work.
//!
//! A fork is a frame on the stack of the thread that joins, linked into a private list of its thread slot by
//! plain stores. No other thread can see it. If none asks for work, the thread comes back and runs the fork
//! itself, for the price of those stores. When a worker searches, the thread that passes the next `join`
//! turns its *oldest* fork into a job, which any thread can take. (Spice and chili call that promotion. It is
//! the oldest because that is the largest.) From then on the fork is an ordinary job: the claim on its slot
//! decides which thread runs it, the thief or its owner coming back.
//!
//! At most [`Tuning::FORKS_ON_OFFER`] forks are kept on the list. Thieves take from its old end, so more
//! forks would only cost. Joins beyond that run both halves in place. The two halves of one join may run at
//! the same time, and a program must not rely on it.

mod list;

use std::cell::{Cell, UnsafeCell};
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr;

use event::{EventKind, Nanos};
use platform::{Atomic, Ordering, Platform};

use super::bodies::Once;
use super::context::Context;
use crate::border::{Payload, UnwindGuard, UserValue, caught};
use crate::policy::Tuning;
use crate::queues::{IdleWord, Queue};
use crate::store::{Erased, Label, LaneFlags, Slot, Ticket};

use list::ForkHeader;
pub(crate) use list::ForkList;

/// A fork: the second half of a join and room for its result. It is `repr(C)`, so that a pointer to the
/// header is a pointer to the fork.
#[repr(C)]
struct Fork<B, R> {
    header: ForkHeader,
    body: UnsafeCell<ManuallyDrop<B>>,
    result: UnsafeCell<Option<Result<R, Payload>>>,
}

/// A promoted fork, as the body of a job.
struct Promoted(*const ForkHeader);

impl Promoted {
    fn run<P: Platform>(self, context: &Context<'_, P>) {
        // SAFETY: the frame outlives the job (its owner waits for it). `run` is that of the fork's type and
        // platform. The claim on the job makes sure that it is run once.
        unsafe { ((*self.0).run)(self.0, Erased::new(context)) }
    }
}

impl<B, R> Fork<B, R> {
    /// Runs the body and leaves its result in the frame.
    ///
    /// # Safety
    /// `fork` points to the header of a live fork of this type, this is called once, and the context is one
    /// of `P`.
    unsafe fn run<P: Platform>(fork: *const ForkHeader, context: Erased<'_>)
    where
        B: FnOnce(&Context<'_, P>) -> R,
    {
        // SAFETY: the caller's promise. The thread that runs the fork has it to itself, and its owner looks
        // at the result only after the job is over.
        unsafe {
            let context = context.get::<Context<'_, P>>();
            let fork = fork.cast::<Fork<B, R>>();
            let body = ManuallyDrop::take(&mut *(*fork).body.get());
            *(*fork).result.get() = Some(caught(|| body(context)));
        }
    }
}

impl<P: Platform> Context<'_, P> {
    /// Runs both closures, possibly at the same time, and returns both results.
    ///
    /// It costs a few nanoseconds if no worker is free to help, so it can be called down to the leaves of a
    /// recursion. `a` runs on this thread. A join neither allocates nor wakes a thread while both halves stay
    /// here. If `b` is given to another thread, it takes a slot of the job table, and this thread waits for
    /// it: it runs jobs that it needs, and may block. A recursion takes stack as it would without joins, and
    /// a few words more for each level.
    ///
    /// # Panics
    /// If either closure panics, after both have ended as far as they had begun. If `a` panics before `b` has
    /// begun, `b` is dropped without being run.
    ///
    /// ```
    /// use paceline::{Context, JobSystem};
    /// fn sum(cx: &Context<'_>, values: &[u64]) -> u64 {
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
    // Out of line: in a recursion the halves are inlined here, and a leaf of it costs no call. Fibonacci
    // without a cut-off takes 1.5 ns for a join, and 2.5 ns if this is inlined into the recursive function.
    #[inline(never)]
    #[track_caller]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Context<'_, P>) -> RA,
        B: FnOnce(&Context<'_, P>) -> RB + Send,
        RB: Send,
    {
        let len = self.own(|own| own.forks.len);
        if len >= Tuning::FORKS_ON_OFFER && !self.shared.idle.load().wants_work() {
            return (a(self), b(self));
        }
        self.fork_and_join(a, b, len, Location::caller())
    }

    /// [`join`](Context::join) with its second half on offer.
    ///
    /// It is out of line, and behind the code that calls it: most joins of a recursion run both halves in
    /// place. They need not save the registers, nor make room on the stack, for this function.
    #[cold]
    #[inline(never)]
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
            header: ForkHeader {
                older: Cell::new(ptr::null()),
                newer: Cell::new(ptr::null()),
                job: Cell::new(Ticket::NONE),
                run: Fork::<B, RB>::run::<P>,
                site,
                parent: self.current_job(),
            },
            body: UnsafeCell::new(ManuallyDrop::new(b)),
            result: UnsafeCell::new(None),
        };
        // The pointer is made from the whole fork, because it is cast back to it.
        let header = (&raw const fork).cast::<ForkHeader>();
        let guard = UnwindGuard::<P>::new("a join whose second half is on offer");
        // SAFETY: the frame is this function's and is left only when the fork is off the list.
        self.own(|own| unsafe { own.forks.push(header) });
        self.offer(len == 0);
        let ra = caught(|| a(self));
        let job = fork.header.job.get();
        if job.is_none() {
            // All forks that were pushed after this one are gone again, so it is the newest.
            self.own(|own| own.forks.pop());
            guard.disarm();
            // SAFETY: it is off the list and was never promoted, so no other thread has the body.
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
                    self.shared.panics.discard(UserValue::new(b));
                    payload.resume()
                }
            };
        }
        self.wait_for_borrowers(job, drop);
        guard.disarm();
        if len == 0 {
            self.note_tree_end(site);
        }
        let rb = fork.result.into_inner();
        match (ra, rb.expect("a finished fork has a result")) {
            (Ok(ra), Ok(rb)) => (ra, rb),
            (Err(payload), rb) => {
                match rb {
                    Ok(rb) => self.shared.panics.discard(UserValue::new(rb)),
                    Err(second) => self.shared.panics.discard(second),
                }
                payload.resume()
            }
            (Ok(ra), Err(payload)) => {
                self.shared.panics.discard(UserValue::new(ra));
                payload.resume()
            }
        }
    }

    /// Promotes the oldest fork if an idle thread would take it.
    #[inline]
    fn offer(&self, is_first: bool) {
        match self.shared.idle.load_if(IdleWord::COULD_HELP) {
            Some(idle) => self.consider_promotion(is_first, idle),
            None if self.shares_always() => {
                self.consider_promotion(is_first, IdleWord::default());
            }
            None => {}
        }
    }

    /// Whether a fork is to be where others can find it whenever this thread has nothing else for them.
    /// Programs for pools whose waits run anything may count on it that both halves of a join run at the same
    /// time.
    #[inline]
    fn shares_always(&self) -> bool {
        self.shared.wait_rule.is_anything()
    }

    /// A thread is idle. A thread that searches takes a fork at once, if there is nothing else to take here.
    /// A sleeper is worth waking if the tree is known to last longer than a wake-up, or if nothing is known
    /// about it, or if it has already lasted longer. So is a worker in the background that would make way.
    #[cold]
    fn consider_promotion(&self, is_first: bool, idle: IdleWord) {
        let has_none_here = || self.thread.deque.len() == 0;
        let worth = if idle.wants_work() || self.shares_always() {
            has_none_here()
        } else if idle.sleeping == 0 && !(self.could_have_way(idle) && has_none_here()) {
            false
        } else {
            let price = 2 * self.shared.wake_cost.get().0;
            let lasted = self.tree_lasted(is_first);
            lasted.is_none_or(|lasted| lasted.0 > price)
        };
        if worth && let Some(fork) = self.own(|own| own.forks.pop_oldest()) {
            self.promote(fork);
        }
    }

    /// This thread is going to rest. The forks that it keeps for itself are offered to all threads, because
    /// one half of a join may be waiting for what the other half does (rayon PR 1311).
    pub(crate) fn promote_all(&self) {
        while let Some(fork) = self.own(|own| own.forks.pop_oldest()) {
            if !self.promote(fork) {
                return;
            }
        }
    }

    /// How long the current tree of joins has lasted. If it begins just now: how long such trees last, if
    /// that is known.
    fn tree_lasted(&self, is_first: bool) -> Option<Nanos> {
        const LOOKS_PER_CLOCK: u32 = 16;
        if is_first {
            let now = self.shared.platform.now();
            let label = self.own(|own| {
                own.forks.since = now;
                // SAFETY: the list's invariant; the newest fork was pushed by the caller.
                let site = unsafe { (*own.forks.last).site };
                let label = Label { name: "join", site };
                self.graph().labels.number(&mut own.graph.labels, &label)
            });
            let known = self.own(|own| own.loops.cost_of(label));
            return known.map(|ps| Nanos(ps / 1000));
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
            let lasted = lasted.0.saturating_mul(1000).max(1);
            self.own(|own| {
                let number = self.graph().labels.number(&mut own.graph.labels, &label);
                own.loops.learn(number, Some(lasted));
            });
        }
    }

    /// The lane of the job that made a fork of this thread. It may not be the innermost job that runs here.
    fn lane_of_fork(&self, header: &ForkHeader) -> LaneFlags {
        // Relaxed: the job runs on this stack, so these flags were read here when it was claimed.
        let flags_of = |job: Ticket| self.shared.slot(job).flags.load(Ordering::Relaxed);
        match header.parent {
            Ticket::NONE => LaneFlags::NORMAL,
            maker => LaneFlags::of(flags_of(maker)),
        }
    }

    /// Turns a fork that was taken off the list into a job. False if there is no free slot.
    fn promote(&self, fork: *const ForkHeader) -> bool {
        // SAFETY: frames of unfinished joins are alive.
        let header = unsafe { &*fork };
        let label = Label {
            name: "join",
            site: header.site,
        };
        let flags = Slot::<P>::HAS_BODY | self.lane_of_fork(header).0;
        let Some((job, slot)) = self.graph().make(&label, flags, header.parent) else {
            // There is no free slot. Back on the list as the newest it would break the order, so it is put
            // where it came from. SAFETY: as for `push`; it was the oldest and is the oldest again.
            self.own(|own| unsafe { own.forks.push_oldest(fork) });
            return false;
        };
        // SAFETY: the table is that of the body. Everything the fork borrows outlives the join, which waits
        // for the job.
        unsafe {
            let body = move |context: &Context<'_, P>| Promoted(fork).run(context);
            put_fork(slot, body);
        }
        header.job.set(job);
        self.thread.counters.promotions.add(1);
        self.record(EventKind::Promoted, job, 0);
        self.graph().make_ready(job, slot, Queue::Own);
        self.publish(Queue::Own, false);
        true
    }
}

/// Puts the body into a slot, with the table of its type.
///
/// # Safety
/// As [`Slot::put_body`].
unsafe fn put_fork<P: Platform, F: FnOnce(&Context<'_, P>)>(slot: &Slot<P>, body: F) {
    // SAFETY: the caller's promise; the table is `F`'s.
    unsafe { slot.put_body(body, &Once::<P, F>::TABLE) };
}
