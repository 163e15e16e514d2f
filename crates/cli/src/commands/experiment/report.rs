//! An experiment's findings on standard output: for people, and as one object.

use console::output;
use serde_json::{Value, json};

use super::article::Experiment;
use super::claim::{By, ClaimVerdict};
use super::findings::Findings;
use super::lab::Effort;
use crate::commands::accounts::wrapped;

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
            more.push(format!(
                "claimed: {}, found: {}",
                claim.claimed(),
                claim.found()
            ));
        }
        more.extend(Some(claim.remark()).filter(|remark| !remark.is_empty()));
        let more = wrapped(&more.join("; "), "", output::columns().saturating_sub(8));
        for line in &more {
            out.push_str(&format!("        {line}\n"));
        }
    }
    let count = |verdict| {
        let of = findings
            .claims
            .iter()
            .filter(|claim| claim.verdict() == verdict);
        of.count()
    };
    out.push_str(&format!(
        "{} reproduced, {} contradicted, {} that depend on what was chosen, {} fitted or given, {} not \
         reproducible by scheduling alone",
        count(ClaimVerdict::Reproduced),
        count(ClaimVerdict::Contradicted),
        count(ClaimVerdict::Depends),
        count(ClaimVerdict::Fitted) + count(ClaimVerdict::Given),
        count(ClaimVerdict::Beyond)
    ));
    out
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
        "rows": findings.tables.iter().flat_map(|table| table.json()).collect::<Vec<_>>(),
        "claims": findings.claims.iter().map(|claim| claim.json()).collect::<Vec<_>>(),
        "notes": findings.notes,
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
