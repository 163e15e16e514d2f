//! The end of a job system beside a thread that is in a handle's wait.
//!
//! Such a thread runs jobs, and makes others ready when it has finished one. Once a job in between was
//! overlooked: its predecessor was over, but the thread had not told it yet. It was dropped unrun, as if
//! nothing would ever release it.

use super::*;

use event::Nanos;
use paceline::{Job, WaitError};
use platform::{Platform, Thread, ThreadSpec};
use sim::{Order, Sim, SimConfig};

use crate::support::{Random, delays, each_seed};

/// The work that goes on when the job system ends: a chain of jobs with branches, all of which can run.
struct Chain {
    last: Job<u64>,
    ran: Count,
    jobs: usize,
}

impl Chain {
    fn new<P: Platform>(js: &JobSystem<P>, random: &mut Random) -> Chain {
        let (ran, mut jobs) = (Count::default(), 0);
        let mut before = js.job("first").schedule(|_| ());
        for _ in 0..2 + random.below(4) {
            let mut link = Vec::new();
            for _ in 0..1 + random.below(3) {
                let (runs, work) = (ran.clone(), Nanos(random.below(300) as u64));
                let job = js.job("link").after(before);
                link.push(job.schedule(move |cx| {
                    cx.work(work);
                    runs.up();
                }));
                jobs += 1;
            }
            before = if random.chance(50) {
                js.combine(&link)
            } else {
                link[0]
            };
        }
        let last = js.job("last").after(before).run(|_| 7);
        Chain { last, ran, jobs }
    }
}

/// Another thread helps with a chain while main drops the job system.
fn a_chain_beside_the_end(sim: &Sim, js: JobSystem<Sim>, random: &mut Random) {
    let Chain { last, ran, jobs } = Chain::new(&js, random);
    let never = js.event("never");
    let held = js.job("held").after(never.id()).run(|_| ());
    let helps = sim.spawn(
        ThreadSpec::default(),
        Box::new(move || assert_eq!(last.wait(), 7)),
    );
    js.enter(|cx| cx.work(Nanos(random.below(2_000) as u64)));
    drop(js);
    let verdict = held.try_wait();
    let ended = helps.expect("a thread").join();
    ended.unwrap_or_else(|payload| resume_unwind(payload));
    assert_eq!(ran.get(), jobs, "jobs that ran");
    assert!(matches!(verdict, Err(WaitError::ShutDown)), "{verdict:?}");
    drop(never);
}

/// Goal: all that can run has run when the job system is gone, whatever another thread is in the middle of.
/// Method: [`a_chain_beside_the_end`], in many orders, with and without a worker.
#[test]
fn what_a_handles_wait_is_in_the_middle_of() {
    let test = "defects::ends::what_a_handles_wait_is_in_the_middle_of";
    each_seed(test, 3_000, |seed| {
        let mut random = Random::new(seed ^ 0xe4d5);
        let config = if random.chance(50) {
            delays(seed)
        } else {
            SimConfig::new(seed).with_order(Order::Random)
        };
        let report = Sim::run(config, |sim| {
            let builder = Builder::with_platform(sim.clone()).max_threads(8);
            let js = builder.workers(random.below(2)).queue_capacity(16);
            let js = js.build().expect("the settings are in range");
            a_chain_beside_the_end(&sim, js, &mut random);
        });
        report.expect_finished();
    });
}
