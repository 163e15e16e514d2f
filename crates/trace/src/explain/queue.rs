//! The queue that a thread was in while it could run.
//!
//! A thread that loses its CPU stays in that CPU's queue; one that is woken is put into the queue of the CPU
//! that the wake-up names. A migration puts it into another one. So the CPU that was taken from a thread is
//! known, and what ran there, too. Where the events contradict each other (the thread runs next on a CPU into
//! whose queue nothing put it, though migrations are recorded), the queue is not known. Where no migrations
//! are recorded, a thread that runs elsewhere in the end was pulled there just before.
//!
//! A CPU that was idle when the thread came into its queue leaves its idle state for it. A CPU that goes idle
//! while the thread is in its queue does not: then the thread was put aside, or moved without an event.

use event::{Cpu, KernelEventKind, Nanos, Task};

use super::Confidence;
use super::instead::{Kept, Stretch, shares};
use crate::timeline::{IDLE, Lane, Since, State, Stay, Timeline, UNKNOWN};

/// The number of states in which a thread's last run is looked for.
const BACK: usize = 4;

/// A thread's time in the queue of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Queued {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    /// The position of the CPU.
    pub(super) lane: u32,
    /// Whether it came from elsewhere: it was woken or moved. Else it had run on this CPU.
    comes: bool,
    pub(super) confidence: Confidence,
}

/// The CPU that a thread ran on last before a time.
pub(super) fn last_ran(timeline: &Timeline, thread: u32, time: Nanos) -> Option<Cpu> {
    let mut time = time;
    for _ in 0..BACK {
        let stay = timeline.before(thread, time);
        match stay.state {
            State::Running(cpu) => return Some(cpu),
            State::Unknown | State::Dead => return None,
            _ => time = stay.begin,
        }
    }
    None
}

/// The CPU for which a thread was woken at a time.
fn woken_for(timeline: &Timeline, thread: u32, time: Nanos) -> Option<Cpu> {
    let of = timeline.task(thread);
    let events = &timeline.recording().kernel;
    let from = events.partition_point(|event| event.time < time);
    let now = events[from..].iter().take_while(|event| event.time == time);
    let mut targets = now.filter_map(|event| match event.what {
        KernelEventKind::Waking { task, target, .. } if task == of => Some(target),
        _ => None,
    });
    targets.next()
}

/// The queues of a thread that could run, one after the other; empty, if they are not known.
pub(super) fn queues(timeline: &Timeline, thread: u32, stay: Stay, since: Since) -> Vec<Queued> {
    let last = || last_ran(timeline, thread, stay.begin);
    let first = match since {
        Since::Preempted => last(),
        Since::Woken => woken_for(timeline, thread, stay.begin).or_else(last),
    };
    let Some(first) = first.and_then(|cpu| timeline.lane_at(cpu)) else {
        return Vec::new();
    };
    let mut queues = vec![Queued {
        begin: stay.begin,
        end: stay.end,
        lane: first,
        comes: since == Since::Woken,
        confidence: Confidence::Known,
    }];
    for &(time, lane) in timeline.moves_in(thread, stay.begin, stay.end) {
        if let Some(last) = queues.last_mut() {
            let before = *last;
            last.end = time;
            let begin = time;
            queues.push(Queued {
                begin,
                lane,
                comes: true,
                ..before
            });
        }
    }
    let next = match timeline.after(thread, stay.end) {
        Some(State::Running(cpu)) => timeline.lane_at(cpu),
        _ => None,
    };
    let is_moved = next.is_some() && queues.last().map(|queue| queue.lane) != next;
    match since {
        _ if !is_moved => {}
        _ if timeline.has_migrations => return Vec::new(),
        // The event names its CPU.
        Since::Preempted => {}
        Since::Woken => {
            for queue in &mut queues {
                queue.confidence = Confidence::Inferred;
            }
        }
    }
    queues.retain(|queue| queue.begin < queue.end);
    queues
}

/// The CPU in whose queue a thread was at a time, if it could run then and the queue is known.
pub(super) fn queue_at(timeline: &Timeline, task: Task, time: Nanos) -> Option<Cpu> {
    let thread = timeline.position(task)?;
    let stay = timeline.before(thread, time + Nanos(1));
    let State::Runnable(since) = stay.state else {
        return None;
    };
    let queues = queues(timeline, thread, stay, since);
    let mut queues = queues.iter();
    let queue = queues.find(|queue| queue.begin <= time && time < queue.end)?;
    Some(timeline.lanes[queue.lane as usize].cpu)
}

/// The number of events in which the state of an idle CPU is looked for.
const LOOK: usize = 1 << 14;

/// The idle state that an idle CPU was in at a time, if it is known and the CPU was in one.
pub(super) fn idle_state(timeline: &Timeline, lane: &Lane, time: Nanos) -> Option<u8> {
    let since = lane.runs_from(time).next()?.begin;
    let events = &timeline.recording().kernel;
    let until = events.partition_point(|event| event.time <= time);
    let before = events[..until].iter().rev().take(LOOK);
    let before = before.take_while(|event| event.time >= since);
    let mut changes = before.filter_map(|event| match event.what {
        KernelEventKind::Idle(state) if event.cpu == lane.cpu => Some(state),
        _ => None,
    });
    changes.next().flatten()
}

/// What the CPU of a thread's queue did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OwnCpu {
    /// It is not known.
    Unknown,
    /// This one, by position, had nothing else to do.
    Idle(u32, Confidence),
    /// It ran something else.
    Busy(Confidence),
}

/// A stretch divided by what the CPU of the thread's queue did.
pub(super) fn divide(
    timeline: &Timeline,
    thread: u32,
    lanes: &[u32],
    queues: &[Queued],
    stretch: Stretch,
) -> Vec<(Stretch, OwnCpu)> {
    let is_told = matches!(stretch.kept, Kept::Idle | Kept::Busy | Kept::Unclear);
    if !is_told || queues.is_empty() {
        return vec![(stretch, OwnCpu::Unknown)];
    }
    let mut parts: Vec<(Nanos, Nanos, u32, OwnCpu)> = Vec::new();
    for queue in queues {
        let (begin, end) = (queue.begin.max(stretch.begin), queue.end.min(stretch.end));
        if begin >= end {
            continue;
        }
        let lane = &timeline.lanes[queue.lane as usize];
        let mut runs = lane
            .runs_from(begin)
            .take_while(|run| run.begin < end)
            .peekable();
        while let Some(run) = runs.next() {
            let from = run.begin.max(begin);
            let until = runs.peek().map_or(end, |next| next.begin);
            let did = match run.who {
                _ if !lane.is_online(from) => OwnCpu::Unknown,
                IDLE if timeline.is_rationed(thread) && lane.is_closed(from) => OwnCpu::Unknown,
                IDLE if run.begin > queue.begin => OwnCpu::Unknown,
                IDLE if run.begin == queue.begin && !queue.comes => OwnCpu::Unknown,
                IDLE => OwnCpu::Idle(queue.lane, queue.confidence),
                UNKNOWN => OwnCpu::Unknown,
                who if who == thread => OwnCpu::Unknown,
                _ => OwnCpu::Busy(queue.confidence),
            };
            match parts.last_mut() {
                Some((_, end, lane, of)) if (*lane, *of) == (queue.lane, did) => *end = until,
                _ if from < until => parts.push((from, until, queue.lane, did)),
                _ => {}
            }
        }
    }
    let part = |(begin, end, lane, did): (Nanos, Nanos, u32, OwnCpu)| {
        let by = if did == OwnCpu::Unknown {
            let online = |lane: &u32| timeline.lanes[*lane as usize].is_online(begin);
            let online: Vec<bool> = lanes.iter().map(online).collect();
            shares(timeline, thread, lanes, &online, (begin, end))
        } else {
            shares(timeline, thread, &[lane], &[true], (begin, end))
        };
        let kept = stretch.kept;
        (
            Stretch {
                begin,
                end,
                kept,
                by,
            },
            did,
        )
    };
    parts.into_iter().map(part).collect()
}
