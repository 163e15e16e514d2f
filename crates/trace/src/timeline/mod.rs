//! From events to intervals: the states of every thread and CPU over time.
//!
//! Invariants
//! - A thread is in exactly one state at any time from the recording's beginning to its end, and runs on one
//!   CPU at most; a CPU runs one thread at most. Events that contradict this are put right and counted.
//! - Kernel events own the states of threads. The job system's events happen where their threads ran; other
//!   events are moved to the nearest such time and counted.
//! - Memory is proportional to the recording: everything is kept in sorted lists, one list of a kind for all
//!   threads together.

mod awake;
mod cpus;
mod dense;
mod history;
mod jobs;
mod kernel;
mod lists;
mod nested;
mod priorities;
mod queries;
mod room;
mod slices;
mod spent;
mod states;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use event::{Cpu, Event, KernelEvent, KernelEventKind, Nanos, Task};

pub use cpus::Who;
pub(crate) use cpus::{IDLE, Lane, UNKNOWN};
pub(crate) use dense::{Grouped, NOBODY};
pub(crate) use jobs::{Jobs, Moment, Piece, Span};
pub(crate) use kernel::{Futex, Reason};
pub use priorities::Priority;
pub(crate) use slices::Flow;
pub use slices::Slice;
pub use spent::Spent;
pub(crate) use states::{Interval, Waker};
pub use states::{Since, State, Stay};

use crate::{Clock, Loss, Losses, Recording};
use dense::Dense;
use history::Histories;
use kernel::{KernelTimeline, Sighting};
use priorities::Step;
use room::Room;
use slices::Slices;
use states::WakeUp;

/// The user's facts about the machine that the recording does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The capacities of CPUs at their highest frequency; the fastest has the most. They count more than the
    /// recording's.
    pub capacities: BTreeMap<Cpu, u32>,
    /// The CPUs that threads may run on. They count more than the recording's.
    pub allowed: BTreeMap<Task, Vec<Cpu>>,
}

/// A recording as intervals of threads and CPUs.
///
/// ```
/// use event::{Cpu, KernelEvent, KernelEventKind, Left, Nanos, Task};
/// use paceline_trace::timeline::{Options, Since, State, Timeline};
/// let switch = |time, prev, next| KernelEvent {
///     time: Nanos(time),
///     cpu: Cpu(0),
///     what: KernelEventKind::Switch { prev, state: Left::Runnable, next },
/// };
/// let (a, b) = (Some(Task(0)), Some(Task(1)));
/// let kernel = vec![switch(0, None, a), switch(30, a, b), switch(50, b, a)];
/// let recording = paceline_trace::Recording { kernel, ..paceline_trace::Recording::default() };
/// let timeline = Timeline::new(recording, &Options::default());
/// let states: Vec<State> = timeline.stays(Task(0)).map(|stay| stay.state).collect();
/// assert_eq!(states, [State::Running(Cpu(0)), State::Runnable(Since::Preempted), State::Running(Cpu(0))]);
/// assert_eq!(timeline.preemptions(Task(0)), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Timeline {
    recording: Recording,
    losses: Losses,
    span: (Nanos, Nanos),
    tasks: Dense,
    cpus: Dense,
    /// By thread: its position in the recording's list, or [`NOBODY`].
    facts: Vec<u32>,
    /// Whether the kernel's events say which threads ran.
    pub(crate) has_switches: bool,
    /// The threads that were put aside because a quota was used up, by the kernel's events.
    rationed: BTreeSet<u32>,
    /// Whether the events say which threads are moved to another CPU's queue.
    pub(crate) has_migrations: bool,
    /// By thread, in the order of time: the CPUs to whose queues it was moved, by position.
    moves: Grouped<(Nanos, u32)>,
    pub(crate) states: Histories<Interval>,
    wakes: Histories<WakeUp>,
    /// By thread, in the order of time: beginnings of runs that were inferred.
    inferred: Grouped<Nanos>,
    priorities: Grouped<Step>,
    pub(crate) futexes: Grouped<Futex>,
    reasons: Grouped<Reason>,
    pub(crate) lanes: Vec<Lane>,
    /// By thread, in the order of time: the CPUs it may run on, and since when.
    allowed: Grouped<Sighting>,
    /// By thread: whether the recording or the user names its CPUs.
    told: Vec<bool>,
    /// Whether the recording or the user gives the capacities of CPUs.
    pub(crate) capacities_told: bool,
    pub(crate) slices: Slices,
    pub(crate) jobs: Jobs,
}

/// Sorts a list by time. Returns the number of items that were out of order.
fn sort<T>(list: &mut [T], time: impl Fn(&T) -> Nanos + Copy) -> u64 {
    let late = list.windows(2).filter(|two| time(&two[1]) < time(&two[0]));
    let late = late.count() as u64;
    if late > 0 {
        list.sort_by_key(time);
    }
    late
}

/// The same for kernel events, which are looked at as seldom as possible, because they are many. Returns also
/// the room they need.
fn sort_kernel(list: &mut [KernelEvent]) -> (u64, Room) {
    let (mut late, mut room) = (0, Room::default());
    let mut latest = Nanos::ZERO;
    for event in &*list {
        late += u64::from(event.time < latest);
        latest = event.time;
        room.add(event);
    }
    if late > 0 {
        list.sort_by_key(|event| event.time);
    }
    (late, room)
}

impl Timeline {
    /// The timeline of a recording. Every recording has one.
    pub fn new(mut recording: Recording, options: &Options) -> Timeline {
        let mut losses = recording.losses.clone();
        let (late, room) = sort_kernel(&mut recording.kernel);
        let late = late
            + sort(&mut recording.jobs, |event| event.time)
            + sort(&mut recording.marks, |mark| mark.time);
        losses.add(Loss::OutOfOrder, late);
        let span = recording.span_in_order().unwrap_or_default();
        let (mut tasks, mut cpus) = (Dense::default(), Dense::default());
        let mut kernel = states_of(&recording, options, (&mut tasks, &mut cpus), span, &room);
        losses.add(Loss::Contradictions, kernel.contradictions);
        losses.add(Loss::FromIdle, kernel.from_idle);
        let slots = slots(&recording, &mut tasks);
        let slices = slices(&mut recording, &mut tasks, span.1, &mut losses);
        let threads = tasks.numbers().len();
        let has_switches = has_switches(&recording);
        if !has_switches {
            (kernel.states, kernel.wakes) = awake::find(&recording.jobs, &slots);
        }
        let jobs = jobs_of(
            &recording.jobs,
            &slots,
            &kernel.states,
            threads,
            span.1,
            &mut losses,
        );
        let mut facts = vec![NOBODY; threads];
        for (at, thread) in recording.threads.iter().enumerate() {
            if let Some(position) = tasks.find(thread.task.0) {
                facts[position as usize] = at as u32;
            }
        }
        let mut timeline = Timeline {
            losses,
            span,
            facts,
            has_switches,
            rationed: kernel.rationed,
            has_migrations: kernel.has_migrations,
            moves: kernel.moves,
            told: vec![false; threads],
            allowed: Grouped::default(),
            capacities_told: false,
            states: kernel.states,
            wakes: kernel.wakes,
            inferred: kernel.inferred,
            priorities: kernel.priorities,
            futexes: kernel.futexes,
            reasons: kernel.reasons,
            lanes: kernel.lanes,
            slices,
            jobs,
            recording,
            tasks,
            cpus,
        };
        timeline.learn_cpus(options);
        timeline.learn_allowed(options, &kernel.seen);
        timeline
    }

    /// Learns the capacities of CPUs, as far as they are given; else those that their frequencies suggest.
    fn learn_cpus(&mut self, options: &Options) {
        for facts in &self.recording.cpus {
            if let Some(lane) = self.cpus.find(facts.cpu.0) {
                let lane = &mut self.lanes[lane as usize];
                lane.capacity = facts.capacity;
                lane.max_khz = facts.max_khz;
            }
        }
        for (cpu, capacity) in &options.capacities {
            if let Some(lane) = self.cpus.find(cpu.0) {
                self.lanes[lane as usize].capacity = Some(*capacity);
            }
        }
        for lane in &mut self.lanes {
            let seen = lane.frequencies.iter().chain(&lane.limits);
            let seen = seen.map(|(_, khz)| *khz).max();
            lane.max_khz = lane.max_khz.max(seen);
            if self.recording.origin.clock == Clock::Virtual && lane.runs.len() == 1 {
                // A simulated kernel has all events, and its CPUs begin with nothing to do.
                lane.correct(IDLE);
            }
        }
        self.capacities_told = self.lanes.iter().any(|lane| lane.capacity.is_some());
        if !self.capacities_told {
            for lane in &mut self.lanes {
                lane.capacity = lane.max_khz;
            }
        }
    }

    fn learn_allowed(&mut self, options: &Options, seen: &Grouped<Sighting>) {
        let mut pairs = Vec::new();
        for (&task, thread) in self.tasks.numbers().iter().zip(0u32..) {
            let facts = self.facts[thread as usize];
            let facts = self.recording.threads.get(facts as usize);
            let told = options.allowed.get(&Task(task));
            let told = told.or(facts.and_then(|facts| facts.allowed.as_ref()));
            let told = told.into_iter().flatten();
            let mut told: Vec<u32> = told.filter_map(|cpu| self.cpus.find(cpu.0)).collect();
            told.sort_unstable();
            told.dedup();
            self.told[thread as usize] = !told.is_empty();
            let told = told.iter().map(|&lane| {
                let since = Nanos::ZERO;
                (thread, Sighting { since, lane })
            });
            let known = pairs.len();
            pairs.extend(told);
            if pairs.len() == known {
                pairs.extend(seen.of(thread).iter().map(|&seen| (thread, seen)));
            }
        }
        self.allowed = Grouped::new(self.tasks.numbers().len(), &pairs);
    }
}

fn has_switches(recording: &Recording) -> bool {
    let mut events = recording.kernel.iter();
    events.any(|event| matches!(event.what, KernelEventKind::Switch { .. }))
}

/// The timeline of the kernel's events, with a lane for every CPU that is named anywhere.
fn states_of(
    recording: &Recording,
    options: &Options,
    (tasks, cpus): (&mut Dense, &mut Dense),
    span: (Nanos, Nanos),
    room: &Room,
) -> KernelTimeline {
    let mut builder = kernel::KernelBuilder::new(recording, tasks, cpus, span, room);
    for event in &recording.kernel {
        builder.take(event);
    }
    let told = recording.threads.iter().flat_map(|thread| &thread.allowed);
    for cpu in told.chain(options.allowed.values()).flatten() {
        builder.lane(*cpu);
    }
    builder.finish()
}

/// The positions of the threads of all thread slots. A thread slot without a known thread has a thread of its
/// own, which is numbered from the last number backwards.
fn slots(recording: &Recording, tasks: &mut Dense) -> BTreeMap<u32, u32> {
    let mut slots = BTreeMap::new();
    for event in &recording.jobs {
        slots.entry(event.slot).or_insert_with(|| {
            let task = recording.slots.get(&event.slot).copied();
            tasks.position(task.unwrap_or(Task(u32::MAX - event.slot)).0)
        });
    }
    slots
}

fn slices(recording: &mut Recording, tasks: &mut Dense, end: Nanos, losses: &mut Losses) -> Slices {
    let threads = recording.threads.iter();
    let processes: BTreeMap<Task, usize> = threads
        .filter_map(|thread| Some((thread.task, thread.process?)))
        .collect();
    let process = |task: Task| match processes.get(&task) {
        Some(process) => *process as u64,
        None => 1 << 32 | u64::from(task.0),
    };
    slices::find(recording, tasks, process, end, losses)
}

/// Jobs, of events that are moved to where their threads ran.
fn jobs_of(
    events: &[Event],
    slots: &BTreeMap<u32, u32>,
    states: &Histories<Interval>,
    threads: usize,
    end: Nanos,
    losses: &mut Losses,
) -> Jobs {
    let mut clamped = 0;
    let moved = events.iter().map(|event| {
        let thread = slots.get(&event.slot).copied().unwrap_or(NOBODY);
        let time = states::nearest_run(states.of(thread), event.time);
        clamped += u64::from(time != event.time);
        (thread, Event { time, ..*event })
    });
    let jobs = jobs::find(moved, threads, end);
    losses.add(Loss::Clamped, clamped);
    losses.add(Loss::Unbegun, jobs.unbegun);
    losses.add(Loss::Unfinished, jobs.unfinished);
    jobs
}
