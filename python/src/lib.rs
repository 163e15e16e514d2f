//! The native part of the Python package `paceline`: a face of the commands.
//!
//! It adds no behaviour: calls go to `paceline_cli::face` and crate `fleet`, and what comes back is tables.
//! Every call gives the interpreter's lock back while it works, and works on a thread of its own, so that
//! Ctrl-C is heard (`apart`).

mod apart;
mod compare;
mod parts;
mod plans;
mod set;
mod shown;
mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cli::face::{self, Refusal};
use fleet::{FleetError, LabelPattern, Labels, Sweep, TraceOptions, Unit, concat};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::{create_exception, exceptions};

use apart::apart;
use table::Table;

create_exception!(
    paceline,
    Error,
    exceptions::PyException,
    "What the command would say in one line: what, where, and what to do."
);
create_exception!(paceline, InputError, Error, "What was given is wrong.");
create_exception!(
    paceline,
    FailedError,
    Error,
    "The run failed, or a bound was missed."
);

/// The tables of a unit by name.
pub(crate) type Tables = BTreeMap<&'static str, Table>;

pub(crate) fn refused(refusal: &Refusal) -> PyErr {
    if refusal.is_input {
        InputError::new_err(refusal.text.clone())
    } else {
        FailedError::new_err(refusal.text.clone())
    }
}

pub(crate) fn failed(error: &FleetError) -> PyErr {
    if error.is_input() {
        InputError::new_err(error.to_string())
    } else {
        FailedError::new_err(error.to_string())
    }
}

pub(crate) fn tables(unit: Unit) -> Tables {
    let rows = unit.rows.into_iter();
    rows.map(|rows| (rows.table().word(), Table(concat(rows.table(), [rows]))))
        .collect()
}

pub(crate) fn options(slice: Vec<String>, busy: Vec<String>, waits: usize) -> TraceOptions {
    TraceOptions {
        slices: slice,
        busy,
        waits,
    }
}

/// The tables of the trace in a file.
#[pyfunction]
fn diagnose_file(
    py: Python<'_>,
    path: PathBuf,
    slice: Vec<String>,
    busy: Vec<String>,
    waits: usize,
) -> PyResult<Tables> {
    let options = options(slice, busy, waits);
    let unit = apart(py, move || {
        face::trace_file(&path, &Labels::default(), &options)
    })?;
    unit.map(tables).map_err(|why| refused(&why))
}

/// The tables of a trace in memory.
#[pyfunction]
fn diagnose_bytes(
    py: Python<'_>,
    bytes: PyBackedBytes,
    name: String,
    slice: Vec<String>,
    busy: Vec<String>,
    waits: usize,
) -> PyResult<Tables> {
    let options = options(slice, busy, waits);
    let unit = apart(py, move || {
        face::trace_bytes(&bytes, &name, &Labels::default(), &options)
    })?;
    unit.map(tables).map_err(|why| refused(&why))
}

/// The tables of one simulated run: a sweep with one point.
#[pyfunction]
fn simulate(py: Python<'_>, sweep: String, folder: PathBuf) -> PyResult<Tables> {
    let sweep = Sweep::parse_json(&sweep).map_err(|why| failed(&why))?;
    let made = apart(py, move || {
        let plan = face::SweepPlan::new(&sweep, &folder)?;
        plan.explained(&plan.points()[0], &TraceOptions::default())
    })?;
    let (point, of_trace) = made.map_err(|why| refused(&why))?;
    let mut all = tables(point);
    all.extend(of_trace.into_iter().flat_map(tables));
    Ok(all)
}

/// What a command prints, and, if it failed, whether what was given is wrong, and its line.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<String>) -> PyResult<(String, Option<(bool, String)>)> {
    let (text, done) = apart(py, move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        face::command(&arguments)
    })?;
    Ok((
        text,
        done.err().map(|refusal| (refusal.is_input, refusal.text)),
    ))
}

/// Says how the command is started, for an experiment that runs parts of itself as processes.
#[pyfunction]
fn is_started_by(words: Vec<std::ffi::OsString>) {
    face::is_started_by(words);
}

/// What a pattern of labels says of a path: device and build.
#[pyfunction]
fn labels_of(pattern: &str, path: &str) -> PyResult<(Option<String>, Option<String>)> {
    let pattern: LabelPattern = pattern.parse().map_err(|why| failed(&why))?;
    let Labels { device, build } = pattern.labels(path);
    Ok((device, build))
}

/// Runs the command line of this process, and ends it.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| cli::run_line(arguments))
}

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", py.get_type::<Error>())?;
    module.add("InputError", py.get_type::<InputError>())?;
    module.add("FailedError", py.get_type::<FailedError>())?;
    module.add_class::<Table>()?;
    module.add_class::<set::DataSet>()?;
    module.add_class::<plans::SweepPlan>()?;
    module.add_class::<plans::FleetPlan>()?;
    module.add_function(wrap_pyfunction!(diagnose_file, module)?)?;
    module.add_function(wrap_pyfunction!(diagnose_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(labels_of, module)?)?;
    module.add_function(wrap_pyfunction!(is_started_by, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(parts::part_of_files, module)?)?;
    module.add_function(wrap_pyfunction!(parts::part_of_fetched, module)?)?;
    Ok(())
}
