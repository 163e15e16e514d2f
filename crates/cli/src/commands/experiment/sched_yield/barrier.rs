//! Threads with unequal work that meet at a barrier: the article's real question.

use console::Failure;
use event::{Nanos, Random};
use paceline::Builder;
use platform::{CpuSet, Polling};
use sim::{Sim, SimConfig};
use workload::busy::Busy;
use workload::naive::{BarrierLoop, NaiveWait};

use super::is_run;
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Line, Plot, PlotShape};

const MACHINE: &str = "vm-2";
const CPUS: usize = 2;
const POLICIES: [&str; 3] = ["cfs-4.12", "eevdf-6.6", "eevdf-6.18"];
/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] = &[&LENGTH, &ROUNDS];
const LENGTH: ChosenValue = ChosenValue {
    name: "barrier-work",
    about: "each thread's work in a round",
    unit: ValueUnit::Of("% of 50 to 150 µs"),
    chosen: 100.0,
    others: &[20.0, 500.0, 2_000.0],
    why: "the article gives none; some slices are shorter and some longer",
};
const ROUNDS: ChosenValue = ChosenValue {
    name: "rounds",
    about: "how often the threads meet",
    unit: ValueUnit::Of("rounds"),
    chosen: 300.0,
    others: &[30.0, 1_000.0],
    why: "enough for a mean",
};

/// Threads for each CPU.
const CROWDS: [usize; 3] = [1, 2, 4];

/// How the threads wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BarrierWait {
    Naive(NaiveWait),
    /// No threads of our own: a job for each piece of work, and the job system's waits.
    Paceline,
}

impl BarrierWait {
    pub(super) fn all() -> impl Iterator<Item = BarrierWait> {
        let naive = NaiveWait::ALL.into_iter().map(BarrierWait::Naive);
        naive.chain([BarrierWait::Paceline])
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            BarrierWait::Naive(wait) => wait.name(),
            BarrierWait::Paceline => "paceline",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct BarrierTrial {
    policy: &'static str,
    crowd: usize,
    pinned: bool,
    wait: BarrierWait,
}

impl BarrierTrial {
    /// Whether a claim needs it. Runs with other values are for the claims alone, and no table shows their
    /// tables; threads that pause take as long as all of the others.
    fn is_claimed(&self) -> bool {
        let is_pinned_pair = self.crowd == 1 && self.pinned;
        match self.wait {
            BarrierWait::Paceline => true,
            BarrierWait::Naive(NaiveWait::Spin) => self.crowd == 4 || is_pinned_pair,
            BarrierWait::Naive(NaiveWait::Yield) => self.crowd == 4,
            BarrierWait::Naive(NaiveWait::Park) => {
                self.crowd == 4 && !self.pinned || is_pinned_pair
            }
            BarrierWait::Naive(wait) => {
                wait == NaiveWait::BLOCKTIME && self.crowd == 4 && !self.pinned
            }
        }
    }
}

/// Each thread's work in a round: 50 to 150 us, drawn. The lengths are ours.
pub(super) fn work(threads: usize, seed: u64) -> Vec<Nanos> {
    let mut random = Random::new(seed);
    (0..threads)
        .map(|_| Nanos(random.within(50_000, 150_000)))
        .collect()
}

/// A round of this work on `cpus` CPUs, if nothing else took time.
pub(super) fn ideal(work: &[Nanos], cpus: usize) -> Nanos {
    let sum: u64 = work.iter().map(|work| work.0).sum();
    let longest = work.iter().copied().max().unwrap_or_default();
    Nanos(sum / cpus.max(1) as u64).max(longest)
}

/// How often threads meet.
#[derive(Clone, Copy)]
pub(super) struct Rounds {
    /// Before those that count, for every wait: the job system finds out in them how the kernel places its
    /// workers.
    warm_up: u32,
    pub(super) counted: u32,
}

impl Rounds {
    pub(super) fn new(effort: &Effort, counted: u32) -> Rounds {
        Rounds {
            warm_up: effort.of(10, 100),
            counted,
        }
    }
}

/// The mean round.
pub(super) fn round<P: Polling>(
    platform: &P,
    cpus: &[CpuSet],
    wait: BarrierWait,
    work: &[Nanos],
    rounds: Rounds,
    busy: Busy,
) -> Result<Nanos, Failure> {
    let elapsed = match wait {
        BarrierWait::Naive(wait) => {
            let what = BarrierLoop {
                wait,
                work: work.to_vec(),
                warm_up: rounds.warm_up,
                rounds: rounds.counted,
                masks: cpus.to_vec(),
            };
            let report = what.run(platform, busy).map_err(Failure::failed)?;
            if report.early > 0 {
                return Err(Failure::failed("a thread passed the barrier early"));
            }
            report.elapsed
        }
        BarrierWait::Paceline => {
            let js = Builder::with_platform(platform.clone()).build();
            let js = js.map_err(|error| Failure::failed(error.to_string()))?;
            let mut begin = platform.now();
            for round in 0..rounds.warm_up + rounds.counted {
                if round == rounds.warm_up {
                    begin = platform.now();
                }
                let jobs = work.iter().map(|&work| {
                    js.job("work").schedule(move |cx| {
                        cx.work(work);
                        busy.spin_for(work, u64::from(round));
                    })
                });
                let jobs: Vec<_> = jobs.collect();
                // One wait for all of them: a thread that waits runs what it waits for.
                js.wait(js.job("round").after_all(&jobs).schedule(|_| ()));
            }
            platform.now() - begin
        }
    };
    Ok(Nanos(elapsed.0 / u64::from(rounds.counted.max(1))))
}

struct BarrierTrials(Vec<(BarrierTrial, f64)>);

impl BarrierTrials {
    /// How many times the ideal a round took.
    fn of(&self, policy: &str, crowd: usize, pinned: bool, wait: BarrierWait) -> f64 {
        let found = self.0.iter().find(|(trial, _)| {
            (trial.policy, trial.crowd, trial.pinned, trial.wait) == (policy, crowd, pinned, wait)
        });
        found.map_or(f64::NAN, |(_, times)| *times)
    }
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let counted = effort.of(10, effort.some(effort.value(&ROUNDS) as u64) as u32);
    let rounds = Rounds::new(effort, counted);
    let mut all = Vec::new();
    for policy in POLICIES {
        for crowd in CROWDS {
            for pinned in [false, true] {
                // Jobs have no CPU of their own: they run free.
                let waits = BarrierWait::all().filter(|&wait| match wait {
                    BarrierWait::Naive(wait) => is_run(wait, effort),
                    BarrierWait::Paceline => !pinned,
                });
                all.extend(waits.map(|wait| BarrierTrial {
                    policy,
                    crowd,
                    pinned,
                    wait,
                }));
            }
        }
    }
    if effort.is_one_of_many {
        all.retain(BarrierTrial::is_claimed);
    }
    let machine = lab::machine(MACHINE);
    let times = lab::each("barriers", &all, |trial| {
        let work: Vec<Nanos> = work(trial.crowd * CPUS, effort.seed)
            .iter()
            .map(|work| Nanos((work.0 as f64 * effort.value(&LENGTH) / 100.0) as u64))
            .collect();
        let masks: Vec<CpuSet> = if trial.pinned {
            (0..CPUS as u32)
                .map(|cpu| CpuSet::from_iter([cpu]))
                .collect()
        } else {
            Vec::new()
        };
        let mut took = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig::on(machine.clone(), trial.policy, effort.seed);
        let report = Sim::run(config, |sim| {
            took = round(&sim, &masks, trial.wait, &work, rounds, Busy::NONE);
        });
        lab::sound("barrier", &report)?;
        Ok(took?.0 as f64 / ideal(&work, CPUS).0 as f64)
    })?;
    let trials = BarrierTrials(all.into_iter().zip(times).collect());
    findings.tables.push(table(&trials, rounds));
    for (file, policy) in [("barrier-then", "cfs-4.12"), ("barrier-now", "eevdf-6.18")] {
        findings.plots.push(plot(&trials, file, policy));
    }
    findings.claims.extend(claims(&trials));
    Ok(())
}

fn table(trials: &BarrierTrials, Rounds { warm_up, counted }: Rounds) -> Table {
    let mut columns: Vec<String> = ["policy", "threads a CPU", "threads are"]
        .map(str::to_owned)
        .to_vec();
    columns.extend(BarrierWait::all().map(|wait| wait.name().to_owned()));
    let title = format!(
        "{counted} rounds of 50 to 150 µs for each thread on {MACHINE}, after {warm_up} that do not count: a \
         round, in times of its work spread evenly"
    );
    let mut table = Table::with_columns(title, columns);
    for policy in POLICIES {
        for crowd in CROWDS {
            for pinned in [false, true] {
                let place = if pinned { "pinned" } else { "free" };
                let cells =
                    BarrierWait::all().map(|wait| match trials.of(policy, crowd, pinned, wait) {
                        times if times.is_nan() => Cell::None,
                        times => times.into(),
                    });
                let first = [policy.into(), (crowd as u64).into(), place.into()];
                table.row(first.into_iter().chain(cells));
            }
        }
    }
    table
}

fn plot(trials: &BarrierTrials, file: &'static str, policy: &str) -> Plot {
    let lines = BarrierWait::all().map(|wait| Line {
        name: wait.name().to_owned(),
        points: CROWDS
            .iter()
            .map(|&crowd| (crowd as f64, trials.of(policy, crowd, false, wait)))
            .collect(),
    });
    Plot {
        file,
        title: format!(
            "A barrier under {policy}, threads free: a round, in times of its work spread evenly"
        ),
        picture: PlotShape::Lines {
            x: "threads for each CPU",
            y: "times the ideal",
            lines: Line::joined(lines),
            level: Some((1.0, "ideal")),
        },
    }
}

fn claims(trials: &BarrierTrials) -> Vec<Claim> {
    let naive =
        |policy, crowd, pinned, wait| trials.of(policy, crowd, pinned, BarrierWait::Naive(wait));
    let (spin, yields, park) = (NaiveWait::Spin, NaiveWait::Yield, NaiveWait::Park);
    let gain = |policy, pinned| {
        let of = |wait| naive(policy, 4, pinned, wait);
        of(spin) / of(yields)
    };
    let ratio = "times as fast as spinning";
    let blocktime =
        |policy| naive(policy, 4, false, NaiveWait::BLOCKTIME) / naive(policy, 4, false, park);
    let worst_paceline = POLICIES
        .iter()
        .flat_map(|policy| {
            CROWDS.map(|crowd| trials.of(policy, crowd, false, BarrierWait::Paceline))
        })
        .fold(0.0, f64::max);
    vec![
        Claim::source(
            "002-v",
            "Yielding helps threads that wait at a barrier where there are more of them than CPUs",
            "Introduction: a tweet that the article doubts",
        )
        .is(Expect::MoreThan(1.1), gain("cfs-4.12", true), ratio)
        .or_else("CFS goes on with the thread that yields, so it spins")
        .note("four threads for each CPU, pinned, CFS of Linux 4.12"),
        Claim::source(
            "002-w",
            "Yielding may help where threads are not tied to CPUs",
            "What Does This Show?, first paragraph",
        )
        .is(Expect::MoreThan(1.1), gain("cfs-4.12", false), ratio)
        .or_else("CFS goes on with the thread that yields, so it spins")
        .note("four threads for each CPU, free, CFS of Linux 4.12"),
        Claim::ours("002-x", "Today it does help").is(
            Expect::MoreThan(1.1),
            gain("eevdf-6.18", true).min(gain("eevdf-6.18", false)),
            ratio,
        )
        .note("four threads for each CPU, pinned and free, EEVDF of Linux 6.18: the smaller gain"),
        Claim::source(
            "002-y",
            "Polling is faster than waking by a futex where every thread has a CPU",
            "So, why not sleep in the kernel",
        )
        .is(
            Expect::LessThan(naive("cfs-4.12", 1, true, park)),
            naive("cfs-4.12", 1, true, spin),
            "times the ideal, a round",
        )
        .note("one thread for each CPU, pinned"),
        Claim::source(
            "002-ua",
            "With more threads than CPUs KMP_BLOCKTIME=0 is worth an experiment, and OMP_WAIT_POLICY=passive",
            "A Hint for OpenMP Users",
        )
        .is(
            Expect::MoreThan(1.1),
            POLICIES.map(blocktime).into_iter().fold(f64::INFINITY, f64::min),
            "times as fast as polling for 200 ms first",
        )
        .note("four threads for each CPU, free, that park at once; the smallest gain of all three kernels"),
        Claim::ours(
            "002-z",
            "As jobs the same work takes at most 1.5 times the ideal, however many threads there would be",
        )
        .is(Expect::AtMost(1.5), worst_paceline, "times the ideal, the worst of all")
        .note("all three kernels; a waiting thread runs what it waits for"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: one of many runs leaves nothing out that a claim needs. Method: the claims of a quick run, and
    /// of the same as one of many.
    #[test]
    fn one_of_many_runs_has_the_same_claims() {
        let claims = |is_one_of_many| {
            let effort = Effort {
                is_one_of_many,
                ..Effort::quick(1)
            };
            let mut findings = Findings::default();
            simulated(&effort, &mut findings).expect("it never fails");
            findings.claims
        };
        assert_eq!(claims(true), claims(false));
    }
}
