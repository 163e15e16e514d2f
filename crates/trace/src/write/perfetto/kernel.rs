//! Kernel events, as the kernel's own tracer would have recorded them: bundles of one CPU each.
//!
//! Readers sort the bundles of all CPUs by time and know no order between events of one time on different
//! CPUs. A simulated kernel does much at one instant, so what happens to one task on two CPUs at the same
//! time is written a nanosecond apart; else a task might be woken before it falls asleep.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use event::{Cpu, KernelEvent, KernelEventKind, Left, Nanos, Task};

use super::messages::{
    CpuState, Ftrace, FtraceEvent, FtraceEventBundle, SchedCpuHotplug, SchedMigrateTask,
    SchedPiSetprio, SchedSwitch, SchedWaking,
};
use super::packets::{Packets, stamp};
use super::tracks::{Tracks, tid};
use crate::nice;

/// Events of one bundle. Less is more packets, more is more memory.
const BUNDLE: usize = 256;

/// `state` of `cpu_idle`: awake.
const NOT_IDLE: u32 = u32::MAX;

/// What is known of one CPU while its events are written.
#[derive(Default)]
struct OneCpu {
    events: Vec<FtraceEvent>,
    /// The time of its latest event.
    latest: u64,
    current: Option<Task>,
    /// Shows whether it is online, if that ever changes.
    online: Option<u64>,
}

/// Writes kernel events.
struct Kernel<'a, 'r, W> {
    tracks: &'a mut Tracks<'r>,
    packets: &'a mut Packets<W>,
    cpus: BTreeMap<Cpu, OneCpu>,
    /// By task: its latest event's time and CPU.
    seen: HashMap<Task, (u64, Cpu)>,
    /// Priorities of those that have inherited one.
    inherited: HashMap<Task, i32>,
    /// Own priorities of those that were given another one than they began with.
    own: HashMap<Task, i32>,
    begin: Nanos,
}

/// Writes kernel events that are in the order of their times; `begin` is that of the recording.
pub(super) fn write<W: Write>(
    events: &[KernelEvent],
    begin: Nanos,
    tracks: &mut Tracks<'_>,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    let mut kernel = Kernel {
        tracks,
        packets,
        cpus: BTreeMap::new(),
        seen: HashMap::new(),
        inherited: HashMap::new(),
        own: HashMap::new(),
        begin,
    };
    events.iter().try_for_each(|event| kernel.write(event))?;
    for (cpu, one) in std::mem::take(&mut kernel.cpus) {
        kernel.bundle(cpu, one.events)?;
    }
    Ok(())
}

/// The tasks whose events have an order of their own.
fn tasks(event: &KernelEvent) -> [Option<Task>; 2] {
    match event.what {
        KernelEventKind::Switch { prev, next, .. } => [prev, next],
        KernelEventKind::Waking { task, .. }
        | KernelEventKind::Migrate { task, .. }
        | KernelEventKind::Inherit { task, .. }
        | KernelEventKind::Priority { task, .. } => [Some(task), None],
        _ => [None, None],
    }
}

/// A CPU's number where the format wants it signed.
fn signed(cpu: Cpu) -> i32 {
    i32::try_from(cpu.0).unwrap_or(i32::MAX)
}

impl<W: Write> Kernel<'_, '_, W> {
    fn write(&mut self, event: &KernelEvent) -> io::Result<()> {
        let cpu = event.cpu;
        let time = self.place(event);
        let current = self.cpus.get(&cpu).and_then(|one| one.current);
        let mut on = current;
        let what = match event.what {
            KernelEventKind::Switch { prev, state, next } => {
                on = prev;
                self.cpu(cpu).current = next;
                self.switch(cpu, prev, state, next)
            }
            KernelEventKind::Waking { task, by, target } => {
                // Of an interrupt, a kernel would name the thread that was interrupted, with a flag that
                // Perfetto does not look at: it would take that thread for the waker.
                on = by;
                Ftrace::SchedWaking(SchedWaking {
                    comm: Some(self.tracks.name(task)),
                    pid: Some(tid(task)),
                    prio: Some(self.priority(task)),
                    success: Some(1),
                    target_cpu: Some(signed(target)),
                })
            }
            KernelEventKind::Migrate { task, from, to } => {
                Ftrace::SchedMigrateTask(SchedMigrateTask {
                    comm: Some(self.tracks.name(task)),
                    pid: Some(tid(task)),
                    prio: Some(self.priority(task)),
                    orig_cpu: Some(signed(from)),
                    dest_cpu: Some(signed(to)),
                })
            }
            KernelEventKind::Inherit { task, from } => {
                let lent = from.map(|from| self.priority(from));
                self.lend(task, lent)
            }
            KernelEventKind::Priority {
                task,
                priority,
                lent: true,
            } => self.lend(task, Some(priority.into())),
            KernelEventKind::Priority { task, priority, .. } => {
                self.own.insert(task, priority.into());
                self.lend(task, None)
            }
            KernelEventKind::Frequency(khz) => Ftrace::CpuFrequency(CpuState {
                state: Some(khz),
                cpu_id: Some(cpu.0),
            }),
            KernelEventKind::Idle(state) => Ftrace::CpuIdle(CpuState {
                state: Some(state.map_or(NOT_IDLE, u32::from)),
                cpu_id: Some(cpu.0),
            }),
            KernelEventKind::Online(online) => {
                self.show_online(cpu, Nanos(time), online)?;
                Ftrace::SchedCpuHotplug(SchedCpuHotplug {
                    affected_cpu: Some(signed(cpu)),
                    error: Some(0),
                    status: Some(i32::from(online)),
                })
            }
            // A kind of a later version: nothing of ours has it.
            _ => return Ok(()),
        };
        let one = self.cpu(cpu);
        one.events.push(FtraceEvent {
            timestamp: Some(time),
            pid: Some(on.map_or(0, |task| tid(task) as u32)),
            event: Some(what),
        });
        if one.events.len() < BUNDLE {
            return Ok(());
        }
        let full = std::mem::take(&mut one.events);
        self.bundle(cpu, full)
    }

    fn cpu(&mut self, cpu: Cpu) -> &mut OneCpu {
        self.cpus.entry(cpu).or_default()
    }

    fn bundle(&mut self, cpu: Cpu, events: Vec<FtraceEvent>) -> io::Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        self.packets.kernel(FtraceEventBundle {
            cpu: Some(cpu.0),
            event: events,
        })
    }

    /// The time to write for an event: its own, or the next at which its order is clear.
    fn place(&mut self, event: &KernelEvent) -> u64 {
        let own = stamp(event.time);
        let mut time = own.max(self.cpu(event.cpu).latest);
        for task in tasks(event).into_iter().flatten() {
            match self.seen.get(&task) {
                Some(&(latest, cpu)) if cpu != event.cpu => time = time.max(latest + 1),
                _ => {}
            }
        }
        let time = time.min(i64::MAX as u64);
        self.cpu(event.cpu).latest = time;
        for task in tasks(event).into_iter().flatten() {
            self.seen.insert(task, (time, event.cpu));
        }
        self.packets.written.delayed += u64::from(time != own);
        time
    }

    /// A task's priority at the moment.
    fn priority(&self, task: Task) -> i32 {
        let own = self.own.get(&task).copied();
        let lent = self.inherited.get(&task).copied();
        lent.or(own).unwrap_or_else(|| self.tracks.priority(task))
    }

    fn switch(&self, cpu: Cpu, prev: Option<Task>, state: Left, next: Option<Task>) -> Ftrace {
        let name = |task: Option<Task>| match task {
            Some(task) => self.tracks.name(task),
            None => format!("swapper/{}", cpu.0),
        };
        let priority = |task: Option<Task>| task.map_or(nice(0), |task| self.priority(task));
        Ftrace::SchedSwitch(SchedSwitch {
            prev_comm: Some(name(prev)),
            prev_pid: Some(prev.map_or(0, tid)),
            prev_prio: Some(priority(prev)),
            // These are the same in all kernels' layouts.
            prev_state: Some(match state {
                Left::Runnable => 0,
                Left::Sleeping => 1,
                Left::Blocked => 2,
                Left::Dead => 0x10,
            }),
            next_comm: Some(name(next)),
            next_pid: Some(next.map_or(0, tid)),
            next_prio: Some(priority(next)),
        })
    }

    /// A task is lent a priority, or is back to its own.
    fn lend(&mut self, task: Task, lent: Option<i32>) -> Ftrace {
        let old = self.priority(task);
        match lent {
            Some(priority) => self.inherited.insert(task, priority),
            None => self.inherited.remove(&task),
        };
        Ftrace::SchedPiSetprio(SchedPiSetprio {
            comm: Some(self.tracks.name(task)),
            newprio: Some(self.priority(task)),
            oldprio: Some(old),
            pid: Some(tid(task)),
        })
    }

    /// The event alone is not shown anywhere, so a counter says it, too.
    fn show_online(&mut self, cpu: Cpu, time: Nanos, online: bool) -> io::Result<()> {
        let track = match self.cpu(cpu).online {
            Some(track) => track,
            None => {
                let name = format!("cpu {} online", cpu.0);
                let track = self.tracks.counter(&name, "", self.packets)?;
                self.packets.value(track, self.begin, i64::from(!online))?;
                self.cpu(cpu).online = Some(track);
                track
            }
        };
        self.packets.value(track, time, i64::from(online))
    }
}
