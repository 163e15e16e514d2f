//! Turns of threads: what a thread does from its wake-up until it has nothing to do.
//!
//! Where nothing is marked and all threads mostly sleep, a long sleep is no wait: the thread had nothing to
//! do. What can be slow there are turns. A turn goes on through a sleep in which the thread waits for an
//! answer: it has woken another thread in this turn, which has not slept since, and that one ends the sleep.

use event::Nanos;

use super::wakers;
use crate::timeline::{Since, State, Stay, Timeline, Waker};

/// A turn that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    /// How much of it the thread did not run.
    pub(super) lost: Nanos,
}

/// The turns of a thread that have a beginning and an end in the recording, and in which it did not always
/// run. Of a thread that `is_new` in it the first turn begins with its life, and those count, too, in which
/// it always ran.
pub(super) fn turns(timeline: &Timeline, thread: u32, is_new: bool) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut turn: Option<(Nanos, Nanos)> = None;
    let mut before = State::Unknown;
    for stay in timeline.stays(timeline.task(thread)) {
        let is_begun = is_new && before == State::Unknown;
        let is_woken = is_begun || before.is_asleep() || stay.state.ready() == Some(Since::Woken);
        match stay.state {
            State::Sleeping | State::Blocked | State::Dead => {
                let goes_on = |(begin, _): &(Nanos, Nanos)| {
                    stay.state.is_asleep() && is_answered(timeline, thread, *begin, stay)
                };
                if let Some((begin, ran)) = turn.take_if(|turn| !goes_on(turn)) {
                    let lost = stay.begin - begin - ran;
                    turns.push(Turn {
                        begin,
                        end: stay.begin,
                        lost,
                    });
                }
            }
            State::Unknown | State::Awake => turn = None,
            _ if turn.is_none() && is_woken => turn = Some((stay.begin, Nanos::ZERO)),
            _ => {}
        }
        if let (State::Running(_), Some((_, ran))) = (stay.state, &mut turn) {
            *ran += stay.end - stay.begin;
        }
        before = stay.state;
    }
    turns.retain(|turn| is_new || turn.lost > Nanos::ZERO);
    turns
}

/// Whether the thread that ends a sleep was woken by the sleeper, in its turn, and has not slept since.
fn is_answered(timeline: &Timeline, thread: u32, begin: Nanos, sleep: Stay) -> bool {
    let (Waker::Thread(by), _) = wakers::waker(timeline, thread, sleep) else {
        return false;
    };
    let wakes = timeline.wakes_around(by, sleep.end);
    let last = wakes.iter().rfind(|wake| wake.time <= sleep.end);
    last.is_some_and(|wake| wake.by == thread && wake.time >= begin)
}
