//! Nodes that make jobs with names: results, chains, combinations, events, ranges, handles, frames.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use paceline::{Grain, Job, JobId, JobSystem, WaitError};

use super::eval::{Given, body, eval};
use super::node::Node;
use super::world::{World, fail};

/// How long a thread that awaits a future rests before it looks again for something to run.
const MOMENT: Duration = Duration::from_millis(1);

/// The children as jobs, in their order.
fn jobs(world: &Arc<World>, node: &Node, name: &'static str) -> Vec<Job<u64>> {
    let job = |child| world.js.job(name).run(body(world, child));
    node.children.iter().map(job).collect()
}

/// The sum of their values; a failure only after all were waited for.
fn sum(world: &World, jobs: Vec<Job<u64>>) -> Option<u64> {
    let mut sum = Some(0_u64);
    for job in jobs {
        sum = match job.try_wait() {
            Ok(value) => sum.map(|sum| sum.wrapping_add(value)),
            Err(WaitError::Panicked { .. }) => None,
            Err(error) => {
                world.wrong(format!("a job with a result said: {error}"));
                None
            }
        };
    }
    sum
}

pub(super) fn typed(world: &Arc<World>, node: &Node) -> u64 {
    sum(world, jobs(world, node, "typed")).unwrap_or_else(|| fail())
}

pub(super) fn combine(world: &Arc<World>, node: &Node) -> u64 {
    let parts = jobs(world, node, "part");
    let ids: Vec<JobId> = parts.iter().map(Job::id).collect();
    let verdict = world.js.try_wait(world.js.combine(&ids));
    let sum = sum(world, parts);
    if sum.is_some() != verdict.is_ok() {
        world.wrong(format!("a combination said {verdict:?}, its parts {sum:?}"));
    }
    sum.unwrap_or_else(|| fail())
}

/// Three jobs behind an event that another thread completes, with an edge that may come too late.
pub(super) fn chain(world: &Arc<World>, node: &Node) -> u64 {
    let js = &world.js;
    let event = js.event("foreign");
    let gate = event.id();
    let first = js
        .job("first")
        .after(gate)
        .run(body(world, &node.children[0]));
    let second = js.job("second").after(first.id()).schedule(|_| ());
    let third = js.job("third").after(second).schedule(|_| ());
    if node.choice(1, 4) == 0 {
        // Perhaps refused: the gate may be open by now.
        _ = js.add_dependency(third, gate);
    }
    world.complete_elsewhere(event, node.seed);
    match node.choice(2, 3) {
        0 => {
            let value = poll(world, first, Duration::from_micros(node.choice(3, 97)));
            _ = js.try_wait(third);
            value
        }
        1 => {
            let moment = Duration::from_micros(node.choice(3, 197));
            while let Ok(false) = js.wait_timeout(third, moment) {}
            world.settle(first.try_wait())
        }
        _ => {
            world.settle(js.try_wait(third));
            world.settle(first.try_wait())
        }
    }
}

/// Waits for a moment, again and again.
fn poll(world: &World, mut job: Job<u64>, moment: Duration) -> u64 {
    loop {
        match world.settle(job.wait_timeout(moment)) {
            Ok(value) => return value,
            Err(back) => job = back,
        }
    }
}

pub(super) fn range(world: &Arc<World>, node: &Arc<Node>) -> u64 {
    let total = Arc::new(AtomicU64::new(0));
    let (theirs, theirs_too, program) = (Arc::clone(world), Arc::clone(&total), Arc::clone(node));
    let grain = Grain::Items(1 + node.choice(1, 3) as u32);
    let items = 0..node.children.len();
    let range = world
        .js
        .job("range")
        .schedule_for(items, grain, move |part, cx| {
            for at in part {
                let value = eval(&theirs, Some(cx), &program.children[at]);
                theirs_too.fetch_add(value, Ordering::Relaxed);
            }
        });
    let after = world.js.job("after range").after(range).schedule(|_| ());
    if node.choice(2, 2) == 0 {
        world.settle(world.js.try_wait(range));
    }
    world.settle(world.js.try_wait(after));
    total.load(Ordering::Relaxed)
}

pub(super) fn future(world: &Arc<World>, node: &Node) -> u64 {
    let job = world.js.job("awaited").run(body(world, &node.children[0]));
    block_on(&world.js, job)
}

pub(super) fn background(world: &Arc<World>, node: &Node) -> u64 {
    let job = world.js.job("background").background();
    let job = job.run(body(world, &node.children[0]));
    if node.choice(1, 2) == 0 {
        world.js.flush();
    }
    world.settle(job.try_wait())
}

/// Waits for other threads' jobs, which are over or will be.
pub(super) fn known(world: &Arc<World>, cx: Given<'_, '_>, node: &Node) -> u64 {
    let mine = world.js.schedule(|_| ());
    let id = world.exchange(mine, node.choice(1, 1 << 20) as usize);
    match node.choice(2, 2) {
        0 => world.settle(world.js.try_wait(id)),
        _ => _ = world.settle(world.js.wait_timeout(id, Duration::from_micros(5))),
    }
    _ = world.js.is_done(id);
    eval(world, cx, &node.children[0])
}

pub(super) fn frame(world: &Arc<World>, node: &Node) -> u64 {
    match node.choice(1, 3) {
        0 => _ = world.js.poll(),
        1 => _ = world.js.pump(Duration::from_micros(20)),
        _ => world.js.flush(),
    }
    let frame = world.js.frame("frame", Duration::from_millis(1));
    let job = frame.job("in frame").run(body(world, &node.children[0]));
    world.settle(job.try_wait())
}

/// The handle goes before its job is over, or to another thread.
pub(super) fn handle(world: &Arc<World>, node: &Node) -> u64 {
    let child = &node.children[0];
    let job = world.js.job("detached").run(body(world, child));
    if node.choice(1, 2) == 0 {
        let id = job.id();
        drop(job);
        world.settle(world.js.try_wait(id));
        return child.serial().unwrap_or_else(|_| fail());
    }
    let waited = thread::scope(|threads| threads.spawn(|| job.try_wait()).join());
    match waited {
        Ok(given) => world.settle(given),
        Err(_) => {
            world.wrong("a wait panicked in another thread");
            fail()
        }
    }
}

/// An event is dropped: the job after it is cancelled, says so, and never runs.
pub(super) fn abandon(world: &Arc<World>, node: &Node) -> u64 {
    let js = &world.js;
    let event = js.event("abandoned");
    let first = js.job("after it").after(event.id());
    let first = first.run(body(world, &node.children[0]));
    let theirs = Arc::clone(world);
    let second = js.job("after that").after(first.id());
    let second = second.schedule(move |_| theirs.wrong("a cancelled job was run"));
    if node.choice(1, 3) == 0 {
        thread::scope(|threads| _ = threads.spawn(move || drop(event)));
    } else {
        drop(event);
    }
    check_cancelled(world, js.try_wait(second));
    check_cancelled(world, first.try_wait());
    node.caught()
}

/// The wait must have said that the job was cancelled.
pub(super) fn check_cancelled<T>(world: &World, given: Result<T, WaitError>) {
    match given {
        Err(WaitError::Cancelled { .. }) => {}
        Err(error) => world.wrong(format!("a wait for a cancelled job said: {error}")),
        Ok(_) => world.wrong("a wait for a cancelled job succeeded"),
    }
}

/// Pumps while it waits: the number of workers may be zero at any time.
fn block_on<T>(js: &JobSystem, future: impl Future<Output = T>) -> T {
    testkit::block_on(future, || {
        if !js.poll() {
            thread::park_timeout(MOMENT);
        }
    })
}
