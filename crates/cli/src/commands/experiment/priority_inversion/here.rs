//! A program that waits busily and one that parks, on this machine, beside threads that want its CPUs.

use console::Failure;
use event::Nanos;
use measure::Machine;
use paceline::WaitPolicy;

use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::Effort;
use crate::commands::frames::loaded::{Inversions, Loaded, LoadedReport};
use crate::kernel::Tracer;

const WAITS: [(&str, WaitPolicy); 3] = [
    ("busy wait (active)", WaitPolicy::Active),
    ("park (passive)", WaitPolicy::Passive),
    ("spin, then park (adaptive)", WaitPolicy::Adaptive),
];

/// For a test: the simulated claims that the two about this machine are about, too.
#[cfg(test)]
pub(in crate::commands::experiment) const SIMULATED: [&str; 2] = [BUSY_WAIT, SCENE];
const BUSY_WAIT: &str = "000-h";
const SCENE: &str = "000-a";

/// The results of one way to wait.
struct WaitRun {
    report: LoadedReport,
    /// `None`: the kernel's events may not be recorded.
    inversions: Option<Inversions>,
}

pub(super) fn measured(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    if std::env::var_os("PACELINE_WAIT").is_some() {
        let note = "This machine: PACELINE_WAIT is set and wins over every other way to wait, so nothing \
                    was compared here; unset it.";
        findings.notes.push(note.into());
        return Ok(());
    }
    let here = Machine::read();
    let hogs = 2 * here.parallelism.max(1) as u32;
    let (frames, recorded) = effort.of((20, 10), (600, 120));
    let refused = Tracer::start(None).err();
    let mut found = Vec::new();
    for (_, wait) in WAITS {
        let loaded = |frames| Loaded { wait, hogs, frames };
        found.push(WaitRun {
            report: loaded(frames).run()?,
            inversions: match refused {
                None => loaded(recorded).inversions()?,
                Some(_) => None,
            },
        });
    }
    let title = format!(
        "This machine ({here}): {frames} frames of 500 jobs at 60 Hz beside {hogs} threads that only \
         compute"
    );
    findings.tables.push(frames_table(title, &found));
    if refused.is_none() {
        let title =
            format!("This machine: inversions that `diagnose` finds in {recorded} such frames");
        findings.tables.push(inversions_table(title, &found));
    }
    if let Some(refused) = refused {
        findings.notes.push(format!(
            "This machine: inversions were not looked for: {refused}"
        ));
    }
    let [busy, park, _] = found.as_slice() else {
        return Err(Failure::failed("three ways to wait"));
    };
    findings.claims.extend(claims(busy, park, recorded));
    Ok(())
}

fn frames_table(title: String, found: &[WaitRun]) -> Table {
    let columns = [
        "while waiting",
        "p50",
        "p99",
        "longest",
        "missed",
        "CPU a frame",
        "longest wait",
    ];
    let mut table = Table::new(title, columns);
    for ((name, _), WaitRun { report, .. }) in WAITS.iter().zip(found) {
        table.row([
            (*name).into(),
            Nanos(report.times.p50).into(),
            Nanos(report.times.p99).into(),
            Nanos(report.times.max).into(),
            report.missed.into(),
            report.cpu.into(),
            report.longest_wait.into(),
        ]);
    }
    table
}

fn inversions_table(title: String, found: &[WaitRun]) -> Table {
    let columns = [
        "while waiting",
        "by a busy wait",
        "these took",
        "by other threads",
        "those took",
    ];
    let mut table = Table::new(title, columns);
    for ((name, _), WaitRun { inversions, .. }) in WAITS.iter().zip(found) {
        let of = |what: fn(&Inversions) -> Cell| inversions.as_ref().map_or(Cell::None, what);
        table.row([
            (*name).into(),
            of(|it| it.busy_waits.into()),
            of(|it| it.busy_waited.into()),
            of(|it| it.others.into()),
            of(|it| it.others_took.into()),
        ]);
    }
    table
}

fn claims(busy: &WaitRun, park: &WaitRun, recorded: u32) -> Vec<Claim> {
    let millis = |found: &WaitRun| found.report.times.p50 as f64 / 1e6;
    let mut claims = vec![
        Claim::source(
            "000-v",
            "The busy wait was the issue: a program that parks has the shorter frames",
            "The Job System issue, below the fifth picture; on this machine",
        )
        .is(
            Expect::LessThan(millis(busy)),
            millis(park),
            "ms, p50 of a frame",
        )
        .or_else("the program that burns its CPUs is given as much of them as it needs here")
        .note("against the busy wait, both beside threads that want the same CPUs")
        .simulated_as(BUSY_WAIT),
    ];
    if let Some((busy, park)) = busy.inversions.zip(park.inversions) {
        let millis = |inversions: Inversions| inversions.busy_waited.0 as f64 / 1e6;
        claims.push(
            Claim::source(
                "000-w",
                "A thread waits busily on a CPU that the job it waits for could have had",
                "The Job System issue; on this machine",
            )
            .is(
                Expect::MoreThan(millis(park)),
                millis(busy),
                "ms of inversions by a busy wait",
            )
            .or_else("the thread that was waited for was hardly ever off its CPU meanwhile")
            .note(format!(
                "against those of a program that parks, in {recorded} frames of each"
            ))
            .simulated_as(SCENE),
        );
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the table and the claims have the measured values, with the kernel's half and without. Method:
    /// made-up reports; the busy wait's frames are the longer ones, and the shorter ones.
    #[test]
    fn claims_follow_from_the_frames() {
        let found = |p50, inversions| WaitRun {
            report: LoadedReport {
                times: measure::Times {
                    p50,
                    ..measure::Times::default()
                },
                missed: 0,
                cpu: None,
                longest_wait: Nanos(7),
            },
            inversions,
        };
        let busy_waits = |count| {
            Some(Inversions {
                busy_waits: count,
                busy_waited: Nanos::from_millis(count),
                ..Inversions::default()
            })
        };
        let verdicts = |busy: &WaitRun, park: &WaitRun| {
            let all = claims(busy, park, 9);
            all.iter()
                .map(|claim| claim.json()["ok"] == true)
                .collect::<Vec<_>>()
        };
        let told = verdicts(&found(20, busy_waits(3)), &found(10, busy_waits(0)));
        assert_eq!(told, [true, true]);
        let told = verdicts(&found(10, busy_waits(0)), &found(20, busy_waits(0)));
        assert_eq!(told, [false, false]);
        assert_eq!(verdicts(&found(20, None), &found(10, None)), [true]);
        let all = [
            found(20, busy_waits(3)),
            found(10, busy_waits(0)),
            found(10, None),
        ];
        let text = frames_table("frames".into(), &all).text();
        assert!(
            text.contains("active") && text.contains("passive"),
            "{text}"
        );
        let text = inversions_table("inversions".into(), &all).text();
        assert!(text.contains("3.000 ms") && text.contains('–'), "{text}");
    }
}
