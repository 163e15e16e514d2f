//! The events that each arrow leads from and to.
//!
//! An arrow must be written where it begins, and only later events tell whether it leads anywhere. So the
//! events are read once before they are written. During that, only the arrows and their jobs are in memory.
//!
//! - A dependency: from the end of the predecessor (of its last part, if several threads ran it) to the
//!   beginning of the successor.
//! - A wake-up: from the waker to the moment the woken thread is awake, if it was parked when it was woken.

use std::collections::HashMap;

use event::{Event, EventKind};

/// Arrows between events, the events by position.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arrows {
    /// (event, arrow), in the order of the events.
    starts: Vec<(usize, u64)>,
    ends: Vec<(usize, u64)>,
    /// The numbers of both that were asked for already.
    started: usize,
    ended: usize,
}

/// Where a job with a dependency began and ended.
#[derive(Clone, Copy, Default)]
struct Life {
    first_begin: Option<usize>,
    last_end: Option<usize>,
}

impl Arrows {
    /// The arrows of events that are in the order of their times.
    pub(super) fn find(events: &[Event]) -> Arrows {
        let mut pairs = dependencies(events);
        pairs.extend(wake_ups(events));
        let numbered = || pairs.iter().zip(1..);
        let mut starts: Vec<_> = numbered().map(|(&(from, _), id)| (from, id)).collect();
        let mut ends: Vec<_> = numbered().map(|(&(_, to), id)| (to, id)).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        Arrows {
            starts,
            ends,
            started: 0,
            ended: 0,
        }
    }

    /// The arrows that begin at this event. Events must be asked for in their order.
    pub(super) fn starts_at(&mut self, event: usize) -> Vec<u64> {
        take_at(&self.starts, &mut self.started, event)
    }

    /// The arrows that end at this event. Events must be asked for in their order.
    pub(super) fn ends_at(&mut self, event: usize) -> Vec<u64> {
        take_at(&self.ends, &mut self.ended, event)
    }
}

fn take_at(arrows: &[(usize, u64)], taken: &mut usize, event: usize) -> Vec<u64> {
    let rest = &arrows[*taken..];
    let before = rest.partition_point(|(at, _)| *at < event);
    let until = rest.partition_point(|(at, _)| *at <= event);
    *taken += until;
    rest[before..until].iter().map(|(_, id)| *id).collect()
}

fn dependencies(events: &[Event]) -> Vec<(usize, usize)> {
    let edges = || events.iter().filter(|event| event.kind == EventKind::Edge);
    let ends = edges().flat_map(|edge| [edge.job, edge.arg]);
    let mut lives: HashMap<u64, Life> = ends.map(|job| (job, Life::default())).collect();
    for (at, event) in events.iter().enumerate() {
        if let Some(life) = lives.get_mut(&event.job) {
            match event.kind {
                EventKind::Begin => {
                    life.first_begin.get_or_insert(at);
                }
                EventKind::End => life.last_end = Some(at),
                _ => {}
            }
        }
    }
    let pair = |edge: &Event| {
        let from = lives.get(&edge.arg)?.last_end?;
        let to = lives.get(&edge.job)?.first_begin?;
        (from < to).then_some((from, to))
    };
    edges().filter_map(pair).collect()
}

fn wake_ups(events: &[Event]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    // By parked thread slot: the event that woke it.
    let mut parked: HashMap<u64, Option<usize>> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        let slot = u64::from(event.slot);
        match event.kind {
            EventKind::Park => drop(parked.insert(slot, None)),
            EventKind::Wake => {
                if let Some(waker) = parked.get_mut(&event.arg) {
                    waker.get_or_insert(at);
                }
            }
            EventKind::Unpark => {
                let waker = parked.remove(&slot).flatten();
                pairs.extend(waker.map(|waker| (waker, at)));
            }
            _ => {}
        }
    }
    pairs
}
