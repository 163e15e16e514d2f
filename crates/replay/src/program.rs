//! A recording as a program.

use event::{Nanos, Task};
use policy::{Attr, Discipline};
use sim::Machine;
use sim::scenario::{DisciplineName, QuotaPlan, Repeat, Scenario, Segment, Segments, ThreadPlan};

/// A recording as a program: the machine, and what each thread did on it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The machine.
    pub machine: Machine,
    /// The same as a machine file, if it was made of the recording.
    pub machine_file: Option<String>,
    /// The kernel's policy, by its name.
    pub policy: String,
    /// How long the recording is.
    pub length: Nanos,
    /// Whether threads run on the CPUs where they ran in the recording; else where the policy puts them.
    pub is_placed: bool,
    /// The threads.
    pub threads: Vec<ProgramThread>,
    /// A limit on the CPU time of some of them together.
    pub quota: Option<QuotaPlan>,
    /// The stretches of time that are measured: the waits that are asked about.
    pub stretches: Vec<Stretch>,
    /// What the recording does not hold, and what was assumed in its place; each in a sentence without its
    /// full stop.
    pub assumed: Vec<String>,
}

/// A thread of a program.
#[derive(Clone, Debug)]
pub struct ProgramThread {
    /// Its name, which no other thread has.
    pub name: String,
    /// Its number in the recording.
    pub task: Task,
    /// Its name in the recording.
    pub recorded_name: String,
    /// The kernel's number for it, if it has one.
    pub tid: Option<u32>,
    /// The name of its process, and the kernel's number for that, as far as they are known.
    pub process: (Option<String>, Option<u32>),
    /// Its priority at the beginning.
    pub attr: Attr,
    /// The CPUs that it may run on; none: all.
    pub cpus: Vec<u32>,
    /// The CPU that it first ran on.
    pub first_cpu: u32,
    /// What it does.
    pub segments: Vec<Segment>,
    /// Where it waits for other threads.
    pub waits: Vec<WaitPlace>,
    /// Where it could not run although its CPU had nothing to do, as with a quota that is used up.
    pub put_aside: Vec<PutAside>,
    /// How long it ran in the recording.
    pub ran: Nanos,
}

/// A time for which a thread could not run although its CPU had nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PutAside {
    /// The position of the segment that holds it.
    pub segment: usize,
    /// Its length: all of the segment, or a part of a sleep at its end.
    pub length: Nanos,
    /// When it ended, since the beginning of the recording.
    pub end: Nanos,
}

/// A wait of a thread for another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitPlace {
    /// The position of its segment.
    pub segment: usize,
    /// The thread's slices in which it was, the outermost first: "frame > lock bus".
    pub within: String,
    /// When the innermost of these began.
    pub since: Option<Nanos>,
    /// Whether it was for a lock, as far as the recording tells.
    pub is_lock: bool,
}

/// A stretch of a thread's time that is measured in the recording and in replays, between two points of its
/// program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The thread.
    pub task: Task,
    /// Its length in the recording.
    pub length: Nanos,
    /// The times at which the recorded thread came to the two points; none: it did not come to both.
    pub points: Option<(Nanos, Nanos)>,
}

impl Stretch {
    /// The first word of its name in segments.
    pub(crate) const WORD: &str = "stretch ";

    /// The name of the stretch at this position, in segments.
    pub(crate) fn name(at: usize) -> String {
        format!("{}{at}", Stretch::WORD)
    }
}

impl Program {
    /// The program as a scenario, which [`sim::scenario::run`] runs on [`Program::machine`].
    pub fn scenario(&self) -> Scenario {
        let threads = self.threads.iter().map(|thread| ThreadPlan {
            name: thread.name.clone(),
            process: None,
            count: 1,
            discipline: discipline(thread.attr.discipline),
            nice: thread.attr.nice,
            priority: thread.attr.priority,
            slice: thread.attr.slice,
            threshold: None,
            percent: None,
            cpus: thread.cpus_at_first(self.is_placed),
            start: None,
            repeat: Repeat::Times(1),
            phases: Vec::new(),
            segments: Segments(thread.segments.as_slice().into()),
        });
        Scenario {
            name: "replay".into(),
            about: "a recording, run again".into(),
            source: None,
            machine: self.machine.name.clone(),
            policy: self.policy.clone(),
            full_speed: false,
            hints: false,
            until: Some(self.until()),
            starvation: None,
            threads: threads.collect(),
            inheriting_mutexes: Vec::new(),
            queues: Default::default(),
            semaphores: Default::default(),
            quota: self.quota.clone(),
            changes: Vec::new(),
            perturb: Default::default(),
            program: None,
        }
    }

    /// When a replay ends: later than the recording, so that what takes longer is seen to its end.
    pub fn until(&self) -> Nanos {
        self.length + Nanos(self.length.0 / 4)
    }
}

impl ProgramThread {
    /// The CPUs that it may run on at the beginning; none: all.
    pub(crate) fn cpus_at_first(&self, is_placed: bool) -> Vec<u32> {
        let is_placed = is_placed && self.segments.iter().any(is_placing);
        if is_placed {
            vec![self.first_cpu]
        } else {
            self.cpus.clone()
        }
    }

    /// Replaces segments or takes them out, and keeps what is known of those that stay.
    pub(crate) fn replace(&mut self, with: impl Fn(Segment) -> Option<Segment>) {
        self.rebuild(|_, segment, segments| segments.extend(with(segment)));
    }

    /// Makes other segments of each, with its position: none, one or several. What is known of one that is a
    /// wait or a time aside is known of the first of these.
    pub(crate) fn rebuild(&mut self, mut with: impl FnMut(usize, Segment, &mut Vec<Segment>)) {
        let mut waits = std::mem::take(&mut self.waits).into_iter().peekable();
        let mut asides = std::mem::take(&mut self.put_aside).into_iter().peekable();
        let mut segments = Vec::with_capacity(self.segments.len());
        for (at, segment) in std::mem::take(&mut self.segments).into_iter().enumerate() {
            let wait = waits.next_if(|wait| wait.segment == at);
            let aside = asides.next_if(|aside| aside.segment == at);
            let first = segments.len();
            with(at, segment, &mut segments);
            if segments.len() == first {
                continue;
            }
            self.put_aside.extend(aside.map(|aside| PutAside {
                segment: first,
                ..aside
            }));
            if let Some(mut wait) = wait {
                wait.segment = first;
                self.waits.push(wait);
            }
        }
        if segments.is_empty() {
            // A thread has something to do.
            segments.push(Segment::Rest);
        }
        self.segments = segments;
    }

    /// Nothing puts it aside.
    pub(crate) fn is_never_put_aside(&mut self) {
        for aside in std::mem::take(&mut self.put_aside) {
            match &mut self.segments[aside.segment] {
                Segment::Sleep { length, until } => {
                    *length = *length - aside.length;
                    *until = until.map(|until| until - aside.length);
                }
                Segment::Until(time) => *time = *time - aside.length,
                Segment::Wait { late, .. } => *late = *late - aside.length,
                _ => {}
            }
        }
    }

    /// It runs where the policy puts it.
    pub(crate) fn is_free_from_now_on(&mut self) {
        self.replace(|segment| Some(segment).filter(|segment| !is_placing(segment)));
    }
}

fn is_placing(segment: &Segment) -> bool {
    matches!(segment, Segment::NextCpu(_) | Segment::Cpu(_))
}

impl Program {
    /// Calls what is measured by other names; a stretch without one keeps its own.
    pub fn name_stretches(&mut self, name: impl Fn(usize) -> Option<String>) {
        let named = |own: &str| {
            let at = own.strip_prefix(Stretch::WORD)?.parse().ok()?;
            Some(std::sync::Arc::from(name(at)?))
        };
        for segment in self
            .threads
            .iter_mut()
            .flat_map(|thread| &mut thread.segments)
        {
            if let Segment::Begin(own) | Segment::End(own) = segment
                && let Some(other) = named(own)
            {
                *own = other;
            }
        }
    }

    /// The program on another machine: threads may use all of its CPUs, and run where the policy puts them.
    /// The fastest CPUs of both count as equally fast.
    pub fn move_to(&mut self, machine: Machine) {
        *self = self.set_free();
        let had_masks = self.threads.iter().any(|thread| !thread.cpus.is_empty());
        for thread in &mut self.threads {
            thread.cpus.clear();
        }
        self.assumed
            .retain(|what| !what.contains(" may run on CPU "));
        if had_masks {
            self.assumed
                .push("threads may use all CPUs, whatever they could use in the recording".into());
        }
        self.assumed.push(format!(
            "the fastest CPUs of {} are as fast as those of the recorded machine",
            machine.name
        ));
        self.machine = machine;
        self.machine_file = None;
    }

    /// The same where threads run on the CPUs on which the policy puts them.
    pub fn set_free(&self) -> Program {
        let mut program = self.clone();
        program.is_placed = false;
        for thread in &mut program.threads {
            thread.is_free_from_now_on();
        }
        program
    }
}

fn discipline(discipline: Discipline) -> DisciplineName {
    match discipline {
        Discipline::Fair => DisciplineName::Fair,
        Discipline::Batch => DisciplineName::Batch,
        Discipline::Idle => DisciplineName::Idle,
        Discipline::Fifo => DisciplineName::Fifo,
        Discipline::RoundRobin => DisciplineName::Rr,
    }
}
