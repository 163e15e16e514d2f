//! Goal: a job that a handle makes at the end of a job system is seen by the end, or was refused.
//! Method: one thread makes something during a visit, if it is let in. Another thread looks for it again and
//! again until it may end. By the real code of `work/ending`. The rest of the end is in `whole`.
//! Bounds: two threads, one visit, three preemptions.
//! Planted bugs: a visit that ends without Release, so that the look sees nothing; an end by a load and a
//! store, during which a visit begins.

use std::sync::Arc;

use platform::{Atomic, Memory, Ordering};
use testkit::Loom;

use super::{Part, Spoil, Spoiled, check, must_find, spoiled, together};
use crate::work::EndOfSystem;

struct System<M: Memory> {
    ending: EndOfSystem<M>,
    /// What the visit makes. It is published by the end of the visit alone.
    made: M::AtomicU32,
    /// Whether it was let in.
    visited: M::AtomicU32,
    /// What the end has seen.
    seen: M::AtomicU32,
}

const MISSED: &str = "what a visit made";

fn visit_while_it_ends<M: Memory>(first: usize) {
    let system = Arc::new(System::<M> {
        ending: EndOfSystem::new(),
        made: M::AtomicU32::new(0),
        visited: M::AtomicU32::new(0),
        seen: M::AtomicU32::new(0),
    });
    let visitor: Part = {
        let system = system.clone();
        Box::new(move || {
            if let Some(_visit) = system.ending.visit() {
                system.made.store(1, Ordering::Relaxed);
                system.visited.store(1, Ordering::Relaxed);
            }
        })
    };
    let end: Part = {
        let system = system.clone();
        Box::new(move || {
            // In vain for as long as the visit is under way. Loom runs the other thread then.
            for _ in 0..3 {
                let before = system.ending.before_last_look();
                if !EndOfSystem::<M>::is_alone(before) {
                    continue;
                }
                let seen = system.made.load(Ordering::Relaxed);
                if system.ending.is_over(before) {
                    system.seen.store(1 + seen, Ordering::Relaxed);
                    return;
                }
            }
        })
    };
    together(first, [visitor, end]);
    let (visited, seen) = (
        system.visited.load(Ordering::Relaxed),
        system.seen.load(Ordering::Relaxed),
    );
    assert!(seen == 0 || seen == 1 + visited, "{MISSED}");
}

#[test]
fn a_visit_is_seen_or_refused() {
    check(3, 2, visit_while_it_ends::<Loom>);
}

/// The end of a visit is not published.
#[derive(Clone, Copy)]
struct Unpublished;

impl Spoil for Unpublished {
    const FILES: &'static [&'static str] = &["work/ending.rs"];
    fn change(_: u64, order: Ordering) -> Ordering {
        match order {
            // Release, partner: the Acquire in `before_last_look`, which gets nothing now.
            Ordering::Release => Ordering::Relaxed,
            order => order,
        }
    }
}

#[test]
fn a_visit_that_is_not_published_is_not_seen() {
    must_find(MISSED, 3, || {
        spoiled::<Unpublished>(|| visit_while_it_ends::<Spoiled>(0))
    });
}

/// The compare-exchange is a load and a store.
#[derive(Clone, Copy)]
struct Torn;

impl Spoil for Torn {
    const FILES: &'static [&'static str] = &["work/ending.rs"];
    const TORN: bool = true;
}

#[test]
fn a_torn_end_misses_a_visit() {
    must_find(MISSED, 3, || {
        spoiled::<Torn>(|| visit_while_it_ends::<Spoiled>(0))
    });
}
