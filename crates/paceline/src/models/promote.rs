//! Goal: a fork that was promoted is run once, by a thief or by its owner when it comes back, and its owner
//! sees the effects.
//! Method: a thread joins while the idle word counts a searcher, so that its fork becomes a job at once.
//! Another thread looks for work. All by the real code of `fork`, `worker` and `wait`.
//! Bounds: two threads, one fork, two preemptions. (Nested joins are in `whole`.)
//! Planted bugs: a claim that is a load and a store, so that thief and owner both run the fork; the end of
//! a job without Release, so that the owner leaves the stack frame too early.

use platform::{Ordering, Platform};

use super::{Notes, Ordered, RACE, Site, Spoil, Spoiled, check, must_find, together};
use crate::queues::Fenced;

fn join_with_a_thief<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    site.shared.idle.begin_search::<Fenced>();
    let ran = Notes::new();
    let owner = {
        let (site, ran) = (site.clone(), ran.clone());
        Box::new(move || {
            let (one, two) = site.context(0).join(
                |_| ran.add(1),
                |_| {
                    ran.add(2);
                    site.do_something();
                    2
                },
            );
            assert_eq!((one, two, site.what_was_done()), ((), 2, 1));
        })
    };
    let thief = {
        let site = site.clone();
        Box::new(move || _ = site.context(1).run_any())
    };
    together(first, [owner, thief]);
    assert_eq!(ran.take(), [1, 2], "halves run");
    assert_eq!(site.shared.stats().promotions, 1);
}

#[test]
fn a_promoted_fork_is_run_once() {
    check(2, 2, |first| {
        join_with_a_thief(Spoiled::by::<Ordered>(), first)
    });
}

/// The claim looks first, and takes in a second step.
#[derive(Clone, Copy)]
struct Torn;

impl Spoil for Torn {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["slot.rs"];
    const TORN: bool = true;
}

/// The end of a job publishes nothing.
#[derive(Clone, Copy)]
struct NotReleased;

impl Spoil for NotReleased {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["store/slot.rs"];
    fn store(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn a_claim_that_is_not_one_step_runs_a_fork_twice() {
    // Both have the body, which only one may touch.
    must_find(RACE, 2, || join_with_a_thief(Spoiled::by::<Torn>(), 0));
}

#[test]
fn an_end_that_publishes_nothing_is_seen_too_early() {
    must_find(RACE, 2, || {
        join_with_a_thief(Spoiled::by::<NotReleased>(), 0)
    });
}
