//! One thread computes and the other one waits for it: the article's benchmark.

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use platform::CpuSet;
use sim::{Sim, SimConfig};
use workload::busy::Busy;
use workload::naive::{BesideReport, NaiveWait, PollBeside, Statistic};

use super::trial::{BesideTrial, MACHINE, SAME};
use super::{is_run, pictures};
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// The time of the article's computation alone: half of the 4.77 s of its statistics.
const WORK: Nanos = Nanos::from_millis(2_385);

/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] = &[&TICK];
const TICK: ChosenValue = ChosenValue {
    name: "tick",
    about: "the time between two ticks",
    unit: ValueUnit::Millis,
    chosen: 4.0,
    others: &[10.0, 10.0 / 3.0, 1.0],
    why: "HZ=250 fits the longest turn best; 100, 300 and 1000 are Linux's others",
};
/// Two cores.
const CORES: &[u32] = &[0, 1];

/// The time alone, twice, as far as a switch leaves it so.
const DOUBLED: Expect = Expect::Between(1.96, 2.04);
const TIMES: &str = "times as long as alone";

/// The waiting thread's share of the CPU, in percent.
fn share_of(report: &BesideReport) -> f64 {
    let used = report.waiter.cpu.unwrap_or_default().0 as f64;
    used * 100.0 / report.elapsed.0 as f64
}

/// What was put in for a claim about sums, of which this run's computation needs such a part.
fn put_in(how: &str, part: f64) -> String {
    if part < 1.0 {
        format!("{how}; in proportion to the length of this quick run's computation")
    } else {
        how.to_owned()
    }
}

struct BesideTrials {
    work: Nanos,
    done: Vec<(BesideTrial, BesideReport)>,
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let work = effort.of(Nanos::from_millis(200), WORK);
    let trials = all(effort, work)?;
    for (cpus, place) in [(SAME, "on the same CPU"), (CORES, "with two CPUs")] {
        let title =
            format!("{work} of computation beside a thread that waits, {place} of {MACHINE}");
        findings.tables.push(trials.table(title, cpus));
    }
    findings.plots.extend(pictures::of(&trials.done, work)?);
    findings.claims.extend(trials.claims()?);
    Ok(())
}

fn all(effort: &Effort, work: Nanos) -> Result<BesideTrials, Failure> {
    let mut trials = Vec::new();
    for policy in ["cfs-4.12", "eevdf-6.6", "eevdf-6.18"] {
        for wait in NaiveWait::ALL
            .into_iter()
            .filter(|&wait| is_run(wait, effort))
        {
            trials.push(BesideTrial {
                policy,
                wait,
                cpus: SAME,
            });
        }
    }
    for wait in NaiveWait::ALL
        .into_iter()
        .filter(|&wait| is_run(wait, effort))
    {
        trials.push(BesideTrial {
            policy: "cfs-4.12",
            wait,
            cpus: CORES,
        });
    }
    trials.push(BesideTrial {
        policy: "fifo",
        wait: NaiveWait::Yield,
        cpus: SAME,
    });
    let mut machine = lab::machine(MACHINE);
    Arc::make_mut(&mut machine).kernel.tick = effort.time(&TICK);
    let reports = lab::each("polls", &trials, |trial| {
        let what = PollBeside {
            wait: trial.wait,
            work,
            pieces: 100,
            mask: Some(trial.cpus.iter().copied().collect::<CpuSet>()),
        };
        let mut told = None;
        let config = SimConfig::on(machine.clone(), trial.policy, effort.seed);
        let report = Sim::run(config, |sim| told = Some(what.run(&sim, Busy::NONE)));
        lab::sound("polls", &report)?;
        match told {
            Some(Ok(report)) => Ok(report),
            Some(Err(error)) => Err(Failure::failed(error)),
            None => Err(Failure::failed("the simulated program did not run")),
        }
    })?;
    Ok(BesideTrials {
        work,
        done: trials.into_iter().zip(reports).collect(),
    })
}

/// A row about a wait: what both threads used, and the line of statistics.
pub(super) fn row(policy: Cell, wait: NaiveWait, work: Nanos, report: &BesideReport) -> [Cell; 7] {
    [
        policy,
        wait.to_string().into(),
        report.elapsed.into(),
        (report.elapsed.0 as f64 / work.0 as f64).into(),
        report.compute.cpu.into(),
        report.waiter.cpu.into(),
        report.turns.to_string().into(),
    ]
}

/// The columns of such rows; the last one is the article's.
pub(super) const COLUMNS: [&str; 7] = [
    "policy",
    "the other thread",
    "elapsed",
    "times alone",
    "CPU, computing",
    "CPU, waiting",
    Statistic::TITLE,
];

impl BesideTrials {
    fn table(&self, title: String, cpus: &[u32]) -> Table {
        let mut table = Table::new(title, COLUMNS);
        let here = self.done.iter().filter(|(trial, _)| trial.cpus == cpus);
        for (trial, report) in here {
            table.row(row(trial.policy.into(), trial.wait, self.work, report));
        }
        table
    }

    fn of(&self, policy: &str, wait: NaiveWait, cpus: &[u32]) -> Result<&BesideReport, Failure> {
        let is_it = |trial: &BesideTrial| {
            trial.policy == policy && trial.wait == wait && trial.cpus == cpus
        };
        let found = self.done.iter().find(|(trial, _)| is_it(trial));
        found
            .map(|(_, report)| report)
            .ok_or_else(|| Failure::failed("every wait was run"))
    }

    fn claims(&self) -> Result<Vec<Claim>, Failure> {
        let mut claims = self.claims_of_the_kernel_then()?;
        claims.extend(self.claims_of_newer_kernels()?);
        claims.extend(self.statistics()?);
        claims.extend(self.claims_of_others()?);
        Ok(claims)
    }

    fn times(&self, report: &BesideReport) -> f64 {
        report.elapsed.0 as f64 / self.work.0 as f64
    }

    fn claims_of_the_kernel_then(&self) -> Result<Vec<Claim>, Failure> {
        let spin = self.of("cfs-4.12", NaiveWait::Spin, SAME)?;
        let yields = self.of("cfs-4.12", NaiveWait::Yield, SAME)?;
        Ok(vec![
            Claim::source(
                "002-a",
                "A thread that polls on the same CPU doubles the time",
                "Results",
            )
            .is(DOUBLED, self.times(spin), TIMES),
            Claim::source(
                "002-b",
                "… and so does one that yields between two looks",
                "Results",
            )
            .is(DOUBLED, self.times(yields), TIMES)
            .note("CFS of Linux 4.12, the article's kernel"),
            Claim::source(
                "002-d",
                "The thread that yields gets half of the CPU",
                "Results",
            )
            .is(
                Expect::Between(49.0, 51.0),
                share_of(yields),
                "% of the CPU",
            ),
        ])
    }

    fn claims_of_newer_kernels(&self) -> Result<Vec<Claim>, Failure> {
        let spin = self.of("cfs-4.12", NaiveWait::Spin, SAME)?;
        let yields = self.of("cfs-4.12", NaiveWait::Yield, SAME)?;
        let newer = self.of("eevdf-6.18", NaiveWait::Yield, SAME)?;
        let older = self.of("eevdf-6.6", NaiveWait::Yield, SAME)?;
        let reason = "since then a yield forfeits the rest of the slice, as long as the thread is not \
                      owed CPU time";
        Ok(vec![
            Claim::source(
                "002-e",
                "Yielding achieves absolutely nothing: under EEVDF of Linux 6.6",
                "Results",
            )
            .is(DOUBLED, self.times(older), TIMES)
            .note("a yield postpones the deadline there, and nothing else"),
            Claim::source(
                "002-f",
                "Yielding achieves absolutely nothing: today",
                "Results",
            )
            .is(DOUBLED, self.times(newer), TIMES)
            .or_else(reason)
            .note(format!(
                "EEVDF of Linux 6.18; the thread that yields used {:.2} % of the CPU",
                share_of(newer)
            )),
            Claim::source(
                "002-g",
                "Yielding is only marginally worse than doing nothing",
                "Conclusions, 3",
            )
            .is(
                Expect::Between(0.95, 1.05),
                self.times(yields) / self.times(spin),
                "times the time of spinning",
            )
            .note("CFS of Linux 4.12"),
            Claim::ours(
                "002-h",
                "Today a thread that yields costs the other one less than 1 %",
            )
            .is(Expect::AtMost(1.01), self.times(newer), TIMES),
        ])
    }

    /// The article's line: "5.56 M, 400.00 ns, 857.71 ns, 11.32 ms, 4.77 s, 66.24 us".
    fn statistics(&self) -> Result<Vec<Claim>, Failure> {
        let turns = &self.of("cfs-4.12", NaiveWait::Yield, SAME)?.turns;
        // Sums are in proportion to the computation's length.
        let part = self.work.0 as f64 / WORK.0 as f64;
        let of = |id, text, expect, got, unit| {
            Claim::source(id, text, "What Is Going On?, statistics").is(expect, got, unit)
        };
        let mean = turns.mean_centinanos() as f64 / 100.0;
        let millions = turns.count() as f64 / 1e6;
        Ok(vec![
            of(
                "002-i",
                "There are 5.56 million yields",
                Expect::about(5.56 * part, 0.03),
                millions,
                "million",
            )
            .fitted(&put_in(
                "it follows from the machine's time for a yield, which comes from the article's own sums",
                part,
            )),
            of(
                "002-j",
                "The shortest takes 400 ns",
                Expect::about(400.0, 0.1),
                turns.min().0 as f64,
                "ns",
            )
            .fitted("429 ns here: the article's sums need that mean of the short ones"),
            of(
                "002-k",
                "The mean is 857.71 ns",
                Expect::about(857.71, 0.03),
                mean,
                "ns",
            )
            .fitted("the machine's time for a yield comes from the article's own sums"),
            of(
                "002-l",
                "The longest takes 11.32 ms",
                Expect::about(11.32, 0.1),
                turns.max().0 as f64 / 1e6,
                "ms",
            ),
            of(
                "002-m",
                "All together they take 4.77 s",
                Expect::about(4.77 * part, 0.03),
                turns.total().as_secs_f64(),
                "s",
            )
            .fitted(&put_in(
                "the computation alone takes half of it: its length is worked out from this sum",
                part,
            )),
            of(
                "002-n",
                "The standard deviation is 66.24 µs",
                Expect::about(66.24, 0.1),
                turns.deviation().0 as f64 / 1e3,
                "µs",
            ),
        ])
    }

    fn claims_of_others(&self) -> Result<Vec<Claim>, Failure> {
        let fifo = self.of("fifo", NaiveWait::Yield, SAME)?;
        let sleep = self.of("cfs-4.12", NaiveWait::SHORTEST_SLEEP, SAME)?;
        let backoff = self.of("cfs-4.12", NaiveWait::BACKOFF, SAME)?;
        let park = self.of("cfs-4.12", NaiveWait::Park, SAME)?;
        let apart = self.of("cfs-4.12", NaiveWait::Spin, CORES)?;
        let blocktime = self.of("cfs-4.12", NaiveWait::BLOCKTIME, SAME)?;
        let times = "times as long as alone";
        Ok(vec![
            Claim::source(
                "002-o",
                "sched_yield puts the thread at the end of the queue for its static priority",
                "What Is sched_yield()?, and the manual page's notes",
            )
            .is(Expect::AtMost(1.01), self.times(fifo), times)
            .note(format!("both threads SCHED_FIFO; yields: {}", fifo.turns.count())),
            Claim::source(
                "002-p",
                "Sleeping for the shortest time fulfils the purpose",
                "comment below the article",
            )
            .is(Expect::AtMost(1.1), self.times(sleep), times)
            .note("a sleep of 50 µs, the length of the shortest request on Linux")
            .or_else("a CPU that is left and taken again all the time costs too much"),
            Claim::source("002-q", "A wait should back off", "What Does This Show?, third paragraph").is(
                Expect::AtMost(1.01),
                self.times(backoff),
                times,
            ),
            Claim::source(
                "002-r",
                "… and at last wait in a way that the kernel supports",
                "What Does This Show?, third paragraph; futex in the introduction",
            )
            .is(Expect::AtMost(1.001), self.times(park), times)
            .note("parked, by a futex"),
            Claim::ours("002-s", "On another CPU a thread that spins does not disturb the computation").is(
                Expect::AtMost(1.01),
                self.times(apart),
                times,
            ),
            Claim::source(
                "002-t",
                "The CPU's hint for waits is worth it where threads share a core",
                "What Does This Show?, fourth paragraph",
            )
            .beyond("the share that a pause leaves to the core's other thread depends on the processor; \
                     the model has one share for both"),
            Claim::source(
                "002-u",
                "A runtime of OpenMP that polls for 200 ms before it blocks is in the way for that long",
                "A Hint for OpenMP Users",
            )
            .is(
                Expect::Between(0.4, 0.6),
                (blocktime.elapsed.0 as f64 - self.work.0 as f64) / 200e6,
                "of these 200 ms are the other thread's loss",
            )
            .note("LLVM's default (KMP_BLOCKTIME); CFS of Linux 4.12, which deals the CPU out evenly"),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::experiment::claim::ClaimVerdict;

    /// Goal: a claim that was put in says what was, in a whole run, too. Method: the remarks of a quick run
    /// without what a quick run adds to them.
    #[test]
    fn fitted_claims_say_what_was_put_in() {
        let effort = Effort::quick(1);
        let work = Nanos::from_millis(200);
        let trials = all(&effort, work).unwrap_or_else(|failure| panic!("{}", failure.text()));
        let claims = trials.statistics();
        let claims = claims.unwrap_or_else(|failure| panic!("{}", failure.text()));
        let quick = put_in("", 0.5);
        let fitted = claims
            .iter()
            .filter(|claim| claim.verdict() == ClaimVerdict::Fitted);
        let remarks: Vec<String> = fitted
            .map(|claim| claim.remark().replace(&quick, ""))
            .collect();
        assert_eq!(remarks.len(), 4);
        assert!(
            remarks.iter().all(|remark| !remark.is_empty()),
            "{remarks:?}"
        );
    }
}
