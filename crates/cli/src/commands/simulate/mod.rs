//! `paceline simulate`: threads, or the real job system, on a simulated machine under a chosen kernel
//! scheduler.
//!
//! This file declares the options. [`library`] looks names up, [`mod@run`] runs the scenario, [`report`]
//! prints the outcome. The programs that run beside a scenario's threads are described in [`program`].

mod checks;
mod costs;
mod frames;
mod kept;
pub(super) mod library;
pub(super) use library::unknown;
mod page;
mod point;
mod program;
mod recorded;
mod recording;
mod report;
mod run;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use console::{Failure, help, output};
use platform::SchedParams;
use sim::Machine;
use sim::scenario::Scenario;

pub(crate) use self::point::PointRunner;
use self::run::{Job, SimulationOutcome};
use super::values::{Workers, workers};

/// Run a scenario on a simulated machine under a chosen kernel scheduler
///
/// A run is a function of scenario, machine, policy and seed: equal ones have
/// equal trace hashes. The results are modelled, not measured. If a check fails,
/// the exit code is 1, and standard error has the report, the command that repeats
/// the run, and the path of its trace.
///
/// Examples:
///   paceline simulate --list
///   paceline simulate galaxy-s22-inversion
///   paceline simulate galaxy-s22-inversion --policy eevdf-6.18 --trace t.pftrace
///   paceline simulate --replay trace.txt.gz --machine galaxy-s22-exynos
#[derive(Args)]
#[command(after_long_help = JSON)]
#[command(verbatim_doc_comment)]
pub(crate) struct SimulateArguments {
    /// A name (see --list), a TOML file, or a JSON file of rt-app
    #[arg(value_name = "SCENARIO")]
    #[arg(required_unless_present_any = ["list", "machines", "policies", "replay"])]
    scenario: Option<String>,
    /// Run what was recorded in this trace, which `diagnose` can read, instead of a scenario
    ///
    /// What its threads did, in work, sleeps and waits for each other; see docs/what-if.md. With --machine
    /// and --policy elsewhere. The waits and frames that `diagnose` would explain are measured. What the
    /// recording does not say is assumed, and told on standard error.
    #[arg(long, value_name = "TRACE")]
    #[arg(conflicts_with_all = ["scenario", "list", "machines", "policies"])]
    replay: Option<PathBuf>,
    /// List the scenarios
    #[arg(long, conflicts_with_all = ["scenario", "machines", "policies"])]
    list: bool,
    /// List the machines
    #[arg(long, conflicts_with_all = ["scenario", "policies"])]
    machines: bool,
    /// List the policies
    #[arg(long, conflicts_with = "scenario")]
    policies: bool,
    /// A name (see --machines) or a file, instead of the machine that the scenario is meant for
    #[arg(long, value_name = "M")]
    machine: Option<String>,
    /// A name (see --policies), instead of the policy that the scenario is meant for
    #[arg(long, value_name = "P")]
    policy: Option<String>,
    /// Seed of everything that is random
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    seed: u64,
    /// Worker threads of the scenario's job system, instead of what the scenario says
    #[arg(long, value_name = "auto|N", value_parser = workers, allow_negative_numbers = true)]
    workers: Option<Workers>,
    /// Have the scenario's job system ask the kernel for help, for the main thread and the workers together:
    /// nice, rr or slice, or several, as for `frames`
    #[arg(long, value_name = "HELP", value_delimiter = ',', value_parser = help::sched_params)]
    os_help: Vec<SchedParams>,
    /// Have the scenario's threads say what they wait for, as programs can do that share memory with a
    /// scheduler; policy `waitfor` listens
    #[arg(long)]
    hints: bool,
    /// Write what kernel and jobs did as a Perfetto trace, for ui.perfetto.dev
    ///
    /// A traced job system reads the clock more often, so its run is another one, with another trace hash,
    /// than without this option.
    #[arg(long, value_name = "F.pftrace")]
    trace: Option<PathBuf>,
    /// Write a page for a browser: the longest waits as pictures, and all tables
    ///
    /// One file that holds all it shows. It has the events of jobs, as with --trace, which has the same run.
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// Give up after this many steps of the program [default: 4000000000; 1000000 if the policy looks for
    /// errors]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    steps: Option<u64>,
    /// Write one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// The keys of `--json`, at the end of the help.
const JSON: &str = "\
JSON (--json), one object; with --list, --machines or --policies one list with
rows{name, about, …}:
  scenario, machine, policy, hints, seed, trace_hash, makespan_ns, events,
  replay, notes[], checks[]{name, ok, note}
  energy_uj           null if the machine's file does not say
  threads[]{name, tid, run_ns, runnable_ns, throttled_ns, sleep_ns,
            switches{voluntary, involuntary}}
                      throttled_ns: the part of runnable_ns in which a quota
                      kept it from running
  frame_ns{mean, p50, p99, max}
                      null without frames
  spans[]{thread, tid, name, count, mean, p50, p99, max}
                      what the scenario measures
  clusters[]{name, energy_uj, busy_ns, idle_ns, hottest_millidegrees}
  quota{periods, throttled_periods, throttled_ns}
                      throttled_ns summed over CPUs; null without a quota
  waits[], inversions[]
                      as `diagnose` has them, of the kernel's events, with
                      --trace or --report of those of jobs too; null if there
                      are too many
  stats{}             of the job system
  os_help[]{asked, granted, why}
  interference{}      of the job system as in `frames`; null without one
  trace{path, events, lost, bytes}
  assumed{values, assumed}
                      of the machine's file";

pub(crate) fn run(arguments: SimulateArguments) -> Result<(), Failure> {
    let list = match &arguments {
        SimulateArguments { list: true, .. } => Some(library::scenarios()),
        SimulateArguments { machines: true, .. } => Some(library::machines()),
        SimulateArguments { policies: true, .. } => Some(library::policies()),
        _ => None,
    };
    let json = arguments.json;
    if let Some(list) = list {
        return if json {
            output::print_json(&report::list_json(&list))
        } else {
            output::print(report::list_text(&list))
        };
    }
    let job = arguments.job()?;
    let outcome = run::run(&job)?;
    if let Some(path) = &job.report {
        page::write(path, &job, &outcome)?;
    }
    if json {
        output::print_json(&report::json(&job, &outcome))?
    } else {
        output::print(report::text(&job, &outcome))?
    }
    judge(&job, &outcome)
}

/// A failure if a check failed.
fn judge(job: &Job, outcome: &SimulationOutcome) -> Result<(), Failure> {
    let Some(check) = outcome.failed() else {
        return Ok(());
    };
    output::note(outcome.ran.report.to_string().trim_end());
    let trace = match &outcome.traced {
        Some(traced) => format!("its trace is {}", traced.path.display()),
        None => "it is too long to keep a trace of it".to_owned(),
    };
    Err(Failure::Failed(format!(
        "{}: {}; seed {}, again with: {}; {trace}",
        check.name, check.note, job.seed, job.replay
    )))
}

impl SimulateArguments {
    fn job(self) -> Result<Job, Failure> {
        if let Some(trace) = self.replay.clone() {
            return self.recorded_job(&trace);
        }
        let given = self.scenario.clone().expect("clap asks for one");
        output::check_files(
            &[("the scenario's file", Path::new(&given))],
            &[
                ("--trace", self.trace.as_deref()),
                ("--report", self.report.as_deref()),
            ],
        )?;
        let mut scenario = library::scenario(&given).map_err(Failure::Usage)?;
        scenario.hints |= self.hints;
        let of_scenario = |name: &str, why: String| format!("scenario {name}: {why}");
        let machine = match &self.machine {
            Some(name) => library::machine(name).map_err(|why| format!("--machine: {why}")),
            None => {
                // A file beside the scenario's, as `diagnose --program` writes it.
                let beside = Path::new(&given).with_file_name(&scenario.machine);
                if scenario.machine.ends_with(".toml") && beside.is_file() {
                    scenario.machine = beside.to_string_lossy().into_owned();
                }
                library::machine(&scenario.machine).map_err(|why| of_scenario(&scenario.name, why))
            }
        };
        let of_scenario = |why| of_scenario(&scenario.name, why);
        let about_policy = match &self.policy {
            Some(name) => library::about_policy(name).map_err(|why| format!("--policy: {why}")),
            None => library::about_policy(&scenario.policy).map_err(of_scenario),
        };
        let folder = Path::new(&given)
            .parent()
            .filter(|_| Path::new(&given).exists());
        let folder = folder.unwrap_or(Path::new("")).to_owned();
        let machine = machine.map_err(Failure::Usage)?;
        let about_policy = about_policy.map_err(Failure::Usage)?;
        let job = self.job_of(&[&given], scenario, (machine, about_policy));
        Ok(Job { folder, ..job })
    }

    /// The job of a scenario that these arguments give, on this machine; see [`Job`].
    fn job_of(
        self,
        given: &[&str],
        scenario: Scenario,
        (machine, about_policy): (Machine, &'static str),
    ) -> Job {
        Job {
            replay: self.command(given, &scenario),
            folder: PathBuf::new(),
            machine: Arc::new(machine),
            about_policy,
            policy: self.policy.unwrap_or_else(|| scenario.policy.clone()),
            seed: self.seed,
            workers: self.workers,
            help: self.os_help,
            steps: self.steps,
            trace: self.trace,
            report: self.report,
            is_shown: true,
            scenario,
        }
    }

    /// The job of a recorded program.
    fn recorded_job(self, trace: &Path) -> Result<Job, Failure> {
        output::check_files(
            &[("the trace itself", trace)],
            &[
                ("--trace", self.trace.as_deref()),
                ("--report", self.report.as_deref()),
            ],
        )?;
        let machine = self.machine.as_ref().map(|name| {
            library::machine(name).map_err(|why| Failure::Usage(format!("--machine: {why}")))
        });
        let recorded = recorded::program(trace, machine.transpose()?, self.policy.clone())?;
        let mut scenario = recorded.scenario();
        scenario.name = trace
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        scenario.hints |= self.hints;
        let about_policy = library::about_policy(&scenario.policy);
        let about_policy =
            about_policy.map_err(|why| Failure::Usage(format!("--policy: {why}")))?;
        for what in &recorded.assumed {
            output::note(format!("assumed: {what}"));
        }
        let given = ["--replay", &trace.to_string_lossy()];
        Ok(self.job_of(&given, scenario, (recorded.machine, about_policy)))
    }

    /// The command that repeats the run, even if the scenario's file names another machine or policy by then.
    fn command(&self, given: &[&str], scenario: &sim::scenario::Scenario) -> String {
        let mut words = Vec::new();
        // It decides how job systems wait, simulated ones as well.
        if let Some(wait) = std::env::var_os("PACELINE_WAIT") {
            words.push(format!("PACELINE_WAIT={}", quoted(&wait.to_string_lossy())));
        }
        words.push("paceline simulate".to_owned());
        words.extend(given.iter().map(|word| quoted(word)));
        let mut option = |name: &str, value: &str| {
            words.push(name.to_owned());
            words.push(quoted(value));
        };
        // That of a recording is in no file.
        if self.machine.is_some() || self.replay.is_none() {
            option(
                "--machine",
                self.machine.as_ref().unwrap_or(&scenario.machine),
            );
        }
        option("--policy", self.policy.as_ref().unwrap_or(&scenario.policy));
        option("--seed", &self.seed.to_string());
        match self.workers {
            None => {}
            Some(Workers::Auto) => option("--workers", "auto"),
            Some(Workers::Count(count)) => option("--workers", &count.to_string()),
        }
        if !self.os_help.is_empty() {
            let wishes: Vec<String> = self.os_help.iter().map(help::wish).collect();
            option("--os-help", &wishes.join(","));
        }
        if let Some(steps) = self.steps {
            option("--steps", &steps.to_string());
        }
        if let Some(trace) = &self.trace {
            option("--trace", &trace.to_string_lossy());
        }
        if let Some(report) = &self.report {
            option("--report", &report.to_string_lossy());
        }
        if self.hints {
            words.push("--hints".to_owned());
        }
        words.join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests;
