//! A task's wishes to a scheduler.

use event::Nanos;

/// A task's wishes to a scheduler. Each policy reads the fields that its kernel knows and ignores the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// Linux's discipline.
    pub discipline: Discipline,
    /// Linux: −20 to 19, the lower the larger the share of fair tasks.
    pub nice: i8,
    /// Of a task with fixed priority. Linux (FIFO and RR): 1 to 99, the highest first. ThreadX: from
    /// 0 on, the *lowest* first.
    pub priority: u8,
    /// How long the task wants to run at a time. EEVDF: the custom slice (100 µs to 100 ms). ThreadX: the
    /// time slice, none if not given. The idealised rule of source 004: the task's promise.
    pub slice: Option<Nanos>,
    /// ThreadX: only tasks with a priority better than this one preempt the task.
    pub threshold: Option<u8>,
    /// Source 003's percentage slices: the share of each block, in percent.
    pub percent: Option<u8>,
}

/// Linux's scheduling disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Discipline {
    /// `SCHED_OTHER`.
    #[default]
    Fair,
    /// `SCHED_BATCH`: as fair, but never preempts at a wake-up.
    Batch,
    /// `SCHED_IDLE`: the least weight, never preempts at a wake-up.
    Idle,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    RoundRobin,
}

impl Discipline {
    /// Whether tasks of this discipline go before all fair ones.
    pub fn is_realtime(self) -> bool {
        matches!(self, Discipline::Fifo | Discipline::RoundRobin)
    }
}

impl Default for Attr {
    /// A fair task of nice 0; as a task of an RTOS, one of priority 0.
    fn default() -> Attr {
        Attr {
            discipline: Discipline::Fair,
            nice: 0,
            priority: 0,
            slice: None,
            threshold: None,
            percent: None,
        }
    }
}

impl Attr {
    /// A fair task of this niceness.
    pub fn nice(nice: i8) -> Attr {
        Attr {
            nice,
            ..Attr::default()
        }
    }

    /// A `SCHED_FIFO` task of this priority.
    pub fn fifo(priority: u8) -> Attr {
        Attr {
            discipline: Discipline::Fifo,
            priority,
            ..Attr::default()
        }
    }

    /// A `SCHED_RR` task of this priority.
    pub fn round_robin(priority: u8) -> Attr {
        Attr {
            discipline: Discipline::RoundRobin,
            priority,
            ..Attr::default()
        }
    }
}
