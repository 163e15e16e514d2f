//! When frames should have ended.
//!
//! Android's frame timeline has a plan for each frame of a program: the frame was late by the time between
//! the plan's end and its own. Elsewhere the display's period is a frame's time, if it is seen: from the
//! counters that change at each of its pulses.

use std::collections::HashMap;

use event::Nanos;

use super::words::NameHints;
use crate::timeline::{Slice, Timeline};

/// Displays have 20 to 250 pulses a second.
const PERIODS: std::ops::RangeInclusive<u64> = 4_000_000..=50_000_000;
/// Fewer pulses show no period.
const PULSES_MIN: usize = 4;

/// The deadlines of frames.
pub(super) struct Deadlines {
    /// By thread and the number of a frame: the end of its plan.
    planned: HashMap<(u32, u64), Nanos>,
    period: Option<Nanos>,
}

impl Deadlines {
    pub(super) fn new(timeline: &Timeline, says: &[NameHints]) -> Deadlines {
        let mut planned = HashMap::new();
        if says.iter().any(|says| says.planned.is_some()) {
            for (thread, slices) in timeline.slices.slices.groups() {
                for slice in slices {
                    let says = says.get(slice.name.0 as usize);
                    if let Some(frame) = says.and_then(|says| says.planned)
                        && frame.is_expected
                    {
                        let end = planned.entry((thread, frame.token)).or_insert(slice.end);
                        *end = slice.end.max(*end);
                    }
                }
            }
        }
        let period = period(timeline);
        Deadlines { planned, period }
    }

    /// How late a frame was, which is the slice of a thread; none: it was not, or that is not known.
    pub(super) fn late(&self, thread: u32, slice: &Slice, says: &NameHints) -> Option<Nanos> {
        if let Some(frame) = says.planned.filter(|frame| frame.is_missed) {
            let planned = self.planned.get(&(thread, frame.token));
            let late = planned.map(|end| Nanos(slice.end.0.saturating_sub(end.0)));
            return Some(late.unwrap_or(Nanos::ZERO));
        }
        let length = slice.end - slice.begin;
        let period = self
            .period
            .filter(|period| says.frame && length > *period)?;
        Some(length - period)
    }
}

/// The time between two pulses of the display, as its counters show it: the median.
fn period(timeline: &Timeline) -> Option<Nanos> {
    let counters = timeline.recording().counters.iter();
    let pulses = counters.filter(|counter| counter.name.starts_with("VSYNC"));
    let most = pulses.max_by_key(|counter| counter.values.len())?;
    let steps = most.values.windows(2).map(|two| (two[1].0 - two[0].0).0);
    let mut steps: Vec<u64> = steps.filter(|step| PERIODS.contains(step)).collect();
    steps.sort_unstable();
    let middle = steps
        .get(steps.len() / 2)
        .filter(|_| steps.len() >= PULSES_MIN)?;
    Some(Nanos(*middle))
}
