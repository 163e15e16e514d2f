//! The signals between threads with lists of segments, and the priorities that their waiters lend.
//!
//! Each pair of threads has a count of what one sent and the other waited for, so that a thread goes on at
//! the same point of the other's work whichever of the two is early. Programs of this kind are made of
//! recordings, in which a thread's time holds what its calls of the kernel took; so the calls here take no
//! more time than the machine's kernel says, and none where that is free.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex};

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Parker, Platform};
use policy::Attr;

use super::file::Scenario;
use super::objects::held;
use crate::{Sim, SimParker};

/// A time after the end of every scenario.
const FOR_EVER: Nanos = Nanos(1 << 62);

/// How far a lent priority is handed on, from waiter to waiter.
const CHAIN_MAX: usize = 32;

/// The signals of a run.
#[derive(Default)]
pub(super) struct Signals {
    /// The number of each thread.
    numbers: BTreeMap<Arc<str>, usize>,
    boxes: StdMutex<Vec<Inbox>>,
    /// When the scenario is over: nobody waits any longer then.
    pub(super) end: Nanos,
}

/// What was sent to one thread.
struct Inbox {
    /// By sender: how many signals were sent and not yet waited for.
    sent: BTreeMap<usize, u64>,
    /// By holder: how many locks it holds that the thread wants.
    locks: BTreeMap<usize, i64>,
    /// The sender of the signal that the thread sleeps for, and whether it lends.
    waits_for: Option<(usize, bool)>,
    /// While it waits to take a lock: the holder.
    takes_from: Option<usize>,
    /// How much later than the signal it can run.
    late: Nanos,
    parker: Arc<SimParker>,
    /// Counts signals that came while the thread spins.
    word: Arc<<Sim as Memory>::AtomicU64>,
    spins: bool,
    own: Attr,
    now: Attr,
    has_ended: bool,
}

impl Signals {
    /// Those of all threads of the scenario.
    pub(super) fn new(sim: &Sim, scenario: &Scenario) -> Signals {
        if scenario.threads.iter().all(|plan| plan.segments.is_empty()) {
            return Signals::default();
        }
        let plans = scenario.threads.iter();
        let threads = plans.flat_map(|plan| (0..plan.count).map(move |copy| (plan, copy)));
        let mut signals = Signals {
            end: scenario.until.unwrap_or(FOR_EVER),
            ..Signals::default()
        };
        let mut boxes = Vec::new();
        for (number, (plan, copy)) in threads.enumerate() {
            signals.numbers.insert(plan.name_of(copy).into(), number);
            boxes.push(Inbox {
                sent: BTreeMap::new(),
                locks: BTreeMap::new(),
                waits_for: None,
                takes_from: None,
                late: Nanos::ZERO,
                parker: Arc::new(sim.parker()),
                word: Arc::new(<Sim as Memory>::AtomicU64::new(0)),
                spins: false,
                own: plan.attr(),
                now: plan.attr(),
                has_ended: false,
            });
        }
        signals.boxes = StdMutex::new(boxes);
        signals
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Thread `me` sends a signal to the thread of this name.
    pub(super) fn wake(&self, sim: &Sim, me: usize, target: &str) {
        self.tell(sim, me, target, |inbox| {
            *inbox.sent.entry(me).or_default() += 1;
            true
        });
    }

    /// Whether the thread of this name sleeps until thread `me` sends it a signal.
    pub(super) fn is_awaited(&self, me: usize, waiter: &str) -> bool {
        let boxes = held(&self.boxes);
        let inbox = self.number(waiter).map(|waiter| &boxes[waiter]);
        inbox.is_some_and(|inbox| matches!(inbox.waits_for, Some((from, _)) if from == me))
    }

    /// Thread `me` begins to hold what the thread of this name will want.
    pub(super) fn hold(&self, me: usize, target: &str) {
        if let Some(target) = self.number(target) {
            *held(&self.boxes)[target].locks.entry(me).or_default() += 1;
        }
    }

    /// Thread `me` gives back what the thread of this name wants.
    pub(super) fn free(&self, sim: &Sim, me: usize, target: &str) {
        self.tell(sim, me, target, |inbox| {
            let count = inbox.locks.entry(me).or_default();
            *count -= 1;
            *count <= 0
        });
    }

    /// The same, and the thread of this name has it at once if it waits to take it.
    pub(super) fn hand(&self, sim: &Sim, me: usize, target: &str) {
        if let Some(target) = self.number(target) {
            let mut boxes = held(&self.boxes);
            let inbox = &mut boxes[target];
            let is_last = inbox.locks.get(&me).is_none_or(|count| *count <= 1);
            let takes = inbox.takes_from.take_if(|from| is_last && *from == me);
            if takes.is_some() {
                *boxes[me].locks.entry(target).or_default() += 1;
            }
        }
        self.free(sim, me, target);
    }

    /// Tells a thread something, which says whether it goes on if it waits for this one.
    fn tell(&self, sim: &Sim, me: usize, target: &str, what: impl FnOnce(&mut Inbox) -> bool) {
        let Some(target) = self.number(target) else {
            return;
        };
        let (parker, word) = {
            let mut boxes = held(&self.boxes);
            let inbox = &mut boxes[target];
            let goes_on = what(inbox);
            let waits = inbox.waits_for.take_if(|(from, _)| goes_on && *from == me);
            (
                waits.map(|(_, lends)| (inbox.parker.clone(), lends, inbox.late)),
                inbox.spins.then(|| inbox.word.clone()),
            )
        };
        let lent = matches!(parker, Some((_, true, _)));
        match parker {
            Some((parker, _, Nanos::ZERO)) => _ = parker.unpark(),
            Some((_, _, late)) => sim.wake_later(target, sim.time() + late),
            None => {}
        }
        // Behind the wake-up: what the thread had until now lets it come so far.
        if lent {
            self.settle(sim, me);
        }
        if let Some(word) = word {
            // SeqCst, partner: the load in `spin_until`, in `spin`.
            word.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Takes a signal of this sender, if there is one.
    fn take(&self, me: usize, from: usize) -> bool {
        match held(&self.boxes)[me].sent.get_mut(&from) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// Thread `me` sleeps until the thread of this name has sent it a signal.
    pub(super) fn wait(&self, sim: &Sim, me: usize, from: &str, how: (Nanos, bool)) {
        if let Some(from) = self.number(from) {
            self.sleep(sim, me, from, how, || self.take(me, from));
        }
    }

    /// Thread `me` sleeps while the thread of this name holds what it wants.
    pub(super) fn lock(&self, sim: &Sim, me: usize, from: &str, how: (Nanos, bool)) {
        if let Some(from) = self.number(from) {
            self.sleep(sim, me, from, how, || self.is_free(me, from));
        }
    }

    /// The same, and it holds what that thread wants from then on.
    pub(super) fn take_lock(&self, sim: &Sim, me: usize, from: &str, how: (Nanos, bool)) {
        let Some(from) = self.number(from) else {
            return;
        };
        if !self.is_free(me, from) {
            held(&self.boxes)[me].takes_from = Some(from);
            self.sleep(sim, me, from, how, || self.is_free(me, from));
            // It was handed over, unless the holder said `free`.
            let mut boxes = held(&self.boxes);
            if boxes[me].takes_from.take().is_none() {
                return;
            }
        }
        *held(&self.boxes)[from].locks.entry(me).or_default() += 1;
    }

    /// Whether the thread `from` holds nothing that thread `me` wants.
    fn is_free(&self, me: usize, from: usize) -> bool {
        let boxes = held(&self.boxes);
        boxes[me].locks.get(&from).is_none_or(|count| *count <= 0)
    }

    /// Thread `me` sleeps until something is so, for which the thread `from` is responsible.
    fn sleep(
        &self,
        sim: &Sim,
        me: usize,
        from: usize,
        (late, lends): (Nanos, bool),
        is_over: impl Fn() -> bool,
    ) {
        if is_over() {
            return;
        }
        let tells = sim.has_hints();
        if tells {
            sim.waits_for(&[from]);
        }
        loop {
            let parker = {
                let mut boxes = held(&self.boxes);
                boxes[me].waits_for = Some((from, lends));
                boxes[me].late = late;
                boxes[me].parker.clone()
            };
            if lends {
                self.settle(sim, from);
            }
            parker.park(self.end);
            if is_over() || sim.time() >= self.end {
                break;
            }
        }
        if tells {
            sim.waits_for(&[]);
        }
    }

    /// The same, and keeps the CPU busy meanwhile.
    pub(super) fn spin(&self, sim: &Sim, me: usize, from: &str) {
        let Some(from) = self.number(from) else {
            return;
        };
        while !self.take(me, from) {
            let (word, seen) = {
                let mut boxes = held(&self.boxes);
                boxes[me].spins = true;
                let word = boxes[me].word.clone();
                // SeqCst, partner: the count in `wake`.
                let seen = word.load(Ordering::SeqCst);
                (word, seen)
            };
            Sim::spin_until(&word, |value| value != seen, self.end);
            if sim.time() >= self.end {
                return;
            }
        }
        held(&self.boxes)[me].spins = false;
    }

    /// Thread `me` is scheduled as `attr` says from now on, unless another one lends it more.
    pub(super) fn set_attr(&self, sim: &Sim, me: usize, attr: Attr) {
        held(&self.boxes)[me].own = attr;
        self.settle(sim, me);
    }

    /// Thread `me` has nothing more to do.
    pub(super) fn end(&self, me: usize) {
        if let Some(inbox) = held(&self.boxes).get_mut(me) {
            inbox.has_ended = true;
        }
    }

    /// Gives a thread the best of its own priority and those that are lent to it, and what it lends itself
    /// from that to the next one.
    fn settle(&self, sim: &Sim, thread: usize) {
        let mut next = Some(thread);
        for _ in 0..CHAIN_MAX {
            let Some(thread) = next else { return };
            let changed = {
                let mut boxes = held(&self.boxes);
                let lent = boxes.iter();
                let lent = lent.filter(|inbox| inbox.waits_for == Some((thread, true)));
                let best = lent.map(|inbox| &inbox.now).max_by_key(|attr| rank(attr));
                let own = &boxes[thread].own;
                let best = best.filter(|lent| rank(lent) > rank(own)).unwrap_or(own);
                let best = best.clone();
                let inbox = &mut boxes[thread];
                next = inbox.waits_for.and_then(|(on, lends)| lends.then_some(on));
                let is_new = inbox.now != best && !inbox.has_ended;
                inbox.now = best.clone();
                is_new.then_some(best)
            };
            match changed {
                Some(attr) => sim.set_attr_of(thread, attr),
                None => return,
            }
        }
    }
}

/// The order of priorities, the best last: real-time ones, then fair ones by their niceness.
fn rank(attr: &Attr) -> (bool, i16) {
    if attr.discipline.is_realtime() {
        (true, i16::from(attr.priority))
    } else {
        (false, -i16::from(attr.nice))
    }
}
