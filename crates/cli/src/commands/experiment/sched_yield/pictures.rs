//! Pictures of a thread that computes beside one that waits for it: times, CPU times, and who runs when.

use console::Failure;
use event::Nanos;
use platform::CpuSet;
use sim::{Sim, SimConfig};
use workload::busy::Busy;
use workload::naive::{BesideReport, NaiveWait, PollBeside};

use super::trial::{BesideTrial, MACHINE, SAME};
use crate::commands::experiment::lab;
use crate::commands::experiment::plot::{PieceFill, Plot, PlotBar, PlotLane, PlotPiece, PlotShape};
use crate::commands::experiment::timeline::{self, Doing, Stint};

/// The computation that the lanes show.
const SHOWN: Nanos = Nanos::from_millis(40);
/// The waits that the lanes show, and under which policy.
const LANES: [(&str, NaiveWait); 4] = [
    ("cfs-4.12", NaiveWait::Spin),
    ("cfs-4.12", NaiveWait::Yield),
    ("eevdf-6.18", NaiveWait::Yield),
    ("cfs-4.12", NaiveWait::Park),
];
/// The names that `PollBeside` gives its threads, in the order of the lanes.
const THREADS: [&str; 2] = ["compute", "waiter"];

/// All of them.
pub(super) fn of(done: &[(BesideTrial, BesideReport)], work: Nanos) -> Result<Vec<Plot>, Failure> {
    Ok(vec![elapsed(done, work), cpu(done), timeline()?])
}

/// The trials with both threads on one CPU, under this policy.
fn same<'a>(
    done: &'a [(BesideTrial, BesideReport)],
    policy: &'a str,
) -> impl Iterator<Item = &'a (BesideTrial, BesideReport)> {
    let is_it = move |trial: &BesideTrial| trial.policy == policy && trial.cpus == SAME;
    done.iter().filter(move |(trial, _)| is_it(trial))
}

fn elapsed(done: &[(BesideTrial, BesideReport)], work: Nanos) -> Plot {
    let policies = ["cfs-4.12", "eevdf-6.6", "eevdf-6.18"];
    let bars = policies.into_iter().enumerate().flat_map(|(kind, policy)| {
        same(done, policy).map(move |(trial, report)| PlotBar {
            name: format!("{policy}: {}", trial.wait.name()),
            value: report.elapsed.0 as f64 / work.0 as f64,
            kind,
        })
    });
    Plot {
        file: "beside",
        title: "How much longer a computation takes beside a thread that waits for it on its CPU"
            .into(),
        picture: PlotShape::Bars {
            unit: "times as long as alone",
            bars: bars.collect(),
        },
    }
}

/// The article's figure: what each of the two threads used, under its kernel, and a yield's under today's.
fn cpu(done: &[(BesideTrial, BesideReport)]) -> Plot {
    let then = same(done, "cfs-4.12");
    let now = same(done, "eevdf-6.18").filter(|(trial, _)| trial.wait == NaiveWait::Yield);
    let bars = then.chain(now).flat_map(|(trial, report)| {
        let both = [report.compute.cpu, report.waiter.cpu];
        let named = THREADS.into_iter().zip(both).enumerate();
        named.map(|(kind, (thread, used))| PlotBar {
            name: format!("{}, {}: {thread}", trial.policy, trial.wait.name()),
            value: used.unwrap_or_default().as_secs_f64() * 1e3,
            kind,
        })
    });
    Plot {
        file: "cpu",
        title: "The CPU time of both: of the thread that computes, and of the one that waits"
            .into(),
        picture: PlotShape::Bars {
            unit: "ms",
            bars: bars.collect(),
        },
    }
}

/// Who has the CPU in a short computation.
fn timeline() -> Result<Plot, Failure> {
    let mut lanes = Vec::new();
    for (policy, wait) in LANES {
        for (thread, stints) in THREADS.into_iter().zip(stints(policy, wait)?) {
            lanes.push(PlotLane {
                name: format!("{policy}, {}: {thread}", wait.name()),
                pieces: stints.iter().map(piece).collect(),
                result: String::new(),
            });
        }
    }
    Ok(Plot {
        file: "turns",
        title: "Who has the CPU: a thread runs (blue), or is ready while the other one runs (grey)"
            .into(),
        picture: PlotShape::Lanes {
            unit: "ms",
            lanes,
            marks: Vec::new(),
        },
    })
}

fn piece(stint: &Stint) -> PlotPiece {
    let millis = |time: Nanos| time.0 as f64 / 1e6;
    PlotPiece {
        begin: millis(stint.begin),
        end: millis(stint.end),
        name: String::new(),
        fill: match stint.doing {
            Doing::RunsOn(_) => PieceFill::Kind(0),
            Doing::Ready => PieceFill::Pale,
        },
    }
}

/// The stints of the computing thread, and of the waiting one.
fn stints(policy: &str, wait: NaiveWait) -> Result<[Vec<Stint>; 2], Failure> {
    let what = PollBeside {
        wait,
        work: SHOWN,
        pieces: 100,
        mask: Some(SAME.iter().copied().collect::<CpuSet>()),
    };
    let config = SimConfig {
        trace: true,
        ..SimConfig::on(lab::machine(MACHINE), policy, 1)
    };
    let mut ran = Err(Failure::failed("the simulated program did not run"));
    let report = Sim::run(config, |sim| {
        ran = what.run(&sim, Busy::NONE).map_err(Failure::failed);
    });
    lab::sound("polls", &report)?;
    ran?;
    let all = timeline::stints(&report);
    Ok(THREADS.map(|name| {
        let is_it = |stint: &&Stint| report.threads[stint.thread].name == name;
        all.iter().filter(is_it).copied().collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the lanes show what is claimed: under the article's kernel a thread that yields has half of
    /// the CPU, today it has next to nothing, and one that parks has nothing. Method: the sums of the runs
    /// in each pair of lanes.
    #[test]
    fn lanes_show_who_has_the_cpu() {
        let shares = LANES.map(|(policy, wait)| {
            let [compute, waiter] = stints(policy, wait).unwrap_or_else(|e| panic!("{}", e.text()));
            let ran = |stints: &[Stint]| -> u64 {
                let ran = stints.iter().filter(|it| it.doing != Doing::Ready);
                ran.map(|stint| (stint.end - stint.begin).0).sum()
            };
            let (compute, waiter) = (ran(&compute), ran(&waiter));
            assert!(compute >= SHOWN.0, "{policy}, {wait}: {compute}");
            waiter as f64 / (compute + waiter) as f64
        });
        let [spin, yields, today, park] = shares;
        assert!(
            (0.4..0.6).contains(&spin) && (0.4..0.6).contains(&yields),
            "{shares:?}"
        );
        assert!(today < 0.01 && park < 0.01, "{shares:?}");
    }
}
