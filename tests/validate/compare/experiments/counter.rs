//! V11: the mechanism behind source 001's slow-down, with two threads: jobs that are taken from one shared
//! place, here one after the other by a counter.

use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Memory, Ordering};
use policy::Attr;

use super::Lab;
use crate::compare::judge::Row;
use crate::compare::world::{Course, Note, Program, Thread, World};

/// Two threads that take jobs until there are none left.
pub(crate) struct SharedCounter {
    pub(crate) jobs: u64,
    pub(crate) job: Nanos,
}

impl Program for SharedCounter {
    fn threads<W: World>(&self, _: &W) -> Vec<Thread<W>> {
        type Word<W> = <<W as World>::Platform as Memory>::AtomicU64;
        let new = || Arc::new(Word::<W>::new(0));
        let (next, ready) = (new(), new());
        let (jobs, job) = (self.jobs, self.job);
        let thread = |number: usize| {
            let (next, ready) = (next.clone(), ready.clone());
            let body = move |world: &W| {
                ready.fetch_add(1, Ordering::AcqRel);
                W::Platform::spin_until(&ready, |ready| ready >= 2, Nanos::MAX);
                let begin = world.now();
                while next.fetch_add(1, Ordering::AcqRel) < jobs {
                    world.work(job);
                }
                vec![Note::time("taking", world.now() - begin)]
            };
            Thread::new(Attr::default(), body).on(Some(number))
        };
        (0..2).map(thread).collect()
    }
}

/// How long it took until both were done, in milliseconds.
fn makespan(courses: &[Course]) -> Vec<f64> {
    let of = |course: &Course| course.noted("taking").into_iter().max().unwrap_or(0);
    courses
        .iter()
        .map(|course| of(course) as f64 / 1e6)
        .collect()
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (job, jobs) in [(250, 40_000), (1_000, 20_000), (8_000, 5_000)] {
        let program = SharedCounter {
            jobs,
            job: Nanos(job),
        };
        let simulated = makespan(&[lab.simulator.run("eevdf-6.18", &program)]);
        let real = makespan(&lab.measure(&program, 10)?);
        let what = format!("{jobs} jobs of {}, two threads, ms", Nanos(job));
        rows.push(Row::medians(what, real, &simulated));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::simulated::Simulator;

    /// Goal: two threads halve the time of long jobs, and the counter's line costs the short ones more.
    /// Method: both on `vm-2`, as shares of half of the work.
    #[test]
    fn a_simulated_counter_costs_short_jobs_more() {
        let overhead = |job: u64, jobs: u64| {
            let program = SharedCounter {
                jobs,
                job: Nanos(job),
            };
            let took = makespan(&[Simulator::vm_2().run("eevdf-6.18", &program)])[0];
            took / (job * jobs) as f64 * 2e6
        };
        let (long, short) = (overhead(8_000, 1_000), overhead(250, 1_000));
        assert!((1.0..1.03).contains(&long), "{long}");
        assert!((1.1..2.0).contains(&short), "{short}");
    }
}
