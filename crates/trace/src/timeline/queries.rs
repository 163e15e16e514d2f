//! Queries on a timeline.

use event::{Cpu, Nanos, Task};

use super::Timeline;
use super::cpus::{IDLE, UNKNOWN, Who};
use super::dense::NOBODY;
use super::kernel::Reason;
use super::priorities::{Priority, Step};
use super::slices::Slice;
use super::states::{Since, State, Stay, WakeUp, Waker};
use crate::{Clock, Losses, Recording};

impl Timeline {
    /// The recording it was made of, with its events in the order of their times.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The same, when the timeline is no longer needed.
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// The parts that are missing from the recording, and the contradictions in it.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Whether the kernel's events say which threads ran; else states are only those that the job system's
    /// events show.
    pub fn says_who_ran(&self) -> bool {
        self.has_switches
    }

    /// From the first event to the last.
    pub fn span(&self) -> (Nanos, Nanos) {
        self.span
    }

    /// All threads, in the order in which they were met.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = Task> + '_ {
        self.tasks.numbers().iter().map(|&task| Task(task))
    }

    /// All CPUs, in the order of their numbers.
    pub fn cpus(&self) -> Vec<Cpu> {
        let mut cpus: Vec<Cpu> = self.lanes.iter().map(|lane| lane.cpu).collect();
        cpus.sort_unstable();
        cpus
    }

    /// The name of a thread; its number if it has none.
    pub fn name(&self, task: Task) -> String {
        match self.facts_of(task) {
            Some(facts) if !facts.name.is_empty() => facts.name.clone(),
            Some(facts) if facts.tid.is_some() => format!("thread {}", facts.tid.unwrap_or(0)),
            _ => format!("task {}", task.0),
        }
    }

    /// The kernel's number for a thread, if it has one.
    pub fn tid(&self, task: Task) -> Option<u32> {
        self.facts_of(task)?.tid
    }

    /// The position of a thread's program in the recording, if it is known.
    pub fn process(&self, task: Task) -> Option<usize> {
        self.facts_of(task)?.process
    }

    fn facts_of(&self, task: Task) -> Option<&crate::Thread> {
        let at = self.facts[self.tasks.find(task.0)? as usize];
        self.recording.threads.get(at as usize)
    }

    /// The threads with this name, or with this number of the kernel's, in the order of their numbers here.
    /// Blanks around a name do not matter: kernels cut names anywhere.
    pub fn find(&self, name_or_tid: &str) -> Vec<Task> {
        let (name, tid): (_, Option<u32>) = (name_or_tid.trim(), name_or_tid.parse().ok());
        let threads = self.recording.threads.iter();
        let named = threads
            .filter(|thread| thread.name.trim() == name || (tid.is_some() && thread.tid == tid));
        let mut tasks: Vec<Task> = named.map(|thread| thread.task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// The label of a job, if it is known.
    pub fn label(&self, job: u64) -> Option<&str> {
        let job = self.jobs.jobs[self.jobs.find(job)? as usize];
        let label = usize::try_from(job.label?).ok()?;
        let label = self.recording.labels.get(label)?;
        Some(label)
            .filter(|label| !label.is_empty())
            .map(|label| &**label)
    }

    /// The states of a thread, from the beginning of the recording to its end, without gaps.
    pub fn stays(&self, task: Task) -> impl Iterator<Item = Stay> + '_ {
        self.stays_from(task, Nanos::ZERO)
    }

    /// The stays of a stretch of time, without gaps: the first may begin before `begin`, the last may end
    /// after `end`.
    pub fn stays_within(
        &self,
        task: Task,
        begin: Nanos,
        end: Nanos,
    ) -> impl Iterator<Item = Stay> + '_ {
        let stays = self.stays_from(task, begin);
        let stays = stays.skip_while(move |stay| stay.end <= begin);
        stays.take_while(move |stay| stay.begin < end)
    }

    /// All stays, except possibly some that end before a time.
    fn stays_from(&self, task: Task, time: Nanos) -> impl Iterator<Item = Stay> + '_ {
        let thread = self.tasks.find(task.0).unwrap_or(NOBODY);
        let states = self.states.of(thread);
        let (begin, end) = self.span;
        let first = states.get(0).map_or(end, |first| first.begin);
        let unknown = Stay {
            begin,
            end: first,
            state: State::Unknown,
        };
        let from = states.partition_point(|begin| begin < time);
        let from = from.saturating_sub(1);
        let ends = states.from(from + 1).map(|next| next.begin);
        let known = states.from(from).zip(ends.chain([end]));
        let known = known.map(|(interval, end)| Stay {
            begin: interval.begin,
            end,
            state: interval.state,
        });
        Some(unknown)
            .filter(|unknown| unknown.begin < unknown.end && from == 0)
            .into_iter()
            .chain(known)
    }

    /// What had a CPU, from the beginning of the recording to its end, without gaps. Times that are not known
    /// are [`Who::Unknown`].
    pub fn runs(&self, cpu: Cpu) -> impl Iterator<Item = (Nanos, Nanos, Who)> + '_ {
        self.runs_from(cpu, Nanos::ZERO)
    }

    /// The runs of a stretch of time, without gaps: the first may begin before `begin`, the last may end
    /// after `end`.
    pub fn runs_within(
        &self,
        cpu: Cpu,
        begin: Nanos,
        end: Nanos,
    ) -> impl Iterator<Item = (Nanos, Nanos, Who)> + '_ {
        let runs = self.runs_from(cpu, begin);
        let runs = runs.skip_while(move |(_, until, _)| *until <= begin);
        runs.take_while(move |(from, ..)| *from < end)
    }

    /// All runs, except possibly some that end before a time.
    fn runs_from(&self, cpu: Cpu, time: Nanos) -> impl Iterator<Item = (Nanos, Nanos, Who)> + '_ {
        let lane = self.lane(cpu).into_iter();
        lane.flat_map(move |lane| {
            let from = lane.runs.partition_point(|begin| begin < time);
            let from = from.saturating_sub(1);
            let ends = lane.runs.from(from + 1).map(|next| next.begin);
            let runs = lane.runs.from(from).zip(ends.chain([self.span.1]));
            runs.map(|(run, end)| (run.begin, end, self.who(run.who)))
        })
    }

    /// A thread's own names for its work in a stretch of time: the bodies of our jobs, else its slices; outer
    /// ones before those inside of them, each with its name. They may begin before `begin` and end after
    /// `end`.
    pub fn named_within(&self, task: Task, begin: Nanos, end: Nanos) -> Vec<(Nanos, Nanos, &str)> {
        let Some(thread) = self.tasks.find(task.0) else {
            return Vec::new();
        };
        let touches = |from: Nanos, to: Nanos| from < end && to > begin;
        let bodies = self.jobs.bodies.of(thread).iter();
        let bodies = bodies.filter(|body| touches(body.begin, body.end));
        let bodies: Vec<_> = bodies
            .map(|body| {
                let id = self.jobs.jobs[body.job as usize].id;
                (body.begin, body.end, self.label(id).unwrap_or("job"))
            })
            .collect();
        if !bodies.is_empty() {
            return bodies;
        }
        let slices = self.slices.slices.of(thread).iter();
        let slices = slices.filter(|slice| touches(slice.begin, slice.end));
        let named = slices.map(|slice| {
            let name = self.recording.names.word(slice.name);
            (slice.begin, slice.end, name)
        });
        named.collect()
    }

    /// The slices of a thread that the instant just before a time lies inside of, the outermost first. Those
    /// that stand for stretches beside the thread's own work, as of Android's frame timeline, are left out.
    pub fn path(&self, task: Task, time: Nanos) -> Vec<Slice> {
        let Some(thread) = self.tasks.find(task.0) else {
            return Vec::new();
        };
        let mut path = self.slices.slices.around(thread, time);
        path.retain(|slice| {
            let name = self.recording.names.word(slice.name);
            !name.starts_with("frame timeline ")
        });
        path.reverse();
        path
    }

    /// Where slices of a thread begin or end in a stretch of time, its own ends left out.
    pub(crate) fn borders(&self, task: Task, begin: Nanos, end: Nanos) -> Vec<Nanos> {
        let slices = self.slices(task);
        let from = slices.partition_point(|slice| slice.begin <= begin);
        let to = slices.partition_point(|slice| slice.begin < end);
        let around = self.path(task, begin + Nanos(1));
        let touching = around.iter().chain(&slices[from.min(to)..to]);
        let borders = touching.flat_map(|slice| [slice.begin, slice.end]);
        let mut borders: Vec<Nanos> = borders
            .filter(|border| (*border > begin) && (*border < end))
            .collect();
        borders.sort_unstable();
        borders.dedup();
        borders
    }

    /// The name of a thread's program, if it is known.
    pub fn program(&self, task: Task) -> Option<&str> {
        let process = self.recording.processes.get(self.process(task)?)?;
        Some(process.name.as_str()).filter(|name| !name.is_empty())
    }

    /// The parts of a stretch of time in which a CPU was offline.
    pub fn offline_within(&self, cpu: Cpu, begin: Nanos, end: Nanos) -> Vec<(Nanos, Nanos)> {
        let changes = self.lane(cpu).into_iter().flat_map(|lane| &lane.online);
        let inside = changes.map(|(time, _)| *time);
        let inside = inside.filter(|time| (begin..end).contains(time));
        let starts: Vec<Nanos> = std::iter::once(begin).chain(inside).collect();
        let ends = starts.iter().skip(1).copied().chain([end]);
        let parts = starts.iter().copied().zip(ends);
        parts
            .filter(|(from, to)| from < to && !self.is_online(cpu, *from))
            .collect()
    }

    /// Whether a CPU was online at a time.
    pub fn is_online(&self, cpu: Cpu, time: Nanos) -> bool {
        self.lane(cpu).is_some_and(|lane| lane.is_online(time))
    }

    /// A thread's slices, in the order of their beginnings, outer ones first.
    pub fn slices(&self, task: Task) -> &[Slice] {
        match self.tasks.find(task.0) {
            Some(thread) => self.slices.slices.of(thread),
            None => &[],
        }
    }

    /// A thread's priority at a time, if it is known.
    pub fn priority(&self, task: Task, time: Nanos) -> Option<Priority> {
        let step = self.step(self.tasks.find(task.0)?, time)?;
        Some(self.as_priority(step))
    }

    fn as_priority(&self, step: Step) -> Priority {
        let lender = Some(step.lender).filter(|&lender| lender != NOBODY);
        Priority {
            own: step.own,
            now: step.now,
            lender: lender.map(|lender| self.task(lender)),
        }
    }

    /// A thread's priorities, each with the time since when it had it.
    pub fn priorities(&self, task: Task) -> impl Iterator<Item = (Nanos, Priority)> + '_ {
        let steps = self
            .tasks
            .find(task.0)
            .map(|thread| self.priorities.of(thread));
        let steps = steps.into_iter().flatten();
        steps.map(|step| (step.since, self.as_priority(*step)))
    }

    /// The capacity of a CPU: as the recording or the user gives it, else what the CPUs' highest frequencies
    /// suggest, if they are known.
    pub fn capacity(&self, cpu: Cpu) -> Option<u32> {
        self.lane(cpu)?.capacity
    }

    /// Whether the recording or the user gives the capacities of CPUs.
    pub fn has_capacities(&self) -> bool {
        self.capacities_told
    }

    /// The CPUs that a thread may run on at a time, and whether the recording or the user names them. Else
    /// these are the CPUs where it ran or was put since the kernel last gave it others, and until it does so
    /// again.
    pub fn allowed(&self, task: Task, time: Nanos) -> (Vec<Cpu>, bool) {
        let Some(thread) = self.tasks.find(task.0) else {
            return (Vec::new(), false);
        };
        let lanes = self.allowed_lanes(thread, time);
        let cpus = lanes.map(|lane| self.lanes[lane as usize].cpu);
        let mut cpus: Vec<Cpu> = cpus.collect();
        cpus.sort_unstable();
        (cpus, self.is_told(thread))
    }
}

/// By position.
impl Timeline {
    pub(crate) fn position(&self, task: Task) -> Option<u32> {
        self.tasks.find(task.0)
    }

    pub(crate) fn task(&self, thread: u32) -> Task {
        let task = self.tasks.numbers().get(thread as usize);
        Task(task.copied().unwrap_or(NOBODY))
    }

    pub(crate) fn lane(&self, cpu: Cpu) -> Option<&super::Lane> {
        let lane = self.cpus.find(cpu.0)?;
        self.lanes.get(lane as usize)
    }

    /// The position of a CPU.
    pub(crate) fn lane_at(&self, cpu: Cpu) -> Option<u32> {
        self.cpus.find(cpu.0)
    }

    /// When a thread was moved to another CPU's queue in a stretch of time, its end included, and to which.
    pub(crate) fn moves_in(&self, thread: u32, begin: Nanos, end: Nanos) -> &[(Nanos, u32)] {
        let moves = self.moves.of(thread);
        let from = moves.partition_point(|(time, _)| *time < begin);
        let moves = &moves[from..];
        &moves[..moves.partition_point(|(time, _)| *time <= end)]
    }

    pub(crate) fn allowed_lanes(&self, thread: u32, time: Nanos) -> impl Iterator<Item = u32> + '_ {
        let seen = self.allowed.of(thread);
        let until = seen.partition_point(|seen| seen.since <= time);
        let (until, since) = match (until, seen.first()) {
            // Not yet seen: the first one.
            (0, Some(first)) => (
                seen.partition_point(|seen| seen.since <= first.since),
                first.since,
            ),
            (0, None) => (0, time),
            (until, _) => (until, seen[until - 1].since),
        };
        let from = seen.partition_point(|seen| seen.since < since);
        seen[from..until].iter().map(|seen| seen.lane)
    }

    pub(crate) fn is_told(&self, thread: u32) -> bool {
        self.told.get(thread as usize).copied().unwrap_or(false)
    }

    pub(crate) fn who(&self, who: u32) -> Who {
        match who {
            IDLE => Who::Idle,
            UNKNOWN => Who::Unknown,
            thread => Who::Task(self.task(thread)),
        }
    }

    /// The state of a thread just before a time, with its beginning and its end.
    pub(crate) fn before(&self, thread: u32, time: Nanos) -> Stay {
        let states = self.states.of(thread);
        let (begin, end) = self.span;
        let after = states.partition_point(|begin| begin < time);
        let until = states.get(after).map_or(end, |next| next.begin);
        match after.checked_sub(1).and_then(|at| states.get(at)) {
            Some(interval) => Stay {
                begin: interval.begin,
                end: until,
                state: interval.state,
            },
            None => Stay {
                begin,
                end: until,
                state: State::Unknown,
            },
        }
    }

    /// Whether nothing is known of a thread before a wake-up of it, which ended this stay.
    pub(crate) fn is_before_first_wake_up(&self, thread: u32, stay: Stay) -> bool {
        let first = self.states.of(thread).get(0);
        first.is_some_and(|first| {
            first.begin == stay.end && first.state.ready() == Some(Since::Woken)
        })
    }

    /// The state that a thread came into at this time or next after it.
    pub(crate) fn after(&self, thread: u32, time: Nanos) -> Option<State> {
        let states = self.states.of(thread);
        let next = states.partition_point(|begin| begin < time);
        states.get(next).map(|next| next.state)
    }

    /// Whether the recording says which threads are put aside when a quota is used up, as only simulated ones
    /// do.
    pub fn tells_throttling(&self) -> bool {
        !self.rationed.is_empty() || self.recording.origin.clock == Clock::Virtual
    }

    /// Whether the recording says that a thread was put aside at any time: it is of a group with a quota.
    pub(crate) fn is_rationed(&self, thread: u32) -> bool {
        self.rationed.contains(&thread)
    }

    /// Whether it was inferred that a thread ran from this time on.
    pub(crate) fn is_inferred(&self, thread: u32, begin: Nanos) -> bool {
        self.inferred.of(thread).binary_search(&begin).is_ok()
    }

    /// The waker of a sleep that lasted from one time to the other.
    pub(crate) fn waker(&self, thread: u32, begin: Nanos, end: Nanos) -> Waker {
        let wakes = self.wakes.of(thread);
        let after = wakes.partition_point(|time| time <= end);
        match after.checked_sub(1).and_then(|at| wakes.get(at)) {
            Some(wake) if wake.time >= begin => wake.waker(),
            _ => Waker::Unknown,
        }
    }

    /// The wake-ups of a thread around a time, up to two before the last one until then, and up to two behind
    /// it.
    pub(crate) fn wakes_around(&self, thread: u32, time: Nanos) -> Vec<WakeUp> {
        let wakes = self.wakes.of(thread);
        let after = wakes.partition_point(|other| other <= time);
        wakes
            .from(after.saturating_sub(3))
            .take(after.min(3) + 2)
            .collect()
    }

    /// Whether a thread sleeps at any time in between.
    pub(crate) fn sleeps_within(&self, thread: u32, begin: Nanos, end: Nanos) -> bool {
        let mut stays = self.stays_within(self.task(thread), begin, end);
        stays.any(|stay| stay.state.is_asleep())
    }

    /// All wake-ups: the woken thread, the time, and the thread that woke it.
    pub(crate) fn wake_ups(&self) -> impl Iterator<Item = (u32, Nanos, u32)> + '_ {
        let wakes = self.wakes.all();
        let wakes = wakes.flat_map(|(woken, wakes)| wakes.from(0).map(move |wake| (woken, wake)));
        let known = wakes.filter(|(_, wake)| wake.by != NOBODY);
        known.map(|(woken, wake)| (woken, wake.time, wake.by))
    }

    /// The reason of a sleep, if the kernel tells it.
    pub(crate) fn reason(&self, thread: u32, begin: Nanos, until: Nanos) -> Option<Reason> {
        let reasons = self.reasons.of(thread);
        let at = reasons.partition_point(|reason| reason.time < begin);
        reasons
            .get(at)
            .filter(|reason| reason.time <= until)
            .copied()
    }

    pub(crate) fn step(&self, thread: u32, time: Nanos) -> Option<Step> {
        let steps = self.priorities.of(thread);
        let after = steps.partition_point(|step| step.since <= time);
        after.checked_sub(1).map(|at| steps[at])
    }
}
