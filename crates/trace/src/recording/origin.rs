//! The origin of a recording, and the facts that it can therefore have.

use std::collections::BTreeSet;

/// The origin of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The format, in a word: "ftrace", "perfetto" …; empty: it was made here.
    pub format: String,
    /// The clock of its times.
    pub clock: Clock,
    /// How the wakers of threads are known.
    pub wakers: Wakers,
    /// Whether wake-ups by interrupts are not told apart: the waker that an event names may be a thread that
    /// was interrupted.
    pub is_unmarked: bool,
    /// The kernel's release, such as "4.19.113", if it is known.
    pub kernel: Option<String>,
    /// The kernel's number for the process that recorded, if it did so while another program ran: its waits
    /// for that program are of no interest.
    pub recorder: Option<u32>,
    /// The kernel's numbers for the threads and processes of the program that was to be recorded, with those
    /// that it started; empty: that is not known.
    pub recorded: BTreeSet<u32>,
}

/// A clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// It is not known.
    #[default]
    Unknown,
    /// Time since the machine started, without sleep.
    Monotonic,
    /// The same, with sleep.
    Boot,
    /// Simulated time.
    Virtual,
    /// Another one, by its name.
    Other(String),
}

impl Clock {
    /// The clock of this name, as Linux's tracer calls them.
    pub fn named(name: &str) -> Clock {
        match name {
            "mono" | "monotonic" => Clock::Monotonic,
            "boot" => Clock::Boot,
            "virtual" => Clock::Virtual,
            "" | "unknown" => Clock::Unknown,
            other => Clock::Other(other.to_owned()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Clock::Unknown => "unknown",
            Clock::Monotonic => "mono",
            Clock::Boot => "boot",
            Clock::Virtual => "virtual",
            Clock::Other(name) => name,
        }
    }
}

/// How wakers are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wakers {
    /// They are not known.
    #[default]
    Unknown,
    /// By the CPU on which the woken task was put on a queue: on a remote CPU that is an interrupt's work,
    /// and no waker is known. On another CPU than the task's it is the waker, or else an interrupt.
    Queued,
    /// By the place of the decision.
    Decided,
}
