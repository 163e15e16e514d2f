//! An experiment's findings on standard output: for people, and as one object.

use serde_json::{Value, json};

use super::Experiment;
use super::claim::{By, Verdict};
use super::findings::Findings;
use super::lab::Effort;
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
        let more = wrapped(&more.join("; "), output::columns().saturating_sub(8));
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

/// A text in lines that are not longer than this, unless a word is.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: texts are broken between words, and every word is kept. Method: a width with a word beyond it.
    #[test]
    fn texts_are_broken_between_words() {
        let lines = wrapped("a few words, one unbreakable", 8);
        assert_eq!(lines, ["a few", "words,", "one", "unbreakable"]);
    }
}
