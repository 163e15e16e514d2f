//! `paceline convert`: any trace that can be read, as a Perfetto trace.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use console::{Failure, output};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::{Map, Value};
use trace::{Losses, Recording};

use super::trace_file;

/// Convert a trace to Perfetto's format
///
/// Reads what `diagnose` reads: ftrace's and systrace's text (also in HTML, or
/// packed as `atrace -z` sends it), `trace-cmd report`, `perf sched script`,
/// Perfetto's protobuf and Chrome's JSON, each packed with gzip or not. The file's
/// content decides what it is, not its name.
///
/// Writes Perfetto's protobuf, which <https://ui.perfetto.dev> and its trace
/// processor open: which thread ran where, wake-ups with their wakers, slices and
/// counters of programs, and arrows. A thread keeps its number. Events that could
/// not be read, or have no place in the format, are counted by kind and shown.
///
/// The file is written beside OUT first and then given its name, so that OUT is
/// either whole or as it was. IN and OUT may be one file.
///
/// Examples:
///   paceline convert trace.html trace.pftrace
///   paceline convert trace.txt.gz trace.pftrace.gz --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConvertArguments {
    /// The trace to read
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write; packed with gzip if its name ends in .gz
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Print one JSON object with in, out, events and losses
    #[arg(long)]
    json: bool,
}

/// The stable `--json` object.
#[derive(Serialize)]
struct ConvertReport {
    r#in: PathBuf,
    out: PathBuf,
    format: String,
    events: usize,
    losses: Map<String, Value>,
}

/// Reads, writes, and reports the outcome.
pub(crate) fn run(arguments: ConvertArguments) -> Result<(), Failure> {
    let ConvertArguments {
        input,
        output,
        json,
    } = arguments;
    output::check_files(&[("the trace itself", &input)], &[("OUT", Some(&output))])?;
    let mut recording = trace_file::load(&input)?;
    let written = write(&output, &recording)
        .map_err(|why| Failure::failed(format!("cannot write {}: {why}", output.display())))?;
    recording.losses.add(trace::Loss::Unbegun, written.unbegun);
    // The reader counted some of those that the writer ended.
    let counted = recording.losses.get(trace::Loss::Unfinished);
    let more = written.unfinished.saturating_sub(counted);
    recording.losses.add(trace::Loss::Unfinished, more);
    let events = events(&recording);
    if json {
        return output::print_json(&ConvertReport {
            r#in: input,
            out: output,
            format: recording.origin.format.clone(),
            events,
            losses: losses(&recording.losses),
        });
    }
    output::print(format!("{}: {events} events", output.display()))?;
    for (loss, count) in recording.losses.iter() {
        output::print(format!("lost: {count} {}", loss.word()))?;
    }
    Ok(())
}

/// Kernel events, marks, values and events of the job system.
fn events(recording: &Recording) -> usize {
    let values = recording
        .counters
        .iter()
        .map(|counter| counter.values.len());
    recording.kernel.len() + recording.marks.len() + recording.jobs.len() + values.sum::<usize>()
}

fn losses(losses: &Losses) -> Map<String, Value> {
    let word = |(loss, count): (trace::Loss, u64)| (loss.word().to_owned(), count.into());
    losses.iter().map(word).collect()
}

/// Writes the file under another name and gives it its own when it is whole. Devices and pipes are written
/// as they are, and links as what they lead to: `/dev/stdout` is one.
fn write(path: &Path, recording: &Recording) -> io::Result<trace::write::Written> {
    if std::fs::symlink_metadata(path).is_ok_and(|about| !about.is_file()) {
        return write_to(path, path, recording);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = write_to(&part, path, recording).and_then(|written| {
        std::fs::rename(&part, path)?;
        Ok(written)
    });
    if written.is_err() {
        // It may not be there; the error below is the one that matters.
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn write_to(part: &Path, path: &Path, recording: &Recording) -> io::Result<trace::write::Written> {
    let mut file = BufWriter::new(File::create(part)?);
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    let written = if is_packed {
        let mut packer = GzEncoder::new(&mut file, Compression::default());
        let written = trace::write::perfetto(recording, &mut packer)?;
        packer.finish()?;
        written
    } else {
        trace::write::perfetto(recording, &mut file)?
    };
    file.flush()?;
    Ok(written)
}
