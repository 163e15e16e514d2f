//! Numbers of threads and processes: the kernel's if it gave some, and else unused ones.
//!
//! A file must not give one number to two of them, whatever a recording says.

use std::collections::{BTreeSet, HashMap, HashSet};

use event::Task;

use crate::{Recording, Thread};

/// Where made-up numbers begin if the simplest one is taken. Linux gives out none above 2^22.
const THREADS: u32 = 1 << 29;
const PROCESSES: u32 = 1 << 28;

/// The numbers of threads and processes.
pub(super) struct FileNumbers<'r> {
    threads: HashMap<Task, &'r Thread>,
    tids: HashMap<Task, i32>,
    /// The numbers that the kernel gave.
    real: HashSet<i32>,
    /// By position.
    pids: Vec<i32>,
}

impl<'r> FileNumbers<'r> {
    pub(super) fn of(recording: &'r Recording) -> FileNumbers<'r> {
        let mut people = FileNumbers {
            threads: HashMap::new(),
            tids: HashMap::new(),
            real: HashSet::new(),
            pids: Vec::new(),
        };
        // The first one counts, should two have one number.
        for thread in &recording.threads {
            people.threads.entry(thread.task).or_insert(thread);
        }
        for thread in &recording.threads {
            let known = people.threads.get(&thread.task);
            if !known.is_some_and(|known| std::ptr::eq(*known, thread)) {
                continue;
            }
            let tid = thread
                .tid
                .and_then(|tid| i32::try_from(tid).ok())
                .filter(|tid| *tid > 0);
            // Of several that had one tid in turn, the first keeps it.
            if let Some(tid) = tid.filter(|tid| people.real.insert(*tid)) {
                people.tids.insert(thread.task, tid);
            }
        }
        people.number_processes(recording);
        people
    }

    fn number_processes(&mut self, recording: &Recording) {
        let mut taken: HashSet<i32> = HashSet::new();
        let real = |pid: u32| i32::try_from(pid).ok().filter(|pid| *pid > 0);
        let given: Vec<Option<i32>> = recording
            .processes
            .iter()
            .map(|process| process.pid.and_then(real).filter(|pid| taken.insert(*pid)))
            .collect();
        let mut first: HashMap<usize, i32> = HashMap::new();
        for thread in &recording.threads {
            if let Some(process) = thread.process {
                first.entry(process).or_insert(self.tid(thread.task));
            }
        }
        for (position, given) in given.into_iter().enumerate() {
            let own = first
                .get(&position)
                .copied()
                .filter(|pid| given.is_none() && taken.insert(*pid));
            let made_up =
                i32::try_from(PROCESSES.saturating_add(position as u32)).unwrap_or(i32::MAX);
            self.pids.push(given.or(own).unwrap_or(made_up));
        }
    }

    /// The facts about a task.
    pub(super) fn thread(&self, task: Task) -> Option<&'r Thread> {
        self.threads.get(&task).copied()
    }

    /// The number by which the file knows a task. 0 is the idle task, so a made-up one is the task's plus
    /// one.
    pub(super) fn tid(&self, task: Task) -> i32 {
        if let Some(&tid) = self.tids.get(&task) {
            return tid;
        }
        let simple = i32::try_from(u64::from(task.0) + 1).unwrap_or(i32::MAX);
        if self.real.contains(&simple) {
            (THREADS | task.0 & (THREADS - 1)) as i32
        } else {
            simple
        }
    }

    /// The number of a process, by its position.
    pub(super) fn pid(&self, process: usize) -> Option<i32> {
        self.pids.get(process).copied()
    }

    /// The process of a task, if it has one.
    pub(super) fn process(&self, task: Task) -> Option<usize> {
        let process = self.thread(task)?.process?;
        (process < self.pids.len()).then_some(process)
    }

    /// All tasks that the recording lists or has events of, in the order of their numbers.
    pub(super) fn tasks(recording: &Recording) -> BTreeSet<Task> {
        let listed = recording.threads.iter().map(|thread| thread.task);
        let slots = recording.slots.values().copied();
        let notes = recording.annotations.iter().filter_map(|note| note.on);
        let marks = recording.marks.iter().map(|mark| mark.on);
        listed.chain(slots).chain(notes).chain(marks).collect()
    }
}
