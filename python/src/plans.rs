//! What a fleet or a sweep is to do, and doing it: all of it on this machine's pool, or a part of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cli::face;
use fleet::{
    Done, FleetError, Kind, LabelPattern, Labels, Sweep, TraceFile, TraceOptions, Unit, Watch,
    Worked, broken_trace, find, unit_of_file,
};
use pyo3::prelude::*;

use crate::apart::{apart, apart_until};
use crate::parts::{SentOptions, SentTrace, sent};
use crate::set::{DataSet, Sent, lock};
use crate::{FailedError, failed, options, refused};

/// How far a run is, for the thread that waits; and whether it is to stop.
#[derive(Default)]
struct Shared {
    done: AtomicUsize,
    failed: AtomicUsize,
    is_stopped: AtomicBool,
}

impl Watch for Shared {
    fn reached(&self, done: Done) {
        self.done.fetch_max(done.units, Ordering::Relaxed);
        self.failed.fetch_max(done.failed, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// Works on `units` with this machine's pool, and calls `progress(done, failed)` now and then.
fn work<T: Sync + Send + 'static>(
    py: Python<'_>,
    set: &DataSet,
    units: Vec<T>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
    (unit, broken): (
        impl Fn(&T) -> Unit + Sync + Send + 'static,
        impl Fn(&T, &str) -> Unit + Sync + Send + 'static,
    ),
) -> PyResult<(usize, usize)> {
    let shared = Arc::new(Shared::default());
    let (watch, stop, seen) = (shared.clone(), shared.clone(), shared);
    let locked = set.shared();
    let worked = move || -> Option<Result<Worked, FleetError>> {
        let mut set = lock(&locked);
        let set = set.as_mut()?;
        Some(fleet::run(
            &units,
            threads,
            set,
            unit,
            broken,
            watch.as_ref(),
        ))
    };
    let look = |py: Python<'_>| {
        let Some(progress) = &progress else {
            return Ok(());
        };
        let counts = [&seen.done, &seen.failed].map(|count| count.load(Ordering::Relaxed));
        progress.call1(py, (counts[0], counts[1])).map(drop)
    };
    let stop = || {
        stop.is_stopped.store(true, Ordering::Relaxed);
        true
    };
    let worked = apart_until(py, worked, look, stop)?;
    let worked = worked.ok_or_else(|| FailedError::new_err("this data set is closed"))?;
    let worked = worked.map_err(|why| failed(&why))?;
    Ok((worked.done.units, worked.done.failed))
}

/// The points of a sweep.
#[pyclass(frozen, module = "paceline._native")]
pub(crate) struct SweepPlan(Arc<face::SweepPlan>);

#[pymethods]
impl SweepPlan {
    /// Of a sweep in JSON; names of files are relative to the folder.
    #[new]
    fn new(py: Python<'_>, sweep: &str, folder: PathBuf) -> PyResult<SweepPlan> {
        let sweep = Sweep::parse_json(sweep).map_err(|why| failed(&why))?;
        let plan = apart(py, move || face::SweepPlan::new(&sweep, &folder))?;
        plan.map(|plan| SweepPlan(Arc::new(plan)))
            .map_err(|why| refused(&why))
    }

    /// The keys of all points, in order.
    fn keys(&self) -> Vec<String> {
        self.0.points().iter().map(fleet::Point::key).collect()
    }

    /// The positions of the points that are not in the data set.
    fn missing(&self, set: &DataSet) -> PyResult<Vec<usize>> {
        let points = self.0.points().iter().enumerate();
        set.with(|set| {
            let missing = points.filter(|(_, point)| !set.has(&point.key()));
            Ok(missing.map(|(at, _)| at).collect())
        })
    }

    /// Runs the points at these positions on this machine's pool; how many ran, and failed.
    #[pyo3(signature = (set, positions, threads = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        set: &DataSet,
        positions: Vec<usize>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(usize, usize)> {
        let (plan, points) = (self.0.clone(), self.chosen(&positions)?);
        let unit = move |point: &fleet::Point| plan.run(point);
        let broken = |point: &fleet::Point, why: &str| face::SweepPlan::broken(point, why);
        work(py, set, points, threads, progress, (unit, broken))
    }

    /// A part of the points at these positions, run on one thread. `keys`: what they are for the process that
    /// asks; others are refused, since then files differ between the two machines.
    fn part(&self, py: Python<'_>, positions: Vec<usize>, keys: Vec<String>) -> PyResult<Sent> {
        let points = self.chosen(&positions)?;
        if !points.iter().map(fleet::Point::key).eq(keys) {
            return Err(FailedError::new_err(
                "scenarios, machines or the version of paceline differ between this machine and the one that \
                 asks; give both the same files and the same version",
            ));
        }
        let plan = self.0.clone();
        let units = apart(py, move || {
            points.iter().map(|point| (None, plan.run(point))).collect()
        })?;
        sent(Kind::Points, units)
    }
}

impl SweepPlan {
    fn chosen(&self, positions: &[usize]) -> PyResult<Vec<fleet::Point>> {
        let points = self.0.points();
        let chosen = positions.iter().map(|&at| points.get(at).cloned());
        let chosen: Option<Vec<_>> = chosen.collect();
        chosen.ok_or_else(|| FailedError::new_err("there is no such point"))
    }
}

/// The traces of a fleet.
#[pyclass(frozen, module = "paceline._native")]
pub(crate) struct FleetPlan {
    files: Vec<TraceFile>,
    unseen: Vec<String>,
    options: TraceOptions,
    made_with: String,
}

#[pymethods]
impl FleetPlan {
    /// Of a folder or a pattern; `labels` is a pattern of paths.
    #[new]
    fn new(
        py: Python<'_>,
        traces: String,
        labels: Option<&str>,
        given: SentOptions,
    ) -> PyResult<FleetPlan> {
        let pattern = labels.map(str::parse::<LabelPattern>).transpose();
        let pattern = pattern.map_err(|why| failed(&why))?;
        let made_with = face::fleet_made_with(pattern.as_ref(), &options_of(&given));
        let found = apart(py, move || find(&traces, pattern.as_ref()))?;
        let found = found.map_err(|why| failed(&why))?;
        Ok(FleetPlan {
            files: found.files,
            unseen: found.unseen,
            options: options_of(&given),
            made_with,
        })
    }

    /// How rows are made beyond their keys: what [`DataSet`] wants to know.
    #[getter]
    fn made_with(&self) -> &str {
        &self.made_with
    }

    /// Folders and files that could not be looked at.
    #[getter]
    fn unseen(&self) -> Vec<String> {
        self.unseen.clone()
    }

    /// The traces that are not in the data set.
    fn missing(&self, set: &DataSet) -> PyResult<Vec<SentTrace>> {
        let files = self.missing_files(set)?.into_iter();
        let sent = files.map(|file| {
            let Labels { device, build } = file.labels;
            (file.key, file.path, file.size, device, build)
        });
        Ok(sent.collect())
    }

    /// Explains what is missing on this machine's pool; how many came, and failed.
    #[pyo3(signature = (set, threads = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        set: &DataSet,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(usize, usize)> {
        let options = self.options.clone();
        let unit = move |file: &TraceFile| unit_of_file(file, &options);
        let files = self.missing_files(set)?;
        work(py, set, files, threads, progress, (unit, broken_trace))
    }
}

impl FleetPlan {
    fn missing_files(&self, set: &DataSet) -> PyResult<Vec<TraceFile>> {
        set.with(|set| {
            let missing = face::missing_traces(&self.files, set);
            missing.map_err(|why| refused(&why))
        })
    }
}

fn options_of(given: &SentOptions) -> TraceOptions {
    options(given.0.clone(), given.1.clone(), given.2)
}
