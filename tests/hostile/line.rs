//! Messages from the processes of a campaign to their supervisor: one JSON object a line, on standard output.

use std::io::Write;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Place};
use crate::memory::Memory;

/// One line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Line {
    /// A slice begins. If nothing follows, this is where the process ended.
    Begins(Place),
    /// All that was done so far.
    Tally(Tally),
    /// Something is wrong.
    Fault(Fault),
}

/// The work done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Combinations of workers and policy that had a slice.
    pub(crate) combinations: u64,
    /// Slices, each with a job system of its own.
    pub(crate) slices: u64,
    pub(crate) programs: u64,
    /// Bodies run, as counted by `Stats::jobs`.
    pub(crate) jobs: u64,
    /// Programs that were to fail, and did.
    pub(crate) expected_failures: u64,
    pub(crate) memory: Memory,
}

impl Line {
    /// Says it to the supervisor.
    pub(crate) fn say(&self) {
        /// One line at a time, whichever thread says it.
        static OUT: Mutex<()> = Mutex::new(());
        let text = serde_json::to_string(self).expect("plain data");
        let guard = OUT.lock();
        let mut out = std::io::stdout().lock();
        // A supervisor that has gone away needs to hear nothing.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        drop(guard);
    }

    /// A line that was said.
    pub(crate) fn read(text: &str) -> Option<Line> {
        serde_json::from_str(text).ok()
    }
}
