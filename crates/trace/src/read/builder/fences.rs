//! Fences: work of devices, mostly of a GPU, that threads of the kernel wait for, as its `dma_fence` events
//! tell.
//!
//! A wait is a slice of its thread, named after the fence's driver and timeline. If a thread signalled the
//! fence, an arrow goes from there to the end of the wait. Mostly an interrupt of the device does; then no
//! thread is to blame, and there is none.

use std::collections::HashMap;

use event::{Nanos, Task};

use super::{At, Builder};
use crate::{Annotation, Loss, Mark, MarkKind, Recording};

/// The track of the slices, for programs that show tracks.
const TRACK: &str = "fences";
/// Arrows of programs have other numbers.
const ARROW: u64 = 0xfe9c_e500_0000_0000;

/// A fence, while it exists: the number of its timeline, and its own on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FenceKey {
    pub(crate) context: u32,
    pub(crate) seqno: u32,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceStep {
    /// The running thread begins to wait for it.
    WaitBegins,
    WaitEnds,
    /// The running thread signals it, or an interrupt does.
    Signalled,
}

#[derive(Debug)]
struct OpenWait {
    name: String,
    begin: Nanos,
    /// The arrow from the thread that signalled it.
    arrow: Option<u64>,
}

/// The waits so far.
#[derive(Debug, Default)]
pub(super) struct Fences {
    open: HashMap<(Task, FenceKey), OpenWait>,
    /// The threads that may wait for a fence that was not signalled yet.
    waiters: HashMap<FenceKey, Vec<Task>>,
    over: Vec<Annotation>,
    arrows: u64,
}

impl Builder {
    /// A step of a fence's life, with the names of its driver and its timeline.
    pub(crate) fn fence(
        &mut self,
        at: &At,
        key: FenceKey,
        step: FenceStep,
        [driver, timeline]: [&[u8]; 2],
    ) {
        match step {
            FenceStep::Signalled => self.fence_is_signalled(at, key),
            FenceStep::WaitBegins => {
                let Some(task) = self.task(at.tid) else {
                    return self.lose(Loss::BadFields, 1);
                };
                let [driver, timeline] = [driver, timeline].map(String::from_utf8_lossy);
                let name = match timeline.strip_prefix(&*driver) {
                    Some(_) => format!("{}{timeline}", Mark::FENCE_WAIT),
                    None => format!("{}{driver} {timeline}", Mark::FENCE_WAIT),
                };
                let wait = OpenWait {
                    name,
                    begin: at.time,
                    arrow: None,
                };
                self.fences.waiters.entry(key).or_default().push(task);
                if self.fences.open.insert((task, key), wait).is_some() {
                    self.lose(Loss::Unfinished, 1);
                }
            }
            FenceStep::WaitEnds => {
                let Some(task) = self.task(at.tid) else {
                    return self.lose(Loss::BadFields, 1);
                };
                let Some(wait) = self.fences.open.remove(&(task, key)) else {
                    return self.lose(Loss::Unbegun, 1);
                };
                self.fences.over.push(Annotation {
                    on: Some(task),
                    track: TRACK.into(),
                    name: wait.name,
                    begin: wait.begin,
                    end: at.time,
                });
                if let Some(id) = wait.arrow {
                    self.mark(at.time, task, MarkKind::Flow { id, ends: true });
                }
            }
        }
    }

    fn fence_is_signalled(&mut self, at: &At, key: FenceKey) {
        let waiters = self.fences.waiters.remove(&key).unwrap_or_default();
        let by = self.task(at.tid).filter(|_| !at.in_interrupt);
        let Some(by) = by else {
            return; // The interrupted thread has nothing to do with it.
        };
        for waiter in waiters {
            let fences = &mut self.fences;
            let wait = fences.open.get_mut(&(waiter, key));
            if let Some(wait) = wait.filter(|wait| wait.arrow.is_none()) {
                let id = ARROW | fences.arrows;
                fences.arrows += 1;
                wait.arrow = Some(id);
                self.mark(at.time, by, MarkKind::Flow { id, ends: false });
            }
        }
    }
}

impl Fences {
    /// Adds the waits to the recording. Those that were not over are counted.
    pub(super) fn finish(self, recording: &mut Recording) {
        recording
            .losses
            .add(Loss::Unfinished, self.open.len() as u64);
        recording.annotations.extend(self.over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENDER: FenceKey = FenceKey {
        context: 7,
        seqno: 41,
    };

    fn play(events: &[(u64, u32, bool, FenceKey, FenceStep)]) -> Recording {
        let mut builder = Builder::new("");
        for &(time, tid, in_interrupt, key, step) in events {
            let at = At {
                time: Nanos(time),
                cpu: 0,
                tid,
                in_interrupt,
            };
            builder.fence(&at, key, step, [b"v3d", b"v3d-render"]);
        }
        builder.finish()
    }

    fn arrows(recording: &Recording) -> Vec<(u64, usize, bool)> {
        let marks = recording.marks.iter().map(|mark| match mark.what {
            MarkKind::Flow { ends, .. } => (mark.time.0, mark.on.index(), ends),
            other => panic!("{other:?}"),
        });
        marks.collect()
    }

    /// Goal: a wait is a slice, with an arrow from the thread that signalled its fence and from no thread
    /// that an interrupt only interrupted. Method: two threads that wait for a fence, one of which waits for
    /// another one in the middle; signals by a thread and in an interrupt, and one that nobody waits for.
    #[test]
    fn waits_are_slices_with_arrows() {
        use FenceStep::{Signalled, WaitBegins, WaitEnds};
        let other = FenceKey {
            seqno: 42,
            ..RENDER
        };
        let found = play(&[
            (1, 10, false, RENDER, WaitBegins),
            (2, 11, false, RENDER, WaitBegins),
            (3, 11, false, other, WaitBegins),
            (4, 12, true, other, Signalled),
            (5, 11, false, other, WaitEnds),
            (6, 12, false, RENDER, Signalled),
            (7, 10, false, RENDER, WaitEnds),
            (8, 11, false, RENDER, WaitEnds),
            (9, 12, false, RENDER, Signalled),
        ]);
        let notes = found.annotations.iter();
        let mut told: Vec<_> = notes
            .map(|note| (note.begin.0, note.end.0, note.name.as_str()))
            .collect();
        told.sort_unstable();
        let name = "device fence v3d-render";
        assert_eq!(told, [(1, 7, name), (2, 8, name), (3, 5, name)]);
        let mut arrows = arrows(&found);
        arrows.sort_unstable();
        assert_eq!(
            arrows,
            [(6, 2, false), (6, 2, false), (7, 0, true), (8, 1, true)]
        );
        assert!(found.losses.is_empty(), "{:?}", found.losses);
    }

    /// Goal: what is missing of a wait is counted. Method: an end without a beginning, and the reverse; the
    /// idle task.
    #[test]
    fn parts_of_waits() {
        let found = play(&[
            (1, 10, false, RENDER, FenceStep::WaitEnds),
            (2, 10, false, RENDER, FenceStep::WaitBegins),
            (3, 0, false, RENDER, FenceStep::WaitBegins),
        ]);
        assert!(found.annotations.is_empty());
        let losses = [Loss::Unbegun, Loss::Unfinished, Loss::BadFields];
        assert_eq!(losses.map(|loss| found.losses.get(loss)), [1, 1, 1]);
    }
}
