//! Goal: a quiet job wakes no thread when it is scheduled, and is not forgotten: a flush, another job of the
//! same thread, or the end of the thread announces it.
//!
//! Method: on simulated threads under random orders of steps, where a job that is forgotten is a deadlock: a
//! thread outside of the job system waits for what the job does, and calls nothing.

use std::sync::Arc;

use event::Nanos;
use paceline::Builder;
use platform::{Parker, Platform, Thread, ThreadSpec};
use sim::{Sim, SimConfig};

use crate::support::each_seed;

/// What the thread does after the quiet job.
#[derive(Clone, Copy, Debug)]
enum Then {
    Flushes,
    SchedulesAnother,
    Waits,
    Ends,
}

#[test]
fn a_quiet_job_is_not_forgotten() {
    each_seed("quiet::a_quiet_job_is_not_forgotten", 400, |seed| {
        let ways = [
            Then::Flushes,
            Then::SchedulesAnother,
            Then::Waits,
            Then::Ends,
        ];
        let then = ways[seed as usize % ways.len()];
        let report = Sim::run(SimConfig::new(seed), move |sim| {
            let workers = 1 + seed as usize / 4 % 2;
            let builder = Builder::with_platform(sim.clone()).workers(workers);
            let js = Arc::new(builder.build().unwrap());
            let bell = Arc::new(sim.parker());
            let (theirs, rope) = (js.clone(), bell.clone());
            let body = Box::new(move || {
                let job = theirs.job("quiet").quiet();
                let job = job.schedule(move |_| _ = rope.unpark());
                match then {
                    Then::Flushes => theirs.flush(),
                    Then::SchedulesAnother => _ = theirs.schedule(|_| ()),
                    Then::Waits => theirs.wait(job),
                    Then::Ends => {}
                }
            });
            let thread = sim.spawn(ThreadSpec::default(), body);
            bell.park(Nanos::MAX);
            thread
                .expect("there is room")
                .join()
                .expect("it does not panic");
        });
        report.expect_finished();
    });
}
