//! `cargo xtask test`: runs the stages of `stages` in order and counts the tests in them.

use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::context::Context;
use crate::counts::Counts;
use crate::process::{self, Manner};
use crate::selection;
use crate::stages::{STAGES, Stage, Step, Switch};
use crate::tools;

/// The options of `cargo xtask test`.
#[derive(Args)]
#[command(after_help = "\
Stages run in order and the first failure ends the run. A stage that needs something this machine \
cannot have (Miri, ThreadSanitizer) is reported as not available and does not fail the run. The \
whole output of each stage is kept in target/xtask/STAGE.log. The last line is the sum over all \
tests: `N passed, N failed`; a stage that fails otherwise counts as one failed test.

Examples:
  cargo xtask test                     what each change must pass
  cargo xtask test --all               everything, as CI does
  cargo xtask test --only fmt clippy tidy
  cargo xtask test --only miri tsan    after changes to unsafe or lock-free parts")]
pub(crate) struct Options {
    /// Also run the stages that compile something once more: for other checkers, toolchains, systems and
    /// programs
    #[arg(long)]
    all: bool,
    /// Run these stages and no others
    #[arg(long, num_args = 1.., value_name = "STAGE", value_delimiter = ',',
          value_parser = stage_names(), hide_possible_values = true)]
    only: Vec<String>,
    /// Leave these stages out
    #[arg(long, num_args = 1.., value_name = "STAGE", value_delimiter = ',',
          value_parser = stage_names(), hide_possible_values = true)]
    skip: Vec<String>,
    /// Say which stages there are, what each is for and what it runs
    #[arg(long)]
    list: bool,
    /// Run the remaining stages after a failure too
    #[arg(long)]
    keep_going: bool,
    /// Show the output of commands as it comes
    #[arg(long, short)]
    verbose: bool,
}

fn stage_names() -> PossibleValuesParser {
    PossibleValuesParser::new(STAGES.iter().map(|stage| stage.name))
}

/// How one stage ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Ok,
    Failed,
    /// Cannot run on this machine, and why.
    NotAvailable(String),
    /// Takes part in a run with `--all`.
    Left,
    /// Switched off in the table, and why.
    Off(&'static str),
}

/// One stage as it ended.
struct Report {
    name: &'static str,
    verdict: Verdict,
    counts: Counts,
    note: String,
    /// The parts of a failure to show: the command, why it failed, all it printed.
    failure: String,
}

/// Runs the selected stages; whether all of them passed.
pub(crate) fn run(context: Context, options: &Options) -> Result<bool, String> {
    let context = &Context {
        all_stages: options.all,
        ..context
    };
    let stages = selection::selected(&options.only, &options.skip);
    if options.list {
        print!("{}", listed(&stages));
        return Ok(true);
    }
    let begin = Instant::now();
    let mut reports: Vec<Report> = Vec::new();
    let mut not_run = Vec::new();
    for group in selection::groups(&stages) {
        let failed_before = reports
            .iter()
            .any(|report| report.verdict == Verdict::Failed);
        if failed_before && !options.keep_going {
            not_run.extend(group.iter().map(|stage| stage.name));
            continue;
        }
        reports.extend(together(context, group, options));
    }
    print!("{}", summary(&reports, &not_run, begin.elapsed()));
    println!("{}", total(&reports));
    Ok(reports
        .iter()
        .all(|report| report.verdict != Verdict::Failed))
}

/// Runs stages at the same time, and says of each how it ended, in their order.
fn together(context: &Context, stages: &[&Stage], options: &Options) -> Vec<Report> {
    let one = |stage: &Stage| {
        let since = Instant::now();
        let asked_for = options.only.iter().any(|name| name == stage.name);
        let report = report(context, stage, asked_for, options.verbose);
        (report, since.elapsed())
    };
    std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = stages
            .iter()
            .map(|stage| scope.spawn(move || one(stage)))
            .collect();
        let ended = running.into_iter().map(|stage| {
            let (report, elapsed) = stage.join().expect("a stage that fails says so");
            println!("{}", report.line(elapsed));
            if report.verdict == Verdict::Failed {
                println!("{}", report.failure.trim_end());
            }
            report
        });
        ended.collect()
    })
}

/// Runs one stage, or says why not.
fn report(context: &Context, stage: &Stage, asked_for: bool, verbose: bool) -> Report {
    let mut report = Report {
        name: stage.name,
        verdict: Verdict::Ok,
        counts: Counts::default(),
        note: String::new(),
        failure: String::new(),
    };
    if !asked_for && !stage.switch.takes_part(context.all_stages) {
        report.verdict = match stage.switch {
            Switch::Off(why) => Verdict::Off(why),
            Switch::On | Switch::WithAll => Verdict::Left,
        };
        return report;
    }
    let missing = if asked_for {
        tools::demand(stage.needs).err()
    } else {
        tools::missing(stage.needs)
    };
    if let Some(why) = missing {
        report.verdict = Verdict::NotAvailable(why);
        return report;
    }
    let mut log = String::new();
    for step in stage.steps {
        if let Err(failure) = take(context, stage, step, verbose, &mut report, &mut log) {
            report.verdict = Verdict::Failed;
            report.failure = failure;
            break;
        }
    }
    if report.verdict == Verdict::Ok && stage.counts_tests && report.counts.passed == 0 {
        report.verdict = Verdict::Failed;
        report.failure = format!("no test ran: has a package or a filter been renamed?\n{log}");
    }
    keep(context, stage, &log);
    report
}

/// Takes one step; `Err` is what to show of its failure.
fn take(
    context: &Context,
    stage: &Stage,
    step: &Step,
    verbose: bool,
    report: &mut Report,
    log: &mut String,
) -> Result<(), String> {
    let (line, env) = match step {
        Step::Call { what, function } => {
            let result = function(context);
            let (Ok(text) | Err(text)) = &result;
            log.push_str(&format!("$ {what}\n{text}\n"));
            report.note = result.map_err(|text| format!("$ {what}\n{text}"))?;
            return Ok(());
        }
        Step::Run { line, env } => (context.fill_in(line)?, env),
    };
    let filled = |&(name, value): &(&'static str, &str)| Ok((name, context.fill_in(value)?));
    let env: Vec<_> = env.iter().map(filled).collect::<Result<_, String>>()?;
    let mut words = line.split_whitespace();
    let mut command = context.command(words.next().unwrap_or_default());
    command
        .args(words)
        .envs(env.iter().map(|(name, value)| (name, value)));
    let shown = shown(&line, &env);
    if verbose {
        println!("$ {shown}");
    }
    let silence = Duration::from_secs(stage.silence_minutes * 60);
    let outcome = process::run(
        command,
        Manner {
            silence,
            stream: verbose,
            apart: false,
        },
    );
    report.counts += outcome.counts;
    log.push_str(&format!("$ {shown}\n{}", outcome.output));
    match outcome.failure {
        None => Ok(()),
        // With --verbose the output has been seen already.
        Some(why) if verbose => Err(format!("$ {shown}\n{}: {why}", stage.name)),
        Some(why) => Err(format!(
            "$ {shown}\n{}{}: {why}",
            outcome.output, stage.name
        )),
    }
}

/// A command as a person would type it.
fn shown(line: &str, env: &[(&str, impl AsRef<str>)]) -> String {
    let settings: String = env
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\" ", value.as_ref()))
        .collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{settings}{line}")
}

/// Keeps the whole output of a stage for later reading. A full disk is no reason to fail.
fn keep(context: &Context, stage: &Stage, log: &str) {
    let folder = context.target.join("xtask");
    let _ = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join(format!("{}.log", stage.name)), log));
}

impl Report {
    /// `clippy    ok               12.3 s  note`
    fn line(&self, elapsed: Duration) -> String {
        let (word, mut note) = match &self.verdict {
            Verdict::Ok => ("ok", self.note.clone()),
            Verdict::Failed => ("failed", String::new()),
            Verdict::NotAvailable(why) => ("not available", why.clone()),
            Verdict::Left => ("left", "with --all".to_owned()),
            Verdict::Off(why) => ("off", (*why).to_owned()),
        };
        if self.counts != Counts::default() {
            note = self.counts.to_string();
        }
        let seconds = elapsed.as_secs_f64();
        format!("{:<9} {word:<13} {seconds:>6.1} s  {note}", self.name)
            .trim_end()
            .to_owned()
    }
}

/// The summary after the last stage: how each stage ended, in a few lines.
fn summary(reports: &[Report], not_run: &[&str], elapsed: Duration) -> String {
    let mut text = format!("\nstages, {:.0} s in all:\n", elapsed.as_secs_f64());
    let mut group = |title: &str, members: Vec<String>| {
        if !members.is_empty() {
            text.push_str(&format!(
                "  {:<15}{}\n",
                format!("{title}:"),
                members.join(", ")
            ));
        }
    };
    let with = |wanted: fn(&Verdict) -> Option<String>| {
        let named = |report: &Report| Some(format!("{}{}", report.name, wanted(&report.verdict)?));
        reports.iter().filter_map(named).collect::<Vec<_>>()
    };
    group(
        "ok",
        with(|verdict| (*verdict == Verdict::Ok).then(String::new)),
    );
    group(
        "failed",
        with(|verdict| (*verdict == Verdict::Failed).then(String::new)),
    );
    group(
        "not run",
        not_run.iter().map(|name| (*name).to_owned()).collect(),
    );
    group(
        "not available",
        with(|verdict| match verdict {
            Verdict::NotAvailable(why) => Some(format!(" ({why})")),
            _ => None,
        }),
    );
    group(
        "with --all",
        with(|verdict| (*verdict == Verdict::Left).then(String::new)),
    );
    group(
        "off",
        with(|verdict| match verdict {
            Verdict::Off(why) => Some(format!(" ({why})")),
            _ => None,
        }),
    );
    text
}

/// The sum of all tests. A stage that fails without a failed test counts as one, so that the line
/// never says "0 failed" of a run that failed.
fn total(reports: &[Report]) -> Counts {
    let mut sum = Counts::default();
    for report in reports {
        sum += report.counts;
        if report.verdict == Verdict::Failed && report.counts.failed == 0 {
            sum.failed += 1;
        }
    }
    sum
}

fn listed(stages: &[&Stage]) -> String {
    let mut text = String::new();
    for stage in stages {
        text.push_str(&format!("{:<9} {}\n", stage.name, stage.purpose));
        match stage.switch {
            Switch::On => {}
            Switch::WithAll => text.push_str(&format!("{:<11}with --all\n", "")),
            Switch::Off(why) => text.push_str(&format!("{:<11}off: {why}\n", "")),
        }
        for step in stage.steps {
            let line = match step {
                Step::Run { line, env } => shown(line, env),
                Step::Call { what, .. } => (*what).to_owned(),
            };
            text.push_str(&format!("{:<11}$ {line}\n", ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(name: &'static str, verdict: Verdict, passed: u64, failed: u64) -> Report {
        let counts = Counts {
            passed,
            failed,
            skipped: 0,
        };
        Report {
            name,
            verdict,
            counts,
            note: String::new(),
            failure: String::new(),
        }
    }

    #[test]
    fn a_stage_that_fails_without_a_test_counts_as_one() {
        let reports = [
            ended("unit", Verdict::Ok, 5, 0),
            ended("docs", Verdict::Failed, 0, 0),
        ];
        assert_eq!(total(&reports).to_string(), "5 passed, 1 failed");
        let reports = [ended("unit", Verdict::Failed, 5, 2)];
        assert_eq!(total(&reports).to_string(), "5 passed, 2 failed");
    }

    #[test]
    fn the_summary_names_each_stage_once() {
        let reports = [
            ended("fmt", Verdict::Ok, 0, 0),
            ended("miri", Verdict::NotAvailable("no nightly".to_owned()), 0, 0),
            ended("wheel", Verdict::Left, 0, 0),
            ended("unit", Verdict::Failed, 1, 1),
        ];
        let text = summary(&reports, &["examples"], Duration::from_secs(61));
        let expected = "\nstages, 61 s in all:\n  ok:            fmt\n  failed:        unit\n  \
                        not run:       examples\n  not available: miri (no nightly)\n  \
                        with --all:    wheel\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_line_has_the_time_and_the_tests() {
        let line = ended("unit", Verdict::Ok, 12, 0).line(Duration::from_millis(1250));
        assert_eq!(
            line,
            "unit      ok               1.2 s  12 passed, 0 failed"
        );
    }

    #[test]
    fn commands_are_shown_as_they_would_be_typed() {
        assert_eq!(shown("cargo  doc", &[("A", "b c")]), "A=\"b c\" cargo doc");
    }
}
