//! What the remedies that `diagnose` names are worth, beside its findings.
//!
//! A replay takes about as long as it takes to read the recording. So that the findings do not wait for many
//! of them, all replays together have no more than [`EVENTS_MAX`] events. Which remedies are tried depends on
//! the recording alone, not on how fast this machine is.

use std::collections::BTreeMap;

use console::Failure;
use replay::Change;

use super::super::arguments::DiagnoseArguments;
use super::remedies::as_change;
use super::report::losers;
use super::study::{POLICIES, Study, Tried};
use crate::commands::accounts::{Account, Gain, Gains};

/// The scheduler events of all replays together: some 1.5 million in a second.
const EVENTS_MAX: usize = 1_500_000;
/// How many changes are tried.
const CHANGES_MAX: usize = 6;

/// Has the account say what the remedies of its inversions are worth.
pub(in crate::commands::diagnose) fn say_gains(
    arguments: &DiagnoseArguments,
    account: &mut Account,
) {
    let gains = gains(arguments, account);
    account.set_gains(gains.unwrap_or_else(Gains::none));
}

fn gains(arguments: &DiagnoseArguments, account: &Account) -> Result<Gains, String> {
    let mut gains = Gains::default();
    let told = account.told_inversions();
    if told.is_empty() || !account.timeline.says_who_ran() {
        return Ok(gains);
    }
    let recording = account.timeline.recording();
    let events = recording.kernel.len().max(1);
    let first = match recording.origin.kernel {
        None if arguments.policy.is_none() => POLICIES.len(),
        _ => 1,
    };
    let changes = (EVENTS_MAX / events).saturating_sub(first).min(CHANGES_MAX);
    if changes == 0 {
        return Err(format!(
            "replays of {events} scheduler events take too long beside a report; --try-remedies runs them"
        ));
    }
    let study = Study::beside_findings(arguments, account).map_err(Failure::text)?;
    let mut tried: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for inversion in told {
        for remedy in &inversion.remedies {
            let Some(text) = as_change(&study, inversion, *remedy) else {
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
                Some(gains.tried(gain(&study, &tried)))
            });
            if let Some(at) = at {
                gains.add(inversion, *remedy, at);
            }
        }
    }
    Ok(gains)
}

/// What a change is worth.
fn gain(study: &Study<'_>, tried: &Tried) -> Gain {
    let answered = study.asked.iter().filter(|asked| asked.refused.is_none());
    let waits = answered.filter_map(|asked| {
        let (was, with) = (asked.replayed?.median, tried.trials.waits[asked.at]?.median);
        Some((asked.at, [was, with]))
    });
    Gain {
        text: tried.text.clone(),
        waits: waits.collect(),
        less_cpu_time: losers(study, tried),
    }
}
