//! From segments to inversions: who kept whom from running, and what would help.

use std::collections::BTreeMap;

use event::{Nanos, Task};

use super::beside::LONG;
use super::instead::sum;
use super::{
    CauseKind, Confidence, Inversion, InversionKind, Remedy, Segment, Selection, Wait, Who,
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

/// Neighbours in which the same thread could have run.
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
    let by = sum(segments.iter().flat_map(|segment| &segment.by));
    let begin = segments[0].begin;
    // Of a busy wait and of a bad place, it is what makes it one.
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
    let told = segments.iter().map(|segment| segment.confidence).max();
    let confidence = told.unwrap_or(Confidence::Known);
    let slow = segments
        .iter()
        .any(|segment| segment.kind == CauseKind::RunningSlowCore);
    let is_unclear = segments
        .iter()
        .any(|segment| segment.confidence == Confidence::Assumed && segment.length() >= LONG);
    let remedies = match kind {
        InversionKind::Placement if slow => {
            vec![Remedy::LeaveOutSlowCores, Remedy::SmallerGrains]
        }
        // It may as well have been put aside.
        InversionKind::Placement if is_unclear => vec![Remedy::WiderAffinity, Remedy::RaiseQuota],
        _ => remedies(timeline, kind, holder, runner),
    };
    Inversion {
        kind,
        wait: position,
        waiter: wait.thread,
        holder,
        runner,
        by,
        begin,
        ns: segments.iter().fold(Nanos::ZERO, |sum, s| sum + s.length()),
        priorities: [
            priority(wait.thread),
            priority(holder),
            match runner {
                Who::Task(task) => priority(task),
                _ => None,
            },
        ],
        confidence,
        remedies,
    }
}

/// What would take an inversion away.
fn remedies(timeline: &Timeline, kind: InversionKind, holder: Task, runner: Who) -> Vec<Remedy> {
    let related = |other: Task| {
        let process = timeline.process(holder);
        process.is_some() && process == timeline.process(other)
    };
    match kind {
        InversionKind::Throttled => vec![Remedy::RaiseQuota, Remedy::FitQuota],
        InversionKind::Lock => vec![Remedy::PriorityInheritance, Remedy::SmallerGrains],
        InversionKind::BusyWait => vec![Remedy::Park, Remedy::FewerThreads],
        InversionKind::Placement => vec![Remedy::WiderAffinity, Remedy::SmallerGrains],
        InversionKind::NoCore => vec![Remedy::WiderAffinity, Remedy::FewerThreads],
        InversionKind::Preemption => match runner {
            Who::Task(other) if related(other) => {
                vec![Remedy::FewerThreads, Remedy::SmallerGrains]
            }
            _ => vec![Remedy::SamePriority, Remedy::SmallerGrains],
        },
    }
}
