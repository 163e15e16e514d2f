//! `--replay`: a recorded program, on the recorded machine or on another one.

use std::path::Path;

use console::Failure;
use event::Nanos;
use replay::{BuildOptions, Program};
use sim::Machine;
use trace::explain::{Selection, explain};
use trace::timeline::{Options, Timeline};

use crate::commands::accounts::starred;
use crate::commands::trace_file;

/// The program of a recording, on this machine or else on its own, with its waits as what is measured.
///
/// # Errors
/// If the trace cannot be read, or has no program.
pub(super) fn program(
    trace: &Path,
    machine: Option<Machine>,
    policy: Option<String>,
) -> Result<Program, Failure> {
    let of = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!("--replay {}: {why}", trace.display()))
    };
    let timeline = Timeline::new(trace_file::load(trace)?, &Options::default());
    let explanation = explain(&timeline, &Selection::default());
    let waits: Vec<_> = explanation
        .waits
        .iter()
        .map(|wait| (wait.thread, wait.begin, wait.end))
        .collect();
    let options = BuildOptions {
        policy,
        ..BuildOptions::default()
    };
    let program = Program::of(&timeline, &waits, &options).map_err(|why| of(&why))?;
    let mut program = program.set_free();
    let names: Vec<String> = explanation
        .waits
        .iter()
        .map(|wait| starred(&wait.name))
        .collect();
    program.name_stretches(|at| names.get(at).cloned());
    if let Some(machine) = machine {
        program.move_to(machine);
    }
    program.is_playable().map_err(|why| of(&why))?;
    let lengths = explanation.waits.iter().map(|wait| wait.length());
    let sum = lengths.fold(Nanos::ZERO, |sum, length| sum + length);
    program.assumed.push(format!(
        "in the recording its {} waits took {sum} together",
        explanation.waits.len()
    ));
    Ok(program)
}
