//! Waits that burn a CPU: marked ones in which the thread never sleeps.
//!
//! No kernel knows that such a thread waits, let alone which thread it waits for. The end of the wait tells,
//! in this order: a request that the thread had begun and another thread ended; an arrow from another
//! thread's slice; a slice of the same program that ended last before the wait did; a thread that this one
//! had woken.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use event::Nanos;

use super::Confidence;
use super::arrows::ArrowIndex;
use super::words::NameHints;
use crate::timeline::{NOBODY, Slice, State, Timeline};

/// A wait that burns a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BusyWait {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    /// The thread it waited for.
    pub(super) awaited: u32,
    /// When that thread ended the wait.
    pub(super) done: Nanos,
    pub(super) confidence: Confidence,
}

/// The number of candidates that are looked at.
const LOOK: usize = 256;

/// Busy waits of all threads, found when they are asked for.
pub(super) struct BusyWaits<'t> {
    timeline: &'t Timeline,
    says: &'t [NameHints],
    /// Ends of slices, in their order.
    ends: Vec<(Nanos, u32)>,
    /// All wake-ups: the waker, the time, the woken thread.
    woke: Vec<(u32, Nanos, u32)>,
    arrows: &'t ArrowIndex,
    found: RefCell<HashMap<u32, Rc<[BusyWait]>>>,
}

impl<'t> BusyWaits<'t> {
    pub(super) fn new(
        timeline: &'t Timeline,
        says: &'t [NameHints],
        arrows: &'t ArrowIndex,
    ) -> BusyWaits<'t> {
        let waits = says.iter().any(|says| says.waits);
        let mut ends = Vec::new();
        let mut woke = Vec::new();
        if waits {
            for (thread, slices) in timeline.slices.slices.groups() {
                ends.extend(slices.iter().map(|slice| (slice.end, thread)));
            }
            ends.sort_unstable();
            let wakes = timeline.wake_ups();
            woke.extend(wakes.map(|(woken, time, by)| (by, time, woken)));
            woke.sort_unstable();
        }
        BusyWaits {
            timeline,
            says,
            ends,
            woke,
            arrows,
            found: RefCell::default(),
        }
    }

    /// The busy wait that a thread was in just before a time.
    pub(super) fn before(&self, thread: u32, time: Nanos) -> Option<BusyWait> {
        if self.ends.is_empty() {
            return None;
        }
        let found = self.of(thread);
        let after = found.partition_point(|wait| wait.begin < time);
        let wait = found[..after].last()?;
        (wait.end >= time).then_some(*wait)
    }

    /// A thread's busy waits; none where no slice is a wait.
    pub(super) fn all_of(&self, thread: u32) -> Rc<[BusyWait]> {
        if self.ends.is_empty() {
            return Rc::new([]);
        }
        self.of(thread)
    }

    /// A thread's busy waits, in the order of their beginnings; they do not overlap.
    fn of(&self, thread: u32) -> Rc<[BusyWait]> {
        if let Some(found) = self.found.borrow().get(&thread) {
            return Rc::clone(found);
        }
        let slices = self.timeline.slices.slices.of(thread).iter();
        let mut waits: Vec<BusyWait> = Vec::new();
        for slice in slices.filter(|slice| self.says(slice).waits) {
            // The outermost one is the wait.
            let inside = waits.last().is_some_and(|wait| wait.end > slice.begin);
            if !inside && !self.sleeps(thread, slice) {
                waits.extend(self.awaited(thread, slice));
            }
        }
        let waits: Rc<[BusyWait]> = waits.into();
        self.found.borrow_mut().insert(thread, Rc::clone(&waits));
        waits
    }

    fn says(&self, slice: &Slice) -> NameHints {
        let says = self.says.get(slice.name.0 as usize);
        says.copied().unwrap_or_default()
    }

    /// Whether a thread sleeps in a slice.
    fn sleeps(&self, thread: u32, slice: &Slice) -> bool {
        let states = self.timeline.states.of(thread);
        let first = states.partition_point(|begin| begin <= slice.begin);
        let states = states.from(first.saturating_sub(1));
        let mut states = states.take_while(|state| state.begin < slice.end);
        states
            .any(|state| !matches!(state.state, State::Running(_)) && state.state.ready().is_none())
    }

    fn awaited(&self, thread: u32, slice: &Slice) -> Option<BusyWait> {
        let by_request = || self.by_request(thread, slice);
        let by_arrow = || self.by_arrow(thread, slice);
        let by_slice = || self.by_slice(thread, slice);
        let by_wake = || self.by_wake(thread, slice);
        let found = by_request().or_else(by_arrow);
        let sure = found.is_some();
        let (awaited, done) = found.or_else(by_slice).or_else(by_wake)?;
        Some(BusyWait {
            begin: slice.begin,
            end: slice.end,
            awaited,
            done,
            confidence: if sure {
                Confidence::Inferred
            } else {
                Confidence::Assumed
            },
        })
    }

    fn by_request(&self, thread: u32, slice: &Slice) -> Option<(u32, Nanos)> {
        let requests = self.timeline.slices.asyncs.of(thread);
        let after = requests.partition_point(|request| request.end <= slice.end);
        let requests = requests[..after].iter().rev();
        let requests = requests.take_while(|request| request.end >= slice.begin);
        let mut others = requests.filter(|request| request.to != thread && request.to != NOBODY);
        others.next().map(|request| (request.to, request.end))
    }

    fn by_arrow(&self, thread: u32, slice: &Slice) -> Option<(u32, Nanos)> {
        let arrow = self.arrows.last(thread, slice.end);
        let arrow = arrow.filter(|arrow| arrow.at >= slice.begin)?;
        Some((arrow.from, arrow.left.max(slice.begin)))
    }

    fn by_slice(&self, thread: u32, slice: &Slice) -> Option<(u32, Nanos)> {
        let timeline = self.timeline;
        let process = timeline.process(timeline.task(thread));
        let after = self.ends.partition_point(|(end, _)| *end <= slice.end);
        let ends = self.ends[..after].iter().rev().take(LOOK);
        let mut ends = ends.take_while(|(end, _)| *end >= slice.begin);
        let found = ends.find(|(end, other)| {
            *other != thread
                && timeline.process(timeline.task(*other)) == process
                && matches!(timeline.before(*other, *end).state, State::Running(_))
        });
        found.map(|(end, other)| (*other, *end))
    }

    fn by_wake(&self, thread: u32, slice: &Slice) -> Option<(u32, Nanos)> {
        if self.says(slice).locks {
            return None;
        }
        let until = (thread, slice.end, u32::MAX);
        let after = self.woke.partition_point(|woke| *woke <= until);
        let woke = self.woke[..after].iter().rev().take(LOOK);
        let woke = woke.take_while(|(by, ..)| *by == thread);
        for (_, _, woken) in woke {
            // When it ran last.
            let stay = self.timeline.before(*woken, slice.end);
            let done = match stay.state {
                State::Running(_) => slice.end,
                _ => stay.begin,
            };
            let ran = matches!(self.timeline.before(*woken, done).state, State::Running(_));
            if ran && done > slice.begin {
                return Some((*woken, done));
            }
        }
        None
    }
}
