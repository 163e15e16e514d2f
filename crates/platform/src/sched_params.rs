//! The scheduling parameters of a thread: the help that a program may ask the kernel for.

use std::fmt;

use event::Nanos;

/// Which of the kernel's classes schedules a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// By shares. `nice`: from -20 (a large share) to 19.
    Fair {
        /// See above.
        nice: i8,
    },
    /// Before all threads that are scheduled by shares, in turns with others of the same priority (Linux:
    /// `SCHED_RR`).
    RoundRobin {
        /// From 1 to 99, the highest.
        priority: u8,
    },
    /// The same without turns: until it blocks, yields, or one of a higher priority is ready (Linux:
    /// `SCHED_FIFO`). For experiments: a thread that computes for long shuts all others
    /// out.
    Fifo {
        /// From 1 to 99, the highest.
        priority: u8,
    },
}

/// How large the kernel is to take a thread's load to be, when it chooses CPU and frequency: from 0 to 1024,
/// the largest CPU at its highest frequency (Linux: uclamp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uclamp {
    /// At least so large.
    pub min: u16,
    /// At most.
    pub max: u16,
}

/// Scheduling parameters of one thread: those that a program asks the kernel for, or those that the thread
/// had before. A parameter that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedParams {
    /// Its class.
    pub class: Option<Class>,
    /// How long it would like to run at a time; see [`ThreadSpec::slice`](crate::ThreadSpec::slice).
    pub slice: Option<Nanos>,
    /// How large it is taken to be.
    pub uclamp: Option<Uclamp>,
    /// Whether threads that it starts get the usual parameters instead of these. A value before a change is
    /// there for undoing it.
    pub(crate) resets_on_fork: Option<bool>,
}

impl SchedParams {
    /// Scheduled by shares, with this niceness: -20 to 19, the lower the larger the share.
    pub fn nice(nice: i8) -> SchedParams {
        SchedParams {
            class: Some(Class::Fair { nice }),
            ..SchedParams::default()
        }
    }

    /// Before all that share, in turns with others of this priority: 1 to 99, the highest.
    pub fn round_robin(priority: u8) -> SchedParams {
        SchedParams {
            class: Some(Class::RoundRobin { priority }),
            ..SchedParams::default()
        }
    }

    /// Before all that share, until it blocks or yields: 1 to 99, the highest.
    pub fn fifo(priority: u8) -> SchedParams {
        SchedParams {
            class: Some(Class::Fifo { priority }),
            ..SchedParams::default()
        }
    }

    /// Taken to be at least so large: 0 to 1024.
    pub fn uclamp(min: u16, max: u16) -> SchedParams {
        SchedParams {
            uclamp: Some(Uclamp { min, max }),
            ..SchedParams::default()
        }
    }

    /// The same parameters, and for threads that it starts from then on as well. Without this call, such
    /// threads get the usual ones where it has another class.
    pub fn inherited(self) -> SchedParams {
        SchedParams {
            resets_on_fork: Some(false),
            ..self
        }
    }

    /// This slice.
    pub fn slice(slice: impl Into<Nanos>) -> SchedParams {
        SchedParams {
            slice: Some(slice.into()),
            ..SchedParams::default()
        }
    }
}

impl fmt::Display for SchedParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class.map(|class| match class {
            Class::Fair { nice } => format!("nice {nice}"),
            Class::RoundRobin { priority } => format!("SCHED_RR {priority}"),
            Class::Fifo { priority } => format!("SCHED_FIFO {priority}"),
        });
        let slice = self.slice.map(|slice| format!("slice {slice}"));
        let clamp = self
            .uclamp
            .map(|Uclamp { min, max }| format!("uclamp {min} to {max}"));
        let all: Vec<String> = [class, slice, clamp].into_iter().flatten().collect();
        if all.is_empty() {
            f.write_str("nothing")
        } else {
            f.write_str(&all.join(", "))
        }
    }
}
