//! `--doc`: a page for each experiment, written whole from one run.

use std::fmt::Write;
use std::path::Path;

use console::{Failure, output};
use measure::Machine;
use measure::markdown::{boot_flags, date, table};

use super::article::Experiment;
use super::chosen::ChosenValue;
use super::claim::{By, Claim, ClaimVerdict, HoldsIn};
use super::earlier::{ClaimRow, EarlierParts, KEPT};
use super::findings::Findings;
use super::lab::Effort;
use super::lesson::ClaimResult;
use super::plot::{self, Plot};
use super::report;
use super::sensitivity::{SEED, over_seeds};

/// Writes the page and its pictures.
pub(super) fn write(
    folder: &Path,
    experiment: &Experiment,
    findings: &Findings,
    effort: &Effort,
) -> Result<(), Failure> {
    plot::write(folder, experiment.name, &findings.plots)?;
    let file = folder.join(format!("{}.md", experiment.name));
    let earlier = std::fs::read_to_string(&file).ok();
    let earlier = earlier.as_deref().and_then(EarlierParts::of);
    let earlier = earlier.filter(|_| !effort.real).unwrap_or_default();
    let text = markdown(experiment, findings, &earlier, effort, &Machine::read());
    output::write_file(&file, text.as_bytes())
}

fn markdown(
    experiment: &Experiment,
    findings: &Findings,
    earlier: &EarlierParts,
    effort: &Effort,
    here: &Machine,
) -> String {
    let mut out = String::new();
    introduction(&mut out, experiment, effort);
    answer(&mut out, experiment, findings, earlier);
    out.push_str("## What is claimed, and whether it holds\n\n");
    claims(&mut out, experiment, findings, earlier);
    chosen(&mut out, experiment, findings, effort);
    set_up(&mut out, experiment, effort, here);
    if !earlier.run.is_empty() {
        let _ = write!(out, "{KEPT}{}.\n\n", earlier.run);
    }
    out.push_str("## What was measured\n\n");
    measured(&mut out, experiment.name, findings);
    out.push_str(&earlier.measured);
    for note in findings.notes.iter().chain(&earlier.notes) {
        let _ = write!(out, "{note}\n\n");
    }
    let _ = write!(
        out,
        "## Again\n\n```sh\ncargo run --release -- experiment {}{} --doc docs/experiments\n```\n",
        experiment.name,
        options(effort, findings)
    );
    out
}

/// The question, and where it comes from.
fn introduction(out: &mut String, experiment: &Experiment, effort: &Effort) {
    let name = experiment.name;
    let _ = write!(
        out,
        "# {name}\n\n{}\n\nAfter {}. This page is written by `paceline experiment {name} --doc`, whole and \
         from one run but for what it says of an earlier one: change the program, not the text.\n\n",
        experiment.question, experiment.source
    );
    if effort.quick {
        out.push_str(
            "**This run was a quick one: shapes and counts are right, tails are not.**\n\n",
        );
    }
}

/// The lessons, and the first picture.
fn answer(out: &mut String, experiment: &Experiment, findings: &Findings, earlier: &EarlierParts) {
    let came = |id: &str| {
        let claim = findings.claims.iter().find(|claim| claim.id == id);
        let now = claim.map(ClaimResult::of);
        now.or_else(|| earlier.claim(id))
    };
    let lessons = experiment.learnt.iter();
    for sentence in lessons.filter_map(|lesson| lesson.told_by(&came)) {
        let _ = writeln!(out, "- {sentence}");
    }
    let _ = write!(out, "\n{}", report::counts(findings));
    if !earlier.rows.is_empty() {
        let more = earlier.rows.len();
        let _ = write!(out, " About a machine at hand: {more} more.");
    }
    out.push_str("\n\n");
    if let Some(plot) = findings.plots.first() {
        picture(out, experiment.name, plot);
    }
}

fn picture(out: &mut String, name: &str, plot: &Plot) {
    let _ = write!(out, "![{}]({})\n\n", plot.title, plot.file_name(name));
}

/// How it was asked, and where.
fn set_up(out: &mut String, experiment: &Experiment, effort: &Effort, here: &Machine) {
    let _ = write!(out, "## Set-up\n\n{}\n\n", experiment.setup);
    if effort.simulated {
        let _ = write!(
            out,
            "Simulated: machine {}, policy {}, seed {}. ",
            experiment.machine, experiment.policy, effort.seed
        );
    }
    let depends = match (effort.simulated, effort.real) {
        (true, true) => "the simulated parts do not depend on it, those about \"this machine\" do",
        (true, false) => "the simulated parts, which alone were run, do not depend on it",
        (false, _) => "nothing was simulated",
    };
    let _ = write!(
        out,
        "Run on {}: {here}, boot flags {}; {depends}.\n\n",
        date(),
        boot_flags(here)
    );
}

/// The tables, and the pictures but the first one.
fn measured(out: &mut String, name: &str, findings: &Findings) {
    for table in &findings.tables {
        let _ = write!(out, "{}:\n\n{}\n", table.title, table.markdown());
    }
    for plot in findings.plots.iter().skip(1) {
        picture(out, name, plot);
    }
}

/// All claims with their verdicts.
fn claims(out: &mut String, experiment: &Experiment, findings: &Findings, earlier: &EarlierParts) {
    let values = experiment.values();
    let of_claims = findings.claims.iter();
    let mut rows: Vec<ClaimRow> = of_claims.map(|claim| row(claim, &values)).collect();
    rows.extend(earlier.rows.iter().cloned());
    rows.sort_by(|a, b| id_of(a).cmp(id_of(b)));
    let columns = [
        "claim",
        "said in",
        "expected",
        "found",
        "holds in",
        "verdict",
        "how, or why not",
    ];
    table(out, &columns, &rows);
    out.push_str(
        "\n*holds in*: of how many settings of what was only chosen, without values that change nothing of \
         it. Where an experiment repeats what is drawn, other settings repeat it a third as often, or as a \
         quick run does; so they are compared with a run of that size, and what they measured is less exact \
         than what was *found*. *reproduced* and *contradicted*: nine of ten settings of each chosen value \
         agree; *depends*: those of one do not. *fitted*: a value of the machine was worked out from it; \
         *given*: the scenario has it as an input.\n\n",
    );
}

/// What was only chosen, and what hangs on it.
fn chosen(out: &mut String, experiment: &Experiment, findings: &Findings, effort: &Effort) {
    let values = experiment.values();
    if values.is_empty() {
        return;
    }
    out.push_str("## What was only chosen\n\n");
    if !findings.is_varied {
        out.push_str("**In this run nothing of it was varied: `--sensitivity` does.**\n\n");
    }
    let hanging = |name: &str| {
        if findings.is_varied {
            hanging(findings, name)
        } else {
            [String::from("–"), String::from("–")]
        }
    };
    let mut rows: Vec<[String; 6]> = values
        .iter()
        .map(|value| {
            let [moved, turned] = hanging(value.name);
            [
                format!("`{}`: {}", value.name, value.about),
                value.words(effort.value(value)),
                value.others_in_words(),
                value.why.to_owned(),
                moved,
                turned,
            ]
        })
        .collect();
    let of_every_run = values_of_every_run(experiment, findings);
    rows.extend(of_every_run.into_iter().map(|name| {
        let [moved, turned] = hanging(name);
        let (chosen, others) = ("as in the set-up", "as in the claims' rows");
        let why = "varied in every run";
        [
            in_page(name, &values),
            chosen.into(),
            others.into(),
            why.into(),
            moved,
            turned,
        ]
    }));
    if experiment.parts.iter().any(|part| part.seeds > 0) {
        let [moved, turned] = hanging(SEED);
        rows.push([
            format!("{}: of all that is drawn", in_page(SEED, &values)),
            effort.seed.to_string(),
            "the next ones".into(),
            "any is as good".into(),
            moved,
            turned,
        ]);
    }
    let columns = [
        "value",
        "chosen",
        "also tried",
        "why",
        "claims that it moves",
        "that depend on it",
    ];
    table(out, &columns, &rows);
    out.push_str(
        "\n`--set NAME=NUMBER` takes a name in `this type`; `--seed` is an option of its own, and a name in \
         *italics* cannot be set.\n\n",
    );
}

/// The name of something that was chosen: as code where `--set` takes it.
fn in_page(name: &str, values: &[&ChosenValue]) -> String {
    match name {
        SEED => "`--seed`".to_owned(),
        _ if values.iter().any(|value| value.name == name) => format!("`{name}`"),
        _ => format!("*{name}*"),
    }
}

/// The names of what is varied without `--sensitivity`, too.
fn values_of_every_run(experiment: &Experiment, findings: &Findings) -> Vec<&'static str> {
    let listed = experiment.values();
    let mut names: Vec<&'static str> = Vec::new();
    for name in findings.claims.iter().flat_map(Claim::values) {
        let is_listed = name == SEED || listed.iter().any(|value| value.name == name);
        if !is_listed && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// How many claims hang on this value, and the ids of those whose verdicts depend on it.
fn hanging(findings: &Findings, value: &str) -> [String; 2] {
    let moved = || {
        let of = findings.claims.iter();
        of.filter(|claim| claim.values().any(|name| name == value))
    };
    let turned = moved().filter(|claim| claim.verdict() == ClaimVerdict::Depends);
    let turned = turned.filter(|claim| claim.depends_on(value));
    let turned: Vec<&str> = turned.map(|claim| claim.id).collect();
    let turned = match turned.as_slice() {
        [] => "none".to_owned(),
        ids => ids.join(", "),
    };
    [moved().count().to_string(), turned]
}

/// The options that repeat this run.
fn options(effort: &Effort, findings: &Findings) -> String {
    let mut options = String::new();
    if effort.seed != 1 {
        let _ = write!(options, " --seed {}", effort.seed);
    }
    if let Some(set) = effort.set {
        let _ = write!(options, " --set {}={}", set.name, set.number);
    }
    for (given, option) in [
        (findings.is_varied, " --sensitivity"),
        (effort.quick, " --quick"),
        (!effort.real, " --sim"),
        (!effort.simulated, " --real"),
    ] {
        options.push_str(if given { option } else { "" });
    }
    options
}

/// The id in a row of claims.
fn id_of(row: &ClaimRow) -> &str {
    row[0].split(':').next().unwrap_or_default()
}

fn row(claim: &Claim, values: &[&ChosenValue]) -> ClaimRow {
    let holds_in = match (claim.verdict(), claim.holds_in()) {
        (ClaimVerdict::Beyond, _) => String::new(),
        (_, HoldsIn { holds, of }) => format!("{holds} of {of}"),
    };
    let verdict = match (claim.verdict(), claim.by) {
        (ClaimVerdict::Contradicted, By::Us) => "**broken**".to_owned(),
        (ClaimVerdict::Contradicted, By::Source) => "**contradicted**".to_owned(),
        (ClaimVerdict::Depends, _) => {
            let on = claim.values().filter(|value| claim.depends_on(value));
            let on: Vec<String> = on.map(|value| in_page(value, values)).collect();
            format!("**depends** on {}", on.join(", "))
        }
        (other, _) => other.name().to_owned(),
    };
    let parts = [Some(claim.remark()), over_seeds(claim)];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    let remark = parts.collect::<Vec<_>>().join("; ");
    [
        format!("{}: {}", claim.id, claim.text),
        claim.place.to_owned(),
        claim.claimed(),
        claim.found(),
        holds_in,
        verdict,
        remark,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::experiment::ALL;
    use crate::commands::experiment::claim::Expect;
    use crate::commands::experiment::findings::Table;

    /// Goal: only a name that `--set` takes looks like one that can be typed. Method: a chosen value, the
    /// seed, and what is varied in every run, in a verdict and in the table.
    #[test]
    fn a_name_that_cannot_be_set_looks_otherwise() {
        let values = ALL[3].values();
        assert_eq!(in_page(values[0].name, &values), "`switch`");
        assert_eq!(in_page(SEED, &values), "`--seed`");
        let expected = Expect::Exactly(9.0);
        let claim = |value| {
            let claim = Claim::source("003-t", "so", "there").is(expected, 9.0, "");
            claim.varied(value, "another", expected, 8.0)
        };
        assert_eq!(
            row(&claim("sharing"), &values)[5],
            "**depends** on *sharing*"
        );
        let findings = Findings {
            claims: vec![claim("sharing")],
            ..Findings::default()
        };
        let mut out = String::new();
        chosen(&mut out, ALL[3], &findings, &Effort::quick(1));
        assert!(out.contains("| *sharing* | as in the set-up |"), "{out}");
        assert!(out.contains("| `--seed`: of all"), "{out}");
    }

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
            set: None,
            is_one_of_many: false,
        };
        let beside = |earlier: &EarlierParts, effort: Effort| {
            markdown(ALL[3], &findings, earlier, &effort, &Machine::read())
        };
        let page = |effort: Effort| beside(&EarlierParts::default(), effort);
        let kept = EarlierParts {
            rows: vec![Default::default()],
            ..EarlierParts::default()
        };
        let more = "scheduling alone. About a machine at hand: 1 more.\n";
        assert!(beside(&kept, effort(true, false)).contains(more));
        let both = page(effort(true, true));
        for part in [
            "Simulated: machine mcu,",
            "those about \"this machine\" do",
            "boot flags",
            "This machine: times:\n\n| a |",
            "| 14 of them | 14 of them | 1 of 1 | reproduced |",
            "| 14 of them | 1 of them | 0 of 1 | **contradicted** |",
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
