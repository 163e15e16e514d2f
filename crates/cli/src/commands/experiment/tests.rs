//! All experiments, quick and simulated: which verdicts come out.

use std::collections::BTreeMap;

use super::claim::ClaimVerdict;
use super::*;

fn quick(experiment: &Experiment) -> Findings {
    let done = findings(experiment, &Effort::quick(1), None);
    done.unwrap_or_else(|failure| panic!("{}: {}", experiment.name, failure.text()))
}

/// The verdicts that are not "reproduced".
fn others(findings: &Findings) -> BTreeMap<&'static str, ClaimVerdict> {
    let all = findings
        .claims
        .iter()
        .map(|claim| (claim.id, claim.verdict()));
    all.filter(|(_, verdict)| *verdict != ClaimVerdict::Reproduced)
        .collect()
}

/// Claims about this machine on which lessons rest.
const HERE: [&str; 2] = ["000-v", "003-t"];

/// The verdicts of a quick run other than "reproduced". They are findings that were looked into.
const FOUND: &[(&Experiment, &[(&str, ClaimVerdict)])] = {
    use ClaimVerdict::{Beyond, Contradicted, Depends, Fitted, Given};
    &[
        (
            &priority_inversion::EXPERIMENT,
            &[
                ("000-a", Given),
                ("000-b", Given),
                ("000-e", Given),
                ("000-f", Given),
                ("000-g", Beyond),
                ("000-k", Beyond),
                ("000-m", Depends),
                ("000-n", Depends),
                ("000-p", Beyond),
                ("000-qb", Given),
                ("000-r", Beyond),
            ],
        ),
        (
            &job_overhead::EXPERIMENT,
            &[
                ("001-a", Fitted),
                ("001-b", Fitted),
                ("001-k", Beyond),
                ("001-oa", Beyond),
                ("001-va", Contradicted),
            ],
        ),
        (
            &sched_yield::EXPERIMENT,
            &[
                ("002-f", Contradicted),
                ("002-i", Fitted),
                ("002-j", Fitted),
                ("002-k", Fitted),
                ("002-m", Fitted),
                ("002-t", Beyond),
            ],
        ),
        (
            &rtos_priorities::EXPERIMENT,
            &[
                ("003-b", Beyond),
                ("003-d", Fitted),
                ("003-e", Fitted),
                ("003-f", Given),
                ("003-g", Fitted),
                ("003-h", Fitted),
                ("003-p", Depends),
                ("003-y", Depends),
            ],
        ),
        (
            &virtual_slice::EXPERIMENT,
            &[
                ("004-e", Contradicted),
                ("004-f", Contradicted),
                ("004-i", Depends),
                ("004-j", Depends),
                ("004-k", Beyond),
                ("004-l", Depends),
                ("004-m", Contradicted),
                ("004-n", Depends),
                ("004-o", Depends),
                ("004-q", Depends),
                ("004-r", Depends),
                ("004-s", Contradicted),
                ("004-t", Contradicted),
                ("004-u", Depends),
            ],
        ),
        (&wait_for::EXPERIMENT, &[]),
    ]
};

/// Goal: every experiment has a verdict on each of its claims, and each time the same: reproduced, not
/// reproduced, not reproducible, put in, or that it depends on what was chosen. The lessons are borne out by
/// them. Method: quick simulated runs.
#[test]
fn verdicts_are_what_was_found() {
    for (experiment, expected) in FOUND {
        let findings = quick(experiment);
        assert_eq!(
            others(&findings),
            expected.iter().copied().collect(),
            "{}",
            experiment.name
        );
        check_claims(&findings);
        check_simulated(experiment, &findings);
        check_lessons(experiment, &findings);
    }
}

/// What a claim about this machine names as its like is a claim of the simulated parts.
fn check_simulated(experiment: &Experiment, findings: &Findings) {
    let named: &[&str] = match experiment.name {
        "priority-inversion" => &priority_inversion::SIMULATED,
        "virtual-slice" => &virtual_slice::SIMULATED,
        _ => &[],
    };
    for id in named {
        assert!(findings.claims.iter().any(|claim| claim.id == *id), "{id}");
    }
}

/// Each claim has an id of its own, a text, a place, and a reason where it is not simply so.
fn check_claims(findings: &Findings) {
    let mut ids: Vec<&str> = findings.claims.iter().map(|claim| claim.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), findings.claims.len(), "ids are unique");
    for claim in &findings.claims {
        let says_why = claim.verdict() == ClaimVerdict::Reproduced || !claim.remark().is_empty();
        assert!(
            says_why && !claim.text.is_empty() && !claim.place.is_empty(),
            "{}",
            claim.id
        );
    }
    assert!(!findings.tables.is_empty() && !findings.plots.is_empty());
}

/// The lessons are borne out by the claims, but for those that rest on the machine at hand.
fn check_lessons(experiment: &Experiment, findings: &Findings) {
    for lesson in experiment.learnt {
        let about_here = lesson.rests_on.iter().any(|(id, _)| HERE.contains(id));
        // What hangs on a chosen value shows only where that is varied.
        let varied = |(_, verdict): &(_, ClaimVerdict)| *verdict == ClaimVerdict::Depends;
        let is_of_varied = lesson.rests_on.iter().any(varied);
        let told = lesson.told(findings);
        assert!(
            told.is_some() || about_here || is_of_varied,
            "not borne out: {}",
            lesson.text
        );
        assert!(
            told.is_none_or(|told| !told.contains('{')),
            "{}",
            lesson.text
        );
    }
}
