//! Parts that one process makes and another one writes.

use std::path::PathBuf;

use fleet::{
    FetchedTrace, Kind, Labels, Part, TraceFile, TraceOptions, Unit, unit_of_fetched, unit_of_file,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::set::{Sent, word};
use crate::{apart::apart, failed, options};

/// A trace of a fleet: key, path, size, device and build.
pub(crate) type SentTrace = (String, PathBuf, u64, Option<String>, Option<String>);

/// How traces are explained: slices, busy waits, the most waits.
pub(crate) type SentOptions = (Vec<String>, Vec<String>, usize);

/// A part of these units.
pub(crate) fn sent(kind: Kind, units: Vec<(Option<u64>, Unit)>) -> PyResult<Sent> {
    let mut sizes: Vec<(String, Option<u64>)> = units
        .iter()
        .map(|(size, unit)| (unit.key.clone(), *size))
        .collect();
    // As a part has them.
    sizes.sort();
    let part = Part::new(kind, units.into_iter().map(|(_, unit)| unit).collect());
    let part = part.map_err(|why| failed(&why))?;
    let files = part.files().iter();
    let files = files.map(|(table, bytes)| (table.word().to_owned(), bytes.clone()));
    Ok((
        word(kind).to_owned(),
        sizes,
        part.rows(),
        part.failed(),
        files.collect(),
    ))
}

pub(crate) fn trace_file((key, path, size, device, build): SentTrace) -> TraceFile {
    TraceFile {
        key,
        path,
        size,
        labels: Labels { device, build },
    }
}

/// A part of traces in files, on this thread.
#[pyfunction]
pub(crate) fn part_of_files(
    py: Python<'_>,
    traces: Vec<SentTrace>,
    given: SentOptions,
) -> PyResult<Sent> {
    let options = options(given.0, given.1, given.2);
    let units = apart(py, move || {
        let files = traces.into_iter().map(trace_file);
        files
            .map(|file| (Some(file.size), unit_of_file(&file, &options)))
            .collect()
    })?;
    sent(Kind::Traces, units)
}

/// A trace that was fetched from an address.
#[derive(FromPyObject)]
pub(crate) struct Fetched {
    key: String,
    address: String,
    size: u64,
    device: Option<String>,
    build: Option<String>,
    sidecar: Option<PyBackedBytes>,
    bytes: Option<PyBackedBytes>,
    /// Why there are no bytes.
    error: String,
    again: String,
}

impl Fetched {
    fn unit(self, options: &TraceOptions) -> (Option<u64>, Unit) {
        let labels = Labels {
            device: self.device,
            build: self.build,
        };
        let trace = FetchedTrace {
            key: &self.key,
            address: &self.address,
            size: self.size,
            labels: &labels,
            sidecar: self.sidecar.as_deref(),
            bytes: self.bytes.as_deref().ok_or(&self.error),
            again: &self.again,
        };
        (Some(self.size), unit_of_fetched(&trace, options))
    }
}

/// A part of traces in memory, on this thread.
#[pyfunction]
pub(crate) fn part_of_fetched(
    py: Python<'_>,
    traces: Vec<Fetched>,
    given: SentOptions,
) -> PyResult<Sent> {
    let options = options(given.0, given.1, given.2);
    let units = apart(py, move || {
        let units = traces.into_iter().map(|trace| trace.unit(&options));
        units.collect()
    })?;
    sent(Kind::Traces, units)
}
