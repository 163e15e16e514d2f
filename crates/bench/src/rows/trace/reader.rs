//! The process that reads: a fresh one each time, so that its memory is that of reading.

use std::path::Path;
use std::process::Command;

use platform::{Os, Platform};
use serde::{Deserialize, Serialize};
use trace::timeline::{Options, Timeline};

use console::{Failure, OnJobs};

/// The report of that process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    /// From opening the file to the finished timeline.
    pub(super) ns: u64,
    /// Scheduler events in it.
    pub(super) events: u64,
    /// The most memory that the process had, if the system reports it.
    pub(super) peak_bytes: Option<u64>,
}

/// Reads the file, in that process.
pub(crate) fn tell(path: &Path) -> Result<Told, Failure> {
    let begin = Os.now();
    let file = std::fs::File::open(path).map_err(Failure::usage)?;
    let name = path.display().to_string();
    let recording =
        trace::read::read_on(file, &name, &OnJobs::default()).map_err(Failure::usage)?;
    let timeline = Timeline::new(recording, &Options::default());
    let ns = (Os.now() - begin).0;
    let events = timeline.recording().kernel.len() as u64;
    let peak_bytes = peak();
    Ok(Told {
        ns,
        events,
        peak_bytes,
    })
}

/// Starts that process, and returns its report.
pub(super) fn ask(path: &Path) -> Result<Told, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).arg("--read").arg(path).output();
    let output = output.map_err(|error| format!("the reader does not start: {error}"))?;
    if output.status.success() {
        serde_json::from_slice(&output.stdout).map_err(|error| format!("the reader: {error}"))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// The most memory that this process has had (Linux: `VmHWM` in `/proc/self/status`, in KiB).
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
