//! Results of jobs that fail.
//!
//! A job's list of those to tell is closed a moment before the job is over; a handle may look from then on.
//! Once the mark of a failure was written after that: a handle that looked in between gave a result that was
//! never made. A campaign met it four times in 940 million jobs.

use super::*;

use event::Nanos;
use paceline::WaitError;
use sim::Sim;

use crate::support::{Random, delays, each_seed};

/// A job that fails on a worker, and main, which asks for its result as soon as it is said to be done.
fn failing_job_that_is_polled(js: &JobSystem<Sim>, random: &mut Random) {
    let job = js.job("fails").run(|_| -> u64 { fail("on purpose") });
    js.flush();
    let rest = Nanos(random.below(400) as u64);
    while !job.is_done() {
        js.enter(|cx| cx.work(rest));
    }
    let given = job.try_wait();
    let is_told = matches!(given, Err(WaitError::Panicked { .. }));
    assert!(is_told, "{given:?} of a job that failed");
}

/// The same with a wait.
fn failing_job_that_is_awaited(js: &JobSystem<Sim>, random: &mut Random) {
    let job = js.job("fails").run(|cx| -> u64 {
        cx.work(Nanos(100));
        fail("on purpose")
    });
    js.flush();
    js.enter(|cx| cx.work(Nanos(random.below(400) as u64)));
    let given = job.try_wait();
    let is_told = matches!(given, Err(WaitError::Panicked { .. }));
    assert!(is_told, "{given:?} of a job that failed");
}

/// A machine whose threads stand still now and then, also between two steps of the end of a job.
fn simulated(test: &str, program: fn(&JobSystem<Sim>, &mut Random)) {
    each_seed(test, 2_000, |seed| {
        let mut random = Random::new(seed ^ 0x7e5_017);
        let report = Sim::run(delays(seed), |sim| {
            let js = Builder::with_platform(sim).max_threads(8).workers(1);
            let js = js.build().expect("the settings are in range");
            program(&js, &mut random);
        });
        report.expect_finished();
    });
}

/// Goal: a job that failed gives no result, whenever its handle asks. Method:
/// [`failing_job_that_is_polled`], with many delays.
#[test]
fn a_failing_job_that_is_polled_gives_none() {
    let test = "defects::results::a_failing_job_that_is_polled_gives_none";
    simulated(test, failing_job_that_is_polled);
}

/// Goal: the same for a wait that begins when the job is just ending. Method:
/// [`failing_job_that_is_awaited`], with many delays.
#[test]
fn a_failing_job_that_is_awaited_gives_none() {
    let test = "defects::results::a_failing_job_that_is_awaited_gives_none";
    simulated(test, failing_job_that_is_awaited);
}
