//! How a kernel treats a thread beside others: the help that a program may ask for.

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
    /// `SCHED_FIFO`). For experiments: who computes for long shuts all others out.
    Fifo {
        /// From 1 to 99, the highest.
        priority: u8,
    },
}

/// How large the kernel is to take a thread's load to be, when it chooses CPU and frequency: from 0 to 1024,
/// the largest CPU at its highest frequency (Linux: uclamp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp {
    /// At least so large.
    pub min: u16,
    /// At most.
    pub max: u16,
}

/// What is asked of a kernel for one thread, or was so before. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// Its class.
    pub class: Option<Class>,
    /// How long it would like to run at a time; see [`ThreadSpec::slice`](crate::ThreadSpec::slice).
    pub slice: Option<Nanos>,
    /// How large it is taken to be.
    pub clamp: Option<Clamp>,
    /// Whether threads that it starts are treated like any others; what is before a change, for undoing it.
    pub(crate) resets_on_fork: Option<bool>,
}

impl Treatment {
    /// Scheduled by shares, with this niceness: -20 to 19, the lower the larger the share.
    pub fn nice(nice: i8) -> Treatment {
        Treatment {
            class: Some(Class::Fair { nice }),
            ..Treatment::default()
        }
    }

    /// Before all that share, in turns with others of this priority: 1 to 99, the highest.
    pub fn round_robin(priority: u8) -> Treatment {
        Treatment {
            class: Some(Class::RoundRobin { priority }),
            ..Treatment::default()
        }
    }

    /// Before all that share, until it blocks or yields: 1 to 99, the highest.
    pub fn fifo(priority: u8) -> Treatment {
        Treatment {
            class: Some(Class::Fifo { priority }),
            ..Treatment::default()
        }
    }

    /// Taken to be at least so large: 0 to 1024.
    pub fn clamped(min: u16, max: u16) -> Treatment {
        Treatment {
            clamp: Some(Clamp { min, max }),
            ..Treatment::default()
        }
    }

    /// The same, and for threads that it starts from then on as well. Without this call they are treated as
    /// usual where it has another class.
    pub fn inherited(self) -> Treatment {
        Treatment {
            resets_on_fork: Some(false),
            ..self
        }
    }

    /// This slice.
    pub fn slice(slice: Nanos) -> Treatment {
        Treatment {
            slice: Some(slice),
            ..Treatment::default()
        }
    }
}

impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class.map(|class| match class {
            Class::Fair { nice } => format!("nice {nice}"),
            Class::RoundRobin { priority } => format!("SCHED_RR {priority}"),
            Class::Fifo { priority } => format!("SCHED_FIFO {priority}"),
        });
        let slice = self.slice.map(|slice| format!("slice {slice}"));
        let clamp = self
            .clamp
            .map(|Clamp { min, max }| format!("uclamp {min} to {max}"));
        let all: Vec<String> = [class, slice, clamp].into_iter().flatten().collect();
        match all.is_empty() {
            true => f.write_str("nothing"),
            false => f.write_str(&all.join(", ")),
        }
    }
}

/// The system refused to treat a thread so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreatmentError(pub String);

impl fmt::Display for TreatmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TreatmentError {}
