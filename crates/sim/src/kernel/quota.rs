//! Quotas of CPU time: in each period a group of tasks may use a fixed amount and no more, as `cpu.max` of a
//! control group says on Linux.
//!
//! Written after the kernel's documentation (`Documentation/scheduler/sched-bwc.rst`). The group has a pool,
//! which is filled at the beginning of each period. A CPU that runs tasks of the group takes slices out of
//! it. If a CPU's share is used up while the pool is empty, the CPU *throttles* these tasks: it runs none of
//! them until it gets more time. When the last task of the group leaves a CPU, the rest of its share goes
//! back to the pool, but for a small reserve, and soon after that to throttled CPUs. The kernel notices at
//! ticks and at picks that a share is used up: the time used beyond it is a debt, which is paid first.
//!
//! A throttled task is in no queue of the class: it was moved away, so it keeps its lag. The trace says when
//! it is put aside and when it may go on, which a real kernel's does not.
//!
//! Only tasks that the class schedules fairly have a quota ([`policy::Class::rations`]). Left out: groups in
//! groups, and bursts.
//!
//! Invariant: a task is `Throttled` exactly if it is in `parked`; then it is neither queued nor running.

use event::{Cpu, KernelEventKind, Nanos, Task};
use policy::{Dequeue, Enqueue};

use super::{Kernel, TaskPhase};
use crate::config::CpuQuota;
use crate::report::QuotaUse;

/// The time that a CPU takes from the pool at once (`sched_cfs_bandwidth_slice_us`).
const SLICE: i64 = 5_000_000;
/// The time that a CPU keeps when it has no more tasks of the group.
const REST: i64 = 1_000_000;
/// The delay after which time that went back to the pool is given to throttled CPUs.
const SLACK_AFTER: Nanos = Nanos::from_millis(5);

/// The quota of a run's group.
#[derive(Debug)]
pub(super) struct Rations {
    of: CpuQuota,
    pool: i64,
    /// The period for which the pool was filled last.
    filled: u64,
    /// When time that went back to the pool is given out again.
    slack_at: Nanos,
    shares: Vec<Share>,
    /// The throttled tasks, in the order in which they were throttled.
    parked: Vec<Task>,
    used: QuotaUse,
}

/// A CPU's share of the quota.
#[derive(Clone, Debug)]
struct Share {
    /// The time that is left. Below zero: a debt.
    left: i64,
    /// The time up to which the running task has been counted.
    counted: Nanos,
    throttled_since: Option<Nanos>,
}

/// How many periods have begun.
fn number(of: &CpuQuota, now: Nanos) -> u64 {
    (now + of.period - of.first).0 / of.period.0
}

impl Rations {
    pub(super) fn new(of: CpuQuota, cpus: usize) -> Rations {
        let share = Share {
            left: 0,
            counted: Nanos::ZERO,
            throttled_since: None,
        };
        Rations {
            pool: of.runtime.0 as i64,
            filled: number(&of, Nanos::ZERO),
            of,
            slack_at: Nanos::MAX,
            shares: vec![share; cpus],
            parked: Vec::new(),
            used: QuotaUse::default(),
        }
    }

    /// Fills the pool if a period has begun since.
    fn fill(&mut self, now: Nanos) {
        let period = number(&self.of, now);
        if period > self.filled {
            self.filled = period;
            self.pool = self.of.runtime.0 as i64;
        }
    }

    /// The earliest time at which a throttled task may go on.
    fn due(&self) -> Nanos {
        if self.parked.is_empty() {
            Nanos::MAX
        } else {
            let next = self.of.first + Nanos(self.filled * self.of.period.0);
            next.min(self.slack_at)
        }
    }

    /// Fills the CPU's share up to `wanted` out of the pool, after its debt. Returns whether it has time
    /// then.
    fn grant(&mut self, cpu: Cpu, wanted: i64) -> bool {
        let share = &mut self.shares[cpu.index()];
        let granted = (wanted - share.left).clamp(0, self.pool);
        self.pool -= granted;
        share.left += granted;
        share.left > 0
    }

    /// Whether the CPU may run tasks of the group at this moment.
    fn may_run(&mut self, cpu: Cpu, now: Nanos) -> bool {
        self.fill(now);
        let share = &self.shares[cpu.index()];
        share.throttled_since.is_none() && (share.left > 0 || self.grant(cpu, SLICE))
    }

    /// The CPU has no more tasks of the group.
    fn give_back(&mut self, cpu: Cpu, now: Nanos) {
        self.fill(now);
        let share = &mut self.shares[cpu.index()];
        let surplus = share.left - REST;
        if surplus <= 0 {
            return;
        }
        share.left = REST;
        self.pool += surplus;
        if self.pool > SLICE && !self.parked.is_empty() && self.slack_at == Nanos::MAX {
            self.slack_at = now + SLACK_AFTER;
        }
    }
}

impl Kernel {
    /// The same with a quota, if there is one.
    pub(crate) fn with_quota(mut self, quota: Option<CpuQuota>) -> Kernel {
        let cpus = self.cores.len();
        self.rations = quota.map(|quota| Box::new(Rations::new(quota, cpus)));
        self
    }

    /// Whether a new task belongs to the group: by its name if no task started it, else as the task that did.
    pub(super) fn is_rationed(&self, name: &str, by: Option<Task>) -> bool {
        match (&self.rations, by) {
            (None, _) => false,
            (Some(_), Some(by)) => self.tasks[by.index()].rationed,
            (Some(rations), None) => rations.of.covers(name),
        }
    }

    fn counts(&self, task: Task) -> bool {
        self.tasks[task.index()].rationed && self.class.rations(task)
    }

    /// Counts the time of the running task on this CPU up to now. Called before the running task changes, and
    /// at ticks.
    pub(super) fn count_share(&mut self, cpu: Cpu) {
        if self.rations.is_none() {
            return;
        }
        let counts = self.cores[cpu.index()]
            .task
            .is_some_and(|task| self.counts(task));
        let now = self.now;
        let Some(rations) = &mut self.rations else {
            return;
        };
        let share = &mut rations.shares[cpu.index()];
        let passed = now - share.counted;
        share.counted = now;
        if counts {
            share.left -= passed.0 as i64;
        }
    }

    /// Whether the quota lets the task run on this CPU. To be asked after
    /// [`count_share`](Kernel::count_share).
    pub(super) fn has_ration(&mut self, cpu: Cpu, task: Task) -> bool {
        if self.rations.is_none() || !self.counts(task) {
            return true;
        }
        let now = self.now;
        let rations = self.rations.as_mut();
        rations.is_none_or(|rations| rations.may_run(cpu, now))
    }

    /// The CPU runs no task of the group until it gets more of the quota. The waiting tasks of the group, and
    /// `picked`, which the class has just named, are taken out of its queue.
    pub(super) fn throttle(&mut self, cpu: Cpu, picked: Task) {
        let now = self.now;
        for index in 0..self.tasks.len() {
            let task = super::task(index);
            let control = &self.tasks[index];
            let waits_here = control.phase == TaskPhase::Ready && control.cpu == cpu;
            if task != picked && !(waits_here && self.counts(task)) {
                continue;
            }
            self.class.dequeue(cpu, task, Dequeue::Move, now);
            let control = &mut self.tasks[index];
            control.is_parked = true;
            if control.phase == TaskPhase::Ready {
                control.set_phase(TaskPhase::Throttled, now);
            }
            if let Some(rations) = &mut self.rations {
                rations.parked.push(task);
            }
            self.record(cpu, KernelEventKind::Throttle { task, begins: true });
        }
        if let Some(rations) = &mut self.rations {
            rations.shares[cpu.index()]
                .throttled_since
                .get_or_insert(now);
        }
        self.beside_cpus = self.beside_cpus.min(self.quota_due());
    }

    /// The next event of the quota itself.
    pub(super) fn quota_due(&self) -> Nanos {
        self.rations
            .as_ref()
            .map_or(Nanos::MAX, |rations| rations.due())
    }

    /// A period begins, or time that went back to the pool is given out.
    pub(super) fn hand_out_quota(&mut self) {
        let now = self.now;
        let mut free = Vec::new();
        if let Some(rations) = &mut self.rations {
            let before = rations.filled;
            rations.fill(now);
            rations.used.throttled_periods += u64::from(rations.filled > before);
            rations.slack_at = Nanos::MAX;
            for index in 0..rations.shares.len() {
                let cpu = Cpu(index as u32);
                let since = rations.shares[index].throttled_since;
                if let Some(since) = since.filter(|_| rations.grant(cpu, 1)) {
                    rations.used.throttled += now - since;
                    rations.shares[index].throttled_since = None;
                    free.push(cpu);
                }
            }
        }
        for cpu in free {
            self.unthrottle(cpu);
        }
    }

    /// The tasks that were throttled on this CPU wait for it again.
    fn unthrottle(&mut self, cpu: Cpu) {
        let Some(rations) = &mut self.rations else {
            return;
        };
        let tasks = &self.tasks;
        let is_here = |task: &mut Task| tasks[task.index()].cpu == cpu;
        let back: Vec<Task> = rations.parked.extract_if(.., is_here).collect();
        let now = self.now;
        for task in back {
            let control = &mut self.tasks[task.index()];
            control.is_parked = false;
            control.set_phase(TaskPhase::Ready, now);
            let begins = false;
            self.record(cpu, KernelEventKind::Throttle { task, begins });
            let to = if self.may_run(task, cpu) {
                cpu
            } else {
                self.choose_cpu(task, None)
            };
            self.tasks[task.index()].cpu = to;
            self.class.enqueue(to, task, Enqueue::Move, now);
            if to != cpu {
                let what = KernelEventKind::Migrate {
                    task,
                    from: cpu,
                    to,
                };
                self.record(to, what);
            }
            self.see_who_runs(to, task, None);
        }
    }

    /// If the last task of the group has left this CPU, its share goes back to the pool.
    pub(super) fn give_share_back(&mut self, cpu: Cpu) {
        if self.rations.is_none() {
            return;
        }
        let is_here = |(index, control): (usize, &super::Control)| {
            let is_ready = matches!(control.phase, TaskPhase::Ready | TaskPhase::Running);
            is_ready && control.cpu == cpu && self.counts(super::task(index))
        };
        if self.tasks.iter().enumerate().any(is_here) {
            return;
        }
        let now = self.now;
        if let Some(rations) = &mut self.rations {
            rations.give_back(cpu, now);
        }
        self.beside_cpus = self.beside_cpus.min(self.quota_due());
    }

    /// The use of the quota up to now.
    pub(crate) fn quota_use(&self) -> Option<QuotaUse> {
        let rations = self.rations.as_ref()?;
        let open = rations
            .shares
            .iter()
            .filter_map(|share| share.throttled_since);
        let open: u64 = open.map(|since| (self.now - since).0).sum();
        Some(QuotaUse {
            periods: self.now.0.div_ceil(rations.of.period.0),
            throttled: rations.used.throttled + Nanos(open),
            ..rations.used
        })
    }
}
