//! Shared parts of the experiments: how much is to be done, running a scenario, reading what its threads did.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use event::{KernelEventKind, Nanos, Task};
use platform::{Machine as _, Os};
use sim::scenario::{Ran, Scenario, run_with};
use sim::{Machine, Outcome, Sim, SimConfig, SimReport};

use console::{Failure, Progress};

use super::chosen::ValueSet;

/// How much is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub(super) quick: bool,
    /// Whether simulated parts are run.
    pub(super) simulated: bool,
    /// Whether parts on this machine are run.
    pub(super) real: bool,
    pub(super) seed: u64,
    /// Something that was chosen has another value.
    pub(super) set: Option<ValueSet>,
    /// It is one of very many runs, of `--sensitivity`.
    pub(super) is_one_of_many: bool,
}

impl Effort {
    /// A quick run of the simulated parts, with this seed.
    #[cfg(test)]
    pub(super) fn quick(seed: u64) -> Effort {
        Effort {
            quick: true,
            simulated: true,
            real: false,
            seed,
            set: None,
            is_one_of_many: false,
        }
    }

    /// The first in a quick run, else the second.
    pub(super) fn of<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// `full` of something that is drawn; a third of it where very many runs are asked for.
    pub(super) fn some(&self, full: u64) -> u64 {
        if self.is_one_of_many {
            full.div_ceil(3)
        } else {
            full
        }
    }

    /// Seeds, all different: `quick` of them in a quick run, else `full`, at most a thousand. Those of
    /// another run's seed are all others.
    pub(super) fn seeds(&self, quick: u64, full: u64) -> impl Iterator<Item = u64> + use<> {
        let first = self
            .seed
            .wrapping_sub(1)
            .wrapping_mul(1_000)
            .wrapping_add(1);
        (0..self.of(quick, full)).map(move |number| first.wrapping_add(number))
    }
}

/// The scenario of the library.
pub(super) fn scenario(name: &str) -> Scenario {
    let scenario = Scenario::named(name).expect("it is in the library");
    scenario.expect("a test reads every file")
}

/// The machine of the library, or `ideal-N`.
pub(super) fn machine(name: &str) -> Arc<Machine> {
    let ideal = name
        .strip_prefix("ideal-")
        .and_then(|cpus| cpus.parse().ok());
    Arc::new(match ideal {
        Some(cpus) => Machine::ideal(cpus),
        None => Machine::named(name).expect("a test reads every file"),
    })
}

/// Runs a scenario that has no program.
pub(super) fn run(scenario: &Scenario, policy: &str, seed: u64) -> Result<Ran, Failure> {
    run_on(
        scenario,
        machine(&scenario.machine),
        policy,
        seed,
        true,
        |_| (),
    )
}

/// Runs a scenario on this machine, with `program` if it has one. `trace`: keep the kernel's events.
pub(super) fn run_on(
    scenario: &Scenario,
    machine: Arc<Machine>,
    policy: &str,
    seed: u64,
    trace: bool,
    program: impl FnOnce(&Sim),
) -> Result<Ran, Failure> {
    let config = SimConfig {
        until: scenario.until.unwrap_or(Nanos::MAX),
        plan: scenario.plan(),
        quota: scenario.cpu_quota(),
        trace,
        ..SimConfig::on(machine, policy, seed)
    };
    let ran = run_with(scenario, config, program);
    sound(&scenario.name, &ran.report)?;
    Ok(ran)
}

/// Whether a run ended as it should.
pub(super) fn sound(what: &str, report: &SimReport) -> Result<(), Failure> {
    match report.outcome {
        Outcome::Finished | Outcome::TimeUp => Ok(()),
        _ => Err(Failure::failed(format!("{what}: {report}"))),
    }
}

/// Which thread ran from when to when, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) task: u32,
    pub(super) cpu: u32,
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
}

impl Run {
    pub(super) fn length(&self) -> Nanos {
        self.end - self.begin
    }
}

/// All runs, in the order of their ends; the last ones end with the simulation.
pub(super) fn runs(report: &SimReport) -> Vec<Run> {
    let mut open: Vec<Option<(u32, Nanos)>> = vec![None; report.config.machine.cpus.len()];
    let mut runs = Vec::new();
    let mut close = |cpu: usize, open: &mut Option<(u32, Nanos)>, end: Nanos| {
        if let Some((task, begin)) = open.take() {
            let cpu = cpu as u32;
            runs.push(Run {
                task,
                cpu,
                begin,
                end,
            });
        }
    };
    for event in &report.trace {
        if let KernelEventKind::Switch { next, .. } = event.what {
            let cpu = event.cpu.0 as usize;
            close(cpu, &mut open[cpu], event.time);
            open[cpu] = next.map(|Task(task)| (task, event.time));
        }
    }
    for (cpu, open) in open.iter_mut().enumerate() {
        close(cpu, open, report.now);
    }
    runs
}

/// The length of each span with this name.
pub(super) fn spans<'a>(ran: &'a Ran, name: &'a str) -> impl Iterator<Item = Nanos> + 'a {
    let named = ran.measured.iter().filter(move |span| span.name == name);
    named.map(|span| span.end - span.begin)
}

/// Calls `run` for each of these, on as many threads as there are CPUs; results in their order. Shows how
/// far it has come if it takes long. What `run` calls this for in turn is done on its thread, one after the
/// other.
///
/// # Errors
/// The first one in their order.
pub(super) fn each<T: Sync, R: Send>(
    what: &'static str,
    items: &[T],
    run: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let results = Mutex::new(Vec::new());
    let run_one = |index: usize| {
        let result = run(&items[index]);
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        results.push((index, result));
    };
    for_each_index(what, items.len(), &run_one);
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

thread_local! {
    /// Whether this thread was started by `each`.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls `run` for each index below `count`, on as many threads as there are CPUs, and shows the progress. It
/// is compiled once, not for each kind of result.
fn for_each_index(what: &'static str, count: usize, run: &(dyn Fn(usize) + Sync)) {
    if IS_INSIDE.get() {
        for index in 0..count {
            run(index);
        }
        return;
    }
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let threads = Os.topology().effective_parallelism().clamp(1, count.max(1));
    std::thread::scope(|scope| {
        let work = || {
            IS_INSIDE.set(true);
            loop {
                // Relaxed: it does not matter which thread takes which.
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return;
                }
                run(index);
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut progress = Progress::new(what, count as u64);
        while !workers
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(Duration::from_millis(2));
            progress.reach(done.load(Ordering::Relaxed) as u64);
        }
    });
}

/// The mean of some numbers; not a number if there are none.
pub(super) fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Their standard deviation.
pub(super) fn deviation(numbers: &[f64]) -> f64 {
    let mean = mean(numbers);
    let squares = numbers.iter().map(|number| (number - mean).powi(2));
    (squares.sum::<f64>() / numbers.len() as f64).sqrt()
}

/// The standard error of their mean.
pub(super) fn standard_error(numbers: &[f64]) -> f64 {
    let count = numbers.len() as f64;
    deviation(numbers) / (count - 1.0).max(1.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: results are in the order of their inputs, and the first error wins. Method: more inputs than
    /// threads; two that fail.
    #[test]
    fn each_keeps_the_order() {
        let items: Vec<u32> = (0..50).collect();
        let doubled = each("numbers", &items, |&item| Ok(item * 2)).unwrap();
        assert_eq!(
            doubled,
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
        let failed = each("numbers", &items, |&item| match item {
            7 | 30 => Err(Failure::failed(item)),
            _ => Ok(()),
        });
        assert_eq!(failed.unwrap_err().text(), "7");
        assert!(
            each("nothing", &[] as &[u32], |_| Ok(()))
                .unwrap()
                .is_empty()
        );
    }

    /// Goal: runs of a trace cover what threads ran, exactly. Method: their sum for each thread of a scenario
    /// with preemptions, against the thread's account.
    #[test]
    fn runs_are_what_threads_ran() {
        let mut scenario = scenario("time-slices");
        scenario.until = Some(Nanos::from_millis(50));
        let ran = run(&scenario, "eevdf-6.18", 1).unwrap();
        for (task, thread) in ran.report.threads.iter().enumerate() {
            let of = runs(&ran.report)
                .into_iter()
                .filter(|run| run.task == task as u32);
            let sum: u64 = of.map(|run| run.length().0).sum();
            // Switches cost time that belongs to no thread's work.
            let spent = thread.spent.run.0;
            assert!(sum.abs_diff(spent) < 100_000, "{sum} and {spent}");
        }
    }
}
