//! Tasks, their names and priorities, and the processes they belong to.

use std::collections::HashMap;

use event::Task;

use super::tids::Tids;
use crate::{Process, Thread, nice};

/// How reliable a name or a process is; the later of two equal ones counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trust {
    /// Nothing is known.
    #[default]
    None,
    /// A by-product: the name in front of an event, which the tracer keeps in a cache that may be stale; the
    /// process that a marker names.
    Hint,
    /// A list of all processes, taken at some time.
    List,
    /// The event itself says so.
    Event,
}

/// A task's priority, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskPriority {
    pub(super) now: i16,
    /// Its own priority, if a lock's waiter lends it another.
    pub(super) own: i16,
}

#[derive(Debug)]
pub(super) struct Person {
    tid: u32,
    name: String,
    name_trust: Trust,
    tgid: u32,
    tgid_trust: Trust,
    first_priority: Option<i16>,
    priority: Option<TaskPriority>,
    pub(super) is_dead: bool,
}

/// No party's number.
const UNSETTLED: u32 = u32::MAX;

impl Person {
    /// Its own priority, if it is known.
    pub(super) fn own_priority(&self) -> Option<i16> {
        self.priority.map(|priority| priority.own)
    }
}

/// All tasks and processes so far.
#[derive(Debug, Default)]
pub(super) struct TaskTable {
    tids: Tids,
    tasks: Vec<Person>,
    /// By task: the number of the party that it was met as last, if meeting it so again would change nothing
    /// since then; else [`UNSETTLED`].
    settled: Vec<u32>,
    processes: HashMap<u32, (usize, Trust)>,
    list: Vec<Process>,
}

impl TaskTable {
    /// The task of this tid, a new one if it was never seen; none for tid 0, the idle tasks.
    #[inline]
    pub(super) fn task(&mut self, tid: u32) -> Option<Task> {
        match tid {
            0 => None,
            tid => Some(self.tids.get(tid).unwrap_or_else(|| self.newcomer(tid))),
        }
    }

    /// The task of this tid, if it was seen.
    pub(super) fn find(&self, tid: u32) -> Option<Task> {
        self.tids.get(tid)
    }

    /// A new task; the tid means this one from now on.
    #[cold]
    pub(super) fn newcomer(&mut self, tid: u32) -> Task {
        let task = Task(u32::try_from(self.tasks.len()).unwrap_or(u32::MAX));
        self.tasks.push(Person {
            tid,
            name: String::new(),
            name_trust: Trust::None,
            tgid: 0,
            tgid_trust: Trust::None,
            first_priority: None,
            priority: None,
            is_dead: false,
        });
        self.settled.push(UNSETTLED);
        if let Some(before) = self.tids.get(tid) {
            self.settled[before.index()] = UNSETTLED;
        }
        self.tids.set(tid, task);
        task
    }

    pub(super) fn person(&mut self, task: Task) -> &mut Person {
        &mut self.tasks[task.index()]
    }

    /// Sets the name of a task.
    #[inline]
    pub(super) fn name(&mut self, task: Task, name: &[u8], trust: Trust) {
        let person = &mut self.tasks[task.index()];
        let is_news = trust >= person.name_trust && person.name.as_bytes() != name;
        if is_news && !name.is_empty() && name != b"<...>" {
            self.settled[task.index()] = UNSETTLED;
            person.name = String::from_utf8_lossy(name).into_owned();
            person.name_trust = trust;
        } else if trust > person.name_trust && person.name.as_bytes() == name {
            person.name_trust = trust;
        }
    }

    /// The name of a task so far.
    pub(super) fn name_of(&self, task: Task) -> &str {
        &self.tasks[task.index()].name
    }

    /// A task belongs to the process of this number; 0 says nothing.
    #[inline]
    pub(super) fn belongs(&mut self, task: Task, tgid: u32, trust: Trust) {
        let person = &mut self.tasks[task.index()];
        if tgid == 0
            || trust < person.tgid_trust
            || (person.tgid, person.tgid_trust) == (tgid, trust)
        {
            return;
        }
        person.tgid = tgid;
        person.tgid_trust = trust;
        self.process(tgid);
    }

    /// The number of a task's process; 0: it is not known.
    pub(super) fn tgid(&self, task: Task) -> u32 {
        self.tasks[task.index()].tgid
    }

    /// The position of the process of this number.
    pub(super) fn process(&mut self, tgid: u32) -> usize {
        let list = &mut self.list;
        let (position, _) = *self.processes.entry(tgid).or_insert_with(|| {
            list.push(Process {
                name: String::new(),
                pid: Some(tgid),
            });
            (list.len() - 1, Trust::None)
        });
        position
    }

    /// Sets the name of a process.
    pub(super) fn process_name(&mut self, tgid: u32, name: &[u8], trust: Trust) {
        let position = self.process(tgid);
        if let Some((_, known)) = self.processes.get_mut(&tgid)
            && trust >= *known
            && !name.is_empty()
        {
            *known = trust;
            self.list[position].name = String::from_utf8_lossy(name).into_owned();
        }
    }

    /// A task was seen with this priority. Returns the one before, if it was another.
    #[inline]
    pub(super) fn priority(&mut self, task: Task, now: i16) -> Option<TaskPriority> {
        let person = &mut self.tasks[task.index()];
        match person.priority {
            Some(before) if before.now == now => None,
            None => {
                self.settled[task.index()] = UNSETTLED;
                person.first_priority = Some(now);
                person.priority = Some(TaskPriority { now, own: now });
                None
            }
            before => {
                self.settled[task.index()] = UNSETTLED;
                person.priority = Some(TaskPriority { now, own: now });
                before
            }
        }
    }

    /// A lock lends a task a priority, or takes it back.
    pub(super) fn inherit(&mut self, task: Task, priority: TaskPriority) {
        self.settled[task.index()] = UNSETTLED;
        self.tasks[task.index()].priority = Some(priority);
    }

    /// Whether meeting a task as this party again would change nothing.
    #[inline(always)]
    pub(super) fn is_settled(&self, task: Task, party: u32) -> bool {
        self.settled.get(task.index()) == Some(&party)
    }

    /// A task was met as this party.
    pub(super) fn settle(&mut self, task: Task, party: u32) {
        self.settled[task.index()] = party;
    }

    /// Threads and processes in a recording's form. The name of a nameless thread is its number; that of a
    /// nameless process is its first thread's.
    pub(super) fn finish(mut self) -> (Vec<Thread>, Vec<Process>) {
        for (tgid, (position, trust)) in &self.processes {
            if *trust == Trust::None {
                let first = self.tids.get(*tgid).map(|task| self.name_of(task));
                let name = match first {
                    Some(name) if !name.is_empty() => name.to_owned(),
                    _ => tgid.to_string(),
                };
                self.list[*position].name = name;
            }
        }
        let (tasks, processes) = (self.tasks, self.processes);
        let thread = |(number, person): (usize, Person)| Thread {
            task: Task(number as u32),
            name: match person.name {
                name if name.is_empty() => person.tid.to_string(),
                name => name,
            },
            process: processes.get(&person.tgid).map(|(position, _)| *position),
            priority: person.first_priority.map_or(nice(0), i32::from),
            tid: Some(person.tid),
            allowed: None,
        };
        (
            tasks.into_iter().enumerate().map(thread).collect(),
            self.list,
        )
    }
}
