//! Who wants to be told when a job is over without being a job: waiting threads and pending futures.
//!
//! A listener hangs in the same list as the job's successors (see `graph`), so whoever finishes the
//! job tells both in one walk. One that gives up (a wait that timed out, a future that was dropped)
//! stays in the list, where it costs one needless wake-up at most. It is marked, because a panic of
//! which only such listeners would be told is a panic nobody hears of.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use platform::{Atomic, Lock, Memory, Ordering, Platform};

use crate::context::Context;
use crate::error::ScheduleError;
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
    waker: Option<Waker>,
}

impl<M: Memory> Wakers<M> {
    pub(crate) fn new() -> Self {
        Wakers(M::Lock::new(WakerTable::default()))
    }

    /// Keeps a waker until it is taken; the number is free again then. `None` if all numbers are
    /// taken.
    pub(crate) fn keep(&self, job: Ticket, waker: Waker) -> Option<u32> {
        self.0.with(|table| {
            if table.wakers.len() >= Listener::NUMBERS as usize {
                return None;
            }
            while table.wakers.contains_key(&table.next) {
                table.next = (table.next + 1) % Listener::NUMBERS;
            }
            let key = table.next;
            table.next = (table.next + 1) % Listener::NUMBERS;
            let waker = Some(waker);
            table.wakers.insert(key, Pending { job, waker });
            Some(key)
        })
    }

    /// Another waker for the same future, or none if it was dropped. False if the waker was taken:
    /// the job is over.
    pub(crate) fn replace(&self, key: u32, job: Ticket, mut waker: Option<Waker>) -> bool {
        // Whichever is not needed is dropped when the lock is free again: it may run anybody's code.
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

    pub(crate) fn take(&self, key: u32) -> Option<Waker> {
        self.0.with(|table| table.wakers.remove(&key))?.waker
    }

    fn is_dropped(&self, key: u32) -> bool {
        self.0.with(|table| {
            let pending = table.wakers.get(&key);
            pending.is_none_or(|pending| pending.waker.is_none())
        })
    }
}

/// The block that holds a listener's link.
#[derive(Clone, Copy)]
pub(crate) struct Listening {
    block: u32,
    listener: Listener,
    /// The link is that of another wait of this seat, underneath this one.
    is_borrowed: bool,
}

/// Who will be told how a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    Nobody,
    /// Jobs that depend on it, which may or may not be heard of themselves.
    Successors,
    Somebody,
}

impl<P: Platform> Context<'_, P> {
    /// Asks to be told when `target` is over. `None` if it already is.
    pub(crate) fn listen(
        &self,
        target: Ticket,
        listener: Listener,
    ) -> Result<Option<Listening>, ScheduleError> {
        if let Some(listening) = self.listen_again(target, listener) {
            return Ok(Some(listening));
        }
        let (block, links) = self.allocate_links()?;
        links.fill(&[], listener.pack(), NIL);
        if !self.hang_in_block(target, block, 0, links) {
            self.free_links(block);
            return Ok(None);
        }
        Ok(Some(Listening {
            block,
            listener,
            is_borrowed: false,
        }))
    }

    /// Takes up the newest link of `target` if it is this listener's: a wait that timed out has left
    /// it there, and waits that are repeated until they succeed must not pile up links.
    fn listen_again(&self, target: Ticket, listener: Listener) -> Option<Listening> {
        let slot = self.shared.slot(target);
        // Acquire, partner: the Release CAS in `hang`: the link.
        let head = LinksWord(slot.links.load(Ordering::Acquire));
        let Link::InBlock { number: block, .. } = Link::unpack(head.link()) else {
            return None;
        };
        if !head.is_open_for(target) || !self.shared.links.exists(block) {
            return None;
        }
        let links = self.shared.links.get(block);
        let to = links.to.load(Ordering::Relaxed);
        // Acquire, partner: the Release stores to a block that is used again.
        P::fence(Ordering::Acquire);
        // The list is still open with the same link on top: it was not freed meanwhile.
        let is_here = slot.links.load(Ordering::Relaxed) == head.0;
        if !is_here || to & !Listener::GAVE_UP != listener.pack() {
            return None;
        }
        // Relaxed: who finishes the job tells this listener whether or not it is marked. In a link that has
        // just been freed it changes nothing, and in one that is used again it fails.
        let (relaxed, now) = (Ordering::Relaxed, listener.pack());
        let _ = links.to.compare_exchange(to, now, relaxed, relaxed);
        Some(Listening {
            block,
            listener,
            is_borrowed: to & Listener::GAVE_UP == 0,
        })
    }

    /// The listener does not wait any more, although the job may not be over.
    pub(crate) fn give_up(&self, listening: Listening) {
        if listening.is_borrowed {
            return;
        }
        let links = self.shared.links.get(listening.block);
        let now = listening.listener.pack();
        let relaxed = Ordering::Relaxed;
        // Relaxed: only a hint for `audience`. If the link has been freed it is not this seat's any
        // more: of one seat's waits only the innermost gets here, so none of them can have got it.
        let _ = links
            .to
            .compare_exchange(now, now | Listener::GAVE_UP, relaxed, relaxed);
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
                    // Somebody else's code; the others on the list are told all the same.
                    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
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
            let listen = || match cx.listen(target, Listener::Seat(cx.seat.index)) {
                Ok(Some(listening)) => listening,
                _ => panic!("the event is not over and there are links"),
            };
            let audience = || cx.audience(target, slot, 0);
            assert_eq!(audience(), Audience::Nobody);
            let (outer, inner) = (listen(), listen());
            assert_eq!((outer.is_borrowed, inner.is_borrowed), (false, true));
            assert_eq!(audience(), Audience::Somebody);
            cx.give_up(inner);
            assert_eq!(audience(), Audience::Somebody);
            cx.give_up(outer);
            assert_eq!(audience(), Audience::Nobody);
            let again = listen();
            assert!(!again.is_borrowed, "the link that was given up is taken up");
            assert_eq!(audience(), Audience::Somebody);
            cx.give_up(again);
        });
        event.complete();
    }
}
