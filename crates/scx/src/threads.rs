//! [`Threads`]: the kernel's thread numbers, which go up to four million and are used again, as tasks, which
//! are numbered from zero without gaps.
//!
//! The kernel does not say that a thread has ended. So each second some of those that have been silent for
//! long are looked for, and what is gone gives its task back. A number that comes back for a new thread is
//! known by its message: the thread has never run.

use std::collections::{BTreeMap, VecDeque};

use event::{Nanos, Task};

/// A thread that has said nothing for this long is looked for.
const SILENCE: Nanos = Nanos::from_secs(5);
/// How many are looked for at once.
const LOOKS: usize = 64;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Threads {
    tasks: BTreeMap<i32, Task>,
    /// By task.
    known: Vec<Known>,
    /// Tasks without a thread, the one that is free for longest first.
    free: VecDeque<Task>,
    /// Where looking goes on.
    next: usize,
    looked: Nanos,
}

/// What is known of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// 0: no thread has this task.
    tid: i32,
    flags: u64,
    allowed: u64,
    heard: Nanos,
}

impl Threads {
    /// The thread's task, and whether it is a new one.
    pub fn of(&mut self, tid: i32, now: Nanos) -> (Task, bool) {
        if let Some(&task) = self.tasks.get(&tid) {
            return (task, false);
        }
        let task = self.free.pop_front().unwrap_or_else(|| {
            self.known.push(Known::default());
            Task(self.known.len() as u32 - 1)
        });
        self.tasks.insert(tid, task);
        self.known[task.index()] = Known {
            tid,
            heard: now,
            ..Known::default()
        };
        (task, true)
    }

    /// The thread's task, if it has one.
    pub fn find(&self, tid: i32) -> Option<Task> {
        self.tasks.get(&tid).copied()
    }

    /// The task's thread; 0 if it has none.
    pub fn tid(&self, task: Task) -> i32 {
        self.known.get(task.index()).map_or(0, |known| known.tid)
    }

    /// A message of the thread came.
    pub(crate) fn hear(&mut self, task: Task, flags: u64, allowed: u64, now: Nanos) {
        let known = &mut self.known[task.index()];
        (known.flags, known.allowed, known.heard) = (flags, allowed, now);
    }

    /// The flags of its last message, and on how many CPUs it may run.
    pub(crate) fn facts(&self, task: Task) -> (u64, u64) {
        let known = self.known.get(task.index());
        known.map_or((0, 0), |known| (known.flags, known.allowed))
    }

    /// How many threads are known.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Looks for some threads, once a second; the tasks of those that are gone.
    pub fn prune(&mut self, now: Nanos, is_there: &dyn Fn(i32) -> bool) -> Vec<Task> {
        if now - self.looked < Nanos::from_secs(1) || self.known.is_empty() {
            return Vec::new();
        }
        self.looked = now;
        let mut gone = Vec::new();
        for _ in 0..LOOKS.min(self.known.len()) {
            self.next = (self.next + 1) % self.known.len();
            let known = self.known[self.next];
            if known.tid != 0 && now - known.heard > SILENCE && !is_there(known.tid) {
                self.tasks.remove(&known.tid);
                self.known[self.next] = Known::default();
                let task = Task(self.next as u32);
                self.free.push_back(task);
                gone.push(task);
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// Goal: tasks are few however large thread numbers are, and come back only when their threads are gone.
    /// Method: threads with large numbers; one ends, is missed, and another thread gets its task.
    #[test]
    fn the_dead_give_their_tasks_back() {
        let mut threads = Threads::default();
        let numbers = [4_194_303, 17, 2_000_000];
        let tasks = numbers.map(|tid| threads.of(tid, Nanos::ZERO));
        assert_eq!(tasks, [(Task(0), true), (Task(1), true), (Task(2), true)]);
        assert_eq!(threads.of(17, SECOND), (Task(1), false));

        let is_there = |tid| tid != 17;
        // Heard of a moment ago: not looked for.
        assert_eq!(threads.prune(SILENCE, &is_there), []);
        let later = SILENCE + SECOND + SECOND;
        assert_eq!(threads.prune(later, &is_there), [Task(1)]);
        assert_eq!(threads.find(17), None);
        assert_eq!(threads.of(99, later), (Task(1), true));
        assert_eq!(threads.tid(Task(1)), 99);
    }

    /// Goal: however many there are, all are looked for in the end, and few at once. Method: a thousand dead
    /// threads.
    #[test]
    fn looking_is_bounded_and_misses_none() {
        let mut threads = Threads::default();
        for tid in 1..=1000 {
            threads.of(tid, Nanos::ZERO);
        }
        let mut now = SILENCE;
        for _ in 0..1000_usize.div_ceil(LOOKS) {
            now += SECOND;
            let gone = threads.prune(now, &|_| false);
            assert!(gone.len() <= LOOKS);
        }
        assert!(threads.is_empty());
    }
}
