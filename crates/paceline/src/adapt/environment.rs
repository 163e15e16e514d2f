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
//!
//! A user who sets one of these variables sees the machine, which the program's author did not. So
//! variables win over the program's settings. A value that cannot be read is an error, not a guess.
//! `PACELINE_CPUS` and `PACELINE_PLACEMENT` are for what is behind the door, which reads them or refuses
//! them.

use std::ffi::OsString;

use event::Nanos;
use platform::Signal;

use crate::error::BuildError;
use crate::limits::WORKERS_MAX;
use crate::policy::WaitPolicy;

/// The function that looks up a variable; tests have their own.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Looks up a variable of this process.
pub(super) fn of_process(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// A setting of the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkersSetting {
    /// As many as fit the machine, whatever the program says.
    Auto,
    Exactly(usize),
}

/// When the job system makes reports by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StuckSetting {
    /// When a wait has lasted that long.
    pub(crate) after: Option<Nanos>,
    /// When this signal comes.
    pub(crate) signal: Option<Signal>,
}

/// The number of workers that the environment asks for.
pub(crate) fn workers() -> Result<Option<WorkersSetting>, BuildError> {
    variable(&of_process, "PACELINE_WORKERS", &read_workers)
}

/// The name of the file that the environment asks for a trace in. `%p` in it is the number of the process.
pub(crate) fn trace() -> Result<Option<String>, BuildError> {
    variable(&of_process, "PACELINE_TRACE", &read_trace)
}

/// When the environment asks for reports, whatever the program says.
pub(crate) fn stuck() -> Result<Option<StuckSetting>, BuildError> {
    variable(&of_process, "PACELINE_STUCK", &read_stuck)
}

/// The wait policy that the environment asks for.
pub(crate) fn wait_policy() -> Result<Option<WaitPolicy>, BuildError> {
    let read = |text: &str| {
        let policy = text.parse::<WaitPolicy>();
        policy.map_err(|error| error.to_string())
    };
    variable(&of_process, "PACELINE_WAIT", &read)
}

pub(super) fn variable<T>(
    lookup: Lookup<'_>,
    name: &str,
    read: &dyn Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, BuildError> {
    let Some(text) = lookup(name) else {
        return Ok(None);
    };
    let value = read(text.to_string_lossy().trim());
    value
        .map(Some)
        .map_err(|why| BuildError::Environment(format!("{name}: {why}")))
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

fn read_trace(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(format!(
            "'{}' is no name of a file: use one such as run.pftrace, or run-%p.pftrace with the number of \
             the process",
            shortened(text)
        ));
    }
    Ok(text.to_owned())
}

fn read_stuck(text: &str) -> Result<StuckSetting, String> {
    let mut setting = StuckSetting::default();
    if text.eq_ignore_ascii_case("off") {
        return Ok(setting);
    }
    for part in text.split(',').map(str::trim) {
        if let (Ok(signal), None) = (part.parse(), setting.signal) {
            setting.signal = Some(signal);
        } else if let (Some(time), None) = (read_time(part), setting.after) {
            setting.after = Some(time);
        } else {
            return Err(format!(
                "'{}' says not when to report: use a time such as 500ms or 5s, a signal (quit, usr1, usr2), \
                 both such as 5s,quit, or off",
                shortened(text)
            ));
        }
    }
    Ok(setting)
}

/// A length of time that is not zero.
fn read_time(text: &str) -> Option<Nanos> {
    let word = text.to_ascii_lowercase();
    let units = [("ms", 1), ("s", 1_000), ("min", 60_000)];
    let mut numbers = units.into_iter().filter_map(|(unit, millis)| {
        let digits = word.strip_suffix(unit)?.trim_end();
        digits.parse::<u64>().ok()?.checked_mul(millis)
    });
    let millis = numbers.next().filter(|millis| *millis > 0)?;
    Some(Nanos::from_millis(millis))
}

pub(super) fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
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

    /// Goal: as above, for the file of a trace. Method: a name, and what is none.
    #[test]
    fn a_trace_goes_to_a_file() {
        let read = |text: &str| {
            let lookup = |name: &str| (name == "PACELINE_TRACE").then(|| text.into());
            let read = variable(&lookup, "PACELINE_TRACE", &read_trace);
            read.map_err(|error| error.to_string())
        };
        assert_eq!(read(" a-%p.pftrace "), Ok(Some("a-%p.pftrace".to_owned())));
        for bad in ["", " ", "\u{fffd}.pftrace"] {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("PACELINE_TRACE: '"), "{error}");
            assert!(error.contains("use one such as run.pftrace"), "{error}");
        }
    }

    /// Goal: as above, for reports. Method: times in each unit, each signal, both in either order, `off`; and
    /// mistakes, among them two of a kind.
    #[test]
    fn reports_have_a_time_or_a_signal_or_both() {
        let read = |text: &str| {
            let lookup = |name: &str| (name == "PACELINE_STUCK").then(|| text.into());
            let read = variable(&lookup, "PACELINE_STUCK", &read_stuck);
            read.map(|setting| setting.expect("it is set"))
                .map_err(|error| error.to_string())
        };
        let of = |after, signal| Ok(StuckSetting { after, signal });
        let millis = |millis| Some(Nanos::from_millis(millis));
        assert_eq!(read(" 5s "), of(millis(5_000), None));
        assert_eq!(read("250 MS"), of(millis(250), None));
        assert_eq!(read("2min"), of(millis(120_000), None));
        assert_eq!(read("off"), of(None, None));
        for (name, signal) in Signal::ALL {
            let both = of(millis(1_000), Some(signal));
            assert_eq!(read(name), of(None, Some(signal)));
            assert_eq!(read(&format!("1s, sig{name}")), both);
            assert_eq!(read(&format!("{name},1s")), both);
        }
        let long = "9".repeat(10_000);
        let mistakes = [
            "",
            "5",
            "0s",
            "-1s",
            "1h",
            "1s,",
            "1s,2s",
            "quit,usr1",
            "kill",
            "off,1s",
        ];
        for bad in mistakes.into_iter().chain([&long[..]]) {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("PACELINE_STUCK: '"), "{bad}: {error}");
            assert!(error.ends_with("both such as 5s,quit, or off"), "{error}");
            assert!(!error.contains('\n') && error.len() < 180, "{error}");
        }
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
