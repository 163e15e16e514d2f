//! The recording that is written to the file, and the file's name.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ::trace::write::settle_order;
use ::trace::{Clock, Loss, Origin, Process, Recording};
use event::{Event, EventKind};
use platform::Platform;

use super::threads::{Numbers, Present};
use crate::work::shared::Shared;

/// The recording of these events. `starter`: the slot of the thread that began the trace.
pub(super) fn recording<P: Platform>(
    shared: &Shared<P>,
    mut events: Vec<Event>,
    lost: u64,
    (starter, present): (Option<u32>, Present),
) -> Recording {
    // Stable: events of one time and thread stay in their order.
    events.sort_by_key(|event| event.time);
    let mut numbers = Numbers::new(&present, shared.threads.limit() as u32);
    for event in &mut events {
        numbers.renumber(event);
    }
    let begins_frame = |event: &&Event| event.kind == EventKind::FrameBegin;
    let first_frame = events.iter().find(begins_frame);
    let main = first_frame.map(|event| event.slot).or(starter);
    let mut recording = Recording {
        origin: Origin {
            clock: Clock::Monotonic,
            ..Origin::default()
        },
        processes: vec![Process {
            pid: process_id(),
            ..Process::new(program())
        }],
        jobs: events,
        ..Recording::default()
    };
    numbers.write(shared, present, main, &mut recording);
    let labels = shared.graph.labels.all();
    recording.labels = labels.iter().map(|label| label.name.to_owned()).collect();
    recording.losses.add(Loss::JobEvents, lost);
    settle_order(&mut recording);
    recording
}

/// The name of this program's file.
fn program() -> String {
    let file = std::env::current_exe().ok();
    let name = file.as_deref().and_then(Path::file_name);
    name.map_or_else(
        || "program".into(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The system's number for this process, where there are processes.
pub(super) fn process_id() -> Option<u32> {
    (!cfg!(target_family = "wasm")).then(std::process::id)
}

/// The file for a job system: `%p` in the pattern is the process. Each job system of a process has a number;
/// from the second on it is part of the name, so that none overwrites the file of another.
pub(super) fn name(pattern: &str, process: Option<u32>, system: u32) -> PathBuf {
    let process = process.map_or_else(|| "0".to_owned(), |id| id.to_string());
    let path = PathBuf::from(pattern.replace("%p", &process));
    if system <= 1 {
        return path;
    }
    let stem = path.file_stem().unwrap_or(OsStr::new("")).to_string_lossy();
    let mut name = format!("{stem}-{system}");
    if let Some(extension) = path.extension() {
        name = format!("{name}.{}", extension.to_string_lossy());
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: processes and job systems write different files, and the first system of a process the one that
    /// was asked for. Method: names with and without parts.
    #[test]
    fn names_of_files() {
        for (pattern, system, file) in [
            ("run.pftrace", 1, "run.pftrace"),
            ("run-%p.pftrace", 1, "run-42.pftrace"),
            ("out/%p/run.pftrace", 3, "out/42/run-3.pftrace"),
            ("run", 2, "run-2"),
            ("50%", 1, "50%"),
        ] {
            assert_eq!(name(pattern, Some(42), system), Path::new(file));
        }
        assert_eq!(name("%p.x", None, 1), Path::new("0.x"));
    }
}
