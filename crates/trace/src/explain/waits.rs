//! The stretches of time that are waits.

use std::collections::BTreeSet;

use event::{Nanos, Task};

use super::deadlines::Deadlines;
use super::recorded::RecordedProgram;
use super::words::{self, NameHints};
use super::{Selection, WaitKind, wakers};
use crate::timeline::{Since, Slice, State, Timeline, Waker};

/// A stretch of time to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundWait {
    pub(super) thread: u32,
    pub(super) task: Task,
    pub(super) kind: WaitKind,
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    /// Of a frame that was late: how much.
    pub(super) late: Option<Nanos>,
    /// What it is compared by with others of its rank: its length, or of a turn what it lost.
    weight: Nanos,
    /// How far at the front it belongs.
    rank: Rank,
    /// The slice's name, the job's position, the frame's number.
    what: u64,
}

/// The order of waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rank {
    /// A program's frame was late.
    LateFrame,
    /// A frame of the display's server was late: mostly because a program's was.
    LateDisplay,
    Usual,
    /// A thread of the display's server waits: mostly for programs, or for the display.
    Display,
    /// A turn of a thread that is not known to be of an app.
    System,
    /// A driver, or one of the kernel's own threads, waits; mostly for the display, in every frame.
    Driver,
}

impl FoundWait {
    /// Whether it has a length and touches the stretch of time that is meant.
    fn is_within(&self, selection: &Selection) -> bool {
        self.begin < self.end && selection.touches(self.begin, self.end)
    }

    /// The name of the wait.
    pub(super) fn name(&self, timeline: &Timeline) -> String {
        match self.kind {
            WaitKind::Slice => {
                let name = crate::Name(self.what as u32);
                timeline.recording().names.word(name).to_owned()
            }
            WaitKind::Job => {
                let job = timeline.jobs.jobs.get(self.what as usize);
                let label = job.and_then(|job| timeline.label(job.id));
                label.map_or_else(|| "job".to_owned(), str::to_owned)
            }
            WaitKind::Frame => {
                let end = timeline.jobs.frame_ends.get(&self.what).copied();
                let recording = timeline.recording();
                recording.frame_name(self.what, end.unwrap_or(0))
            }
            WaitKind::Turn => "turn".to_owned(),
            WaitKind::Sleep => "sleep".to_owned(),
        }
    }
}

/// How many of the waits that were found are shown.
pub(super) fn limit(selection: &Selection, found: &[FoundWait]) -> usize {
    let is_named = found.iter().any(|wait| wait.kind.is_named());
    if !is_named && selection.threads.is_none() {
        selection.limit.min(selection.sleeps)
    } else {
        selection.limit
    }
}

/// The waits that were selected, the worst first, and the number of sleeps that were left out: of threads
/// that mostly sleep. If there are no others, turns stand for them. The recorder's waits are none, unless it
/// is asked for.
pub(super) fn find(
    timeline: &Timeline,
    selection: &Selection,
    says: &[NameHints],
) -> (Vec<FoundWait>, usize) {
    let recorded = RecordedProgram::new(timeline);
    let is_asked = selection.threads.is_some() || selection.processes.is_some();
    let threads = 0..timeline.threads().len() as u32;
    let is_meant = |thread: &u32| {
        let task = timeline.task(*thread);
        let is_seen = is_asked || !recorded.is_recorder(task);
        is_seen && selection.has(task, timeline.process(task))
    };
    let threads: Vec<u32> = threads.filter(is_meant).collect();
    let mut found = Vec::new();
    let mut left_out = 0;
    let deadlines = Deadlines::new(timeline, says);
    if selection.slices.is_empty() {
        for &thread in &threads {
            usual(timeline, says, &deadlines, thread, &mut found);
        }
        found.retain(|wait| wait.is_within(selection));
        if found.is_empty() {
            let is_other = |thread: &u32| recorded.is_other(timeline.task(*thread));
            let (others, program): (Vec<u32>, Vec<u32>) = threads.into_iter().partition(is_other);
            for threads in [program, others] {
                let (mut some, left) = nameless(timeline, selection, &recorded, &threads);
                found.append(&mut some);
                left_out += left;
            }
        }
    } else {
        by_name(timeline, says, &selection.slices, &threads, &mut found);
        for wait in &mut found {
            wait.set_late(&deadlines, says);
        }
    }
    found.retain(|wait| wait.is_within(selection));
    sort(timeline, says, &recorded, &mut found);
    (found, left_out)
}

/// Sleeps of some threads, and the number of those that were left out; without any, turns.
fn nameless(
    timeline: &Timeline,
    selection: &Selection,
    recorded: &RecordedProgram,
    threads: &[u32],
) -> (Vec<FoundWait>, usize) {
    // All sleeps of a thread that was asked for are shown.
    let is_asked = selection.threads.is_some();
    let (mut found, mut of_sleepers) = (Vec::new(), Vec::new());
    for &thread in threads {
        let is_shown = is_asked || !is_sleeper(timeline, thread);
        let list = if is_shown {
            &mut found
        } else {
            &mut of_sleepers
        };
        sleeps(timeline, thread, is_asked, list);
    }
    found.retain(|wait| wait.is_within(selection));
    of_sleepers.retain(|wait| wait.is_within(selection));
    if found.is_empty() && !is_asked {
        for &thread in threads {
            let is_new = recorded.is_program(timeline.task(thread));
            turns(timeline, thread, is_new, &mut found);
        }
        found.retain(|wait| wait.is_within(selection));
    }
    if found.is_empty() {
        (of_sleepers, 0)
    } else {
        (found, of_sleepers.len())
    }
}

/// Waits and frames of our job system, and slices, whose names contain one of these texts. Plans of frames
/// are meant only if a text says so.
fn by_name(
    timeline: &Timeline,
    says: &[NameHints],
    texts: &[String],
    threads: &[u32],
    found: &mut Vec<FoundWait>,
) {
    let is_meant = |name: &str| texts.iter().any(|text| name.contains(text.as_str()));
    let names = timeline.recording().names.iter();
    let meant: Vec<bool> = names.map(is_meant).collect();
    let asks_for_plans = texts.iter().any(|text| text.contains("expected"));
    let is_plan = |slice: &Slice| {
        let says = says.get(slice.name.0 as usize);
        says.and_then(|says| says.planned)
            .is_some_and(|frame| frame.is_expected)
    };
    let is_named = |slice: &Slice| {
        meant.get(slice.name.0 as usize) == Some(&true) && (asks_for_plans || !is_plan(slice))
    };
    for &thread in threads {
        own(
            timeline,
            thread,
            |wait| is_meant(&wait.name(timeline)),
            found,
        );
        slices(timeline, thread, is_named, found);
        let others = timeline.slices.found.of(thread).iter();
        let others = others.filter(|slice| is_named(slice));
        found.extend(others.map(|slice| of_slice(timeline, thread, slice)));
    }
}

/// Puts waits in their order, the worst first, those of the recorded program before all others.
fn sort(
    timeline: &Timeline,
    says: &[NameHints],
    recorded: &RecordedProgram,
    found: &mut [FoundWait],
) {
    for wait in found.iter_mut() {
        wait.rank = rank(timeline, says, wait);
    }
    found.sort_by_key(|wait| {
        let worst = (
            recorded.is_other(wait.task),
            wait.rank,
            std::cmp::Reverse(wait.late),
            std::cmp::Reverse(wait.weight),
        );
        (worst, wait.begin, wait.task, wait.kind)
    });
}

/// The names that [`Selection::slices`] is compared with: of slices, of frames and of awaited jobs.
pub fn names(timeline: &Timeline) -> BTreeSet<String> {
    let mut ours = Vec::new();
    let mut marked = BTreeSet::new();
    for thread in 0..timeline.threads().len() as u32 {
        own(timeline, thread, |_| true, &mut ours);
        let slices = timeline.slices.slices.of(thread).iter();
        let slices = slices.chain(timeline.slices.found.of(thread));
        marked.extend(slices.map(|slice| slice.name));
    }
    let marked = marked.into_iter();
    let marked = marked.map(|name| timeline.recording().names.word(name).to_owned());
    let ours = ours.iter().map(|wait| wait.name(timeline));
    marked.chain(ours).collect()
}

/// Where a wait belongs. Waits that were asked for by name are ranked, too.
fn rank(timeline: &Timeline, says: &[NameHints], wait: &FoundWait) -> Rank {
    let name = timeline.name(wait.task);
    let program = timeline.program(wait.task).unwrap_or(&name);
    let says = match wait.kind {
        WaitKind::Slice => says.get(wait.what as usize).copied().unwrap_or_default(),
        _ => NameHints::default(),
    };
    let is_server = words::is_display_server(program) || words::is_display_server(&name);
    if words::is_of_kernel(&name) || says.display {
        Rank::Driver
    } else if wait.kind == WaitKind::Turn && !words::is_app(program) {
        Rank::System
    } else {
        match (wait.late.is_some(), is_server) {
            (true, false) => Rank::LateFrame,
            (true, true) => Rank::LateDisplay,
            (false, false) => Rank::Usual,
            (false, true) => Rank::Display,
        }
    }
}

/// A thread sleeps nearly all the time if it runs, or could, for less than one part in this many.
const AWAKE_PART: u64 = 20;

/// Whether a thread is one of the kernel's own, or sleeps nearly all the time: few of its sleeps are waits.
fn is_sleeper(timeline: &Timeline, thread: u32) -> bool {
    let task = timeline.task(thread);
    let spent = timeline.spent(task);
    let (begin, end) = timeline.span();
    let awake = spent.running + spent.runnable;
    words::is_of_kernel(&timeline.name(task)) || awake.0 * AWAKE_PART < (end - begin).0
}

/// Waits for jobs, frames, slices whose names mean one of the two, and late frames of the frame timeline.
fn usual(
    timeline: &Timeline,
    says: &[NameHints],
    deadlines: &Deadlines,
    thread: u32,
    found: &mut Vec<FoundWait>,
) {
    own(timeline, thread, |_| true, found);
    let of = |slice: &Slice| says.get(slice.name.0 as usize).copied().unwrap_or_default();
    let is_usual = |slice: &Slice| {
        let says = of(slice);
        says.waits || says.frame || says.planned.is_some_and(|frame| frame.is_missed)
    };
    let before = found.len();
    slices(timeline, thread, is_usual, found);
    for wait in &mut found[before..] {
        wait.set_late(deadlines, says);
    }
}

impl FoundWait {
    /// Finds out how late it was, if it is a slice.
    fn set_late(&mut self, deadlines: &Deadlines, says: &[NameHints]) {
        let says = says.get(self.what as usize);
        if let (WaitKind::Slice, Some(says)) = (self.kind, says) {
            let slice = Slice {
                begin: self.begin,
                end: self.end,
                name: crate::Name(self.what as u32),
                depth: 0,
            };
            self.late = deadlines.late(self.thread, &slice, says);
        }
    }
}

/// Waits for jobs and frames of our job system.
fn own(
    timeline: &Timeline,
    thread: u32,
    wanted: impl Fn(&FoundWait) -> bool,
    found: &mut Vec<FoundWait>,
) {
    let task = timeline.task(thread);
    let span = |kind, span: &crate::timeline::Span| FoundWait {
        thread,
        task,
        kind,
        begin: span.begin,
        end: span.end,
        weight: span.end - span.begin,
        late: None,
        rank: Rank::Usual,
        what: span.what,
    };
    let waits = timeline.jobs.waits.of(thread).iter();
    let waits = waits.map(|wait| span(WaitKind::Job, wait));
    let frames = timeline.jobs.frames.of(thread).iter();
    let frames = frames.map(|frame| span(WaitKind::Frame, frame));
    found.extend(waits.chain(frames).filter(wanted));
}

fn slices(
    timeline: &Timeline,
    thread: u32,
    wanted: impl Fn(&Slice) -> bool,
    found: &mut Vec<FoundWait>,
) {
    let slices = timeline.slices.slices.of(thread).iter();
    let slices = slices.filter(|slice| wanted(slice));
    found.extend(slices.map(|slice| of_slice(timeline, thread, slice)));
}

fn of_slice(timeline: &Timeline, thread: u32, slice: &Slice) -> FoundWait {
    FoundWait {
        thread,
        task: timeline.task(thread),
        kind: WaitKind::Slice,
        begin: slice.begin,
        end: slice.end,
        weight: slice.end - slice.begin,
        late: None,
        rank: Rank::Usual,
        what: slice.name.0.into(),
    }
}

/// The turns of a thread that is none of the kernel's.
fn turns(timeline: &Timeline, thread: u32, is_new: bool, found: &mut Vec<FoundWait>) {
    let task = timeline.task(thread);
    if words::is_of_kernel(&timeline.name(task)) {
        return;
    }
    let turns = super::turns::turns(timeline, thread, is_new).into_iter();
    found.extend(turns.map(|turn| FoundWait {
        thread,
        task,
        kind: WaitKind::Turn,
        begin: turn.begin,
        end: turn.end,
        late: None,
        weight: turn.lost,
        rank: Rank::Usual,
        what: 0,
    }));
}

/// A run that is shorter than this, and ends because the thread loses its CPU, got nowhere: to switch to a
/// thread takes about as long.
const NOWHERE: Nanos = Nanos::from_micros(5);

/// A thread's sleeps that ended: all of them, or those that another thread ended. (A thread that waits for a
/// timer knows how long it does.) A sleep continues through runs that got nowhere.
fn sleeps(timeline: &Timeline, thread: u32, all: bool, found: &mut Vec<FoundWait>) {
    let task = timeline.task(thread);
    let mut sleep: Option<(Nanos, bool)> = None;
    let mut stays = timeline.stays(task).peekable();
    while let Some(stay) = stays.next() {
        if stay.state.is_asleep() {
            if sleep.is_none() {
                let (waker, _) = wakers::waker(timeline, thread, stay);
                sleep = Some((stay.begin, matches!(waker, Waker::Thread(_))));
            }
            continue;
        }
        if !matches!(stay.state, State::Running(_) | State::Awake) {
            continue;
        }
        let next = stays.peek().and_then(|next| next.state.ready());
        let is_preempted = next == Some(Since::Preempted);
        if is_preempted && stay.end - stay.begin < NOWHERE {
            continue;
        }
        if let Some((begin, by_thread)) = sleep.take()
            && (all || by_thread)
        {
            found.push(FoundWait {
                thread,
                task,
                kind: WaitKind::Sleep,
                begin,
                end: stay.begin,
                weight: stay.begin - begin,
                late: None,
                rank: Rank::Usual,
                what: 0,
            });
        }
    }
}
