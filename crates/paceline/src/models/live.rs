//! Goal: when a refresh is due, one of the threads that pass by takes it, and the number of workers wanted
//! is that of the last refresh.
//! Method: two threads pass by when a refresh is due, by the real code of `live`, and find different
//! machines.
//! Bounds: two threads, one refresh each at most, two preemptions.
//! Planted bug: a thread takes its turn by a load and a store, so that both threads take it.

use event::Nanos;
use platform::{Limits, Memory};

use super::{Notes, Ordered, Spoil, Spoiled, check, must_find, spoiled, together, two_cpus};
use crate::adapt::LiveMachine;

/// The time at which both threads pass by. A refresh has been due for a while.
const NOW: Nanos = Nanos::from_secs(10);

fn two_pass_by<M: Memory>(first: usize) {
    let live = std::sync::Arc::new(LiveMachine::<M>::new(two_cpus(64), None, Some(Nanos::ZERO)));
    let refreshes = Notes::new();
    let part = |cpus: u32| {
        let (live, refreshes) = (live.clone(), refreshes.clone());
        Box::new(move || {
            if live.takes_turn(NOW) {
                refreshes.add(cpus);
                live.learn(Limits::of((0..cpus).collect()), |_, _| ());
            }
        }) as Box<dyn FnOnce() + Send>
    };
    together(first, [part(3), part(4)]);
    let refreshes = refreshes.take();
    assert_eq!(refreshes.len(), 1, "one refresh is due");
    assert_eq!(live.width().threads, refreshes[0] as usize);
    assert!(!live.takes_turn(NOW), "the next one is not");
}

#[test]
fn one_of_two_refreshes() {
    check(2, 2, |first| {
        spoiled::<Ordered>(|| two_pass_by::<Spoiled>(first))
    });
}

/// A thread takes its turn in two steps.
#[derive(Clone, Copy)]
struct Torn;

impl Spoil for Torn {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["live/mod.rs"];
    const TORN: bool = true;
}

#[test]
fn a_turn_that_is_not_one_step_is_taken_twice() {
    must_find("one refresh is due", 2, || {
        spoiled::<Torn>(|| two_pass_by::<Spoiled>(0))
    });
}
