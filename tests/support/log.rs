//! The rules that every recorded run obeys, whatever the program did.
//!
//! - A job is created once, and completed once, after that; a slot's next job is created only when
//!   the last one is completed, with the next generation.
//! - Bodies run between the two, begin and end in pairs that nest on each thread slot; a cancelled job's
//!   never begins.
//! - A job that an edge holds back neither begins nor completes before the job that it waits for has
//!   completed.
//! - Waits begin and end in pairs that nest on each thread slot.
//! - A waiter runs only what it waits for ([`check_helping`]).
//! - No job is ready while a worker has nothing to do ([`check_wakes`]).

use std::collections::{BTreeMap, BTreeSet};

use event::{Event, EventKind, Nanos, Why};
use sim::ThreadReport;

/// `arg` of a completed event whose job was cancelled.
const CANCELLED: u64 = 2;

/// The record of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) begins: usize,
    pub(crate) ends: usize,
    pub(crate) first_begin: Option<usize>,
    /// Place in the log, and how it ended.
    pub(crate) completed: Option<(usize, u64)>,
}

/// All jobs of a log by ticket.
pub(crate) struct Lives(pub(crate) BTreeMap<u64, Life>);

impl Lives {
    /// Jobs that were created and are not completed.
    pub(crate) fn unfinished(&self) -> usize {
        self.0
            .values()
            .filter(|life| life.completed.is_none())
            .count()
    }

    pub(crate) fn begins(&self) -> usize {
        self.0.values().map(|life| life.begins).sum()
    }
}

fn index(ticket: u64) -> u64 {
    ticket & ((1 << 24) - 1)
}

fn generation(ticket: u64) -> u64 {
    ticket >> 24
}

/// Follows a log from its start.
#[derive(Default)]
struct Reader {
    lives: BTreeMap<u64, Life>,
    /// By slot: the job that has it, or had it last.
    last: BTreeMap<u64, u64>,
    edges: Vec<(u64, u64)>,
    /// By thread slot: the bodies and waits it is in the middle of.
    bodies: BTreeMap<u32, Vec<u64>>,
    waits: BTreeMap<u32, Vec<u64>>,
}

/// Checks a log; an error says which event is wrong and why.
pub(crate) fn check(events: &[Event]) -> Result<Lives, String> {
    let mut reader = Reader::default();
    for (at, event) in events.iter().enumerate() {
        reader
            .read(at, event)
            .map_err(|why| format!("event {at} {event:?}: {why}"))?;
    }
    reader.check_edges()?;
    let open = |stacks: &BTreeMap<u32, Vec<u64>>| stacks.values().any(|stack| !stack.is_empty());
    if open(&reader.bodies) || open(&reader.waits) {
        return Err("a body or a wait never ended".into());
    }
    Ok(Lives(reader.lives))
}

impl Reader {
    fn read(&mut self, at: usize, event: &Event) -> Result<(), String> {
        let job = event.job;
        match event.kind {
            EventKind::Created => self.create(event)?,
            EventKind::Edge => self.edges.push((event.arg, job)),
            EventKind::Begin => {
                let life = self.live(job)?;
                life.begins += 1;
                life.first_begin.get_or_insert(at);
                self.bodies.entry(event.slot).or_default().push(job);
            }
            EventKind::End => {
                self.live(job)?.ends += 1;
                let top = self.bodies.entry(event.slot).or_default().pop();
                ensure(
                    top == Some(job),
                    "ends what is not the innermost body of its slot",
                )?;
            }
            EventKind::Completed => {
                let life = self.live(job)?;
                ensure(life.begins == life.ends, "completed while a body runs")?;
                ensure(
                    event.arg != CANCELLED || life.begins == 0,
                    "cancelled after it began",
                )?;
                life.completed = Some((at, event.arg));
            }
            EventKind::WaitBegin => self.waits.entry(event.slot).or_default().push(job),
            EventKind::WaitEnd => {
                let top = self.waits.entry(event.slot).or_default().pop();
                ensure(
                    top == Some(job),
                    "ends what is not the innermost wait of its slot",
                )?;
                if event.arg == 0 {
                    let life = self.lives.get(&job).ok_or("waited for an unknown job")?;
                    ensure(life.completed.is_some(), "the wait ended before the job")?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn create(&mut self, event: &Event) -> Result<(), String> {
        let (slot, generation) = (index(event.job), generation(event.job));
        let before = match self.last.insert(slot, event.job) {
            None => 0,
            Some(before) => {
                let done = self
                    .lives
                    .get(&before)
                    .is_some_and(|life| life.completed.is_some());
                ensure(done, "takes the slot of a job that is not completed")?;
                self::generation(before)
            }
        };
        ensure(generation == before + 1, "skips a generation of its slot")?;
        self.lives.insert(event.job, Life::default());
        Ok(())
    }

    /// A job that was created and is not completed.
    fn live(&mut self, job: u64) -> Result<&mut Life, String> {
        let life = self
            .lives
            .get_mut(&job)
            .ok_or("happens to a job that was never created")?;
        ensure(
            life.completed.is_none(),
            "happens to a job that is completed",
        )?;
        Ok(life)
    }

    fn check_edges(&self) -> Result<(), String> {
        for &(from, to) in &self.edges {
            let (Some(before), Some(after)) = (self.lives.get(&from), self.lives.get(&to)) else {
                return Err(format!("an edge of an unknown job: {from:x} to {to:x}"));
            };
            let released = before.completed.map_or(usize::MAX, |(at, _)| at);
            let begun = after.first_begin.unwrap_or(usize::MAX);
            let over = after.completed.map_or(usize::MAX, |(at, _)| at);
            if begun < released || over < released {
                return Err(format!("{to:x} did not wait for {from:x}"));
            }
        }
        Ok(())
    }
}

fn ensure(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

/// Checks that no job was ready while a worker had nothing to do, for longer than `most`: published work is
/// never forgotten, not even for a while. For simulated machines, where steps take no time or little.
///
/// A worker that is in no body and in no wait sleeps or spins. Nothing is asked of spares: they rest.
pub(crate) fn check_wakes(
    events: &[Event],
    threads: &[ThreadReport],
    most: Nanos,
) -> Result<(), String> {
    let spares = events.iter().filter(|event| event.kind == EventKind::Spare);
    let mut idle = Idle {
        spares: spares.map(|event| event.arg as u32).collect(),
        ..Idle::default()
    };
    let mut now = Nanos::ZERO;
    for event in events {
        let is_exact = event.time > now || has_own_stamp(event.kind);
        if is_exact {
            now = now.max(event.time);
            idle.look(now, most)?;
        }
        idle.read(event, threads, is_exact.then_some(now));
    }
    Ok(())
}

/// The ready jobs, and the workers that have nothing to do.
#[derive(Default)]
struct Idle {
    /// Since when, as far as is known; none until the clock is read again.
    ready: BTreeMap<u64, Option<Nanos>>,
    /// By thread slot, without spares.
    workers: BTreeMap<u32, Worker>,
    /// The thread slots of spares, which rest as long as others are free.
    spares: BTreeSet<u32>,
}

/// A worker's thread.
struct Worker {
    /// In how many bodies and waits it is.
    depth: usize,
    /// Since when it is in none, as above.
    since: Option<Nanos>,
    /// When the thread ends.
    end: Nanos,
}

impl Idle {
    /// The log's time is this.
    fn look(&mut self, now: Nanos, most: Nanos) -> Result<(), String> {
        let idle = |worker: &&mut Worker| worker.depth == 0;
        for worker in self.workers.values_mut().filter(idle) {
            worker.since.get_or_insert(now);
        }
        for (job, since) in &mut self.ready {
            let since = *since.get_or_insert(now);
            for (slot, worker) in &self.workers {
                let idle = worker.since.unwrap_or(now).max(since);
                if worker.depth == 0 && now.min(worker.end) > idle + most {
                    return Err(format!(
                        "{job:x} lies there from {idle} to {now}, and the worker on slot {slot} idles"
                    ));
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, event: &Event, threads: &[ThreadReport], now: Option<Nanos>) {
        match event.kind {
            EventKind::Ready => drop(self.ready.insert(event.job, now)),
            EventKind::Claimed => drop(self.ready.remove(&event.job)),
            EventKind::SlotTaken if !self.spares.contains(&event.slot) => {
                let thread = &threads[event.arg as usize - 1];
                let worker = Worker {
                    depth: 0,
                    since: None,
                    end: thread.ended,
                };
                if thread.name.starts_with("paceline") {
                    self.workers.insert(event.slot, worker);
                }
            }
            EventKind::Begin | EventKind::WaitBegin => {
                if let Some(worker) = self.workers.get_mut(&event.slot) {
                    worker.depth += 1;
                }
            }
            EventKind::End | EventKind::WaitEnd => {
                if let Some(worker) = self.workers.get_mut(&event.slot) {
                    worker.depth -= 1;
                    worker.since = now;
                }
            }
            _ => {}
        }
    }
}

/// Whether the clock is read for each event of this kind. Others may have the time of the event before.
fn has_own_stamp(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Created
            | EventKind::End
            | EventKind::Park
            | EventKind::Unpark
            | EventKind::WaitBegin
            | EventKind::WaitEnd
    )
}

/// A body or wait that a thread is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Body(u64),
    Wait(u64),
}

/// The maker of a job: the job whose body it was, or the thread on a thread slot that was in none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    Job(u64),
    Outside(u32),
}

/// Whether a job is part of the one it was made in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// It was only scheduled there.
    No,
    /// A scope, a job spawned in one, a loop.
    OfInnermost,
    /// Half of a join that was offered to others: of any job its thread was in the middle of.
    OfAny,
}

/// Checks that no thread ran anything in the middle of a wait but the job it waited for, its ancestors, and
/// parts of these. `part` tells parts by a label's number. If `no_workers`, a wait may also run what it
/// claims as the next of anything.
pub(crate) fn check_helping(
    events: &[Event],
    no_workers: bool,
    part: impl Fn(u64) -> Part,
) -> Result<(), String> {
    // Jobs that a thread slot claimed as something that it waits for. (A thread that joins a range claims
    // nothing.)
    let mut claimed_as_needed = BTreeSet::new();
    let mut family = Family::default();
    let edges = events.iter().filter(|event| event.kind == EventKind::Edge);
    edges.for_each(|edge| family.before.entry(edge.job).or_default().push(edge.arg));
    let mut stacks: BTreeMap<u32, Vec<Frame>> = BTreeMap::new();
    for event in events {
        let stack = stacks.entry(event.slot).or_default();
        match event.kind {
            EventKind::Created => {
                let makers = makers(stack, event.slot, part(event.arg));
                family.wholes.insert(event.job, makers);
            }
            EventKind::WaitBegin => stack.push(Frame::Wait(event.job)),
            EventKind::Claimed if event.arg != Why::Next as u64 => {
                claimed_as_needed.insert((event.slot, event.job));
            }
            EventKind::Begin => {
                let is_any = no_workers && !claimed_as_needed.contains(&(event.slot, event.job));
                if let Some(&Frame::Wait(target)) = stack.last()
                    && !family.is_needed(event.job, target)
                    && !is_any
                {
                    return Err(format!("a wait for {target:x} ran {:x}", event.job));
                }
                stack.push(Frame::Body(event.job));
            }
            EventKind::End | EventKind::WaitEnd => drop(stack.pop()),
            _ => {}
        }
    }
    Ok(())
}

/// The job that a new one is a part of.
fn makers(stack: &[Frame], slot: u32, part: Part) -> Vec<Maker> {
    let bodies = stack.iter().rev().filter_map(|frame| match frame {
        Frame::Body(job) => Some(Maker::Job(*job)),
        Frame::Wait(_) => None,
    });
    let mut all = bodies.chain([Maker::Outside(slot)]);
    match part {
        Part::No => Vec::new(),
        Part::OfInnermost => all.next().into_iter().collect(),
        Part::OfAny => all.collect(),
    }
}

/// Which job needs which.
#[derive(Default)]
struct Family {
    /// By job: its predecessors.
    before: BTreeMap<u64, Vec<u64>>,
    /// By job: the job it is part of.
    wholes: BTreeMap<u64, Vec<Maker>>,
}

impl Family {
    fn wholes_of(&self, job: u64) -> impl Iterator<Item = Maker> + '_ {
        self.wholes.get(&job).into_iter().flatten().copied()
    }

    /// Whether `job` is `target`, an ancestor of it, or part of one of these.
    fn is_needed(&self, job: u64, target: u64) -> bool {
        let mut wholes = vec![Maker::Job(job)];
        let mut at = 0;
        while let Some(&whole) = wholes.get(at) {
            at += 1;
            if let Maker::Job(whole) = whole {
                let new: Vec<Maker> = self
                    .wholes_of(whole)
                    .filter(|more| !wholes.contains(more))
                    .collect();
                wholes.extend(new);
            }
        }
        let mut seen = BTreeSet::new();
        let mut left = vec![target];
        while let Some(needed) = left.pop() {
            if !seen.insert(needed) {
                continue;
            }
            // The jobs of a scope are made by its opener.
            let is_part_of = |opener: Maker| wholes.contains(&opener);
            if is_part_of(Maker::Job(needed)) || self.wholes_of(needed).any(is_part_of) {
                return true;
            }
            left.extend(self.before.get(&needed).into_iter().flatten());
        }
        false
    }
}
