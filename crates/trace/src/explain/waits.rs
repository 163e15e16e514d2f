//! The stretches of time that are waits.

use std::collections::BTreeSet;

use event::{Nanos, Task};

use super::words::NameHints;
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
    /// The slice's name, the job's position, the frame's number.
    what: u64,
}

impl FoundWait {
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
            WaitKind::Sleep => "sleep".to_owned(),
        }
    }
}

/// The number of sleeps of threads that were not asked for: many of the long ones are of threads with nothing
/// to do.
const SLEEPS: usize = 200;

/// The waits that were selected, the longest first, and the number of those that were left out.
pub(super) fn find(
    timeline: &Timeline,
    selection: &Selection,
    says: &[NameHints],
) -> (Vec<FoundWait>, usize) {
    let chosen: Option<BTreeSet<u32>> = selection.threads.as_ref().map(|tasks| {
        let threads = tasks.iter().filter_map(|&task| timeline.position(task));
        threads.collect()
    });
    let threads = 0..timeline.threads().len() as u32;
    let threads: Vec<u32> = threads
        .filter(|thread| chosen.as_ref().is_none_or(|chosen| chosen.contains(thread)))
        .collect();
    let mut found = Vec::new();
    let mut limit = selection.limit;
    if selection.slices.is_empty() {
        for &thread in &threads {
            usual(timeline, says, thread, &mut found);
        }
        if found.is_empty() {
            if chosen.is_none() {
                limit = limit.min(SLEEPS);
            }
            for &thread in &threads {
                sleeps(timeline, thread, chosen.is_some(), &mut found);
            }
        }
    } else {
        let texts = &selection.slices;
        let is_meant = |name: &str| texts.iter().any(|text| name.contains(text.as_str()));
        let names = timeline.recording().names.iter();
        let meant: Vec<bool> = names.map(is_meant).collect();
        let is_named = |slice: &Slice| meant.get(slice.name.0 as usize) == Some(&true);
        for &thread in &threads {
            own(
                timeline,
                thread,
                |wait| is_meant(&wait.name(timeline)),
                &mut found,
            );
            slices(timeline, thread, is_named, &mut found);
            let others = timeline.slices.found.of(thread).iter();
            let others = others.filter(|slice| is_named(slice));
            found.extend(others.map(|slice| of_slice(timeline, thread, slice)));
        }
    }
    found.retain(|wait| wait.begin < wait.end);
    found.sort_by_key(|wait| {
        let length = wait.end - wait.begin;
        (std::cmp::Reverse(length), wait.begin, wait.task, wait.kind)
    });
    let omitted = found.len().saturating_sub(limit);
    found.truncate(limit);
    (found, omitted)
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

/// Waits for jobs, frames, and slices whose names mean one of the two.
fn usual(timeline: &Timeline, says: &[NameHints], thread: u32, found: &mut Vec<FoundWait>) {
    own(timeline, thread, |_| true, found);
    let says_so = |slice: &Slice| {
        let says = says.get(slice.name.0 as usize);
        says.is_some_and(|says| says.waits || says.frame)
    };
    slices(timeline, thread, says_so, found);
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
        what: slice.name.0.into(),
    }
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
                what: 0,
            });
        }
    }
}
