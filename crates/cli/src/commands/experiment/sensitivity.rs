//! `--sensitivity`: every value that was only chosen is another one, one at a time, and so are the seeds; a
//! claim has to hold in all of them.
//!
//! Nobody says which claims hang on which values: a part of an experiment is run again with each value, and
//! a claim hangs on those that change what was measured. So none can be left out.
//!
//! Each of these runs is a process of its own, of this program ([`of_a_process`]): a simulated thread that
//! has not ended when its run is over leaves its stack behind for as long as the process lives, and there
//! are very many.

use std::collections::BTreeMap;
use std::process::Stdio;

use console::Failure;
use measure::Spread;
use serde_json::Value;

use super::article::{Experiment, ExperimentPart};
use super::chosen::{ChosenValue, ValueSet};
use super::claim::{Claim, Outcome, short};
use super::findings::Findings;
use super::lab::{self, Effort};
use crate::program;

/// The seed as something that was chosen.
pub(super) const SEED: &str = "seed";

/// What came of the claims of a part, by their ids.
type Outcomes = BTreeMap<String, Outcome>;

/// A part of an experiment, run with one value that is not the chosen one.
pub(super) struct OtherRun {
    /// The part's place in its experiment.
    part: usize,
    /// The value's name and what it is; none in the run that the others are compared with.
    other: Option<(&'static str, String)>,
    effort: Effort,
}

/// Varies what was only chosen in the experiment, and adds to each claim what came of it then. `run` runs a
/// part.
///
/// # Errors
/// A run failed: the message says with which value.
pub(super) fn vary(
    experiment: &Experiment,
    effort: &Effort,
    findings: &mut Findings,
    run: &(dyn Fn(&Experiment, &OtherRun) -> Result<Outcomes, Failure> + Sync),
) -> Result<(), Failure> {
    let parts = experiment.parts.iter().enumerate();
    let runs = parts.flat_map(|(place, part)| others(place, part, effort));
    let runs: Vec<OtherRun> = runs.collect();
    let outcomes = lab::each("settings", &runs, |other| {
        run(experiment, other).map_err(|failure| {
            let (name, setting) = other.other.clone().unwrap_or_default();
            let with = format!("experiment {}, {name} {setting}", experiment.name);
            Failure::failed(format!("{with}: {}", failure.text()))
        })
    })?;
    let (mut as_chosen, mut varied) = (Outcomes::new(), Vec::new());
    for (run, outcomes) in runs.iter().zip(outcomes) {
        match &run.other {
            None => as_chosen.extend(outcomes),
            Some((value, setting)) => varied.push((*value, setting.as_str(), outcomes)),
        }
    }
    for claim in &mut findings.claims {
        add(claim, &as_chosen, &varied);
    }
    findings.is_varied = true;
    Ok(())
}

/// Adds what came of the claim with each value that it hangs on.
fn add(claim: &mut Claim, as_chosen: &Outcomes, varied: &[(&'static str, &str, Outcomes)]) {
    let as_chosen = as_chosen.get(claim.id);
    let others: Vec<(&'static str, &str, &Outcome)> = varied
        .iter()
        .filter_map(|(value, setting, outcomes)| Some((*value, *setting, outcomes.get(claim.id)?)))
        .collect();
    for &(value, setting, outcome) in &others {
        let mut of_value = others.iter().filter(|(name, ..)| *name == value);
        if of_value.any(|(_, _, other)| Some(*other) != as_chosen) {
            claim.vary(value, setting, outcome);
        }
    }
}

/// The run of a part with the chosen values, and those with other values and seeds.
fn others(place: usize, part: &ExperimentPart, effort: &Effort) -> Vec<OtherRun> {
    let effort = Effort {
        quick: effort.quick || part.is_varied_quickly,
        real: false,
        ..*effort
    };
    let run = |other, effort| OtherRun {
        part: place,
        other,
        effort,
    };
    let set = |value: &'static ChosenValue, number| {
        let set = Some(ValueSet {
            name: value.name,
            number,
        });
        let other = Some((value.name, value.words(number)));
        run(other, Effort { set, ..effort })
    };
    let values = part.values.iter().flat_map(|value| {
        let others = value.others.iter();
        others.map(move |&number| set(value, number))
    });
    let seeds = (1..=part.seeds).map(|more| {
        let seed = effort.seed.wrapping_add(more);
        run(Some((SEED, seed.to_string())), Effort { seed, ..effort })
    });
    let others: Vec<OtherRun> = values.chain(seeds).collect();
    let as_chosen = (!others.is_empty()).then(|| run(None, effort));
    as_chosen.into_iter().chain(others).collect()
}

/// What was measured over all seeds, in words: "over 8 seeds: median 0.9, 0.83 to 1.1". Nothing if they were
/// not varied, or do not change it.
pub(super) fn over_seeds(claim: &Claim) -> Option<String> {
    let measured = claim.measured_with(SEED);
    let Spread {
        median, min, max, ..
    } = Spread::of(&measured)?;
    let [median, min, max] = [median, min, max].map(short);
    let seeds = measured.len();
    Some(format!(
        "over {seeds} seeds: median {median}, {min} to {max}"
    ))
}

/// Runs a part in another process of this program, and reads what it says.
pub(super) fn of_a_process(experiment: &Experiment, run: &OtherRun) -> Result<Outcomes, Failure> {
    let cannot =
        |what: &dyn std::fmt::Display| Failure::failed(format!("the process that runs it: {what}"));
    let mut command = program::once_more().map_err(|error| cannot(&error))?;
    command.args(["experiment", experiment.name, "--sim", "--json"]);
    command.args(["--part", &run.part.to_string()]);
    command.args(["--seed", &run.effort.seed.to_string()]);
    if let Some(set) = run.effort.set {
        command.args(["--set", &format!("{}={}", set.name, set.number)]);
    }
    if run.effort.quick {
        command.arg("--quick");
    }
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| cannot(&error))?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| cannot(&String::from_utf8_lossy(&output.stderr).trim()))?;
    outcomes_of_json(&said).ok_or_else(|| cannot(&"it says nothing of its claims"))
}

/// The claims of `--json`.
fn outcomes_of_json(said: &Value) -> Option<Outcomes> {
    let measured = said["claims"].as_array()?.iter();
    let measured = measured.filter(|claim| !claim["claimed"].is_null());
    let outcome = |claim: &Value| {
        let outcome = Outcome {
            claimed: claim["claimed"].as_str()?.to_owned(),
            got: claim["got"].as_f64(),
            holds: claim["holds"].as_bool()?,
        };
        Some((claim["id"].as_str()?.to_owned(), outcome))
    };
    measured.map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::super::chosen::ValueUnit;
    use super::super::claim::{ClaimVerdict, Expect};
    use super::*;

    const SLICE: ChosenValue = ChosenValue {
        name: "slice",
        about: "how long",
        unit: ValueUnit::Millis,
        chosen: 2.0,
        others: &[1.0, 4.0],
        why: "a round number",
    };
    const UNUSED: ChosenValue = ChosenValue {
        name: "unused",
        ..SLICE
    };
    const PART: ExperimentPart = ExperimentPart {
        run: |effort, findings| {
            let of = |id, got| Claim::source(id, "so", "there").is(Expect::AtLeast(2.0), got, "");
            let quick = if effort.quick { 10.0 } else { 0.0 };
            findings.claims.extend([
                of("slice", effort.value(&SLICE)),
                of("seed", effort.seed as f64 + quick),
                of("nothing", 3.0),
            ]);
            Ok(())
        },
        values: &[&SLICE, &UNUSED],
        seeds: 9,
        is_varied_quickly: false,
    };

    /// Runs a part here, and has it say what came of it as a process does.
    fn here(experiment: &Experiment, run: &OtherRun) -> Result<Outcomes, Failure> {
        let mut findings = Findings::default();
        (experiment.parts[run.part].run)(&run.effort, &mut findings)?;
        let claims: Vec<Value> = findings.claims.iter().map(Claim::json).collect();
        let said = serde_json::json!({ "claims": claims });
        Ok(outcomes_of_json(&said).expect("every claim says what came of it"))
    }

    fn claims(part: ExperimentPart) -> Vec<Claim> {
        let parts: &'static [ExperimentPart] = Box::leak(Box::new([part]));
        let experiment = Experiment {
            parts,
            ..super::super::rtos_priorities::EXPERIMENT
        };
        let effort = Effort {
            quick: false,
            ..Effort::quick(1)
        };
        let mut findings = Findings::default();
        (parts[0].run)(&effort, &mut findings).expect("it never fails");
        vary(&experiment, &effort, &mut findings, &here).expect("it never fails");
        findings.claims
    }

    /// Goal: a claim hangs on the values that change its measurement and on no others, and is measured with
    /// each of them. Method: a made-up part with a claim on a value, one on the seed, and one on nothing.
    #[test]
    fn claims_hang_on_what_changes_them() {
        let claims = claims(PART);
        let hangs = |claim: &Claim| claim.values().collect::<Vec<_>>();
        assert_eq!(hangs(&claims[0]), ["slice"]);
        assert_eq!(hangs(&claims[1]), [SEED]);
        assert_eq!(hangs(&claims[2]), [""; 0]);
        let verdicts = claims.iter().map(Claim::verdict).collect::<Vec<_>>();
        let expected = [
            ClaimVerdict::Depends,
            ClaimVerdict::Reproduced,
            ClaimVerdict::Reproduced,
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(
            (claims[0].with("slice").holds, claims[0].with("slice").of),
            (2, 3)
        );
        assert_eq!(
            (claims[1].with(SEED).holds, claims[1].with(SEED).of),
            (9, 10)
        );
        let over = claims.iter().map(over_seeds).collect::<Vec<_>>();
        let seeds = Some("over 10 seeds: median 5.5, 1 to 10".to_owned());
        assert_eq!(over, [None, seeds, None]);
    }

    /// Goal: where other values are tried in quick runs, being quick is not taken for one of them. Method:
    /// the same part, varied quickly: the claim on the seed is another one in every quick run.
    #[test]
    fn a_quick_run_is_no_other_value() {
        let claims = claims(ExperimentPart {
            is_varied_quickly: true,
            ..PART
        });
        assert_eq!(claims[1].values().collect::<Vec<_>>(), [SEED]);
        assert_eq!(claims[2].values().count(), 0);
    }

    /// Goal: a run that fails is a failure that says with which value. Method: a part that fails with one.
    #[test]
    fn a_failure_names_the_value() {
        let part = ExperimentPart {
            run: |effort, _| match effort.value(&SLICE) {
                4.0 => Err(Failure::failed("it did not end")),
                _ => Ok(()),
            },
            ..PART
        };
        let parts: &'static [ExperimentPart] = Box::leak(Box::new([part]));
        let experiment = Experiment {
            parts,
            ..super::super::rtos_priorities::EXPERIMENT
        };
        let effort = Effort {
            quick: false,
            ..Effort::quick(1)
        };
        let failed = vary(&experiment, &effort, &mut Findings::default(), &here).unwrap_err();
        let text = failed.text();
        assert!(text.ends_with("slice 4 ms: it did not end"), "{text}");
    }
}
