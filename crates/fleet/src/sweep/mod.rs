//! Sweeps: the points of a grid of simulated runs, and the row of each.

mod given;

use crate::set::Unit;
use crate::table::{Rows, TableName, Value};
use crate::traces::quoted;

/// A grid of simulated runs: every combination of what the lists have.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sweep {
    /// Names or files of scenarios.
    pub scenarios: Vec<String>,
    /// Names or files of machines; none: the scenario's.
    pub machines: Vec<Option<String>>,
    /// Names of policies; none: the scenario's.
    pub policies: Vec<Option<String>>,
    /// Numbers of workers; none: what the scenario says.
    pub workers: Vec<Option<u32>>,
    /// Whether threads say what they wait for.
    pub hints: Vec<bool>,
    /// Seeds.
    pub seeds: Vec<u64>,
}

/// One simulated run of a sweep. Its row is a function of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// The name or file of the scenario.
    pub scenario: String,
    /// Of all that its names stand for: files, and the version of the simulator.
    pub digest: String,
    /// The name or file of the machine; none: the scenario's.
    pub machine: Option<String>,
    /// The name of the policy; none: the scenario's.
    pub policy: Option<String>,
    /// Workers of the scenario's job system; none: what the scenario says.
    pub workers: Option<u32>,
    /// Whether threads say what they wait for.
    pub hints: bool,
    /// The seed.
    pub seed: u64,
}

impl Sweep {
    /// How many points there are.
    pub fn len(&self) -> usize {
        let lists = [
            self.scenarios.len(),
            self.machines.len(),
            self.policies.len(),
            self.workers.len(),
            self.hints.len(),
            self.seeds.len(),
        ];
        lists.into_iter().fold(1, usize::saturating_mul)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All points, seeds last: the first rows of a sweep are of one configuration. `digest` tells what a
    /// scenario and a machine stand for, and is asked once for each two.
    ///
    /// # Errors
    /// The first one of `digest`.
    pub fn points<E>(
        &self,
        mut digest: impl FnMut(&str, Option<&str>) -> Result<String, E>,
    ) -> Result<Vec<Point>, E> {
        let mut points = Vec::new();
        for scenario in &self.scenarios {
            for machine in &self.machines {
                let digest = digest(scenario, machine.as_deref())?;
                let first = Point {
                    scenario: scenario.clone(),
                    digest,
                    machine: machine.clone(),
                    ..Point::default()
                };
                self.with_the_rest(&first, &mut points);
            }
        }
        Ok(points)
    }

    fn with_the_rest(&self, first: &Point, points: &mut Vec<Point>) {
        for policy in &self.policies {
            for &workers in &self.workers {
                for &hints in &self.hints {
                    points.extend(self.seeds.iter().map(|&seed| Point {
                        policy: policy.clone(),
                        workers,
                        hints,
                        seed,
                        ..first.clone()
                    }));
                }
            }
        }
    }
}

impl Point {
    /// The point in one text, by which it is known.
    pub fn key(&self) -> String {
        let or_own = |given: &Option<String>| given.clone().unwrap_or_else(|| "-".to_owned());
        let workers = self
            .workers
            .map_or_else(|| "-".to_owned(), |it| it.to_string());
        format!(
            "{}@{} {} {} {workers} {} {}",
            self.scenario,
            self.digest,
            or_own(&self.machine),
            or_own(&self.policy),
            if self.hints { "hints" } else { "-" },
            self.seed,
        )
    }

    /// The command that repeats it.
    pub fn again(&self) -> String {
        let mut words = vec!["paceline simulate".to_owned(), quoted(&self.scenario)];
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("{name} {}", quoted(&value))));
        };
        option("--machine", self.machine.clone());
        option("--policy", self.policy.clone());
        option("--workers", self.workers.map(|workers| workers.to_string()));
        option("--seed", Some(self.seed.to_string()));
        if self.hints {
            words.push("--hints".to_owned());
        }
        words.join(" ")
    }
}

/// What a simulated run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Of all events: equal for equal runs.
    pub trace_hash: u64,
    /// From the beginning to the end.
    pub makespan_ns: u64,
    /// Events of the kernel.
    pub events: u64,
    /// Energy, if the machine's file says it.
    pub energy_uj: Option<u64>,
    /// The lengths of frames, in any order.
    pub frames_ns: Vec<u64>,
    /// What was measured, by thread and name.
    pub spans: Vec<SpanFigures>,
    /// For how long threads ran, were runnable and did not run, and slept; summed.
    pub spent_ns: [u64; 3],
    /// How often threads left their CPUs by themselves, and lost them.
    pub switches: [u64; 2],
}

/// What was measured on one thread under one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanFigures {
    /// The thread's name.
    pub thread: String,
    /// The name of what was measured.
    pub name: String,
    /// The lengths, in any order; one at least.
    pub lengths_ns: Vec<u64>,
}

/// How a point ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The machine it ran on.
    pub machine: String,
    /// The policy it ran under.
    pub policy: String,
    /// What came of it; none if it could not be run.
    pub figures: Option<Figures>,
    /// Why it failed: it could not be run, or a check failed.
    pub error: Option<String>,
}

impl Outcome {
    /// A point that could not be run.
    pub fn failed(why: impl Into<String>) -> Outcome {
        Outcome {
            error: Some(why.into()),
            ..Outcome::default()
        }
    }
}

/// Lengths in order, and what is told of them.
struct Lengths(Vec<u64>);

impl Lengths {
    fn of(lengths: &[u64]) -> Lengths {
        let mut sorted = lengths.to_vec();
        sorted.sort_unstable();
        Lengths(sorted)
    }

    /// Mean, median, 99th percentile, maximum; nothing of none.
    fn values(&self) -> [Value<'static>; 4] {
        let sum: f64 = self.0.iter().map(|&ns| ns as f64).sum();
        let mean = (!self.0.is_empty()).then(|| sum / self.0.len() as f64);
        [
            mean.into(),
            at_share(&self.0, 0.5).into(),
            at_share(&self.0, 0.99).into(),
            self.0.last().copied().into(),
        ]
    }
}

/// The rows of a point.
pub fn unit_of_point(point: &Point, outcome: &Outcome) -> Unit {
    let key = point.key();
    let first: [Value<'_>; 8] = [
        (&key).into(),
        (&point.scenario).into(),
        (&point.digest).into(),
        (&outcome.machine).into(),
        (&outcome.policy).into(),
        point.workers.into(),
        point.hints.into(),
        point.seed.into(),
    ];
    let mut points = Rows::new(TableName::Points);
    let figures = outcome.figures.as_ref();
    let frames = Lengths::of(figures.map_or(&[], |figures| &figures.frames_ns));
    let hash = figures.map(|figures| format!("{:016x}", figures.trace_hash));
    let error = outcome
        .error
        .as_ref()
        .map(|error| error.replace(['\n', '\r'], " "));
    let again = error.as_ref().map(|_| point.again());
    let mut row = first.to_vec();
    row.extend([
        Value::from(hash.as_ref()),
        figures.map(|figures| figures.makespan_ns).into(),
        figures.map(|figures| figures.events).into(),
        figures.and_then(|figures| figures.energy_uj).into(),
        figures.map(|_| frames.0.len()).into(),
    ]);
    row.extend(frames.values());
    row.extend([0, 1, 2].map(|at| Value::from(figures.map(|figures| figures.spent_ns[at]))));
    row.extend([0, 1].map(|at| Value::from(figures.map(|figures| figures.switches[at]))));
    row.extend([Value::from(error.as_ref()), again.as_ref().into()]);
    points.push(&row);
    let mut spans = Rows::new(TableName::Spans);
    for span in figures.iter().flat_map(|figures| &figures.spans) {
        let lengths = Lengths::of(&span.lengths_ns);
        let mut row = first.to_vec();
        row.extend([
            Value::from(&span.thread),
            (&span.name).into(),
            lengths.0.len().into(),
        ]);
        row.extend(lengths.values());
        spans.push(&row);
    }
    Unit {
        key: key.clone(),
        size: None,
        error,
        rows: vec![spans, points],
    }
}

/// The nearest rank: the smallest value that this share of all is no larger than.
fn at_share(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Goal: a grid has each combination once, and keys tell points apart. Method: a grid of 48.
    #[test]
    fn grids_have_each_combination_once() {
        let named = |names: [&str; 2]| names.map(|name| Some(name.to_owned())).to_vec();
        let sweep = Sweep {
            scenarios: vec!["a".into(), "b".into()],
            machines: named(["m", "n"]),
            policies: vec![None, Some("p".into())],
            workers: vec![None, Some(3)],
            hints: vec![false],
            seeds: vec![1, 2, 9],
        };
        let digest = |scenario: &str, _: Option<&str>| Ok::<_, ()>(format!("of {scenario}"));
        let points = sweep.points(digest).unwrap();
        let keys: BTreeSet<String> = points.iter().map(Point::key).collect();
        assert_eq!((points.len(), keys.len(), sweep.len()), (48, 48, 48));
    }

    /// Goal: a failed point has the command that repeats it, and a good one has none. Method: one of each,
    /// of a scenario with a blank in its name.
    #[test]
    fn a_failure_says_how_to_repeat_it() {
        let point = Point {
            scenario: "my file.toml".into(),
            digest: "0".into(),
            machine: Some("ideal-2".into()),
            policy: None,
            workers: Some(3),
            hints: true,
            seed: 7,
        };
        let again =
            "paceline simulate 'my file.toml' --machine ideal-2 --workers 3 --seed 7 --hints";
        assert_eq!(point.again(), again);
        let failed = Outcome {
            error: Some("deadlock\nat 7".into()),
            ..Outcome::default()
        };
        assert!(unit_of_point(&point, &failed).error.is_some());
        assert!(unit_of_point(&point, &Outcome::default()).error.is_none());
    }

    /// Goal: percentiles are of the values. Method: the first hundred numbers, one, and none.
    #[test]
    fn percentiles_are_values() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(at_share(&hundred, 0.5), Some(50));
        assert_eq!(at_share(&hundred, 0.99), Some(99));
        assert_eq!(at_share(&[7], 0.99), Some(7));
        assert_eq!(at_share(&[], 0.5), None);
    }
}
