//! States of threads where there are no kernel events: what the job system says of itself.
//!
//! A worker says when it goes to sleep, when it is awake again, and whom it wakes. Between these it ran, or
//! could have run: which of the two only a kernel knows.

use std::collections::BTreeMap;

use event::{Event, EventKind};

use super::dense::{Grouped, NOBODY};
use super::states::{Builder, Interval, Since, State, Wake};

/// States and wake-ups after the job system's events, which are in the order of their times. `seats` are the
/// positions of their threads.
pub(super) fn find(
    events: &[Event],
    seats: &BTreeMap<u32, u32>,
    threads: usize,
) -> (Grouped<Interval>, Grouped<Wake>) {
    let mut states = Builder::default();
    let mut wakes = Vec::new();
    for event in events {
        let thread = seats.get(&event.seat).copied().unwrap_or(NOBODY);
        if thread == NOBODY {
            continue;
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
            wakes.push((woken, wake));
        }
    }
    (states.finish(threads), Grouped::new(threads, &wakes))
}
