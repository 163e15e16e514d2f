//! `--program`: the program of a recording as a scenario, with its machine beside it.

use std::path::{Path, PathBuf};

use console::{Failure, output};
use replay::Program;

use crate::commands::accounts::plural;

/// Where the machine of a program is written.
fn machine_path(path: &Path) -> PathBuf {
    path.with_extension("machine.toml")
}

/// Writes the program and its machine.
pub(super) fn write(path: &Path, trace: &Path, program: &Program) -> Result<(), Failure> {
    let machine = machine_path(path);
    let name = match &program.machine_file {
        Some(_) => {
            let name = machine.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        }
        None => program.machine.name.clone(),
    };
    let recording = trace.file_name().unwrap_or_default().to_string_lossy();
    output::write_file(path, program.to_toml(&recording, &name).as_bytes())?;
    match &program.machine_file {
        Some(text) => output::write_file(&machine, text.as_bytes()),
        None => Ok(()),
    }
}

/// What was written, in words.
pub(super) fn told(path: &Path, program: &Program) -> String {
    let segments = program.threads.iter().map(|thread| thread.segments.len());
    let segments: usize = segments.sum();
    let shown = path.display();
    let beside = match &program.machine_file {
        Some(_) => format!(", and its machine to {}", machine_path(path).display()),
        None => String::new(),
    };
    let mut text = format!(
        "Wrote {} with {segments} segments to {shown}{beside}.\nRun it: paceline simulate {shown}\n\n\
         Assumed:\n",
        plural(program.threads.len(), "thread")
    );
    for what in &program.assumed {
        text.push_str(&format!("- {what}\n"));
    }
    text
}
