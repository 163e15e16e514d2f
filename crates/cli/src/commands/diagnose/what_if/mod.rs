//! `--what-if` and `--program`: a recording run again, as it was and with a change.
//!
//! [`study`] runs, [`report`] says what came out, [`mod@file`] writes the program.

mod file;
mod gains;
mod json;
#[cfg(test)]
mod made;
mod masks;
mod remedies;
mod report;
mod study;
mod urgency;

use console::{Failure, output};

use super::arguments::DiagnoseArguments;
use crate::commands::accounts::Account;
use crate::commands::simulate::library;
pub(super) use gains::say_gains;
use study::Study;

/// Whether the options ask for it.
pub(super) fn is_asked(arguments: &DiagnoseArguments) -> bool {
    !arguments.what_if.is_empty() || arguments.try_remedies || arguments.program.is_some()
}

/// Checks the names that are given for replays.
///
/// # Errors
/// If there is no such policy or machine.
pub(super) fn check_names(arguments: &DiagnoseArguments) -> Result<(), Failure> {
    if let Some(machine) = &arguments.machine {
        library::machine(machine).map_err(|why| Failure::Usage(format!("--machine: {why}")))?;
    }
    if let Some(policy) = &arguments.policy {
        replay::check_policy(policy).map_err(|why| Failure::Usage(format!("--policy: {why}")))?;
    }
    Ok(())
}

/// Runs the recording again, and says what the changes would have been worth.
///
/// # Errors
/// Exit code 1 if no wait's replay is near enough to the recording to answer; 2 if a change cannot be.
pub(super) fn run(arguments: &DiagnoseArguments, account: &Account) -> Result<(), Failure> {
    let mut study = Study::new(arguments, account)?;
    if let Some(path) = &arguments.program {
        file::write(path, &arguments.trace, &study.program)?;
        if arguments.what_if.is_empty() && !arguments.try_remedies {
            let text = file::told(path, &study.program);
            return output::print(text);
        }
    }
    study.try_changes(arguments)?;
    if arguments.try_remedies {
        remedies::try_all(&mut study);
    }
    output::print(if arguments.json {
        output::json(&json::json(&study, arguments))?
    } else {
        report::text(&study, output::columns())
    })?;
    if study.is_answered() {
        return Ok(());
    }
    Err(Failure::failed(
        "--what-if: no wait that was asked about replays within 10 % of the recording, so there is no \
         answer; see what differs, or choose waits with --slice and --thread",
    ))
}
