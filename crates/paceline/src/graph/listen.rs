//! Listeners: waiting threads and pending futures, which are notified when a job is over.
//!
//! A listener hangs in the same list as the job's successors (see `graph`), so the thread that finishes the
//! job notifies both in one walk. A listener that gives up (a wait that timed out, a future that was dropped)
//! stays in the list, where it costs at most one needless wake-up. It is marked, because a panic whose only
//! listeners have given up is a panic that no wait reports. A thread slot remembers where it has given up
//! ([`WaitLinks`]), and takes up the same link when it waits for that job the next time. So a thread slot has
//! one link in the list of a job, however often it waits.

use std::task::Waker;

use platform::{Atomic, Lock, Memory, Ordering, Platform};

use super::failure::Audience;
use super::{Driver, Graph, OnGraph};
use crate::border::{UserValue, caught};
use crate::error::ScheduleError;
use crate::store::{Link, LinksWord, Map, NIL, Slot, Ticket};

/// A listener. It is stored in [`Links::to`](crate::store::Links::to), in the place of a ticket: it has
/// generation 0, which no ticket has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listener {
    /// The thread on this thread slot waits.
    ThreadSlot(u32),
    /// A future is pending; see [`Wakers`].
    Waker(u32),
}

impl Listener {
    const IS_WAKER: u64 = 1 << 23;
    /// Set in every listener, so that none is zero.
    const IS_LISTENER: u64 = 1 << 22;
    /// Set in the link of a thread slot that no longer waits.
    const GAVE_UP: u64 = 1 << 21;
    const NUMBERS: u32 = Listener::GAVE_UP as u32;

    fn pack(self) -> u64 {
        match self {
            Listener::ThreadSlot(thread) => u64::from(thread) | Listener::IS_LISTENER,
            Listener::Waker(key) => u64::from(key) | Listener::IS_LISTENER | Listener::IS_WAKER,
        }
    }

    pub(crate) fn unpack(word: u64) -> Option<Listener> {
        let value = word as u32 & (Listener::NUMBERS - 1);
        match (Ticket(word).generation(), word & Listener::IS_WAKER) {
            (0, 0) => Some(Listener::ThreadSlot(value)),
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
    wakers: Map<u32, Pending>,
    /// How many are being called.
    called: u32,
}

/// A future that waits for `job`.
struct Pending {
    job: Ticket,
    /// None once the future was dropped. The number stays in use, because it is in a link.
    waker: Option<UserValue<Waker>>,
}

impl<M: Memory> Wakers<M> {
    pub(crate) fn new() -> Self {
        Wakers(M::Lock::new(WakerTable::default()))
    }

    /// Keeps a waker until it is taken; then the number is free again. `None` if all numbers are taken.
    pub(crate) fn keep(&self, job: Ticket, waker: Waker) -> Option<u32> {
        // If there is no room, the waker is dropped when the lock is free again.
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

    /// Stores another waker for the same future, or none if the future was dropped. False if the waker was
    /// already taken: the job is over.
    pub(crate) fn replace(&self, key: u32, job: Ticket, waker: Option<Waker>) -> bool {
        let mut waker = waker.map(UserValue::new);
        // The waker that is not needed is dropped when the lock is free again.
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

    /// Takes a waker to call it. The call is over with [`end_call`](Wakers::end_call).
    fn begin_call(&self, key: u32) -> Option<UserValue<Waker>> {
        self.0.with(|table| {
            let waker = table.wakers.remove(&key)?.waker;
            table.called += u32::from(waker.is_some());
            waker
        })
    }

    fn end_call(&self) {
        self.0.with(|table| table.called -= 1);
    }

    /// Whether there are wakers of jobs that are over, which are about to be called or are being called.
    pub(crate) fn are_due(&self, is_over: impl Fn(Ticket) -> bool) -> bool {
        self.0.with(|table| {
            let mut all = table.wakers.values();
            table.called > 0 || all.any(|pending| is_over(pending.job))
        })
    }

    fn is_dropped(&self, key: u32) -> bool {
        self.0.with(|table| {
            let pending = table.wakers.get(&key);
            pending.is_none_or(|pending| pending.waker.is_none())
        })
    }
}

/// A thread slot's links in the lists of jobs.
pub(crate) struct WaitLinks {
    /// The links of the waits that this thread is in the middle of, the innermost last.
    in_use: Vec<(Ticket, u32)>,
    /// The links of waits that gave up: the block of each, by the job in whose list it hangs.
    given_up: Map<Ticket, u32>,
    /// When `given_up` has this many entries, those of jobs that are over are forgotten.
    sweep_at: usize,
}

impl WaitLinks {
    const SWEEP_AT: usize = 64;

    pub(crate) fn new() -> WaitLinks {
        WaitLinks {
            in_use: Vec::new(),
            given_up: Map::default(),
            sweep_at: WaitLinks::SWEEP_AT,
        }
    }
}

/// A wait that will be notified when its job is over.
#[must_use = "it ends with `end_listening`"]
pub(crate) struct Listening {
    target: Ticket,
    block: u32,
    /// The link belongs to another wait of this thread slot, underneath this one.
    is_borrowed: bool,
}

impl<P: Platform, D: Driver<P>> OnGraph<'_, P, D> {
    /// Asks for this thread to be woken when `target` is over. `None` if it is already over.
    pub(crate) fn listen(self, target: Ticket) -> Result<Option<Listening>, ScheduleError> {
        let listener = Listener::ThreadSlot(self.driver.index());
        let (outer, earlier) = self.driver.local(|local| {
            let mut outer = local
                .wait_links
                .in_use
                .iter()
                .filter(|(job, _)| *job == target);
            let outer = outer.next().map(|(_, block)| *block);
            let earlier = if local.wait_links.given_up.is_empty() {
                None
            } else {
                local.wait_links.given_up.remove(&target)
            };
            (outer, earlier)
        });
        let block = match (outer, earlier) {
            (Some(block), _) => Some(block),
            (None, Some(block)) => self.take_up(target, block, listener),
            (None, None) => self.hang_listener(target, listener)?,
        };
        let Some(block) = block else { return Ok(None) };
        self.driver
            .local(|local| local.wait_links.in_use.push((target, block)));
        Ok(Some(Listening {
            target,
            block,
            is_borrowed: outer.is_some(),
        }))
    }

    /// Hangs a listener into the list of `target`. Returns the block of its link, or `None` if the job is
    /// already over.
    pub(crate) fn hang_listener(
        self,
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

    /// The innermost wait has ended. `is_over`: its job is over, and so is the link. Otherwise the link stays
    /// in the list, for the next wait.
    pub(crate) fn end_listening(self, listening: Listening, is_over: bool) {
        let Listening { target, block, .. } = listening;
        self.driver.local(|local| local.wait_links.in_use.pop());
        if is_over || listening.is_borrowed {
            return;
        }
        let now = Listener::ThreadSlot(self.driver.index()).pack();
        let to = &self.links.get(block).to;
        // Relaxed: only a hint for `audience`. If the link has been freed, it does not belong to this thread
        // slot any more. Of one thread slot's waits only the innermost gets here, so none of them can have
        // got that link.
        let relaxed = Ordering::Relaxed;
        let _ = to.compare_exchange(now, now | Listener::GAVE_UP, relaxed, relaxed);
        self.driver.local(|local| {
            let wait_links = &mut local.wait_links;
            wait_links.given_up.insert(target, block);
            if wait_links.given_up.len() >= wait_links.sweep_at {
                let is_open = |job: &Ticket, _: &u32| !self.slot(*job).has_ended(*job);
                wait_links.given_up.retain(is_open);
                wait_links.sweep_at = WaitLinks::SWEEP_AT.max(2 * wait_links.given_up.len());
            }
        });
    }

    /// The audience of a failure. The caller is finishing the job, and the job's list is still open.
    pub(crate) fn audience(self, job: Ticket, slot: &Slot<P>, flags: u32) -> Audience {
        let asks = Slot::<P>::HANDLE | Slot::<P>::INPUT;
        let held = flags & Slot::<P>::IS_HELD != 0
            && slot.holders.load(Ordering::Relaxed) & asks == Slot::<P>::HANDLE;
        if held
            || flags & (Slot::<P>::IN_SCOPE | Slot::<P>::IS_AWAITED) != 0
            || self.driver.is_awaited(job)
        {
            return Audience::Listener;
        }
        if flags & Slot::<P>::IS_ANONYMOUS != 0 {
            return Audience::Empty;
        }
        let mut audience = Audience::Empty;
        // Acquire, partner: the Release CAS in `hang`: the links. None of them is freed before the list is
        // closed, and only the caller closes it.
        let mut link = LinksWord(slot.links.load(Ordering::Acquire)).link();
        while link < LinksWord::CLOSED {
            let (to, next) = self.read_link(Link::unpack(link));
            match Listener::unpack(to) {
                None => audience = Audience::Successors,
                Some(Listener::ThreadSlot(_)) if to & Listener::GAVE_UP != 0 => {}
                Some(Listener::Waker(key)) if self.wakers.is_dropped(key) => {}
                Some(_) => return Audience::Listener,
            }
            link = next;
        }
        audience
    }

    /// Notifies a listener that its job is over.
    pub(crate) fn notify(self, listener: Listener) {
        match listener {
            Listener::ThreadSlot(thread) => self.driver.wake_listener(thread),
            Listener::Waker(key) => {
                if let Some(waker) = self.wakers.begin_call(key) {
                    self.driver
                        .call_hook(|| caught(|| waker.into_inner().wake()));
                    self.wakers.end_call();
                }
            }
        }
    }
}

impl<P: Platform> Graph<P> {
    /// Takes up a link that this thread slot has in the list of `target` from an earlier wait. `None` if that
    /// job is over. As long as the list is open all its links are in it, and the thread that closes it later
    /// notifies this listener.
    fn take_up(&self, target: Ticket, block: u32, listener: Listener) -> Option<u32> {
        // Acquire, partner: the swap in `close`, as in `has_ended`: if the job is over, everything it did is
        // visible.
        let head = LinksWord(self.slot(target).links.load(Ordering::Acquire));
        if !head.is_open_for(target) {
            return None;
        }
        let to = &self.links.get(block).to;
        let (given_up, now) = (listener.pack() | Listener::GAVE_UP, listener.pack());
        // Relaxed: the thread that finishes the job notifies this listener whether or not it is marked. In a
        // link that has just been freed the exchange changes nothing, and in a link that is used again it
        // fails.
        let relaxed = Ordering::Relaxed;
        let _ = to.compare_exchange(given_up, now, relaxed, relaxed);
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    /// Goal: of nested waits of one thread for one job, the inner one that gives up leaves the link to the
    /// outer one. Only when the outer one gives up, too, is there no audience. Method: listen twice as one
    /// thread slot, without the rest of waiting, and ask for the audience.
    #[test]
    fn an_inner_wait_that_gives_up_leaves_the_link_to_the_outer_one() {
        let js = Builder::small().workers(0).build().unwrap();
        let event = js.event("event");
        let target = event.id().ticket();
        js.enter(|cx| {
            let slot = cx.shared.slot(target);
            let listen = || match cx.graph().listen(target) {
                Ok(Some(listening)) => listening,
                _ => panic!("the event is not over and there are links"),
            };
            let audience = || cx.graph().audience(target, slot, 0);
            assert_eq!(audience(), Audience::Empty);
            let (outer, inner) = (listen(), listen());
            assert_eq!((outer.is_borrowed, inner.is_borrowed), (false, true));
            assert_eq!(audience(), Audience::Listener);
            cx.graph().end_listening(inner, false);
            assert_eq!(audience(), Audience::Listener);
            cx.graph().end_listening(outer, false);
            assert_eq!(audience(), Audience::Empty);
            let again = listen();
            assert!(!again.is_borrowed, "the link that was given up is taken up");
            assert_eq!(audience(), Audience::Listener);
            cx.graph().end_listening(again, false);
            assert_eq!(
                cx.graph()
                    .links
                    .iter()
                    .filter(|(_, links)| links.to.load(Ordering::Relaxed) != 0)
                    .count(),
                1
            );
        });
        event.complete();
    }

    /// Goal: a thread slot has one link in the list of a job, however many jobs it polls in turn, and forgets
    /// the links of jobs that are over. Method: many rounds over many events that are not complete, then over
    /// others.
    #[test]
    fn polling_many_jobs_in_turn_keeps_one_link_each() {
        const EVENTS: usize = if cfg!(miri) { 5 } else { 100 };
        let js = Builder::new().workers(0).max_jobs(256).build().unwrap();
        let used = || js.enter(|cx| cx.graph().links.iter().count());
        let mut most = None;
        for _ in 0..4 {
            let events: Vec<_> = (0..EVENTS).map(|_| js.event("polled")).collect();
            for _ in 0..20 {
                for event in &events {
                    js.enter(|cx| {
                        let target = event.id().ticket();
                        let listening = cx.graph().listen(target).unwrap().expect("it is not over");
                        cx.graph().end_listening(listening, false);
                    });
                }
            }
            let kept = js.enter(|cx| cx.own(|own| own.graph.wait_links.given_up.len()));
            assert!(
                (EVENTS..=2 * EVENTS + WaitLinks::SWEEP_AT).contains(&kept),
                "{kept}"
            );
            assert_eq!(*most.get_or_insert_with(used), used());
            for event in events {
                event.complete();
            }
        }
    }
}
