//! `--doc`: the document about performance, written anew from one run.
//!
//! Every number in it has its machine, date, method and spread.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use console::{Failure, output};
use measure::markdown::{boot_flags, date, table};

use crate::plot;
use crate::report::{RESULT_COLUMNS, Report, TARGET_COLUMNS, result_rows, target_rows};
use crate::row::Row;
use crate::who::Who;

/// The document and the folder of its pictures.
pub(crate) struct Document {
    file: PathBuf,
    pictures: PathBuf,
    /// Whether the file was there before.
    replaces: bool,
}

impl Document {
    /// Checks, before the measurement, that both can be made.
    pub(crate) fn at(file: &Path) -> Result<Document, Failure> {
        let replaces = file.exists();
        output::check_can_create("--doc", file)?;
        let pictures = file.with_extension("");
        if pictures == file || (pictures.exists() && !pictures.is_dir()) {
            return Err(Failure::usage(format!(
                "--doc {}: its pictures go to the folder {}, but there is a file; name the document \
                 otherwise, such as {}.md",
                file.display(),
                pictures.display(),
                pictures.display()
            )));
        }
        Ok(Document {
            file: file.to_owned(),
            pictures,
            replaces,
        })
    }

    /// Why the document stays as it is. Figures that were published are replaced by those of a quiet run of
    /// full size, and by no others.
    pub(crate) fn keeps(&self, report: &Report) -> Option<String> {
        let why = match (report.quick, report.noise.is_quiet()) {
            (true, _) => "sizes were those of --quick",
            (_, false) => "the machine was not quiet",
            (false, true) => return None,
        };
        let shown = self.file.display();
        self.replaces.then(|| {
            format!(
                "--doc {shown}: there is one already, and it stays: {why}; run it again without --quick \
                 while nothing else runs, or name another file"
            )
        })
    }

    /// Writes both.
    pub(crate) fn write(&self, report: &Report) -> Result<(), Failure> {
        let pictures = plot::pictures(report)
            .map_err(|error| Failure::failed(format!("cannot draw a picture: {error}")))?;
        std::fs::create_dir_all(&self.pictures).map_err(|error| {
            Failure::failed(format!("cannot make {}: {error}", self.pictures.display()))
        })?;
        for (row, svg) in &pictures {
            let file = self.pictures.join(format!("{}.svg", row.name));
            output::write_file(&file, svg.as_bytes())?;
        }
        let folder = self.pictures.file_name().unwrap_or_default();
        let drawn: Vec<&Row> = pictures.iter().map(|&(row, _)| row).collect();
        let text = markdown(report, &drawn, &folder.to_string_lossy());
        output::write_file(&self.file, text.as_bytes())
    }
}

/// The whole document. `folder`, beside it, has the pictures of the rows in `drawn`.
fn markdown(report: &Report, drawn: &[&Row], folder: &str) -> String {
    let mut out = String::new();
    out.push_str("# Performance\n\n");
    out.push_str(
        "This document is written by `paceline-bench --doc`, whole and from one run: change the \
         program, not the text. What is behind the figures is in \
         [performance-notes.md](performance-notes.md). Smaller is better in all results.\n\n",
    );
    if report.quick {
        out.push_str(
            "**This run used the tiny sizes of `--quick`. It says nothing about speed.**\n\n",
        );
    }
    if !report.noise.is_quiet() {
        out.push_str(
            "**The machine was not quiet. The verdicts below are not to be believed.**\n\n",
        );
    }
    if !report.environment.is_empty() {
        let set = report.environment.join(", ");
        let _ = write!(out, "**With {set}: these figures are not comparable.**\n\n");
    }
    machine(&mut out, report);
    out.push_str("## Results\n\n");
    table(&mut out, &RESULT_COLUMNS, &result_rows(report));
    out.push_str(
        "\n*to best peer*: the subject's median over the smallest median of a peer. *worst*: the \
         largest of all samples. Cases called mean, p99 or missed have that number, over all frames, in \
         the column of medians, and the least and the worst of a run beside it.\n\n",
    );
    out.push_str("## Targets\n\n");
    table(&mut out, &TARGET_COLUMNS, &target_rows(report));
    rules(&mut out);
    out.push_str("## What the rows mean\n\n");
    for row in &report.rows {
        let _ = writeln!(out, "- **{}**, {}. {}", row.name, row.title, row.means);
    }
    pictures(&mut out, drawn, folder);
    reproduce(&mut out, report);
    out
}

fn pictures(out: &mut String, drawn: &[&Row], folder: &str) {
    if drawn.is_empty() {
        return;
    }
    out.push_str(
        "\n## Pictures\n\nEvery dot is a sample, the bar is the median, which is also written at the \
         right. Where there are too many samples for that, those drawn are evenly spaced in order of \
         size, the least and the largest among them; the caption says how many of how many. Controls \
         are hollow or dashed.\n",
    );
    for row in drawn {
        let title = row.title.replace('`', "");
        let _ = write!(
            out,
            "\n![{}: {title}]({folder}/{}.svg)\n",
            row.name, row.name
        );
    }
}

fn machine(out: &mut String, report: &Report) {
    let machine = &report.machine;
    let versions = Who::VERSIONED
        .into_iter()
        .filter(|who| report.peers || !who.is_peer())
        .filter_map(|who| Some(format!("{} {}", who.name(), report.version(who)?)));
    let rows = [
        ("date", date()),
        ("processor", machine.model.clone()),
        (
            "CPUs",
            format!("{}, {} at a time", machine.cpus, machine.parallelism),
        ),
        ("kernel", machine.kernel.clone()),
        ("boot flags that matter here", boot_flags(machine)),
        (
            "frequency governor",
            machine.governor.clone().unwrap_or("not told".into()),
        ),
        ("during the run", report.noise.to_string()),
        ("threads", format!("{} for every subject", report.threads)),
        ("subjects", versions.collect::<Vec<_>>().join(", ")),
    ];
    let policy = report
        .wait_policy
        .clone()
        .map(|policy| ("`PACELINE_WAIT`", policy));
    let rows = rows.into_iter().chain(policy);
    let rows: Vec<[String; 2]> = rows.map(|(key, value)| [key.into(), value]).collect();
    out.push_str("## Machine\n\n");
    table(out, &["", ""], &rows);
    out.push('\n');
}

fn rules(out: &mut String) {
    out.push_str(
        "\n## Rules\n\n\
         - The same work, checked for the right result, on the same number of threads that may \
         execute it. The waiting thread is one of them where it takes part: Paceline, chili and \
         bevy_tasks start one thread less. A thread that calls into a rayon pool blocks outside of it, \
         so the pool has all of them; *caller in pool* is rayon with `use_current_thread`, in which \
         the calling thread is a member.\n\
         - Peers are configured and used as their documentation says. rayon: `ThreadPoolBuilder`. \
         chili: `Config`. bevy_tasks: feature `multi_threaded`, `TaskPoolBuilder::num_threads`; \
         a thread that waits in `TaskPool::scope` runs tasks. oneTBB: a `task_arena` with the caller in its \
         reserved slot and a `global_control` of `max_allowed_parallelism` (Migration Guide, \
         \"Managing the number of threads\"); it is C++ and runs in a process of its own, which \
         sleeps while others are measured.\n\
         - Subjects take turns in one run, in an order drawn anew for each round; the first round is \
         thrown away. `n` rounds count.\n\
         - A fresh pool for each sample, warmed up before anything is timed: where the kernel puts \
         threads is part of the spread. (`submit` keeps its pools, all of them asleep. oneTBB's threads \
         outlive their arena, so they are ended by `finalize` after each sample.)\n\
         - Work of a given length is a chain of dependent integer steps whose number was calibrated \
         once; it touches no memory.\n\
         - The machine counts as quiet if other processes used at most 2 % of all CPU time, the \
         hypervisor took at most 1 %, and nine of ten equal computations took at most 5 % longer than \
         the shortest.\n\n",
    );
}

fn reproduce(out: &mut String, report: &Report) {
    out.push_str("\n## How to reproduce\n\nOn a machine with nothing else to do:\n\n```sh\n");
    if report.tbb.is_some() {
        out.push_str("cargo xtask peers\n");
    }
    let peers = if report.peers { " --peers" } else { "" };
    let quick = if report.quick { " --quick" } else { "" };
    let _ = writeln!(
        out,
        "cargo run --release -p paceline-bench --{peers}{quick} --threads {} \\\n  \
         --doc docs/performance.md --readme README.md\n```",
        report.threads
    );
}
