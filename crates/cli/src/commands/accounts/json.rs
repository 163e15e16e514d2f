//! The objects of `who[]`, `waits[]` and `inversions[]`, the same in every command.
//!
//! A trace has few threads and many causes, so each thread is told once, in `who`, and causes, shares and
//! inversions name it by its position there. Keys without anything to tell are left out. If all of it is
//! still too long, what is a small part of its wait is summed up: see [`small`](super::small).

use std::collections::BTreeMap;

use event::Task;
use serde::Serialize;
use trace::explain::{Cause, Confidence, Inversion, Share, Wait, WaitKind, Who};

use super::Account;
use super::gains::GainJson;
use super::sentence::shown;

/// The version of these objects: 2 since `who`.
const VERSION: u32 = 2;

/// An account. All keys are null if there is none.
#[derive(Debug, Default, Serialize)]
pub(in crate::commands) struct AccountJson {
    pub(in crate::commands) version: Option<u32>,
    /// What others refer to by position.
    pub(in crate::commands) who: Option<Vec<WhoJson>>,
    /// Parts of a wait that are smaller than this are summed up; 0: all are told.
    pub(in crate::commands) least_share: Option<f64>,
    pub(in crate::commands) waits: Option<Vec<WaitJson>>,
    /// In the order of the waits.
    pub(in crate::commands) inversions: Option<Vec<InversionJson>>,
    /// Inversions that were too small a part of their waits.
    pub(in crate::commands) inversions_omitted: Option<usize>,
}

/// A thread, or what else can have a CPU.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct WhoJson {
    who: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    /// The name of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
}

/// One wait. Its causes sum to its length.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct WaitJson {
    thread: String,
    tid: Option<u32>,
    /// The name of its program; null: not known.
    process: Option<String>,
    name: String,
    kind: &'static str,
    start_ns: u64,
    pub(super) duration_ns: u64,
    /// Of a late frame: how much later than its deadline it ended; null: it was not late, or that is not
    /// known.
    late_ns: Option<u64>,
    /// How often the thread lost its CPU in it; null: no scheduler events.
    preemptions: Option<usize>,
    pub(super) causes: Vec<CauseJson>,
    sum_ns: u64,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct CauseJson {
    pub(super) kind: &'static str,
    /// The thread on the path; none: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) who: Option<usize>,
    /// The slices in which most of it passed, outer ones first; none: in no single place, or it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<String>,
    /// The label of the job in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    pub(super) ns: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) by: Vec<ShareJson>,
    /// The part in which another CPU that the thread may use was idle.
    #[serde(skip_serializing_if = "is_zero")]
    beside_idle_ns: u64,
    /// The CPU that left its idle state, and that state; none: none did, or the state is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_state: Option<u8>,
    /// The kernel's function in which the thread slept; none: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    /// None: known.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<&'static str>,
    /// Of causes that were summed up: how many.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) count: u64,
}

impl CauseJson {
    /// Several causes, summed up.
    pub(super) fn rest(ns: u64, count: u64) -> CauseJson {
        CauseJson {
            kind: "rest",
            ns,
            count,
            ..CauseJson::default()
        }
    }
}

/// What had a CPU, and for how long.
#[derive(Debug, Serialize)]
pub(super) struct ShareJson {
    pub(super) who: usize,
    pub(super) ns: u64,
}

/// One inversion.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct InversionJson {
    kind: &'static str,
    waiter: usize,
    holder: usize,
    runner: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) by: Vec<ShareJson>,
    #[serde(skip_serializing_if = "is_zero")]
    beside_idle_ns: u64,
    /// The position of the wait in `waits`.
    pub(super) wait: usize,
    start_ns: u64,
    pub(super) ns: u64,
    priorities: Priorities,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<&'static str>,
    remedies: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gains: Vec<GainJson>,
}

/// As the kernel counts them, the lowest first.
#[derive(Debug, Serialize)]
struct Priorities {
    #[serde(skip_serializing_if = "Option::is_none")]
    waiter: Option<i16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<i16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner: Option<i16>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The table of threads while it is made.
pub(super) struct WhoTable<'a> {
    account: &'a Account,
    positions: BTreeMap<Option<Who>, usize>,
    rows: Vec<WhoJson>,
}

impl WhoTable<'_> {
    /// The position of what had a CPU; `None`: several that were summed up.
    pub(super) fn position(&mut self, who: Option<Who>) -> usize {
        *self.positions.entry(who).or_insert_with(|| {
            let (word, task) = who.map_or(("others", None), word);
            let timeline = &self.account.timeline;
            self.rows.push(WhoJson {
                who: word,
                thread: task.map(|task| timeline.name(task)),
                tid: task.and_then(|task| timeline.tid(task)),
                process: task
                    .and_then(|task| timeline.program(task))
                    .map(str::to_owned),
            });
            self.rows.len() - 1
        })
    }

    fn shares(&mut self, by: &[Share]) -> Vec<ShareJson> {
        let mut share = |share: &Share| ShareJson {
            who: self.position(Some(share.who)),
            ns: share.ns.0,
        };
        by.iter().map(&mut share).collect()
    }
}

impl AccountJson {
    /// The waits, the worst first, and the inversions in the order of the waits.
    pub(in crate::commands) fn of(account: &Account) -> AccountJson {
        let mut table = WhoTable {
            account,
            positions: BTreeMap::new(),
            rows: Vec::new(),
        };
        let found = &account.explanation;
        let waits = found.waits.iter();
        let mut waits: Vec<_> = waits
            .map(|wait| account.wait_json(wait, &mut table))
            .collect();
        let inversions = found.inversions.iter();
        let mut inversions: Vec<_> = inversions
            .map(|inversion| account.inversion_json(inversion, &mut table))
            .collect();
        let least_share = super::small::shorten(&mut waits, &mut inversions, &mut table);
        AccountJson {
            version: Some(VERSION),
            least_share: Some(least_share),
            inversions_omitted: Some(found.inversions.len() - inversions.len()),
            who: Some(table.rows),
            waits: Some(waits),
            inversions: Some(inversions),
        }
    }
}

impl Account {
    fn wait_json(&self, wait: &Wait, table: &mut WhoTable<'_>) -> WaitJson {
        let causes = wait.causes.iter();
        WaitJson {
            thread: self.timeline.name(wait.thread),
            tid: self.timeline.tid(wait.thread),
            process: self.timeline.program(wait.thread).map(str::to_owned),
            name: wait.name.clone(),
            kind: kind(wait.kind),
            start_ns: (wait.begin - self.origin).0,
            duration_ns: wait.length().0,
            late_ns: wait.late.map(|late| late.0),
            preemptions: wait.preemptions,
            causes: causes
                .map(|cause| self.cause_json(wait, cause, table))
                .collect(),
            sum_ns: wait.sum().0,
        }
    }

    fn cause_json(&self, wait: &Wait, cause: &Cause, table: &mut WhoTable<'_>) -> CauseJson {
        let label = |job| self.timeline.label(job).map(str::to_owned);
        let thread = cause.thread.map(|task| Some(Who::Task(task)));
        CauseJson {
            kind: cause.kind.word(),
            who: thread.map(|who| table.position(who)),
            within: self.within_slices(wait, shown(cause.kind), cause.thread),
            job: cause.job.and_then(label),
            ns: cause.ns.0,
            by: table.shares(&cause.by),
            beside_idle_ns: cause.beside_idle.0,
            cpu: cause.exit.map(|exit| exit.cpu.0),
            idle_state: cause.exit.and_then(|exit| exit.state),
            function: cause.function.map(|name| self.word(name).to_owned()),
            confidence: unsure(cause.confidence),
            count: 0,
        }
    }

    fn inversion_json(&self, inversion: &Inversion, table: &mut WhoTable<'_>) -> InversionJson {
        let [waiter, holder, runner] = inversion.priorities;
        let mut thread = |task| table.position(Some(Who::Task(task)));
        InversionJson {
            kind: inversion.kind.word(),
            waiter: thread(inversion.waiter),
            holder: thread(inversion.holder),
            runner: table.position(Some(inversion.runner)),
            by: table.shares(&inversion.by),
            beside_idle_ns: inversion.beside_idle.0,
            wait: inversion.wait,
            start_ns: (inversion.begin - self.origin).0,
            ns: inversion.ns.0,
            priorities: Priorities {
                waiter,
                holder,
                runner,
            },
            confidence: unsure(inversion.confidence),
            remedies: inversion.remedies.iter().map(|what| what.word()).collect(),
            gains: self.gains.of_json(inversion),
        }
    }
}

fn unsure(confidence: Confidence) -> Option<&'static str> {
    (confidence != Confidence::Known).then(|| confidence.word())
}

/// The word for it, and the thread if it is one.
fn word(who: Who) -> (&'static str, Option<Task>) {
    match who {
        Who::Task(task) => ("thread", Some(task)),
        Who::Idle => ("idle", None),
        Who::Offline => ("offline", None),
        Who::Unknown => ("unknown", None),
    }
}

pub(super) fn kind(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Job => "job",
        WaitKind::Frame => "frame",
        WaitKind::Slice => "slice",
        WaitKind::Turn => "turn",
        WaitKind::Sleep => "sleep",
    }
}
