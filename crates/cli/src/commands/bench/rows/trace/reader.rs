//! The process that reads: a fresh one each time, so that its memory is what reading takes.

use std::path::Path;
use std::process::Command;

use platform::{Os, Platform};
use serde::{Deserialize, Serialize};
use trace::timeline::{Options, Timeline};

use crate::failure::Failure;
use crate::jobs::OnJobs;

/// What it tells.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::commands::bench) struct Told {
    /// From opening the file to the finished timeline.
    pub(super) ns: u64,
    /// Scheduler events in it.
    pub(super) events: u64,
    /// The most memory that the process had, where the system says it.
    pub(super) peak_bytes: Option<u64>,
}

/// In that process: reads the file.
pub(in crate::commands::bench) fn tell(path: &Path) -> Result<Told, Failure> {
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

/// Starts that process, and gives what it told.
pub(super) fn ask(path: &Path) -> Result<Told, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["bench", "--read"])
        .arg(path)
        .output();
    let output = output.map_err(|error| format!("the reader does not start: {error}"))?;
    match output.status.success() {
        true => {
            serde_json::from_slice(&output.stdout).map_err(|error| format!("the reader: {error}"))
        }
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
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
