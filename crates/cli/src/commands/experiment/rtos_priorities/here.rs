//! The same on this machine, with SCHED_FIFO threads on one CPU where they are allowed.

mod inversion;

use std::cmp::Ordering;

use console::{Failure, Progress, help};
use event::Nanos;
use measure::{Machine, Spread};
use platform::{CpuSet, Machine as _, Os, SchedParams};
use workload::gang::GangError;
use workload::messages::{MESSAGES, MessageLoop, MessageReport};

use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::Effort;

/// Priorities of A, B, C and D: the highest goes first.
const CASES: [(&str, [u8; 4]); 2] = [("equal", [10; 4]), ("unique", [14, 13, 12, 11])];

/// The time of a cycle of one case, the median of some runs.
struct CaseTimes {
    switches: f64,
    /// In ns.
    cycle: f64,
    latency: f64,
    longest: Nanos,
}

pub(super) fn measured(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let answer = help::probe(&SchedParams::fifo(1));
    let Some(cpu) = Os
        .topology()
        .allowed()
        .iter()
        .last()
        .filter(|_| answer.granted)
    else {
        let why = answer.words();
        let note =
            format!("This machine: nothing was run here, for want of SCHED_FIFO threads ({why}).");
        findings.notes.push(note);
        return Ok(());
    };
    let here = Machine::read();
    messages(effort, &here, cpu, findings)?;
    inversion::measured(effort, &here, cpu, findings)
}

/// Why a gang did not run.
fn why(error: GangError) -> Failure {
    Failure::failed(format!("SCHED_FIFO threads on this machine: {error}"))
}

fn messages(
    effort: &Effort,
    here: &Machine,
    cpu: u32,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let (runs, cycles) = effort.of((3, 500), (21, 5_000));
    let mut progress = Progress::new("cycles here", runs * CASES.len() as u64);
    let mut reports = CASES.map(|_| Vec::new());
    for _ in 0..runs {
        for ((_, priorities), reports) in CASES.iter().zip(&mut reports) {
            let what = MessageLoop {
                priorities: Some(*priorities),
                cycles,
                mask: Some(CpuSet::from_iter([cpu])),
            };
            reports.push(what.run(&Os).map_err(why)?);
            progress.step();
        }
    }
    drop(progress);
    let title = format!(
        "This machine ({here}): nine messages a cycle between SCHED_FIFO threads on CPU {cpu}, medians of \
         {runs} runs of {cycles} cycles"
    );
    let columns = [
        "priorities",
        "switches a cycle",
        "a cycle",
        "messages in 1 ms",
        "from send to retrieve, mean",
        "longest of all",
    ];
    let mut table = Table::new(title, columns);
    let cases = reports.map(|reports| CaseTimes::of(&reports, cycles));
    for ((name, _), case) in CASES.iter().zip(&cases) {
        table.row([
            (*name).into(),
            case.switches.into(),
            Nanos(case.cycle as u64).into(),
            (MESSAGES as f64 * 1e6 / case.cycle).into(),
            Nanos(case.latency as u64).into(),
            case.longest.into(),
        ]);
    }
    findings.tables.push(table);
    let longest = cases.iter().map(|case| case.longest).max();
    findings.notes.extend(longest.and_then(kept_for_others));
    let [equal, unique] = &cases;
    findings.claims.extend(claims(equal, unique));
    Ok(())
}

/// Whether what the kernel keeps for threads that are not of real time is as long as the longest message was
/// under way. Nothing if it keeps nothing, or does not say.
fn kept_for_others(longest: Nanos) -> Option<String> {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse::<u64>().ok().map(Nanos::from_micros)
    };
    let (period, runtime) = (read("sched_rt_period_us")?, read("sched_rt_runtime_us")?);
    let kept = Nanos(period.0.checked_sub(runtime.0)?);
    explained(longest, period, kept)
}

fn explained(longest: Nanos, period: Nanos, kept: Nanos) -> Option<String> {
    let explains = match longest.cmp(&kept) {
        Ordering::Greater => "which is shorter: something else held it up, too",
        _ => "for which a message that is under way then waits",
    };
    (kept > Nanos::ZERO).then(|| {
        format!(
            "This machine: the longest message of all was under way for {longest}. Of each {period} the \
             kernel keeps {kept} for other threads than those of real time (sched_rt_runtime_us), {explains}."
        )
    })
}

impl CaseTimes {
    fn of(reports: &[MessageReport], cycles: u64) -> CaseTimes {
        let median = |what: &dyn Fn(&MessageReport) -> f64| {
            let all: Vec<f64> = reports.iter().map(what).collect();
            Spread::of(&all).map_or(f64::NAN, |spread| spread.median)
        };
        let cycles = cycles as f64;
        let longest = reports.iter().map(|report| report.latency.max()).max();
        CaseTimes {
            switches: median(&|it| it.switches.map_or(f64::NAN, |count| count as f64 / cycles)),
            cycle: median(&|it| it.elapsed.0 as f64 / cycles),
            latency: median(&|it| it.latency.mean_centinanos() as f64 / 100.0),
            longest: longest.unwrap_or_default(),
        }
    }
}

fn claims(equal: &CaseTimes, unique: &CaseTimes) -> [Claim; 3] {
    let place = "below figure 11; on this machine";
    [
        Claim::source(
            "003-t",
            "Unique priorities need 14 more switches a cycle",
            place,
        )
        // Some hundredths are the beginning's and the end's, or a kernel thread's.
        .is(
            Expect::Between(13.8, 14.2),
            unique.switches - equal.switches,
            "switches",
        )
        .note(format!(
            "{:.2} and {:.2} a cycle, as the kernel counts them for each thread",
            equal.switches, unique.switches
        )),
        Claim::source(
            "003-u",
            "… the processing time grows by more than 80 %",
            place,
        )
        .is(
            Expect::MoreThan(80.0),
            (unique.cycle / equal.cycle - 1.0) * 100.0,
            "% more time",
        )
        .or_else("a message costs more here than a switch")
        .note("there is no work but the messages"),
        Claim::source(
            "003-v",
            "Unique priorities make the way of a message shorter",
            "figure 12; on this machine",
        )
        .is(
            Expect::LessThan(equal.latency / 1e3),
            unique.latency / 1e3,
            "µs, mean",
        )
        .or_else("here a switch takes longer than the messages that would be sent before it"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: it runs where SCHED_FIFO is granted; elsewhere a refusal is one line and no failure. Method: a
    /// quick run on the machine at hand; counts, not times.
    #[test]
    fn it_runs_or_says_why_not() {
        let effort = Effort {
            simulated: false,
            real: true,
            ..Effort::quick(1)
        };
        let mut findings = Findings::default();
        measured(&effort, &mut findings).unwrap_or_else(|failure| panic!("{}", failure.text()));
        match findings.notes.as_slice() {
            [] => assert_eq!((findings.tables.len(), findings.claims.len()), (2, 5)),
            [note] if note.contains("sched_rt_runtime_us") => {
                assert_eq!((findings.tables.len(), findings.claims.len()), (2, 5));
            }
            [note] => {
                assert!(
                    note.contains("SCHED_FIFO") && findings.claims.is_empty(),
                    "{note}"
                );
            }
            more => panic!("{more:?}"),
        }
    }

    /// Goal: the kernel's share for others explains the longest way only if it is as long. Method: a way
    /// that is shorter, one that is longer, and a kernel that keeps nothing.
    #[test]
    fn a_share_explains_what_is_no_longer() {
        let of = |longest, kept| {
            let (longest, kept) = (Nanos::from_millis(longest), Nanos::from_millis(kept));
            explained(longest, Nanos::from_millis(1_000), kept)
        };
        assert!(of(46, 50).is_some_and(|note| note.contains("then waits.")));
        assert!(of(51, 50).is_some_and(|note| note.contains("is shorter")));
        assert_eq!(of(46, 0), None);
    }
}
