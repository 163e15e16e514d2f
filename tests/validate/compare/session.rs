//! One run of the command: the gate, the experiments in their order, and the report on each.
//!
//! Invariant: an experiment is judged only if the machine was quiet before it and during all of it that
//! counts, and if all it needs is there. Else it is skipped with a word: neither kept nor missed.

use std::time::{Duration, Instant};

use event::Nanos;
use measure::{Machine, Noise};
use platform::{Machine as _, Os};
use workload::busy::Busy;

use super::Options;
use super::calibrate::{Cost, calibrate};
use super::experiments::{ALL, Experiment, Lab, Need, forfeit};
use super::judge::{Row, Verdict, number, quantile};
use super::kernel::Kernel;
use super::quiet::Quiet;
use super::real::recorder::Recorder;
use super::real::{self, may_run_realtime};
use super::simulated::Simulator;

/// An experiment that needs idle CPUs looks at the average of the last minute, too.
const LOAD_MAX: f64 = 1.2;

/// The findings.
pub(crate) struct Session {
    pub(crate) machine: Machine,
    pub(crate) kernel: Kernel,
    /// How switches were recorded; how not, and why.
    pub(crate) recording: String,
    /// The average number of threads that wanted to run, in the minute before.
    pub(crate) load: Option<f64>,
    pub(crate) quick: bool,
    /// The costs of the kernel's operations here.
    pub(crate) costs: Vec<Cost>,
    pub(crate) took: Duration,
    pub(crate) results: Vec<Outcome>,
}

/// The findings of one experiment.
pub(crate) struct Outcome {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    pub(crate) rows: Vec<(Row, Verdict)>,
    /// Why nothing was measured.
    pub(crate) skipped: Option<String>,
    /// How quiet the machine was during what counts.
    pub(crate) noise: Option<Noise>,
    /// How many pieces of it were thrown away, because the machine was not quiet.
    pub(crate) thrown_away: u32,
}

impl Session {
    /// How many bounds were missed.
    pub(crate) fn missed(&self) -> usize {
        let verdicts = self.results.iter().flat_map(|result| &result.rows);
        verdicts
            .filter(|(_, verdict)| *verdict == Verdict::Missed)
            .count()
    }
}

/// The facts known before the first experiment.
struct Known {
    /// Why this is not the kernel that is simulated.
    other_kernel: Option<String>,
    realtime: bool,
    /// The simulated machine with the costs of its file.
    file: Simulator,
    /// Those that were measured last.
    costs: Vec<Cost>,
}

impl Known {
    fn measure_costs(&mut self, lab: &mut Lab) -> Result<(), String> {
        let measure = || calibrate(&lab.machine, &self.file);
        (lab.simulator, self.costs) = lab.quiet.piece(measure)?;
        Ok(())
    }
}

/// Does the chosen experiments.
///
/// # Errors
/// If nothing at all can be compared here: one CPU, no threads.
pub(crate) fn run(options: &Options) -> Result<Session, String> {
    let begin = Instant::now();
    let load = load();
    let cpus = cpus()?;
    let busy = Busy::calibrate(&Os);
    let kernel = Kernel::read();
    let (recorder, recording) = match Recorder::new() {
        Ok(recorder) => (Some(recorder), "sched_switch, by tracefs".to_owned()),
        Err(why) => (None, format!("gaps in loops that read the clock ({why})")),
    };
    let vm_2 = Simulator::vm_2();
    let simulator = Simulator {
        machine: (*vm_2.machine)
            .clone()
            .with_placement(kernel.placement)
            .into(),
    };
    let mut lab = Lab {
        machine: real::Machine::new(cpus, busy, recorder),
        simulator: simulator.clone(),
        quiet: Quiet::new(busy, !options.quick && !options.anyway),
        quick: options.quick,
    };
    let mut known = Known {
        other_kernel: other_kernel(&kernel, &lab)?,
        realtime: may_run_realtime(),
        file: simulator,
        costs: Vec::new(),
    };
    eprintln!("switches are seen by {recording}");
    let chosen = |experiment: &&Experiment| {
        options.only.is_empty() || options.only.iter().any(|id| id == experiment.id)
    };
    let chosen: Vec<&Experiment> = ALL.iter().filter(chosen).collect();
    let mut results = Vec::new();
    for (index, experiment) in chosen.iter().enumerate() {
        let (id, what) = (experiment.id, experiment.what);
        let so_far = begin.elapsed().as_secs();
        eprintln!(
            "[{}/{}] {id}: {what} ({so_far} s so far)",
            index + 1,
            chosen.len()
        );
        let outcome = outcome(experiment, &mut lab, options, &mut known);
        show(&outcome);
        results.push(outcome);
    }
    Ok(Session {
        machine: Machine::read(),
        kernel,
        recording,
        load,
        quick: options.quick,
        costs: known.costs,
        took: begin.elapsed(),
        results,
    })
}

/// Two CPUs that this process may use: the first and the last one.
fn cpus() -> Result<[u32; 2], String> {
    let cpus: Vec<u32> = Os.topology().allowed().iter().collect();
    match cpus[..] {
        [first, .., last] => Ok([first, last]),
        _ => Err("at least two CPUs are needed".into()),
    }
}

fn other_kernel(kernel: &Kernel, lab: &Lab) -> Result<Option<String>, String> {
    if let Some(why) = kernel.differs(&lab.simulator) {
        return Ok(Some(why));
    }
    let forfeits = forfeit(lab)?;
    let why =
        "a yield forfeits nothing in this kernel; the model's does (Linux 6.19 and fixed 6.18)";
    Ok((!forfeits).then(|| why.into()))
}

fn outcome(
    experiment: &Experiment,
    lab: &mut Lab,
    options: &Options,
    known: &mut Known,
) -> Outcome {
    let mut outcome = Outcome {
        id: experiment.id,
        what: experiment.what,
        rows: Vec::new(),
        skipped: missing(experiment, options, known),
        noise: None,
        thrown_away: 0,
    };
    let even = experiment.needs.contains(&Need::Quiet);
    let timed = even || experiment.needs.contains(&Need::Alone);
    lab.quiet.begin(even);
    if outcome.skipped.is_none() && timed {
        outcome.skipped = lab.quiet.wait().err();
    }
    if outcome.skipped.is_some() {
        return outcome;
    }
    let costs = experiment.needs.contains(&Need::Costs) && known.realtime;
    let found = if costs {
        known.measure_costs(lab)
    } else {
        Ok(())
    };
    let found = found.and_then(|()| (experiment.run)(lab));
    let during = lab.quiet.take();
    match found {
        Err(why) => outcome.skipped = Some(why),
        Ok(rows) => {
            let doubt = doubt(timed, options, &lab.quiet, during.noise);
            let judge = |row: Row| (row.clone(), row.verdict(doubt.as_deref()));
            outcome.rows = rows.into_iter().map(judge).collect();
        }
    }
    if timed {
        (outcome.noise, outcome.thrown_away) = (during.noise, during.thrown_away);
    }
    outcome
}

/// Why nothing that was found may be judged.
fn doubt(timed: bool, options: &Options, quiet: &Quiet, noise: Option<Noise>) -> Option<String> {
    match noise {
        _ if !timed => None,
        _ if options.quick => Some("--quick judges nothing".to_owned()),
        None => Some("nothing was watched".to_owned()),
        Some(noise) => (!quiet.is_met(&noise)).then(|| format!("the machine was {noise}")),
    }
}

/// The missing requirement of the experiment.
fn missing(experiment: &Experiment, options: &Options, known: &Known) -> Option<String> {
    let lacks = |need: &Need| match need {
        Need::Kernel => known.other_kernel.clone(),
        Need::Realtime if !known.realtime => Some("real-time threads are not allowed".into()),
        Need::Hotplug if !options.hotplug => {
            Some("it takes a CPU offline: ask for it by --hotplug".into())
        }
        _ => None,
    };
    experiment.needs.iter().find_map(lacks)
}

/// The first number of `/proc/loadavg`.
fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Whether the minute before was quiet, as far as its load says.
pub(crate) fn was_quiet(load: Option<f64>) -> bool {
    load.is_some_and(|load| load < LOAD_MAX)
}

fn show(outcome: &Outcome) {
    if let Some(why) = &outcome.skipped {
        println!("{:<4} skipped: {why}", outcome.id);
    }
    for (row, verdict) in &outcome.rows {
        let simulated = row.simulated.map_or("–".into(), number);
        let bound = row
            .bound
            .map_or(String::new(), |bound| format!(" ({bound})"));
        println!(
            "{:<4} {}: real {}, simulated {simulated}{bound}: {verdict}",
            outcome.id,
            row.what,
            spread(&row.real)
        );
    }
}

/// Median, number and spread of samples in one cell.
pub(crate) fn spread(samples: &[f64]) -> String {
    let Some(median) = quantile(samples, 0.5) else {
        return "nothing".into();
    };
    match samples.len() {
        1 => format!("{} (n 1)", number(median)),
        n => {
            let (low, high) = (quantile(samples, 0.1), quantile(samples, 0.9));
            let (low, high) = (low.unwrap_or(median), high.unwrap_or(median));
            let middle = super::judge::median(samples).unwrap_or(median);
            format!(
                "{} (n {n}, {} to {})",
                number(middle),
                number(low),
                number(high)
            )
        }
    }
}

/// A length of time for people.
pub(crate) fn seconds(time: Duration) -> String {
    Nanos::from(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        use clap::Parser;
        Options::parse_from(["validate"])
    }

    /// Goal: an experiment that lacks a right, a kernel or a wish is reported, each with its own word, and
    /// one that lacks nothing is not. Method: V6 and V13 with each missing in turn.
    #[test]
    fn what_is_missing_is_told() {
        let known = |other_kernel: Option<&str>, realtime| Known {
            other_kernel: other_kernel.map(str::to_owned),
            realtime,
            file: Simulator::vm_2(),
            costs: Vec::new(),
        };
        let (realtime, hotplug) = (&ALL[5], &ALL[12]);
        assert_eq!((realtime.id, hotplug.id), ("V6", "V13"));
        let why = |experiment, known| missing(experiment, &options(), &known).unwrap_or_default();
        assert_eq!(why(realtime, known(None, true)), "");
        assert!(why(realtime, known(None, false)).contains("not allowed"));
        assert_eq!(
            why(realtime, known(Some("another kernel"), true)),
            "another kernel"
        );
        assert!(why(hotplug, known(None, true)).contains("--hotplug"));
    }

    /// Goal: a cell has median, number and the middle eight tenths. Method: ten samples, one, none.
    #[test]
    fn a_cell_has_the_spread() {
        let samples: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(spread(&samples), "5.5 (n 10, 1 to 9)");
        assert_eq!(spread(&[4.0]), "4 (n 1)");
        assert_eq!(spread(&[]), "nothing");
    }

    /// Goal: only missed bounds count as such. Method: a session with one of each verdict.
    #[test]
    fn only_missed_bounds_count() {
        let row = Row::new("x", vec![1.0], Some(1.0));
        let skipped = Verdict::Skipped("why".into());
        let verdicts = [Verdict::Kept, Verdict::Missed, Verdict::Reported, skipped];
        let session = Session {
            machine: Machine::read(),
            kernel: Kernel::read(),
            recording: String::new(),
            load: None,
            quick: false,
            costs: Vec::new(),
            took: Duration::ZERO,
            results: vec![Outcome {
                id: "V1",
                what: "",
                rows: verdicts.map(|verdict| (row.clone(), verdict)).into(),
                skipped: None,
                noise: None,
                thrown_away: 0,
            }],
        };
        assert_eq!(session.missed(), 1);
        assert!(was_quiet(Some(1.0)) && !was_quiet(Some(2.0)) && !was_quiet(None));
    }
}
