//! Two fleets compared.

use std::path::PathBuf;

use cli::face;
use fleet::{CompareOptions, Direction, Side};
use pyo3::prelude::*;

use crate::apart::apart;
use crate::refused;
use crate::table::Table;

/// A data set, and one of its builds.
type Given = (PathBuf, Option<String>);
/// The table, how many traces each side has, and how many rows have each verdict: grew, shrank, same, few.
type Told = (Table, (usize, usize), [usize; 4]);

/// Compares B with A. `files` are those that are written: the table and the page.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    a: Given,
    b: Given,
    device: Option<String>,
    drawn: (usize, u64),
    files: (Option<PathBuf>, Option<PathBuf>),
) -> PyResult<Told> {
    let sides = [a, b].map(|(path, build)| Side { path, build });
    let options = CompareOptions {
        device,
        draws: drawn.0,
        seed: drawn.1,
    };
    let compared = apart(py, move || {
        face::compare(&sides, &options, files.0.as_deref(), files.1.as_deref())
    })?;
    let changes = compared.map_err(|why| refused(&why))?;
    let verdicts = [
        Direction::Grew,
        Direction::Shrank,
        Direction::Same,
        Direction::Few,
    ];
    let counts = verdicts.map(|direction| changes.with(direction).count());
    let [of_a, of_b] = changes.traces;
    Ok((Table(changes.table()), (of_a, of_b), counts))
}
