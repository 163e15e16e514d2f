//! An experiment's findings on standard output: for people, and as one object.

use serde_json::{Value, json};

use super::Experiment;
use super::claim::{By, Verdict};
use super::findings::Findings;
use super::lab::Effort;
use crate::commands::accounts::wrapped;
use crate::output;

/// For people: tables, and then what is claimed and whether it holds.
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
            (Verdict::Reproduced, _) => "ok    ",
            (Verdict::Contradicted, By::Source) => "not so",
            (Verdict::Contradicted, By::Us) => "BROKEN",
            (Verdict::Beyond, _) => "beyond",
        };
        out.push_str(&format!(
            "{mark}  {}  {} ({})\n",
            claim.id, claim.text, claim.place
        ));
        let mut more = Vec::new();
        if claim.verdict() != Verdict::Beyond {
            more.push(format!(
                "claimed: {}, found: {}",
                claim.claimed(),
                claim.found()
            ));
        }
        more.extend(Some(claim.remark()).filter(|remark| !remark.is_empty()));
        let more = wrapped(&more.join("; "), "", output::columns().saturating_sub(8));
        more.iter()
            .for_each(|line| out.push_str(&format!("        {line}\n")));
    }
    let count = |verdict| {
        let of = findings
            .claims
            .iter()
            .filter(|claim| claim.verdict() == verdict);
        of.count()
    };
    out.push_str(&format!(
        "{} reproduced, {} contradicted, {} not reproducible by scheduling alone",
        count(Verdict::Reproduced),
        count(Verdict::Contradicted),
        count(Verdict::Beyond)
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

/// What there is: each with its question and its source, in lines that fit.
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

    /// Goal: the list fits a terminal and leaves nothing out. Method: 100 and 60 columns, of all that there
    /// are.
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
