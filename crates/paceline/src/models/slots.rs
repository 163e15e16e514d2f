//! Goal: of all tickets for a job exactly one wins it, and an old ticket never starts, holds back or
//! releases the next job of its slot.
//! Method: two threads start the same ticket, and start it again when it is old and another job is in its
//! slot. One thread adds a dependency to a job (which raises its count), while another thread ends that job
//! and makes the next one in its slot, which has to wait for a gate. All by the real code of `context`,
//! `graph` and `schedule`.
//! Bounds: two threads, two to four jobs, two preemptions.
//! Planted bugs: a claim that does not look at the generation (the old ticket runs the next job under its
//! own name, and the end of that job is never seen); a count that is raised without a second look at the
//! generation, or by a load and then an addition.

use platform::{Atomic, Ordering, Platform};

use super::{
    Notes, Ordered, Part, Site, Spoil, Spoiled, check, held_job, must_find_or_assert, together,
};
use crate::queues::Queue;
use crate::store::{JobId, JobPhase, Ticket};
use crate::work::Context;

/// Jobs 1 and 2. The second one is made when the first one is over, in the same slot.
struct Pair<P: Platform> {
    site: Site<P>,
    ran: Notes<(u32, u32)>,
    made: Notes<Ticket>,
}

impl<P: Platform> Clone for Pair<P> {
    fn clone(&self) -> Self {
        Pair {
            site: self.site.clone(),
            ran: self.ran.clone(),
            made: self.made.clone(),
        }
    }
}

impl<P: Platform> Pair<P> {
    fn new(platform: P) -> Pair<P> {
        Pair {
            site: Site::new(platform, 4, 2),
            ran: Notes::new(),
            made: Notes::new(),
        }
    }

    /// All jobs are over, under their own names.
    fn settle(&self) {
        for job in self.made.take() {
            let over = self.site.shared.slot(job).is_over(job);
            assert!(over, "job {job:?} is never over");
        }
    }

    fn schedule(&self, context: &Context<'_, P>, number: u32) -> Ticket {
        let (site, ran) = (self.site.clone(), self.ran.clone());
        self.site.do_something();
        let id = context.schedule(move |_| ran.add((number, site.what_was_done())));
        self.made.add(id.ticket());
        id.ticket()
    }

    /// Starts job 1, makes job 2 if that was done here, and tries the old ticket again.
    fn starter(&self, thread: usize, first: Ticket) -> Part {
        let pair = self.clone();
        Box::new(move || {
            let (context, slot) = (pair.site.context(thread), pair.site.shared.slot(first));
            if context.start(first, slot) {
                let second = pair.schedule(&context, 2);
                assert_eq!(second.index(), first.index(), "the slot is used again");
            }
            context.start(first, slot);
            context.run_any();
        })
    }
}

fn start_twice<P: Platform>(platform: P, first: usize) {
    let pair = Pair::new(platform);
    let context = pair.site.context(0);
    let ticket = pair.schedule(&context, 1);
    together(first, [pair.starter(0, ticket), pair.starter(1, ticket)]);
    while context.run_any() {}
    assert_eq!(pair.ran.take(), [(1, 1), (2, 2)], "jobs run");
    pair.settle();
}

#[test]
fn a_job_is_won_once() {
    check(2, 2, |first| start_twice(Spoiled::by::<Ordered>(), first));
}

/// The claim does not look at the generation.
#[derive(Clone, Copy)]
struct NoGeneration;

impl Spoil for NoGeneration {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["slot.rs"];
    fn mistaken(now: u64, current: u64, new: u64) -> Option<u64> {
        /// Phase and participants.
        const REST: u64 = (1 << 24) - 1;
        (now & REST == current & REST).then_some(now & !REST | new & REST)
    }
}

#[test]
fn a_claim_that_ignores_the_generation_starts_another_job() {
    must_find_or_assert(["is closed twice", "is never over"], 2, || {
        start_twice(Spoiled::by::<NoGeneration>(), 0)
    });
}

/// Adds a dependency to a job that has been scheduled.
type AddLate<P> = fn(&Context<'_, P>, Ticket, Ticket);

fn add_late<P: Platform>(context: &Context<'_, P>, job: Ticket, after: Ticket) {
    let id = |ticket| JobId::new(context.shared.id, ticket);
    // The job may have started, and then it is too late.
    _ = context.add_dependency(id(job), id(after));
}

/// As `hold_back` and the rest of `add_dependency`, but the generation is not looked at again after the
/// count was raised. (The part about the job to wait for is left out, because that job is over.)
fn add_late_without_a_second_look<P: Platform>(context: &Context<'_, P>, job: Ticket, _: Ticket) {
    let slot = context.shared.slot(job);
    // Acquire and AcqRel, partners: as in `hold_back`.
    let word = slot.word(Ordering::Acquire);
    let pending = slot.pending.load(Ordering::Relaxed);
    if word.generation != job.generation() || word.phase != JobPhase::Waiting || pending == 0 {
        return;
    }
    let (new, success) = (pending + 1, Ordering::AcqRel);
    let raised = slot
        .pending
        .compare_exchange(pending, new, success, Ordering::Relaxed);
    if raised.is_ok() {
        context.graph().release(job, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
        context.publish(Queue::Own, false);
    }
}

/// Ends `old` and makes a job that waits for `gate`, in the same slot if that is free by now. Then opens
/// the gate.
fn successor<P: Platform>(pair: &Pair<P>, old: Ticket, gate: Ticket) -> Part {
    let pair = pair.clone();
    Box::new(move || {
        let (context, site, ran) = (pair.site.context(1), pair.site.clone(), pair.ran.clone());
        context.graph().release(old, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
        let gated = context.job("gated").after(JobId::new(site.shared.id, gate));
        let gated = gated.schedule(move |_| ran.add((2, site.what_was_done())));
        pair.made.add(gated.ticket());
        pair.site.do_something();
        context.graph().release(gate, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
        while context.run_any() {}
    })
}

fn add_to_an_old_job<P: Platform>(platform: P, first: usize, add: AddLate<P>) {
    let pair = Pair::new(platform);
    let context = pair.site.context(1);
    let [gate, over, old] = [(); 3].map(|()| held_job(&context));
    context.graph().release(over, 1, Queue::Own);
    context.graph().finish_todo(Queue::Own);
    let adder = {
        let site = pair.site.clone();
        Box::new(move || add(&site.context(0), old, over))
    };
    together(first, [adder, successor(&pair, old, gate)]);
    while context.run_any() {}
    assert_eq!(pair.ran.take(), [(2, 1)], "jobs run");
    pair.settle();
}

#[test]
fn an_old_name_does_not_hold_back_the_next_job() {
    check(3, 2, |first| {
        add_to_an_old_job(Spoiled::by::<Ordered>(), first, add_late)
    });
}

#[test]
fn without_a_second_look_an_old_name_releases_the_next_job() {
    must_find_or_assert(["is closed twice", "is never over"], 3, || {
        let add = add_late_without_a_second_look;
        add_to_an_old_job(Spoiled::by::<Ordered>(), 0, add);
    });
}
