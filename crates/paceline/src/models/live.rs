//! Goal: when a look at the machine is due, one of those who come by takes it, and the number of workers
//! wanted is that of the last look.
//! Method: two threads come by when a look is due, by the real code of `live`, and have found different
//! machines.
//! Bounds: two threads, one look each at most, two preemptions.
//! Planted bug: taking the turn is a look and a store, so that both take it.

use event::Nanos;
use platform::{Limits, Memory};

use super::{Notes, Ordered, Spoil, Spoiled, check, must_find, together, two_cpus};
use crate::adapt::Live;

/// When everybody comes by: a look is due since a while.
const NOW: Nanos = Nanos::from_secs(10);

fn two_come_by<M: Memory>(first: usize) {
    let live = std::sync::Arc::new(Live::<M>::new(two_cpus(64), None, Some(Nanos::ZERO)));
    let looks = Notes::new();
    let part = |cpus: u32| {
        let (live, looks) = (live.clone(), looks.clone());
        Box::new(move || {
            if live.takes_turn(NOW) {
                looks.add(cpus);
                live.learn(Limits::of((0..cpus).collect()), |_, _| ());
            }
        }) as Box<dyn FnOnce() + Send>
    };
    together(first, [part(3), part(4)]);
    let looks = looks.take();
    assert_eq!(looks.len(), 1, "one look is due");
    assert_eq!(live.width().threads, looks[0] as usize);
    assert!(!live.takes_turn(NOW), "the next one is not");
}

#[test]
fn one_of_two_looks() {
    check(2, 2, two_come_by::<Spoiled<Ordered>>);
}

/// Taking the turn is two steps.
#[derive(Clone, Copy)]
struct Torn;

impl Spoil for Torn {
    const ORDERED: bool = true;
    const FILE: &'static str = "live/mod.rs";
    const TORN: bool = true;
}

#[test]
fn a_turn_that_is_not_one_step_is_taken_twice() {
    must_find("one look is due", 2, || two_come_by::<Spoiled<Torn>>(0));
}
