//! Kernel events, as the kernel's own tracer would have recorded them: bundles of one CPU each.
//!
//! Readers sort the bundles of all CPUs by time and know no order between events of one time on different
//! CPUs. A simulated kernel does much at one instant, so events of one task on two CPUs at the same time are
//! written a nanosecond apart; else a task might be woken before it falls asleep.

use std::collections::{BTreeMap, HashMap};
use std::io;

use event::{Cpu, FutexCall, KernelEvent, KernelEventKind, Left, Nanos, Task};

use super::messages::{
    CpuFrequencyLimits, CpuState, Ftrace, FtraceEvent, FtraceEventBundle, GenericField,
    GenericFtraceEvent, IrqHandlerEntry, IrqHandlerExit, SchedBlockedReason, SchedCpuHotplug,
    SchedMigrateTask, SchedPiSetprio, SchedSwitch, SchedWaking, Softirq, SysEnter, SysExit,
};
use super::packets::{Packets, stamp};
use super::tracks::WrittenTracks;
use crate::layout::Layout;
use crate::write::order::Order;
use crate::{nice, throttle};

/// The number of events in one bundle. Less is more packets, more is more memory.
const BUNDLE: usize = 256;

/// `state` of `cpu_idle`: awake.
const NOT_IDLE: u32 = u32::MAX;

/// The number of the futex call. It is that of x86-64; no file of ours names its machine, so readers take it
/// for this one.
const FUTEX: i64 = 202;

/// Of `common_flags`: in a hard interrupt.
const IN_INTERRUPT: u32 = 8;

/// The state of one CPU while its events are written.
#[derive(Default)]
struct OneCpu {
    events: Vec<FtraceEvent>,
    current: Option<Task>,
    /// Whether events are missing before the next ones.
    has_lost: bool,
    /// The track that shows whether it is online, if that ever changes.
    online: Option<u64>,
}

/// Writes kernel events.
struct KernelWriter<'a, 'r, 'o> {
    tracks: &'a mut WrittenTracks<'r>,
    packets: &'a mut Packets<'o>,
    cpus: BTreeMap<Cpu, OneCpu>,
    order: Order,
    /// Priorities of tasks that have inherited one.
    inherited: HashMap<Task, i32>,
    /// Own priorities of tasks that were given another one than they began with.
    own: HashMap<Task, i32>,
    begin: Nanos,
    layout: Layout,
}

/// Writes kernel events that are in the order of their times; `begin` is that of the recording, and the
/// kernel that is named in it has the states of `layout`.
pub(super) fn write(
    events: &[KernelEvent],
    (begin, layout): (Nanos, Layout),
    tracks: &mut WrittenTracks<'_>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let mut kernel = KernelWriter {
        tracks,
        packets,
        cpus: BTreeMap::new(),
        order: Order::default(),
        inherited: HashMap::new(),
        own: HashMap::new(),
        begin,
        layout,
    };
    let mut rest = events;
    while let Some((event, after)) = rest.split_first() {
        rest = after;
        // A lock's loan is two events here and one there.
        let now = after.first().and_then(|next| loan(event, next));
        rest = if now.is_some() { &rest[1..] } else { rest };
        kernel.write(event, now)?;
    }
    for (cpu, one) in std::mem::take(&mut kernel.cpus) {
        kernel.bundle(cpu, one.events, one.has_lost)?;
    }
    Ok(())
}

/// The priority that the second event gives to the loan in the first, if they belong together.
fn loan(event: &KernelEvent, next: &KernelEvent) -> Option<(i16, bool)> {
    match (event.what, next.what) {
        (
            KernelEventKind::Inherit { task, .. },
            KernelEventKind::Priority {
                task: of,
                priority,
                lent,
            },
        ) if task == of && (event.time, event.cpu) == (next.time, next.cpu) => {
            Some((priority, lent))
        }
        _ => None,
    }
}

/// A CPU's number where the format has it signed.
fn signed(cpu: Cpu) -> i32 {
    i32::try_from(cpu.0).unwrap_or(i32::MAX)
}

/// An event on its way into a bundle.
struct Record {
    /// The task that it happened on.
    on: Option<Task>,
    in_interrupt: bool,
    what: Ftrace,
}

impl From<Ftrace> for Record {
    fn from(what: Ftrace) -> Record {
        Record {
            on: None,
            in_interrupt: false,
            what,
        }
    }
}

impl Record {
    fn on(self, on: Option<Task>) -> Record {
        Record { on, ..self }
    }
}

fn interrupt(begins: bool, soft: bool, number: u32) -> Ftrace {
    let vec = Some(number);
    let irq = Some(number as i32);
    match (soft, begins) {
        (true, true) => Ftrace::SoftirqEntry(Softirq { vec }),
        (true, false) => Ftrace::SoftirqExit(Softirq { vec }),
        (false, true) => {
            let name = Some(format!("interrupt {number}"));
            Ftrace::IrqHandlerEntry(IrqHandlerEntry { irq, name })
        }
        (false, false) => Ftrace::IrqHandlerExit(IrqHandlerExit { irq, ret: Some(1) }),
    }
}

fn throttling(tid: i32, begins: bool) -> Ftrace {
    let field = |name: &str, value| GenericField {
        name: Some(name.to_owned()),
        uint_value: Some(value),
    };
    Ftrace::Generic(GenericFtraceEvent {
        event_name: Some(throttle::EVENT.to_owned()),
        field: vec![
            field(throttle::TID, tid as u64),
            field(throttle::BEGINS, begins.into()),
        ],
    })
}

impl KernelWriter<'_, '_, '_> {
    fn write(&mut self, event: &KernelEvent, loan: Option<(i16, bool)>) -> io::Result<()> {
        let cpu = event.cpu;
        match event.what {
            KernelEventKind::Lost { .. } => {
                let full = std::mem::take(&mut self.cpu(cpu).events);
                let has_lost = std::mem::replace(&mut self.cpu(cpu).has_lost, true);
                return self.bundle(cpu, full, has_lost);
            }
            KernelEventKind::Priority {
                task,
                priority,
                lent: false,
            } => {
                // The next event that names the task has it.
                self.own.insert(task, priority.into());
                self.inherited.remove(&task);
                return Ok(());
            }
            _ => {}
        }
        let time = self.place(event);
        let Some(record) = self.scheduling(event, loan).or_else(|| self.other(event)) else {
            // A kind of a later version: no recording of ours has it.
            return Ok(());
        };
        if let KernelEventKind::Online(online) = event.what {
            self.show_online(cpu, Nanos(time), online)?;
        }
        let pid = record.on.map_or(0, |task| self.tracks.tid(task) as u32);
        let one = self.cpu(cpu);
        one.events.push(FtraceEvent {
            timestamp: Some(time),
            pid: Some(pid),
            common_flags: record.in_interrupt.then_some(IN_INTERRUPT),
            event: Some(record.what),
        });
        if one.events.len() < BUNDLE {
            return Ok(());
        }
        let full = std::mem::take(&mut one.events);
        let has_lost = std::mem::take(&mut one.has_lost);
        self.bundle(cpu, full, has_lost)
    }

    /// Switches, wake-ups, migrations and priorities.
    fn scheduling(&mut self, event: &KernelEvent, loan: Option<(i16, bool)>) -> Option<Record> {
        let cpu = event.cpu;
        let current = self.cpu(cpu).current;
        Some(match event.what {
            KernelEventKind::Switch { prev, state, next } => {
                self.cpu(cpu).current = next;
                Record::from(self.switch(cpu, prev, state, next)).on(prev)
            }
            KernelEventKind::Waking { task, by, target } => Record {
                on: by,
                in_interrupt: by.is_none(),
                what: Ftrace::SchedWaking(SchedWaking {
                    comm: Some(self.tracks.name(task)),
                    pid: Some(self.tracks.tid(task)),
                    prio: Some(self.priority(task)),
                    success: Some(1),
                    target_cpu: Some(signed(target)),
                }),
            },
            KernelEventKind::Migrate { task, from, to } => {
                let what = Ftrace::SchedMigrateTask(SchedMigrateTask {
                    comm: Some(self.tracks.name(task)),
                    pid: Some(self.tracks.tid(task)),
                    prio: Some(self.priority(task)),
                    orig_cpu: Some(signed(from)),
                    dest_cpu: Some(signed(to)),
                });
                Record::from(what).on(current)
            }
            // The lender runs when it lends, the borrower when it gives back.
            KernelEventKind::Inherit { task, from } => {
                let what = match loan {
                    Some((priority, true)) => self.lend(task, Some(priority.into())),
                    Some((priority, false)) => {
                        let old = self.priority(task);
                        self.own.insert(task, priority.into());
                        self.inherited.remove(&task);
                        self.set_priority(task, old)
                    }
                    None => {
                        let lent = from.map(|from| self.priority(from));
                        self.lend(task, lent)
                    }
                };
                Record::from(what).on(from.or(Some(task)))
            }
            KernelEventKind::Priority { task, priority, .. } => {
                Record::from(self.lend(task, Some(priority.into()))).on(Some(task))
            }
            // Perfetto names functions by the addresses of their callers, which are not kept.
            KernelEventKind::Blocked { task, io, .. } => {
                let what = Ftrace::SchedBlockedReason(SchedBlockedReason {
                    pid: Some(self.tracks.tid(task)),
                    io_wait: Some(io.into()),
                });
                Record::from(what).on(current)
            }
            KernelEventKind::Throttle { task, begins } => {
                Record::from(throttling(self.tracks.tid(task), begins)).on(current)
            }
            _ => return None,
        })
    }

    /// The other events of a CPU, and the system calls of tasks.
    fn other(&mut self, event: &KernelEvent) -> Option<Record> {
        let cpu = event.cpu;
        let current = self.cpu(cpu).current;
        Some(match event.what {
            KernelEventKind::Frequency(khz) => Record::from(Ftrace::CpuFrequency(CpuState {
                state: Some(khz),
                cpu_id: Some(cpu.0),
            }))
            .on(current),
            KernelEventKind::FrequencyLimit(khz) => {
                Record::from(Ftrace::CpuFrequencyLimits(CpuFrequencyLimits {
                    max_freq: Some(khz),
                    cpu_id: Some(cpu.0),
                }))
                .on(current)
            }
            KernelEventKind::Idle(state) => Record::from(Ftrace::CpuIdle(CpuState {
                state: Some(state.map_or(NOT_IDLE, u32::from)),
                cpu_id: Some(cpu.0),
            }))
            .on(current),
            KernelEventKind::Online(online) => {
                Record::from(Ftrace::SchedCpuHotplug(SchedCpuHotplug {
                    affected_cpu: Some(signed(cpu)),
                    error: Some(0),
                    status: Some(i32::from(online)),
                }))
                .on(current)
            }
            KernelEventKind::Interrupt {
                begins,
                soft,
                number,
            } => Record::from(interrupt(begins, soft, number)).on(current),
            KernelEventKind::FutexCall {
                task,
                address,
                call,
            } => {
                // `include/uapi/linux/futex.h`; 2 stands for all other calls.
                let op = match call {
                    FutexCall::Wait => 0,
                    FutexCall::Wake => 1,
                    FutexCall::LockPi => 6,
                    FutexCall::UnlockPi => 7,
                    FutexCall::Other => 2,
                };
                let (id, args) = (Some(FUTEX), vec![address.get(), op]);
                Record::from(Ftrace::SysEnter(SysEnter { id, args })).on(Some(task))
            }
            KernelEventKind::FutexReturn { task, result } => {
                let (id, ret) = (Some(FUTEX), Some(result.into()));
                Record::from(Ftrace::SysExit(SysExit { id, ret })).on(Some(task))
            }
            _ => return None,
        })
    }

    fn cpu(&mut self, cpu: Cpu) -> &mut OneCpu {
        self.cpus.entry(cpu).or_default()
    }

    fn bundle(&mut self, cpu: Cpu, events: Vec<FtraceEvent>, has_lost: bool) -> io::Result<()> {
        if events.is_empty() && !has_lost {
            return Ok(());
        }
        self.packets.kernel(FtraceEventBundle {
            cpu: Some(cpu.0),
            event: events,
            lost_events: has_lost.then_some(true),
        })
    }

    /// The time to write for an event.
    fn place(&mut self, event: &KernelEvent) -> u64 {
        let time = self.order.place(event);
        self.packets.written.delayed += u64::from(time != Nanos(stamp(event.time)));
        time.0
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
            prev_pid: Some(prev.map_or(0, |task| self.tracks.tid(task))),
            prev_prio: Some(priority(prev)),
            prev_state: Some(self.layout.bits(state).cast_signed()),
            next_comm: Some(name(next)),
            next_pid: Some(next.map_or(0, |task| self.tracks.tid(task))),
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
        self.set_priority(task, old)
    }

    /// From this priority to the one it has now.
    fn set_priority(&self, task: Task, old: i32) -> Ftrace {
        Ftrace::SchedPiSetprio(SchedPiSetprio {
            comm: Some(self.tracks.name(task)),
            newprio: Some(self.priority(task)),
            oldprio: Some(old),
            pid: Some(self.tracks.tid(task)),
        })
    }

    /// Viewers do not show the event alone, so a counter has it, too.
    fn show_online(&mut self, cpu: Cpu, time: Nanos, online: bool) -> io::Result<()> {
        let track = match self.cpu(cpu).online {
            Some(track) => track,
            None => {
                let name = format!("cpu {} online", cpu.0);
                let track = self.tracks.counter(&name, "", None, self.packets)?;
                self.packets
                    .value(track, self.begin, i64::from(!online), true)?;
                self.cpu(cpu).online = Some(track);
                track
            }
        };
        self.packets.value(track, time, i64::from(online), true)
    }
}
