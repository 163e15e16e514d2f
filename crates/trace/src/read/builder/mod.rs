//! Makes a recording of what a reader finds: kernel numbers in, tasks out.
//!
//! Readers differ in how events are written, not in what they mean. Their meaning is decided here, once: the
//! task that a tid means at that moment, which of two names is right, when a priority changed, which thread
//! woke which, what a lock lends. Events are best given in the order of their times, because the meanings of
//! tids and the priorities of tasks depend on the order. A reader whose file is in another order sorts first.
//! The few events that are out of order here are put in order at the end, equal times as they came, and
//! counted.
//!
//! Nothing is allocated for an event but its place in the list.

mod binder;
mod fences;
mod finish;
mod kernel;
mod states;
mod tasks;
#[cfg(test)]
mod tests;
mod tids;

use std::collections::{BTreeMap, HashMap};

use event::{Cpu, KernelEvent, KernelEventKind, Nanos, Task};

use super::mix::{mix, of_ends};
use crate::{Clock, Counter, CpuFacts, Loss, Mark, MarkKind, Name, Recording, Wakers};
use binder::Calls;
use fences::Fences;
use kernel::changed;
use tasks::TaskTable;

pub(crate) use binder::Transaction;
pub(crate) use fences::{FenceKey, FenceStep};
pub(crate) use states::{from_bits, from_letters};
pub(crate) use tasks::Trust;

/// No machine has CPUs with higher numbers (Linux's largest `NR_CPUS` is 8192); only broken files do.
pub(crate) const MOST_CPUS: u32 = 1 << 14;

/// Set in a wake-up's target while reading: the event is `sched_wakeup`, not `sched_waking`.
const QUEUED: u32 = 1 << 31;

/// Slots of the cache in front of the table of words.
const WORDS: usize = 4096;

/// The place and time of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) time: Nanos,
    pub(crate) cpu: u32,
    /// The tid of the running task; 0: the idle task.
    pub(crate) tid: u32,
    /// Whether it was in an interrupt, if the file says so.
    pub(crate) in_interrupt: bool,
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party<'a> {
    pub(crate) tid: u32,
    /// Its name; empty: not in the event.
    pub(crate) comm: &'a [u8],
    /// Its priority; none: not in the event.
    pub(crate) priority: Option<i16>,
}

/// One of the kernel's three wake-up events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// `sched_waking`: the decision.
    Decided,
    /// `sched_wakeup`: the task is on a queue.
    Queued,
    /// `sched_wakeup_new`: a task's first time on a queue, without a decision before.
    New,
}

/// A recording in the making.
#[derive(Debug)]
pub(crate) struct Builder {
    recording: Recording,
    people: TaskTable,
    cpus: Vec<CpuSightings>,
    /// CPUs with a gap before their next event.
    gaps: usize,
    /// By a part of the hash: the word that came last.
    words: Box<[Name; WORDS]>,
    counters: HashMap<(u32, Name), usize>,
    open_tracks: HashMap<(u32, Name, u64), Name>,
    has_decisions: bool,
    has_queued: bool,
    latest: Latest,
    /// Whether kernel events are not in the order of their times.
    is_mixed: bool,
    facts: UntimedFacts,
    calls: Calls,
    fences: Fences,
}

/// Facts about a thread beside its events.
#[derive(Debug, Default)]
pub(crate) struct ThreadFacts {
    /// Its priority at the beginning; none: by its events.
    pub(crate) priority: Option<i32>,
    /// The CPUs it may run on; none: not known.
    pub(crate) allowed: Option<Vec<Cpu>>,
    /// Whether the tid is made up, not the kernel's.
    pub(crate) is_made_up: bool,
}

/// Facts beside the events.
#[derive(Debug, Default)]
struct UntimedFacts {
    threads: BTreeMap<Task, ThreadFacts>,
    cpus: BTreeMap<Cpu, CpuFacts>,
    wakers: Option<Wakers>,
}

/// The facts that events show about a CPU.
#[derive(Clone, Debug, Default)]
struct CpuSightings {
    exists: bool,
    is_online: Option<bool>,
    gap: Option<u32>,
}

/// The latest times so far.
#[derive(Debug, Default)]
struct Latest {
    kernel: Nanos,
    mark: Nanos,
}

impl Builder {
    /// An empty recording, of a file of this format.
    pub(crate) fn new(format: &str) -> Builder {
        let mut recording = Recording::default();
        recording.origin.format = format.to_owned();
        Builder {
            recording,
            people: TaskTable::default(),
            cpus: Vec::new(),
            gaps: 0,
            words: Box::new([Name(0); WORDS]),
            counters: HashMap::new(),
            open_tracks: HashMap::new(),
            has_decisions: false,
            has_queued: false,
            latest: Latest::default(),
            is_mixed: false,
            facts: UntimedFacts::default(),
            calls: Calls::default(),
            fences: Fences::default(),
        }
    }

    /// Corrects the format of the file.
    pub(crate) fn set_format(&mut self, format: &str) {
        format.clone_into(&mut self.recording.origin.format);
    }

    /// Sets the clock of the times.
    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.recording.origin.clock = clock;
    }

    /// Sets the kernel's release.
    pub(crate) fn set_kernel(&mut self, release: &str) {
        self.recording.origin.kernel = Some(release.to_owned());
    }

    /// Counts something that is missing.
    pub(crate) fn lose(&mut self, loss: Loss, count: u64) {
        self.recording.losses.add(loss, count);
    }

    // Tasks and processes

    /// The task of this tid; none for tid 0, the idle tasks.
    pub(crate) fn task(&mut self, tid: u32) -> Option<Task> {
        self.people.task(tid)
    }

    /// Sets the name of a thread.
    #[inline]
    pub(crate) fn thread_name(&mut self, tid: u32, name: &[u8], trust: Trust) {
        if let Some(task) = self.people.task(tid) {
            self.people.name(task, name, trust);
        }
    }

    /// A thread belongs to the process of this number.
    #[inline]
    pub(crate) fn belongs(&mut self, tid: u32, tgid: u32, trust: Trust) {
        if let Some(task) = self.people.task(tid) {
            self.belongs_to(task, tgid, trust);
        }
    }

    /// The same for a task.
    #[inline]
    pub(crate) fn belongs_to(&mut self, task: Task, tgid: u32, trust: Trust) {
        self.people.belongs(task, tgid, trust);
    }

    /// Sets the name of a process.
    pub(crate) fn process_name(&mut self, tgid: u32, name: &[u8], trust: Trust) {
        if tgid != 0 {
            self.people.process_name(tgid, name, trust);
        }
    }

    /// A task begins. A tid whose task ended means another one from now on. `is_thread`: whether it is of its
    /// maker's process, if the file says so.
    pub(crate) fn fork(&mut self, parent: u32, child: &Party<'_>, is_thread: Option<bool>) {
        let Some(task) = self.people.task(child.tid) else {
            return;
        };
        let task = if self.people.person(task).is_dead {
            self.people.newcomer(child.tid)
        } else {
            task
        };
        self.people.name(task, child.comm, Trust::Event);
        let maker = self
            .people
            .task(parent)
            .map_or(0, |maker| self.people.tgid(maker));
        match is_thread {
            Some(true) => self.people.belongs(task, maker, Trust::Event),
            Some(false) => self.people.belongs(task, child.tid, Trust::Event),
            None => {}
        }
    }

    /// A task is about to end.
    pub(crate) fn exit(&mut self, at: &At, who: &Party<'_>) {
        if let Some(task) = self.meet(at, who) {
            self.people.person(task).is_dead = true;
        }
    }

    // Marks of programs

    /// The number of a word.
    #[inline]
    pub(crate) fn word(&mut self, word: &[u8]) -> Name {
        let slot = mix(of_ends(word), word.len() as u64) as usize % WORDS;
        let latest = self.words[slot];
        // A number that is not given out yet has an empty word.
        if !word.is_empty() && self.recording.names.word(latest).as_bytes() == word {
            return latest;
        }
        let number = self.recording.names.number(&String::from_utf8_lossy(word));
        self.words[slot] = number;
        number
    }

    /// Adds a mark of a thread.
    #[inline]
    pub(crate) fn mark(&mut self, time: Nanos, on: Task, what: MarkKind) {
        if time < self.latest.mark {
            self.lose(Loss::OutOfOrder, 1);
        }
        self.latest.mark = self.latest.mark.max(time);
        self.recording.marks.push(Mark { time, on, what });
    }

    /// The task on the track of which a thread's mark about a process belongs: the thread itself, or, if the
    /// mark is about another process, the first thread of that process.
    pub(crate) fn speaker(&mut self, tid: u32, tgid: u32) -> Option<Task> {
        let task = self.people.task(tid)?;
        match self.people.tgid(task) {
            0 => self.people.belongs(task, tgid, Trust::Hint),
            known if known != tgid && tgid != 0 => return self.people.task(tgid),
            _ => {}
        }
        Some(task)
    }

    /// A value of a process, or, if `tgid` is 0, of the machine.
    pub(crate) fn value(&mut self, time: Nanos, tgid: u32, name: Name, value: i64) {
        if time < self.latest.mark {
            self.lose(Loss::OutOfOrder, 1);
        }
        self.latest.mark = self.latest.mark.max(time);
        let recording = &mut self.recording;
        let people = &mut self.people;
        let counter = *self.counters.entry((tgid, name)).or_insert_with(|| {
            recording.counters.push(Counter {
                name: recording.names.word(name).to_owned(),
                unit: String::new(),
                process: (tgid != 0).then(|| people.process(tgid)),
                values: Vec::new(),
            });
            recording.counters.len() - 1
        });
        recording.counters[counter].values.push((time, value));
    }

    /// The open slice of a named track; `name` opens one, none closes it.
    pub(crate) fn on_track(&mut self, key: (u32, Name, u64), name: Option<Name>) -> Option<Name> {
        match name {
            Some(name) => self.open_tracks.insert(key, name),
            None => self.open_tracks.remove(&key),
        }
    }

    /// Memory that a reader frees from now on is used for the timeline, unless the system gets it back. The
    /// system does get free memory at the end of the heap, and touching new memory instead costs more than
    /// filling it: so something is kept there.
    pub(crate) fn keep_heap(&mut self) {
        self.recording.annotations.reserve(1024);
    }

    // Parts that a reader finds as they are

    /// The recording so far, for parts that only need a place in it: findings, counters, events of the job
    /// system. Threads and processes come at the end.
    pub(crate) fn recording(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// The word with this number.
    pub(crate) fn word_of(&self, name: Name) -> &str {
        self.recording.names.word(name)
    }

    /// The position of the process of this number.
    pub(crate) fn process(&mut self, tgid: u32) -> usize {
        self.people.process(tgid)
    }

    /// Adds facts about a thread that no event has.
    pub(crate) fn thread_facts(&mut self, task: Task, facts: ThreadFacts) {
        self.facts.threads.insert(task, facts);
    }

    /// The kernel did not give out this tid: it stands for a track without a thread. Sets its name.
    pub(crate) fn no_thread(&mut self, tid: u32, name: &str) {
        if let Some(task) = self.people.find(tid) {
            self.people.name(task, name.as_bytes(), Trust::Event);
            let is_made_up = true;
            self.facts.threads.insert(
                task,
                ThreadFacts {
                    is_made_up,
                    ..ThreadFacts::default()
                },
            );
        }
    }

    /// How wakers are known, if a file says so itself.
    pub(crate) fn set_wakers(&mut self, wakers: Wakers) {
        self.facts.wakers = Some(wakers);
    }

    /// Sets whether wake-ups by interrupts are not told apart.
    pub(crate) fn set_unmarked(&mut self, is_unmarked: bool) {
        self.recording.origin.is_unmarked = is_unmarked;
    }

    /// Adds facts about a CPU that no event has.
    pub(crate) fn cpu_facts(&mut self, facts: CpuFacts) {
        match self.cpu(facts.cpu.0) {
            Some(cpu) => {
                self.cpus[cpu.index()].exists = true;
                self.facts.cpus.insert(cpu, facts);
            }
            None => self.lose(Loss::BadFields, 1),
        }
    }

    /// The task of an event. Learns the event's facts about it.
    #[inline]
    pub(crate) fn meet(&mut self, at: &At, who: &Party<'_>) -> Option<Task> {
        let task = self.people.task(who.tid)?;
        self.people.name(task, who.comm, Trust::Event);
        if let Some(now) = who.priority
            && self.people.priority(task, now).is_some()
        {
            self.push(at.time, at.cpu, changed(task, now, false));
        }
        Some(task)
    }

    /// As [`meet`](Builder::meet), for a party that has a number with the reader.
    pub(crate) fn meet_as(&mut self, at: &At, who: &Party<'_>, number: u32) -> Option<Task> {
        let task = self.meet(at, who)?;
        self.people.settle(task, number);
        Some(task)
    }

    /// Whether meeting a task as the party with this number again says nothing new, as is usual.
    #[inline(always)]
    pub(crate) fn is_settled(&self, task: Task, number: u32) -> bool {
        self.people.is_settled(task, number)
    }

    // Inside

    /// A CPU's number, if it can be one.
    #[inline]
    fn cpu(&mut self, cpu: u32) -> Option<Cpu> {
        match self.cpus.get_mut(cpu as usize) {
            Some(seen) => {
                seen.exists = true;
                Some(Cpu(cpu))
            }
            None => self.new_cpu(cpu),
        }
    }

    #[cold]
    fn new_cpu(&mut self, cpu: u32) -> Option<Cpu> {
        if cpu >= MOST_CPUS {
            return None;
        }
        self.cpus.resize(cpu as usize + 1, CpuSightings::default());
        self.cpus[cpu as usize].exists = true;
        Some(Cpu(cpu))
    }

    /// Puts an event into the list, after the gap before it if there is one.
    #[inline]
    fn push(&mut self, time: Nanos, cpu: u32, what: KernelEventKind) {
        let Some(cpu) = self.cpu(cpu) else {
            return self.lose(Loss::BadFields, 1);
        };
        if self.gaps > 0 {
            self.end_gap(time, cpu);
        }
        if time < self.latest.kernel {
            self.lose(Loss::OutOfOrder, 1);
            self.is_mixed = true;
        } else {
            self.latest.kernel = time;
        }
        self.recording.kernel.push(KernelEvent { time, cpu, what });
    }

    #[cold]
    fn end_gap(&mut self, time: Nanos, cpu: Cpu) {
        if let Some(events) = self.cpus[cpu.index()].gap.take() {
            self.gaps -= 1;
            // It is as late as the event behind it.
            self.is_mixed |= time < self.latest.kernel;
            let what = KernelEventKind::Lost { events };
            self.recording.kernel.push(KernelEvent { time, cpu, what });
        }
    }
}
