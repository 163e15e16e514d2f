//! `--doc`: a page for each experiment, written whole from one run.

use std::fmt::Write;
use std::path::Path;

use console::{Failure, output};
use measure::Machine;
use measure::markdown::{boot_flags, date, table};

use super::article::Experiment;
use super::claim::{By, Claim, ClaimVerdict};
use super::findings::Findings;
use super::lab::Effort;
use super::plot;

/// Writes the page and its pictures.
pub(super) fn write(
    folder: &Path,
    experiment: &Experiment,
    findings: &Findings,
    effort: &Effort,
) -> Result<(), Failure> {
    plot::write(folder, experiment.name, &findings.plots)?;
    let text = markdown(experiment, findings, effort, &Machine::read());
    let file = folder.join(format!("{}.md", experiment.name));
    output::write_file(&file, text.as_bytes())
}

fn markdown(
    experiment: &Experiment,
    findings: &Findings,
    effort: &Effort,
    here: &Machine,
) -> String {
    let mut out = String::new();
    introduction(&mut out, experiment, effort, here);
    out.push_str("## What came out\n\n");
    outcome(&mut out, experiment.name, findings);
    out.push_str("\n## What we learnt\n\n");
    let lessons = experiment.learnt.iter();
    for sentence in lessons.filter_map(|lesson| lesson.told(findings)) {
        let _ = writeln!(out, "- {sentence}");
    }
    let _ = write!(
        out,
        "\n## Again\n\n```sh\ncargo run --release -- experiment {}{} --doc docs/experiments\n```\n",
        experiment.name,
        options(effort)
    );
    out
}

/// The question, the source, and the machine.
fn introduction(out: &mut String, experiment: &Experiment, effort: &Effort, here: &Machine) {
    let name = experiment.name;
    let _ = write!(
        out,
        "# {name}\n\nThis page is written by `paceline experiment {name} --doc`, whole and from one run: \
         change the program, not the text.\n\n"
    );
    if effort.quick {
        out.push_str(
            "**This run was a quick one: shapes and counts are right, tails are not.**\n\n",
        );
    }
    let _ = write!(
        out,
        "After {}.\n\n## Question\n\n{}\n\n## Set-up\n\n{}\n\n",
        experiment.source, experiment.question, experiment.setup
    );
    if effort.simulated {
        let _ = write!(
            out,
            "Simulated: machine {}, policy {}, seed {}. ",
            experiment.machine, experiment.policy, effort.seed
        );
    }
    let depends = match (effort.simulated, effort.real) {
        (true, true) => "the simulated parts do not depend on it, those about \"this machine\" do",
        (true, false) => "the simulated parts do not depend on it, and nothing else was run",
        (false, _) => "nothing was simulated",
    };
    let _ = write!(
        out,
        "Run on {}: {here}, boot flags {}; {depends}.\n\n",
        date(),
        boot_flags(here)
    );
}

/// Tables, pictures, claims and notes.
fn outcome(out: &mut String, name: &str, findings: &Findings) {
    for table in &findings.tables {
        let _ = write!(out, "{}:\n\n{}\n", table.title, table.markdown());
    }
    for plot in &findings.plots {
        let _ = write!(out, "![{}]({})\n\n", plot.title, plot.file_name(name));
    }
    out.push_str("## What is claimed, and whether it holds\n\n");
    let rows: Vec<[String; 6]> = findings.claims.iter().map(row).collect();
    let columns = [
        "claim",
        "said in",
        "expected",
        "found",
        "verdict",
        "how, or why not",
    ];
    table(out, &columns, &rows);
    for note in &findings.notes {
        let _ = write!(out, "\n{note}\n");
    }
}

/// The options that repeat this run.
fn options(effort: &Effort) -> String {
    let mut options = String::new();
    if effort.seed != 1 {
        let _ = write!(options, " --seed {}", effort.seed);
    }
    for (given, option) in [
        (effort.quick, " --quick"),
        (!effort.real, " --sim"),
        (!effort.simulated, " --real"),
    ] {
        options.push_str(if given { option } else { "" });
    }
    options
}

fn row(claim: &Claim) -> [String; 6] {
    let verdict = match (claim.verdict(), claim.by) {
        (ClaimVerdict::Contradicted, By::Us) => "**broken**",
        (ClaimVerdict::Contradicted, By::Source) => "**contradicted**",
        (ClaimVerdict::Depends, _) => "**depends**",
        (other, _) => other.name(),
    };
    [
        format!("{}: {}", claim.id, claim.text),
        claim.place.to_owned(),
        claim.claimed(),
        claim.found(),
        verdict.to_owned(),
        claim.remark(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::experiment::ALL;
    use crate::commands::experiment::claim::Expect;
    use crate::commands::experiment::findings::Table;

    /// Goal: a page tells what was run where, what came of it, and how to run it again, and a lesson only if
    /// this run bears it out. Method: made-up findings of an experiment, simulated and real.
    #[test]
    fn a_page_says_what_was_run() {
        let mut table = Table::new("This machine: times", ["a"]);
        table.row([7.0.into()]);
        let claims = [("003-t", 14.0), ("003-o", 1.0)];
        let claim =
            |(id, got)| Claim::source(id, "so", "there").is(Expect::Exactly(14.0), got, "of them");
        let findings = Findings {
            tables: vec![table],
            claims: claims.map(claim).into(),
            notes: vec!["A note.".into()],
            ..Findings::default()
        };
        let effort = |simulated, real| Effort {
            quick: true,
            simulated,
            real,
            seed: 2,
        };
        let page = |effort| markdown(ALL[3], &findings, &effort, &Machine::read());
        let both = page(effort(true, true));
        for part in [
            "Simulated: machine mcu,",
            "those about \"this machine\" do",
            "boot flags",
            "This machine: times:\n\n| a |",
            "| 14 of them | 14 of them | reproduced |",
            "| 14 of them | 1 of them | **contradicted** |",
            "\nA note.\n",
            "(14 of them more a cycle)",
            "experiment rtos-priorities --seed 2 --quick --doc",
        ] {
            assert!(both.contains(part), "{part} is missing in {both}");
        }
        assert!(!both.contains("deadlock"), "nothing of it was learnt");
        assert!(page(effort(true, false)).contains("--quick --sim --doc"));
        let real = page(effort(false, true));
        assert!(real.contains("--quick --real --doc") && !real.contains("Simulated:"));
    }
}
