//! The actions of a kernel on threads: the other half of every timeline.
//!
//! A simulated kernel records these, and kernel traces of other programs are read into them. A *task*
//! is the kernel's word for a thread.

use crate::Nanos;

/// A task of one machine, numbered in the order of their beginnings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Task(pub u32);

/// A logical CPU of one machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cpu(pub u32);

/// An address in a program's memory.
///
/// In two halves, which need no place of their own size: recordings have millions of events, and this one
/// would make each of them larger by a quarter.
///
/// ```
/// let address = paceline_event::Address::new(0x7fff_0000_1000);
/// assert_eq!(address.get(), 0x7fff_0000_1000);
/// assert_eq!(size_of::<paceline_event::KernelEvent>(), 32);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address([u32; 2]);

impl Address {
    /// The address with this number.
    #[inline]
    pub fn new(address: u64) -> Address {
        Address([(address >> 32) as u32, address as u32])
    }

    /// Its number.
    #[inline]
    pub fn get(self) -> u64 {
        u64::from(self.0[0]) << 32 | u64::from(self.0[1])
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

impl Task {
    /// The number as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Cpu {
    /// The number as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Something the kernel did on one CPU at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct KernelEvent {
    /// When.
    pub time: Nanos,
    /// Where; for a wake-up, the CPU it was done on.
    pub cpu: Cpu,
    /// What.
    pub what: KernelEventKind,
}

/// The kinds of a kernel's actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum KernelEventKind {
    /// The CPU goes over from one task to another; `None` is the idle task.
    Switch {
        /// The task that ran.
        prev: Option<Task>,
        /// Why it stopped.
        state: Left,
        /// The task that runs.
        next: Option<Task>,
    },
    /// A task was made runnable.
    Waking {
        /// The woken task.
        task: Task,
        /// The waker; `None` for a timer or another interrupt.
        by: Option<Task>,
        /// The CPU it was put on.
        target: Cpu,
    },
    /// A task was moved to another CPU's queue.
    Migrate {
        /// The task.
        task: Task,
        /// From where.
        from: Cpu,
        /// To where.
        to: Cpu,
    },
    /// A task inherited the priority of another one, or gave it back.
    Inherit {
        /// The task.
        task: Task,
        /// The lender; `None` if it gave it back.
        from: Option<Task>,
    },
    /// A task has this priority from now on, whatever gave it.
    Priority {
        /// The task.
        task: Task,
        /// As Linux's kernel counts them, the lowest first: 0 to 99 real-time, 100 to 139 fair; −1:
        /// deadlines.
        priority: i16,
        /// Whether it is lent by a lock's waiter: the task's own one is another.
        lent: bool,
    },
    /// A task goes into the kernel because of a futex.
    FutexCall {
        /// The task.
        task: Task,
        /// Where the word is.
        address: Address,
        /// What for.
        call: FutexCall,
    },
    /// A task's futex call is over.
    FutexReturn {
        /// The task.
        task: Task,
        /// The kernel's answer; errors are negative.
        result: i32,
    },
    /// The CPU turns to an interrupt, or back to the work that it interrupted. They nest.
    Interrupt {
        /// Whether it begins.
        begins: bool,
        /// Whether it is a soft one: work that a hard one left for later.
        soft: bool,
        /// Which: the line of a hard one, the vector of a soft one.
        number: u32,
    },
    /// Why a task sleeps that no signal can wake.
    Blocked {
        /// The task.
        task: Task,
        /// Whether it waits for a device.
        io: bool,
        /// The number of the kernel's function in which it slept, among the recording's words; none: it is
        /// not known.
        function: Option<u32>,
    },
    /// The CPU time that a task's group may use is used up: the task is put aside, or it may go on. A running
    /// task that is put aside leaves its CPU next.
    ///
    /// Linux has no event for it, so only simulated kernels say it.
    Throttle {
        /// The task.
        task: Task,
        /// Whether it is put aside; else it may go on.
        begins: bool,
    },
    /// Events of this CPU are missing here: the running task is not known until the next switch.
    Lost {
        /// How many; 0: it is not known.
        events: u32,
    },
    /// The CPU's frequency changed, to this many kHz.
    Frequency(u32),
    /// The CPU's frequency may not be higher than this many kHz from now on: it is too hot, or a program says
    /// so.
    FrequencyLimit(u32),
    /// The CPU went to sleep in this state, or woke up (`None`).
    Idle(Option<u8>),
    /// The CPU went online or offline.
    Online(bool),
}

/// Why a task stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Left {
    /// It could have gone on.
    Runnable = 0,
    /// It waits for something.
    Sleeping = 1,
    /// It ended.
    Dead = 2,
    /// It waits for something that no signal can interrupt: mostly a device, a page or a kernel lock.
    Blocked = 3,
    /// It could have gone on, and the kernel says that it was put aside in the midst of the kernel's own code
    /// (`R+`). Most of those that are put aside are [`Runnable`](Self::Runnable): this is no test for it.
    Preempted = 4,
}

impl Left {
    /// Whether it could have gone on.
    pub fn is_runnable(self) -> bool {
        matches!(self, Left::Runnable | Left::Preempted)
    }
}

/// The purpose of a futex call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum FutexCall {
    /// To sleep until woken.
    Wait = 0,
    /// To wake others.
    Wake = 1,
    /// To take a lock that lends its owner the waiter's priority.
    LockPi = 2,
    /// To give it back.
    UnlockPi = 3,
    /// Something else.
    Other = 4,
}

impl KernelEvent {
    /// The event's only encoding, as words: time, CPU and kind, and the kind's values. Two runs are equal if
    /// these are.
    pub fn to_words(&self) -> [u64; 4] {
        let task = |task: Option<Task>| task.map_or(0, |task| u64::from(task.0) + 1);
        let (kind, a, b) = match self.what {
            KernelEventKind::Switch { prev, state, next } => {
                (1 + ((state as u64) << 8), task(prev), task(next))
            }
            KernelEventKind::Waking {
                task: woken,
                by,
                target,
            } => (2 + (u64::from(target.0) << 8), task(Some(woken)), task(by)),
            KernelEventKind::Migrate {
                task: moved,
                from,
                to,
            } => (
                3 + (u64::from(from.0) << 8),
                task(Some(moved)),
                u64::from(to.0),
            ),
            KernelEventKind::Inherit { task: who, from } => (4, task(Some(who)), task(from)),
            KernelEventKind::Frequency(khz) => (5, u64::from(khz), 0),
            KernelEventKind::FrequencyLimit(khz) => (15, u64::from(khz), 0),
            KernelEventKind::Idle(state) => (6, state.map_or(0, |state| u64::from(state) + 1), 0),
            KernelEventKind::Online(online) => (7, u64::from(online), 0),
            KernelEventKind::Priority {
                task: who,
                priority,
                lent,
            } => (
                8 + (u64::from(lent) << 8),
                task(Some(who)),
                u64::from(priority as u16),
            ),
            KernelEventKind::FutexCall {
                task: who,
                address,
                call,
            } => (9 + ((call as u64) << 8), task(Some(who)), address.get()),
            KernelEventKind::FutexReturn { task: who, result } => {
                (10, task(Some(who)), u64::from(result as u32))
            }
            KernelEventKind::Interrupt {
                begins,
                soft,
                number,
            } => (
                11 + (u64::from(begins) << 8) + (u64::from(soft) << 9),
                u64::from(number),
                0,
            ),
            KernelEventKind::Blocked {
                task: who,
                io,
                function,
            } => {
                let function = function.map_or(0, |function| u64::from(function) + 1);
                (12, task(Some(who)), u64::from(io) | function << 1)
            }
            KernelEventKind::Lost { events } => (13, u64::from(events), 0),
            KernelEventKind::Throttle { task: who, begins } => {
                (14, task(Some(who)), u64::from(begins))
            }
        };
        [self.time.0, u64::from(self.cpu.0) << 32 | kind, a, b]
    }
}
