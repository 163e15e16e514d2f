//! Where a recording comes from, and what it can therefore know.

/// Where a recording comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The format, in a word: "ftrace", "perfetto" …; empty: it was made here.
    pub format: String,
    /// What its times are.
    pub clock: Clock,
    /// Who is known to have woken whom.
    pub wakers: Wakers,
    /// The kernel's release, such as "4.19.113", where it is told.
    pub kernel: Option<String>,
}

/// What times are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Nobody says.
    #[default]
    Unknown,
    /// Time since the machine started, without sleep.
    Monotonic,
    /// The same, with sleep.
    Boot,
    /// Simulated.
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
    /// They are not.
    #[default]
    Unknown,
    /// By where the woken task was put on a queue: on a remote CPU that is an interrupt's work, and nobody
    /// is named.
    Queued,
    /// By where it was decided.
    Decided,
}
