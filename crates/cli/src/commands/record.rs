//! `paceline record`: what the kernel did while a program ran.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use clap::Args;
use serde::Serialize;
use trace::{Loss, Recording};

use crate::failure::Failure;
use crate::kernel::Tracer;
use crate::output;

/// Run a command with the kernel's scheduling recorded, for `diagnose` and ui.perfetto.dev.
///
/// Everything that runs on the machine meanwhile is recorded: who runs on which CPU, who wakes whom,
/// migrations, priorities, frequencies, idle CPUs. It goes through the kernel's tracefs, in an instance
/// of its own (paceline-PID) that is removed afterwards, and needs root: if that is missing, nothing is
/// run. Ctrl-C ends the command, and so do SIGTERM, SIGINT and SIGHUP to this process, which are passed on;
/// the trace is written all the same. The exit code is 1 if the command fails.
///
/// JSON (one object): path, events (of the kernel, in the file), lost (that did not fit --buffer-kb),
/// bytes, status (exit code of the command; null if a signal ended it).
#[derive(Args)]
pub(crate) struct Arguments {
    /// Where the trace goes, as Perfetto's protobuf
    #[arg(
        short,
        long,
        value_name = "F.pftrace",
        default_value = "paceline.pftrace"
    )]
    output: PathBuf,
    /// Copy the kernel's own text to this file, too
    #[arg(long, value_name = "F.txt")]
    text: Option<PathBuf>,
    /// Room for the events of each CPU; if they are more, the last ones are kept [default: 16384,
    /// less on machines with more than 32 CPUs]
    ///
    /// A switch takes about 80 bytes, and a busy CPU makes some thousand a second.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    buffer_kb: Option<u32>,
    /// Write one JSON object; what the command prints goes to standard error
    #[arg(long)]
    json: bool,
    /// The command and its arguments, after --
    #[arg(value_name = "CMD", required = true, last = true, num_args = 1..)]
    command: Vec<OsString>,
}

/// What `--json` says.
#[derive(Serialize)]
struct Report {
    path: String,
    events: u64,
    lost: u64,
    bytes: u64,
    status: Option<i32>,
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    output::check_files(
        &[],
        &[
            ("--output", Some(&arguments.output)),
            ("--text", arguments.text.as_deref()),
        ],
    )?;
    let tracer = Tracer::start(arguments.buffer_kb).map_err(Failure::failed)?;
    let mut signals = Signals::new();
    let status = signals.wait_for(start(&arguments)?)?;
    let recorded = tracer.finish(arguments.text.as_deref())?;
    let report = write(&arguments, &recorded.recording, status)?;
    match arguments.json {
        true => output::print_json(&report)?,
        false => output::print(table(&report))?,
    }
    if report.lost > 0 {
        output::note(format!(
            "note: {} holds the last {} events; {} came before; give --buffer-kb more than {}",
            report.path, report.events, report.lost, recorded.buffer_kb
        ));
    }
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "{} failed ({status}); what was recorded is in {}",
            arguments.command[0].display(),
            report.path
        ))),
    }
}

fn start(arguments: &Arguments) -> Result<Child, Failure> {
    let (program, rest) = arguments.command.split_first().expect("clap sees to it");
    let mut command = Command::new(program);
    command.args(rest);
    if arguments.json {
        command.stdout(Stdio::from(io::stderr()));
    }
    command.spawn().map_err(|error| {
        let shown = program.display();
        Failure::Usage(format!(
            "cannot run {shown}: {error}; give a program and its arguments after --"
        ))
    })
}

/// What ends the command ends the recording, and not this process, which has to write what was recorded.
struct Signals {
    /// Until the file is written.
    #[cfg(unix)]
    passed_on: platform::os::interrupts::PassSignals,
}

impl Signals {
    fn new() -> Signals {
        Signals {
            #[cfg(unix)]
            passed_on: platform::os::interrupts::PassSignals::new(),
        }
    }

    /// Signals are passed on to the command; Ctrl-C it has got from the terminal already.
    fn wait_for(&mut self, mut child: Child) -> Result<ExitStatus, Failure> {
        #[cfg(unix)]
        let status = self.passed_on.wait(&mut child);
        #[cfg(not(unix))]
        let status = child.wait();
        status.map_err(|error| Failure::failed(format!("cannot wait for the command: {error}")))
    }
}

fn write(
    arguments: &Arguments,
    recording: &Recording,
    status: ExitStatus,
) -> Result<Report, Failure> {
    let path = &arguments.output;
    let shown = path.display();
    let written = File::create(path).and_then(|file| trace::write::perfetto(recording, file));
    let written =
        written.map_err(|error| Failure::failed(format!("cannot write {shown}: {error}")))?;
    Ok(Report {
        path: shown.to_string(),
        events: recording.kernel.len() as u64,
        lost: recording.losses.get(Loss::KernelEvents),
        bytes: written.bytes,
        status: status.code(),
    })
}

fn table(report: &Report) -> comfy_table::Table {
    let mut table = output::table();
    table.add_row(["trace", &report.path]);
    table.add_row(["events", &report.events.to_string()]);
    table.add_row(["lost", &report.lost.to_string()]);
    table.add_row(["bytes", &report.bytes.to_string()]);
    table
}
