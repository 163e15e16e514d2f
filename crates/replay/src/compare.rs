//! How a replay differs from the recording.

use std::collections::BTreeMap;

use event::{Nanos, Task};
use trace::explain::{CauseKind, Selection, Wait, explain};
use trace::timeline::{Options, Timeline};
use trace::{Clock, Mark, MarkKind, Origin, Recording, Thread, Wakers};

use crate::play::Played;
use crate::program::{Program, Stretch};

/// A wait whose replay is further off than this part of its length is not trusted.
pub const TRUSTED: f64 = 0.10;

/// The lengths of a program's stretches in one replay, or in several.
impl Program {
    /// How long each stretch took in a replay. What lies outside of its two points counts as in the
    /// recording. None: its thread did not come to both points.
    pub fn lengths(&self, played: &Played) -> Vec<Option<Nanos>> {
        let both = self.stretches.iter().zip(&played.points);
        let lengths = both.map(|(stretch, points)| {
            let ((begin, end), (from, to)) = (stretch.points?, (*points)?);
            let recorded = end - begin;
            Some(Nanos(
                (stretch.length.0 + (to - from).0).saturating_sub(recorded.0),
            ))
        });
        lengths.collect()
    }

    /// The part of the CPU time that went to other threads than in the recording, 0 to 1.
    pub fn share_error(&self, played: &Played) -> f64 {
        let all: u64 = self.threads.iter().map(|thread| thread.ran.0).sum();
        let both = self.threads.iter().zip(&played.ran);
        let off: u64 = both.map(|(thread, ran)| thread.ran.0.abs_diff(ran.0)).sum();
        off as f64 / (2 * all).max(1) as f64
    }
}

impl Stretch {
    /// How far a replay's length is from the recorded one, as a part of that.
    pub fn error(&self, replayed: Nanos) -> f64 {
        replayed.0.abs_diff(self.length.0) as f64 / self.length.0.max(1) as f64
    }

    /// Whether a replay is near enough to the recording to say what a change would do.
    pub fn is_trusted(&self, replayed: Option<Nanos>) -> bool {
        replayed.is_some_and(|replayed| self.error(replayed) <= TRUSTED)
    }
}

/// A kind without what a replay does not have: its CPUs run as they ran, whatever slowed them.
fn plain(kind: CauseKind) -> CauseKind {
    match kind {
        kind if kind.is_run() => CauseKind::Running,
        CauseKind::WakeLatency | CauseKind::IdleExit | CauseKind::BusyWaitStolen => {
            CauseKind::Preempted
        }
        CauseKind::Throttled => CauseKind::Preempted,
        CauseKind::Lock | CauseKind::Io | CauseKind::Blocked | CauseKind::Unknown => {
            CauseKind::Interrupt
        }
        kind => kind,
    }
}

/// The part of a wait that differs most between the recording and its replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What the time went to.
    pub kind: CauseKind,
    /// The thread on the path, by its name in the program.
    pub thread: Option<String>,
    /// In the recording.
    pub recorded: Nanos,
    /// In the replay.
    pub replayed: Nanos,
}

impl Program {
    /// The parts of waits that differ most, each by its stretch; none for a wait that does not end in the
    /// replay.
    pub fn differences(
        &self,
        waits: &[(usize, &Wait)],
        played: &Played,
    ) -> BTreeMap<usize, Difference> {
        let ended = waits.iter().filter_map(|(at, wait)| {
            let points = (*played.points.get(*at)?)?;
            Some((*at, *wait, points))
        });
        let mut left: Vec<_> = ended.collect();
        left.sort_by_key(|(_, _, (begin, _))| *begin);
        let mut differences = BTreeMap::new();
        // Marks of one thread must not overlap: those that do are of another round.
        while !left.is_empty() {
            let mut over: BTreeMap<Task, Nanos> = BTreeMap::new();
            let (round, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, wait, (begin, end))| {
                    let before = over.entry(wait.thread).or_default();
                    let is_next = *begin > *before || *before == Nanos::ZERO;
                    if is_next {
                        *before = *end;
                    }
                    is_next
                });
            let points: Vec<_> = round.iter().map(|(at, _, points)| (*at, *points)).collect();
            let accounts = self.accounts(&points, played);
            for (at, wait, _) in &round {
                let account = accounts.get(&Stretch::name(*at));
                let difference = account.and_then(|account| self.between(wait, account));
                differences.extend(difference.map(|difference| (*at, difference)));
            }
            left = later;
        }
        differences
    }

    /// The part that differs most between a wait and the account of it in a replay.
    fn between(&self, wait: &Wait, replayed: &Wait) -> Option<Difference> {
        let mut both: BTreeMap<(CauseKind, Option<String>), [Nanos; 2]> = BTreeMap::new();
        for cause in &wait.causes {
            let thread = cause.thread.and_then(|task| self.name_of(task));
            both.entry((plain(cause.kind), thread)).or_default()[0] += cause.ns;
        }
        for cause in &replayed.causes {
            let thread = cause.thread.and_then(|task| self.threads.get(task.index()));
            let thread = thread.map(|thread| thread.name.clone());
            both.entry((plain(cause.kind), thread)).or_default()[1] += cause.ns;
        }
        let most = both.into_iter();
        let most = most.max_by_key(|(_, [one, other])| one.0.abs_diff(other.0));
        most.map(|((kind, thread), [recorded, replayed])| Difference {
            kind,
            thread,
            recorded,
            replayed,
        })
    }

    fn name_of(&self, task: Task) -> Option<String> {
        let thread = self.threads.iter().find(|thread| thread.task == task)?;
        Some(thread.name.clone())
    }

    /// The accounts of stretches in a replay, by their names.
    fn accounts(
        &self,
        stretches: &[(usize, (Nanos, Nanos))],
        played: &Played,
    ) -> BTreeMap<String, Wait> {
        let mut recording = self.recording(played);
        for (at, (begin, end)) in stretches {
            let Some(task) = self.stretches.get(*at).map(|stretch| stretch.task) else {
                continue;
            };
            let number = self.threads.iter().position(|thread| thread.task == task);
            let Some(number) = number else { continue };
            let name = recording.names.number(&Stretch::name(*at));
            let on = Task(number as u32);
            let begins = MarkKind::Begin(name);
            for (time, what) in [(*begin, begins), (*end, MarkKind::End)] {
                recording.marks.push(Mark { time, on, what });
            }
        }
        let timeline = Timeline::new(recording, &Options::default());
        let selection = Selection {
            slices: vec![Stretch::WORD.to_owned()],
            limit: usize::MAX,
            ..Selection::default()
        };
        let waits = explain(&timeline, &selection).waits.into_iter();
        waits.map(|wait| (wait.name.clone(), wait)).collect()
    }

    /// A replay as a recording.
    pub fn recording(&self, played: &Played) -> Recording {
        let threads = self.threads.iter().zip(0..);
        let threads = threads.map(|(thread, number)| Thread {
            tid: thread.tid,
            ..Thread::new(Task(number), thread.name.clone(), None)
        });
        Recording {
            origin: Origin {
                clock: Clock::Virtual,
                wakers: Wakers::Decided,
                ..Origin::default()
            },
            threads: threads.collect(),
            kernel: played.kernel.clone(),
            ..Recording::default()
        }
    }
}
