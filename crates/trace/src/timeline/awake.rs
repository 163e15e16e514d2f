//! States of threads without kernel events: from the job system's own events.
//!
//! A worker's events are that it goes to sleep, that it is awake again, and that it wakes another. Between
//! these it ran, or could have run: only a kernel knows which of the two.

use std::collections::BTreeMap;

use event::{Event, EventKind};

use super::dense::NOBODY;
use super::history::Histories;
use super::states::{Interval, Since, State, StateBuilder, WakeUp};

/// States and wake-ups by the job system's events, which are in the order of their times. `slots` are the
/// positions of their threads.
pub(super) fn find(
    events: &[Event],
    slots: &BTreeMap<u32, u32>,
) -> (Histories<Interval>, Histories<WakeUp>) {
    let mut states = StateBuilder::default();
    let mut wakes = Histories::default();
    for event in events {
        let thread = slots.get(&event.slot).copied().unwrap_or(NOBODY);
        if thread == NOBODY {
            continue;
        }
        if let (EventKind::Unpark, Some(slot)) = (event.kind, event.arg.checked_sub(1))
            && states.now(thread).map(|now| now.state) == Some(State::Sleeping)
        {
            let by = u32::try_from(slot).ok().and_then(|slot| slots.get(&slot));
            let wake = WakeUp {
                time: event.time,
                by: by.copied().unwrap_or(NOBODY),
                interrupt: false,
            };
            wakes.of_mut(thread).push(wake);
        }
        let state = match event.kind {
            EventKind::Park | EventKind::MakesWay => State::Sleeping,
            _ => State::Awake,
        };
        if states.now(thread).map(|now| now.state) != Some(state) {
            states.set(thread, event.time, state);
        }
        let woken = u32::try_from(event.arg).ok();
        let woken = woken.and_then(|slot| slots.get(&slot).copied());
        if let (EventKind::Wake, Some(woken)) = (event.kind, woken)
            && states.now(woken).map(|now| now.state) == Some(State::Sleeping)
        {
            states.set(woken, event.time, State::Runnable(Since::Woken));
            let wake = WakeUp {
                time: event.time,
                by: thread,
                interrupt: false,
            };
            wakes.of_mut(woken).push(wake);
        }
    }
    (states.finish(), wakes)
}
