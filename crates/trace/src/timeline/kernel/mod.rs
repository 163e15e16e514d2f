//! From kernel events to states of threads and runs of CPUs.
//!
//! The result is consistent for any order of the events: a CPU runs one thread, a thread runs on one CPU.
//! Where an event contradicts earlier ones, the newer one is right, and the time between is unknown, or
//! follows from the rest (`lost.rs`); either is counted.

mod lost;
mod rare;

use std::collections::{BTreeMap, BTreeSet};

use event::{Cpu, FutexCall, KernelEvent, KernelEventKind, Left, Nanos, Task};

use super::cpus::{IDLE, Lane, UNKNOWN};
use super::dense::{Dense, Grouped, NOBODY};
use super::history::Histories;
use super::room::Room;
use super::states::{Interval, Since, State, WakeUp};
use super::{priorities, states};
use crate::{Name, Recording, Wakers};

/// A thread's time in the kernel because of a futex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Futex {
    pub(crate) begin: Nanos,
    /// The time of its return, if it returned.
    pub(crate) end: Nanos,
    pub(crate) address: u64,
    pub(crate) call: FutexCall,
}

/// The reason of an uninterruptible sleep of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reason {
    pub(crate) time: Nanos,
    pub(crate) io: bool,
    /// The kernel's function in which it slept, if it is known.
    pub(crate) function: Option<Name>,
}

/// A thread was seen on a CPU.
///
/// A thread may be given other CPUs to run on while it is on none of these. Then the kernel's own thread for
/// that, "migration/N", puts it on one of them, while it waits. Earlier sightings of it mean nothing from
/// then on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Sighting {
    /// The time since when the thread has had its CPUs.
    pub(super) since: Nanos,
    /// The position of the CPU.
    pub(super) lane: u32,
}

/// The timeline of kernel events.
pub(super) struct KernelTimeline {
    pub(super) states: Histories<Interval>,
    pub(super) wakes: Histories<WakeUp>,
    pub(super) priorities: Grouped<priorities::Step>,
    pub(super) futexes: Grouped<Futex>,
    pub(super) reasons: Grouped<Reason>,
    pub(super) lanes: Vec<Lane>,
    /// By thread: the CPUs where it ever ran or was put.
    pub(super) seen: Grouped<Sighting>,
    /// By thread, in the order of time: beginnings of runs of which only the end was recorded.
    pub(super) inferred: Grouped<Nanos>,
    /// Threads that were ever put aside.
    pub(super) rationed: BTreeSet<u32>,
    /// Whether any event was a migration.
    pub(super) has_migrations: bool,
    /// By thread, in the order of time: the CPUs to whose queues it was moved, by position.
    pub(super) moves: Grouped<(Nanos, u32)>,
    pub(super) contradictions: u64,
    /// Switches from the idle task that were not recorded.
    pub(super) from_idle: u64,
}

/// The state up to the latest event.
pub(super) struct KernelBuilder<'a> {
    recording: &'a Recording,
    tasks: &'a mut Dense,
    cpus: &'a mut Dense,
    span: (Nanos, Nanos),
    wakers: Wakers,
    states: states::StateBuilder,
    priorities: priorities::PriorityBuilder,
    wakes: Histories<WakeUp>,
    /// The thread that was woken last.
    woken: u32,
    /// By thread: a wake-up that came while it ran.
    early: BTreeMap<u32, WakeUp>,
    futexes: Vec<(u32, Futex)>,
    /// By thread: the position of its open futex call.
    calls: BTreeMap<u32, usize>,
    reasons: Vec<(u32, Reason)>,
    lanes: Vec<Lane>,
    /// By thread: the time since when it has had its CPUs, and the first 64 it was seen on, as bits.
    given: Vec<(Nanos, u64)>,
    seen: Vec<(u32, Sighting)>,
    /// The kernel's threads that move others.
    movers: BTreeSet<u32>,
    /// Threads that are put aside until there is CPU time for their group again, and their CPUs.
    aside: BTreeMap<u32, usize>,
    rationed: BTreeSet<u32>,
    has_migrations: bool,
    moves: Vec<(u32, (Nanos, u32))>,
    inferred: Vec<(u32, Nanos)>,
    contradictions: u64,
    from_idle: u64,
}

impl<'a> KernelBuilder<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        tasks: &'a mut Dense,
        cpus: &'a mut Dense,
        span: (Nanos, Nanos),
        room: &Room,
    ) -> KernelBuilder<'a> {
        let mut builder = KernelBuilder {
            recording,
            tasks,
            cpus,
            span,
            wakers: recording.origin.wakers,
            states: states::StateBuilder::default(),
            priorities: priorities::PriorityBuilder::default(),
            wakes: Histories::default(),
            woken: NOBODY,
            early: BTreeMap::new(),
            futexes: Vec::new(),
            calls: BTreeMap::new(),
            reasons: Vec::new(),
            lanes: Vec::new(),
            given: Vec::new(),
            seen: Vec::new(),
            movers: BTreeSet::new(),
            aside: BTreeMap::new(),
            rationed: BTreeSet::new(),
            has_migrations: false,
            moves: Vec::new(),
            inferred: Vec::new(),
            contradictions: 0,
            from_idle: 0,
        };
        for facts in &recording.cpus {
            builder.lane(facts.cpu);
        }
        for thread in &recording.threads {
            let position = builder.thread(thread.task);
            let priority = thread.priority.clamp(-1, i16::MAX.into()) as i16;
            builder.priorities.own(position, span.0, priority);
            if thread.name.starts_with("migration/") {
                builder.movers.insert(position);
            }
        }
        builder.make_room(room);
        builder
    }

    fn make_room(&mut self, room: &Room) {
        for lane in &mut self.lanes {
            lane.runs.reserve(room.switches(lane.cpu));
        }
        for (&task, thread) in self.tasks.numbers().iter().zip(0..) {
            let runs = room.runs(Task(task));
            // It runs, waits, and is woken.
            self.states.reserve(thread, 3 * runs);
            self.wakes.of_mut(thread).reserve(runs);
        }
    }

    #[inline]
    fn thread(&mut self, task: Task) -> u32 {
        self.tasks.position(task.0)
    }

    #[inline(always)]
    pub(super) fn lane(&mut self, cpu: Cpu) -> usize {
        match self.cpus.find(cpu.0) {
            Some(lane) => lane as usize,
            None => self.new_lane(cpu),
        }
    }

    #[cold]
    fn new_lane(&mut self, cpu: Cpu) -> usize {
        self.lanes.push(Lane::new(cpu, self.span.0));
        self.cpus.position(cpu.0) as usize
    }

    /// A thread was seen on a CPU.
    #[inline(always)]
    fn saw(&mut self, thread: u32, lane: usize) {
        let given = self.given.get(thread as usize);
        if !given.is_some_and(|(_, bits)| lane < 64 && bits & 1 << lane != 0) {
            self.saw_first(thread, lane);
        }
    }

    #[inline(never)]
    fn saw_first(&mut self, thread: u32, lane: usize) {
        let (since, bits) = self.given(thread);
        if lane < 64 {
            *bits |= 1 << lane;
        }
        let (since, lane) = (*since, lane as u32);
        self.seen.push((thread, Sighting { since, lane }));
    }

    #[inline]
    fn given(&mut self, thread: u32) -> (&mut Nanos, &mut u64) {
        let index = thread as usize;
        if index >= self.given.len() {
            self.given.resize(index + 1, (Nanos::ZERO, 0));
        }
        let (since, bits) = &mut self.given[index];
        (since, bits)
    }

    /// A thread was moved by the thread that ran on a CPU.
    fn moved(&mut self, time: Nanos, thread: u32, by: usize, to: usize) {
        if self.movers.contains(&self.lanes[by].now().who) {
            let mover = self.lanes[by].now().who;
            let now = self.states.now(thread);
            let wake = self.wakes.of(self.woken).last();
            let woken = wake.is_some_and(|wake| {
                self.woken == thread
                    && wake.by == mover
                    && now.is_some_and(|now| now.begin == wake.time)
            });
            if woken || now.is_some_and(|now| now.state == State::Blocked) {
                let (since, bits) = self.given(thread);
                (*since, *bits) = (time, 0);
            }
        }
        self.saw(thread, to);
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn take(&mut self, event: &KernelEvent) {
        let time = event.time;
        let lane = self.lane(event.cpu);
        match event.what {
            KernelEventKind::Switch { prev, state, next } => {
                self.lanes[lane].end_interrupts(time);
                self.leave(lane, time, prev, state);
                self.enter(lane, time, next);
            }
            KernelEventKind::Waking { task, by, target } => {
                let is_sure = match self.wakers {
                    Wakers::Decided => true,
                    // A wake-up from another CPU is told by an interrupt of the CPU that the task is put on.
                    Wakers::Queued => event.cpu != target,
                    Wakers::Unknown => false,
                };
                self.wake(time, task, (by, is_sure), target);
            }
            what => self.take_rare(time, lane, what),
        }
    }

    /// The state of a thread that can run from now on.
    #[inline]
    fn ready(&self, thread: u32, since: Since) -> State {
        if !self.aside.is_empty() && self.aside.contains_key(&thread) {
            State::Throttled(since)
        } else {
            State::Runnable(since)
        }
    }

    /// A thread leaves a CPU.
    #[inline]
    fn leave(&mut self, lane: usize, time: Nanos, prev: Option<Task>, left: Left) {
        let current = self.lanes[lane].now();
        let Some(prev) = prev else {
            match current.who {
                IDLE => {}
                UNKNOWN => self.lanes[lane].correct(IDLE),
                other => self.contradict(other, time),
            }
            return;
        };
        let thread = self.thread(prev);
        self.saw(thread, lane);
        if current.who != thread {
            let here = State::Running(self.lanes[lane].cpu);
            let before = self.states.now(thread);
            match (current.who, before) {
                // It must have run since the CPU's thread is not known, or since its own last event.
                (UNKNOWN, None) => {
                    self.states.set(thread, current.begin, here);
                    self.lanes[lane].correct(thread);
                }
                (UNKNOWN, Some(before)) if before.state == State::Unknown => {
                    let since = current.begin.max(before.begin);
                    self.states.set(thread, since, here);
                    self.lanes[lane].set(since, thread);
                }
                _ => self.was_not_known_here(thread, before, lane, time),
            }
        }
        let state = match left {
            Left::Runnable | Left::Preempted => self.ready(thread, Since::Preempted),
            Left::Sleeping => State::Sleeping,
            Left::Blocked => State::Blocked,
            Left::Dead => State::Dead,
        };
        self.states.set(thread, time, state);
    }

    /// A thread is given a CPU.
    #[inline]
    fn enter(&mut self, lane: usize, time: Nanos, next: Option<Task>) {
        let Some(next) = next else {
            self.lanes[lane].set(time, IDLE);
            return;
        };
        let thread = self.thread(next);
        self.saw(thread, lane);
        let early = if self.early.is_empty() {
            None
        } else {
            self.early.remove(&thread)
        };
        if !self.aside.is_empty() {
            // A running thread is not put aside, whatever was missed.
            self.let_go(time, thread);
        }
        let before = self.states.now(thread);
        match before.map(|before| before.state) {
            Some(State::Running(cpu)) => {
                // It was believed to run: elsewhere, or here, where it then cannot have been switched to.
                self.contradictions += 1;
                let other = self.lane(cpu);
                if other != lane && self.lanes[other].now().who == thread {
                    self.lanes[other].set(time, UNKNOWN);
                }
            }
            Some(State::Dead) => self.contradictions += 1,
            Some(State::Sleeping | State::Blocked) => {
                // It may have been woken while it was about to fall asleep.
                if let (Some(wake), Some(Interval { begin: time, .. })) = (early, before) {
                    self.states.correct(thread, State::Runnable(Since::Woken));
                    self.wake_up(thread, WakeUp { time, ..wake });
                }
            }
            _ => {}
        }
        let here = State::Running(self.lanes[lane].cpu);
        self.states.set(thread, time, here);
        self.lanes[lane].set(time, thread);
    }

    /// A thread is woken, by a task or by none, and whether none means an interrupt.
    #[inline]
    fn wake(&mut self, time: Nanos, task: Task, (by, is_sure): (Option<Task>, bool), target: Cpu) {
        let thread = self.thread(task);
        let target = self.lane(target);
        if self.wakers != Wakers::Decided {
            // Only then is it where the thread was put; else it is where it last ran.
            self.saw(thread, target);
        }
        let wake = WakeUp {
            time,
            by: by.map_or(NOBODY, |by| self.thread(by)),
            interrupt: by.is_none() && is_sure,
        };
        match self.states.now(thread).map(|now| now.state) {
            Some(State::Running(_)) => {
                self.early.insert(thread, wake);
            }
            Some(State::Runnable(_) | State::Throttled(_)) => {}
            _ => {
                let ready = self.ready(thread, Since::Woken);
                self.states.set(thread, time, ready);
                self.wake_up(thread, wake);
            }
        }
    }

    #[inline]
    fn wake_up(&mut self, thread: u32, wake: WakeUp) {
        self.woken = thread;
        self.wakes.of_mut(thread).push(wake);
    }

    pub(super) fn finish(mut self) -> KernelTimeline {
        for lane in &mut self.lanes {
            lane.end_interrupts(self.span.1);
        }
        for lane in self.aside.into_values() {
            self.lanes[lane].let_go(self.span.1);
        }
        let threads = self.tasks.numbers().len();
        let mut seen = self.seen;
        seen.sort_unstable();
        seen.dedup();
        KernelTimeline {
            states: self.states.finish(),
            wakes: self.wakes,
            priorities: self.priorities.finish(threads),
            futexes: Grouped::new(threads, &self.futexes),
            reasons: Grouped::new(threads, &self.reasons),
            lanes: self.lanes,
            seen: Grouped::new(threads, &seen),
            inferred: Grouped::new(threads, &self.inferred),
            rationed: self.rationed,
            has_migrations: self.has_migrations,
            moves: Grouped::new(threads, &self.moves),
            contradictions: self.contradictions,
            from_idle: self.from_idle,
        }
    }
}
