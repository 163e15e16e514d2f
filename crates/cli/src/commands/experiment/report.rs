//! An experiment's findings on standard output: for people, and as one object.

use console::output;
use serde_json::{Value, json};

use super::article::Experiment;
use super::chosen::ChosenValue;
use super::claim::{By, ClaimVerdict};
use super::findings::{Findings, Table};
use super::lab::Effort;
use super::sensitivity::over_seeds;
use crate::commands::accounts::wrapped;

/// What verdicts of a run without `--sensitivity` are about.
const ONE_SETTING: &str =
    "What was only chosen has its chosen value here: --sensitivity varies it.";

/// For people: tables, then the claims and whether they hold.
pub(super) fn text(experiment: &Experiment, findings: &Findings) -> String {
    let mut parts = vec![format!(
        "{}: {}\n{}",
        experiment.name, experiment.question, experiment.source
    )];
    parts.extend(findings.tables.iter().map(|table| table.text()));
    if !findings.claims.is_empty() {
        parts.push(claims(findings));
    }
    if !findings.is_varied && !experiment.values().is_empty() {
        parts.push(ONE_SETTING.into());
    }
    parts.extend(findings.notes.iter().cloned());
    format!("{}\n", parts.join("\n\n"))
}

fn claims(findings: &Findings) -> String {
    let mut out = String::from("claims\n");
    for claim in &findings.claims {
        let mark = match (claim.verdict(), claim.by) {
            (ClaimVerdict::Reproduced, _) => "ok    ",
            (ClaimVerdict::Contradicted, By::Source) => "not so",
            (ClaimVerdict::Contradicted, By::Us) => "BROKEN",
            (ClaimVerdict::Beyond, _) => "beyond",
            (ClaimVerdict::Depends, _) => "varies",
            (ClaimVerdict::Fitted, _) => "fitted",
            (ClaimVerdict::Given, _) => "given ",
        };
        out.push_str(&format!(
            "{mark}  {}  {} ({})\n",
            claim.id, claim.text, claim.place
        ));
        let mut more = Vec::new();
        if claim.verdict() != ClaimVerdict::Beyond {
            let settings = claim.holds_in();
            let varied = match settings.of {
                1 => String::new(),
                of => format!(", holds in {} of {of} settings", settings.holds),
            };
            more.push(format!(
                "claimed: {}, found: {}{varied}",
                claim.claimed(),
                claim.found()
            ));
        }
        more.extend(Some(claim.remark()).filter(|remark| !remark.is_empty()));
        more.extend(over_seeds(claim));
        let more = wrapped(&more.join("; "), "", output::columns().saturating_sub(8));
        for line in &more {
            out.push_str(&format!("        {line}\n"));
        }
    }
    out.push_str(&counts(findings));
    out
}

/// How many claims have which verdict.
pub(super) fn counts(findings: &Findings) -> String {
    let count = |verdict| {
        let of = findings
            .claims
            .iter()
            .filter(|claim| claim.verdict() == verdict);
        of.count()
    };
    format!(
        "{} claims: {} reproduced, {} contradicted, {} that depend on what was chosen, {} fitted or given, \
         {} not reproducible by scheduling alone.",
        findings.claims.len(),
        count(ClaimVerdict::Reproduced),
        count(ClaimVerdict::Contradicted),
        count(ClaimVerdict::Depends),
        count(ClaimVerdict::Fitted) + count(ClaimVerdict::Given),
        count(ClaimVerdict::Beyond)
    )
}

/// As one object.
pub(super) fn json(experiment: &Experiment, findings: &Findings, effort: &Effort) -> Value {
    json!({
        "name": experiment.name,
        "source": experiment.source,
        "question": experiment.question,
        "machine": experiment.machine,
        "policy": experiment.policy,
        "quick": effort.quick,
        "seed": effort.seed,
        "tables": findings.tables.iter().map(Table::head).collect::<Vec<_>>(),
        "rows": findings.tables.iter().flat_map(|table| table.json()).collect::<Vec<_>>(),
        "chosen": experiment.values().iter().map(|value| chosen(value, effort)).collect::<Vec<_>>(),
        "sensitivity": findings.is_varied,
        "claims": findings.claims.iter().map(|claim| claim.json()).collect::<Vec<_>>(),
        "notes": findings.notes,
    })
}

/// A value that was only chosen.
fn chosen(value: &ChosenValue, effort: &Effort) -> Value {
    json!({
        "name": value.name,
        "about": value.about,
        "number": effort.value(value),
        "chosen": value.words(value.chosen),
        "others": value.others.iter().map(|&number| value.words(number)).collect::<Vec<_>>(),
        "why": value.why,
    })
}

/// A list of all experiments, each with its question and its source, in lines that fit.
pub(super) fn list(all: &[&Experiment], columns: usize) -> String {
    let one = |experiment: &&Experiment| {
        let lines =
            [experiment.question, experiment.source].map(|text| wrapped(text, "  ", columns));
        format!("{}\n{}\n", experiment.name, lines.concat().join("\n"))
    };
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::experiment::ALL;

    /// Goal: the list fits a terminal and leaves nothing out. Method: all experiments, in 100 and in 60
    /// columns.
    #[test]
    fn the_list_fits() {
        for columns in [60, 100] {
            let list = list(&ALL, columns);
            for line in list.lines() {
                assert!(line.chars().count() <= columns, "{line}");
            }
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            let wanted = ALL.map(|it| format!("{} {} {} ", it.name, it.question, it.source));
            assert_eq!(words(&list), words(&wanted.concat()));
        }
    }
}
