//! What kept a thread on the path from running although it could.

use event::Nanos;

use super::beside::{LONG, beside};
use super::instead::{Kept, Stretch, Waiter, instead};
use super::walk::{On, PathFrame, Walk};
use super::{CauseKind, Confidence, InversionKind, Segment, Share, Who};
use crate::timeline::{Since, Stay};

impl Walk<'_, '_> {
    /// The CPUs that a thread may run on, and how sure that is.
    pub(super) fn allowed(&self, thread: u32, time: Nanos) -> (Vec<u32>, Confidence) {
        let timeline = self.ground.timeline;
        let lanes: Vec<u32> = timeline.allowed_lanes(thread, time).collect();
        if lanes.is_empty() {
            (self.ground.everywhere.clone(), Confidence::Assumed)
        } else if timeline.is_told(thread) {
            (lanes, Confidence::Known)
        } else {
            (lanes, Confidence::Inferred)
        }
    }

    /// The thread waited for its turn, by the recording's events.
    pub(super) fn runnable(
        &mut self,
        thread: u32,
        frame: PathFrame,
        stay: Stay,
        since: Since,
        from: Nanos,
    ) {
        let timeline = self.ground.timeline;
        let waiters = self.stack.iter().filter_map(|frame| frame.waiter);
        let waiters: Vec<Waiter> = waiters.filter(|waiter| waiter.thread != thread).collect();
        let (lanes, told) = self.allowed(thread, from);
        let during = (from, self.time);
        let beside = beside(timeline, thread, stay);
        let stretches = if lanes.is_empty() {
            unknown(during)
        } else {
            instead(timeline, thread, &lanes, &waiters, &beside, during)
        };
        // Where no CPU is known, no thread can be said to have run instead.
        let knows = !lanes.is_empty();
        let lock = self.stack.iter().rev().find_map(|frame| match frame.on {
            On::Thread(on) if on == thread => frame.lock,
            _ => None,
        });
        for stretch in stretches.into_iter().rev() {
            let kept = match stretch.kept {
                Kept::Idle if !timeline.tells_throttling() && is_long_idle(&stretch) => {
                    Kept::Unclear
                }
                kept => kept,
            };
            let kind = match (kept, since) {
                (Kept::Aside, _) => CauseKind::Throttled,
                (Kept::Offline, _) => CauseKind::NoCore,
                (Kept::Waiter, _) => CauseKind::BusyWaitStolen,
                (_, Since::Preempted) => CauseKind::Preempted,
                (_, Since::Woken) => CauseKind::WakeLatency,
            };
            let inversion = match (lock, kept) {
                (_, Kept::Aside) => InversionKind::Throttled,
                (Some(_), _) => InversionKind::Lock,
                (None, Kept::Waiter) => InversionKind::BusyWait,
                (None, Kept::Idle | Kept::Unclear) => InversionKind::Placement,
                (None, Kept::Offline) => InversionKind::NoCore,
                (None, Kept::Busy) => InversionKind::Preemption,
            };
            let sure = match (lock, kept) {
                (_, Kept::Aside) | (None, Kept::Unclear) => Confidence::Assumed,
                (lock, _) => lock.unwrap_or(Confidence::Known),
            };
            self.segments.push(Segment {
                begin: stretch.begin,
                end: stretch.end,
                thread: Some(timeline.task(thread)),
                kind,
                by: stretch.by,
                job: None,
                confidence: frame.confidence.max(told).max(sure),
                inversion: knows.then_some(inversion),
            });
        }
        self.time = from;
    }

    /// It was put aside: the recording says so.
    pub(super) fn throttled(&mut self, thread: u32, frame: PathFrame, from: Nanos) {
        let timeline = self.ground.timeline;
        let (lanes, _) = self.allowed(thread, from);
        let during = (from, self.time);
        let stretches = if lanes.is_empty() {
            unknown(during)
        } else {
            instead(timeline, thread, &lanes, &[], &[], during)
        };
        for stretch in stretches.into_iter().rev() {
            self.segments.push(Segment {
                begin: stretch.begin,
                end: stretch.end,
                thread: Some(timeline.task(thread)),
                kind: CauseKind::Throttled,
                by: stretch.by,
                job: None,
                confidence: frame.confidence,
                inversion: Some(InversionKind::Throttled),
            });
        }
        self.time = from;
    }
}

/// Whether all CPUs that the thread may use had nothing to do for so long that its turn would have come.
fn is_long_idle(stretch: &Stretch) -> bool {
    let is_idle = |share: &Share| share.who == Who::Idle;
    stretch.by.iter().all(is_idle) && stretch.end - stretch.begin >= LONG
}

/// Of a recording without CPUs it is unknown what ran instead.
fn unknown((begin, end): (Nanos, Nanos)) -> Vec<Stretch> {
    let (who, ns) = (Who::Unknown, end - begin);
    let by = vec![Share { who, ns }];
    vec![Stretch {
        begin,
        end,
        kept: Kept::Busy,
        by,
    }]
}
