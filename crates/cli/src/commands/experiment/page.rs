//! `--doc`: a page for each experiment, written whole from one run.

use std::fmt::Write;
use std::path::Path;

use measure::Machine;
use measure::markdown::{boot_flags, date, table};

use super::Experiment;
use super::claim::{By, Claim, Verdict};
use super::findings::Findings;
use super::lab::Effort;
use super::plot;
use crate::failure::Failure;
use crate::output;

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
    let name = experiment.name;
    let mut out = format!(
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
    let _ = write!(
        out,
        "Simulated: machine {}, policy {}, seed {}. Run on {}: {here}, boot flags {}; what is simulated does \
         not depend on it.\n\n## What came out\n\n",
        experiment.machine,
        experiment.policy,
        effort.seed,
        date(),
        boot_flags(here)
    );
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
    table(&mut out, &columns, &rows);
    for note in &findings.notes {
        let _ = write!(out, "\n{note}\n");
    }
    out.push_str("\n## What we learnt\n\n");
    for sentence in experiment.learnt {
        let _ = writeln!(out, "- {sentence}");
    }
    let seed = match effort.seed {
        1 => String::new(),
        seed => format!(" --seed {seed}"),
    };
    let quick = if effort.quick { " --quick" } else { "" };
    let _ = write!(
        out,
        "\n## Again\n\n```sh\ncargo run --release -- experiment {name}{seed}{quick} --doc \
         docs/experiments\n```\n"
    );
    out
}

fn row(claim: &Claim) -> [String; 6] {
    let verdict = match (claim.verdict(), claim.by) {
        (Verdict::Contradicted, By::Us) => "**broken**",
        (Verdict::Contradicted, By::Source) => "**contradicted**",
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
