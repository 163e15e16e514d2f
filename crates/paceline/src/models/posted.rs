//! Goal: a report is made of facts that belong together: the fields of one wait, the words of one thread, the
//! name and the place of one job.
//! Method: a thread posts a wait, takes it back, waits for another job and posts that, while another thread
//! reads what it does, by the real code of `posted`. Then the slot changes hands meanwhile. Then threads end
//! a job and make and run the next one in its slot, while another thread looks at that.
//! Bounds: two threads or three, two waits or jobs, three preemptions for names, one for places, else two.
//! Planted bugs: a wait is posted without Release; one is taken back, or a thread arrives, without a fence;
//! the label of a job, or its place, without Release.

use std::panic::Location;
use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Platform};
use testkit::Loom;

use super::{Ordered, Part, Site, Spoil, Spoiled, check, must_find, spoiled, together};
use crate::queues::Queue;
use crate::store::{JobPhase, Label, Slot, Ticket};
use crate::work::posted::{Posted, PostedWait, ThreadWords};

const MIXED: &str = "facts of two";

/// A thread slot's words.
struct Words<M: Memory> {
    posted: Posted<M>,
    waits_for: M::AtomicU64,
}

impl<M: Memory> Words<M> {
    fn new() -> Arc<Words<M>> {
        let words = Words {
            posted: Posted::new(),
            waits_for: M::AtomicU64::new(0),
        };
        words.posted.arrive(Some("first".to_owned()));
        Arc::new(words)
    }

    fn begin_wait(&self, job: u64) {
        self.waits_for.store(job, Ordering::Relaxed);
    }
}

fn wait(number: u64) -> PostedWait {
    PostedWait {
        target: Ticket(number),
        since: Nanos(number),
        until: Nanos(number),
        site: None,
    }
}

/// The reader sees one of two waits, whole, or none.
fn two_waits<M: Memory>(first: usize) {
    let words = Words::<M>::new();
    let owner = {
        let words = words.clone();
        Box::new(move || {
            words.begin_wait(1);
            words.posted.post(wait(1));
            words.posted.take_back();
            words.begin_wait(2);
            words.posted.post(wait(2));
        })
    };
    let reader = Box::new(move || {
        let words = ThreadWords {
            posted: &words.posted,
            waits_for: &words.waits_for,
        };
        let Ok(Some(seen)) = words.read(|| 0) else {
            return; // It changed meanwhile.
        };
        if let Some(found) = seen.wait {
            assert_eq!(found, wait(found.target.0), "{MIXED} waits");
            assert_eq!(found.target, seen.waits_for, "{MIXED} waits");
        }
    });
    together(first, [owner, reader]);
}

#[test]
fn a_wait_is_read_whole_or_not_at_all() {
    check(2, 2, two_waits::<Loom>);
}

/// The reader sees one of two threads that have the slot, one after the other.
fn two_tenants<M: Memory>(first: usize) {
    let words = Words::<M>::new();
    let owners = {
        let words = words.clone();
        Box::new(move || {
            words.posted.depart();
            words.posted.arrive(Some("second".to_owned()));
            words.begin_wait(2);
        })
    };
    let reader = Box::new(move || {
        let words = ThreadWords {
            posted: &words.posted,
            waits_for: &words.waits_for,
        };
        if let Ok(Some(seen)) = words.read(|| 0)
            && seen.waits_for == Ticket(2)
        {
            assert_ne!(seen.name.as_deref(), Some("first"), "{MIXED} threads");
        }
    });
    together(first, [owners, reader]);
}

#[test]
fn a_thread_is_not_taken_for_the_one_before() {
    check(2, 2, two_tenants::<Loom>);
}

/// Posting publishes nothing.
#[derive(Clone, Copy)]
struct NotReleasedByPoster;

impl Spoil for NotReleasedByPoster {
    const FILES: &'static [&'static str] = &["work/posted.rs"];
    fn store(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// The owner's fences order nothing that it writes.
#[derive(Clone, Copy)]
struct OneSidedFences;

impl Spoil for OneSidedFences {
    const FILES: &'static [&'static str] = &["work/posted.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::Acquire // Partner: none, that is the bug.
    }
}

#[test]
fn what_is_posted_carelessly_is_misread() {
    must_find(MIXED, 2, || {
        spoiled::<NotReleasedByPoster>(|| two_waits::<Spoiled>(0))
    });
    must_find(MIXED, 2, || {
        spoiled::<OneSidedFences>(|| two_waits::<Spoiled>(0))
    });
    must_find(MIXED, 2, || {
        spoiled::<OneSidedFences>(|| two_tenants::<Spoiled>(0))
    });
}

/// The slot of a job gets another one, with another name, while a thread looks at it.
fn look_at_the_name<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let label = |name| Label {
        name,
        site: Location::caller(),
    };
    let context = site.context(1);
    let made = context.graph().make(&label("old"), 0, Ticket::NONE);
    let (old, slot) = made.expect("there is room");
    let number = slot.label_number();
    // Release, partner: the CAS in `hold_back`, as for any new job.
    slot.pending.store(1, Ordering::Release);
    let owner: Part = {
        let site = site.clone();
        Box::new(move || {
            let graph = site.context(1);
            let graph = graph.graph();
            graph.release(old, 1, Queue::Own);
            graph.finish_todo(Queue::Own);
            let made = graph.make(&label("new"), 0, Ticket::NONE);
            let (new, _) = made.expect("there is room");
            assert_eq!(new.index(), old.index(), "the slot is used again");
        })
    };
    let reader: Part = {
        let site = site.clone();
        Box::new(move || {
            let slot = site.shared.slot(old);
            let known = slot.label_of(old);
            assert!(known.is_none_or(|known| known == number), "{MIXED} jobs");
            let seen = slot.look_at(old.index(), |job, _| {
                // Acquire, partner: the Release store in `make`.
                (job, slot.label.load(Ordering::Acquire))
            });
            if let Some((job, label)) = seen {
                assert_eq!(job == old, label == number, "{MIXED} jobs");
            }
        })
    };
    together(first, [owner, reader]);
}

/// A thread runs a job and makes the next one in its slot, and another thread runs that, while a third one
/// looks at the slot.
fn look_at_the_place<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let old = site.context(0).job("job").schedule(|_| ()).ticket();
    let new = Ticket::new(old.index(), old.generation() + 1);
    let owner: Part = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(0);
            assert!(context.start(old, site.shared.slot(old)));
            let next = context.job("job").schedule(|_| ());
            assert_eq!(next.ticket(), new, "the slot is used again");
        })
    };
    let other: Part = {
        let site = site.clone();
        Box::new(move || _ = site.context(1).start(new, site.shared.slot(new)))
    };
    let reader: Part = {
        let site = site.clone();
        Box::new(move || {
            let slot = site.shared.slot(old);
            let seen = slot.look_at(old.index(), |job, word| {
                // Acquire, partner: the Release store in `run_in_own_lane`.
                let place = slot.place.load(Ordering::Acquire);
                (job, word.phase, place)
            });
            if let Some((job, JobPhase::Running, place)) = seen {
                let thread = u32::from(job == new);
                assert!(
                    place == thread || place == Slot::<P>::NOWHERE,
                    "{MIXED} jobs"
                );
            }
        })
    };
    together(first, [owner, other, reader]);
}

#[test]
fn a_job_is_not_taken_for_the_next_one_in_its_slot() {
    check(3, 2, |first| look_at_the_name(Loom, first));
    check(1, 3, |first| {
        look_at_the_place(Spoiled::by::<Ordered>(), first)
    });
}

/// The label of a new job publishes nothing.
#[derive(Clone, Copy)]
struct NotReleasedLabel;

impl Spoil for NotReleasedLabel {
    const FILES: &'static [&'static str] = &["graph/make.rs"];
    fn store_small(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// The place of a job that is begun publishes nothing.
#[derive(Clone, Copy)]
struct NotReleasedPlace;

impl Spoil for NotReleasedPlace {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["work/run.rs"];
    fn store_small(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn words_of_a_job_that_publish_nothing_are_taken_for_those_of_another() {
    must_find(MIXED, 3, || {
        look_at_the_name(Spoiled::by::<NotReleasedLabel>(), 0)
    });
    must_find(MIXED, 1, || {
        look_at_the_place(Spoiled::by::<NotReleasedPlace>(), 0)
    });
}
