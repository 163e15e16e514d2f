//! What a fleet or a sweep is to do: for the commands, and for faces in other languages.

use std::path::Path;

use console::Failure;
use fleet::{
    DataSet, LabelPattern, Labels, Outcome, Point, Sweep, TraceFile, TraceOptions, Unit,
    unit_of_point, unit_of_recording,
};

use crate::commands::simulate::PointRunner;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What, where, and what to do, in one line.
    pub text: String,
    /// Whether what was given is wrong; else the run failed.
    pub is_input: bool,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        if refusal.is_input {
            Failure::Usage(refusal.text)
        } else {
            Failure::Failed(refusal.text)
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        let is_input = matches!(failure, Failure::Usage(_));
        let text = failure.text().replace(['\n', '\r'], " ");
        Refusal { text, is_input }
    }
}

/// How the rows of a fleet are made, beyond what their keys name.
pub fn fleet_made_with(labels: Option<&LabelPattern>, options: &TraceOptions) -> String {
    let labels = labels.map(ToString::to_string).unwrap_or_default();
    format!("labels {labels:?}, {}", options.text())
}

/// The traces that are not in a data set.
///
/// # Errors
/// If one that is there has another size by now.
pub fn missing_traces(files: &[TraceFile], set: &DataSet) -> Result<Vec<TraceFile>, Refusal> {
    let mut new = Vec::new();
    for file in files {
        match set.size_of(&file.key) {
            None => new.push(file.clone()),
            Some(size) if size == file.size => {}
            Some(size) => {
                let what = format!(
                    "{}: has {} bytes, and had {size} when it was read into {}; give another name for the \
                     data set",
                    file.path.display(),
                    file.size,
                    set.path().display()
                );
                return Err(Failure::Usage(what).into());
            }
        }
    }
    Ok(new)
}

/// The points of a sweep, and what runs them.
pub struct SweepPlan {
    runner: PointRunner,
    points: Vec<Point>,
}

impl SweepPlan {
    /// The points of a sweep. Names of files are relative to `folder`.
    ///
    /// # Errors
    /// If something is named that is not there, or no point can be run.
    pub fn new(sweep: &Sweep, folder: &Path) -> Result<SweepPlan, Refusal> {
        let mut runner = PointRunner::new(folder);
        let points = sweep.points(|scenario, machine| runner.digest(scenario, machine))?;
        // Seeds are last, and no mistake is of one alone.
        runner.check(points.iter().step_by(sweep.seeds.len().max(1)))?;
        Ok(SweepPlan { runner, points })
    }

    /// Every point, in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Runs a point. Whatever is wrong with it is in its row.
    pub fn run(&self, point: &Point) -> Unit {
        unit_of_point(point, &self.runner.run(point))
    }

    /// Runs a point and explains its waits: its rows of a sweep, and those of a trace, unless it has too many
    /// events for that.
    ///
    /// # Errors
    /// If it cannot be run. A check that failed is in the row.
    pub fn explained(
        &self,
        point: &Point,
        options: &TraceOptions,
    ) -> Result<(Unit, Option<Unit>), Refusal> {
        let (outcome, recording) = self.runner.explained(point)?;
        let of_trace = recording.map(|recording| {
            unit_of_recording(&point.key(), &Labels::default(), recording, options)
        });
        Ok((unit_of_point(point, &outcome), of_trace))
    }

    /// The row of a point that could not be worked on.
    pub fn broken(point: &Point, why: &str) -> Unit {
        unit_of_point(point, &Outcome::failed(why))
    }
}
