//! Recordings written by hand, for tests: threads that run, sleep and wake each other.

use event::{
    Address, Cpu, Event, EventKind, FutexCall, KernelEvent, KernelEventKind, Left, Nanos, Task,
};

use crate::explain::{Explanation, Selection, Wait, explain};
use crate::timeline::{Options, Timeline};
use crate::{CpuFacts, Mark, MarkKind, Origin, Process, Recording, Thread, Wakers};

/// A recording that is being written. Times are in nanoseconds.
pub(crate) struct Script {
    pub(crate) recording: Recording,
    /// By CPU: the running thread.
    current: Vec<Option<Task>>,
    pub(crate) options: Options,
}

impl Script {
    /// Threads of one program, by name, that may run anywhere, and `cpus` CPUs that do nothing.
    pub(crate) fn new(names: &[&str], cpus: u32) -> Script {
        let everywhere: Vec<Cpu> = (0..cpus).map(Cpu).collect();
        let threads = names.iter().zip(0..).map(|(name, number)| Thread {
            tid: Some(100 + number),
            allowed: Some(everywhere.clone()),
            ..Thread::new(Task(number), *name, Some(0))
        });
        let mut script = Script {
            recording: Recording {
                origin: Origin {
                    wakers: Wakers::Decided,
                    ..Origin::default()
                },
                processes: vec![Process::new("program")],
                threads: threads.collect(),
                ..Recording::default()
            },
            current: vec![None; cpus as usize],
            options: Options::default(),
        };
        for cpu in 0..cpus {
            script.leave(0, cpu, Left::Runnable, None);
        }
        script
    }

    pub(crate) fn kernel(&mut self, time: u64, cpu: u32, what: KernelEventKind) {
        let (time, cpu) = (Nanos(time), Cpu(cpu));
        self.recording.kernel.push(KernelEvent { time, cpu, what });
    }

    /// The running thread leaves the CPU for this reason, and another thread runs.
    pub(crate) fn leave(&mut self, time: u64, cpu: u32, state: Left, next: Option<u32>) {
        let next = next.map(Task);
        let prev = std::mem::replace(&mut self.current[cpu as usize], next);
        self.kernel(time, cpu, KernelEventKind::Switch { prev, state, next });
    }

    /// A thread is given a CPU, whichever thread had it.
    pub(crate) fn run(&mut self, time: u64, cpu: u32, next: u32) {
        self.leave(time, cpu, Left::Runnable, Some(next));
    }

    /// The running thread falls asleep.
    pub(crate) fn sleep(&mut self, time: u64, cpu: u32, next: Option<u32>) {
        self.leave(time, cpu, Left::Sleeping, next);
    }

    /// A thread, or an interrupt, wakes a thread.
    pub(crate) fn wake(&mut self, time: u64, by: Option<u32>, task: u32) {
        let by = by.map(Task);
        let cpu = self
            .current
            .iter()
            .position(|current| by.is_some() && *current == by);
        let what = KernelEventKind::Waking {
            task: Task(task),
            by,
            target: Cpu(0),
        };
        self.kernel(time, cpu.unwrap_or(0) as u32, what);
    }

    /// The same, for a CPU.
    pub(crate) fn wake_for(&mut self, time: u64, by: Option<u32>, task: u32, cpu: u32) {
        self.wake(time, by, task);
        if let Some(KernelEvent {
            what: KernelEventKind::Waking { target, .. },
            ..
        }) = self.recording.kernel.last_mut()
        {
            *target = Cpu(cpu);
        }
    }

    /// A thread is put aside because a quota is used up, or may go on.
    pub(crate) fn throttle(&mut self, time: u64, thread: u32, begins: bool) {
        let task = Task(thread);
        self.kernel(time, 0, KernelEventKind::Throttle { task, begins });
    }

    /// A thread is moved to another CPU's queue.
    pub(crate) fn migrate(&mut self, time: u64, thread: u32, from: u32, to: u32) {
        let (task, from, to) = (Task(thread), Cpu(from), Cpu(to));
        self.kernel(time, from.0, KernelEventKind::Migrate { task, from, to });
    }

    /// A thread may run on these CPUs only.
    pub(crate) fn pin(&mut self, thread: u32, cpus: &[u32]) {
        let cpus = cpus.iter().map(|&cpu| Cpu(cpu)).collect();
        self.recording.threads[thread as usize].allowed = Some(cpus);
    }

    /// CPUs can do this much.
    pub(crate) fn capacities(&mut self, capacities: &[u32]) {
        let facts = capacities.iter().zip(0..).map(|(&capacity, cpu)| CpuFacts {
            cpu: Cpu(cpu),
            capacity: Some(capacity),
            max_khz: None,
        });
        self.recording.cpus = facts.collect();
    }

    pub(crate) fn futex(&mut self, thread: u32, call: FutexCall, begin: u64, end: u64) {
        let task = Task(thread);
        let call = KernelEventKind::FutexCall {
            task,
            address: Address::new(0xf00),
            call,
        };
        self.kernel(begin, 0, call);
        self.kernel(end, 0, KernelEventKind::FutexReturn { task, result: 0 });
    }

    fn mark(&mut self, time: u64, thread: u32, what: MarkKind) {
        let (time, on) = (Nanos(time), Task(thread));
        self.recording.marks.push(Mark { time, on, what });
    }

    /// A slice.
    pub(crate) fn slice(&mut self, thread: u32, name: &str, begin: u64, end: u64) {
        let name = self.recording.names.number(name);
        self.mark(begin, thread, MarkKind::Begin(name));
        self.mark(end, thread, MarkKind::End);
    }

    /// A request: a slice that begins on one thread and ends on another.
    pub(crate) fn request(&mut self, from: u32, begin: u64, to: u32, end: u64) {
        let name = self.recording.names.number("request");
        self.mark(begin, from, MarkKind::AsyncBegin { name, cookie: 1 });
        self.mark(end, to, MarkKind::AsyncEnd { name, cookie: 1 });
    }

    /// An event of a job, on this thread, which has the thread slot of its number.
    pub(crate) fn job(&mut self, time: u64, thread: u32, kind: EventKind, job: u64, arg: u64) {
        self.recording.slots.insert(thread, Task(thread));
        self.recording.jobs.push(Event {
            time: Nanos(time),
            job,
            arg,
            slot: thread,
            kind,
        });
    }

    /// The timeline. It lasts until this time at least.
    pub(crate) fn timeline(mut self, end: u64) -> Timeline {
        self.recording.kernel.sort_by_key(|event| event.time);
        self.kernel(end, 0, KernelEventKind::Idle(None));
        Timeline::new(self.recording, &self.options)
    }

    /// The explanation of all usual waits.
    pub(crate) fn explain(self, end: u64) -> (Timeline, Explanation) {
        let timeline = self.timeline(end);
        let selection = Selection {
            least: Nanos(1),
            ..Selection::default()
        };
        let explanation = explain(&timeline, &selection);
        for wait in &explanation.waits {
            check(wait);
        }
        (timeline, explanation)
    }
}

/// Checks the rules that every account must follow.
pub(crate) fn check(wait: &Wait) {
    let mut at = wait.begin;
    for segment in &wait.segments {
        assert_eq!(segment.begin, at, "{wait:#?}");
        assert!(segment.end > segment.begin, "{wait:#?}");
        at = segment.end;
        let by: u64 = segment.by.iter().map(|share| share.ns.0).sum();
        assert!(
            segment.by.is_empty() || by == segment.length().0,
            "{segment:#?}"
        );
    }
    assert_eq!(at, wait.end, "{wait:#?}");
    assert_eq!(wait.sum(), wait.length(), "{wait:#?}");
    for cause in &wait.causes {
        let by: u64 = cause.by.iter().map(|share| share.ns.0).sum();
        assert!(by <= cause.ns.0, "{cause:#?}");
    }
}

/// An explanation's longest wait in words: a line for each cause.
pub(crate) fn told(timeline: &Timeline, wait: &Wait) -> Vec<String> {
    use crate::explain::Who;
    let who = |who: Who| match who {
        Who::Task(task) => timeline.name(task),
        Who::Idle => "idle".to_owned(),
        Who::Offline => "offline".to_owned(),
        Who::Unknown => "unknown".to_owned(),
    };
    let line = |cause: &crate::explain::Cause| {
        let thread = cause
            .thread
            .map_or("nobody".to_owned(), |task| timeline.name(task));
        let shares = cause.by.iter();
        let by: String = shares
            .map(|share| format!(" {}={}", who(share.who), share.ns.0))
            .collect();
        format!("{} {} {thread}:{by}", cause.kind.word(), cause.ns.0)
    };
    wait.causes.iter().map(line).collect()
}
