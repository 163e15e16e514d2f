//! The kernel's events, one by one.

use event::{Address, Cpu, FutexCall, KernelEventKind, Left, Task};

use super::tasks::TaskPriority;
use super::{At, Builder, Party, QUEUED, Wake};
use crate::Loss;

impl Builder {
    /// A CPU switches from one task to another.
    #[inline]
    pub(crate) fn switch(&mut self, at: &At, prev: &Party<'_>, state: Left, next: &Party<'_>) {
        let prev = self.meet(at, prev);
        let next = self.meet(at, next);
        self.switched(at, prev, state, next);
    }

    /// The same for known tasks.
    #[inline(always)]
    pub(crate) fn switched(
        &mut self,
        at: &At,
        prev: Option<Task>,
        state: Left,
        next: Option<Task>,
    ) {
        if let (Some(task), Left::Dead) = (prev, state) {
            self.people.person(task).is_dead = true;
        }
        self.push(
            at.time,
            at.cpu,
            KernelEventKind::Switch { prev, state, next },
        );
    }

    /// A task is woken.
    #[inline]
    pub(crate) fn wake(&mut self, at: &At, who: &Party<'_>, target: u32, how: Wake) {
        let task = self.meet(at, who);
        self.woken(at, task, target, how);
    }

    /// The same for a known task.
    #[inline(always)]
    pub(crate) fn woken(&mut self, at: &At, task: Option<Task>, target: u32, how: Wake) {
        let (Some(task), Some(target)) = (task, self.cpu(target)) else {
            return self.lose(Loss::BadFields, 1);
        };
        let by = if at.in_interrupt {
            None
        } else {
            self.people.task(at.tid)
        };
        let flag = match how {
            Wake::Decided => {
                self.has_decisions = true;
                0
            }
            Wake::Queued => {
                self.has_queued = true;
                QUEUED
            }
            Wake::New => 0,
        };
        let target = Cpu(target.0 | flag);
        self.push(
            at.time,
            at.cpu,
            KernelEventKind::Waking { task, by, target },
        );
    }

    /// A task is moved to another CPU's queue.
    pub(crate) fn migrate(&mut self, at: &At, who: &Party<'_>, from: u32, to: u32) {
        match (self.meet(at, who), self.cpu(from), self.cpu(to)) {
            (Some(task), Some(from), Some(to)) => {
                self.push(at.time, at.cpu, KernelEventKind::Migrate { task, from, to });
            }
            _ => self.lose(Loss::BadFields, 1),
        }
    }

    /// `sched_pi_setprio`: a lock lends its owner the priority of a waiter, which is the running task, or
    /// takes it back.
    pub(crate) fn inherit(&mut self, at: &At, who: &Party<'_>, before: i16, now: i16) {
        let named = Party {
            priority: Some(before),
            ..*who
        };
        let Some(task) = self.meet(at, &named) else {
            return self.lose(Loss::BadFields, 1);
        };
        let own = self.people.person(task).own_priority().unwrap_or(before);
        self.people.inherit(task, TaskPriority { now, own });
        let lent = now < own;
        let from = if lent && at.tid != who.tid {
            self.people.task(at.tid)
        } else {
            None
        };
        if from.is_some() || !lent {
            self.push(at.time, at.cpu, KernelEventKind::Inherit { task, from });
        }
        self.push(at.time, at.cpu, changed(task, now, lent));
    }

    /// The frequency of a CPU changed.
    pub(crate) fn frequency(&mut self, at: &At, cpu: u32, khz: u32) {
        self.push(at.time, cpu, KernelEventKind::Frequency(khz));
    }

    /// The frequency of a CPU may be no higher than this from now on.
    pub(crate) fn frequency_limit(&mut self, at: &At, cpu: u32, khz: u32) {
        self.push(at.time, cpu, KernelEventKind::FrequencyLimit(khz));
    }

    /// A CPU goes to sleep in this state, or wakes up (`u32::MAX`).
    pub(crate) fn idle(&mut self, at: &At, cpu: u32, state: u32) {
        match (state, u8::try_from(state)) {
            (u32::MAX, _) => self.push(at.time, cpu, KernelEventKind::Idle(None)),
            (_, Ok(state)) => self.push(at.time, cpu, KernelEventKind::Idle(Some(state))),
            _ => self.lose(Loss::BadFields, 1),
        }
    }

    /// A CPU goes online or offline.
    pub(crate) fn online(&mut self, at: &At, cpu: u32, is_online: bool) {
        if let Some(known) = self.cpu(cpu) {
            self.cpus[known.index()].is_online = Some(is_online);
        }
        self.push(at.time, cpu, KernelEventKind::Online(is_online));
    }

    /// A step of a CPU's way up or down: the first one counts.
    pub(crate) fn hotplug_towards(&mut self, at: &At, cpu: u32, is_online: bool) {
        match self.cpu(cpu) {
            Some(known) if self.cpus[known.index()].is_online != Some(is_online) => {
                self.online(at, cpu, is_online);
            }
            Some(_) => {}
            None => self.lose(Loss::BadFields, 1),
        }
    }

    /// The reason of an uninterruptible sleep of a task. `function`: the kernel's function in which it slept;
    /// empty: it is not known.
    pub(crate) fn blocked(&mut self, at: &At, tid: u32, io: bool, function: &[u8]) {
        let function = (!function.is_empty()).then(|| self.word(function).0);
        match self.people.task(tid) {
            Some(task) => {
                let what = KernelEventKind::Blocked { task, io, function };
                self.push(at.time, at.cpu, what);
            }
            None => self.lose(Loss::BadFields, 1),
        }
    }

    /// A task is put aside because the CPU time of its group is used up, or may go on.
    pub(crate) fn throttle(&mut self, at: &At, tid: u32, begins: bool) {
        match self.people.task(tid) {
            Some(task) => {
                self.push(at.time, at.cpu, KernelEventKind::Throttle { task, begins });
            }
            None => self.lose(Loss::BadFields, 1),
        }
    }

    /// The running task enters the kernel because of a futex. `op` is the system call's.
    pub(crate) fn futex_call(&mut self, at: &At, address: u64, op: u32) {
        // `include/uapi/linux/futex.h`; bits 7 and 8 mean private, and the clock.
        let call = match op & 0x7f {
            0 | 9 | 11 => FutexCall::Wait,
            1 | 3 | 4 | 5 | 10 | 12 => FutexCall::Wake,
            6 | 13 => FutexCall::LockPi,
            7 => FutexCall::UnlockPi,
            _ => FutexCall::Other,
        };
        match self.people.task(at.tid) {
            Some(task) => {
                let what = KernelEventKind::FutexCall {
                    task,
                    address: Address::new(address),
                    call,
                };
                self.push(at.time, at.cpu, what);
            }
            None => self.lose(Loss::BadFields, 1),
        }
    }

    /// The task returns from the call.
    pub(crate) fn futex_return(&mut self, at: &At, result: i32) {
        match self.people.task(at.tid) {
            Some(task) => {
                self.push(
                    at.time,
                    at.cpu,
                    KernelEventKind::FutexReturn { task, result },
                );
            }
            None => self.lose(Loss::BadFields, 1),
        }
    }

    /// An interrupt begins or ends.
    pub(crate) fn interrupt(&mut self, at: &At, begins: bool, soft: bool, number: u32) {
        let what = KernelEventKind::Interrupt {
            begins,
            soft,
            number,
        };
        self.push(at.time, at.cpu, what);
    }

    /// Events are missing before the next one of this CPU; 0: an unknown number.
    pub(crate) fn gap(&mut self, cpu: u32, events: u64) {
        match events {
            0 => self.lose(Loss::Gaps, 1),
            events => self.lose(Loss::KernelEvents, events),
        }
        let Some(cpu) = self.cpu(cpu) else {
            return;
        };
        let gap = &mut self.cpus[cpu.index()].gap;
        let more = u32::try_from(events).unwrap_or(u32::MAX);
        self.gaps += usize::from(gap.is_none());
        *gap = Some(gap.unwrap_or(0).saturating_add(more));
    }

    /// There are this many CPUs, whether or not they have events.
    pub(crate) fn cpus(&mut self, count: u32) {
        if count > 0 && self.cpu(count - 1).is_some() {
            for cpu in &mut self.cpus[..count as usize] {
                cpu.exists = true;
            }
        }
    }
}

/// A task's new priority as an event.
pub(super) fn changed(task: Task, priority: i16, lent: bool) -> KernelEventKind {
    KernelEventKind::Priority {
        task,
        priority,
        lent,
    }
}
