//! The objects of `waits[]` and `inversions[]`, the same in every command.

use event::Task;
use serde::Serialize;
use trace::explain::{Cause, Inversion, Share, Wait, WaitKind, Who};

use super::Account;
use super::sentence::shown;

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
    duration_ns: u64,
    /// Of a late frame: how much later than its deadline it ended; null: it was not late, or that is not
    /// known.
    late_ns: Option<u64>,
    /// How often the thread lost its CPU in it; null: no scheduler events.
    preemptions: Option<usize>,
    causes: Vec<CauseJson>,
    sum_ns: u64,
}

#[derive(Debug, Serialize)]
struct CauseJson {
    kind: &'static str,
    /// Null: not known.
    thread: Option<String>,
    tid: Option<u32>,
    process: Option<String>,
    /// The slices in which most of it passed, outer ones first; null: in no single place, or it ran.
    within: Option<String>,
    /// The label of the job in the way.
    job: Option<String>,
    ns: u64,
    by: Vec<ShareJson>,
    /// The part in which another CPU that the thread may use was idle.
    beside_idle_ns: u64,
    /// The CPU that left its idle state, and that state; null: none did, or the state is not known.
    cpu: Option<u32>,
    idle_state: Option<u8>,
    /// The kernel's function in which the thread slept; null: not known.
    function: Option<String>,
    confidence: &'static str,
}

/// What had a CPU: a thread, or none, and why.
#[derive(Debug, Serialize)]
struct ShareJson {
    who: &'static str,
    thread: Option<String>,
    tid: Option<u32>,
    process: Option<String>,
    ns: u64,
}

/// One inversion.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct InversionJson {
    kind: &'static str,
    waiter: String,
    waiter_tid: Option<u32>,
    holder: String,
    holder_tid: Option<u32>,
    /// A thread's name; or "idle", "offline", "unknown" and no number.
    runner: String,
    runner_tid: Option<u32>,
    by: Vec<ShareJson>,
    beside_idle_ns: u64,
    /// The position of the wait in `waits`.
    wait: usize,
    start_ns: u64,
    ns: u64,
    priorities: Priorities,
    confidence: &'static str,
    remedies: Vec<&'static str>,
}

/// As the kernel counts them, the lowest first.
#[derive(Debug, Serialize)]
struct Priorities {
    waiter: Option<i16>,
    holder: Option<i16>,
    runner: Option<i16>,
}

impl Account {
    /// All waits, the longest first.
    pub(in crate::commands) fn waits_json(&self) -> Vec<WaitJson> {
        self.explanation
            .waits
            .iter()
            .map(|wait| self.wait_json(wait))
            .collect()
    }

    /// All inversions, in the order of the waits.
    pub(in crate::commands) fn inversions_json(&self) -> Vec<InversionJson> {
        let inversions = self.explanation.inversions.iter();
        inversions
            .map(|inversion| self.inversion_json(inversion))
            .collect()
    }

    fn wait_json(&self, wait: &Wait) -> WaitJson {
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
            causes: wait
                .causes
                .iter()
                .map(|cause| self.cause_json(wait, cause))
                .collect(),
            sum_ns: wait.sum().0,
        }
    }

    fn cause_json(&self, wait: &Wait, cause: &Cause) -> CauseJson {
        let label = |job| self.timeline.label(job).map(str::to_owned);
        CauseJson {
            kind: cause.kind.word(),
            thread: cause.thread.map(|task| self.timeline.name(task)),
            tid: cause.thread.and_then(|task| self.timeline.tid(task)),
            process: cause
                .thread
                .and_then(|task| self.timeline.program(task))
                .map(str::to_owned),
            within: self.within_slices(wait, shown(cause.kind), cause.thread),
            job: cause.job.and_then(label),
            ns: cause.ns.0,
            by: self.by_json(&cause.by),
            beside_idle_ns: cause.beside_idle.0,
            cpu: cause.exit.map(|exit| exit.cpu.0),
            idle_state: cause.exit.and_then(|exit| exit.state),
            function: cause.function.map(|name| self.word(name).to_owned()),
            confidence: cause.confidence.word(),
        }
    }

    fn by_json(&self, by: &[Share]) -> Vec<ShareJson> {
        let share = |share: &Share| {
            let (who, task) = word(share.who);
            ShareJson {
                who,
                thread: task.map(|task| self.timeline.name(task)),
                tid: task.and_then(|task| self.timeline.tid(task)),
                process: task
                    .and_then(|task| self.timeline.program(task))
                    .map(str::to_owned),
                ns: share.ns.0,
            }
        };
        by.iter().map(share).collect()
    }

    fn inversion_json(&self, inversion: &Inversion) -> InversionJson {
        let (runner, task) = word(inversion.runner);
        let [of_waiter, of_holder, of_runner] = inversion.priorities;
        InversionJson {
            kind: inversion.kind.word(),
            waiter: self.timeline.name(inversion.waiter),
            waiter_tid: self.timeline.tid(inversion.waiter),
            holder: self.timeline.name(inversion.holder),
            holder_tid: self.timeline.tid(inversion.holder),
            runner: task.map_or(runner.to_owned(), |task| self.timeline.name(task)),
            runner_tid: task.and_then(|task| self.timeline.tid(task)),
            by: self.by_json(&inversion.by),
            beside_idle_ns: inversion.beside_idle.0,
            wait: inversion.wait,
            start_ns: (inversion.begin - self.origin).0,
            ns: inversion.ns.0,
            priorities: Priorities {
                waiter: of_waiter,
                holder: of_holder,
                runner: of_runner,
            },
            confidence: inversion.confidence.word(),
            remedies: inversion.remedies.iter().map(|what| what.word()).collect(),
        }
    }
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

fn kind(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Job => "job",
        WaitKind::Frame => "frame",
        WaitKind::Slice => "slice",
        WaitKind::Sleep => "sleep",
    }
}
