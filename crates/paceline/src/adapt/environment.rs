//! Settings from the environment, so that a shipped program can be tuned on the machine at hand.
//!
//! - `PACELINE_WAIT`: what a thread without work does, as [`WaitPolicy`] reads it.
//! - `PACELINE_WORKERS`: how many workers, or `auto`.
//! - `PACELINE_CPUS`: the CPUs that workers may run on, as a list such as `0-3,8`.
//! - `PACELINE_PLACEMENT`: whether workers are held to classes of CPUs: `classes`, `little-cores-in-loops` or
//!   `free`.
//! - `PACELINE_TRACE`: the file that a trace is written to.
//! - `PACELINE_STUCK`: when the job system reports what it is doing: the time after which a wait is reported,
//!   such as `5s`; a signal, such as `quit`; both, with a comma; or `off`.
//! - `PACELINE_HINTS`: where the scheduler listens that hears hints (crate `hint` reads it).
//!
//! A user who sets one of these variables sees the machine, which the program's author did not. So
//! variables win over the program's settings. A value that cannot be read is an error, not a guess.
//! `PACELINE_CPUS` and `PACELINE_PLACEMENT` are for what is behind the door, which reads them or refuses
//! them; `PACELINE_STUCK` is for the part that makes reports, in the same way.

use std::ffi::OsString;

use crate::error::BuildError;
use crate::limits::WORKERS_MAX;
use crate::policy::WaitPolicy;

/// The function that looks up a variable; tests have their own.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Looks up a variable of this process.
pub(crate) fn of_process(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// A setting of the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkersSetting {
    /// As many as fit the machine, whatever the program says.
    Auto,
    Exactly(usize),
}

/// The number of workers that the environment asks for.
pub(crate) fn workers() -> Result<Option<WorkersSetting>, BuildError> {
    variable(&of_process, "PACELINE_WORKERS", &read_workers)
}

/// The wait policy that the environment asks for.
pub(crate) fn wait_policy() -> Result<Option<WaitPolicy>, BuildError> {
    let read = |text: &str| {
        let policy = text.parse::<WaitPolicy>();
        policy.map_err(|error| format!("{error}"))
    };
    variable(&of_process, "PACELINE_WAIT", &read)
}

pub(crate) fn variable<T>(
    lookup: Lookup<'_>,
    name: &str,
    read: &dyn Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, BuildError> {
    match text_of(lookup, name).as_deref().map(read) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(why)) => Err(unreadable(name, &why)),
    }
}

#[inline(never)]
fn text_of(lookup: Lookup<'_>, name: &str) -> Option<String> {
    let text = lookup(name)?;
    Some(text.to_string_lossy().trim_ascii().to_owned())
}

#[cold]
fn unreadable(name: &str, why: &str) -> BuildError {
    BuildError::Environment(format!("{name}: {why}"))
}

fn read_workers(text: &str) -> Result<WorkersSetting, String> {
    match text.parse() {
        _ if text.eq_ignore_ascii_case("auto") => Ok(WorkersSetting::Auto),
        Ok(workers) if workers <= WORKERS_MAX => Ok(WorkersSetting::Exactly(workers)),
        _ => Err(format!(
            "'{}' is no number of workers: use auto or a number from 0 to {WORKERS_MAX}",
            shortened(text)
        )),
    }
}

/// The beginning of a text, for an error that quotes it.
pub(crate) fn shortened(text: &str) -> &str {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<WorkersSetting>, String> {
        let lookup = |name: &str| (name == "PACELINE_WORKERS").then(|| text.into());
        let read = variable(&lookup, "PACELINE_WORKERS", &read_workers);
        read.map_err(|error| error.to_string())
    }

    /// Goal: values are understood as they are meant. Method: numbers, `auto`, and nothing at all.
    #[test]
    fn values_are_read_as_documented() {
        let nothing = variable(&|_| None, "PACELINE_WORKERS", &read_workers).unwrap();
        assert_eq!(nothing, None);
        assert_eq!(read(" 3 "), Ok(Some(WorkersSetting::Exactly(3))));
        assert_eq!(read("AUTO"), Ok(Some(WorkersSetting::Auto)));
        assert_eq!(read("0"), Ok(Some(WorkersSetting::Exactly(0))));
    }

    /// Goal: the error for a value that is not understood is one line with the variable, its value and the
    /// values that it may have. Method: mistakes, and a very long value.
    #[test]
    fn mistakes_are_one_clear_line() {
        let long = "9".repeat(10_000);
        for bad in ["", "-1", "1.5", "many", "1025", &long] {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("PACELINE_WORKERS: "), "{error}");
            assert!(error.ends_with("use auto or a number from 0 to 1024"));
            assert!(!error.contains('\n') && error.len() < 150, "{error}");
        }
    }
}
