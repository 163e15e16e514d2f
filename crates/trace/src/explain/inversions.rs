//! From segments to inversions: the threads that were kept from running, the threads that ran instead, and
//! remedies.

use std::collections::BTreeMap;

use event::{Nanos, Task};

use super::beside::LONG;
use super::instead::sum;
use super::queue::queue_at;
use super::{
    CauseKind, Confidence, Inversion, InversionKind, Remedy, Segment, Selection, Share, Wait, Who,
    beside_idle,
};
use crate::timeline::Timeline;

/// The inversions of a wait, one for each kind and each thread that could have run, in the order of kinds,
/// then of their beginnings.
pub(super) fn of(
    timeline: &Timeline,
    selection: &Selection,
    position: usize,
    wait: &Wait,
) -> Vec<Inversion> {
    let mut parts: BTreeMap<(InversionKind, Task), Vec<&Segment>> = BTreeMap::new();
    for stretch in stretches(&wait.segments) {
        let length = stretch.iter().fold(Nanos::ZERO, |sum, s| sum + s.length());
        if length < selection.least {
            continue;
        }
        for segment in stretch {
            let (Some(kind), Some(holder)) = (segment.inversion, segment.thread) else {
                continue;
            };
            parts.entry((kind, holder)).or_default().push(segment);
        }
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|((kind, _), segments)| (*kind, segments[0].begin));
    let parts = parts.into_iter();
    parts
        .map(|((kind, holder), segments)| {
            inversion(timeline, position, wait, kind, holder, &segments)
        })
        .collect()
}

/// Adjacent segments in which the same thread could have run.
fn stretches(segments: &[Segment]) -> impl Iterator<Item = &[Segment]> {
    segments
        .chunk_by(|a, b| a.thread == b.thread && a.inversion.is_some() && b.inversion.is_some())
        .filter(|stretch| stretch[0].inversion.is_some())
}

fn inversion(
    timeline: &Timeline,
    position: usize,
    wait: &Wait,
    kind: InversionKind,
    holder: Task,
    segments: &[&Segment],
) -> Inversion {
    let ns = segments.iter().fold(Nanos::ZERO, |sum, s| sum + s.length());
    let by = match kind {
        // It ran itself, only too slowly.
        InversionKind::LowFrequency | InversionKind::FrequencyLimit => {
            let who = Who::Task(holder);
            vec![Share { who, ns }]
        }
        _ => sum(segments.iter().flat_map(|segment| &segment.by)),
    };
    let begin = segments[0].begin;
    // Of a busy wait it is the waiter, of a bad placement the idle CPU.
    let runner = match kind {
        InversionKind::BusyWait => by
            .iter()
            .map(|share| share.who)
            .find(|who| matches!(who, Who::Task(task) if *task == wait.thread)),
        InversionKind::Placement => by
            .iter()
            .map(|share| share.who)
            .find(|who| *who == Who::Idle),
        _ => None,
    };
    let runner = runner.or(by.first().map(|share| share.who));
    let runner = runner.unwrap_or(Who::Unknown);
    let priority = |task| timeline.priority(task, begin).map(|priority| priority.now);
    let of_runner = match runner {
        Who::Task(task) => priority(task),
        _ => None,
    };
    let priorities = [priority(wait.thread), priority(holder), of_runner];
    let told = segments.iter().map(|segment| segment.confidence).max();
    let confidence = told.unwrap_or(Confidence::Known);
    let beside = beside_idle(segments.iter().copied());
    let mut remedies = remedies(timeline, (kind, holder, runner), segments, &by, priorities);
    if kind == InversionKind::Preemption && beside.0 * 2 >= ns.0 && beside > Nanos::ZERO {
        remedies.insert(0, Remedy::MoveAway);
        remedies.truncate(2);
    }
    Inversion {
        kind,
        wait: position,
        waiter: wait.thread,
        holder,
        runner,
        by,
        beside_idle: beside,
        begin,
        ns,
        queue: queue_at(timeline, holder, begin),
        priorities,
        confidence,
        remedies,
    }
}

/// The remedies for an inversion, by its kind, the thread that could have run, the one that ran, its parts,
/// all that ran, and the priorities as [`Inversion::priorities`] has them.
fn remedies(
    timeline: &Timeline,
    (kind, holder, runner): (InversionKind, Task, Who),
    segments: &[&Segment],
    by: &[Share],
    priorities: [Option<i16>; 3],
) -> Vec<Remedy> {
    let related = |other: Task| {
        let process = timeline.process(holder);
        process.is_some() && process == timeline.process(other)
    };
    let mut parts = segments.iter();
    let is_slow = parts.any(|part| part.kind == CauseKind::SmallCore);
    let is_unclear =
        |part: &&Segment| part.confidence == Confidence::Assumed && part.length() >= LONG;
    let is_nobody = by.iter().all(|share| share.who == Who::Idle);
    let for_idle = if is_nobody {
        Remedy::LighterSleep
    } else {
        Remedy::MoveAway
    };
    match (kind, runner) {
        (InversionKind::Throttled, _) => vec![Remedy::RaiseQuota, Remedy::FitQuota],
        (InversionKind::BusyWait, _) => vec![Remedy::Park, Remedy::FewerThreads],
        (InversionKind::LowFrequency, _) => vec![Remedy::RaiseFrequency],
        (InversionKind::FrequencyLimit, _) => vec![Remedy::RaiseLimit],
        (InversionKind::NoCore, _) => vec![Remedy::WiderAffinity, Remedy::FewerThreads],
        // It may just as well have been put aside.
        (InversionKind::IdleExit, _) if segments.iter().any(is_unclear) => {
            vec![Remedy::LighterSleep, Remedy::RaiseQuota]
        }
        (InversionKind::IdleExit, _) => vec![Remedy::LighterSleep],
        (InversionKind::Placement, _) if is_slow => {
            vec![Remedy::LeaveOutSlowCores]
        }
        // It may just as well have been put aside.
        (InversionKind::Placement, _) if segments.iter().any(is_unclear) => {
            vec![for_idle, Remedy::RaiseQuota]
        }
        (InversionKind::Placement, _) => vec![for_idle],
        // No thread is in the way of the lock's holder: a lent priority changes nothing.
        (InversionKind::Lock, _) if is_nobody => vec![for_idle, Remedy::ShorterLock],
        (InversionKind::Lock, Who::Idle) => vec![Remedy::PriorityInheritance, for_idle],
        (InversionKind::Lock, _) => vec![Remedy::PriorityInheritance, Remedy::ShorterLock],
        (InversionKind::Preemption, Who::Task(other)) if related(other) => {
            vec![Remedy::FewerThreads]
        }
        (InversionKind::Preemption, _) => by_priorities(priorities),
    }
}

/// The best priority of a real-time thread, as the kernel counts them, and the best one of an ordinary
/// thread.
const REALTIME_BEST: i16 = 0;
const ORDINARY_BEST: i16 = 100;

/// The remedies where another thread ran that is not of the same program. A better priority is none for a
/// thread that has it already, nor against one that has the best of all.
fn by_priorities([_, holder, runner]: [Option<i16>; 3]) -> Vec<Remedy> {
    let (Some(holder), Some(runner)) = (holder, runner) else {
        return vec![Remedy::SamePriority];
    };
    match holder < runner {
        // Of ordinary threads the better priority has a larger part of the CPU, and not all of it.
        true if holder >= ORDINARY_BEST => vec![Remedy::RealtimeClass, Remedy::FewerThreads],
        true => vec![Remedy::FewerThreads],
        false if runner <= REALTIME_BEST => vec![Remedy::FewerThreads],
        false => vec![Remedy::SamePriority],
    }
}
