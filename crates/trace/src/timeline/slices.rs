//! Slices of programs, each with its beginning and its end.

use std::collections::HashMap;

use event::{Nanos, Task};

use super::dense::{Dense, Grouped, NOBODY};
use super::lists::Lists;
use super::nested::{Extent, Nested};
use crate::{Loss, Losses, Mark, MarkKind, Name, Recording};

/// A slice of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Its beginning.
    pub begin: Nanos,
    /// Its end.
    pub end: Nanos,
    /// Its name, in the recording's [`names`](crate::Recording::names).
    pub name: Name,
    /// The number of slices of its thread around it.
    pub depth: u32,
}

impl Extent for Slice {
    fn extent(&self) -> (Nanos, Nanos) {
        (self.begin, self.end)
    }
}

/// A slice that may end on another thread than it began on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Async {
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    from: u32,
    /// The thread that ended it; [`NOBODY`]: none did.
    pub(crate) to: u32,
}

/// A point where an arrow passes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Flow {
    pub(crate) id: u64,
    pub(crate) time: Nanos,
    pub(crate) thread: u32,
}

/// The slices and arrows of a recording's marks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slices {
    /// By thread, in the order of their beginnings, outer ones first.
    pub(crate) slices: Nested<Slice>,
    /// By thread: the findings of an earlier explanation in the file. They are about the run's events and not
    /// part of them, so they are ignored unless they are asked for by name.
    pub(crate) found: Grouped<Slice>,
    /// By the thread that began them, in the order of their ends.
    pub(crate) asyncs: Grouped<Async>,
    /// In the order of their numbers, then of time.
    pub(crate) flows: Vec<Flow>,
}

/// The slices up to the latest mark.
#[derive(Default)]
struct SliceBuilder {
    slices: Lists<Slice>,
    /// By thread: the positions of its open slices, the innermost last.
    open: Vec<Vec<usize>>,
    found: Vec<(u32, Slice)>,
    asyncs: Vec<(u32, Async)>,
    /// By process, name and number: the slices that have begun.
    waiting: HashMap<(u64, Name, u64), Async>,
    flows: Vec<Flow>,
    unbegun: u64,
}

/// Finds slices; marks are in the order of their times. Annotations of threads count as slices, too.
pub(super) fn find(
    recording: &mut Recording,
    tasks: &mut Dense,
    processes: impl Fn(Task) -> u64,
    end: Nanos,
    losses: &mut Losses,
) -> Slices {
    let mut builder = SliceBuilder::default();
    for mark in &recording.marks {
        let thread = tasks.position(mark.on.0);
        builder.take(mark, thread, &processes, end);
    }
    let unfinished: usize = builder.open.iter().map(Vec::len).sum();
    losses.add(Loss::Unbegun, builder.unbegun);
    losses.add(
        Loss::Unfinished,
        (unfinished + builder.waiting.len()) as u64,
    );
    for note in &recording.annotations {
        let Some(on) = note.on else { continue };
        let slice = Slice {
            begin: note.begin,
            end: note.end.max(note.begin),
            name: recording.names.number(&note.name),
            depth: 0,
        };
        let thread = tasks.position(on.0);
        if note.is_found() {
            builder.found.push((thread, slice));
        } else {
            builder.slices.push(thread, slice);
        }
    }
    builder.finish(tasks.numbers().len(), !recording.annotations.is_empty())
}

impl SliceBuilder {
    fn take(&mut self, mark: &Mark, thread: u32, process: &impl Fn(Task) -> u64, end: Nanos) {
        let time = mark.time;
        if self.open.len() <= thread as usize {
            self.open.resize_with(thread as usize + 1, Vec::new);
        }
        let open = &mut self.open[thread as usize];
        match mark.what {
            MarkKind::Begin(name) => {
                let slice = Slice {
                    begin: time,
                    end: end.max(time),
                    name,
                    depth: open.len() as u32,
                };
                open.push(self.slices.of(thread).len());
                self.slices.push(thread, slice);
            }
            MarkKind::End => match open.pop() {
                Some(at) => self.slices.of_mut(thread)[at].end = time,
                None => self.unbegun += 1,
            },
            MarkKind::AsyncBegin { name, cookie } => {
                let slice = Async {
                    begin: time,
                    end,
                    from: thread,
                    to: NOBODY,
                };
                self.waiting.insert((process(mark.on), name, cookie), slice);
            }
            MarkKind::AsyncEnd { name, cookie } => {
                match self.waiting.remove(&(process(mark.on), name, cookie)) {
                    Some(slice) => {
                        let slice = Async {
                            end: time,
                            to: thread,
                            ..slice
                        };
                        self.asyncs.push((slice.from, slice));
                    }
                    None => self.unbegun += 1,
                }
            }
            MarkKind::Flow { id, .. } => self.flows.push(Flow { id, time, thread }),
            MarkKind::Instant(_) => {}
        }
    }

    fn finish(mut self, threads: usize, mixed: bool) -> Slices {
        let mut slices = self.slices;
        if mixed {
            // Of two that begin together, the longer one is around the other one.
            slices.sort_each(|a: &Slice, b| a.begin.cmp(&b.begin).then(b.end.cmp(&a.end)));
        }
        self.flows.sort_unstable();
        Slices {
            slices: Nested::new(slices),
            found: Grouped::new(threads, &self.found),
            asyncs: Grouped::new(threads, &self.asyncs),
            flows: self.flows,
        }
    }
}
