//! What the remedies that `diagnose` names are worth, beside its findings.
//!
//! A replay takes about as long as it takes to read the recording. So that the findings do not wait for many
//! of them, all replays together have no more than [`EVENTS_MAX`] events. Which remedies are tried depends on
//! the recording alone, not on how fast this machine is. Each is run [`DRAWS`] times: a figure of one draw
//! may be chance. Where few waits replay well there are no figures.

use std::collections::BTreeMap;

use console::Failure;
use replay::Change;
use trace::explain::Inversion;

use super::super::arguments::DiagnoseArguments;
use super::remedies::as_change;
use super::report::losers;
use super::study::{POLICIES, Study, Tried};
use crate::commands::accounts::{Account, Gain, Gains};

/// The scheduler events of all replays together: some 1.5 million in a second.
const EVENTS_MAX: usize = 3_000_000;
/// How many times each replay is run, with other delays of the kernel's ticks.
const DRAWS: usize = 3;
/// The part of the long waits that has to replay well: one in so many.
const WELL_MIN: usize = 4;
/// How many changes are tried.
const CHANGES_MAX: usize = 6;

/// Has the account say what the remedies of its inversions are worth.
///
/// # Errors
/// If the options that were given for replays do not fit the recording.
pub(in crate::commands::diagnose) fn say_gains(
    arguments: &DiagnoseArguments,
    account: &mut Account,
) -> Result<(), Failure> {
    let gains = match gains(arguments, account) {
        Ok(gains) => gains,
        Err(why) if arguments.policy.is_some() || arguments.machine.is_some() => return Err(why),
        Err(why) => Gains::none(why.text()),
    };
    account.set_gains(gains);
    Ok(())
}

fn gains(arguments: &DiagnoseArguments, account: &Account) -> Result<Gains, Failure> {
    let told = account.told_inversions();
    if told.is_empty() || !account.timeline.says_who_ran() {
        return Ok(Gains::default());
    }
    let recording = account.timeline.recording();
    let events = recording.kernel.len().max(1);
    let first = match recording.origin.kernel {
        None if arguments.policy.is_none() => POLICIES.len() + DRAWS,
        _ => DRAWS,
    };
    let replays = (EVENTS_MAX / events).saturating_sub(first);
    let changes = (replays / DRAWS).min(CHANGES_MAX);
    if changes == 0 {
        return Ok(Gains::none(format!(
            "replays of {events} scheduler events take too long beside a report; --try-remedies runs them"
        )));
    }
    let study = Study::beside_findings(arguments, account, DRAWS as u64)?;
    let (well, all) = (study.answered().count(), study.asked.len());
    if well * WELL_MIN < all {
        return Ok(Gains::none(match all {
            1 => "the long wait does not replay within 10 % of the recording".to_owned(),
            all => format!("{well} of {all} long waits replay within 10 % of the recording"),
        }));
    }
    Ok(tried(&study, &told, changes))
}

/// Tries the remedies of inversions, so many different changes at most.
fn tried(study: &Study<'_>, told: &[&Inversion], changes: usize) -> Gains {
    let mut gains = Gains::default();
    let mut tried: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for &inversion in told {
        for remedy in &inversion.remedies {
            let Some(text) = as_change(study, inversion, *remedy) else {
                continue;
            };
            let count = tried.len();
            let is_new = !tried.contains_key(&text);
            if is_new && count >= changes {
                continue;
            }
            let at = *tried.entry(text.clone()).or_insert_with(|| {
                // A remedy that cannot be played (a lock that inherits already) has no figure.
                let change = Change::parse(&text).ok()?;
                let tried = study.try_change(&change).ok()?;
                Some(gains.tried(gain(study, &tried)))
            });
            if let Some(at) = at {
                gains.add(inversion, *remedy, at);
            }
        }
    }
    gains
}

/// What a change is worth.
fn gain(study: &Study<'_>, tried: &Tried) -> Gain {
    // What does not end in a draw takes that long at least.
    let end = study.program.until();
    let waits = study.answered().filter_map(|asked| {
        let at = asked.at;
        tried.trials.waits[at]?;
        let draws = study.before.draws[at].iter().zip(&tried.trials.draws[at]);
        let draws = draws.map(|(was, with)| [was.unwrap_or(end), with.unwrap_or(end)]);
        Some((at, draws.collect()))
    });
    Gain {
        text: tried.text.clone(),
        waits: waits.collect(),
        less_cpu_time: losers(study, tried),
    }
}
