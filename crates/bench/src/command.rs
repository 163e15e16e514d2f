//! The command line of `paceline-bench`, and a run from the first row to the verdict.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use console::{Failure, help, output, usage};
use measure::{Machine, Watch};
use paceline::WaitPolicy;
use platform::{Os, Platform, SchedParams};
use workload::Random;
use workload::busy::Busy;

use crate::document::Document;
use crate::readme::Readme;
use crate::report::{self, Report};
use crate::row::Row;
use crate::rows::{self, ROWS};
use crate::session::Setup;
use crate::target::Verdict;
use crate::tbb;
use crate::who::Who;

/// Measure Paceline against its peers on the same work
///
/// Subjects take turns within one run and use the same number of threads, the
/// waiting one included. Results are verified. Each row has targets, which are
/// judged with --peers, on 2 threads, at full size. Exit code 1: a result was
/// wrong, or the machine was quiet and a target was missed; 2: bad usage or bad
/// input.
///
/// Examples:
///   paceline-bench --quick
///   paceline-bench --peers join for
///   paceline-bench --peers --doc docs/performance.md --readme README.md
#[derive(Parser)]
#[command(name = "paceline-bench", version, max_term_width = 80, after_long_help = JSON)]
#[command(verbatim_doc_comment)]
struct Arguments {
    /// Which rows; all without a name
    #[arg(value_name = "NAME", value_enum)]
    names: Vec<Name>,
    /// Measure rayon, chili, bevy_tasks and oneTBB, too; the last if `cargo xtask peers` has built it
    #[arg(long)]
    peers: bool,
    /// Tiny sizes, to see that everything runs; nothing is judged
    #[arg(long)]
    quick: bool,
    /// Threads that may execute work, for every subject [default: all, at least 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=256))]
    threads: Option<u16>,
    /// For row load: the kernel's help with which the frames are run once more, Paceline's and its peers'
    /// threads with the same; as for `paceline frames`, or none [default: nice,rr]
    #[arg(long, value_name = "HELP", value_delimiter = ',', value_parser = wish)]
    os_help: Option<Vec<Wish>>,
    /// Write one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Write this document from the run, with a folder of pictures beside it. One that is there already is
    /// written anew only if the machine was quiet and the sizes were full
    #[arg(long, value_name = "FILE.md")]
    doc: Option<PathBuf>,
    /// Write the table in brief between this file's `bench:begin` and `bench:end`
    #[arg(long, value_name = "FILE.md", requires = "doc")]
    readme: Option<PathBuf>,
    /// For row trace: read this file, and print the time and the memory that it took
    #[arg(long, value_name = "FILE", hide = true)]
    read: Option<PathBuf>,
}

/// The keys of `--json`, at the end of the help.
const JSON: &str = "\
JSON (--json), one object:
  machine{}, quiet, noise{}, threads, quick, wait_policy
  environment[]       other variables that are set for job systems; if there are
                      any, figures are not comparable and nothing is judged
  results[]{name, case, unit, subject, version, threads,
            median, worst, min, max, n, ratio_to_best_peer, cannot}
                      smaller is better; a subject that cannot do the row has a
                      reason in cannot and no numbers
                      row load: median is the mean, p99 or missed frames of all
                      frames of all n runs; min, max and worst are of one run
  targets[]{name, case, what, got, bound, note, met}
                      met is null if the target is not judged";

/// The rows, as in [`ROWS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// 100 000 empty jobs, each through a queue
    Spawn,
    /// Fork-join recursion without a cut-off
    Join,
    /// Parallel loops over 1000 items of 5 ns and of 200 ns
    For,
    /// Loops over data: particles, their energy, a list of results
    Slices,
    /// Source 001's 500 jobs with dependencies
    Graph,
    /// Graphs of 500 and 50 000 jobs without work
    Build,
    /// Graphs in which it matters which job is begun first
    Order,
    /// Scheduling jobs that declare what they touch, checked and not
    Safety,
    /// One job to sleeping workers
    Submit,
    /// 60 Hz frames of 4 ms of work
    Frame,
    /// Frames of 130 µs back to back, alone and on a busy machine
    Short,
    /// The frames of `frame` on a busy machine
    Load,
    /// 60 Hz frames of 4 ms of work, with long jobs behind them
    Background,
    /// The CPU time of a pool without work, and between frames
    Idle,
    /// Reading traces of 256 MB
    Trace,
    /// The simulator's speed
    Sim,
}

/// A kind of help; `None` for the word none.
type Wish = Option<SchedParams>;

fn wish(text: &str) -> Result<Wish, String> {
    match text {
        "none" => Ok(None),
        _ => help::sched_params(text).map(Some),
    }
}

/// The variables that are set in the environment and change job systems, each with its value.
fn environment() -> Vec<String> {
    let names = ["PACELINE_WORKERS", "PACELINE_CPUS", "PACELINE_PLACEMENT"];
    let set = names.into_iter().filter_map(|name| {
        let value = std::env::var_os(name)?;
        Some(format!("{name}={}", value.to_string_lossy()))
    });
    set.collect()
}

/// Runs the command line.
pub(crate) fn dispatch(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let line = usage::read(&arguments)?;
    line.map_or(Ok(()), run)
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.read {
        return output::print_json(&rows::tell(path)?);
    }
    let doc = arguments.doc.as_deref().map(Document::at).transpose()?;
    let readme = arguments.readme.as_deref().map(Readme::at).transpose()?;
    let report = measure(&arguments, wait_policy()?)?;
    let kept = doc.as_ref().and_then(|doc| doc.keeps(&report));
    if let (Some(doc), None) = (doc, &kept) {
        doc.write(&report)?;
        readme.map_or(Ok(()), |readme| readme.write(&report))?;
    }
    if arguments.json {
        output::print_json(&report::json(&report))?;
    } else {
        output::print(report::tables(&report))?;
    }
    kept.map_or(Ok(()), |why| Err(Failure::failed(why)))?;
    judge(&report)
}

/// The policy for Paceline's waits in the environment. It is published with the results.
fn wait_policy() -> Result<Option<String>, Failure> {
    let Some(text) = std::env::var_os("PACELINE_WAIT") else {
        return Ok(None);
    };
    let text = text.to_string_lossy().into_owned();
    match text.parse::<WaitPolicy>() {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(Failure::usage(format!("PACELINE_WAIT: {error}"))),
    }
}

fn measure(arguments: &Arguments, wait_policy: Option<String>) -> Result<Report, Failure> {
    let machine = Machine::read();
    let threads = arguments
        .threads
        .map_or(machine.parallelism.max(2), usize::from);
    let (tbb, no_tbb) = if arguments.peers {
        match tbb::start()? {
            Ok(tbb) => (Some(tbb), None),
            Err(why) => (None, Some(why)),
        }
    } else {
        (None, None)
    };
    let environment = environment();
    for set in &environment {
        output::note(format_args!(
            "note: {set} is set: figures are not comparable"
        ));
    }
    let usual = || {
        vec![
            Some(SchedParams::nice(-10)),
            Some(SchedParams::round_robin(1)),
        ]
    };
    let wishes = arguments.os_help.clone().unwrap_or_else(usual);
    let busy = Busy::calibrate(&Os);
    let mut setup = Setup {
        threads,
        peers: arguments.peers,
        tbb,
        quick: arguments.quick,
        is_as_usual: environment.is_empty(),
        helps: wishes.into_iter().flatten().collect(),
        busy,
        random: Random::new(Os.seed()),
        watch: Watch::start(busy),
    };
    let mut cases = Vec::new();
    for row in chosen(&arguments.names) {
        output::note(format_args!("{}: {}", row.name, row.title));
        let found = (row.measure)(&mut setup)?.into_iter();
        cases.extend(found.map(|case| match &no_tbb {
            Some(why) if !case.mentions(Who::Tbb) => case.with_cannot(Who::Tbb, why.clone()),
            _ => case,
        }));
    }
    // The runner ends here, so that its CPU time counts as ours.
    let tbb = setup.tbb.map(|tbb| tbb.version().to_owned());
    Ok(Report {
        machine,
        threads,
        peers: arguments.peers,
        quick: arguments.quick,
        tbb,
        wait_policy,
        environment,
        noise: setup.watch.finish(),
        rows: chosen(&arguments.names).collect(),
        cases,
    })
}

/// The rows of these names, in the order of the table; all if there are no names.
fn chosen(names: &[Name]) -> impl Iterator<Item = &'static Row> {
    let wanted = |row: &&Row| names.is_empty() || names.iter().any(|&name| called(name, row));
    ROWS.iter().filter(wanted)
}

fn called(name: Name, row: &Row) -> bool {
    name.to_possible_value()
        .is_some_and(|value| value.get_name() == row.name)
}

fn judge(report: &Report) -> Result<(), Failure> {
    let targets = report.cases.iter().flat_map(|case| &case.targets);
    let verdicts: Vec<Verdict> = targets.map(|target| target.verdict()).collect();
    let missed = verdicts
        .iter()
        .filter(|v| matches!(v, Verdict::Missed(..)))
        .count();
    match missed {
        0 => Ok(()),
        _ if !report.noise.is_quiet() => {
            output::note("the machine was not quiet: run it again before believing the verdicts");
            Ok(())
        }
        _ => Err(Failure::Failed(format!(
            "{missed} of {} targets were missed",
            verdicts.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Goal: the derive attributes fit together, every flag has a text, and the help fits 80 columns on any
    /// terminal. Method: clap's own check of the attributes; a walk over the flags, hidden ones included.
    #[test]
    fn every_flag_has_a_doc_and_help_fits() {
        let mut command = Arguments::command();
        command.clone().debug_assert();
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{argument} has no doc");
        }
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            let wide = help.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None);
        }
    }

    /// Goal: every name on the command line is a row and every row has a name. Method: both ways.
    #[test]
    fn names_and_rows_agree() {
        let rows: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        let names = Name::value_variants()
            .iter()
            .filter_map(Name::to_possible_value);
        let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
        assert_eq!(rows, names);
    }

    /// Goal: no name means all rows; names choose, each once, in the order of the table. Method: none, and
    /// two in the wrong order with a repetition.
    #[test]
    fn names_choose_rows() {
        let names = |names: &[Name]| chosen(names).map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names(&[]).len(), ROWS.len());
        assert_eq!(
            names(&[Name::Graph, Name::Join, Name::Graph]),
            ["join", "graph"]
        );
    }
}
