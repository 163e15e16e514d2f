//! `trace`: the speed of reading traces, its memory, and the cost of recording one.

mod events;
mod protobuf;
mod reader;
mod recorded;
mod text;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::case::{Case, Picture};
use crate::row::{self, Row};
use crate::session::{Contestant, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;
use console::{Failure, output};

pub(crate) use reader::tell;

pub(super) const ROW: Row = Row {
    name: "trace",
    title: "reading a trace of 256 MB: ftrace text, and Perfetto with one message an event; recording",
    means: "A file of at least 256 MB, not packed, with what 60 threads on 8 CPUs might have done: switches, \
            wake-ups and marked slices, generated and the same each time. A process of its own reads it \
            and makes the finished timeline of it. The time is from opening the file to that; memory is the \
            most that the process had at any time, as a multiple of the file. Then what recording costs: \
            source 001's frames (500 jobs with pieces of 1 µs) in turn with and without recording into \
            rings, on one job system; a sample is the median of 20 such frames over that of 20 others.",
    measure,
};

/// 256 MB and a bit.
const BYTES: u64 = 257_000_000;
const QUICK_BYTES: u64 = 300_000;

/// A format of traces.
struct Format {
    label: &'static str,
    write: fn(&mut dyn Write, u64) -> std::io::Result<u64>,
    /// The target for reading it, in MB per second.
    target: f64,
}

const FORMATS: [Format; 2] = [
    Format {
        label: "ftrace text",
        write: text::write,
        target: 200.0,
    },
    Format {
        label: "Perfetto",
        write: protobuf::write,
        target: 400.0,
    },
];

/// A file that is deleted in the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is in the system's folder of temporary files in any case.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for format in &FORMATS {
        cases.extend(measure_format(setup, format)?);
    }
    cases.push(recorded::measure(setup)?);
    Ok(cases)
}

fn measure_format(setup: &mut Setup, format: &Format) -> Result<Vec<Case>, Failure> {
    let least = setup.size(BYTES, QUICK_BYTES);
    output::note(format_args!(
        "trace: writing {} MB of {}",
        least / 1_000_000,
        format.label
    ));
    let file = Scratch(std::env::temp_dir().join(format!(
        "paceline-bench-{}-{}",
        std::process::id(),
        format.label.replace(' ', "-")
    )));
    let events = write(format, &file.0, least)?;
    let bytes = std::fs::metadata(&file.0).map_err(Failure::failed)?.len();
    let megabytes = bytes as f64 / 1e6;
    let path = file.0.clone();
    let subject = Contestant::new(Who::Paceline, move || {
        let told = reader::ask(&path)?;
        row::check(told.events, events)?;
        let memory = told.peak_bytes.map(|peak| peak as f64 / bytes as f64);
        Ok(std::iter::once(told.ns as f64 / 1e6 / megabytes)
            .chain(memory)
            .collect())
    });
    let rounds = setup.size(5, 1);
    let samples = interleave(setup, ROW.name, rounds, vec![subject])?;
    let case = |part: usize, label: String, unit| {
        let of = samples
            .iter()
            .filter_map(|samples| Some((samples.who, samples.of.get(part)?.clone())));
        Case::new(ROW.name, label, unit, of).with_picture(Picture::None)
    };
    let speed = case(0, format!("{}, time", format.label), "ms per MB").with_target(|case| {
        let rate = case.median(Who::Paceline).map(|millis| 1e3 / millis);
        Target::new(setup, "read", Bound::AtLeast(format.target), rate).in_unit("MB/s")
    });
    let mut memory =
        case(1, format!("{}, memory", format.label), "× the file").with_target(|case| {
            let most = case.spread(Who::Paceline).map(|spread| spread.max);
            let target = Target::new(setup, "peak memory / file", Bound::AtMost(3.0), most);
            match most {
                Some(_) => target,
                None => target.waived("only Linux says it"),
            }
        });
    if memory.scores.is_empty() {
        memory = memory.with_cannot(Who::Paceline, "only Linux says how much memory was used");
    }
    Ok(vec![speed, memory])
}

/// Writes the file. Returns the number of its scheduler events.
fn write(format: &Format, path: &Path, least: u64) -> Result<u64, Failure> {
    let failed = |error| Failure::Failed(format!("trace: {}: {error}", path.display()));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
    let events = (format.write)(&mut file, least).map_err(failed)?;
    file.flush().map_err(failed)?;
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a generated trace is read without a loss, and is the same each time. Method: a small one in each
    /// format, read by the readers, and written twice.
    #[test]
    fn generated_traces_are_read_without_a_loss() {
        for format in &FORMATS {
            let written = || {
                let mut bytes = Vec::new();
                let events = (format.write)(&mut bytes, 100_000).unwrap();
                (bytes, events)
            };
            let (bytes, events) = written();
            assert!((100_000..130_000).contains(&bytes.len()), "{}", bytes.len());
            assert!(
                written().0 == bytes,
                "{} differs from run to run",
                format.label
            );
            let recording = trace::read::read(bytes.as_slice(), format.label).unwrap();
            assert_eq!(recording.kernel.len() as u64, events, "{}", format.label);
            assert!(!recording.marks.is_empty());
            let losses: Vec<_> = recording.losses.iter().collect();
            assert_eq!(losses, [], "{}", format.label);
        }
    }
}
