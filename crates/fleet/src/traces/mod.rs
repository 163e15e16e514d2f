//! From traces to rows.

mod find;
mod labels;
mod rows;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use serde::Serialize;
use trace::explain::{Selection, explain};
use trace::timeline::{Options, Timeline};
use trace::{Executor, Recording, Serial};

pub use find::{Traces, find};
pub use labels::{LabelPattern, Labels};

use crate::set::Unit;
use crate::table::{Rows, TableName, Value};

/// How traces are explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceOptions {
    /// Instead of the usual ones, the slices whose names contain one of these texts.
    pub slices: Vec<String>,
    /// Slices with these texts in their names are waits, also where the thread runs.
    pub busy: Vec<String>,
    /// The most waits of a trace that are explained, the worst first; of sleeps and turns at most as many as
    /// `paceline diagnose` explains.
    pub waits: usize,
}

impl Default for TraceOptions {
    /// Enough for a trace of minutes: the statistics of a fleet should not be those of the worst frames.
    fn default() -> TraceOptions {
        TraceOptions {
            slices: Vec::new(),
            busy: Vec::new(),
            waits: 20_000,
        }
    }
}

impl TraceOptions {
    /// The options as one text: rows that were made with different ones are different.
    ///
    /// # Panics
    /// Never: texts and numbers become JSON.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers become JSON")
    }

    fn selection(&self) -> Selection {
        let usual = Selection::default();
        Selection {
            slices: self.slices.clone(),
            busy: self.busy.clone(),
            limit: self.waits,
            sleeps: usual.sleeps.min(self.waits),
            ..usual
        }
    }
}

/// A trace of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Its path below the folder that was given, with `/`.
    pub key: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub size: u64,
    /// What its path says of it. A sidecar file says more, or otherwise.
    pub labels: Labels,
}

impl TraceFile {
    /// The command that repeats what failed.
    fn again(&self) -> String {
        format!("paceline diagnose {}", quoted(&self.path.to_string_lossy()))
    }
}

/// The rows of a trace file. Whatever is wrong with it is a row of its own.
pub fn unit_of_file(file: &TraceFile, options: &TraceOptions) -> Unit {
    let labels = match labels::sidecar(&file.path) {
        Ok(told) => told.or(&file.labels),
        Err(why) => return broken_trace(file, &why),
    };
    let about = TraceAbout {
        key: &file.key,
        labels: &labels,
        size: file.size,
        again: file.again(),
    };
    match File::open(&file.path) {
        Ok(source) => of_source(
            source,
            &file.path.to_string_lossy(),
            &about,
            options,
            &Serial,
        ),
        Err(why) => failed(
            &about,
            &format!("{}: cannot be read: {why}", file.path.display()),
        ),
    }
}

/// A trace of a fleet that a face has fetched from an address.
#[derive(Clone, Copy, Debug)]
pub struct FetchedTrace<'a> {
    /// As that of a file.
    pub key: &'a str,
    /// Its name in errors.
    pub address: &'a str,
    /// Its size, as the place says.
    pub size: u64,
    /// What its key says of it. Its sidecar file says more, or otherwise.
    pub labels: &'a Labels,
    /// Its sidecar file, if it has one.
    pub sidecar: Option<&'a [u8]>,
    /// Its bytes, or why there are none.
    pub bytes: Result<&'a [u8], &'a str>,
    /// What repeats it, for the column `again`.
    pub again: &'a str,
}

/// The rows of a fetched trace. Whatever is wrong with it is a row of its own.
pub fn unit_of_fetched(trace: &FetchedTrace<'_>, options: &TraceOptions) -> Unit {
    let of_sidecar = trace.sidecar.map_or(Ok(Labels::default()), |bytes| {
        labels::sidecar_of_bytes(bytes, trace.address)
    });
    let (labels, wrong) = match of_sidecar {
        Ok(told) => (told.or(trace.labels), None),
        Err(why) => (trace.labels.clone(), Some(why)),
    };
    let about = TraceAbout {
        key: trace.key,
        labels: &labels,
        size: trace.size,
        again: trace.again.to_owned(),
    };
    match (trace.bytes, wrong) {
        (_, Some(why)) => failed(&about, &why),
        (Err(why), None) => failed(&about, &format!("{}: cannot be read: {why}", trace.address)),
        (Ok(bytes), None) => of_source(bytes, trace.address, &about, options, &Serial),
    }
}

/// The rows of a trace from anywhere, of `size` bytes; large ones are read in parts by `executor`, which
/// changes no row. `name` is its name in errors and its key.
pub fn unit_of_source(
    source: impl Read,
    name: &str,
    labels: &Labels,
    size: u64,
    options: &TraceOptions,
    executor: &dyn Executor,
) -> Unit {
    let about = TraceAbout {
        key: name,
        labels,
        size,
        again: format!("paceline diagnose {}", quoted(name)),
    };
    of_source(source, name, &about, options, executor)
}

/// The rows of a recording that is no file. `name` is its key.
pub fn unit_of_recording(
    name: &str,
    labels: &Labels,
    recording: Recording,
    options: &TraceOptions,
) -> Unit {
    let about = TraceAbout {
        key: name,
        labels,
        size: 0,
        again: String::new(),
    };
    of_recording(recording, &about, options)
}

/// The row of a trace that could not be worked on.
pub fn broken_trace(file: &TraceFile, why: &str) -> Unit {
    let about = TraceAbout {
        key: &file.key,
        labels: &file.labels,
        size: file.size,
        again: file.again(),
    };
    failed(&about, why)
}

/// What is known of a trace before it is read.
struct TraceAbout<'a> {
    key: &'a str,
    labels: &'a Labels,
    size: u64,
    again: String,
}

impl<'a> TraceAbout<'a> {
    /// The first columns of every table.
    fn first(&'a self) -> [Value<'a>; 3] {
        let Labels { device, build } = self.labels;
        [
            self.key.into(),
            device.as_ref().into(),
            build.as_ref().into(),
        ]
    }
}

fn of_source(
    source: impl Read,
    name: &str,
    about: &TraceAbout<'_>,
    options: &TraceOptions,
    executor: &dyn Executor,
) -> Unit {
    match trace::read::read_on(source, name, executor) {
        Ok(recording) => of_recording(recording, about, options),
        Err(why) => failed(about, &why.to_string()),
    }
}

fn of_recording(recording: Recording, about: &TraceAbout<'_>, options: &TraceOptions) -> Unit {
    let timeline = Timeline::new(recording, &Options::default());
    let explanation = explain(&timeline, &options.selection());
    Unit {
        key: about.key.to_owned(),
        size: Some(about.size),
        error: None,
        rows: rows::of(&timeline, &explanation, about),
    }
}

fn failed(about: &TraceAbout<'_>, why: &str) -> Unit {
    let mut traces = Rows::new(TableName::Traces);
    let [key, device, build] = about.first();
    let why = why.replace(['\n', '\r'], " ");
    let null = Value::Null;
    let mut values = vec![key, device, build, about.size.into()];
    values.extend([null; 12]);
    values.extend([Value::Text(&why), Value::Text(&about.again)]);
    traces.push(&values);
    Unit {
        key: about.key.to_owned(),
        size: Some(about.size),
        error: Some(why),
        rows: vec![traces],
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests;
