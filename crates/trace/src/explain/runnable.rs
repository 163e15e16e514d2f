//! What kept a thread on the path from running although it could.

use event::Nanos;

use super::beside::{LONG, beside};
use super::instead::{Kept, Stretch, Waiter, instead};
use super::queue::{OwnCpu, divide, idle_state, queues};
use super::walk::{On, PathFrame, Walk};
use super::{CauseKind, Confidence, IdleExit, InversionKind, Segment, Share, Who};
use crate::timeline::{Since, Stay};

/// The reason why a thread that could run did not.
struct Why {
    kind: CauseKind,
    inversion: InversionKind,
    confidence: Confidence,
    beside_idle: bool,
    exit: Option<IdleExit>,
}

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
        let queues = queues(timeline, thread, stay, since);
        for stretch in stretches.into_iter().rev() {
            let parts = divide(timeline, thread, &lanes, &queues, stretch);
            for (part, own) in parts.into_iter().rev() {
                let why = self.why(since, &part, own, lock, told);
                self.segments.push(Segment {
                    begin: part.begin,
                    end: part.end,
                    thread: Some(timeline.task(thread)),
                    kind: why.kind,
                    by: part.by,
                    beside_idle: why.beside_idle,
                    exit: why.exit,
                    function: None,
                    job: None,
                    confidence: frame.confidence.max(why.confidence),
                    inversion: knows.then_some(why.inversion),
                });
            }
        }
        self.time = from;
    }

    /// Why a thread that could run did not. `told`: how sure it is which CPUs it may use.
    fn why(
        &self,
        since: Since,
        part: &Stretch,
        own: OwnCpu,
        lock: Option<Confidence>,
        told: Confidence,
    ) -> Why {
        let timeline = self.ground.timeline;
        let length = part.end - part.begin;
        let kept = match part.kept {
            Kept::Idle if !timeline.tells_throttling() && is_long_idle(part) => Kept::Unclear,
            kept => kept,
        };
        let by_queue = match since {
            Since::Preempted => CauseKind::Preempted,
            Since::Woken => CauseKind::WakeLatency,
        };
        let mut exit = None;
        let (kind, inversion, confidence) = match (kept, own) {
            (Kept::Aside, _) => (
                CauseKind::Throttled,
                InversionKind::Throttled,
                Confidence::Assumed,
            ),
            (Kept::Waiter, _) => (CauseKind::BusyWaitStolen, InversionKind::BusyWait, told),
            (_, OwnCpu::Idle(lane, sure)) => {
                let lane = &timeline.lanes[lane as usize];
                exit = Some(IdleExit {
                    cpu: lane.cpu,
                    state: idle_state(timeline, lane, part.begin),
                });
                let is_long = length >= LONG && !timeline.tells_throttling();
                let sure = if is_long { Confidence::Assumed } else { sure };
                (CauseKind::IdleExit, InversionKind::IdleExit, sure)
            }
            (_, OwnCpu::Busy(sure)) => (by_queue, InversionKind::Preemption, sure),
            (Kept::Offline, _) => (CauseKind::NoCore, InversionKind::NoCore, told),
            (Kept::Unclear, _) => (by_queue, InversionKind::Placement, Confidence::Assumed),
            (Kept::Idle, _) => (by_queue, InversionKind::Placement, told),
            (Kept::Busy, _) => (by_queue, InversionKind::Preemption, told),
        };
        let beside_idle =
            matches!(own, OwnCpu::Busy(_)) && matches!(kept, Kept::Idle | Kept::Unclear);
        match (lock, kept) {
            (Some(sure), kept) if kept != Kept::Aside => Why {
                kind,
                inversion: InversionKind::Lock,
                confidence: confidence.max(sure),
                beside_idle,
                exit,
            },
            _ => Why {
                kind,
                inversion,
                confidence,
                beside_idle,
                exit,
            },
        }
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
                beside_idle: false,
                exit: None,
                function: None,
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
