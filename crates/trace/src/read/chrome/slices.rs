//! The slices and marks of threads, brought into an order in which slices nest.
//!
//! Slices are told with both ends (`X`) or as a beginning and an end, in any order. Of those that begin at
//! one time the longer is outside; a slice that ends after the one around it is cut to it. Instants and
//! arrows of one time with a beginning are inside of the slice if they come after it in the file.

use std::collections::{BTreeMap, HashMap};

use event::Nanos;

use crate::read::builder::Builder;
use crate::{Loss, MarkKind, Name};

/// The key that tells apart slices that may end anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// 0: of any process.
    pub(super) pid: u32,
    pub(super) category: Name,
    pub(super) name: Option<Name>,
    pub(super) id: u64,
}

/// A kind of event without a length.
#[derive(Clone, Copy, Debug)]
pub(super) enum PointKind {
    Instant(Name),
    AsyncBegin(Key, Name),
    AsyncEnd(Key),
    Flow {
        id: u64,
        ends: bool,
        /// Whether it belongs to the next slice that begins, not to the open one.
        to_next: bool,
    },
}

struct ChromeSlice {
    begin: u64,
    /// None: the file does not say.
    end: Option<u64>,
    name: Name,
    order: usize,
}

struct Point {
    time: u64,
    order: usize,
    what: PointKind,
}

/// The slices and marks of a thread.
#[derive(Default)]
struct ThreadSlices {
    slices: Vec<ChromeSlice>,
    points: Vec<Point>,
    /// Beginnings and ends that are not paired yet: time, place in the file, and the name of a beginning.
    edges: Vec<(u64, usize, Option<Name>)>,
}

/// The slices and marks of all threads.
#[derive(Default)]
pub(super) struct ChromeSlices {
    threads: BTreeMap<u32, ThreadSlices>,
    values: Vec<TimedHalf>,
    count: usize,
}

/// A mark on its way.
type TimedHalf = (u64, u32, Half);

/// A mark, or half of a slice whose other half may be another thread's.
#[derive(Clone, Copy)]
enum Half {
    Mark(MarkKind),
    Begin(Key, Name),
    End(Key),
    /// Of a counter of this process.
    Value(u32, Name, i64),
}

impl ChromeSlices {
    fn of(&mut self, tid: u32) -> (&mut ThreadSlices, usize) {
        self.count += 1;
        (self.threads.entry(tid).or_default(), self.count)
    }

    pub(super) fn begin(&mut self, tid: u32, time: u64, name: Name) {
        let (said, order) = self.of(tid);
        said.edges.push((time, order, Some(name)));
    }

    pub(super) fn end(&mut self, tid: u32, time: u64) {
        let (said, order) = self.of(tid);
        said.edges.push((time, order, None));
    }

    pub(super) fn whole(&mut self, tid: u32, begin: u64, end: u64, name: Name) {
        let (said, order) = self.of(tid);
        let end = Some(end);
        said.slices.push(ChromeSlice {
            begin,
            end,
            name,
            order,
        });
    }

    pub(super) fn say(&mut self, tid: u32, time: u64, what: PointKind) {
        let (said, order) = self.of(tid);
        said.points.push(Point { time, order, what });
    }

    /// A counter of a process has this value from then on.
    pub(super) fn value(&mut self, pid: u32, time: u64, name: Name, value: i64) {
        self.values.push((time, 0, Half::Value(pid, name, value)));
    }

    /// Tells the builder everything.
    pub(super) fn tell(self, builder: &mut Builder) {
        let mut told = self.values;
        for (tid, mut said) in self.threads {
            said.pair(builder);
            said.tell(builder, tid, &mut told);
        }
        told.sort_by_key(|told| told.0);
        let mut open: HashMap<Key, Vec<(Name, u64)>> = HashMap::new();
        let mut cookies = 0;
        for (time, tid, what) in told {
            let what = match what {
                Half::Mark(what) => what,
                Half::Value(pid, name, value) => {
                    builder.value(Nanos(time), pid, name, value);
                    continue;
                }
                Half::Begin(key, name) => {
                    // The file's number is one of a category; this one is one of all.
                    cookies += 1;
                    let cookie = cookies;
                    open.entry(key).or_default().push((name, cookie));
                    MarkKind::AsyncBegin { name, cookie }
                }
                Half::End(key) => match open.get_mut(&key).and_then(Vec::pop) {
                    Some((name, cookie)) => MarkKind::AsyncEnd { name, cookie },
                    None => {
                        builder.lose(Loss::Unbegun, 1);
                        continue;
                    }
                },
            };
            match builder.task(tid) {
                Some(on) => builder.mark(Nanos(time), on, what),
                None => builder.lose(Loss::BadFields, 1),
            }
        }
    }
}

impl ThreadSlices {
    /// Makes slices of beginnings and ends.
    fn pair(&mut self, builder: &mut Builder) {
        self.edges.sort_by_key(|edge| edge.0);
        let mut open: Vec<ChromeSlice> = Vec::new();
        for &(time, order, name) in &self.edges {
            match (name, open.pop()) {
                (Some(name), outer) => {
                    open.extend(outer);
                    open.push(ChromeSlice {
                        begin: time,
                        end: None,
                        name,
                        order,
                    });
                }
                (None, Some(slice)) => self.slices.push(ChromeSlice {
                    end: Some(time),
                    ..slice
                }),
                (None, None) => builder.lose(Loss::Unbegun, 1),
            }
        }
        self.slices.append(&mut open);
    }

    /// Puts everything in an order in which slices nest.
    fn tell(mut self, builder: &mut Builder, tid: u32, told: &mut Vec<TimedHalf>) {
        let end_of = |slice: &ChromeSlice| slice.end.unwrap_or(u64::MAX);
        self.slices
            .sort_by_key(|slice| (slice.begin, u64::MAX - end_of(slice), slice.order));
        self.points.sort_by_key(|point| (point.time, point.order));
        let mut open: Vec<u64> = Vec::new();
        let mut points = self.points.into_iter().peekable();
        // Arrows that wait for the next slice.
        let mut waiting: Vec<MarkKind> = Vec::new();
        let mark = |time, what| (time, tid, Half::Mark(what));
        // Of one time, a slice is as late in the file as all slices around it.
        let mut latest = (0, 0);
        for slice in &self.slices {
            latest = if latest.0 == slice.begin {
                (slice.begin, slice.order.max(latest.1))
            } else {
                (slice.begin, slice.order)
            };
            while let Some(point) = points.next_if(|point| (point.time, point.order) < latest) {
                close(&mut open, point.time, false, tid, told);
                put(point, tid, &mut waiting, told);
            }
            close(&mut open, slice.begin, true, tid, told);
            let mut end = end_of(slice);
            if let Some(outer) = open.last().filter(|outer| **outer < end) {
                end = *outer;
                builder.lose(Loss::Clamped, 1);
            }
            told.push(mark(slice.begin, MarkKind::Begin(slice.name)));
            told.extend(waiting.drain(..).map(|what| mark(slice.begin, what)));
            open.push(end);
        }
        for point in points {
            close(&mut open, point.time, false, tid, told);
            put(point, tid, &mut waiting, told);
        }
        close(&mut open, u64::MAX - 1, true, tid, told);
        // No slice came any more.
        builder.lose(Loss::Unbegun, waiting.len() as u64);
        builder.lose(Loss::Unfinished, open.len() as u64);
    }
}

/// Ends slices that end before this time, or, if `also_now`, at it.
fn close(open: &mut Vec<u64>, time: u64, also_now: bool, tid: u32, told: &mut Vec<TimedHalf>) {
    while let Some(end) = open.pop_if(|end| *end < time || also_now && *end == time) {
        told.push((end, tid, Half::Mark(MarkKind::End)));
    }
}

fn put(point: Point, tid: u32, waiting: &mut Vec<MarkKind>, told: &mut Vec<TimedHalf>) {
    let what = match point.what {
        PointKind::Instant(name) => Half::Mark(MarkKind::Instant(name)),
        PointKind::AsyncBegin(key, name) => Half::Begin(key, name),
        PointKind::AsyncEnd(key) => Half::End(key),
        PointKind::Flow { id, ends, to_next } => {
            let flow = MarkKind::Flow { id, ends };
            if to_next {
                return waiting.push(flow);
            }
            Half::Mark(flow)
        }
    };
    told.push((point.time, tid, what));
}
