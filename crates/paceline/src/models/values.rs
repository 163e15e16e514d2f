//! Goal: the value of an event is taken once or dropped once, by a side that sees it; and a latch is over
//! after its last completion, whose thread has seen what all the others did.
//! Method: one thread completes an event with a value, another one lets its handle go, or takes the value if
//! the event is over by then. The value notes its drop, which touches plain memory that its maker has
//! written. Then two threads complete a latch, and a job after it looks at what both wrote. By the real code
//! of `store/holders`, `graph` and `api/handle`.
//! Bounds: two threads, two jobs, three preemptions.
//! Planted bugs: the handle and the event tell each other without ordering (the drop races with the making of
//! the value); completions that order nothing (the job after the latch looks too early).

use std::sync::Arc;

use platform::{Ordering, Platform, SharedCell};

use super::{
    Notes, Ordered, Part, RACE, Site, Spoil, Spoiled, check, must_find, parts, site_of, together,
};
use crate::{Event, Job};

/// Plain memory that its threads hand on.
struct Plain<P: Platform>(P::Cell<u32>);

// SAFETY: the model hands it from thread to thread with the value. The checker is asked whether it does.
unsafe impl<P: Platform> Sync for Plain<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Send for Plain<P> {}

/// A value whose drop is noted, and touches what its maker has written.
struct Probe<P: Platform> {
    plain: Arc<Plain<P>>,
    drops: Notes<u32>,
}

impl<P: Platform> Probe<P> {
    fn touch(&self) {
        // SAFETY: see `Plain`.
        unsafe { self.plain.0.with_mut(|plain| *plain += 1) };
    }
}

impl<P: Platform> Drop for Probe<P> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.touch();
            self.drops.add(0);
        }
    }
}

fn event_of<P: Platform>(site: &Site<P>) -> (Event<Probe<P>>, Job<Probe<P>>) {
    let context = site.shared.context().expect("there is a slot");
    context.event_with("event")
}

fn give_while_the_handle_goes<P: Platform>(platform: P, first: usize) {
    let site = site_of(parts(platform, 4, 0, 3));
    let (event, handle) = event_of(&site);
    let job = event.id().ticket();
    let drops = Notes::new();
    let giver: Part = {
        let plain = Arc::new(Plain(SharedCell::new(0)));
        let drops = drops.clone();
        Box::new(move || {
            let value = Probe { plain, drops };
            value.touch();
            event.complete_with(value);
        })
    };
    let taker: Part = Box::new(move || {
        if handle.is_done() {
            drop(handle.try_wait().expect("it has a value"));
        } else {
            drop(handle);
        }
    });
    together(first, [giver, taker]);
    assert!(
        site.shared.slot(job).is_over(job),
        "the event is never over"
    );
    assert_eq!(drops.len(), 1, "drops of the value");
}

#[test]
fn a_value_is_dropped_once() {
    check(3, 2, |first| {
        give_while_the_handle_goes(Spoiled::by::<Ordered>(), first);
    });
}

/// The bits of both sides order nothing.
#[derive(Clone, Copy)]
struct Unpublished;

impl Spoil for Unpublished {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["store/holders.rs"];
    fn or_small(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn a_value_that_is_not_published_is_dropped_too_early() {
    must_find(RACE, 3, || {
        give_while_the_handle_goes(Spoiled::by::<Unpublished>(), 0);
    });
}

const EARLY: &str = "what the job after the latch saw";

fn complete_a_latch<P: Platform>(platform: P, first: usize) {
    let site = site_of(parts(platform, 4, 0, 3));
    let context = site.shared.context().expect("there is a slot");
    let latch = context.job("latch").try_latch(2).expect("there is room");
    let cells = [(); 2].map(|()| Arc::new(Plain::<P>(SharedCell::new(0))));
    let (saw, theirs) = (Notes::new(), cells.clone());
    let noted = saw.clone();
    context.job("after").after(&latch).schedule(move |_| {
        // SAFETY: see `Plain`.
        let values = theirs.map(|cell| unsafe { cell.0.with(|value| *value) });
        noted.add(values);
    });
    let parts = cells.map(|cell| -> Part {
        let (latch, site) = (latch.clone(), site.clone());
        Box::new(move || {
            // SAFETY: see `Plain`.
            unsafe { cell.0.with_mut(|value| *value = 1) };
            latch.complete_one();
            site.shared.context().expect("there is a slot").run_any();
        })
    });
    together(first, parts);
    while context.run_any() {}
    assert_eq!(saw.take(), [[1, 1]], "{EARLY}");
}

#[test]
fn a_latch_is_over_after_all_completions() {
    check(3, 2, |first| {
        complete_a_latch(Spoiled::by::<Ordered>(), first);
    });
}

/// A completion orders nothing.
#[derive(Clone, Copy)]
struct Unordered;

impl Spoil for Unordered {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["handle/latch.rs"];
    fn change(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn completions_that_order_nothing_let_the_job_look_too_early() {
    must_find(EARLY, 3, || complete_a_latch(Spoiled::by::<Unordered>(), 0));
}
