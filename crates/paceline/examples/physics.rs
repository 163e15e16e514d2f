//! A library with its own idea of tasks runs on the job system's threads: the library asks for a loop, goes
//! on, and later asks for its end. So do Box2D, Jolt and others.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program has threads and locks of its own"
)]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use paceline::{Grain, JobId, JobSystem};

/// What the library asks of the program.
trait Tasks: Send + Sync {
    /// Runs `task` over parts of `0..items`, some time before `finish` returns. `worker` is below
    /// `workers`, and no other part runs with the same number meanwhile.
    fn enqueue(&self, items: usize, at_least: usize, task: Task) -> u64;
    fn finish(&self, handle: u64);
    fn workers(&self) -> usize;
}

type Task = Arc<dyn Fn(Range<usize>, usize) + Send + Sync>;

/// The program's answer.
struct OnPaceline {
    js: Arc<JobSystem>,
    open: Mutex<(u64, HashMap<u64, JobId>)>,
}

impl Tasks for OnPaceline {
    fn enqueue(&self, items: usize, at_least: usize, task: Task) -> u64 {
        let grain = Grain::Items(at_least as u32);
        let job = self.js.job("physics");
        let job = job.schedule_for(0..items, grain, move |part, cx| task(part, cx.worker()));
        let mut open = self.open.lock().expect("nothing panics while it is locked");
        open.0 += 1;
        let handle = open.0;
        open.1.insert(handle, job);
        handle
    }

    fn finish(&self, handle: u64) {
        let job = self.open.lock().expect("as above").1.remove(&handle);
        self.js.wait(job.expect("each handle is finished once"));
    }

    fn workers(&self) -> usize {
        self.js.thread_slots()
    }
}

/// The library: a step of a pile of boxes, in two loops. It knows nothing of jobs.
fn step(tasks: &dyn Tasks, speeds: &Arc<Vec<Mutex<i64>>>) -> i64 {
    let contacts: Arc<Vec<Mutex<i64>>> =
        Arc::new((0..tasks.workers()).map(|_| Mutex::new(0)).collect());
    let (boxes, found) = (speeds.clone(), contacts.clone());
    let collide = tasks.enqueue(
        boxes.len(),
        16,
        Arc::new(move |part, worker| {
            let hits = part.filter(|item| item % 3 == 0).count() as i64;
            *found[worker].lock().unwrap() += hits;
        }),
    );
    let boxes = speeds.clone();
    let fall = tasks.enqueue(
        boxes.len(),
        64,
        Arc::new(move |part, _| {
            part.for_each(|item| *boxes[item].lock().unwrap() -= 10);
        }),
    );
    tasks.finish(collide);
    tasks.finish(fall);
    contacts.iter().map(|found| *found.lock().unwrap()).sum()
}

fn main() {
    let js = Arc::new(JobSystem::new());
    let tasks = OnPaceline {
        js,
        open: Mutex::default(),
    };
    let speeds: Arc<Vec<Mutex<i64>>> = Arc::new((0..1000).map(|_| Mutex::new(0)).collect());
    for number in 0..3 {
        println!("step {number}: {} contacts", step(&tasks, &speeds));
    }
    assert!(speeds.iter().all(|speed| *speed.lock().unwrap() == -30));
}
