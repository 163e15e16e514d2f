//! `paceline experiment`: what the five articles claim, run again.
//!
//! Each experiment is a file of its own: a question, a set-up, and a function that runs it and returns its
//! [`Findings`]. Most of it runs on the simulated machine that the article is about, and gives the same
//! numbers everywhere. Parts that run on the machine at hand say "this machine", and so do claims about them.
//! Those claims are the article's only, since claims of ours have to hold on every machine. Claims are in
//! [`claim`], lessons in [`lesson`]; the form of an experiment is in [`article`].

mod article;
mod chosen;
mod claim;
mod earlier;
mod findings;
mod job_overhead;
mod lab;
mod lesson;
mod page;
mod plot;
mod priority_inversion;
mod report;
mod rtos_priorities;
mod sched_yield;
mod sensitivity;
mod timeline;
mod virtual_slice;
mod wait_for;

use std::path::PathBuf;

use clap::Args;
use console::{Failure, output};
use measure::Watch;
use platform::Os;
use serde_json::json;
use workload::busy::Busy;

use self::article::{Experiment, Here};
use self::chosen::ValueSet;
use self::findings::{Findings, Table};
use self::lab::Effort;
use super::simulate::unknown;

/// Run the experiment of an article again, and judge the article's claims
///
/// Without a name it lists the experiments. Simulated parts give the same numbers
/// on every machine; parts on this machine are marked so. A claim of an article
/// that does not hold is a finding, and the exit code is 0; it is 1 if a claim of
/// ours about it does not.
///
/// With --real it runs here, under the scheduler that is in charge here. In a
/// checkout of the sources, `cargo xtask vm --experiment NAME` runs that in a
/// virtual machine, under Linux's own scheduler and under policies of sched_ext.
///
/// Where an article does not give a value one was chosen. With --sensitivity each
/// of them is varied over its range, and so are the seeds: a verdict stands only
/// if nine of ten settings of each value agree, and else it depends on that value.
///
/// Examples:
///   paceline experiment yield
///   paceline experiment --all --sim --quick
///   paceline experiment virtual-slice --sensitivity
///   paceline experiment virtual-slice --set least-slice=2
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ExperimentArguments {
    /// Its name; see --list
    name: Option<String>,
    /// All experiments, one after the other
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// List the experiments
    #[arg(long, conflicts_with_all = ["name", "all"])]
    list: bool,
    /// Run less of everything: shapes and counts are right, tails are not
    #[arg(long)]
    quick: bool,
    /// Only the simulated parts
    #[arg(long)]
    sim: bool,
    /// Only the parts on this machine, under its scheduler
    #[arg(long, conflicts_with = "sim")]
    real: bool,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Vary everything that was only chosen, and the seeds
    #[arg(long, conflicts_with_all = ["real", "set"])]
    sensitivity: bool,
    /// Run with another value of something that was chosen, in its unit; the page
    /// and --json name them
    #[arg(
        long,
        value_name = "NAME=NUMBER",
        requires = "name",
        conflicts_with = "all"
    )]
    set: Option<String>,
    /// Run this part of the simulated ones alone, by its place: what --sensitivity does
    #[arg(long, value_name = "N", hide = true, requires = "name")]
    part: Option<usize>,
    /// Write one JSON object instead of tables; times are in nanoseconds
    #[arg(long)]
    json: bool,
    /// Write pictures into this folder, as SVG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Write a page for each experiment into this folder, with its pictures; with
    /// --sim what a page that is there says of a machine is kept
    #[arg(long, value_name = "DIR")]
    doc: Option<PathBuf>,
}

/// In the order of the sources; then what follows from them.
const ALL: [&Experiment; 6] = [
    &priority_inversion::EXPERIMENT,
    &job_overhead::EXPERIMENT,
    &sched_yield::EXPERIMENT,
    &rtos_priorities::EXPERIMENT,
    &virtual_slice::EXPERIMENT,
    &wait_for::EXPERIMENT,
];

pub(crate) fn run(arguments: ExperimentArguments) -> Result<(), Failure> {
    for (option, folder) in [("--plots", &arguments.plots), ("--doc", &arguments.doc)] {
        if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
            let shown = folder.display();
            return Err(Failure::usage(format!(
                "{option} {shown}: there is no such folder; make it first"
            )));
        }
    }
    let chosen = match (&arguments.name, arguments.all) {
        (Some(name), _) => vec![named(name)?],
        (None, true) => ALL.to_vec(),
        (None, false) => return list(arguments.json),
    };
    let effort = Effort {
        quick: arguments.quick,
        simulated: !arguments.real,
        real: !arguments.sim,
        seed: arguments.seed,
        set: match &arguments.set {
            Some(set) => Some(value_set(&chosen, set)?),
            None => None,
        },
        is_one_of_many: arguments.part.is_some(),
    };
    let mut done = Vec::new();
    for experiment in chosen {
        let mut findings = findings(experiment, &effort, arguments.part)?;
        if arguments.sensitivity {
            let run = &sensitivity::of_a_process;
            sensitivity::vary(experiment, &effort, &mut findings, run)?;
        }
        if !arguments.json {
            output::print(report::text(experiment, &findings))?;
        }
        if let Some(folder) = &arguments.plots {
            plot::write(folder, experiment.name, &findings.plots)?;
        }
        if let Some(folder) = &arguments.doc {
            page::write(folder, experiment, &findings, &effort)?;
        }
        done.push((experiment, findings));
    }
    if arguments.json {
        let objects: Vec<_> = done
            .iter()
            .map(|(experiment, findings)| report::json(experiment, findings, &effort))
            .collect();
        match (arguments.all, objects.as_slice()) {
            (false, [object]) => output::print_json(object)?,
            _ => output::print_json(&json!({ "experiments": objects }))?,
        }
    }
    judge(&done)
}

/// Runs an experiment. If something ran on this machine, the findings say whether it was quiet.
/// `part`: that part alone, of those that are simulated.
fn findings(
    experiment: &Experiment,
    effort: &Effort,
    part: Option<usize>,
) -> Result<Findings, Failure> {
    let mut findings = Findings::default();
    let watch = effort.real.then(|| Watch::start(Busy::calibrate(&Os)));
    let parts = experiment.parts.iter().enumerate();
    let asked = |place: usize| effort.simulated && part.is_none_or(|part| part == place);
    for (_, part) in parts.filter(|&(place, _)| asked(place)) {
        (part.run)(effort, &mut findings)?;
    }
    match experiment.here {
        Here::Run(run) if effort.real => run(effort, &mut findings)?,
        Here::Nothing(why) if !effort.simulated => {
            let note = format!("There is nothing to run on this machine: {why}.");
            findings.notes.push(note);
        }
        Here::Run(_) | Here::Nothing(_) => {}
    }
    let is_real = |table: &Table| table.title.starts_with("This machine");
    if let Some(watch) = watch.filter(|_| findings.tables.iter().any(is_real)) {
        let noise = watch.finish();
        findings
            .notes
            .push(format!("This machine during the run: {noise}."));
    }
    Ok(findings)
}

/// A failure if a claim of ours does not hold.
fn judge(done: &[(&Experiment, Findings)]) -> Result<(), Failure> {
    for (experiment, findings) in done {
        if let Some(broken) = findings.claims.iter().find(|claim| claim.is_broken()) {
            return Err(Failure::Failed(format!(
                "experiment {}: claim {} does not hold: {}: {} expected, {} found",
                experiment.name,
                broken.id,
                broken.text,
                broken.claimed(),
                broken.found()
            )));
        }
    }
    Ok(())
}

fn named(name: &str) -> Result<&'static Experiment, Failure> {
    let found = ALL.into_iter().find(|experiment| experiment.name == name);
    found.ok_or_else(|| {
        let names = ALL.iter().map(|experiment| experiment.name);
        Failure::Usage(unknown("experiment", name, names, "or --all"))
    })
}

/// The value that `NAME=NUMBER` sets in these experiments.
fn value_set(chosen: &[&Experiment], text: &str) -> Result<ValueSet, Failure> {
    let usage = |why: String| Failure::usage(format!("--set {text}: {why}"));
    let (name, number) = text
        .split_once('=')
        .ok_or_else(|| usage("it has to be NAME=NUMBER".into()))?;
    let values: Vec<_> = chosen
        .iter()
        .flat_map(|experiment| experiment.values())
        .collect();
    let Some(value) = values.iter().find(|value| value.name == name) else {
        let names = values.iter().map(|value| value.name).collect::<Vec<_>>();
        let names = names.join(", ");
        return Err(usage(format!(
            "nothing that was chosen is called {name:?}; there are: {names}"
        )));
    };
    let number = number
        .parse::<f64>()
        .ok()
        .filter(|&number| value.takes(number));
    let number = number.ok_or_else(|| {
        let tried = value.others_in_words();
        let chosen = value.words(value.chosen);
        usage(format!(
            "{name} is {chosen}, others are {tried}; a way is given by its place, from 0 on"
        ))
    })?;
    Ok(ValueSet {
        name: value.name,
        number,
    })
}

fn list(as_json: bool) -> Result<(), Failure> {
    if as_json {
        let about = |experiment: &&Experiment| {
            json!({
                "name": experiment.name,
                "source": experiment.source,
                "question": experiment.question,
                "nothing_here": experiment.nothing_here(),
            })
        };
        let all: Vec<_> = ALL.iter().map(about).collect();
        return output::print_json(&json!({ "experiments": all }));
    }
    output::print(report::list(&ALL, output::columns()).trim_end())
}

#[cfg(test)]
mod tests;
