//! A thread's life, from its first state to its last, as segments.

use std::collections::BTreeMap;

use event::{Cpu, Nanos, Task};
use sim::scenario::Segment;
use trace::explain::{LockWaits, SpinWait};
use trace::timeline::{State, Stay};

use super::costs::{Costs, Run};
use super::events::{Deed, Events};
use super::sleeps::Ends;
use super::source::Source;
use crate::program::WaitPlace;

/// A life as segments, and the measured points in it.
pub(super) struct Life {
    pub(super) segments: Vec<Segment>,
    /// Where it waits for other threads.
    pub(super) waits: Vec<WaitPlace>,
    /// By stretch: when the thread came to its two points.
    pub(super) points: BTreeMap<usize, (Nanos, Nanos)>,
}

/// The life of a thread.
pub(super) fn live(
    source: &Source<'_>,
    task: Task,
    events: &mut Events,
    (costs, locks): (&Costs, &LockWaits<'_>),
) -> Life {
    let deeds = events.deeds_of(task);
    let mut walk = Walk {
        source,
        task,
        events,
        costs,
        locks,
        deeds: deeds.into_iter().peekable(),
        segments: Vec::new(),
        waits: Vec::new(),
        work: Nanos::ZERO,
        begun: BTreeMap::new(),
        points: BTreeMap::new(),
        spin: 0,
        run: Run::default(),
    };
    walk.go();
    Life {
        segments: walk.segments,
        waits: walk.waits,
        points: walk.points,
    }
}

struct Walk<'a, 't> {
    source: &'a Source<'t>,
    task: Task,
    events: &'a Events,
    costs: &'a Costs,
    locks: &'a LockWaits<'t>,
    deeds: std::iter::Peekable<std::vec::IntoIter<(Nanos, Deed)>>,
    segments: Vec<Segment>,
    waits: Vec<WaitPlace>,
    /// Work that is not yet a segment.
    work: Nanos,
    /// By stretch that has begun: when.
    begun: BTreeMap<usize, Nanos>,
    points: BTreeMap<usize, (Nanos, Nanos)>,
    /// The next busy wait, or the one that it is in.
    spin: usize,
    run: Run,
}

impl Walk<'_, '_> {
    fn go(&mut self) {
        let source = self.source;
        match self.events.first_of(self.task) {
            None => {}
            Some(Ends::Signal(by)) => self.push(self.wait(by, false)),
            Some(Ends::At | Ends::After) => {
                let known = |stay: &&Stay| stay.state != State::Unknown;
                let first = source.stays[&self.task].iter().find(known);
                let at = first.map_or(source.begin, |first| first.begin);
                self.push(Segment::Until(at - source.begin));
            }
        }
        let stays = &source.stays[&self.task];
        let known = stays.iter().skip_while(|stay| stay.state == State::Unknown);
        for (stay, next) in known.clone().zip(known.skip(1).map(Some).chain([None])) {
            match stay.state {
                State::Running(cpu) => self.runs(*stay, cpu, next.map(|next| next.state)),
                State::Sleeping | State::Blocked => self.sleeps(*stay),
                State::Unknown => {
                    self.flush();
                    let until = stay.end - source.begin;
                    self.push(Segment::Until(until));
                }
                State::Dead => {
                    self.flush();
                    return;
                }
                State::Runnable(_) | State::Throttled(_) | State::Awake => {}
            }
        }
        self.flush();
        let last = stays.last().map(|stay| stay.state);
        match last {
            Some(state) if state.is_asleep() || state == State::Unknown => {
                self.push(Segment::Rest);
            }
            _ => self.push(Segment::Hog),
        }
    }

    fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    fn flush(&mut self) {
        let work = std::mem::take(&mut self.work);
        if work > Nanos::ZERO {
            self.push(Segment::Work(work));
        }
    }

    fn wait(&self, by: Task, lends: bool) -> Segment {
        let on = self.source.names[&by].as_str().into();
        Segment::Wait { on, lends }
    }

    /// Where the wait is that begins now.
    fn place(&self, stay: Stay) -> WaitPlace {
        let timeline = self.source.timeline;
        let slices = timeline.path(self.task, stay.begin);
        let names = slices
            .iter()
            .map(|slice| timeline.recording().names.word(slice.name));
        WaitPlace {
            segment: self.segments.len(),
            within: names.collect::<Vec<_>>().join(" > "),
            is_lock: self.locks.is_one(self.task, stay),
        }
    }

    fn sleeps(&mut self, stay: Stay) {
        self.flush();
        // The last state has no end.
        let Some(ends) = self.events.ends_of(self.task, stay.begin) else {
            return;
        };
        let segment = match ends {
            Ends::Signal(by) => {
                self.waits.push(self.place(stay));
                self.wait(by, self.events.lends(self.task, stay.begin))
            }
            Ends::At => Segment::Until(stay.end - self.source.begin),
            Ends::After => Segment::Sleep(stay.end - stay.begin),
        };
        self.push(segment);
    }

    fn runs(&mut self, stay: Stay, cpu: Cpu, next: Option<State>) {
        let is_preempted = next.is_none_or(|next| next.ready().is_some());
        self.run
            .begin(self.costs, (self.task, cpu), stay, is_preempted);
        let mut from = stay.begin;
        loop {
            let spin = self.events.spins_of(self.task).get(self.spin).copied();
            let deed = self.deeds.peek().map(|(time, _)| *time);
            let deed = deed.filter(|time| *time <= stay.end);
            // A wait begins behind what its thread does at that time.
            let spins = spin.map(|spin| spin.begin);
            let spins =
                spins.filter(|begin| *begin < stay.end && deed.is_none_or(|at| *begin < at));
            if let (Some(begin), Some(spin)) = (spins, spin) {
                self.works(&mut from, begin);
                self.spins(spin);
                self.spin += 1;
                continue;
            }
            let Some(time) = deed else { break };
            self.works(&mut from, time);
            self.flush();
            self.does(from);
        }
        self.works(&mut from, stay.end);
    }

    /// It works from a time to another one.
    fn works(&mut self, from: &mut Nanos, to: Nanos) {
        let to = to.max(*from);
        // What it did in a busy wait until that was over was to wait.
        let wait = self.spin.checked_sub(1);
        let wait = wait.and_then(|at| self.events.spins_of(self.task).get(at));
        let since = wait.map_or(*from, |wait| (*from).max(wait.done.min(wait.end)));
        if since < to {
            self.run.skip(*from, since);
            self.work += self.run.work(self.costs, since, to);
        } else {
            self.run.skip(*from, to);
        }
        *from = to;
    }

    fn spins(&mut self, wait: SpinWait) {
        self.flush();
        let on = self.source.names[&wait.awaited].as_str().into();
        self.push(Segment::Spin(on));
    }

    /// It does what comes next, having come to it at this time.
    fn does(&mut self, time: Nanos) {
        let Some((_, deed)) = self.deeds.next() else {
            return;
        };
        if let Deed::Point { stretch, is_end } = deed {
            if !is_end {
                self.begun.insert(stretch, time);
            } else if let Some(begin) = self.begun.remove(&stretch) {
                self.points.insert(stretch, (begin, time));
            }
        }
        self.push(deed.segment());
    }
}
