//! The same on this machine, under the scheduler that is in charge here: how long threads run at a time, and
//! how soon one that needs little is run.
//!
//! A statement of the article is about `scx_rustland` before its change or with it, so it is judged where
//! that one is in charge, and nowhere else. Statements that compare the two need two runs.

use console::{Failure, Progress};
use event::Nanos;
use measure::{Hogs, Machine, Times, thread_cpu};
use platform::Os;
use workload::busy::Busy;
use workload::crowd::{Crowd, CrowdReport};

use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// Threads that compute, for each CPU: none, to compare with; the article's build, twice that, and a machine
/// that is overloaded.
const CROWDS: [u32; 4] = [0, 2, 4, 8];

/// How to find out what one run cannot tell.
const COMPARE: &str = "This machine: whether the change leaves fewer switches, longer waits or steadier \
                       slices takes a run under the scheduler before it and one under that with it: compare \
                       the rows. `cargo xtask vm --experiment virtual-slice` runs this under both, and \
                       others.";

/// A wait that is longer by more than this than 99 of 100 are beside nothing was one for another task's
/// slice.
const SOON: Nanos = Nanos::from_micros(100);

/// Turns are shorter if they are so by this part; less is noise.
const CLEARLY: f64 = 0.95;

/// How long is computed to find out how fast that is while all CPUs are busy.
const TRIAL: Nanos = Nanos::from_millis(100);

/// The simulated claims that those about this machine are about, too.
const TURNS_SHRINK: &str = "004-u";
const FORCED: &str = "004-s";
const PREEMPT: &str = "004-t";
const AUDIO: &str = "004-l";
#[cfg(test)]
pub(in crate::commands::experiment) const SIMULATED: [&str; 4] =
    [TURNS_SHRINK, FORCED, PREEMPT, AUDIO];

/// A scheduler that the article makes statements about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RustlandOf {
    Before,
    Change,
}

impl RustlandOf {
    /// The one with this name in the kernel: `paceline-scx` gives its policy's name, a version and a system.
    fn named(scheduler: &str) -> Option<RustlandOf> {
        let is = |name: &str| {
            scheduler.strip_prefix(name).is_some_and(|rest| {
                let version = rest.strip_prefix('_').unwrap_or_default();
                rest.is_empty() || version.starts_with(|first: char| first.is_ascii_digit())
            })
        };
        match () {
            () if is("rustland_pre333") => Some(RustlandOf::Before),
            () if is("rustland_333") => Some(RustlandOf::Change),
            () => None,
        }
    }
}

/// What a crowd met with.
struct MetHere {
    crowd: u32,
    report: CrowdReport,
}

pub(super) fn measured(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let here = Machine::read();
    let length = Nanos::from_millis(effort.of(1_000, 5_000));
    let all = met(&CROWDS, here.parallelism.max(1) as u32, length)?;
    let title = format!(
        "This machine ({here}): {length} of threads that compute (turn, wait: theirs), beside audio (late: \
         more than 0.1 ms above its p99 beside nothing) and a pretender, a task that is wrongly taken for \
         interactive"
    );
    findings.tables.push(table(title, &all));
    let after = Machine::read().scheduler;
    if after != here.scheduler {
        let note = "This machine: another scheduler took charge meanwhile, so nothing was judged.";
        findings.notes.push(note.into());
        return Ok(());
    }
    let rule = here.scheduler.as_deref().and_then(RustlandOf::named);
    findings.claims.extend(claims(rule, &all));
    findings.notes.push(note(here.scheduler.as_deref(), rule));
    findings.notes.push(COMPARE.into());
    Ok(())
}

/// What crowds of so many for each CPU meet with in this time.
fn met(crowds: &[u32], cpus: u32, length: Nanos) -> Result<Vec<MetHere>, Failure> {
    let busy = while_busy(Busy::calibrate(&Os), cpus)?;
    let mut progress = Progress::new("crowds here", crowds.len() as u64);
    let mut all = Vec::new();
    for &crowd in crowds {
        let computing = crowd * cpus;
        let what = Crowd { computing, length };
        let report = what.run(&Os, busy).map_err(Failure::failed)?;
        all.push(MetHere { crowd, report });
        progress.step();
    }
    Ok(all)
}

/// The pace of bodies while all CPUs are busy: on some machines that is slower.
fn while_busy(busy: Busy, cpus: u32) -> Result<Busy, Failure> {
    let hogs = Hogs::start(cpus).map_err(Failure::failed)?;
    let before = thread_cpu();
    busy.spin_for(TRIAL, 1);
    let after = thread_cpu();
    hogs.stop();
    Ok(match before.zip(after) {
        Some((before, after)) => busy.paced(TRIAL, after - before),
        None => busy,
    })
}

fn micros(turns: &[Nanos]) -> Vec<f64> {
    turns.iter().map(|turn| turn.0 as f64 / 1e3).collect()
}

impl MetHere {
    /// The mean turn of those that compute, in microseconds. Nothing where there was none, or where none is
    /// counted.
    fn turn(&self) -> Option<f64> {
        mean(&self.report.turns)
    }

    fn pretended(&self) -> Option<f64> {
        mean(&self.report.pretended)
    }

    fn audio_waits(&self) -> Times {
        let waits: Vec<u64> = self.report.audio.iter().map(|wait| wait.0).collect();
        Times::of(&waits)
    }

    /// How many of 100 of the audio's waits were for another task's slice, if these are those beside nothing:
    /// some machines need milliseconds now and then to wake up a thread that is alone.
    fn audio_late(&self, alone: Times) -> f64 {
        let most = Nanos(alone.p99) + SOON;
        let late = self.report.audio.iter().filter(|&&wait| wait > most);
        late.count() as f64 * 100.0 / self.report.audio.len().max(1) as f64
    }

    /// How many of 1000 periods of the audio were not over in time.
    fn audio_missed(&self) -> f64 {
        let missed = self.report.periods.saturating_sub(self.report.in_time);
        missed as f64 * 1_000.0 / self.report.periods.max(1) as f64
    }

    fn row(&self, alone: Times) -> [Cell; 10] {
        let report = &self.report;
        let time = |micros: f64| Nanos((micros * 1e3) as u64);
        let turns = micros(&report.turns);
        let used = report.computed;
        let switches = used.involuntary.zip(used.cpu);
        let waits = used.runnable.zip(used.involuntary);
        [
            u64::from(self.crowd).into(),
            self.turn().map(time).into(),
            report.turns.iter().copied().max().into(),
            self.turn().map(|mean| lab::deviation(&turns) / mean).into(),
            switches
                .map(|(count, cpu)| count as f64 * 1e9 / cpu.0.max(1) as f64)
                .into(),
            waits
                .filter(|(_, count)| *count > 0)
                .map(|(time, count)| Nanos(time.0 / count))
                .into(),
            self.pretended().map(time).into(),
            Nanos(self.audio_waits().p50).into(),
            self.audio_late(alone).into(),
            self.audio_missed().into(),
        ]
    }
}

fn mean(turns: &[Nanos]) -> Option<f64> {
    (!turns.is_empty()).then(|| lab::mean(&micros(turns)))
}

fn table(title: String, all: &[MetHere]) -> Table {
    let columns = [
        "threads a CPU",
        "turn",
        "longest",
        "deviation, of it",
        "switches a CPU second",
        "wait",
        "pretender's turn",
        "audio's wait, p50",
        "audio late, of 100",
        "missed, of 1000",
    ];
    let mut table = Table::new(title, columns);
    let alone = all.first().map_or(Times::default(), MetHere::audio_waits);
    for met in all {
        table.row(met.row(alone));
    }
    table
}

/// The claims about the scheduler in charge.
fn claims(rule: Option<RustlandOf>, all: &[MetHere]) -> Vec<Claim> {
    let [alone, crowds @ ..] = all else {
        return Vec::new();
    };
    let (Some(few), Some(many)) = (crowds.first(), crowds.last()) else {
        return Vec::new();
    };
    match rule {
        None => Vec::new(),
        Some(RustlandOf::Before) => slices_shrink(few, many).into_iter().collect(),
        Some(RustlandOf::Change) => of_the_change(alone.audio_waits(), few, crowds),
    }
}

fn slices_shrink(few: &MetHere, many: &MetHere) -> Option<Claim> {
    let (few_turn, many_turn) = few.turn().zip(many.turn())?;
    let text = "Before the change, the more overloaded the system, the shorter the slices";
    let claim = Claim::source("004-na", text, "Overview, first paragraph; on this machine");
    let claim = claim.is(
        Expect::LessThan(few_turn * CLEARLY),
        many_turn,
        "µs, a computing thread at a time",
    );
    let claim = claim.or_else("a turn ends at a tick of the kernel, however short its slice is");
    let note = format!(
        "{} threads a CPU against {}; less by a twentieth",
        many.crowd, few.crowd
    );
    Some(claim.note(note).simulated_as(TURNS_SHRINK))
}

fn of_the_change(alone: Times, few: &MetHere, crowds: &[MetHere]) -> Vec<Claim> {
    let forced = few.turn().zip(few.pretended()).map(|(turn, pretended)| {
        Claim::source(
            "004-sa",
            "Tasks that were incorrectly classified as interactive are still forced to release the CPU \
             quickly",
            "Example, last paragraph; on this machine",
        )
        .is(
            Expect::LessThan(turn * CLEARLY),
            pretended,
            "µs, the turn of such a task",
        )
        .note("against a turn of a thread that computes; less by a twentieth")
        .simulated_as(FORCED)
    });
    let preempt = Claim::source(
        "004-ta",
        "Tasks that need little preempt others, so they are processed as soon as they need to",
        "Virtual time slice; Example, last paragraph; on this machine",
    )
    .is(
        Expect::AtMost(1.0),
        few.audio_late(alone),
        "of 100 waits of the audio are for a slice",
    )
    .note("longer by 0.1 ms than 99 of 100 beside nothing")
    .simulated_as(PREEMPT);
    let missed = crowds.iter().map(MetHere::audio_missed);
    let audio = Claim::source(
        "004-la",
        "No audio is missed with the change, even where the system is overloaded",
        "Experimental results, last paragraph; on this machine",
    )
    .is(
        Expect::Exactly(0.0),
        missed.fold(0.0, f64::max),
        "missed of 1000 periods, the most",
    )
    .note("of all crowds, since none was missed in the article's whole run")
    .simulated_as(AUDIO);
    forced.into_iter().chain([preempt, audio]).collect()
}

/// What was judged here, what was not, and how it can be.
fn note(scheduler: Option<&str>, rule: Option<RustlandOf>) -> String {
    let here = match scheduler {
        Some(name) => format!("This machine: {name} is in charge (sched_ext)"),
        None => "This machine: the kernel's own scheduler is in charge".to_owned(),
    };
    let judged = match rule {
        Some(RustlandOf::Before) => {
            "Judged was 004-na, which is about scx_rustland before the change; 004-sa, 004-ta and 004-la are \
             about it with the change, and were not"
        }
        Some(RustlandOf::Change) => {
            "Judged were 004-sa, 004-ta and 004-la, which are about scx_rustland with the change; 004-na is \
             about it before the change, and was not"
        }
        None => {
            "The article's statements 004-na, 004-sa, 004-ta and 004-la are about scx_rustland, and none was \
             judged"
        }
    };
    format!("{here}. {judged}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crowd whose turns are all as long, as are those of the one that pretends.
    fn made_up(crowd: u32, turn: u64, pretended: u64, waits: &[u64], in_time: u64) -> MetHere {
        MetHere {
            crowd,
            report: CrowdReport {
                turns: vec![Nanos::from_micros(turn); 4],
                pretended: vec![Nanos::from_micros(pretended); 2],
                audio: waits.iter().copied().map(Nanos::from_micros).collect(),
                periods: 200,
                in_time,
                ..CrowdReport::default()
            },
        }
    }

    fn judged(rule: Option<RustlandOf>, all: &[MetHere]) -> Vec<(&'static str, bool)> {
        let all = claims(rule, all);
        all.iter()
            .map(|claim| (claim.id, claim.holds_here() == Some(true)))
            .collect()
    }

    /// Goal: each claim can hold and can fail, and is judged under its own scheduler alone. Method: crowds
    /// that were made up, as the article says and the other way round; three schedulers.
    #[test]
    fn claims_follow_from_turns_and_waits() {
        let alone = || made_up(0, 9, 9, &[200], 200);
        let so = [
            alone(),
            made_up(2, 4_000, 1_000, &[10; 4], 200),
            made_up(8, 1_000, 900, &[10], 200),
        ];
        let not_so = [
            alone(),
            made_up(2, 4_000, 4_000, &[10, 900], 200),
            made_up(8, 4_000, 9, &[10], 199),
        ];
        let (before, change) = (Some(RustlandOf::Before), Some(RustlandOf::Change));
        assert_eq!(judged(before, &so), [("004-na", true)]);
        assert_eq!(judged(before, &not_so), [("004-na", false)]);
        let all = ["004-sa", "004-ta", "004-la"];
        assert_eq!(judged(change, &so), all.map(|id| (id, true)));
        assert_eq!(judged(change, &not_so), all.map(|id| (id, false)));
        // One that was missed in any crowd is missed.
        let [alone, few, many] = so;
        let missed = MetHere {
            report: CrowdReport {
                in_time: 199,
                ..few.report.clone()
            },
            ..few
        };
        let judged_so = judged(change, &[alone, missed, many]);
        assert_eq!(judged_so.last(), Some(&("004-la", false)));
        assert!(judged(None, &not_so).is_empty() && judged(change, &[]).is_empty());
    }

    /// Goal: where the system counts no switches there are no turns, no numbers for them, and no claims about
    /// them. Method: reports without turns.
    #[test]
    fn without_turns_there_are_no_claims_about_them() {
        let none = |crowd| MetHere {
            crowd,
            report: CrowdReport::default(),
        };
        let all = [none(0), none(2), none(8)];
        assert!(judged(Some(RustlandOf::Before), &all).is_empty());
        let ids = judged(Some(RustlandOf::Change), &all);
        assert!(!ids.iter().any(|(id, _)| *id == "004-sa"), "{ids:?}");
        assert!(table("t".into(), &all).text().contains('–'));
    }

    /// Goal: the schedulers of the article are known by the names that the kernel has, and others are taken
    /// for neither. Method: names as a real kernel gave them, and some that are like them.
    #[test]
    fn schedulers_are_known_by_name() {
        for (name, rule) in [
            (
                "rustland_pre333_0.1.0_x86_64_unknown_linux_gnu",
                Some(RustlandOf::Before),
            ),
            (
                "rustland_333_0.1.0_x86_64_unknown_linux_gnu",
                Some(RustlandOf::Change),
            ),
            ("rustland_333", Some(RustlandOf::Change)),
            ("rustland_333_capped_0.1.0", None),
            ("rustland_1.1.4_x86_64_unknown_linux_gnu", None),
            ("waitfor_0.1.0_x86_64_unknown_linux_gnu", None),
            ("rustland_3330", None),
            ("?", None),
        ] {
            assert_eq!(RustlandOf::named(name), rule, "{name}");
        }
    }

    /// Goal: a reader is told which scheduler was in charge, what was judged, and how the rest can be.
    /// Method: the notes under four schedulers.
    #[test]
    fn the_note_says_what_was_judged() {
        let of = |name: Option<&str>| note(name, name.and_then(RustlandOf::named));
        for name in [
            None,
            Some("rustland_pre333"),
            Some("rustland_333"),
            Some("waitfor"),
        ] {
            let note = of(name);
            assert!(note.contains(name.unwrap_or("the kernel's own")), "{note}");
        }
        assert!(of(Some("waitfor")).contains("none was judged"));
        assert!(of(Some("rustland_333")).contains("Judged were 004-sa"));
        assert!(of(Some("rustland_pre333")).contains("Judged was 004-na"));
    }

    /// Goal: a crowd on the machine at hand has a row, whatever is in charge there. Method: a short run of
    /// two threads a CPU; counts, not times.
    #[test]
    fn a_crowd_here_has_a_row() {
        let all = met(&[2], 1, Nanos::from_millis(200));
        let all = all.unwrap_or_else(|failure| panic!("{}", failure.text()));
        let rows: Vec<_> = table("t".into(), &all).json().collect();
        assert_eq!(rows.len(), 1);
        let report = &all[0].report;
        assert!(report.in_time <= report.audio.len() as u64);
        assert!(report.audio.len() as u64 <= report.periods && report.periods > 0);
    }
}
