//! Jobs of our own job system: the jobs that each waited for, the threads that ran it, and those that waited
//! for it.

use std::collections::HashMap;

use event::{Event, EventKind, Nanos};

use super::dense::{Grouped, NOBODY};
use super::lists::Lists;
use super::nested::{Extent, Nested};

/// The time and the thread of an event of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    pub(crate) time: Nanos,
    pub(crate) thread: u32,
}

/// A job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    /// The number of its label.
    pub(crate) label: Option<u64>,
    pub(crate) created: Option<Moment>,
    pub(crate) ready: Option<Moment>,
    pub(crate) completed: Option<Moment>,
}

/// A part of a job's body, on one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    pub(crate) thread: u32,
    /// The position of the job.
    pub(crate) job: u32,
}

/// A thread's wait for a job, or its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    /// The position of the job, or the number of the frame.
    pub(crate) what: u64,
}

impl Extent for Piece {
    fn extent(&self) -> (Nanos, Nanos) {
        (self.begin, self.end)
    }
}

impl Extent for Span {
    fn extent(&self) -> (Nanos, Nanos) {
        (self.begin, self.end)
    }
}

/// The timeline of the job system's events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs {
    /// In the order of their numbers.
    pub(crate) jobs: Vec<Job>,
    /// By job: the positions of those that had to end before it.
    pub(crate) before: Grouped<u32>,
    /// By job, in the order of their ends.
    pub(crate) pieces: Grouped<Piece>,
    /// By thread, in the order of their beginnings, outer ones first.
    pub(crate) bodies: Nested<Piece>,
    /// By thread, in the order of their beginnings, outer ones first.
    pub(crate) waits: Nested<Span>,
    /// By thread, in the order of their beginnings.
    pub(crate) frames: Grouped<Span>,
    /// By a frame's number: what its end says.
    pub(crate) frame_ends: HashMap<u64, u64>,
    pub(crate) unbegun: u64,
    pub(crate) unfinished: u64,
}

impl Jobs {
    /// The position of a job.
    pub(crate) fn find(&self, id: u64) -> Option<u32> {
        let found = self.jobs.binary_search_by_key(&id, |job| job.id);
        found.ok().map(|at| at as u32)
    }
}

/// The open span of a thread slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpenSpan {
    Body(usize),
    Wait(usize),
    Frame(usize),
}

/// The number of open spans in which an end is looked for: where ends are missing, they pile up.
const DEPTH: usize = 1024;

#[derive(Default)]
struct JobBuilder {
    positions: HashMap<u64, u32>,
    jobs: Vec<Job>,
    before: Vec<(u32, u32)>,
    pieces: Vec<Piece>,
    waits: Vec<(u32, Span)>,
    frames: Vec<(u32, Span)>,
    frame_ends: HashMap<u64, u64>,
    open: HashMap<u32, Vec<OpenSpan>>,
    unbegun: u64,
    last: Nanos,
}

/// Finds jobs. Events come with the positions of their threads, in the order of their times, at which their
/// threads ran; `last` is the end of the recording.
pub(super) fn find(
    events: impl Iterator<Item = (u32, Event)>,
    threads: usize,
    last: Nanos,
) -> Jobs {
    let mut builder = JobBuilder {
        last,
        ..JobBuilder::default()
    };
    for (thread, event) in events {
        builder.take(thread, &event);
    }
    builder.finish(threads)
}

impl JobBuilder {
    fn job(&mut self, id: u64) -> u32 {
        let jobs = &mut self.jobs;
        *self.positions.entry(id).or_insert_with(|| {
            jobs.push(Job {
                id,
                label: None,
                created: None,
                ready: None,
                completed: None,
            });
            jobs.len() as u32 - 1
        })
    }

    fn take(&mut self, thread: u32, event: &Event) {
        let time = event.time;
        let moment = Some(Moment { time, thread });
        match event.kind {
            EventKind::Created => {
                let job = self.job(event.job) as usize;
                self.jobs[job].label = Some(event.arg);
                self.jobs[job].created = moment;
            }
            EventKind::Edge => {
                let (job, other) = (self.job(event.job), self.job(event.arg));
                self.before.push((job, other));
            }
            EventKind::Ready => {
                let job = self.job(event.job) as usize;
                self.jobs[job].ready = moment;
            }
            EventKind::Completed => {
                let job = self.job(event.job) as usize;
                self.jobs[job].completed = moment;
            }
            EventKind::Begin => {
                let job = self.job(event.job);
                let (begin, end) = (time, self.last.max(time));
                self.begin(event.slot, OpenSpan::Body(self.pieces.len()));
                self.pieces.push(Piece {
                    begin,
                    end,
                    thread,
                    job,
                });
            }
            EventKind::WaitBegin => {
                let what = self.job(event.job).into();
                self.begin(event.slot, OpenSpan::Wait(self.waits.len()));
                self.waits.push((thread, self.span(time, what)));
            }
            EventKind::FrameBegin => {
                self.begin(event.slot, OpenSpan::Frame(self.frames.len()));
                self.frames.push((thread, self.span(time, event.job)));
            }
            EventKind::End | EventKind::WaitEnd | EventKind::FrameEnd => self.end(event),
            _ => {}
        }
    }

    fn span(&self, begin: Nanos, what: u64) -> Span {
        let end = self.last.max(begin);
        Span { begin, end, what }
    }

    fn begin(&mut self, slot: u32, what: OpenSpan) {
        self.open.entry(slot).or_default().push(what);
    }

    /// Ends the innermost span that this event ends, and bodies and waits inside of it.
    fn end(&mut self, event: &Event) {
        let Some(open) = self.open.get_mut(&event.slot) else {
            self.unbegun += 1;
            return;
        };
        let fits = |what: &OpenSpan| match (*what, event.kind) {
            (OpenSpan::Body(at), EventKind::End) => {
                self.jobs[self.pieces[at].job as usize].id == event.job
            }
            (OpenSpan::Wait(at), EventKind::WaitEnd) => {
                self.jobs[self.waits[at].1.what as usize].id == event.job
            }
            (OpenSpan::Frame(at), EventKind::FrameEnd) => self.frames[at].1.what == event.job,
            _ => false,
        };
        let inner = open.len().saturating_sub(DEPTH);
        let Some(found) = open[inner..].iter().rposition(fits) else {
            self.unbegun += 1;
            return;
        };
        let found = inner + found;
        // Frames do not nest with the rest: a wait that began in one may continue after it.
        let ended: Vec<OpenSpan> = match open[found] {
            OpenSpan::Frame(_) => vec![open.remove(found)],
            _ => open.split_off(found),
        };
        for what in ended {
            match what {
                OpenSpan::Body(at) => self.pieces[at].end = event.time,
                OpenSpan::Wait(at) => self.waits[at].1.end = event.time,
                OpenSpan::Frame(at) if event.kind == EventKind::FrameEnd => {
                    self.frames[at].1.end = event.time;
                    self.frame_ends.insert(event.job, event.arg);
                }
                OpenSpan::Frame(_) => open.push(what),
            }
        }
    }

    fn finish(self, threads: usize) -> Jobs {
        let unfinished: usize = self.open.values().map(Vec::len).sum();
        // From the order of appearance to the order of numbers.
        let mut order: Vec<u32> = (0..self.jobs.len() as u32).collect();
        order.sort_unstable_by_key(|&at| self.jobs[at as usize].id);
        let mut place = vec![NOBODY; order.len()];
        for (to, &from) in order.iter().enumerate() {
            place[from as usize] = to as u32;
        }
        let place = |job: u32| place[job as usize];
        let jobs: Vec<Job> = order.iter().map(|&at| self.jobs[at as usize]).collect();
        let edges = self.before.iter();
        let before: Vec<(u32, u32)> = edges.map(|&(job, of)| (place(job), place(of))).collect();
        let pieces = self.pieces.iter().map(|piece| Piece {
            job: place(piece.job),
            ..*piece
        });
        let bodies: Vec<(u32, Piece)> = pieces.map(|piece| (piece.thread, piece)).collect();
        let mut by_end: Vec<(u32, Piece)> = bodies
            .iter()
            .map(|(_, piece)| (piece.job, *piece))
            .collect();
        by_end.sort_by_key(|(_, piece)| piece.end);
        let waits = self.waits.iter().map(|&(thread, wait)| {
            let what = place(wait.what as u32).into();
            (thread, Span { what, ..wait })
        });
        let waits: Vec<(u32, Span)> = waits.collect();
        Jobs {
            before: Grouped::new(jobs.len(), &before),
            pieces: Grouped::new(jobs.len(), &by_end),
            bodies: Nested::new(Lists::new(bodies)),
            waits: Nested::new(Lists::new(waits)),
            frames: Grouped::new(threads, &self.frames),
            frame_ends: self.frame_ends,
            unbegun: self.unbegun,
            unfinished: unfinished as u64,
            jobs,
        }
    }
}
