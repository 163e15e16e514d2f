//! A thread's life, from its first state to its last, as segments.

use std::collections::BTreeMap;

use event::{Cpu, Nanos, Task};
use sim::scenario::{Segment, WaitUntil};
use trace::explain::{LockWaits, SpinWait};
use trace::timeline::{Since, State, Stay};

use super::costs::{Costs, Run};
use super::events::{Deed, Events};
use super::sleeps::Ends;
use super::source::Source;
use crate::program::{PutAside, WaitPlace};

/// A CPU takes less than this to wake up: a thread that waits longer for one that has nothing to do cannot
/// run.
const LATE_MIN: Nanos = Nanos::from_millis(1);

/// A thread that is awake at the recording's end has more to do, and nothing says how much. With none, it
/// would fall asleep where it lost its CPU for the last time.
const MORE: Nanos = Nanos(1);

/// A life as segments, and the measured points in it.
pub(super) struct Life {
    pub(super) segments: Vec<Segment>,
    /// Where it waits for other threads.
    pub(super) waits: Vec<WaitPlace>,
    /// Where it could not run although its CPU had nothing to do.
    pub(super) put_aside: Vec<PutAside>,
    pub(super) first_cpu: u32,
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
        put_aside: Vec::new(),
        work: Nanos::ZERO,
        begun: BTreeMap::new(),
        points: BTreeMap::new(),
        spin: 0,
        run: Run::default(),
        cpu: None,
        first_cpu: None,
    };
    walk.go();
    Life {
        segments: walk.segments,
        waits: walk.waits,
        put_aside: walk.put_aside,
        first_cpu: walk.first_cpu.unwrap_or(0),
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
    put_aside: Vec<PutAside>,
    /// Work that is not yet a segment.
    work: Nanos,
    /// By stretch that has begun: when.
    begun: BTreeMap<usize, Nanos>,
    points: BTreeMap<usize, (Nanos, Nanos)>,
    /// The next busy wait, or the one that it is in.
    spin: usize,
    run: Run,
    /// The CPU that it runs on, or will.
    cpu: Option<Cpu>,
    first_cpu: Option<u32>,
}

impl Walk<'_, '_> {
    fn go(&mut self) {
        let source = self.source;
        match self.events.first_of(self.task) {
            None => {}
            Some(Ends::Signal(by)) => {
                self.push(self.wait((by, WaitUntil::Signal), Nanos::ZERO, false));
            }
            Some(Ends::At | Ends::After) => {
                let known = |stay: &&Stay| stay.state != State::Unknown;
                let first = source.stays[&self.task].iter().find(known);
                let at = first.map_or(source.begin, |first| first.begin);
                self.push(Segment::Until(at - source.begin));
            }
        }
        let stays = &source.stays[&self.task];
        let unknown = stays.iter().take_while(|stay| stay.state == State::Unknown);
        for at in unknown.count()..stays.len() {
            let stay = stays[at];
            match stay.state {
                State::Running(cpu) => {
                    self.moves(cpu);
                    self.runs(stay, cpu, stays.get(at + 1).map(|next| next.state));
                }
                State::Sleeping | State::Blocked => self.sleeps(stay, &stays[at + 1..]),
                State::Unknown => {
                    self.flush();
                    let until = stay.end - source.begin;
                    self.push(Segment::Until(until));
                }
                State::Dead => {
                    self.flush();
                    return;
                }
                State::Runnable(Since::Preempted) | State::Throttled(Since::Preempted) => {
                    self.is_aside(stay, stays.get(at + 1));
                }
                State::Runnable(_) | State::Throttled(_) | State::Awake => {}
            }
        }
        let last = stays.last().map(|stay| stay.state);
        let is_over = last.is_none_or(|state| state.is_asleep() || state == State::Unknown);
        if !is_over {
            self.work += MORE;
        }
        self.flush();
        // What a change makes faster comes to its end sooner. A thread that sleeps now and then does nothing
        // more there; one that was awake for most of the recording goes on.
        let awake = source.end - source.awake_since(self.task, source.end);
        let is_hog = !is_over && awake.0 * 2 >= (source.end - source.begin).0;
        self.push(if is_hog { Segment::Hog } else { Segment::Rest });
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

    fn wait(&self, (by, until): (Task, WaitUntil), late: Nanos, lends: bool) -> Segment {
        let on = self.source.names[&by].as_str().into();
        Segment::Wait {
            on,
            until,
            late,
            lends,
        }
    }

    /// Where the wait is that begins now.
    fn place(&self, stay: Stay) -> WaitPlace {
        WaitPlace {
            is_lock: self.locks.is_one(self.task, stay),
            ..self.within(stay.begin)
        }
    }

    /// The slices just before a time.
    fn within(&self, time: Nanos) -> WaitPlace {
        let timeline = self.source.timeline;
        let slices = timeline.path(self.task, time);
        let names = slices.iter();
        let names = names.map(|slice| timeline.recording().names.word(slice.name));
        WaitPlace {
            segment: self.segments.len(),
            within: names.collect::<Vec<_>>().join(" > "),
            since: slices.last().map(|slice| slice.begin),
            is_lock: false,
        }
    }

    /// It was put aside although its CPU had nothing else to do for most of the time, as by a quota: it
    /// cannot run for as long.
    fn is_aside(&mut self, stay: Stay, next: Option<&Stay>) {
        let cpu = match next.map(|next| next.state) {
            Some(State::Running(cpu)) => Some(cpu),
            None => self.cpu,
            _ => None,
        };
        let idle = cpu.map_or(Nanos::ZERO, |cpu| self.source.idle(cpu, stay));
        let is_told = matches!(stay.state, State::Throttled(_));
        if is_told || idle > Nanos::ZERO && idle.0 * 2 >= (stay.end - stay.begin).0 {
            self.flush();
            let length = stay.end - stay.begin;
            self.is_put_aside(length, stay.end);
            self.push(Segment::Sleep {
                length,
                until: None,
            });
        }
    }

    /// The next segment holds a time for which it could not run.
    fn is_put_aside(&mut self, length: Nanos, end: Nanos) {
        self.put_aside.push(PutAside {
            segment: self.segments.len(),
            length,
            end: end - self.source.begin,
        });
    }

    /// It runs on this CPU now.
    fn moves(&mut self, cpu: Cpu) {
        if self.cpu.is_some_and(|before| before != cpu) {
            self.flush();
            if self.source.is_placed {
                self.push(Segment::Cpu(cpu.0));
            }
        }
        self.first_cpu.get_or_insert(cpu.0);
        self.cpu = Some(cpu);
    }

    /// Where and how much later than its wake-up it runs, in the states behind a sleep. It is later if its
    /// CPU had nothing else to do in between.
    fn after(&mut self, after: &[Stay]) -> Nanos {
        let (woken, runs) = match after {
            [woken, runs, ..] if woken.state.ready().is_some() => (Some(*woken), runs),
            [runs, ..] => (None, runs),
            [] => return Nanos::ZERO,
        };
        let State::Running(cpu) = runs.state else {
            return Nanos::ZERO;
        };
        if self.cpu.is_some_and(|before| before != cpu) {
            if self.source.is_placed {
                self.push(Segment::NextCpu(cpu.0));
            }
            self.cpu = Some(cpu);
        }
        match woken {
            Some(woken)
                if matches!(woken.state, State::Throttled(_))
                    || self.source.is_idle(cpu, woken) =>
            {
                woken.end - woken.begin
            }
            _ => Nanos::ZERO,
        }
    }

    fn sleeps(&mut self, stay: Stay, after: &[Stay]) {
        self.flush();
        // The last state has no end.
        let Some(ends) = self.events.ends_of(self.task, stay.begin) else {
            return;
        };
        let late = self.after(after);
        let segment = match ends {
            Ends::Signal(by) => {
                let place = self.place(stay);
                let until = if self.events.is_lock(self.task, stay.begin) {
                    WaitUntil::Free
                } else {
                    WaitUntil::Signal
                };
                self.waits.push(place);
                self.wait((by, until), late, self.events.lends(self.task, stay.begin))
            }
            Ends::At => Segment::Until(stay.end - self.source.begin + late),
            Ends::After => Segment::Sleep {
                length: stay.end - stay.begin + late,
                until: Some(stay.end - self.source.begin + late),
            },
        };
        if late >= LATE_MIN {
            self.is_put_aside(late, stay.end + late);
        }
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
        let segment = deed.segment();
        if matches!(segment, Segment::Wait { .. }) {
            // It found a lock free.
            let place = self.within(time + Nanos(1));
            self.waits.push(WaitPlace {
                is_lock: true,
                ..place
            });
        }
        self.push(segment);
    }
}
