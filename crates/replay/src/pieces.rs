//! Pieces of work, and cutting them.
//!
//! A thread that looks for jobs between pieces of its own work lets a job wait for as long as a piece is. If
//! the pieces were shorter, the job would be done sooner. A recording does not tell what is in a program's
//! queues, but it tells which threads wait: one that sleeps until the end of a job has asked for it. So
//! behind each part of a piece that is cut, the program does the job of each thread that waits just then.
//! Where the recording has jobs, between two pieces, the program has these looks in their place. A job takes
//! the time that such jobs took in the recording, in the median.
//!
//! Where a thread is woken as soon as a piece ends, it may have waited for the piece itself, and a part of
//! that is of no use to it. Such wake-ups stay where they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use event::Nanos;
use sim::scenario::Segment;

use crate::program::{Program, ProgramThread};

/// Less work than this between the end of a piece and a wake-up is no job, but the piece's own end.
const JOB_MIN: Nanos = Nanos::from_micros(20);

/// The first words of the name of a piece, in the segments at its two ends.
const WORDS: &str = "piece: ";

/// The name of a piece with this name in the recording.
pub(crate) fn mark(name: &str) -> String {
    format!("{WORDS}{name}")
}

/// Cuts the pieces with this text in their names in so many parts each.
///
/// # Errors
/// If there are none, or none with a job behind it that a thread waits for.
pub(crate) fn cut(program: &mut Program, text: &str, parts: u32) -> Result<(), String> {
    let mut has_pieces = false;
    let mut are_awaited = false;
    let mut said = Vec::new();
    for thread in &mut program.threads {
        let mut pieces = Pieces::of(thread, text);
        has_pieces |= !pieces.all.is_empty();
        let mut lengths = pieces.lengths();
        let all = lengths.len();
        lengths.retain(|_, (length, _)| *length >= JOB_MIN);
        are_awaited |= lengths.len() < all;
        pieces.jobs.retain(|job| lengths.contains_key(&job.waiter));
        if lengths.is_empty() {
            continue;
        }
        for (waiter, (length, count)) in &lengths {
            said.push(format!(
                "between two pieces {} works for {waiter} if that waits for it, each time for {length}, the \
                 median of {count} times in the recording",
                thread.name
            ));
        }
        pieces.cut(thread, parts, &lengths);
    }
    if !has_pieces {
        return Err(format!("cut: no slice has {text:?} in its name"));
    }
    if said.is_empty() && are_awaited {
        return Err(format!(
            "cut: a thread is woken as soon as slices with {text:?} in their names end, so the piece itself \
             may be what is waited for; name slices behind which a thread looks for other work"
        ));
    }
    if said.is_empty() {
        return Err(format!(
            "cut: behind no slice with {text:?} in its name a thread does something that another one waits \
             for"
        ));
    }
    program.assumed.extend(said);
    Ok(())
}

/// What is done for a thread that waits, and how often that was in the recording.
type Lengths = BTreeMap<Arc<str>, (Nanos, usize)>;

/// Positions of segments: from the first to the one behind the last.
type Range = std::ops::Range<usize>;

/// The pieces of a thread.
struct Pieces {
    /// Their segments, with the marks at both ends.
    all: Vec<Range>,
    /// The jobs behind them.
    jobs: Vec<Job>,
}

/// Something that is done behind a piece, for a thread that waits.
struct Job {
    segments: Range,
    waiter: Arc<str>,
    work: Nanos,
}

impl Pieces {
    fn of(thread: &ProgramThread, text: &str) -> Pieces {
        let segments = &thread.segments;
        let mut all: Vec<Range> = Vec::new();
        let mut open: Option<usize> = None;
        for (at, segment) in segments.iter().enumerate() {
            match segment {
                // The outermost of nested ones.
                Segment::Begin(name) if open.is_none() && is_one(name, text) => open = Some(at),
                Segment::End(name) => {
                    let ends = |begin: &usize| matches!(&segments[*begin], Segment::Begin(of) if of == name);
                    if let Some(begin) = open.take_if(|begin| ends(begin)) {
                        all.push(begin..at + 1);
                    }
                }
                _ => {}
            }
        }
        let nexts = all.iter().skip(1).map(|next| next.start);
        let nexts = nexts.chain([segments.len()]);
        let jobs = all.iter().zip(nexts);
        let jobs = jobs.flat_map(|(piece, next)| jobs_in(segments, piece.end..next));
        Pieces {
            jobs: jobs.collect(),
            all,
        }
    }

    fn lengths(&self) -> Lengths {
        let mut works: BTreeMap<Arc<str>, Vec<Nanos>> = BTreeMap::new();
        for job in &self.jobs {
            works.entry(job.waiter.clone()).or_default().push(job.work);
        }
        let median = |(waiter, mut works): (Arc<str>, Vec<Nanos>)| {
            works.sort_unstable();
            (waiter, (works[works.len() / 2], works.len()))
        };
        works.into_iter().map(median).collect()
    }

    /// Cuts them, and has the thread look for jobs behind each part.
    fn cut(&self, thread: &mut ProgramThread, parts: u32, lengths: &Lengths) {
        let looks = || {
            lengths.iter().map(|(waiter, (work, _))| Segment::Serve {
                waiter: waiter.clone(),
                work: *work,
            })
        };
        let mut cuts: BTreeMap<usize, Vec<Nanos>> = BTreeMap::new();
        for piece in &self.all {
            cuts.extend(cuts_of(&thread.segments, piece, parts));
        }
        let mut pieces = self.all.iter().peekable();
        let mut jobs = self.jobs.iter().peekable();
        thread.rebuild(|at, segment, segments| {
            while jobs.next_if(|job| job.segments.end <= at).is_some() {}
            let is_job = jobs.peek().is_some_and(|job| job.segments.contains(&at));
            match segment {
                // What is measured stays.
                Segment::Work(_) | Segment::Wake(_) if is_job => {}
                Segment::Work(length) => {
                    let mut from = Nanos::ZERO;
                    for cut in cuts.remove(&at).unwrap_or_default() {
                        segments.push(Segment::Work(cut - from));
                        segments.extend(looks());
                        from = cut;
                    }
                    if from < length {
                        segments.push(Segment::Work(length - from));
                    }
                }
                segment => segments.push(segment),
            }
            if pieces.next_if(|piece| piece.end == at + 1).is_some() {
                segments.extend(looks());
            }
        });
    }
}

fn is_one(name: &str, text: &str) -> bool {
    name.strip_prefix(WORDS)
        .is_some_and(|name| name.contains(text))
}

/// What is done for other threads in these segments, if the thread does not rest there.
fn jobs_in(segments: &[Segment], range: Range) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut work = Nanos::ZERO;
    let mut start = range.start;
    for at in range {
        match &segments[at] {
            Segment::Work(length) => work += *length,
            Segment::Wake(waiter) => {
                jobs.push(Job {
                    segments: start..at + 1,
                    waiter: waiter.clone(),
                    work: std::mem::take(&mut work),
                });
                start = at + 1;
            }
            Segment::Begin(_) | Segment::End(_) | Segment::NextCpu(_) | Segment::Cpu(_) => {}
            _ => break,
        }
    }
    jobs
}

/// Where the segments of a piece are cut, each by the work in it until then.
fn cuts_of(segments: &[Segment], piece: &Range, parts: u32) -> Vec<(usize, Vec<Nanos>)> {
    let works = piece.clone().filter_map(|at| match segments[at] {
        Segment::Work(length) => Some((at, length)),
        _ => None,
    });
    let works: Vec<(usize, Nanos)> = works.collect();
    let all: u64 = works.iter().map(|(_, length)| length.0).sum();
    let mut cuts = (1..u64::from(parts)).map(|part| all * part / u64::from(parts));
    let mut next = cuts.next();
    let mut before = 0;
    let mut found = Vec::new();
    for (at, length) in works {
        let mut here = Vec::new();
        while let Some(cut) = next.filter(|cut| *cut <= before + length.0) {
            here.push(Nanos(cut - before));
            next = cuts.next();
        }
        found.push((at, here));
        before += length.0;
    }
    found
}
