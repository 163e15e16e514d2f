//! Waiting, and what a waiter may run meanwhile.
//!
//! The rule: **a waiter runs only what it waits for.** In this order: the awaited job if it is ready;
//! its unfinished ancestors that are ready; parts of a range that is one of these; jobs made by those
//! that are running (their scopes' children, their promoted forks). If there is none of these it
//! spins for a while and then parks, although other work may be ready: an unrelated job under the
//! waiter's frame could take for ever, or wait for something the waiter holds. That is the most
//! reported defect of the field (rayon #592 and #957, Taskflow #649, oneTBB #1316 …).
//!
//! Finding ancestors is a depth-first walk along the links, from the target up. Each job on the way
//! is *marked* with the waiter's seat, so that whoever makes one of them ready, or publishes work for
//! one, knows whom to wake. A mark is a hint, the walk after the fence is what the waiter relies on:
//!
//! ```text
//! waiter                                  publisher
//! marks the job (and its state says: not ready)
//!                                         makes it ready, queues its ticket
//! fence                                   fence
//! looks at the job's state again          reads the mark
//! ```
//!
//! One of the two sees what the other wrote. Several waiters may need one job: who marks it after
//! somebody else says so in the mark, and then everybody who waits is woken. If work remains that no
//! waiter may run while every worker waits, a spare worker starts (`crew`).
//!
//! A wait that can never end is reported instead of hanging, in `cycle`.

use event::{EventKind, Nanos};
use platform::{Atomic, Ordering, Parker, Platform};

use crate::context::{Context, Queue};
use crate::error::WaitError;
use crate::graph::Listener;
use crate::idle::Fenced;
use crate::job::{Phase, Slot, Ticket};
use crate::policy::Tuning;
use crate::seat::Seat;

/// A decoded mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    serial: u64,
    /// Several seats have marked the job; the last one is given.
    is_shared: bool,
    seat: u32,
}

impl Mark {
    const SEAT_BITS: u32 = 15;

    fn pack(self) -> u64 {
        (self.serial << 1 | u64::from(self.is_shared)) << Mark::SEAT_BITS | u64::from(self.seat)
    }

    /// `None` for a job nobody has marked: serials start at 1.
    fn unpack(word: u64) -> Option<Mark> {
        let mark = Mark {
            serial: word >> (Mark::SEAT_BITS + 1),
            is_shared: word >> Mark::SEAT_BITS & 1 != 0,
            seat: word as u32 & ((1 << Mark::SEAT_BITS) - 1),
        };
        (mark.serial > 0).then_some(mark)
    }
}

/// One wait in progress.
#[derive(Clone, Copy)]
struct Wait {
    target: Ticket,
}

/// A walk from the target to its unfinished ancestors, depth first, that can be left when it has
/// found something to run and taken up again: going on costs less than starting over, and what it
/// has not seen is looked at by the next walk.
struct Walk {
    stack: Vec<Ticket>,
    /// Of this seat: the mark of jobs that this walk has visited.
    serial: u64,
    /// How many more it may visit: two waiters that overwrite each other's marks visit jobs more
    /// than once.
    visits_left: usize,
}

/// How long a waiter with nothing to run does what.
#[derive(Clone, Copy)]
struct Patience {
    /// Spins until then, and nobody is told: a worker that is back soon is not replaced.
    quiet_until: Nanos,
    /// Goes on spinning until then, but counts as blocked.
    spin_until: Nanos,
}

/// What became of a rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// The last look found something.
    None,
    Spun,
    Parked,
}

/// How far to look for descendants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The newest few tickets of each queue.
    Quick,
    /// Every ticket there is: before parking.
    Thorough,
}

/// A deadlock is reported when it has been seen for this long. A real one lasts; what the walk reads
/// of a thread that is just now changing its mind does not.
const DEADLOCK_CONFIRM: Nanos = Nanos::from_millis(1);

/// Tickets of each queue a quick look considers.
const QUICK_TICKETS: usize = 32;

impl<P: Platform> Context<'_, P> {
    /// Waits until the job is over or `deadline` has come. `Ok(false)`: it is not over yet.
    pub(crate) fn wait_until(&self, target: Ticket, deadline: Nanos) -> Result<bool, WaitError> {
        self.flush();
        if self.shared.slot(target).is_over(target) {
            return Ok(true);
        }
        self.record(EventKind::WaitBegin, target, 0);
        let outer = self.seat.waits_for.load(Ordering::Relaxed);
        let outer_until = self.seat.waits_until.load(Ordering::Relaxed);
        // Relaxed: deadlock checks fence on both sides (see `cycle`).
        self.seat.waits_until.store(deadline.0, Ordering::Relaxed);
        self.seat.waits_for.store(target.0, Ordering::Relaxed);
        let mut stack = self.own(|own| {
            own.marks_from = own.serial + 1;
            std::mem::take(&mut own.search)
        });
        stack.clear();
        let wait = Wait { target };
        let mut walk = Walk {
            stack,
            serial: 0,
            visits_left: 0,
        };
        let result = match self.help_until_stuck(wait, &mut walk) {
            true => Ok(true),
            false => self.watch(wait, &mut walk, deadline),
        };
        // Kept for the next wait. (A wait inside a job that this one runs has its own.)
        self.own(|own| {
            own.search = walk.stack;
            // The wait underneath has to mark afresh what it needs.
            own.marks_from = own.serial + 1;
        });
        self.seat.waits_for.store(outer, Ordering::Relaxed);
        self.seat.waits_until.store(outer_until, Ordering::Relaxed);
        let code = match &result {
            Ok(true) => 0,
            Ok(false) => 3,
            Err(_) => 4,
        };
        self.record(EventKind::WaitEnd, target, code);
        result
    }

    /// Runs what the wait may run. True when the target is over, false when there is nothing to run
    /// at the moment.
    fn help_until_stuck(&self, wait: Wait, walk: &mut Walk) -> bool {
        loop {
            self.help_with_own(wait);
            self.flush_finished();
            if self.shared.slot(wait.target).is_over(wait.target) {
                return true;
            }
            let helped = self.help_ancestor(wait, walk)
                || self.fetch_tickets(wait)
                || self.help_descendant(wait, Look::Quick);
            if !helped {
                return self.shared.slot(wait.target).is_over(wait.target);
            }
        }
    }

    /// As long as the wait may run the newest ticket of the own deque, runs it. That is the common
    /// case and needs no search: the jobs of a scope, the other half of a join, a needed job that
    /// the last one has just made ready.
    fn help_with_own(&self, wait: Wait) {
        while let Some(ticket) = self.seat.deque.peek_newest() {
            let slot = self.shared.slot(ticket);
            // A stale ticket may look wanted: starting it fails. One that is not wanted is not
            // started even if it looks stale: a range that is just being opened does.
            let child = slot.parent.load(Ordering::Relaxed) == wait.target.0;
            let wanted = child || self.is_wanted(ticket, wait);
            if !wanted && self.is_startable(ticket) {
                return;
            }
            self.prefetch_soon();
            self.seat.deque.take_newest();
            if wanted {
                self.help(ticket, slot);
            }
        }
    }

    /// Whether the wait may run the job: the target, a job on the way to it (as far as the walk has
    /// marked them), or a descendant of one of these.
    fn is_wanted(&self, ticket: Ticket, wait: Wait) -> bool {
        ticket == wait.target || self.is_marked(ticket) || self.descends(ticket, wait)
    }

    /// Moves tickets from the injector, or from a seat whose oldest ticket is wanted, to the own
    /// deque. They were announced where they were, but who looked for them meanwhile may have
    /// missed them: what is not run at once is announced again.
    fn fetch_tickets(&self, wait: Wait) -> bool {
        let before = self.seat.deque.len();
        let first = self.take_from_injector().or_else(|| {
            self.take_from_deques_if(|deque| {
                deque.peek_oldest().is_some_and(|ticket| {
                    self.shared.slots.exists(ticket.index())
                        && self.is_startable(ticket)
                        && self.is_wanted(ticket, wait)
                })
            })
        });
        let Some(first) = first else { return false };
        // Fewer, if some have been stolen from here meanwhile.
        let moved = self.seat.deque.len().saturating_sub(before);
        self.own(|own| own.fresh += moved as u32);
        self.enqueue(first, Queue::Own);
        self.publish(Queue::Own, false);
        true
    }

    /// Runs a ticket from inside a wait.
    #[inline]
    fn help(&self, ticket: Ticket, slot: &Slot<P>) -> bool {
        // While the helped job runs this thread does not wait: who asks what the job is waiting for
        // must not be told about the wait underneath it.
        let waits_for = self.seat.waits_for.load(Ordering::Relaxed);
        self.seat.waits_for.store(0, Ordering::Relaxed);
        let helped = self.start(ticket, slot);
        self.seat.waits_for.store(waits_for, Ordering::Relaxed);
        if helped {
            self.seat.counters.helps.add(1);
            // Unlike a worker, a waiter may not be allowed to run what it has just made ready.
            self.publish(Queue::Own, false);
        }
        helped
    }

    /// Whether a ticket could be started at this moment.
    fn is_startable(&self, ticket: Ticket) -> bool {
        // Relaxed: whoever starts it decides.
        let slot = self.shared.slot(ticket);
        let word = slot.word(Ordering::Relaxed);
        let phase_allows = match word.phase {
            Phase::Ready => true,
            Phase::Open => self.has_room_for_member(slot),
            _ => false,
        };
        phase_allows && word.generation == ticket.generation()
    }

    /// Whether the job was made by (a job made by …) the target, or by a job the target needs.
    fn descends(&self, ticket: Ticket, wait: Wait) -> bool {
        const NESTING_MAX: usize = 256;
        let mut job = ticket;
        for _ in 0..NESTING_MAX {
            let Some(parent) = self.parent_of(job) else {
                return false;
            };
            if parent == wait.target || self.is_marked(parent) {
                return true;
            }
            job = parent;
        }
        false
    }

    /// The scope or job that `job` was made by, unless `job` is over.
    pub(crate) fn parent_of(&self, job: Ticket) -> Option<Ticket> {
        let slot = self.shared.slot(job);
        // Acquire, partner: the Release store in `allocate_slot`; also orders the look at the state.
        let parent = Ticket(slot.parent.load(Ordering::Acquire));
        // Looked at after the parent was read: it is this job's. A parent outlives what it made.
        let known = !slot.is_over(job) && self.shared.slots.exists(parent.index());
        (known && !parent.is_none()).then_some(parent)
    }

    /// Whether the innermost wait has found that it needs the job.
    fn is_marked(&self, job: Ticket) -> bool {
        let slot = self.shared.slot(job);
        let mark = Mark::unpack(slot.mark.load(Ordering::Relaxed));
        let first = self.own(|own| own.marks_from);
        mark.is_some_and(|mark| mark.seat == self.seat.index && mark.serial >= first)
            && !slot.is_over(job)
    }

    /// Marks a job for a walk of this seat and returns the mark; `None` if that walk was there
    /// before.
    fn mark(&self, slot: &Slot<P>, serial: u64) -> Option<u64> {
        let seat = self.seat.index;
        // Relaxed: see the module; the fence is the caller's. By compare-exchange, so that nobody's
        // mark is overwritten by one that does not say so.
        let mut seen = slot.mark.load(Ordering::Relaxed);
        loop {
            let before = Mark::unpack(seen);
            if before.is_some_and(|mark| mark.seat == seat && mark.serial == serial) {
                return None;
            }
            let is_shared = before.is_some_and(|mark| mark.is_shared || mark.seat != seat);
            let new = Mark {
                serial,
                is_shared,
                seat,
            };
            let (relaxed, new) = (Ordering::Relaxed, new.pack());
            match slot.mark.compare_exchange(seen, new, relaxed, relaxed) {
                Ok(_) => return Some(new),
                Err(now) => seen = now,
            }
        }
    }

    /// Walks on until it comes to a job that can be run, and runs it. False if a whole walk, begun
    /// during this call, has found none.
    fn help_ancestor(&self, wait: Wait, walk: &mut Walk) -> bool {
        // Lost to somebody else: that was progress too.
        self.find_ancestor(wait, walk)
            .inspect(|job| _ = self.help(*job, self.shared.slot(*job)))
            .is_some()
    }

    /// As above, without running it.
    fn find_ancestor(&self, wait: Wait, walk: &mut Walk) -> Option<Ticket> {
        self.walk_on(walk).or_else(|| {
            walk.serial = self.own(|own| {
                own.serial += 1;
                own.serial
            });
            walk.visits_left = Tuning::SEARCH_VISITS_MAX;
            walk.stack.push(wait.target);
            self.walk_on(walk)
        })
    }

    /// The next job on the walk that can be run.
    fn walk_on(&self, walk: &mut Walk) -> Option<Ticket> {
        while let Some(job) = walk.stack.pop() {
            let slot = self.shared.slot(job);
            if walk.visits_left == 0 {
                walk.stack.clear();
                return None;
            }
            let Some(mark) = self.mark(slot, walk.serial) else {
                continue;
            };
            walk.visits_left -= 1;
            // Acquire, partner: the Release stores of the state: the links of a waiting job.
            let word = slot.word(Ordering::Acquire);
            if word.is_over(job) {
                // The slot's next job may have got the mark, and this wait does not need that one.
                // Relaxed, as for marking; it fails if somebody else has marked it since.
                let _ = slot
                    .mark
                    .compare_exchange(mark, 0, Ordering::Relaxed, Ordering::Relaxed);
                continue;
            }
            match word.phase {
                Phase::Ready => return Some(job),
                Phase::Open if self.has_room_for_member(slot) => return Some(job),
                Phase::Waiting => {
                    self.unfinished_preds(job, |pred| walk.stack.push(pred));
                }
                _ => {}
            }
        }
        None
    }

    fn help_descendant(&self, wait: Wait, look: Look) -> bool {
        self.find_descendant(wait, look)
            .is_some_and(|ticket| self.help(ticket, self.shared.slot(ticket)))
    }

    /// Looks through all queues for a ticket the wait may run.
    fn find_descendant(&self, wait: Wait, look: Look) -> Option<Ticket> {
        let mut left;
        let mut found = None;
        let mut consider = |ticket: Ticket, left: &mut usize| {
            if *left == 0 {
                return true;
            }
            *left -= 1;
            if self.shared.slots.exists(ticket.index())
                && self.is_startable(ticket)
                && self.descends(ticket, wait)
            {
                found = Some(ticket);
            }
            found.is_some()
        };
        for seat in self.shared.seats.iter() {
            for deque in std::iter::once(&seat.deque).chain(&seat.inbox) {
                left = if look == Look::Quick {
                    QUICK_TICKETS
                } else {
                    usize::MAX
                };
                deque.scan(|ticket| consider(ticket, &mut left));
            }
        }
        if look == Look::Thorough {
            left = usize::MAX;
            self.shared
                .injector
                .scan(|ticket| consider(ticket, &mut left));
        }
        found
    }

    /// Nothing to run: asks to be told, spins, parks.
    fn watch(&self, wait: Wait, walk: &mut Walk, deadline: Nanos) -> Result<bool, WaitError> {
        let shared = self.shared;
        let slot = shared.slot(wait.target);
        match self.listen(wait.target, Listener::Seat(self.seat.index)) {
            Ok(true) => {}
            Ok(false) => return Ok(true),
            // No link to be had (millions of edges are alive): look once a millisecond.
            Err(_) => return self.poll_for(wait, walk, deadline),
        }
        shared.idle.begin_watch::<Fenced>();
        let mut patience = self.patience(deadline);
        let mut suspected = None;
        let result = loop {
            let epoch = shared.idle.epoch();
            if self.help_until_stuck(wait, walk) {
                break Ok(true);
            }
            let now = shared.platform.now();
            if now >= deadline {
                break Ok(slot.is_over(wait.target));
            }
            if now < patience.quiet_until {
                shared.idle.spin(epoch, patience.quiet_until);
                continue;
            }
            // A wait with a deadline ends, whoever waits for whom.
            let endless = deadline == Nanos::MAX;
            let cycle = endless.then(|| self.find_cycle(wait.target)).flatten();
            let until = match cycle {
                None => {
                    suspected = None;
                    deadline
                }
                Some(error) => {
                    let since = *suspected.get_or_insert(now);
                    if now - since >= DEADLOCK_CONFIRM {
                        break Err(error);
                    }
                    deadline.min(since + DEADLOCK_CONFIRM)
                }
            };
            if self.rest(wait, walk, patience.spin_until, until) == Rest::Parked {
                patience = self.patience(deadline);
            }
        };
        shared.idle.end_watch();
        result
    }

    fn patience(&self, deadline: Nanos) -> Patience {
        let spin_until = self.spin_deadline(deadline);
        let quiet_until = match spin_until {
            Nanos::ZERO => Nanos::ZERO,
            later => later.min(self.shared.platform.now() + Tuning::SPIN_MAX),
        };
        Patience {
            quiet_until,
            spin_until,
        }
    }

    /// The last look around, then rest until `until`: parked, or spinning as long as the policy says
    /// so. Meanwhile this thread counts as blocked, and everything that others could run is theirs.
    fn rest(&self, wait: Wait, walk: &mut Walk, spin_until: Nanos, until: Nanos) -> Rest {
        self.promote_all();
        let epoch = self.shared.idle.epoch();
        self.begin_block();
        // SeqCst, partner: the publisher's fence (F in `idle`): it sees the marks, or we its ticket.
        P::fence(Ordering::SeqCst);
        let found = self
            .find_ancestor(wait, walk)
            .or_else(|| self.find_descendant(wait, Look::Thorough));
        let mut rest = Rest::None;
        if found.is_none() && !self.shared.slot(wait.target).is_over(wait.target) {
            self.replace_blocked();
            if self.shared.platform.now() < spin_until {
                self.shared.idle.spin(epoch, spin_until.min(until));
                rest = Rest::Spun;
            } else {
                self.seat.counters.parks.add(1);
                self.record(EventKind::Park, wait.target, 0);
                self.seat.parker.park(until);
                self.record(EventKind::Unpark, wait.target, 0);
                rest = Rest::Parked;
            }
        }
        self.end_block();
        if let Some(job) = found {
            self.help(job, self.shared.slot(job));
        }
        rest
    }

    #[cold]
    fn poll_for(&self, wait: Wait, walk: &mut Walk, deadline: Nanos) -> Result<bool, WaitError> {
        const PERIOD: Nanos = Nanos::from_millis(1);
        loop {
            let now = self.shared.platform.now();
            if self.help_until_stuck(wait, walk) || now >= deadline {
                return Ok(self.shared.slot(wait.target).is_over(wait.target));
            }
            self.rest(wait, walk, Nanos::ZERO, deadline.min(now + PERIOD));
        }
    }

    /// Wakes the waiters that want one of the tickets just queued.
    #[cold]
    pub(crate) fn alert_watchers(&self, fresh: u32, queue: Queue) {
        let deque = match (queue, &self.seat.inbox) {
            (Queue::Inbox, Some(inbox)) => inbox,
            _ => &self.seat.deque,
        };
        let mut left = fresh;
        deque.scan(|ticket| {
            self.alert_watcher_of(ticket);
            left -= 1;
            left == 0
        });
    }

    /// Wakes the waiter that needs this job, going by the marks on it and on the jobs it was made
    /// by.
    pub(crate) fn alert_watcher_of(&self, ticket: Ticket) {
        const NESTING_MAX: usize = 64;
        let mut job = Some(ticket).filter(|job| self.shared.slots.exists(job.index()));
        for _ in 0..NESTING_MAX {
            let Some(known) = job else { return };
            let mark = self.shared.slot(known).mark.load(Ordering::Relaxed);
            if let Some(mark) = Mark::unpack(mark) {
                match mark.is_shared {
                    false => self.alert(self.shared.seats.get(mark.seat as usize)),
                    true => self.shared.seats.iter().for_each(|seat| self.alert(seat)),
                }
                return;
            }
            job = self.parent_of(known);
        }
    }

    fn alert(&self, seat: &Seat<P>) {
        let elsewhere = seat.index != self.seat.index;
        if elsewhere && seat.waits_for.load(Ordering::Relaxed) != 0 {
            self.unpark(seat);
        }
    }

    /// Announces everything scheduled so far to as many workers as can use it. Without workers:
    /// runs it.
    pub(crate) fn flush(&self) {
        self.publish(self.queue(), false);
        if self.own(|own| own.unsignalled > 0) {
            self.wake_for_batch();
        }
    }
}
