//! A thread's view of the job system while it is inside: [`Context`].
//!
//! Everything the runtime does is a method of the context, spread over the files by subject. This one
//! holds what all of them use: the seat's own data, queues, publishing, and running one job.

use std::marker::PhantomData;

use event::{EventKind, Nanos, Withheld};
use platform::{Atomic, Omission, Ordering, Platform, SharedCell};

use crate::adapt::Passing;
use crate::graph::Ending;
use crate::idle::{Fenced, IdleWord};
use crate::job::{Phase, Slot, Ticket};
use crate::policy::Tuning;
use crate::seat::{Frame, Own, Role, Seat};
use crate::shared::Shared;

/// A thread's access to the job system it is working for. Job bodies are handed one; an outside
/// thread gets one from [`JobSystem::enter`](crate::JobSystem::enter).
///
/// It stays on its thread (it is neither `Send` nor `Sync`), which is what makes its operations
/// cheap: no thread-local is read.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let sum = js.enter(|cx| {
///     let (a, b) = cx.join(|_| 1 + 1, |_| 2 + 2);
///     a + b
/// });
/// assert_eq!(sum, 6);
/// ```
pub struct Context<'a, P: Platform> {
    pub(crate) shared: &'a Shared<P>,
    pub(crate) seat: &'a Seat<P>,
    _stays_on_its_thread: PhantomData<*const ()>,
}

/// Which of a seat's queues new tickets go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// The deque: work made by work.
    Own,
    /// The inbox: work from outside, started in the order it came.
    Inbox,
}

impl<'a, P: Platform> Context<'a, P> {
    /// # Safety
    /// The calling thread sits on `seat`, which belongs to `shared`.
    pub(crate) unsafe fn new(shared: &'a Shared<P>, seat: &'a Seat<P>) -> Context<'a, P> {
        Context {
            shared,
            seat,
            _stays_on_its_thread: PhantomData,
        }
    }

    /// Works on the part of the seat that is this thread's alone. `f` is a few loads and stores: it
    /// calls nothing that could come back here.
    #[inline(always)]
    pub(crate) fn own<R>(&self, f: impl FnOnce(&mut Own<P>) -> R) -> R {
        // SAFETY: a context exists only on the thread that sits here (see `new`) and never leaves
        // it; and `f` does not re-enter, so this is the only reference.
        unsafe { self.seat.own.with_mut(|own| f(&mut *own)) }
    }

    /// This thread's number: stable for workers, less than [`seats`](Context::seats), and never
    /// shared by two threads at the same time. Use it to index per-thread data.
    pub fn worker(&self) -> usize {
        self.seat.index as usize
    }

    /// One more than the largest number [`worker`](Context::worker) can ever be in this job system.
    pub fn seats(&self) -> usize {
        self.shared.seats.limit()
    }

    /// Says that the body has just done `work` worth of computing. Nothing happens on a real
    /// machine, where computing takes its time by itself; on a simulated one virtual time passes.
    pub fn work(&self, work: Nanos) {
        self.shared.platform.charge(work);
    }

    /// The platform this job system runs on.
    pub fn platform(&self) -> &P {
        &self.shared.platform
    }

    /// The job this thread is running; none on an outside thread between jobs.
    pub(crate) fn current_job(&self) -> Ticket {
        let frame = self.own(|own| own.frame);
        if frame.is_null() {
            return Ticket::NONE;
        }
        // SAFETY: a frame that is not null is one of `in_frame` further down this stack.
        unsafe { (*frame).job }
    }

    /// Calls `visit` with the jobs this thread is in the middle of, innermost first, until it
    /// returns true.
    pub(crate) fn any_running(&self, mut visit: impl FnMut(Ticket) -> bool) -> bool {
        let mut frame = self.own(|own| own.frame);
        while !frame.is_null() {
            // SAFETY: as in `current_job`; `outer` points further down the same stack.
            let (job, outer) = unsafe { ((*frame).job, (*frame).outer) };
            if visit(job) {
                return true;
            }
            frame = outer;
        }
        false
    }

    /// Where jobs scheduled now go.
    #[inline]
    pub(crate) fn queue(&self) -> Queue {
        let outside = self.seat.role == Role::Guest && self.own(|own| own.frame.is_null());
        if outside { Queue::Inbox } else { Queue::Own }
    }

    /// Puts a ticket into a queue. It is announced by the next [`publish`](Context::publish).
    #[inline]
    pub(crate) fn enqueue(&self, ticket: Ticket, queue: Queue) {
        let deque = match (queue, &self.seat.inbox) {
            (Queue::Inbox, Some(inbox)) => inbox,
            _ => &self.seat.deque,
        };
        if !deque.put(ticket) {
            self.overflow(deque, ticket);
        }
        self.own(|own| own.fresh += 1);
    }

    #[cold]
    fn overflow(&self, deque: &crate::deque::Deque<P>, ticket: Ticket) {
        let older = deque.spill();
        self.seat.counters.overflow.add(older.len() as u64);
        self.shared.injector.push(&older);
        // A waiter that wants one of them is not found by way of this queue any more. SeqCst, partner:
        // the fence of a waiter before its last look.
        P::fence(Ordering::SeqCst);
        if self.shared.idle.load().watching > 0 {
            self.shared.idle.bump();
            older
                .iter()
                .for_each(|&ticket| self.alert_watcher_of(ticket));
        }
        let put = deque.put(ticket);
        debug_assert!(put, "half of a full ring was just moved out");
    }

    /// Announces the tickets queued since the last call; see `idle`. `runs_one`: this thread goes
    /// back to its worker loop and takes one of them itself, so one alone wakes nobody.
    #[inline]
    pub(crate) fn publish(&self, queue: Queue, runs_one: bool) {
        let fresh = self.own(|own| std::mem::take(&mut own.fresh));
        if fresh > u32::from(runs_one) {
            self.announce(fresh, queue);
        }
    }

    #[inline]
    fn announce(&self, fresh: u32, queue: Queue) {
        if let Some(now) = self.shared.idle.after_publish::<Fenced>() {
            self.tell_idle(now, fresh, queue);
        }
    }

    #[cold]
    fn tell_idle(&self, now: IdleWord, fresh: u32, queue: Queue) {
        let idle = &self.shared.idle;
        if now.is_hungry() {
            idle.bump();
        }
        if now.watching > 0 {
            match self.shared.crew.active() {
                // Waiters run anything then.
                0 => self.alert_all(),
                _ => self.alert_watchers(fresh, queue),
            }
        }
        let mut untold = fresh;
        let mut why = Withheld::Searched;
        if now.searching == 0 {
            if now.sleeping > 0 {
                if let Some(seat) = idle.wake_one() {
                    self.wake_worker(seat);
                    untold -= 1;
                    why = Withheld::Batch;
                }
            } else {
                why = Withheld::NobodySleeps;
                if now.blocked > 0 {
                    self.consider_spare();
                }
            }
        } else {
            // It is left to whoever searches, who may be waiting for a CPU.
            self.shared.adapt.passes(self, Passing::Publishing);
        }
        if untold > 0 {
            let arg = (why as u64) << 32 | u64::from(untold);
            self.record(EventKind::WakeWithheld, Ticket::NONE, arg);
        }
        let unsignalled = self.own(|own| {
            own.unsignalled += untold;
            own.unsignalled
        });
        if unsignalled >= Tuning::UNSIGNALLED_MAX {
            self.wake_for_batch();
        }
    }

    /// Wakes as many workers as the jobs since the last flush can use.
    pub(crate) fn wake_for_batch(&self) {
        let jobs = self.own(|own| std::mem::take(&mut own.unsignalled));
        let now = self.shared.idle.load();
        for _ in 0..jobs.saturating_sub(now.searching).min(now.sleeping) {
            match self.shared.idle.wake_another() {
                Some(seat) => self.wake_worker(seat),
                None => return,
            }
        }
    }

    /// Unparks a worker that has been counted as searching.
    pub(crate) fn wake_worker(&self, index: usize) {
        let seat = self.shared.seats.get(index);
        self.record(EventKind::Wake, Ticket::NONE, index as u64);
        self.sign_wake_up(seat);
        if seat.wake(&self.shared.platform) {
            self.seat.counters.wakes_sent.add(1);
            self.shared.adapt.signalled(self, index);
        }
    }

    /// The newest ticket of the own deque, left there. Asks for the memory of one that will be run
    /// here soon: jobs made on another thread are in its cache, and the claim would wait for them one
    /// by one.
    #[inline]
    pub(crate) fn peek_newest(&self) -> Option<Ticket> {
        const JOBS_AHEAD: u64 = 6;
        let (newest, soon) = self.seat.deque.peek_newest_and_below(JOBS_AHEAD)?;
        if let Some(soon) = soon {
            P::prefetch(self.shared.slot(soon));
        }
        Some(newest)
    }

    /// Tries to start what a ticket names: claims the job, or joins the crew of a range. False if
    /// the ticket is stale, or nothing of the range was left; then the caller has nothing to publish.
    #[inline]
    pub(crate) fn start(&self, ticket: Ticket, slot: &Slot<P>) -> bool {
        if slot.claim(ticket) {
            self.run_claimed(ticket, slot);
            return true;
        }
        self.start_member(ticket, slot)
    }

    #[cold]
    fn start_member(&self, ticket: Ticket, slot: &Slot<P>) -> bool {
        // Relaxed: `join_crew` decides.
        let word = slot.word(Ordering::Relaxed);
        if word.phase != Phase::Open || word.generation != ticket.generation() {
            return false;
        }
        self.flush_finished();
        let joined = self.join_range(ticket, slot);
        if !joined && P::OMITS != Some(Omission::AnnounceAfterVainJoin) {
            // It may have been the last to leave the range, and have made ready what that held back.
            self.publish(Queue::Own, false);
        }
        joined
    }

    /// Runs a job this thread has claimed, and finishes it.
    #[inline]
    pub(crate) fn run_claimed(&self, job: Ticket, slot: &Slot<P>) {
        let flags = slot.flags.load(Ordering::Relaxed);
        let lane = flags & Slot::<P>::IS_BACKGROUND;
        match lane == self.own(|own| own.lane) {
            true => self.run_in_own_lane(job, slot, flags),
            false => self.in_lane(lane, || self.run_in_own_lane(job, slot, flags)),
        }
    }

    #[inline]
    fn run_in_own_lane(&self, job: Ticket, slot: &Slot<P>, flags: u32) {
        let differs = |scope| scope != slot.parent(flags);
        if self.own(|own| own.finished.count > 0 && differs(own.finished.scope)) {
            self.flush_finished();
        }
        // Relaxed: a hint for deadlock checks, which look at the state word before and after.
        slot.place.store(self.seat.index, Ordering::Relaxed);
        self.record_claimed(job);
        // SAFETY: the claim was won: table and body were filled before the job was made ready
        // (Acquire in `claim`) and nobody else touches them until it is finished.
        let table = unsafe { slot.table.with(|table| *table) };
        let table = table.expect("a job that was made ready has a body");
        if flags & Slot::<P>::IS_ANONYMOUS == 0 {
            self.prefetch_links(slot);
        }
        if flags & Slot::<P>::IS_RANGE != 0 {
            // It opens itself, catches its panics and leaves as a member of its crew. Others read the closure
            // meanwhile, which stays where it is: nothing is written through the pointer, so the cell is not
            // kept.
            let body = slot.body_for_crew();
            // SAFETY: as above; the body is opened once, because a claim is won once.
            self.in_frame(job, || unsafe { table.open(body, self) });
            return;
        }
        self.seat.counters.jobs.add(1);
        self.record(EventKind::Begin, job, 0);
        // SAFETY: as above; the body is run once, because a claim is won once.
        let run = || unsafe { slot.body.with_mut(|body| table.run(body, self)) };
        let ending = match self.in_frame(job, run) {
            Ok(()) => Ending::Done,
            Err(payload) => Ending::Panicked(payload),
        };
        self.record(EventKind::End, job, 0);
        self.finish(job, slot, flags, ending, Queue::Own);
        self.after_job();
    }

    /// Runs `f` as (part of) a job, or for [`Ticket::NONE`] as code of the program's that is no job's.
    #[inline]
    pub(crate) fn in_frame<R>(&self, job: Ticket, f: impl FnOnce() -> R) -> R {
        /// Takes the frame off, also when something unwinds.
        struct Framed<'c, 'a, P: Platform>(&'c Context<'a, P>, *const Frame);
        impl<P: Platform> Drop for Framed<'_, '_, P> {
            #[inline]
            fn drop(&mut self) {
                self.0.own(|own| own.frame = self.1);
            }
        }
        let outer = self.own(|own| own.frame);
        let frame = Frame { job, outer };
        self.own(|own| own.frame = &raw const frame);
        let _framed = Framed(self, outer);
        f()
    }

    /// Whether the thread is inside code of the program's that the job system has called.
    pub(crate) fn is_called_back(&self) -> bool {
        self.own(|own| !own.frame.is_null())
    }

    /// What every finished job leaves to do.
    #[inline]
    pub(crate) fn after_job(&self) {
        if self.own(|own| !own.todo.is_empty()) {
            self.finish_todo(Queue::Own);
        }
        if self.own(|own| own.unsignalled > 0) {
            self.wake_for_batch();
        }
    }
}
