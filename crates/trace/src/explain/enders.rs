//! The ends of sleeps and of busy waits, for those who run a recording again.

use event::{Nanos, Task};

use super::arrows::ArrowIndex;
use super::busy::BusyWaits;
use super::words::NameHints;
use super::{Confidence, locks, wakers, words};
use crate::timeline::{Slice, Stay, Timeline, Waker};

/// What ended a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ender {
    /// This thread.
    Thread(Task),
    /// An interrupt: of a timer, or of a device.
    Interrupt,
    /// The recording does not say.
    Unknown,
}

/// A wait that kept a CPU busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpinWait {
    /// The thread that waited.
    pub thread: Task,
    /// Its beginning.
    pub begin: Nanos,
    /// Its end.
    pub end: Nanos,
    /// The thread it waited for.
    pub awaited: Task,
    /// When that thread ended the wait.
    pub done: Nanos,
    /// How sure that is.
    pub confidence: Confidence,
}

/// What ended a sleep of a thread, one of its stays, and how sure that is.
pub fn ender(timeline: &Timeline, task: Task, sleep: Stay) -> (Ender, Confidence) {
    let Some(thread) = timeline.position(task) else {
        return (Ender::Unknown, Confidence::Known);
    };
    let (waker, confidence) = wakers::waker(timeline, thread, sleep);
    let ender = match waker {
        Waker::Thread(by) => Ender::Thread(timeline.task(by)),
        Waker::Interrupt => Ender::Interrupt,
        Waker::Unknown => Ender::Unknown,
    };
    (ender, confidence)
}

/// The waits that kept a CPU busy: slices whose names say that they are waits, or that have one of these
/// texts in their names, in which a thread never slept. Those of one thread are in the order of time, and do
/// not overlap.
pub fn spin_waits(timeline: &Timeline, texts: &[String]) -> Vec<SpinWait> {
    let says = words::of_all(timeline, texts);
    let arrows = ArrowIndex::new(timeline);
    let busy = BusyWaits::new(timeline, &says, &arrows);
    let mut found = Vec::new();
    for task in timeline.threads() {
        let waits = timeline.position(task).map(|thread| busy.all_of(thread));
        let waits = waits.iter().flat_map(|waits| waits.iter());
        found.extend(waits.map(|wait| SpinWait {
            thread: task,
            begin: wait.begin,
            end: wait.end,
            awaited: timeline.task(wait.awaited),
            done: wait.done,
            confidence: wait.confidence,
        }));
    }
    found
}

/// Whether a thread slept because of a lock, as far as the recording tells.
#[derive(Clone, Debug)]
pub struct LockWaits<'t> {
    timeline: &'t Timeline,
    says: Vec<NameHints>,
}

impl<'t> LockWaits<'t> {
    /// Those of a recording.
    pub fn new(timeline: &'t Timeline) -> LockWaits<'t> {
        LockWaits {
            timeline,
            says: words::of_all(timeline, &[]),
        }
    }

    /// Whether this sleep, one of the thread's stays, was because of a lock.
    pub fn is_one(&self, task: Task, sleep: Stay) -> bool {
        let (timeline, says) = (self.timeline, &self.says);
        let Some(thread) = timeline.position(task) else {
            return false;
        };
        let (waker, _) = wakers::waker(timeline, thread, sleep);
        let held = match waker {
            Waker::Thread(by) => locks::held_by(timeline, says, thread, sleep, by).is_some(),
            _ => false,
        };
        held || locks::is_lock(timeline, says, thread, sleep)
    }

    /// The outermost slice of a thread around a time that means that it holds something.
    pub fn holding(&self, task: Task, time: Nanos) -> Option<Slice> {
        let around = self.timeline.path(task, time);
        around.into_iter().find(|slice| self.says(slice).holds)
    }

    /// The innermost slice of a thread around a time, if it means that the thread wants a lock.
    pub fn wanting(&self, task: Task, time: Nanos) -> Option<Slice> {
        let innermost = self.timeline.path(task, time).pop();
        innermost.filter(|slice| self.says(slice).locks)
    }

    /// Whether a slice means that its thread holds something.
    pub fn is_held_in(&self, slice: &Slice) -> bool {
        self.says(slice).holds
    }

    fn says(&self, slice: &Slice) -> NameHints {
        self.says
            .get(slice.name.0 as usize)
            .copied()
            .unwrap_or_default()
    }
}
