//! The kernel's own objects for waiting: mutexes, queues of messages, semaphores.
//!
//! They cost what the kernel's calls cost, and no cache lines. A mutex may *inherit*: while a task waits for
//! it, its holder runs with the attributes that the waiter lends it ([`policy::Class::lend`]), along the
//! chain of holders that wait themselves. Such a mutex is handed to the waiter that the policy prefers. A
//! mutex that does not inherit becomes free, and the first task that comes takes it, as with a futex.

use std::collections::VecDeque;

use event::{KernelEventKind, Task};
use policy::Attr;

use super::Kernel;

/// The longest chain of waiting holders that is followed: the limit of Linux.
const CHAIN_MAX: usize = 1024;

/// All objects of a run.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    mutexes: Vec<KernelMutex>,
    queues: Vec<KernelQueue>,
    semaphores: Vec<KernelSemaphore>,
}

#[derive(Debug)]
struct KernelMutex {
    inherits: bool,
    holder: Option<Task>,
    /// The waiting tasks, in the order in which they came.
    waiters: VecDeque<Task>,
}

#[derive(Debug)]
struct KernelQueue {
    capacity: usize,
    messages: VecDeque<u64>,
    receivers: VecDeque<Task>,
    senders: VecDeque<Task>,
}

#[derive(Debug)]
struct KernelSemaphore {
    count: u64,
    waiters: VecDeque<Task>,
}

impl Kernel {
    pub(crate) fn new_mutex(&mut self, inherits: bool) -> u32 {
        self.syncs.mutexes.push(KernelMutex {
            inherits,
            holder: None,
            waiters: VecDeque::new(),
        });
        self.syncs.mutexes.len() as u32 - 1
    }

    pub(crate) fn new_queue(&mut self, capacity: usize) -> u32 {
        self.syncs.queues.push(KernelQueue {
            capacity,
            messages: VecDeque::new(),
            receivers: VecDeque::new(),
            senders: VecDeque::new(),
        });
        self.syncs.queues.len() as u32 - 1
    }

    pub(crate) fn new_semaphore(&mut self, count: u64) -> u32 {
        let waiters = VecDeque::new();
        self.syncs
            .semaphores
            .push(KernelSemaphore { count, waiters });
        self.syncs.semaphores.len() as u32 - 1
    }

    /// Takes the mutex for the running task if it is free. Else returns the holder; the task is now one of
    /// the waiters and has to block.
    pub(crate) fn try_lock(&mut self, mutex: u32) -> Result<(), Task> {
        let me = self.me();
        let state = &mut self.syncs.mutexes[mutex as usize];
        match state.holder {
            None => {
                state.holder = Some(me);
                state.waiters.retain(|&waiter| waiter != me);
                Ok(())
            }
            Some(holder) => {
                if !state.waiters.contains(&me) {
                    state.waiters.push_back(me);
                }
                self.tasks[me.index()].waits_for_mutex = Some(mutex);
                self.lend_along(mutex);
                Err(holder)
            }
        }
    }

    /// Whether the mutex was handed to the running task, which has waited for it.
    pub(crate) fn holds(&mut self, mutex: u32) -> bool {
        let me = self.me();
        self.tasks[me.index()].waits_for_mutex = None;
        self.syncs.mutexes[mutex as usize].holder == Some(me)
    }

    /// The running task gives the mutex back.
    pub(crate) fn unlock(&mut self, mutex: u32) {
        let me = self.me();
        let state = &self.syncs.mutexes[mutex as usize];
        assert!(
            state.holder == Some(me),
            "thread {:?} unlocks a mutex that it does not hold",
            self.tasks[me.index()].name
        );
        let inherits = state.inherits;
        let next = if inherits {
            self.preferred(mutex)
        } else {
            state.waiters.front().copied()
        };
        let state = &mut self.syncs.mutexes[mutex as usize];
        state.holder = next.filter(|_| inherits);
        if let Some(next) = next {
            if inherits {
                state.waiters.retain(|&waiter| waiter != next);
            }
            self.tasks[next.index()].waits_for_mutex = None;
        }
        if inherits {
            self.settle(me);
            if let Some(next) = next {
                self.settle(next);
            }
        }
        if let Some(next) = next {
            self.wake(next, Some(me));
        }
    }

    /// The next waiter: the one the policy prefers, among equals the one that came first.
    fn preferred(&self, mutex: u32) -> Option<Task> {
        let waiters = &self.syncs.mutexes[mutex as usize].waiters;
        let attr = |task: Task| &self.tasks[task.index()].attr;
        let mut best = *waiters.front()?;
        for &waiter in waiters.iter().skip(1) {
            if self.class.lend(attr(waiter), attr(best)).is_some() {
                best = waiter;
            }
        }
        Some(best)
    }

    /// A task waits for this mutex from now on: its holder may run with more, and so may the holder of the
    /// mutex that this holder waits for, and so on.
    fn lend_along(&mut self, mut mutex: u32) {
        for _ in 0..CHAIN_MAX {
            let state = &self.syncs.mutexes[mutex as usize];
            let Some(holder) = state.holder.filter(|_| state.inherits) else {
                return;
            };
            if !self.settle(holder) {
                return;
            }
            match self.tasks[holder.index()].waits_for_mutex {
                Some(next) => mutex = next,
                None => return,
            }
        }
    }

    /// Gives the task its own attributes and those that waiters for its mutexes lend it. True if they have
    /// changed.
    fn settle(&mut self, task: Task) -> bool {
        let control = &self.tasks[task.index()];
        let mut attr = control.own_attr.clone();
        let mut from = None;
        for state in &self.syncs.mutexes {
            if state.holder != Some(task) || !state.inherits {
                continue;
            }
            for &waiter in &state.waiters {
                if let Some(lent) = self.class.lend(&self.tasks[waiter.index()].attr, &attr) {
                    attr = lent;
                    from = Some(waiter);
                }
            }
        }
        if attr == self.tasks[task.index()].attr {
            return false;
        }
        let cpu = self.tasks[task.index()].cpu;
        self.record(cpu, KernelEventKind::Inherit { task, from });
        self.apply_attr(task, attr);
        true
    }

    /// The task asks for these attributes from now on; those that others lend it stay.
    pub(crate) fn set_attr(&mut self, task: Task, attr: Attr) {
        self.tasks[task.index()].own_attr = attr.clone();
        self.apply_attr(task, attr);
        self.settle(task);
    }

    /// Puts a message into the queue. `Err`: it is full, and the running task is one of the waiters.
    pub(crate) fn try_send(&mut self, queue: u32, message: u64) -> Result<(), ()> {
        let me = self.me();
        let state = &mut self.syncs.queues[queue as usize];
        if state.messages.len() >= state.capacity {
            state.senders.push_back(me);
            return Err(());
        }
        state.messages.push_back(message);
        if let Some(receiver) = state.receivers.pop_front() {
            self.wake(receiver, Some(me));
        }
        Ok(())
    }

    /// Takes a message out. `None`: there is none, and the running task is one of the waiters.
    pub(crate) fn try_receive(&mut self, queue: u32) -> Option<u64> {
        let me = self.me();
        let state = &mut self.syncs.queues[queue as usize];
        let Some(message) = state.messages.pop_front() else {
            state.receivers.push_back(me);
            return None;
        };
        if let Some(sender) = state.senders.pop_front() {
            self.wake(sender, Some(me));
        }
        Some(message)
    }

    /// The task that the next [`post`](Kernel::post) wakes.
    pub(crate) fn next_to_take(&self, semaphore: u32) -> Option<Task> {
        self.syncs.semaphores[semaphore as usize]
            .waiters
            .front()
            .copied()
    }

    /// Counts up, and wakes the first waiter.
    pub(crate) fn post(&mut self, semaphore: u32) {
        let me = self.me();
        let state = &mut self.syncs.semaphores[semaphore as usize];
        state.count += 1;
        if let Some(waiter) = state.waiters.pop_front() {
            self.wake(waiter, Some(me));
        }
    }

    /// Counts down. False: it is at zero, and the running task is one of the waiters.
    pub(crate) fn try_take(&mut self, semaphore: u32) -> bool {
        let me = self.me();
        let state = &mut self.syncs.semaphores[semaphore as usize];
        if state.count == 0 {
            state.waiters.push_back(me);
            return false;
        }
        state.count -= 1;
        true
    }
}
