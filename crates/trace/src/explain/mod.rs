//! Where the time of a wait went, and which inversions it had.
#![doc = include_str!("README.md")]

mod answer;
mod arrows;
mod beside;
mod busy;
mod compare;
mod deadlines;
mod enders;
mod groups;
mod instead;
mod inversions;
mod locks;
mod path;
mod queue;
mod recorded;
mod runnable;
mod running;
mod selection;
mod speed;
#[cfg(test)]
mod tests;
mod turns;
mod waits;
mod wakers;
mod walk;
mod words;

pub use answer::{
    Awaited, Cause, CauseKind, Confidence, Explanation, IdleExit, Inversion, InversionKind, Remedy,
    Segment, Share, Verdict, Wait, WaitKind,
};
pub use compare::{Compared, Comparison, Difference, compare};
pub use enders::{Ender, LockWaits, SpinWait, ender, spin_waits};
pub use groups::{Factor, Group, InCommon, Member, Role, Slow, without_numbers};
pub use selection::Selection;
pub use waits::names;
pub use words::names_frame;

pub use crate::timeline::Who;

use std::collections::BTreeMap;

use event::{Nanos, Task};

use crate::Name;
use crate::timeline::Timeline;
use arrows::ArrowIndex;
use busy::BusyWaits;
use groups::Groups;
use speed::Speeds;
use waits::FoundWait;
use walk::{Ground, walk};

/// The number of segments of all waits together after which no further wait is explained: about 300 MB.
const SEGMENTS: usize = 2_000_000;

/// So many waits, the worst first, are explained for their groups.
const GROUPED: usize = 20_000;

/// Explains the waits that were selected.
///
/// ```
/// use event::{Cpu, KernelEvent, KernelEventKind, Left, Nanos, Task};
/// use paceline_trace::explain::{CauseKind, Selection, explain};
/// use paceline_trace::timeline::{Options, Timeline};
/// use paceline_trace::{Origin, Recording, Wakers};
/// let at = |time, what| KernelEvent { time: Nanos(time), cpu: Cpu(0), what };
/// let switch = |time, prev, state, next| at(time, KernelEventKind::Switch { prev, state, next });
/// let (ui, worker) = (Task(0), Task(1));
/// let recording = Recording {
///     origin: Origin { wakers: Wakers::Decided, ..Origin::default() },
///     kernel: vec![
///         switch(0, None, Left::Runnable, Some(ui)),
///         switch(10, Some(ui), Left::Sleeping, Some(worker)),
///         at(30, KernelEventKind::Waking { task: ui, by: Some(worker), target: Cpu(0) }),
///         switch(32, Some(worker), Left::Sleeping, Some(ui)),
///     ],
///     ..Recording::default()
/// };
/// let timeline = Timeline::new(recording, &Options::default());
/// let wait = &explain(&timeline, &Selection::default()).waits[0];
/// let causes: Vec<_> = wait.causes.iter().map(|cause| (cause.kind, cause.thread, cause.ns.0)).collect();
/// assert_eq!(
///     causes,
///     [(CauseKind::Running, Some(worker), 20), (CauseKind::WakeLatency, Some(ui), 2)]
/// );
/// ```
pub fn explain(timeline: &Timeline, selection: &Selection) -> Explanation {
    let says = words::of_all(timeline, &selection.busy);
    let arrows = ArrowIndex::new(timeline);
    let ground = Ground {
        timeline,
        says: &says,
        arrows: &arrows,
        busy: BusyWaits::new(timeline, &says, &arrows),
        speeds: Speeds::new(timeline),
        everywhere: (0..timeline.lanes.len() as u32).collect(),
    };
    let (found, left_out) = waits::find(timeline, selection, &says);
    let limit = waits::limit(selection, &found);
    let mut waits: Vec<Wait> = Vec::new();
    let mut groups = Groups::new(timeline);
    let (mut segments, mut all_segments) = (0, 0);
    for (at, found) in found.iter().enumerate() {
        let is_shown = at < limit && segments <= SEGMENTS;
        let is_counted = at < GROUPED && all_segments <= 2 * SEGMENTS && found.kind.is_named();
        let wait = (is_shown || is_counted).then(|| account(&ground, found));
        let one = (found.task, found.kind, found.end - found.begin);
        match &wait {
            Some(wait) => groups.add(one, &wait.name, Some(wait)),
            None if found.kind.is_named() => groups.add(one, &found.name(timeline), None),
            None => {}
        }
        all_segments += wait.as_ref().map_or(0, |wait| wait.segments.len());
        if let Some(wait) = wait.filter(|_| is_shown) {
            segments += wait.segments.len();
            waits.push(wait);
        }
    }
    let omitted = left_out + found.len() - waits.len();
    let inversions = waits.iter().enumerate();
    let inversions =
        inversions.flat_map(|(at, wait)| inversions::of(timeline, selection, at, wait));
    Explanation {
        inversions: inversions.collect(),
        omitted,
        groups: groups.finish(),
        waits,
    }
}

/// The account of one wait.
fn account(ground: &Ground<'_>, found: &FoundWait) -> Wait {
    let mut walked = walk(ground, found.thread, found.begin, found.end);
    let awaited = walked.awaited;
    let timeline = ground.timeline;
    if !timeline.has_switches {
        walked.segments = cut_at_slices(timeline, walked.segments);
    }
    let preemptions = || timeline.preemptions_in(found.thread, (found.begin, found.end));
    Wait {
        thread: found.task,
        kind: found.kind,
        name: found.name(timeline),
        begin: found.begin,
        end: found.end,
        late: found.late,
        preemptions: timeline.has_switches.then(preemptions),
        awaited: awaited.map(|(thread, confidence)| Awaited { thread, confidence }),
        causes: causes(&walked.segments),
        segments: walked.segments,
    }
}

/// Cuts what is not known where slices begin or end: without scheduler events they are all that says where a
/// thread was.
fn cut_at_slices(timeline: &Timeline, segments: Vec<Segment>) -> Vec<Segment> {
    let mut cut = Vec::with_capacity(segments.len());
    for segment in segments {
        let (begin, end) = (segment.begin, segment.end);
        let task = segment
            .thread
            .filter(|_| segment.kind == CauseKind::Unknown);
        let mut borders = task.map_or_else(Vec::new, |task| timeline.borders(task, begin, end));
        borders.push(end);
        let mut from = begin;
        for to in borders {
            cut.push(Segment {
                begin: from,
                end: to,
                ..segment.clone()
            });
            from = to;
        }
    }
    cut
}

/// The part of some segments in which another CPU was idle.
fn beside_idle<'s>(segments: impl Iterator<Item = &'s Segment>) -> Nanos {
    let beside = segments.filter(|segment| segment.beside_idle);
    beside.fold(Nanos::ZERO, |sum, segment| sum + segment.length())
}

/// Segments summed up, the longest sum first.
fn causes(segments: &[Segment]) -> Vec<Cause> {
    type CauseKey = (
        CauseKind,
        Option<Task>,
        Option<u64>,
        Option<IdleExit>,
        Option<Name>,
    );
    let mut sums: BTreeMap<CauseKey, Vec<&Segment>> = BTreeMap::new();
    for segment in segments {
        let behind = segment
            .job
            .filter(|_| segment.kind == CauseKind::QueuedBehind);
        let key = (
            segment.kind,
            segment.thread,
            behind,
            segment.exit,
            segment.function,
        );
        sums.entry(key).or_default().push(segment);
    }
    let sums = sums
        .into_iter()
        .map(|((kind, thread, job, exit, function), segments)| Cause {
            kind,
            thread,
            job,
            ns: segments.iter().fold(Nanos::ZERO, |sum, s| sum + s.length()),
            by: instead::sum(segments.iter().flat_map(|segment| &segment.by)),
            beside_idle: beside_idle(segments.iter().copied()),
            exit,
            function,
            confidence: segments
                .iter()
                .map(|s| s.confidence)
                .max()
                .unwrap_or(Confidence::Known),
        });
    let mut causes: Vec<Cause> = sums.collect();
    // Stable: of equal ones as kinds and threads are ordered.
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
    causes
}
