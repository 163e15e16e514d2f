//! What wants to be told when a job is over without being a job: waiting threads and pending futures.
//!
//! A listener hangs in the same list as the job's successors (see `graph`), so the thread that finishes the
//! job tells both in one walk. One that gives up (a wait that timed out, a future that was dropped) stays in
//! the list, where it costs one needless wake-up at most. It is marked, because a panic of which only such
//! listeners would be told is a panic that no wait hears of. A seat remembers where it has given up
//! ([`Ears`]), and takes its link up again when it waits for that job the next time: so a seat has one link
//! in the list of a job, however often it waits.

use std::collections::{BTreeMap, HashMap};
use std::task::Waker;

use platform::{Atomic, Lock, Memory, Ordering, Platform};

use crate::border::{UserValue, caught};
use crate::context::Context;
use crate::error::ScheduleError;
use crate::failure::Audience;
use crate::job::{Link, LinksWord, Slot, Ticket};
use crate::slab::NIL;

/// Somebody to tell. Stored in [`Links::to`](crate::job::Links::to) where a ticket would be:
/// generation 0 cannot be a ticket's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listener {
    /// The thread on this seat waits.
    Seat(u32),
    /// A future is pending; see [`Wakers`].
    Waker(u32),
}

impl Listener {
    const IS_WAKER: u64 = 1 << 23;
    /// Set in every listener, so that none is zero.
    const IS_LISTENER: u64 = 1 << 22;
    /// Set in the link of a seat that does not wait any more.
    const GAVE_UP: u64 = 1 << 21;
    const NUMBERS: u32 = Listener::GAVE_UP as u32;

    fn pack(self) -> u64 {
        match self {
            Listener::Seat(seat) => u64::from(seat) | Listener::IS_LISTENER,
            Listener::Waker(key) => u64::from(key) | Listener::IS_LISTENER | Listener::IS_WAKER,
        }
    }

    pub(crate) fn unpack(word: u64) -> Option<Listener> {
        let value = word as u32 & (Listener::NUMBERS - 1);
        match (Ticket(word).generation(), word & Listener::IS_WAKER) {
            (0, 0) => Some(Listener::Seat(value)),
            (0, _) => Some(Listener::Waker(value)),
            _ => None,
        }
    }
}

/// Wakers of pending futures, by number.
pub(crate) struct Wakers<M: Memory>(M::Lock<WakerTable>);

#[derive(Default)]
struct WakerTable {
    next: u32,
    wakers: BTreeMap<u32, Pending>,
}

/// A future that waits for `job`.
struct Pending {
    job: Ticket,
    /// None once the future was dropped. The number stays in use: it is in a link.
    waker: Option<UserValue<Waker>>,
}

impl<M: Memory> Wakers<M> {
    pub(crate) fn new() -> Self {
        Wakers(M::Lock::new(WakerTable::default()))
    }

    /// Keeps a waker until it is taken; the number is free again then. `None` if all numbers are
    /// taken.
    pub(crate) fn keep(&self, job: Ticket, waker: Waker) -> Option<u32> {
        // Dropped when the lock is free again, if there is no room.
        let mut waker = Some(UserValue::new(waker));
        self.0.with(|table| {
            if table.wakers.len() >= Listener::NUMBERS as usize {
                return None;
            }
            while table.wakers.contains_key(&table.next) {
                table.next = (table.next + 1) % Listener::NUMBERS;
            }
            let key = table.next;
            table.next = (table.next + 1) % Listener::NUMBERS;
            let waker = waker.take();
            table.wakers.insert(key, Pending { job, waker });
            Some(key)
        })
    }

    /// Another waker for the same future, or none if it was dropped. False if the waker was taken:
    /// the job is over.
    pub(crate) fn replace(&self, key: u32, job: Ticket, waker: Option<Waker>) -> bool {
        let mut waker = waker.map(UserValue::new);
        // Whichever is not needed is dropped when the lock is free again.
        self.0.with(|table| {
            let pending = table.wakers.get_mut(&key);
            let pending = pending.filter(|pending| pending.job == job);
            let is_kept = pending.is_some();
            if let Some(pending) = pending {
                std::mem::swap(&mut pending.waker, &mut waker);
            }
            is_kept
        })
    }

    pub(crate) fn take(&self, key: u32) -> Option<UserValue<Waker>> {
        self.0.with(|table| table.wakers.remove(&key))?.waker
    }

    fn is_dropped(&self, key: u32) -> bool {
        self.0.with(|table| {
            let pending = table.wakers.get(&key);
            pending.is_none_or(|pending| pending.waker.is_none())
        })
    }
}

/// A seat's links in the lists of jobs.
pub(crate) struct Ears {
    /// Of the waits that this thread is in the middle of, the innermost last.
    in_use: Vec<(Ticket, u32)>,
    /// Of waits that gave up: the block of the link, by the job in whose list it hangs.
    given_up: HashMap<Ticket, u32>,
    /// When there are so many of these, those of jobs that are over are forgotten.
    sweep_at: usize,
}

impl Ears {
    const SWEEP_AT: usize = 64;

    pub(crate) fn new() -> Ears {
        Ears {
            in_use: Vec::new(),
            given_up: HashMap::new(),
            sweep_at: Ears::SWEEP_AT,
        }
    }
}

/// A wait that will be told when its job is over.
#[must_use = "it ends with `end_listening`"]
pub(crate) struct Listening {
    target: Ticket,
    block: u32,
    /// The link is that of another wait of this seat, underneath this one.
    is_borrowed: bool,
}

impl<P: Platform> Context<'_, P> {
    /// Asks for this thread to be woken when `target` is over. `None` if it already is.
    pub(crate) fn listen(&self, target: Ticket) -> Result<Option<Listening>, ScheduleError> {
        let listener = Listener::Seat(self.seat.index);
        let (outer, earlier) = self.own(|own| {
            let mut outer = own.ears.in_use.iter().filter(|(job, _)| *job == target);
            let outer = outer.next().map(|(_, block)| *block);
            let earlier = match own.ears.given_up.is_empty() {
                true => None,
                false => own.ears.given_up.remove(&target),
            };
            (outer, earlier)
        });
        let block = match (outer, earlier) {
            (Some(block), _) => Some(block),
            (None, Some(block)) => self.take_up(target, block, listener),
            (None, None) => self.hang_listener(target, listener)?,
        };
        let Some(block) = block else { return Ok(None) };
        self.own(|own| own.ears.in_use.push((target, block)));
        Ok(Some(Listening {
            target,
            block,
            is_borrowed: outer.is_some(),
        }))
    }

    /// Has a listener told when `target` is over: the block of its link, or `None` if it already is.
    pub(crate) fn hang_listener(
        &self,
        target: Ticket,
        listener: Listener,
    ) -> Result<Option<u32>, ScheduleError> {
        let (block, links) = self.allocate_links()?;
        links.fill(&[], listener.pack(), NIL);
        if !self.hang_in_block(target, block, 0, links) {
            self.free_links(block);
            return Ok(None);
        }
        Ok(Some(block))
    }

    /// Takes up a link that this seat has in the list of `target` from an earlier wait; `None` if that job is
    /// over. As long as its list is open all its links are in it, and the thread that closes it later tells
    /// this one.
    fn take_up(&self, target: Ticket, block: u32, listener: Listener) -> Option<u32> {
        // Acquire, partner: the swap in `close`, as in `has_ended`: if the job is over, what it did is
        // visible.
        let head = LinksWord(self.shared.slot(target).links.load(Ordering::Acquire));
        if !head.is_open_for(target) {
            return None;
        }
        let to = &self.shared.links.get(block).to;
        let (given_up, now) = (listener.pack() | Listener::GAVE_UP, listener.pack());
        // Relaxed: who finishes the job tells this listener whether or not it is marked. In a link that has
        // just been freed it changes nothing, and in one that is used again it fails.
        let relaxed = Ordering::Relaxed;
        let _ = to.compare_exchange(given_up, now, relaxed, relaxed);
        Some(block)
    }

    /// The innermost wait is through. `is_over`: its job is over, and with it the link; else the link stays
    /// where it is, for the next wait.
    pub(crate) fn end_listening(&self, listening: Listening, is_over: bool) {
        let Listening { target, block, .. } = listening;
        self.own(|own| own.ears.in_use.pop());
        if is_over || listening.is_borrowed {
            return;
        }
        let now = Listener::Seat(self.seat.index).pack();
        let to = &self.shared.links.get(block).to;
        // Relaxed: only a hint for `audience`. If the link has been freed it is not this seat's any
        // more: of one seat's waits only the innermost gets here, so none of them can have got it.
        let relaxed = Ordering::Relaxed;
        let _ = to.compare_exchange(now, now | Listener::GAVE_UP, relaxed, relaxed);
        self.own(|own| {
            let ears = &mut own.ears;
            ears.given_up.insert(target, block);
            if ears.given_up.len() >= ears.sweep_at {
                let is_open = |job: &Ticket| !self.shared.slot(*job).has_ended(*job);
                ears.given_up.retain(|job, _| is_open(job));
                ears.sweep_at = Ears::SWEEP_AT.max(2 * ears.given_up.len());
            }
        });
    }

    /// Who will be told how the job ended. The caller is finishing it, and its list is still open.
    pub(crate) fn audience(&self, job: Ticket, slot: &Slot<P>, flags: u32) -> Audience {
        let held = flags & Slot::<P>::IS_HELD != 0
            && slot.holders.load(Ordering::Relaxed) & Slot::<P>::HANDLE != 0;
        if held
            || flags & (Slot::<P>::IN_SCOPE | Slot::<P>::IS_AWAITED) != 0
            || self.is_awaited(job)
        {
            return Audience::Somebody;
        }
        if flags & Slot::<P>::IS_ANONYMOUS != 0 {
            return Audience::Nobody;
        }
        let mut audience = Audience::Nobody;
        // Acquire, partner: the Release CAS in `hang`: the links. None of them is freed before the
        // list is closed, which is the caller's to do.
        let mut link = LinksWord(slot.links.load(Ordering::Acquire)).link();
        while link < LinksWord::CLOSED {
            let (to, next) = self.read_link(Link::unpack(link));
            match Listener::unpack(to) {
                None => audience = Audience::Successors,
                Some(Listener::Seat(_)) if to & Listener::GAVE_UP != 0 => {}
                Some(Listener::Waker(key)) if self.shared.wakers.is_dropped(key) => {}
                Some(_) => return Audience::Somebody,
            }
            link = next;
        }
        audience
    }

    /// Whether a thread waits for the job that has not had to listen: this one, in whose wait the
    /// job has just been run, or another one that is about to look. (One that helps with something
    /// else meanwhile is overlooked.)
    fn is_awaited(&self, job: Ticket) -> bool {
        let here = self.own(|own| own.awaited.contains(&job));
        let mut seats = self.shared.seats.iter();
        here || seats.any(|seat| seat.waits_for.load(Ordering::Relaxed) == job.0)
    }

    /// Tells a listener that its job is over.
    pub(crate) fn notify(&self, listener: Listener) {
        match listener {
            Listener::Seat(seat) => {
                // The waiter may be spinning on the epoch, or be parked.
                self.shared.idle.bump();
                self.unpark(self.shared.seats.get(seat as usize));
            }
            Listener::Waker(key) => {
                if let Some(waker) = self.shared.wakers.take(key) {
                    self.call_hook(|| caught(|| waker.into_inner().wake()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    /// Goal: of nested waits of one thread for one job, the inner one that gives up leaves the outer
    /// one its ear; only when the outer one gives up, too, does nobody listen. Method: listen twice
    /// as one seat, without the rest of waiting, and ask who would be told.
    #[test]
    fn an_inner_wait_that_gives_up_leaves_the_outer_one_its_ear() {
        let js = Builder::small().workers(0).build().unwrap();
        let event = js.event("event");
        let target = event.id().ticket();
        js.enter(|cx| {
            let slot = cx.shared.slot(target);
            let listen = || match cx.listen(target) {
                Ok(Some(listening)) => listening,
                _ => panic!("the event is not over and there are links"),
            };
            let audience = || cx.audience(target, slot, 0);
            assert_eq!(audience(), Audience::Nobody);
            let (outer, inner) = (listen(), listen());
            assert_eq!((outer.is_borrowed, inner.is_borrowed), (false, true));
            assert_eq!(audience(), Audience::Somebody);
            cx.end_listening(inner, false);
            assert_eq!(audience(), Audience::Somebody);
            cx.end_listening(outer, false);
            assert_eq!(audience(), Audience::Nobody);
            let again = listen();
            assert!(!again.is_borrowed, "the link that was given up is taken up");
            assert_eq!(audience(), Audience::Somebody);
            cx.end_listening(again, false);
            assert_eq!(
                cx.shared
                    .links
                    .iter()
                    .filter(|(_, links)| links.to.load(Ordering::Relaxed) != 0)
                    .count(),
                1
            );
        });
        event.complete();
    }

    /// Goal: a seat has one link in the list of a job, however many jobs it polls in turn, and forgets those
    /// of jobs that are over. Method: many rounds over many events that are not complete, then over others.
    #[test]
    fn polling_many_jobs_in_turn_keeps_one_link_each() {
        const EVENTS: usize = if cfg!(miri) { 5 } else { 100 };
        let js = Builder::new().workers(0).max_jobs(256).build().unwrap();
        let used = || js.enter(|cx| cx.shared.links.iter().count());
        let mut most = None;
        for _ in 0..4 {
            let events: Vec<_> = (0..EVENTS).map(|_| js.event("polled")).collect();
            for _ in 0..20 {
                for event in &events {
                    js.enter(|cx| {
                        let target = event.id().ticket();
                        let listening = cx.listen(target).unwrap().expect("it is not over");
                        cx.end_listening(listening, false);
                    });
                }
            }
            let kept = js.enter(|cx| cx.own(|own| own.ears.given_up.len()));
            assert!(
                (EVENTS..=2 * EVENTS + Ears::SWEEP_AT).contains(&kept),
                "{kept}"
            );
            assert_eq!(*most.get_or_insert_with(used), used());
            events.into_iter().for_each(|event| event.complete());
        }
    }
}
