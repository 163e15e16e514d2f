//! States of threads where there are no kernel events: what the job system says of itself.
//!
//! A worker says when it goes to sleep, when it is awake again, and whom it wakes. Between these it ran, or
//! could have run: which of the two only a kernel knows.

use std::collections::BTreeMap;

use event::{Event, EventKind};

use super::dense::NOBODY;
use super::history::Histories;
use super::states::{Builder, Interval, Since, State, Wake};

/// States and wake-ups after the job system's events, which are in the order of their times. `seats` are the
/// positions of their threads.
pub(super) fn find(
    events: &[Event],
    seats: &BTreeMap<u32, u32>,
) -> (Histories<Interval>, Histories<Wake>) {
    let mut states = Builder::default();
    let mut wakes = Histories::default();
    for event in events {
        let thread = seats.get(&event.seat).copied().unwrap_or(NOBODY);
        if thread == NOBODY {
            continue;
        }
        if let (EventKind::Unpark, Some(seat)) = (event.kind, event.arg.checked_sub(1))
            && states.now(thread).map(|now| now.state) == Some(State::Sleeping)
        {
            let by = u32::try_from(seat).ok().and_then(|seat| seats.get(&seat));
            let wake = Wake {
                time: event.time,
                by: by.copied().unwrap_or(NOBODY),
                interrupt: false,
            };
            wakes.of_mut(thread).push(wake);
        }
        let state = match event.kind {
            EventKind::Park => State::Sleeping,
            _ => State::Awake,
        };
        if states.now(thread).map(|now| now.state) != Some(state) {
            states.set(thread, event.time, state);
        }
        let woken = u32::try_from(event.arg).ok();
        let woken = woken.and_then(|seat| seats.get(&seat).copied());
        if let (EventKind::Wake, Some(woken)) = (event.kind, woken)
            && states.now(woken).map(|now| now.state) == Some(State::Sleeping)
        {
            states.set(woken, event.time, State::Runnable(Since::Woken));
            let wake = Wake {
                time: event.time,
                by: thread,
                interrupt: false,
            };
            wakes.of_mut(woken).push(wake);
        }
    }
    (states.finish(), wakes)
}
