//! A policy's view of the machine when it chooses a CPU, and the two ways in which kernels place woken tasks.

use event::{Cpu, Nanos, Task};

/// The CPUs of the machine at this moment, as a policy may look at them.
pub trait Cpus {
    /// How many there are; they are numbered from 0.
    fn len(&self) -> usize;
    /// Whether there are none. There always are some.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether the CPU takes tasks: it is online and not paused.
    fn is_active(&self, cpu: Cpu) -> bool;
    /// Whether nothing runs there and nothing is about to.
    fn is_idle(&self, cpu: Cpu) -> bool;
    /// The task that runs there.
    fn current(&self, cpu: Cpu) -> Option<Task>;
    /// How fast the CPU can be, as a share of the fastest, which has 1024.
    fn capacity(&self, cpu: Cpu) -> u32;
    /// Whether the task may run there: its mask has the CPU, or names no active one.
    fn allows(&self, task: Task, cpu: Cpu) -> bool;
    /// The CPU that the task ran on last.
    fn last_cpu(&self, task: Task) -> Cpu;
    /// Whether the task has not run yet. Default: it has.
    fn is_new(&self, task: Task) -> bool {
        let _ = task;
        false
    }
    /// How long the task slept before it was woken last; nothing if it never slept. Default: for ever, as far
    /// as is known.
    fn last_sleep(&self, task: Task) -> Nanos {
        let _ = task;
        Nanos::MAX
    }
    /// Whether two CPUs share their last-level cache.
    fn share_cache(&self, a: Cpu, b: Cpu) -> bool;
    /// Whether two CPUs are hardware threads of one core.
    fn share_core(&self, a: Cpu, b: Cpu) -> bool;
    /// How the machine's kernel places woken tasks.
    fn placement(&self) -> Placement;
}

/// CPUs a task may run on.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Mask(Vec<u64>);

impl Mask {
    /// Of these CPUs.
    pub fn of(cpus: impl IntoIterator<Item = Cpu>) -> Mask {
        let mut mask = Mask::default();
        cpus.into_iter().for_each(|cpu| mask.insert(cpu));
        mask
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: Cpu) {
        let word = cpu.index() / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (cpu.index() % 64);
    }

    /// Whether the CPU is one of them.
    #[inline]
    pub fn has(&self, cpu: Cpu) -> bool {
        let word = self.0.get(cpu.index() / 64);
        word.is_some_and(|word| word & (1 << (cpu.index() % 64)) != 0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

/// How a kernel chooses a CPU for a task that wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Placement {
    /// As Linux's fair class does: the previous CPU or the waker's if it is idle, else an idle one that
    /// shares a cache with it.
    #[default]
    Mainline,
    /// As a kernel booted with `sched_vcpu_pack` does: on the waker's CPU, whatever else idles, if the waker
    /// itself had slept for a while ([`PACKS_AFTER`]). A CPU that idles is left alone while others have more
    /// than one task, until it is woken for another reason. Virtual machines have it, to keep virtual CPUs
    /// halted. Measured on Linux 6.18 with 2 virtual CPUs: frames of 4 ms at 60 Hz get no second CPU, and
    /// frames without a pause between them do.
    Pack,
}

/// How long a waker must have slept for the task that it wakes to be packed. Measured shares of wake-ups that
/// ended on the waker's CPU: 84 to 93 % after sleeps of 1 and 2 ms, up to 7 % after 0.5 ms, 1 to 18 % if the
/// waker had computed as long instead.
pub const PACKS_AFTER: Nanos = Nanos::from_micros(750);

/// The CPU for a task that has not run yet. It is in the last-level cache with the smallest share of busy
/// CPUs, among equals the one nearest to its parent's CPU. There a core that idles as a whole is taken, the
/// fastest first. Linux balances at a fork over all CPUs as well.
fn place_new(task: Task, parent: Cpu, cpus: &dyn Cpus) -> Cpu {
    let all = || (0..cpus.len() as u32).map(Cpu);
    let usable = |cpu: &Cpu| cpus.is_active(*cpu) && cpus.allows(task, *cpu);
    let group = |cpu: Cpu| all().filter(move |&other| cpus.share_cache(cpu, other));
    let busy = |cpu: Cpu| {
        let busy = group(cpu).filter(|&other| !cpus.is_idle(other)).count();
        busy * 1024 / group(cpu).count().max(1)
    };
    let whole = |cpu: Cpu| all().all(|other| !cpus.share_core(other, cpu) || cpus.is_idle(other));
    let key = |cpu: &Cpu| {
        let distance = (cpu.0 + cpus.len() as u32 - parent.0) % cpus.len() as u32;
        let slowness = u32::MAX - cpus.capacity(*cpu);
        (
            !cpus.is_idle(*cpu),
            slowness,
            !whole(*cpu),
            busy(*cpu),
            distance,
        )
    };
    all().filter(usable).min_by_key(key).unwrap_or(parent)
}

/// The CPU for a fair task that wakes up, or begins, on `waker`; `None` if it was an interrupt that
/// woke it.
///
/// `Mainline` follows `select_task_rq_fair` as far as its effects are documented: the *target* is the
/// waker's CPU if that shares a cache with the task's last one and is idle (WA_IDLE), else the last one.
/// An idle target is taken, then an idle last CPU, then an idle core near the target, then an idle CPU
/// near it. A CPU with more capacity goes first where CPUs differ. If nothing idles there, the target.
///
/// Left out: load averages (WA_WEIGHT), energy-aware placement, and the limits on how long the kernel
/// looks around (SIS_UTIL): all CPUs that share the cache are looked at.
pub fn place(task: Task, waker: Option<Cpu>, cpus: &dyn Cpus) -> Cpu {
    let usable = |cpu: Cpu| cpus.is_active(cpu) && cpus.allows(task, cpu);
    let last = cpus.last_cpu(task);
    if let (Placement::Pack, Some(waker)) = (cpus.placement(), waker)
        && usable(waker)
        && cpus
            .current(waker)
            .is_some_and(|by| cpus.last_sleep(by) >= PACKS_AFTER)
    {
        return waker;
    }
    let target = match waker {
        Some(waker) if usable(waker) && !usable(last) => waker,
        Some(waker) if usable(waker) && cpus.share_cache(waker, last) && cpus.is_idle(waker) => {
            waker
        }
        _ => last,
    };
    if cpus.is_new(task) {
        return place_new(task, last, cpus);
    }
    let all = || (0..cpus.len() as u32).map(Cpu);
    let best = all()
        .filter(|&cpu| usable(cpu))
        .map(|cpu| cpus.capacity(cpu))
        .max();
    let Some(best) = best else {
        return last;
    };
    // 5 %: the least difference that Linux calls a greater capacity.
    let is_fast = |cpu: Cpu| cpus.capacity(cpu) * 1078 / 1024 >= best;
    for cpu in [target, last] {
        if usable(cpu) && cpus.is_idle(cpu) && is_fast(cpu) {
            return cpu;
        }
    }
    let near = |cpu: &Cpu| cpus.share_cache(*cpu, target);
    let idle = |cpu: &Cpu| usable(*cpu) && cpus.is_idle(*cpu);
    let whole = |cpu: &Cpu| all().all(|other| !cpus.share_core(other, *cpu) || cpus.is_idle(other));
    // Nearest and freest first; among equals the fastest, then the lowest number after the target.
    let key = |cpu: &Cpu| {
        let distance = (cpu.0 + cpus.len() as u32 - target.0) % cpus.len() as u32;
        let slowness = u32::MAX - cpus.capacity(*cpu);
        (slowness, !near(cpu), !whole(cpu), distance)
    };
    let found = all().filter(idle).min_by_key(key);
    found
        .or_else(|| usable(target).then_some(target))
        .or_else(|| usable(last).then_some(last))
        .or_else(|| all().find(|&cpu| usable(cpu)))
        .unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Still;

    /// Goal: a kernel that packs puts a task on its waker's CPU if the waker had slept, and otherwise, or if
    /// an interrupt woke it, where other kernels put it. Method: both placements, both sides of the limit.
    #[test]
    fn packing_follows_a_sleep() {
        let place = |placement, waker, waker_slept| {
            // Task 0 runs on the first CPU and wakes task 1, which was on the second one, idle now.
            let cpus = Still {
                running: vec![Some(Task(0)), None],
                last: vec![Cpu(0), Cpu(1)],
                slept: waker_slept,
                placement,
                ..Still::idle(2)
            };
            place(Task(1), waker, &cpus)
        };
        let (here, idle) = (Cpu(0), Cpu(1));
        let just_less = PACKS_AFTER - Nanos(1);
        assert_eq!(place(Placement::Pack, Some(here), PACKS_AFTER), here);
        assert_eq!(place(Placement::Pack, Some(here), just_less), idle);
        assert_eq!(place(Placement::Pack, None, PACKS_AFTER), idle);
        assert_eq!(place(Placement::Mainline, Some(here), PACKS_AFTER), idle);
    }
}
