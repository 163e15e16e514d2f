//! Times that tell the order of kernel events.
//!
//! A file has events by CPU, and its readers merge them by their times alone. Clocks are coarse, and
//! simulated ones stand still while things happen: a task may leave one CPU and arrive at another at the same
//! time. Read again, it could arrive first. So the later event of a task on another CPU is at least a
//! nanosecond later, and the events after it on that CPU are no earlier.

use std::collections::HashMap;

use event::{Cpu, KernelEvent, KernelEventKind, Nanos, Task};

use crate::Recording;

/// Moves kernel events, which are in order, by the nanoseconds that make their times tell the order, as
/// writing them does. Returns the number of moved events. After that, statements about the recording hold for
/// its file, too.
pub fn settle_order(recording: &mut Recording) -> u64 {
    let mut order = Order::default();
    let mut moved = 0;
    for event in &mut recording.kernel {
        let time = order.place(event);
        moved += u64::from(time != event.time);
        event.time = time;
    }
    if moved > 0 {
        recording.kernel.sort_by_key(|event| event.time);
    }
    moved
}

/// The events placed so far.
#[derive(Default)]
pub(super) struct Order {
    /// By CPU: the time of its latest event.
    latest: HashMap<Cpu, Nanos>,
    /// By task: the time and CPU of its latest event.
    seen: HashMap<Task, (Nanos, Cpu)>,
}

impl Order {
    /// The time of the next event: its own, or the next at which its order is clear. At most the largest
    /// signed number.
    pub(super) fn place(&mut self, event: &KernelEvent) -> Nanos {
        let latest = self.latest.entry(event.cpu).or_default();
        let mut time = event.time.max(*latest);
        for task in tasks(event).into_iter().flatten() {
            match self.seen.get(&task) {
                Some(&(seen, cpu)) if cpu != event.cpu => time = time.max(seen + Nanos(1)),
                _ => {}
            }
        }
        let time = time.min(Nanos(i64::MAX as u64));
        *latest = time;
        for task in tasks(event).into_iter().flatten() {
            self.seen.insert(task, (time, event.cpu));
        }
        time
    }
}

/// The tasks whose events have an order of their own.
fn tasks(event: &KernelEvent) -> [Option<Task>; 2] {
    match event.what {
        KernelEventKind::Switch { prev, next, .. } => [prev, next],
        KernelEventKind::Waking { task, .. }
        | KernelEventKind::Migrate { task, .. }
        | KernelEventKind::Inherit { task, .. }
        | KernelEventKind::Priority { task, .. }
        | KernelEventKind::Blocked { task, .. }
        | KernelEventKind::Throttle { task, .. }
        | KernelEventKind::FutexCall { task, .. }
        | KernelEventKind::FutexReturn { task, .. } => [Some(task), None],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use event::{Left, Random};

    use super::*;

    /// Goal: after the order is settled, times tell it, and settling again or writing moves nothing more; the
    /// events of each task are in their order, and none is moved far. Method: tasks that go from CPU to CPU
    /// by a clock that mostly stands still.
    #[test]
    fn settled_times_tell_the_order() {
        let mut random = Random::new(3);
        let mut recording = Recording::default();
        let mut time = 1_000;
        for _ in 0..2_000 {
            time += if random.below(8) == 0 { 100 } else { 0 };
            let cpu = |random: &mut Random| Cpu(random.below(4) as u32);
            let task = Task(random.below(6) as u32);
            let what = match random.below(3) {
                0 => KernelEventKind::Waking {
                    task,
                    by: None,
                    target: cpu(&mut random),
                },
                1 => KernelEventKind::Migrate {
                    task,
                    from: cpu(&mut random),
                    to: cpu(&mut random),
                },
                _ => KernelEventKind::Switch {
                    prev: Some(task),
                    state: Left::Runnable,
                    next: None,
                },
            };
            let cpu = cpu(&mut random);
            let time = Nanos(time);
            recording.kernel.push(KernelEvent { time, cpu, what });
        }
        let of_each = |recording: &Recording| -> Vec<Vec<KernelEventKind>> {
            let of = |task: u32| {
                let is_its = move |event: &&KernelEvent| tasks(event)[0] == Some(Task(task));
                let events = recording.kernel.iter().filter(is_its);
                events.map(|event| event.what).collect()
            };
            (0..6).map(of).collect()
        };
        let (before, last) = (of_each(&recording), time);
        assert!(settle_order(&mut recording) > 100);
        assert_eq!(of_each(&recording), before);
        let times: Vec<Nanos> = recording.kernel.iter().map(|event| event.time).collect();
        assert!(times.is_sorted() && times.last().unwrap().0 < last + 100);
        for task in 0..6 {
            let of = |event: &&KernelEvent| tasks(event)[0] == Some(Task(task));
            let of: Vec<&KernelEvent> = recording.kernel.iter().filter(of).collect();
            let clear =
                |pair: &[&KernelEvent]| pair[0].cpu == pair[1].cpu || pair[0].time < pair[1].time;
            assert!(of.windows(2).all(clear));
        }
        assert_eq!(settle_order(&mut recording), 0);
        let written = crate::write::perfetto(&recording, std::io::sink()).unwrap();
        assert_eq!(written.delayed, 0);
    }
}
