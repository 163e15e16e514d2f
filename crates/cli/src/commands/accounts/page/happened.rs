//! What happened around the waits of a page, as data: which thread had which CPU, what the threads of the
//! waits did, and the path through each wait.
//!
//! A lane is a list of changes: the time since the change before it, and what it changes to. So the data is
//! as long as there were changes, whatever the script shows of it.

use std::collections::BTreeMap;

use event::{Cpu, Nanos, Task};
use serde::Serialize;
use trace::explain::{Wait, Who};
use trace::timeline::{Since, State};

use super::super::Account;
use super::bar::class;
use super::cast::Cast;
use super::covered::{Covered, Stretches};

/// What threads are in, by its position; behind the last one: on the CPU with the number of what is more.
const STATES: [&str; 9] = [
    "",
    "awake",
    "preempted",
    "woken, not yet running",
    "put aside: CPU quota",
    "asleep",
    "blocked",
    "over",
    "not known",
];
/// What has a CPU, likewise; behind the last one: the thread at the position of what is more.
const NOBODY: [&str; 3] = ["", "idle", "not known"];

/// All of it. Times are since `start_ns`.
#[derive(Serialize)]
pub(super) struct Happened {
    /// When the recording begins, as in `waits[]`.
    start_ns: u64,
    states: [&'static str; 9],
    nobody: [&'static str; 3],
    /// The stretches of which the page has everything.
    covered: Vec<(u64, u64)>,
    threads: Vec<ThreadLane>,
    cpus: Vec<CpuLane>,
    /// The path through each wait, by its position in `waits[]`; null: there was no room for it.
    paths: Vec<Option<Path>>,
    /// The words that the others name by position.
    words: Vec<String>,
}

/// A thread. Without states it is there for its name alone.
#[derive(Default, Serialize)]
struct ThreadLane {
    name: String,
    states: Changes,
    /// Its slices, outer ones first: the time since the beginning of the one before, the length, the word.
    slices: Vec<(u64, u64, usize)>,
    /// Of the job system's own, what it did between two jobs: how long after the one before, the word.
    between: Vec<(u64, usize)>,
}

#[derive(Serialize)]
struct CpuLane {
    cpu: u32,
    runs: Changes,
    offline: Vec<(u64, u64)>,
}

/// Changes: how long after the one before, and to what.
#[derive(Default, Serialize)]
struct Changes {
    after: Vec<u64>,
    to: Vec<usize>,
    #[serde(skip)]
    last: u64,
}

/// A wait's path, segment after segment.
#[derive(Serialize)]
struct Path {
    begin: u64,
    /// The threads with lanes, the waiter first, and those that ran instead.
    threads: Vec<usize>,
    instead: Vec<usize>,
    segments: Vec<PathSegment>,
}

/// A length, a style, a label, the thread (none: not known), how sure it is, and the kind of inversion (none:
/// it is no part of one).
#[derive(Serialize)]
struct PathSegment(u64, usize, usize, Option<usize>, usize, Option<usize>);

impl Changes {
    fn push(&mut self, time: u64, to: usize) {
        if self.to.last() != Some(&to) {
            self.after.push(time - self.last);
            self.to.push(to);
            self.last = time;
        }
    }
}

/// Builds it: threads and words get their positions as they are met.
struct Builder<'a> {
    account: &'a Account,
    origin: Nanos,
    threads: BTreeMap<Task, usize>,
    lanes: Vec<ThreadLane>,
    words: BTreeMap<String, usize>,
}

impl Happened {
    /// Around these waits, the worst first, as far as there is room for so many changes.
    pub(super) fn around(account: &Account, waits: &[usize], room: usize) -> Happened {
        let covered = Covered::of(account, waits, room);
        let mut builder = Builder {
            account,
            origin: account.timeline.span().0,
            threads: BTreeMap::new(),
            lanes: Vec::new(),
            words: BTreeMap::new(),
        };
        let all = account.explanation.waits.iter().enumerate();
        let paths = all.map(|(at, wait)| {
            let cast = covered.waits.get(&at)?;
            Some(builder.path(wait, cast))
        });
        let paths: Vec<Option<Path>> = paths.collect();
        for (task, stretches) in &covered.threads {
            builder.fill(*task, stretches);
        }
        builder.fill_between(&covered);
        let cpus = account.timeline.cpus().into_iter();
        let cpus = cpus.map(|cpu| builder.cpu(cpu, &covered.cpus)).collect();
        let mut words = vec![String::new(); builder.words.len()];
        for (word, at) in builder.words {
            words[at] = word;
        }
        let since = |time: Nanos| (time - builder.origin).0;
        Happened {
            start_ns: (builder.origin - account.origin).0,
            states: STATES,
            nobody: NOBODY,
            covered: covered
                .cpus
                .0
                .iter()
                .map(|&(begin, end)| (since(begin), since(end)))
                .collect(),
            threads: builder.lanes,
            cpus,
            paths,
            words,
        }
    }
}

impl Builder<'_> {
    fn since(&self, time: Nanos) -> u64 {
        (time - self.origin).0
    }

    fn thread(&mut self, task: Task) -> usize {
        let next = self.lanes.len();
        let at = *self.threads.entry(task).or_insert(next);
        if at == next {
            self.lanes.push(ThreadLane {
                name: self.account.thread(task),
                ..ThreadLane::default()
            });
        }
        at
    }

    fn word(&mut self, word: &str) -> usize {
        if let Some(&at) = self.words.get(word) {
            return at;
        }
        let at = self.words.len();
        self.words.insert(word.to_owned(), at);
        at
    }

    fn path(&mut self, wait: &Wait, cast: &Cast) -> Path {
        let segments = wait.segments.iter().map(|segment| {
            let label = self.account.segment_label(wait, segment);
            let job = segment.job.and_then(|job| self.account.timeline.label(job));
            let job = job.map_or(String::new(), |job| format!(" (job `{job}`)"));
            PathSegment(
                segment.length().0,
                self.word(class(segment.kind)),
                self.word(&(label + &job)),
                segment.thread.map(|task| self.thread(task)),
                self.word(segment.confidence.word()),
                segment.inversion.map(|kind| self.word(kind.word())),
            )
        });
        let segments = segments.collect();
        Path {
            begin: self.since(wait.begin),
            threads: cast.path.iter().map(|&task| self.thread(task)).collect(),
            instead: cast.instead.iter().map(|&task| self.thread(task)).collect(),
            segments,
        }
    }

    /// The states and slices of a thread.
    fn fill(&mut self, task: Task, stretches: &Stretches) {
        let mut states = Changes::default();
        for &(begin, end) in &stretches.0 {
            for stay in self.account.timeline.stays_within(task, begin, end) {
                states.push(self.since(stay.begin.max(begin)), code(stay.state));
            }
            states.push(self.since(end), 0);
        }
        let slices = self.slices(task, stretches);
        let at = self.thread(task);
        let lane = &mut self.lanes[at];
        (lane.states, lane.slices) = (states, slices);
    }

    /// What the threads of the job system did between two jobs.
    fn fill_between(&mut self, covered: &Covered) {
        let account = self.account;
        let recording = account.timeline.recording();
        let mut last: BTreeMap<Task, Nanos> = BTreeMap::new();
        for event in &recording.jobs {
            let task = recording.slots.get(&event.slot);
            let stretches = task.and_then(|task| covered.threads.get(task));
            if let (Some(&task), Some(stretches)) = (task, stretches)
                && stretches.contains(event.time)
                && let Some(text) = account.between_jobs(event)
            {
                let before = last.insert(task, event.time).unwrap_or(self.origin);
                let (thread, word) = (self.thread(task), self.word(&text));
                let after = (event.time - before).0;
                self.lanes[thread].between.push((after, word));
            }
        }
    }

    fn slices(&mut self, task: Task, covered: &Stretches) -> Vec<(u64, u64, usize)> {
        let (Some(first), Some(last)) = (covered.0.first(), covered.0.last()) else {
            return Vec::new();
        };
        let account = self.account;
        let named = account.timeline.named_within(task, first.0, last.1);
        let mut before = 0;
        let mut slices = Vec::new();
        for (begin, end, name) in named {
            let stretch = covered.0.partition_point(|known| known.1 <= begin);
            let is_covered = covered.0.get(stretch).is_some_and(|known| known.0 < end);
            // The frame timeline's are beside the thread's own work.
            if is_covered && !name.starts_with("frame timeline ") {
                let begin = self.since(begin);
                slices.push((begin - before, self.since(end) - begin, self.word(name)));
                before = begin;
            }
        }
        slices
    }

    fn cpu(&mut self, cpu: Cpu, covered: &Stretches) -> CpuLane {
        let mut runs = Changes::default();
        let mut offline = Vec::new();
        let account = self.account;
        for &(begin, end) in &covered.0 {
            for (from, _, who) in account.timeline.runs_within(cpu, begin, end) {
                let to = match who {
                    Who::Task(task) => NOBODY.len() + self.thread(task),
                    Who::Unknown => 2,
                    _ => 1,
                };
                runs.push(self.since(from.max(begin)), to);
            }
            runs.push(self.since(end), 0);
            let stretches = account.timeline.offline_within(cpu, begin, end).into_iter();
            offline.extend(stretches.map(|(from, to)| (self.since(from), self.since(to))));
        }
        CpuLane {
            cpu: cpu.0,
            runs,
            offline,
        }
    }
}

/// The position of a state.
fn code(state: State) -> usize {
    match state {
        State::Awake => 1,
        State::Runnable(Since::Preempted) => 2,
        State::Runnable(Since::Woken) => 3,
        State::Throttled(_) => 4,
        State::Sleeping => 5,
        State::Blocked => 6,
        State::Dead => 7,
        State::Unknown => 8,
        State::Running(cpu) => STATES.len() + cpu.0 as usize,
    }
}
