//! A run: the request becomes a configuration, the simulator runs it, and the checks are made.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use console::{Failure, Progress};
use event::Nanos;
use paceline::WaitPolicy;
use platform::SchedParams;
use sim::scenario::{Ran, Scenario, run_watched};
use sim::{Machine, Sim, SimConfig};
use workload::busy::Busy;
use workload::naive::BarrierLoop;

use super::checks::{Check, checks};
use super::frames::{self, ProgramFindings};
use super::program::{JobSystemKind, Program};
use super::recording::{self, TracedRun};
use crate::commands::accounts::Account;
use crate::commands::values::Workers;

/// The run to make.
pub(super) struct Job {
    pub(super) scenario: Scenario,
    /// Where the scenario's files are.
    pub(super) folder: PathBuf,
    pub(super) machine: Arc<Machine>,
    pub(super) policy: String,
    pub(super) about_policy: &'static str,
    pub(super) seed: u64,
    pub(super) workers: Option<Workers>,
    /// The help that its job system asks of the kernel.
    pub(super) help: Vec<SchedParams>,
    pub(super) steps: Option<u64>,
    pub(super) trace: Option<PathBuf>,
    pub(super) report: Option<PathBuf>,
    /// The command that does it again.
    pub(super) replay: String,
    /// Whether it shows how far it has come.
    pub(super) is_shown: bool,
}

/// The outcome.
pub(super) struct SimulationOutcome {
    pub(super) ran: Ran,
    pub(super) told: ProgramFindings,
    pub(super) checks: Vec<Check>,
    /// The file of its trace, if there is one.
    pub(super) traced: Option<TracedRun>,
    /// Where its waits went, unless it has too many events for that.
    pub(super) account: Option<Account>,
}

impl SimulationOutcome {
    /// The first check that failed.
    pub(super) fn failed(&self) -> Option<&Check> {
        self.checks.iter().find(|check| !check.ok)
    }
}

/// What is kept of a run beside its report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Nothing,
    /// The kernel's events. Keeping them changes nothing.
    Kernel,
    /// Those of the job system as well, which reads the clock for each and so takes time for it.
    All,
}

/// Steps after which a run is given up, if nothing else is said: minutes.
const STEPS_MAX: u64 = 4_000_000_000;
/// A run with more events than this is not done again for its trace.
const TRACE_EVENTS_MAX: u64 = 20_000_000;
/// A run with more events than this is not done again to explain its waits.
pub(super) const EXPLAINED_EVENTS_MAX: u64 = 1_000_000;

/// Runs it, and writes its trace if one is wanted or something is wrong.
pub(super) fn run(job: &Job) -> Result<SimulationOutcome, Failure> {
    job.check()?;
    let keeps_all = job.trace.is_some() || job.report.is_some();
    let keep = if keeps_all { Keep::All } else { Keep::Nothing };
    let (ran, told) = job.simulate(keep)?;
    // A thread that the scenario's program started: that could not be known before.
    if let Some(refused) = &ran.report.refused {
        let name = &job.scenario.name;
        return Err(Failure::Usage(format!(
            "scenario {name}: {refused}; or use another --policy"
        )));
    }
    let mut outcome = SimulationOutcome {
        checks: checks(job, &ran, &told),
        ran,
        told,
        traced: None,
        account: None,
    };
    let (events, is_wrong) = (outcome.ran.report.events, outcome.failed().is_some());
    let mut kept = None;
    if keeps_all {
        let recording = recording::of(job, &outcome.ran, outcome.told.jobs.take());
        if let Some(path) = &job.trace {
            outcome.traced = Some(recording::write(path, &recording)?);
        }
        kept = Some(recording);
    } else if events <= EXPLAINED_EVENTS_MAX || (is_wrong && events <= TRACE_EVENTS_MAX) {
        // A run is a function of its seed: the same once more, with its events kept.
        let (ran, _) = job.simulate(Keep::Kernel)?;
        kept = Some(recording::of(job, &ran, None));
    }
    if let Some(recording) = kept.as_ref().filter(|_| is_wrong && job.trace.is_none()) {
        outcome.traced = Some(recording::write_somewhere(job, recording)?);
    }
    let kept = kept.filter(|_| events <= EXPLAINED_EVENTS_MAX || keeps_all);
    outcome.account = kept.map(|recording| Account::of(recording, Nanos::ZERO));
    Ok(outcome)
}

impl Job {
    /// The program, with the command line's changes.
    fn program(&self) -> Result<Option<Program>, String> {
        let name = &self.scenario.name;
        let in_vain = |option: &str, what: &str| {
            Err(format!(
                "{option}: scenario {name} has no program {what}; leave it out"
            ))
        };
        let Some(table) = &self.scenario.program else {
            return match (self.workers, self.help.as_slice()) {
                (None, []) => Ok(None),
                (Some(_), _) => in_vain("--workers", "that has workers"),
                (None, _) => in_vain("--os-help", "that asks the kernel for help"),
            };
        };
        let program = Program::read(table, &self.folder, self.seed);
        let mut program = program.map_err(|why| format!("scenario {name}: [program]: {why}"))?;
        match (&mut program, self.workers) {
            (_, None) => {}
            (Program::Frames(frames), Some(workers)) => frames.workers = workers,
            (Program::Barrier(_), Some(_)) => {
                return Err(format!(
                    "--workers: the program of scenario {name} has none; leave it out"
                ));
            }
        }
        match &mut program {
            _ if self.help.is_empty() => {}
            Program::Frames(frames) if frames.system == JobSystemKind::Paceline => {
                frames.help.clone_from(&self.help);
            }
            _ => return in_vain("--os-help", "that asks the kernel for help"),
        }
        Ok(Some(program))
    }

    /// How many threads there are when time begins.
    pub(super) fn first_threads(&self) -> usize {
        self.scenario
            .threads
            .iter()
            .map(|thread| thread.count)
            .sum()
    }

    fn config(&self, keep: Keep) -> SimConfig {
        let mut config = SimConfig::on(self.machine.clone(), &self.policy, self.seed);
        config.steps_max = self.steps.unwrap_or(config.steps_max.min(STEPS_MAX));
        config.plan = self.scenario.plan();
        config.until = self.scenario.until.unwrap_or(Nanos::MAX);
        config.starvation = self.scenario.starvation;
        config.quota = self.scenario.cpu_quota();
        config.hints = self.scenario.hints;
        config.perturb = self.scenario.perturb;
        config.checks = true;
        config.trace = keep != Keep::Nothing;
        config
    }

    /// Finds errors that would otherwise show too late: CPUs that are not there, threads that are too many or
    /// that the policy does not take, a program with an error.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.program().map_err(Failure::Usage)?;
        // Job systems obey it, simulated ones as well.
        if let Some(text) = std::env::var_os("PACELINE_WAIT") {
            let policy = text.to_string_lossy().parse::<WaitPolicy>();
            policy.map_err(|why| Failure::Usage(format!("PACELINE_WAIT: {why}")))?;
        }
        let (scenario, machine) = (&self.scenario.name, &self.machine.name);
        let cpus = self.machine.cpus.len();
        if let Some(highest) = self
            .scenario
            .highest_cpu()
            .filter(|&cpu| cpu as usize >= cpus)
        {
            return Err(Failure::Usage(format!(
                "scenario {scenario} names CPU {highest}, and {machine} has {cpus}, from 0 on; use \
                 another --machine"
            )));
        }
        if let Some(at) = self.scenario.leaves_no_cpu(cpus) {
            return Err(Failure::Usage(format!(
                "scenario {scenario}: the change at {at} takes the last CPU of {machine} offline; leave one \
                 online, or use another --machine"
            )));
        }
        let (threads, most) = (
            self.first_threads() + 1,
            self.config(Keep::Nothing).threads_max,
        );
        if threads > most {
            return Err(Failure::Usage(format!(
                "scenario {scenario} has {threads} threads, and with policy {} there may be {most}; use \
                 another --policy",
                self.policy
            )));
        }
        let config = self.config(Keep::Nothing);
        let enforced = config.is_quota_enforced();
        enforced.map_err(|why| Failure::Usage(format!("scenario {scenario}: {why}")))?;
        let admitted = self.scenario.is_admitted(&config);
        admitted.map_err(|why| Failure::Usage(format!("{why}; or use another --policy")))
    }

    /// Runs it once.
    pub(super) fn simulate(&self, keep: Keep) -> Result<(Ran, ProgramFindings), Failure> {
        let told = RefCell::new(ProgramFindings::default());
        let mut program = self.program().map_err(Failure::Usage)?;
        let config = self.config(keep);
        let until = config.until;
        let beside = |sim: &Sim| match program.take() {
            Some(Program::Frames(what)) => frames::run(sim, what, keep == Keep::All, &told),
            Some(Program::Barrier(what)) => barrier(sim, &what, &told),
            None => {}
        };
        let ran = if self.is_shown {
            with_progress(until, |begun| {
                // The reader of the progress may be gone.
                let watch = |sim: &Sim| drop(begun.send(sim.clone()));
                run_watched(&self.scenario, config, watch, beside)
            })
        } else {
            run_watched(&self.scenario, config, |_| {}, beside)
        };
        Ok((ran, told.into_inner()))
    }
}

/// Threads at a barrier, in the simulated thread "main".
fn barrier(sim: &Sim, what: &BarrierLoop, told: &RefCell<ProgramFindings>) {
    let about = |name, value| told.borrow_mut().about.push((name, value));
    let (threads, wait) = (what.work.len(), what.wait);
    about(
        "barrier",
        format!("{threads} threads, {} rounds, wait: {wait}", what.rounds),
    );
    let longest = what.work.iter().max().copied().unwrap_or_default();
    let all: u64 = what.work.iter().map(|work| work.0).sum();
    about(
        "work in a round",
        format!("{} in all, the longest {longest}", Nanos(all)),
    );
    let begin = sim.time();
    let done = what.run(sim, Busy::NONE);
    let mut told = told.borrow_mut();
    match done {
        Err(error) => told.error = Some(error.to_string()),
        Ok(report) => {
            let round = Nanos(report.elapsed.0 / u64::from(what.rounds.max(1)));
            let in_vain: u64 = report.threads.iter().map(|waiter| waiter.in_vain).sum();
            told.about.push(("mean round", round.to_string()));
            told.about.push(("looks in vain", in_vain.to_string()));
            told.rounds = Some((begin, sim.time()));
            if report.early > 0 {
                let early = report.early;
                told.error = Some(format!("a thread passed the barrier early, {early} times"));
            }
        }
    }
    told.is_over = true;
}

/// Calls `run`, and shows how far it has come if it takes long. `run` sends the simulation once it has begun.
fn with_progress<R>(until: Nanos, run: impl FnOnce(Sender<Sim>) -> R) -> R {
    const LOOK: Duration = Duration::from_millis(200);
    let millis = |time: Nanos| match time {
        Nanos::MAX => 0,
        time => time.0.div_ceil(1_000_000),
    };
    thread::scope(|scope| {
        let (begun, has_begun) = mpsc::channel::<Sim>();
        let (over, is_over) = mpsc::channel::<()>();
        scope.spawn(move || {
            let mut progress = Progress::new("simulated ms", millis(until));
            let Ok(sim) = has_begun.recv() else { return };
            while is_over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                progress.reach(millis(sim.time()));
            }
        });
        let result = run(begun);
        drop(over);
        result
    })
}
