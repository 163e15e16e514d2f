//! The parts of a background job are in the background, too.
//!
//! Goal: what a background job spawns into a scope, the halves of its joins and the pieces of its loops may
//! run on slow workers, as the job itself may, and no such part of a normal job does, nor of a background job
//! that a normal job waits for. (Once all of these were normal jobs.) Method: on a simulated phone with fast
//! workers and slow ones, jobs of each kind that divide their work in each of these ways. There are more of
//! them than little cores, so that fast workers run some. A part that runs on a little core although its job
//! runs on a fast one was taken by a slow worker; these are counted.

use super::*;

/// How a job divides its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Spawns,
    Joins,
    Loops,
}

fn is_on_little(cx: &Context<'_, Sim>) -> bool {
    LITTLE.contains(&cx.platform().current_cpu().expect("it can say"))
}

/// Does `parts` parts, and counts those that slow workers took from a fast one.
fn divide(cx: &Context<'_, Sim>, way: Way, parts: usize, taken: &AtomicU64) {
    let outer_is_little = is_on_little(cx);
    let part = |cx: &Context<'_, Sim>| {
        cx.work(Nanos::from_micros(200));
        let is_taken = !outer_is_little && is_on_little(cx);
        taken.fetch_add(u64::from(is_taken), Relaxed);
    };
    match way {
        Way::Spawns => cx.scope(|scope| {
            for _ in 0..parts {
                scope.spawn(|cx| part(cx));
            }
        }),
        Way::Joins => match parts {
            0 => {}
            1 => part(cx),
            _ => {
                let half = parts / 2;
                cx.join(
                    |cx| divide(cx, way, half, taken),
                    |cx| {
                        // The half as a whole, because its parts are divided anew.
                        let is_taken = !outer_is_little && is_on_little(cx);
                        taken.fetch_add(u64::from(is_taken), Relaxed);
                        divide(cx, way, parts - half, taken)
                    },
                );
            }
        },
        Way::Loops => cx.parallel_for(0..parts, Grain::Items(1), |range, cx| {
            range.for_each(|_| part(cx));
        }),
    }
}

/// A job that divides its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Divides {
    InBackground,
    /// A normal job.
    AtOnce,
    /// A background job that a normal job waits for.
    Awaited,
}

/// How many parts of jobs slow workers took from fast ones.
fn taken_by_slow_workers(way: Way, what: Divides) -> u64 {
    let taken = Arc::new(AtomicU64::new(0));
    let counted = taken.clone();
    let report = Sim::run(on(PHONE), |sim| {
        let js = Builder::with_platform(sim.clone()).build().unwrap();
        let _main = js.adopt(Role::Main);
        for number in 1..=4 {
            sim.sleep_until(Nanos(number * PERIOD.0));
            let jobs = [0; 8].map(|_| {
                let taken = counted.clone();
                let divide = move |cx: &Context<'_, Sim>| divide(cx, way, 64, &taken);
                match what {
                    Divides::InBackground => js.job("divides").background().schedule(divide),
                    Divides::AtOnce => js.job("divides").schedule(divide),
                    // A worker that waits for a job at once runs it itself.
                    Divides::Awaited => js.job("waits").schedule(move |cx| {
                        cx.job("divides").background().run(divide).wait();
                    }),
                }
            });
            js.flush();
            // This thread stays out of it meanwhile.
            while !jobs.iter().all(|&job| js.is_done(job)) {
                sim.sleep_until(sim.time() + Nanos::from_millis(1));
            }
        }
    });
    report.expect_finished();
    taken.load(Relaxed)
}

#[test]
fn parts_of_background_jobs_are_in_the_background() {
    for way in [Way::Spawns, Way::Joins, Way::Loops] {
        for what in [Divides::AtOnce, Divides::Awaited] {
            assert_eq!(taken_by_slow_workers(way, what), 0, "{way:?}, {what:?}");
        }
        assert!(
            taken_by_slow_workers(way, Divides::InBackground) > 0,
            "{way:?}"
        );
    }
}
