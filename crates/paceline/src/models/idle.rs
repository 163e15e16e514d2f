//! Goal: published work is never forgotten: while a worker is not busy, every published job runs, although
//! no thread waits for it or flushes.
//! Method: a publisher schedules a job and goes away while a worker is anywhere between looking for work
//! and being parked, by the real code of `context` and `worker`. Then the parts of the protocol one by one:
//! the real `Idle` and `Deque`, in a loop that mirrors `Context::work_loop`, `idle` and `sleep` (without
//! spinning), so that a fence or an edge can be taken out on one side alone. A lost wake-up leaves a thread
//! parked for ever, which the checker reports as a deadlock.
//! Bounds: one or two workers, one to three jobs, two preemptions (three for the smallest).
//! Planted bugs: F or G missing, or AcqRel where SeqCst is needed (publisher and sleeper each miss the
//! other's write); I2, I3 and I4 without Release; tickets that are moved without being announced again.

use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Parker, Platform};
use testkit::Loom;

use super::{
    Notes, Ordered, Part, Site, Spoil, Spoiled, WeakFences, Word32, check, must_find, spoiled,
    together,
};
use crate::queues::Deque;
use crate::queues::{Fenced, Fences, Idle};
use crate::store::Ticket;

// One sleeper, one searcher and one bump add this to the idle word.
const SLEEPING: u64 = 1;
const SEARCHING: u64 = 1 << 12;
const EPOCH: u64 = 1 << 49;

struct Den<M: Memory> {
    idle: Idle<M>,
    /// A queue for each worker, then the publisher's.
    queues: Vec<Deque<Spoiled>>,
    parkers: Vec<<Loom as Platform>::Parker>,
    /// For each job, whether it has been claimed. (Tickets may be doubled.)
    claims: Vec<Word32>,
    /// Jobs that have not run.
    left: Word32,
}

impl<M: Memory> Den<M> {
    fn new(workers: usize, jobs: usize) -> Arc<Den<M>> {
        Arc::new(Den {
            idle: Idle::new(workers),
            queues: (0..=workers).map(|_| Deque::new(4)).collect(),
            parkers: (0..workers).map(|_| Loom.parker()).collect(),
            claims: (0..jobs).map(|_| Word32::new(0)).collect(),
            left: Word32::new(jobs as u32),
        })
    }

    fn put(&self, queue: usize, job: usize) {
        assert!(
            self.queues[queue].put(Ticket(job as u64 + 1)),
            "the queue is full"
        );
    }

    /// As `Context::announce`.
    fn announce<F: Fences<M>>(&self) {
        let Some(now) = self.idle.after_publish::<F>() else {
            return;
        };
        if now.wants_work() {
            self.idle.bump();
        }
        if now.searching == 0 && now.sleeping > 0 {
            self.wake_one();
        }
    }

    fn wake_one(&self) {
        if let Some(thread) = self.idle.wake_one() {
            self.parkers[thread].unpark();
        }
    }

    fn has_work(&self) -> bool {
        self.queues.iter().any(|queue| queue.len() > 0)
    }

    fn is_over(&self) -> bool {
        // Acquire, partner: the subtraction in `run`.
        self.left.load(Ordering::Acquire) == 0
    }

    /// Runs a job. The thread that runs the last one wakes all others, so that they end.
    fn run(&self, ticket: Ticket) {
        // AcqRel, partner: both operations as done by the other workers.
        if self.claims[ticket.0 as usize - 1].swap(1, Ordering::AcqRel) == 1 {
            return;
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.parkers.iter().for_each(|parker| {
                parker.unpark();
            });
        }
    }

    /// As `Context::take_from_deques_if`: stolen tickets beyond the first go to the own queue.
    fn find(&self, thread: usize) -> Option<Ticket> {
        let mut first = None;
        self.queues.iter().find_map(|queue| {
            queue.steal_half(2, |ticket| match first {
                None => first = Some(ticket),
                Some(_) => assert!(self.queues[thread].put(ticket), "the queue is full"),
            });
            first
        })
    }

    /// As `Context::work_loop`, `idle` and `sleep`.
    fn work<F: Fences<M>>(&self, thread: usize) {
        while !self.is_over() {
            self.idle.begin_search::<F>();
            let found = loop {
                let found = self.find(thread);
                if found.is_some() || self.is_over() {
                    break found;
                }
                self.idle.begin_sleep::<F>(thread);
                while self.idle.is_asleep(thread) && !self.has_work() && !self.is_over() {
                    self.parkers[thread].park(Nanos::MAX);
                }
                self.idle.cancel_sleep(thread);
            };
            self.end_search::<F>();
            if let Some(ticket) = found {
                self.run(ticket);
            }
            while let Some(ticket) = self.queues[thread].take_newest() {
                self.run(ticket);
            }
        }
    }

    /// As `Context::leave_search`.
    fn end_search<F: Fences<M>>(&self) {
        if self.idle.end_search::<F>() && self.has_work() {
            self.wake_one();
        }
    }

    /// A worker finds nothing and goes to sleep. True if it parks.
    fn doze_off(&self, thread: usize) -> bool {
        self.idle.begin_search::<Fenced>();
        if self.has_work() {
            self.end_search::<Fenced>();
            return false;
        }
        self.idle.begin_sleep::<Fenced>(thread);
        let parks = !self.has_work();
        if !parks {
            self.idle.cancel_sleep(thread);
            self.end_search::<Fenced>();
        }
        parks
    }

    /// The part of one thread.
    fn part(self: &Arc<Self>, act: impl FnOnce(&Arc<Den<M>>) + Send + 'static) -> Part {
        let den = self.clone();
        Box::new(move || act(&den))
    }

    fn publisher<F: Fences<M> + 'static>(self: &Arc<Self>, jobs: usize) -> Part {
        self.part(move |den| {
            for job in 0..jobs {
                den.put(den.parkers.len(), job);
                den.announce::<F>();
            }
        })
    }

    fn worker<F: Fences<M> + 'static>(self: &Arc<Self>, thread: usize) -> Part {
        self.part(move |den| den.work::<F>(thread))
    }

    /// Worker 1 finds nothing and goes to sleep. Notes whether it would park.
    fn dozer(self: &Arc<Self>, parked: &Notes<bool>) -> Part {
        let parked = parked.clone();
        self.part(move |den| parked.add(den.doze_off(1)))
    }
}

/// A publisher with some jobs that it does not wait for, against one worker.
fn publish_and_forget<M: Memory, F: Fences<M> + 'static>(first: usize, jobs: usize) {
    let den = Den::<M>::new(1, jobs);
    together(first, [den.publisher::<F>(jobs), den.worker::<F>(0)]);
}

/// A publisher with one job against two workers.
fn publish_to_two<M: Memory>(first: usize) {
    let den = Den::<M>::new(2, 1);
    let publisher = den.publisher::<Fenced>(1);
    let workers = (den.worker::<Fenced>(0), den.worker::<Fenced>(1));
    together(first, [publisher, workers.0, workers.1]);
}

#[test]
fn a_published_job_runs() {
    check(3, 2, |first| publish_and_forget::<Loom, Fenced>(first, 1));
    check(2, 2, |first| publish_and_forget::<Loom, Fenced>(first, 2));
}

#[test]
fn a_published_job_runs_with_two_workers() {
    check(2, 3, publish_to_two::<Loom>);
}

/// F is missing.
struct NoFenceAtPublisher;

impl<M: Memory> Fences<M> for NoFenceAtPublisher {
    fn publish() {}
}

/// G is missing.
struct NoFenceAtWorker;

impl<M: Memory> Fences<M> for NoFenceAtWorker {
    fn look() {}
}

#[test]
fn without_the_publishers_fence_a_job_is_forgotten() {
    must_find("deadlock", 2, || {
        publish_and_forget::<Loom, NoFenceAtPublisher>(0, 1)
    });
}

#[test]
fn without_the_workers_fence_a_job_is_forgotten() {
    must_find("deadlock", 2, || {
        publish_and_forget::<Loom, NoFenceAtWorker>(0, 1)
    });
}

/// The same by the real code of a worker's loop and of scheduling. The job tells the worker to leave.
fn schedule_and_forget<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let (here, there) = (site.clone(), site.clone());
    let publisher = Box::new(move || {
        _ = there
            .context(1)
            .schedule(|context| context.shared.signal_stop());
    });
    let worker = Box::new(move || here.context(0).work_loop());
    together(first, [publisher, worker]);
}

#[test]
fn a_scheduled_job_runs() {
    check(2, 2, |first| {
        schedule_and_forget(Spoiled::by::<Ordered>(), first)
    });
}

#[test]
fn with_weaker_fences_a_scheduled_job_is_forgotten() {
    must_find("deadlock", 2, || {
        schedule_and_forget(Spoiled::by::<WeakFences>(), 0)
    });
}

const FORGOTTEN: &str = "a job is forgotten";

/// A waker may find no bit, because worker 0 is just now waking up by itself. Meanwhile that worker makes a
/// job, and worker 1 goes to sleep.
fn leave_it_to_a_phantom<M: Memory>(first: usize) {
    let den = Den::<M>::new(2, 1);
    den.idle.begin_search::<Fenced>();
    den.idle.begin_sleep::<Fenced>(0);
    let parked = Notes::new();
    let riser = den.part(|den| {
        den.idle.cancel_sleep(0);
        den.end_search::<Fenced>();
        den.put(0, 0);
        den.announce::<Fenced>();
    });
    let waker = den.part(|den| den.wake_one());
    together(first, [waker, riser, den.dozer(&parked)]);
    let forgotten = parked.take() == [true] && den.idle.is_asleep(1);
    assert!(!forgotten, "{FORGOTTEN}");
}

#[test]
fn a_job_that_is_left_to_an_absent_searcher_is_found() {
    check(2, 3, leave_it_to_a_phantom::<Loom>);
}

/// I2 is missing: the sleeper's change of the word.
#[derive(Clone, Copy)]
struct SleepNotReleased;

impl Spoil for SleepNotReleased {
    const ORDERED: bool = true;
    fn change(operand: u64, order: Ordering) -> Ordering {
        let is_sleep = operand == SLEEPING.wrapping_sub(SEARCHING);
        if is_sleep { Ordering::Relaxed } else { order }
    }
}

#[test]
fn without_i2_a_sleeper_is_overlooked() {
    must_find(FORGOTTEN, 2, || {
        spoiled::<SleepNotReleased>(|| leave_it_to_a_phantom::<Spoiled>(0))
    });
}

/// The ways in which worker 0 moves tickets to its own queue.
#[derive(Clone, Copy)]
enum Mover {
    Searching,
    Announcing,
    Silent,
}

/// Worker 0 moves two tickets of three, to run the first. The publisher takes the third. Worker 1 goes to
/// sleep.
fn move_tickets<M: Memory>(first: usize, mover: Mover) {
    let den = Den::<M>::new(2, 3);
    (0..3).for_each(|job| den.put(2, job));
    let parked = Notes::new();
    let mover = den.part(move |den| match mover {
        Mover::Searching => {
            den.idle.begin_search::<Fenced>();
            den.find(0);
            den.end_search::<Fenced>();
        }
        Mover::Announcing => {
            den.find(0);
            if den.queues[0].len() > 0 {
                den.announce::<Fenced>();
            }
        }
        Mover::Silent => _ = den.find(0),
    });
    let taker = den.part(|den| _ = den.queues[2].take_newest());
    together(first, [taker, mover, den.dozer(&parked)]);
    let forgotten = den.has_work() && parked.take() == [true] && den.idle.is_asleep(1);
    assert!(!forgotten, "{FORGOTTEN}");
}

#[test]
fn tickets_that_were_in_no_queue_for_a_moment_are_found() {
    check(2, 3, |first| move_tickets::<Loom>(first, Mover::Searching));
    check(2, 3, |first| move_tickets::<Loom>(first, Mover::Announcing));
}

#[test]
fn without_the_second_announcement_moved_tickets_are_forgotten() {
    must_find(FORGOTTEN, 2, || move_tickets::<Loom>(0, Mover::Silent));
}

/// I4 is missing: the end of a search.
#[derive(Clone, Copy)]
struct EndNotReleased;

impl Spoil for EndNotReleased {
    const ORDERED: bool = true;
    fn change(operand: u64, order: Ordering) -> Ordering {
        // Of all operations with this operand; partner: as in `idle`.
        match (operand, order) {
            (SEARCHING, Ordering::Release) => Ordering::Relaxed,
            _ => order,
        }
    }
}

#[test]
fn without_i4_moved_tickets_are_overlooked() {
    must_find(FORGOTTEN, 2, || {
        spoiled::<EndNotReleased>(|| move_tickets::<Spoiled>(0, Mover::Searching));
    });
}

/// A spinner that never parks looks again only when the epoch changes.
fn stop_a_spinner<M: Memory>(first: usize) {
    let den = Den::<M>::new(1, 0);
    let stop = Arc::new(Word32::new(0));
    let told = stop.clone();
    let spinner = den.part(move |den| {
        let mut epoch = den.idle.begin_search::<Fenced>();
        while told.load(Ordering::Relaxed) == 0 {
            let seen = epoch;
            while epoch == seen {
                den.idle.spin(seen, Nanos::MAX);
                epoch = den.idle.epoch();
            }
        }
    });
    let stopper = den.part(move |den| {
        stop.store(1, Ordering::Relaxed);
        den.idle.bump();
    });
    together(first, [stopper, spinner]);
}

#[test]
fn a_spinner_sees_what_a_bump_announces() {
    check(3, 2, stop_a_spinner::<Loom>);
}

/// I3 is missing: bumps.
#[derive(Clone, Copy)]
struct BumpNotReleased;

impl Spoil for BumpNotReleased {
    const ORDERED: bool = true;
    fn change(operand: u64, order: Ordering) -> Ordering {
        let is_bump = operand == EPOCH;
        if is_bump { Ordering::Relaxed } else { order }
    }
}

#[test]
fn without_i3_a_spinner_spins_for_ever() {
    must_find("branches", 3, || {
        spoiled::<BumpNotReleased>(|| stop_a_spinner::<Spoiled>(0))
    });
}
