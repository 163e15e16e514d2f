//! Frames of the program's own jobs and parallel iterators of rayon's, on one set of workers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use paceline::{Builder, Grain, JobSystem};
use rayon::prelude::*;

const WORKERS: usize = 2;
const FRAMES: usize = 200;
const ITEMS: usize = 1000;

/// What the names of the system's threads begin with. No other pool has it.
const NAME: &str = "of the frames";

/// The threads that something ran on, and their names.
#[derive(Default)]
struct Threads(Mutex<HashMap<ThreadId, String>>);

impl Threads {
    fn note(&self) {
        let here = thread::current();
        let name = here.name().unwrap_or_default();
        let mut threads = self.0.lock().unwrap();
        threads.entry(here.id()).or_insert_with(|| name.to_owned());
    }
}

fn value(item: usize) -> usize {
    item.wrapping_mul(0x9e37_79b9) >> 7 & 0xff
}

/// What the threads of the test have in common.
#[derive(Default)]
struct Common {
    threads: Threads,
    /// The frames have been.
    is_over: AtomicBool,
    /// The sums that were beside them.
    sums: AtomicUsize,
}

impl Common {
    /// A sum by a parallel iterator.
    fn sum(&self) -> usize {
        let items = (0..ITEMS).into_par_iter();
        items.inspect(|_| self.threads.note()).map(value).sum()
    }
}

/// A frame: a sum of rayon's in a job, and a loop that computes the same, piece by piece. Returns both.
fn frame(js: &JobSystem, common: &Arc<Common>) -> [usize; 2] {
    let frame = js.frame("update", Duration::from_millis(16));
    let (by_job, by_loop) = (Arc::clone(common), Arc::clone(common));
    let added = Arc::new(AtomicUsize::new(0));
    let adds = Arc::clone(&added);
    let sum = frame.job("sum").run(move |_| {
        by_job.threads.note();
        by_job.sum()
    });
    let pieces = frame.job("pieces");
    let pieces = pieces.schedule_for(0..ITEMS, Grain::Auto, move |part, _| {
        by_loop.threads.note();
        adds.fetch_add(part.map(value).sum(), Ordering::Relaxed);
    });
    js.wait(pieces);
    [sum.wait(), added.load(Ordering::Relaxed)]
}

/// Goal: a program has frames of its own and `par_iter` on one pool at the same time: there are no threads of
/// another pool, each computes what it computes alone, and the frames go on while rayon's work has no end.
/// Method: a thread calls a parallel sum over and over until another one has had its frames. A frame that
/// starved would hold the test up for ever.
#[test]
fn frames_go_on_beside_parallel_iterators() {
    let named = Builder::new().thread_name(|slot| format!("{NAME} {slot}"));
    let js = Arc::new(named.workers(WORKERS).build().unwrap());
    rayon_core::use_job_system(Arc::clone(&js)).unwrap();
    let expected: usize = (0..ITEMS).map(value).sum();
    let common = Arc::new(Common::default());
    let beside = Arc::clone(&common);
    let beside = thread::spawn(move || {
        while !beside.is_over.load(Ordering::Relaxed) {
            assert_eq!(beside.sum(), expected);
            beside.sums.fetch_add(1, Ordering::Relaxed);
        }
    });
    let caller = beside.thread().id();
    while common.sums.load(Ordering::Relaxed) == 0 && !beside.is_finished() {
        thread::yield_now();
    }
    for _ in 0..FRAMES {
        assert_eq!(frame(&js, &common), [expected; 2]);
    }
    assert!(!beside.is_finished(), "there was a sum beside each frame");
    common.is_over.store(true, Ordering::Relaxed);
    beside.join().unwrap();
    // Beside the thread of the frames and the one that calls rayon there are the system's threads only. Their
    // number is no part of this: the system follows the machine, and has a spare one while a worker waits.
    let program = [thread::current().id(), caller];
    let threads = common.threads.0.lock().unwrap();
    let others = threads.iter().filter(|(id, _)| !program.contains(id));
    let names: Vec<&String> = others.map(|(_, name)| name).collect();
    let is_of_system = |name: &&String| name.starts_with(NAME);
    assert!(names.iter().all(is_of_system), "{names:?}");
    assert_eq!(rayon::current_num_threads(), WORKERS + 1);
}
