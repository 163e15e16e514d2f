//! The same on this machine. Shares of the CPU are judged, and not times beside the other thread: they do not
//! change with what else runs there.

use console::Failure;
use event::Nanos;
use measure::Machine;
use platform::{CpuSet, Machine as _, Os};
use workload::busy::Busy;
use workload::naive::{BesideReport, NaiveWait, PollBeside};

use super::barrier::{BarrierWait, Rounds, ideal, round, work};
use super::beside::{COLUMNS, row};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::Effort;

pub(super) fn measured(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let busy = Busy::calibrate(&Os);
    let here = Machine::read();
    beside(effort, busy, &here, findings)?;
    barrier(effort, busy, &here, findings)
}

fn beside(
    effort: &Effort,
    busy: Busy,
    here: &Machine,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let work = Nanos::from_millis(effort.of(50, 500));
    let allowed = Os.topology().allowed().clone();
    let Some(last) = allowed.iter().last() else {
        findings
            .notes
            .push("This machine: no CPU is allowed, so nothing was run.".into());
        return Ok(());
    };
    let title = format!(
        "This machine ({here}): {work} of computation beside a thread that waits, on CPU {last}"
    );
    let mut table = Table::new(title, COLUMNS);
    for wait in NaiveWait::ALL {
        let what = PollBeside {
            wait,
            work,
            pieces: 100,
            mask: Some(CpuSet::from_iter([last])),
        };
        let report = what.run(&Os, busy).map_err(Failure::failed)?;
        table.row(row(here.kernel.as_str().into(), wait, work, &report));
        findings.claims.extend(claim_of(wait, &report));
    }
    findings.tables.push(table);
    Ok(())
}

/// The claim about this wait beside a computation, if there is one.
fn claim_of(wait: NaiveWait, report: &BesideReport) -> Option<Claim> {
    let (computing, waiting) = (report.compute.cpu?.0 as f64, report.waiter.cpu?.0 as f64);
    let share = waiting * 100.0 / (computing + waiting);
    let half = Expect::Between(45.0, 55.0);
    let place = "Results; on this machine";
    let unit = "% of what both used";
    match wait {
        NaiveWait::Spin => {
            let text = "A thread that polls on the same CPU gets half of it";
            Some(Claim::source("002-aa", text, place).is(half, share, unit))
        }
        NaiveWait::Yield => {
            let text = "… and so does one that calls std::this_thread::yield";
            let claim = Claim::source("002-c", text, place).is(half, share, unit);
            let reason = "this kernel goes on with the other thread";
            Some(
                claim
                    .or_else(reason)
                    .note("Rust's std::thread::yield_now, which is sched_yield on Linux, too"),
            )
        }
        NaiveWait::Park => {
            let text = "A thread that waits in a way that the kernel supports gets nothing of it";
            let place = "What Does This Show?, third paragraph; on this machine";
            Some(Claim::source("002-ra", text, place).is(Expect::AtMost(1.0), share, unit))
        }
        _ => None,
    }
}

/// The claims about the barrier, of a round's length by threads for each CPU and wait: those in which more
/// threads than CPUs are the point. Where each thread needs a CPU, whatever else runs decides.
fn claims_of_barrier(took: impl Fn(usize, NaiveWait) -> f64) -> [Claim; 2] {
    let gain = |wait| took(4, NaiveWait::Spin) / took(4, wait);
    [
        Claim::source(
            "002-va",
            "Yielding helps threads that wait at a barrier where there are more of them than CPUs",
            "Introduction: a tweet that the article doubts; on this machine",
        )
        .is(
            Expect::MoreThan(1.1),
            gain(NaiveWait::Yield),
            "times as fast as spinning",
        )
        .note("four threads for each CPU, free"),
        Claim::source(
            "002-ub",
            "With more threads than CPUs KMP_BLOCKTIME=0 is worth an experiment",
            "A Hint for OpenMP Users; on this machine",
        )
        .is(
            Expect::MoreThan(1.1),
            took(4, NaiveWait::BLOCKTIME) / took(4, NaiveWait::Park),
            "times as fast as polling for 200 ms first",
        )
        .note("four threads for each CPU, free, that park at once"),
    ]
}

fn barrier(
    effort: &Effort,
    busy: Busy,
    here: &Machine,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let cpus = here.parallelism.max(1);
    let rounds = Rounds::new(effort, effort.of(20, 300));
    let mut columns = vec!["threads a CPU".to_owned()];
    columns.extend(BarrierWait::all().map(|wait| wait.name().to_owned()));
    let title = format!(
        "This machine ({here}): {} rounds at a barrier, threads free; a round, in times of its work \
         spread evenly",
        rounds.counted
    );
    let mut table = Table::with_columns(title, columns);
    let mut all = Vec::new();
    for crowd in [1, 2, 4] {
        let work = work(crowd * cpus, effort.seed);
        let mut row = vec![(crowd as u64).into()];
        for wait in BarrierWait::all() {
            let took = round(&Os, &[], wait, &work, rounds, busy)?;
            let times = took.0 as f64 / ideal(&work, cpus).0 as f64;
            all.push((crowd, wait, times));
            row.push(times.into());
        }
        table.row(row);
    }
    findings.tables.push(table);
    findings.claims.extend(claims_of_barrier(|crowd, wait| {
        let is_it =
            |one: &&(usize, BarrierWait, f64)| (one.0, one.1) == (crowd, BarrierWait::Naive(wait));
        all.iter().find(is_it).map_or(f64::NAN, |one| one.2)
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the real part is judged, each claim by what was measured. Method: reports that were made up; a
    /// share of a half, of nothing, and no account of CPU time; rounds that are all as long.
    #[test]
    fn the_real_part_is_judged() {
        let report = |computing, waiting| {
            let mut report = BesideReport {
                elapsed: Nanos(100),
                compute: Default::default(),
                waiter: Default::default(),
                turns: Default::default(),
            };
            report.compute.cpu = computing;
            report.waiter.cpu = waiting;
            report
        };
        let half = report(Some(Nanos(50)), Some(Nanos(50)));
        let none = report(Some(Nanos(50)), Some(Nanos(0)));
        let holds = |wait, report| claim_of(wait, report).and_then(|claim| claim.holds_here());
        for wait in [NaiveWait::Spin, NaiveWait::Yield] {
            assert_eq!(
                (holds(wait, &half), holds(wait, &none)),
                (Some(true), Some(false))
            );
        }
        assert_eq!(holds(NaiveWait::Park, &none), Some(true));
        assert_eq!(holds(NaiveWait::Park, &half), Some(false));
        assert!(claim_of(NaiveWait::Spin, &report(None, None)).is_none());
        assert!(
            claims_of_barrier(|_, _| 1.0)
                .iter()
                .all(|it| it.holds_here() == Some(false))
        );
        let polls = |crowd, wait| match (crowd, wait) {
            (4, NaiveWait::Spin | NaiveWait::BLOCKTIME) => 2.0,
            _ => 1.0,
        };
        assert!(
            claims_of_barrier(polls)
                .iter()
                .all(|it| it.holds_here() == Some(true))
        );
    }
}
