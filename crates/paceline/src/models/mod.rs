//! Models: the lock-free parts under every interleaving and every weak-memory outcome.
//!
//! Goal: the protocols of the parts below hold, and would not hold without the steps and the orderings that
//! the planted bugs take away.
//! Method: the real code runs on the model checker's memory ([`Loom`]), with two or three threads and in the
//! smallest sizes in which everything can go wrong (rings of two, tables of four). Next to each model are
//! its *planted bugs*: the same code on [`Spoiled`] memory, which weakens an ordering or breaks an
//! operation. The checker must find each of them. A model that finds nothing in a broken world says nothing
//! about the real one.
//!
//! The limits of the checker are written down in `testkit::loom`. Above all it does not see load buffering:
//! a read that takes its value from a write that only follows from the read. The edge against that (D2 of
//! the deque) is argued in the text.
//!
//! `LOOM_MAX_PREEMPTIONS` raises the bounds for long runs. The bounds are chosen so that all models
//! together take about a minute in an optimized build, and each planted bug is found within the bounds of
//! its model. `--nocapture` shows how many executions each model took.

mod built;
mod caps;
mod deep;
mod deque;
mod ending;
mod futures;
mod groups;
mod idle;
mod lanes;
mod links;
mod live;
mod pinned;
mod posted;
mod promote;
mod range;
mod ranges;
mod repeat;
mod rings;
mod scopes;
mod slab;
mod slots;
mod slow;
mod spoil;
mod thread_slots;
mod values;
mod wait;
mod whole;
mod workers;
mod yields;

use std::panic::Location;
use std::sync::Arc;

use platform::{
    Atomic, Limits, Lock, Memory, Ordering, Os, Platform, SharedCell, Thread, ThreadSpec,
};
use testkit::Loom;

use spoil::{Ordered, Spoil, Spoiled, WeakFences, Word32, spoiled};

use crate::WaitPolicy;
use crate::adapt::{Adapt, MachineView, WorkersRequest};
use crate::hooks::Hooks;
use crate::policy::{SpinPolicy, WaitRule};
use crate::store::{Label, Ticket};
use crate::work::hints::HintSetting;
use crate::work::shared::{Parts, Shared};
use crate::work::thread_slot::ThreadKind;
use crate::work::{Context, LongWaits, ShareSetting, StuckSetting};

/// The part of one thread of a model.
type Part = Box<dyn FnOnce() + Send>;

/// Runs all parts at the same time, each on a thread of its own. The part with the number `first` is
/// started first. The calling thread only waits.
fn together<const N: usize>(first: usize, mut parts: [Part; N]) {
    parts.rotate_left(first % N);
    let start = |part| Loom.spawn(ThreadSpec::default(), part);
    let threads = parts.map(|part| start(part).expect("the model has a thread left"));
    for thread in threads {
        thread.join().expect("a panic ends the whole model");
    }
}

/// Checks a model of `parts` parts with each of them started first.
///
/// The checker begins with the order in which threads were started, and reverses accesses that are in
/// conflict. For that it keeps only the last access to each word. So a read can hide another thread's
/// earlier read from a write that follows. From another beginning it does not.
fn check(preemptions: usize, parts: usize, model: impl Fn(usize) + Send + Sync + Copy + 'static) {
    let started_first =
        |first| testkit::loom::model(preemptions, move || spoiled::<Ordered>(|| model(first)));
    let executions: u64 = (0..parts).map(started_first).sum();
    println!("{executions} executions");
}

/// Demands that a planted bug is found, and that the checker's message contains `symptom`.
fn must_find(symptom: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let bug = testkit::loom::expect_bug(preemptions, move || spoiled::<Ordered>(&model));
    assert!(bug.contains(symptom), "another bug was found: {bug}");
}

/// The same for a bug that an assertion notices first. The first symptom is that of the assertion. The
/// second one is for builds without assertions.
fn must_find_or_assert(
    symptoms: [&str; 2],
    preemptions: usize,
    model: impl Fn() + Send + Sync + 'static,
) {
    let [asserted, symptom] = symptoms;
    let symptom = if cfg!(debug_assertions) {
        asserted
    } else {
        symptom
    };
    must_find(symptom, preemptions, model);
}

/// The checker's word for a race.
const RACE: &str = "Causality violation";

/// Notes of events, taken by all threads of a model. They are no part of the model: the checker does not
/// see the accesses.
struct Notes<T: Send>(Arc<<Os as Memory>::Lock<Vec<T>>>);

impl<T: Send + Ord> Notes<T> {
    fn new() -> Self {
        Notes(Arc::new(Lock::new(Vec::new())))
    }
    fn add(&self, note: T) {
        self.0.with(|notes| notes.push(note));
    }
    fn len(&self) -> usize {
        self.0.with(|notes| notes.len())
    }
    /// Takes a note back.
    fn remove(&self, note: &T) {
        self.0.with(|notes| notes.retain(|other| other != note));
    }
    /// All notes, sorted.
    fn take(&self) -> Vec<T> {
        let mut notes = self.0.with(std::mem::take);
        notes.sort_unstable();
        notes
    }
}

impl<T: Send> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Notes(self.0.clone())
    }
}

/// A machine of two CPUs that is never looked at again.
fn two_cpus(workers: usize) -> MachineView {
    let limits = Limits::of([0, 1].into_iter().collect());
    let request = WorkersRequest::Fitting { reserve: 1 };
    MachineView::new(limits, request, workers)
}

/// A small job system with room for `jobs` jobs, `workers` workers and `guests` guests. No thread spins.
fn shared<P: Platform>(platform: P, jobs: u32, workers: usize, guests: usize) -> Arc<Shared<P>> {
    Shared::new(parts(platform, jobs, workers, guests))
}

/// The parts of [`shared`].
fn parts<P: Platform>(platform: P, jobs: u32, workers: usize, guests: usize) -> Parts<P> {
    Parts {
        threads: workers + guests,
        guests_max: guests,
        workers_max: workers,
        spares_max: 0,
        queue: 2,
        max_jobs: jobs,
        spin: SpinPolicy {
            policy: WaitPolicy::Passive,
        },
        wait_rule: WaitRule::default(),
        adapt: Adapt::still(two_cpus(workers)),
        sink: None,
        recording: false,
        hooks: Hooks::default(),
        stack_bytes: None,
        slice: None,
        spawner: None,
        slow_takes_loops: true,
        background_max: None,
        shares: [ShareSetting::UNSET; 5],
        long_waits: LongWaits::new(&StuckSetting::default()).expect("nothing is asked for"),
        checks: false,
        hints: HintSetting::default().open(false, 0),
        platform,
    }
}

/// A job system whose thread slots are taken by the model's own threads.
struct Site<P: Platform> {
    shared: Arc<Shared<P>>,
    /// The effect of jobs, in plain memory. The checker reports a thread that looks too early.
    done: Arc<P::Cell<u32>>,
}

// SAFETY: `done` is written before the job ends that stands for the write, and is read when that job is
// known to be over. The checker is asked whether that is so.
unsafe impl<P: Platform> Send for Site<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Sync for Site<P> {}

impl<P: Platform> Clone for Site<P> {
    fn clone(&self) -> Self {
        Site {
            shared: self.shared.clone(),
            done: self.done.clone(),
        }
    }
}

impl<P: Platform> Drop for Site<P> {
    /// The words of an execution that was cut short cannot be used any more, and `Drop` would use them.
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.shared.clone());
        }
    }
}

/// A job system whose thread slots are made in the model.
fn site_of<P: Platform>(parts: Parts<P>) -> Site<P> {
    Site {
        shared: Shared::new(parts),
        done: Arc::new(SharedCell::new(0)),
    }
}

impl<P: Platform> Site<P> {
    /// Room for `jobs` jobs and `threads` threads of the model. There is one more worker, which is busy. So
    /// no thread is on its own, and no spare is needed.
    fn new(platform: P, jobs: u32, threads: usize) -> Site<P> {
        let site = site_of(parts(platform, jobs, threads, 0));
        (0..threads).for_each(|_| site.add_slot(ThreadKind::Worker));
        site.shared.workers.pretend_active(threads + 1);
        site
    }

    /// Adds the thread slot of the next thread.
    fn add_slot(&self, kind: ThreadKind) {
        let thread = self.shared.threads.add(&self.shared.platform, kind);
        let thread = thread.expect("there is a thread for each");
        self.shared.graph.make_room_for(thread.index);
    }

    /// The context of the thread with this number.
    fn context(&self, thread: usize) -> Context<'_, P> {
        // SAFETY: each thread of a model has its own number.
        unsafe { Context::new(&self.shared, self.shared.threads.get(thread)) }
    }

    fn do_something(&self) {
        // SAFETY: see `done`.
        unsafe { self.done.with_mut(|done| *done += 1) };
    }

    fn what_was_done(&self) -> u32 {
        // SAFETY: see `done`.
        unsafe { self.done.with(|done| *done) }
    }
}

/// A job without a body that is held back by one.
fn held_job<P: Platform>(context: &Context<'_, P>) -> Ticket {
    let label = Label {
        name: "held",
        site: Location::caller(),
    };
    let held = context.graph().make(&label, 0, Ticket::NONE);
    let (job, slot) = held.expect("there is room");
    // Release, partner: the CAS in `hold_back`, as for any new job.
    slot.pending.store(1, Ordering::Release);
    job
}
