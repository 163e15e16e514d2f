//! Nodes whose values go from job to job: events with values, inputs, latches, futures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline::{Job, WaitError};

use super::eval::body;
use super::node::Node;
use super::world::{World, fail};

/// A job evaluates the child and completes an event with its value, which a successor passes on.
pub(super) fn given(world: &Arc<World>, node: &Node) -> u64 {
    let js = &world.js;
    let (event, value) = js.event_with::<u64>("given");
    let child = body(world, &node.children[0]);
    let gives = js
        .job("gives")
        .run(move |cx| event.complete_with(child(cx)));
    let next = match node.choice(1, 3) {
        0 => value.then(|value| value),
        1 => js.job("takes").with(value).run(|_, value| value),
        _ => {
            let theirs = Arc::clone(world);
            js.spawn_future("awaits", async move {
                match value.outcome().await {
                    Ok(value) => value,
                    Err(WaitError::Abandoned { .. }) => fail(),
                    Err(error) => {
                        theirs.wrong(format!("an event with a value said: {error}"));
                        fail()
                    }
                }
            })
        }
    };
    // No wait can know that this job is the one that completes the event, so it is waited for by itself:
    // there may be no worker to run it. That it has failed is known by the successor, too.
    _ = gives.try_wait();
    world.settle(next.try_wait())
}

/// Jobs that are the inputs of a successor, by twos and as a list.
pub(super) fn inputs(world: &Arc<World>, node: &Node) -> u64 {
    let job = |child| world.js.job("input").run(body(world, child));
    let mut jobs: Vec<Job<u64>> = node.children.iter().map(job).collect();
    while node.choice(1, 2) == 0 && jobs.len() > 1 {
        let pair = jobs.pop().zip(jobs.pop()).expect("there are two");
        let both = world.js.job("both").with(pair);
        jobs.insert(0, both.run(|_, (a, b)| a.wrapping_add(b)));
    }
    let all = world.js.job("all").with(jobs);
    let sum = all.run(|_, values| values.into_iter().fold(0, u64::wrapping_add));
    world.settle(sum.try_wait())
}

/// Jobs that complete a latch. One that fails does not, and then the latch is abandoned.
pub(super) fn latched(world: &Arc<World>, node: &Node) -> u64 {
    let js = &world.js;
    let total = Arc::new(AtomicU64::new(0));
    let latch = js.latch("latch", 1);
    let sum = Arc::clone(&total);
    let after = js.job("after the latch").after(&latch);
    let after = after.run(move |_| sum.load(Ordering::Relaxed));
    let part = |child| {
        latch.add(1);
        let (latch, total, child) = (latch.clone(), Arc::clone(&total), body(world, child));
        js.job("part").schedule(move |cx| {
            total.fetch_add(child(cx), Ordering::Relaxed);
            latch.complete_one();
        })
    };
    let parts: Vec<_> = node.children.iter().map(part).collect();
    latch.complete_one();
    drop(latch);
    // As for an event: a wait for the latch does not know these.
    _ = js.try_wait(js.combine(parts));
    world.settle(after.try_wait())
}

/// A future that awaits the children one after the other.
pub(super) fn spawned(world: &Arc<World>, node: &Node) -> u64 {
    let job = |child| world.js.job("awaited").run(body(world, child));
    let jobs: Vec<Job<u64>> = node.children.iter().map(job).collect();
    let ends: Vec<_> = jobs.iter().map(|job| world.js.when_done(job)).collect();
    let by_ends = node.choice(1, 2) == 0;
    let theirs = Arc::clone(world);
    let sum = world.js.spawn_future("spawned", async move {
        let mut sum = Some(0_u64);
        for (job, end) in jobs.into_iter().zip(ends) {
            if by_ends {
                // The failure is told once by its payload, and again by its text.
                _ = end.await;
            }
            sum = match job.outcome().await {
                Ok(value) => sum.map(|sum| sum.wrapping_add(value)),
                Err(WaitError::Panicked { .. }) => None,
                Err(error) => {
                    theirs.wrong(format!("an awaited job said: {error}"));
                    None
                }
            };
        }
        sum.unwrap_or_else(|| fail())
    });
    world.settle(sum.try_wait())
}
