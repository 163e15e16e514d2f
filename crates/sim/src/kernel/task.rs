//! The kernel's state of a task.

use event::{Cpu, Nanos, Task};
use policy::{Attr, Mask};

use crate::report::{On, Spent};

/// The state of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskPhase {
    /// It waits for a CPU.
    Ready,
    /// It has a CPU.
    Running,
    /// It waits for something else.
    Blocked(On),
    /// It could run, but its group's quota of CPU time is used up.
    Throttled,
    /// It has ended.
    Ended,
}

/// The work of a task before its program continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Busy {
    /// Time that passes the same on every CPU: accesses to memory, the kernel's own work.
    pub(crate) fixed: Nanos,
    /// Work, as time on the machine's fastest CPU.
    pub(crate) work: Nanos,
}

impl Busy {
    pub(crate) const NOTHING: Busy = Busy {
        fixed: Nanos::ZERO,
        work: Nanos::ZERO,
    };

    pub(crate) fn fixed(fixed: Nanos) -> Busy {
        Busy {
            fixed,
            work: Nanos::ZERO,
        }
    }
}

/// A task.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) name: String,
    /// The attributes it asked for, and those it has: others may lend it some.
    pub(crate) own_attr: Attr,
    pub(crate) attr: Attr,
    pub(crate) mask: Mask,
    pub(crate) phase: TaskPhase,
    /// The CPU whose queue it is in, or was in last.
    pub(crate) cpu: Cpu,
    /// The CPU on which it ran last: continuing on another one costs something.
    pub(crate) ran_on: Option<Cpu>,
    /// The work that is left for when it gets a CPU.
    pub(crate) left: Busy,
    /// When it wakes up by itself, while it is blocked.
    pub(crate) until: Nanos,
    /// The number of its current wait: timers of earlier waits are void.
    pub(crate) wait: u64,
    /// Whether it is in the group that has the quota of CPU time, and whether it was taken out of its queue
    /// for that.
    pub(crate) rationed: bool,
    pub(crate) is_parked: bool,
    /// The mutex it waits for.
    pub(crate) waits_for_mutex: Option<u32>,
    /// The word it spins on, with its line.
    pub(crate) spins_on: Option<On>,
    /// How long it slept before it was woken last.
    pub(crate) last_sleep: Nanos,
    /// The time since which it has been in its phase, as far as `spent` is concerned.
    since: Nanos,
    pub(crate) began: Nanos,
    pub(crate) ended: Nanos,
    pub(crate) spent: Spent,
    pub(crate) charged: Nanos,
    /// On a CPU, for what it charged.
    pub(crate) worked: Nanos,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    /// How often it has run and stopped.
    stints: u64,
}

impl Control {
    pub(crate) fn new(name: String, attr: Attr, mask: Mask, cpu: Cpu, now: Nanos) -> Control {
        Control {
            name,
            own_attr: attr.clone(),
            attr,
            mask,
            phase: TaskPhase::Ready,
            cpu,
            ran_on: None,
            left: Busy::NOTHING,
            until: Nanos::MAX,
            wait: 0,
            rationed: false,
            is_parked: false,
            waits_for_mutex: None,
            spins_on: None,
            last_sleep: Nanos::ZERO,
            since: now,
            began: now,
            ended: Nanos::MAX,
            spent: Spent::default(),
            charged: Nanos::ZERO,
            worked: Nanos::ZERO,
            voluntary: 0,
            involuntary: 0,
            stints: 0,
        }
    }

    /// It is in another phase from now on.
    pub(crate) fn set_phase(&mut self, phase: TaskPhase, now: Nanos) {
        if let TaskPhase::Blocked(_) = self.phase {
            self.last_sleep = self.in_phase_for(now);
        }
        self.stints = self.stints_until(now);
        self.spent = self.spent_until(now);
        self.since = now;
        self.phase = phase;
    }

    /// Where its time has gone up to now.
    pub(crate) fn spent_until(&self, now: Nanos) -> Spent {
        let mut spent = self.spent;
        let passed = now - self.since;
        match self.phase {
            TaskPhase::Running => spent.run += passed,
            TaskPhase::Ready => spent.runnable += passed,
            TaskPhase::Throttled => {
                spent.runnable += passed;
                spent.throttled += passed;
            }
            TaskPhase::Blocked(_) => spent.sleep += passed,
            TaskPhase::Ended => {}
        }
        spent
    }

    /// How many times it has had a CPU up to now; a time of zero does not count.
    pub(crate) fn stints_until(&self, now: Nanos) -> u64 {
        self.stints + u64::from(self.is_running() && now > self.since)
    }

    /// How long it has been in its phase.
    pub(crate) fn in_phase_for(&self, now: Nanos) -> Nanos {
        now - self.since
    }

    pub(crate) fn is_running(&self) -> bool {
        self.phase == TaskPhase::Running
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.phase != TaskPhase::Ended
    }
}

/// A task's number, from an index.
pub(crate) fn task(index: usize) -> Task {
    Task(index as u32)
}
