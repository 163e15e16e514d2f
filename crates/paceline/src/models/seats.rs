//! Goal: a seat that is made while others work is found whole by every thread that may look for it, and is
//! handed on from one thread to the next as the last one left it.
//! Method: outside threads, whose first call seats them. One waits for a job, which marks what it needs with
//! its new seat, while another one ends what holds the job back, and wakes the seat of the mark. Then threads
//! that come one after the other to the only seat there is and write what is theirs there, by the real
//! `Seats` alone.
//! Bounds: two threads; two jobs and one preemption, or one seat and three.
//! Planted bug: seats are counted, and left, without Release.

use event::Nanos;
use platform::{Ordering, Platform, SharedCell};

use super::{Notes, Ordered, Part, RACE, Site, Spoil, Spoiled, check, held_job, must_find};
use super::{parts, site_of, together};
use crate::context::Queue;
use crate::job::JobId;
use crate::seat::Role;

/// An outside thread calls for the first time, to wait, while another thread ends what it waits for.
fn wait_with_a_new_seat<P: Platform>(platform: P, first: usize) {
    let site = site_of(parts(platform, 4, 1, 1));
    site.add_seat(Role::Worker);
    // It and one more, which is busy.
    site.shared.crew.pretend_active(2);
    let context = site.context(0);
    let pred = held_job(&context);
    let job = context.job("awaited");
    let job = job.after(JobId::new(site.shared.id, pred)).schedule(|_| ());
    let (here, there) = (site.clone(), site.clone());
    let guest = Box::new(move || {
        let context = here.shared.context().expect("there is a seat");
        let over = context.wait_until(job.ticket(), Nanos::MAX);
        assert!(matches!(over, Ok(true)), "the wait fails");
    });
    let releaser = Box::new(move || {
        let context = there.context(0);
        context.release(pred, 1, Queue::Own);
        context.finish_todo(Queue::Own);
        context.publish(Queue::Own, false);
    });
    together(first, [guest, releaser]);
}

/// What the next thread finds.
const SYMPTOM: &str = "threads that sat there";

/// Two threads come to the only seat, at the same time or one after the other.
fn take_turns<P: Platform>(platform: P, first: usize) {
    let site = site_of(parts(platform, 2, 0, 1));
    let sat = Notes::new();
    let sit = |site: &Site<P>, sat: &Notes<u32>| {
        let seats = &site.shared.seats;
        let Some(seat) = seats.take_guest(&site.shared.platform, false) else {
            return;
        };
        // SAFETY: the thread sits there; whether it is the only one is what the checker is asked.
        let before = unsafe {
            seat.own.with_mut(|own| {
                (*own).tick += 1;
                (*own).tick - 1
            })
        };
        sat.add(before);
        seats.leave(seat.index);
    };
    let part = || {
        let (site, sat) = (site.clone(), sat.clone());
        Box::new(move || sit(&site, &sat)) as Part
    };
    together(first, [part(), part()]);
    sit(&site, &sat);
    let sat = sat.take();
    let in_turn: Vec<u32> = (0..sat.len() as u32).collect();
    assert!(sat.len() >= 2 && sat == in_turn, "{SYMPTOM}: {sat:?}");
}

#[test]
fn a_mark_may_lead_to_a_new_seat() {
    check(1, 2, |first| {
        wait_with_a_new_seat(Spoiled::<Ordered>::HERE, first);
    });
}

#[test]
fn a_seat_has_one_thread_after_the_other() {
    check(3, 2, |first| take_turns(Spoiled::<Ordered>::HERE, first));
}

/// A seat is there before it is whole, or free before its last thread is done.
#[derive(Clone, Copy)]
struct NotReleased;

impl Spoil for NotReleased {
    const ORDERED: bool = true;
    const FILE: &'static str = "src/seat.rs";
    fn store_small(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn a_seat_that_is_counted_too_early_is_found() {
    must_find(RACE, 1, || {
        wait_with_a_new_seat(Spoiled::<NotReleased>::HERE, 0);
    });
}

#[test]
fn a_seat_that_is_left_too_early_is_found() {
    must_find(RACE, 3, || {
        take_turns(Spoiled::<NotReleased>::HERE, 0);
    });
}
