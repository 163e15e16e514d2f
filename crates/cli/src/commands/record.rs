//! `paceline record`: the kernel's events while a program ran.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use clap::Args;
use console::{Failure, output};
use serde::Serialize;
use trace::{Loss, Recording};

use crate::kernel::Tracer;

/// Run a command and record the kernel's scheduling, for `diagnose`
///
/// Records everything that runs on the machine meanwhile: switches, wake-ups with
/// their wakers, migrations, priorities, frequencies, idle CPUs. ui.perfetto.dev
/// opens the file, too. `diagnose` shows CMD and what it starts first.
///
/// It uses the kernel's tracefs, in an instance of its own (paceline-PID) that is
/// removed afterwards, and needs root; without root nothing is run. Ctrl-C ends
/// the command, and so do SIGTERM, SIGINT and SIGHUP to this process, which are
/// passed on; the trace is written all the same. The exit code is 1 if the command
/// fails.
///
/// Examples:
///   paceline record -- make -j8
///   paceline record -o list.pftrace -- ls -R
#[derive(Args)]
#[command(after_long_help = JSON)]
#[command(verbatim_doc_comment)]
pub(crate) struct RecordArguments {
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
    /// Room for the events of each CPU; if there are more, the last ones are kept [default: 16384,
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

/// The keys of `--json`, at the end of the help.
const JSON: &str = "\
JSON (--json), one object:
  path, bytes
  events              of the kernel, in the file
  lost                those that did not fit --buffer-kb
  status              exit code of the command; null if a signal ended it";

/// The object of `--json`.
#[derive(Serialize)]
struct RecordReport {
    path: String,
    events: u64,
    lost: u64,
    bytes: u64,
    status: Option<i32>,
}

pub(crate) fn run(arguments: RecordArguments) -> Result<(), Failure> {
    output::check_files(
        &[],
        &[
            ("--output", Some(&arguments.output)),
            ("--text", arguments.text.as_deref()),
        ],
    )?;
    let tracer = Tracer::start(arguments.buffer_kb).map_err(Failure::failed)?;
    let mut signals = Signals::new();
    let child = start(&arguments)?;
    let program = child.id();
    let status = signals.wait_for(child)?;
    let mut recorded = tracer.finish(arguments.text.as_deref())?;
    recorded.is_of(program);
    let report = write(&arguments, &recorded.recording, status)?;
    if arguments.json {
        output::print_json(&report)?
    } else {
        output::print(table(&report))?
    }
    if report.lost > 0 {
        output::note(format!(
            "note: {} holds the last {} events; {} came before; give --buffer-kb more than {}",
            report.path, report.events, report.lost, recorded.buffer_kb
        ));
    }
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Failed(format!(
            "{} failed ({status}); the recording is in {}",
            arguments.command[0].display(),
            report.path
        )))
    }
}

fn start(arguments: &RecordArguments) -> Result<Child, Failure> {
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

/// A signal that ends the command ends the recording, and not this process, which has to write the trace.
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
    arguments: &RecordArguments,
    recording: &Recording,
    status: ExitStatus,
) -> Result<RecordReport, Failure> {
    let path = &arguments.output;
    let shown = path.display();
    let written = File::create(path).and_then(|file| trace::write::perfetto(recording, file));
    let written =
        written.map_err(|error| Failure::failed(format!("cannot write {shown}: {error}")))?;
    Ok(RecordReport {
        path: shown.to_string(),
        events: recording.kernel.len() as u64,
        lost: recording.losses.get(Loss::KernelEvents),
        bytes: written.bytes,
        status: status.code(),
    })
}

fn table(report: &RecordReport) -> comfy_table::Table {
    let mut table = output::table();
    table.add_row(["trace", &report.path]);
    table.add_row(["events", &report.events.to_string()]);
    table.add_row(["lost", &report.lost.to_string()]);
    table.add_row(["bytes", &report.bytes.to_string()]);
    table
}
