//! A point of a sweep: a run of which only figures are kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use console::Failure;
use fleet::{Figures, Outcome, Point, SpanFigures};
use sha2::{Digest, Sha256};
use sim::Machine;
use sim::scenario::{Ran, Scenario};
use trace::Recording;

use super::checks::checks;
use super::frames::ProgramFindings;
use super::library;
use super::recording;
use super::report::{energy, frame_lengths, span_lengths};
use super::run::{EXPLAINED_EVENTS_MAX, Job, Keep};
use crate::commands::values::Workers;

/// The key of a point's configuration: scenario and machine as they are named.
type Named = (String, Option<String>);

/// Runs points. What they name is read once, so that a file that changes meanwhile changes nothing.
#[derive(Default)]
pub(crate) struct PointRunner {
    /// What names of files are relative to.
    folder: PathBuf,
    read: BTreeMap<Named, PointSetting>,
}

/// A scenario and a machine.
struct PointSetting {
    scenario: Scenario,
    /// Where the scenario's files are.
    folder: PathBuf,
    machine: Arc<Machine>,
    digest: String,
}

impl PointRunner {
    /// Names of files are relative to `folder`.
    pub(crate) fn new(folder: &Path) -> PointRunner {
        PointRunner {
            folder: folder.to_owned(),
            read: BTreeMap::new(),
        }
    }

    /// The digest of what these names stand for: scenario, machine, the files of the scenario's program, the
    /// version of this program, and the variable that decides how job systems wait.
    pub(crate) fn digest(
        &mut self,
        scenario: &str,
        machine: Option<&str>,
    ) -> Result<String, Failure> {
        let named: Named = (scenario.to_owned(), machine.map(str::to_owned));
        if let Some(setting) = self.read.get(&named) {
            return Ok(setting.digest.clone());
        }
        let setting = PointSetting::read(&self.folder, &named).map_err(Failure::Usage)?;
        let digest = setting.digest.clone();
        self.read.insert(named, setting);
        Ok(digest)
    }

    /// Checks points before any is run: all that they name is known, and one of them can be run at least.
    pub(crate) fn check<'p>(&self, points: impl Iterator<Item = &'p Point>) -> Result<(), Failure> {
        let jobs: Vec<Job> = points
            .map(|point| self.job(point))
            .collect::<Result<_, _>>()?;
        let mut checked: Vec<_> = jobs.iter().map(Job::check).collect();
        if checked.iter().all(Result::is_err) && !checked.is_empty() {
            return checked.swap_remove(0);
        }
        Ok(())
    }

    /// Runs a point. Whatever is wrong with it is in the outcome.
    pub(crate) fn run(&self, point: &Point) -> Outcome {
        self.job(point).map_or_else(
            |why| Outcome::failed(why.text()),
            |job| ran(&job, Keep::Nothing).0,
        )
    }

    /// Runs a point and explains what its threads waited for, if it has not too many events for that. Keeping
    /// the kernel's events changes nothing.
    ///
    /// # Errors
    /// If it cannot be run. A check that failed is in the outcome.
    pub(crate) fn explained(&self, point: &Point) -> Result<(Outcome, Option<Recording>), Failure> {
        let job = self.job(point)?;
        job.check()?;
        let (outcome, done) = ran(&job, Keep::Kernel);
        let Some((ran, _)) = done else {
            return Err(Failure::Usage(outcome.error.unwrap_or_default()));
        };
        let is_short = ran.report.events <= EXPLAINED_EVENTS_MAX;
        let recording = is_short.then(|| recording::of(&job, &ran, None));
        Ok((outcome, recording))
    }

    fn job(&self, point: &Point) -> Result<Job, Failure> {
        let named: Named = (point.scenario.clone(), point.machine.clone());
        let setting = self.read.get(&named).ok_or_else(|| {
            Failure::failed(format!("scenario {} was not looked up", point.scenario))
        })?;
        let mut scenario = setting.scenario.clone();
        scenario.hints |= point.hints;
        let policy = point
            .policy
            .clone()
            .unwrap_or_else(|| scenario.policy.clone());
        Ok(Job {
            about_policy: library::about_policy(&policy).map_err(Failure::Usage)?,
            policy,
            scenario,
            folder: setting.folder.clone(),
            machine: setting.machine.clone(),
            seed: point.seed,
            workers: point.workers.map(|count| Workers::Count(count as usize)),
            help: Vec::new(),
            steps: None,
            trace: None,
            report: None,
            replay: point.again(),
            is_shown: false,
        })
    }
}

/// Runs it; what came of it, and the run if there was one.
fn ran(job: &Job, keep: Keep) -> (Outcome, Option<(Ran, ProgramFindings)>) {
    let mut outcome = Outcome {
        machine: job.machine.name.clone(),
        policy: job.policy.clone(),
        ..Outcome::default()
    };
    let (ran, told) = match job.check().and_then(|()| job.simulate(keep)) {
        Ok(ran) => ran,
        Err(why) => {
            outcome.error = Some(why.text());
            return (outcome, None);
        }
    };
    let report = &ran.report;
    let checks = checks(job, &ran, &told);
    let failed = checks.iter().find(|check| !check.ok);
    let failed = failed.map(|check| format!("{}: {}", check.name, check.note));
    outcome.error = report.refused.clone().or(failed);
    outcome.figures = Some(figures(job, &ran, &told));
    (outcome, Some((ran, told)))
}

fn figures(job: &Job, ran: &Ran, told: &ProgramFindings) -> Figures {
    let report = &ran.report;
    let spent = report.threads.iter().map(|thread| thread.spent);
    let sum = |one: fn(&sim::Spent) -> u64| spent.clone().map(|spent| one(&spent)).sum();
    let spans = span_lengths(job, ran, told).into_iter();
    let spans = spans.map(|((thread, name), lengths_ns)| SpanFigures {
        thread: report.threads[thread].name.clone(),
        name: name.to_owned(),
        lengths_ns,
    });
    Figures {
        spans: spans.collect(),
        trace_hash: report.trace_hash,
        makespan_ns: report.now.0,
        events: report.events,
        energy_uj: energy(job, ran),
        frames_ns: frame_lengths(ran, told),
        spent_ns: [
            sum(|spent| spent.run.0),
            sum(|spent| spent.runnable.0),
            sum(|spent| spent.sleep.0),
        ],
        switches: [
            report.threads.iter().map(|thread| thread.voluntary).sum(),
            report.threads.iter().map(|thread| thread.involuntary).sum(),
        ],
    }
}

impl PointSetting {
    fn read(folder: &Path, (scenario, machine): &Named) -> Result<PointSetting, String> {
        // A name of the library stays one; anything else is a file beside the sweep.
        let near = |name: &str| {
            let path = folder.join(name);
            let is_file = path.is_file();
            if is_file {
                path.to_string_lossy().into_owned()
            } else {
                name.to_owned()
            }
        };
        let given = if Scenario::library().any(|name| name == scenario) {
            scenario.clone()
        } else {
            near(scenario)
        };
        let read = library::scenario(&given)?;
        let of_scenario = Path::new(&given)
            .parent()
            .filter(|_| Path::new(&given).exists());
        let of_scenario = of_scenario.unwrap_or(Path::new("")).to_owned();
        let machine = match machine {
            Some(name) if Machine::library().any(|known| known == name) => library::machine(name),
            Some(name) => library::machine(&near(name)),
            // A file beside the scenario's, as `diagnose --program` writes it.
            None if of_scenario.join(&read.machine).is_file() => {
                library::machine(&of_scenario.join(&read.machine).to_string_lossy())
            }
            None => library::machine(&read.machine),
        }?;
        let digest = digest(&read, &machine, &of_scenario);
        Ok(PointSetting {
            scenario: read,
            folder: of_scenario,
            machine: Arc::new(machine),
            digest,
        })
    }
}

/// Twelve digits: for telling apart what was edited, not for proof.
fn digest(scenario: &Scenario, machine: &Machine, folder: &Path) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(format!("{scenario:?}").as_bytes());
    add(format!("{machine:?}").as_bytes());
    let wait = std::env::var_os("PACELINE_WAIT").unwrap_or_default();
    add(wait.to_string_lossy().as_bytes());
    let values = scenario.program.iter().flat_map(|table| table.values());
    for name in values.filter_map(toml::Value::as_str) {
        // Of the program's texts, those that are files.
        if let Ok(bytes) = fs::read(folder.join(name)) {
            add(&bytes);
        }
    }
    let hash = hash.finalize();
    hash.iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(scenario: &str, policy: Option<&str>, seed: u64) -> Point {
        Point {
            scenario: scenario.to_owned(),
            policy: policy.map(str::to_owned),
            seed,
            ..Point::default()
        }
    }

    /// Goal: a point is a function of its row, and seeds matter. Method: points twice and with other seeds.
    #[test]
    fn a_point_is_a_function_of_its_row() {
        let mut runner = PointRunner::default();
        runner
            .digest("game-and-build", None)
            .map_err(Failure::text)
            .unwrap();
        let run = |seed| runner.run(&point("game-and-build", Some("eevdf-6.6"), seed));
        let one = run(1);
        assert_eq!((&one.error, &one.policy[..]), (&None, "eevdf-6.6"));
        assert_eq!(run(1), one);
        let hash = |outcome: &Outcome| outcome.figures.as_ref().unwrap().trace_hash;
        assert_ne!(hash(&run(2)), hash(&one));
    }

    /// Goal: a point that cannot be run has its reason, and one that was edited has another digest. Method:
    /// workers for a scenario without any; a file, and the same with other work.
    #[test]
    fn wrong_points_say_why_and_edits_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("two.toml");
        let digest = |work: &str| {
            let text = format!(
                "about = \"x\"\nmachine = \"vm-2\"\npolicy = \"eevdf-6.18\"\nuntil = \"1 s\"\n\
                 [[thread]]\nname = \"a\"\nphases = [{{ work = \"{work}\" }}]\n"
            );
            fs::write(&file, text).unwrap();
            let mut runner = PointRunner::new(folder.path());
            let digest = runner
                .digest("two.toml", None)
                .map_err(Failure::text)
                .unwrap();
            let workers = Point {
                workers: Some(2),
                ..point("two.toml", None, 1)
            };
            let error = runner.run(&workers).error.unwrap();
            assert!(error.contains("--workers"), "{error}");
            assert_eq!(runner.run(&point("two.toml", None, 1)).error, None);
            digest
        };
        let (one, same, other) = (digest("1 ms"), digest("1 ms"), digest("2 ms"));
        assert!(one == same && one != other);
        let unknown = PointRunner::default().digest("galaxy-s22-inversio", None);
        assert!(
            unknown
                .map_err(Failure::text)
                .unwrap_err()
                .contains("galaxy-s22-inversion")
        );
    }
}
