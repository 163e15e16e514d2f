//! Settings from the environment, so that a shipped program can be tuned on the machine at hand.
//!
//! - `PACELINE_WAIT`: what a thread without work does, as [`WaitPolicy`] reads it.
//! - `PACELINE_WORKERS`: how many workers, or `auto`.
//! - `PACELINE_CPUS`: the CPUs that workers may run on, as a list such as `0-3,8`.
//! - `PACELINE_PLACEMENT`: whether workers are held to classes of CPUs: `classes`, `little-cores-in-loops` or
//!   `free`.
//! - `PACELINE_TRACE`: the file that a trace is written to.
//!
//! A user who sets one of these variables sees the machine, which the program's author did not. So
//! variables win over the program's settings. A value that cannot be read is an error, not a guess.

use std::ffi::OsString;

use platform::CpuSet;

use crate::adapt::place::Placement;
use crate::error::BuildError;
use crate::limits::WORKERS_MAX;
use crate::policy::WaitPolicy;

/// The function that looks up a variable; tests have their own.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variables about the machine, as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    pub(crate) workers: Option<WorkersSetting>,
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) placement: Option<Placement>,
    /// The name of a file, in which `%p` is the process.
    pub(crate) trace: Option<String>,
}

/// A setting of the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkersSetting {
    /// As many as fit the machine, whatever the program says.
    Auto,
    Exactly(usize),
}

impl Environment {
    /// The environment of this process.
    pub(crate) fn read() -> Result<Environment, BuildError> {
        Environment::read_from(&|name| std::env::var_os(name))
    }

    fn read_from(lookup: Lookup<'_>) -> Result<Environment, BuildError> {
        Ok(Environment {
            workers: variable(lookup, "PACELINE_WORKERS", workers)?,
            cpus: variable(lookup, "PACELINE_CPUS", cpus)?,
            placement: variable(lookup, "PACELINE_PLACEMENT", placement)?,
            trace: variable(lookup, "PACELINE_TRACE", trace)?,
        })
    }
}

/// The wait policy that the environment asks for.
pub(crate) fn wait_policy() -> Result<Option<WaitPolicy>, BuildError> {
    let read = |text: &str| {
        let policy = text.parse::<WaitPolicy>();
        policy.map_err(|error| error.to_string())
    };
    variable(&|name| std::env::var_os(name), "PACELINE_WAIT", read)
}

fn variable<T>(
    lookup: Lookup<'_>,
    name: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, BuildError> {
    let Some(text) = lookup(name) else {
        return Ok(None);
    };
    let value = read(text.to_string_lossy().trim());
    value
        .map(Some)
        .map_err(|why| BuildError::Environment(format!("{name}: {why}")))
}

fn workers(text: &str) -> Result<WorkersSetting, String> {
    match text.parse() {
        _ if text.eq_ignore_ascii_case("auto") => Ok(WorkersSetting::Auto),
        Ok(workers) if workers <= WORKERS_MAX => Ok(WorkersSetting::Exactly(workers)),
        _ => Err(format!(
            "'{}' is no number of workers: use auto or a number from 0 to {WORKERS_MAX}",
            shortened(text)
        )),
    }
}

/// Strict, unlike [`CpuSet::parse`], which reads text of a kernel: a user should hear of a mistake.
fn cpus(text: &str) -> Result<CpuSet, String> {
    /// More CPUs than Linux can be built for.
    const CPU_MAX: u32 = 1 << 14;
    let mut set = CpuSet::new();
    let number = |text: &str| text.trim().parse().ok().filter(|&cpu: &u32| cpu < CPU_MAX);
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => {
                for cpu in first..=last {
                    set.insert(cpu);
                }
            }
            _ => {
                return Err(format!(
                    "'{}' is no list of CPUs: use numbers and ranges such as 0-3,8",
                    shortened(text)
                ));
            }
        }
    }
    Ok(set)
}

fn placement(text: &str) -> Result<Placement, String> {
    let mut words = Placement::WORDS.into_iter();
    let found = words.find(|(word, _)| text.eq_ignore_ascii_case(word));
    found.map(|(_, placement)| placement).ok_or_else(|| {
        format!(
            "'{}' is no placement: use classes, little-cores-in-loops or free",
            shortened(text)
        )
    })
}

fn trace(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(format!(
            "'{}' is no name of a file: use one such as run.pftrace, or run-%p.pftrace with the number of \
             the process",
            shortened(text)
        ));
    }
    Ok(text.to_owned())
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(workers: &str, cpus: &str) -> Result<Environment, String> {
        let lookup = |name: &str| match name {
            "PACELINE_WORKERS" => Some(workers.into()),
            "PACELINE_CPUS" => Some(cpus.into()),
            "PACELINE_PLACEMENT" | "PACELINE_TRACE" => None,
            other => panic!("{other} is asked for"),
        };
        Environment::read_from(&lookup).map_err(|error| error.to_string())
    }

    /// Goal: values are understood as they are meant. Method: numbers, `auto`, lists, and nothing at all.
    #[test]
    fn values_are_read_as_documented() {
        let nothing = Environment::read_from(&|_| None).unwrap();
        assert_eq!(nothing, Environment::default());
        let some = read(" 3 ", "0-2, 5,5-6").unwrap();
        assert_eq!(some.workers, Some(WorkersSetting::Exactly(3)));
        let cpus = some.cpus.unwrap();
        assert!(cpus.iter().eq([0, 1, 2, 5, 6]));
        assert_eq!(
            read("AUTO", "0").unwrap().workers,
            Some(WorkersSetting::Auto)
        );
        assert_eq!(
            read("0", "0").unwrap().workers,
            Some(WorkersSetting::Exactly(0))
        );
    }

    /// Goal: as above, for the placement. Method: every word, in any case, and mistakes.
    #[test]
    fn a_placement_is_one_of_three_words() {
        let read = |text: &str| {
            let lookup = |name: &str| (name == "PACELINE_PLACEMENT").then(|| text.into());
            let read = Environment::read_from(&lookup);
            read.map(|all| all.placement)
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(" Free "), Ok(Some(Placement::Free)));
        for (word, placement) in Placement::WORDS {
            assert_eq!(read(word), Ok(Some(placement)));
        }
        for bad in ["", "freee", "none"] {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("PACELINE_PLACEMENT: "), "{error}");
            for (word, _) in Placement::WORDS {
                assert!(error.contains(word), "{error}");
            }
        }
    }

    /// Goal: as above, for the file of a trace. Method: a name, and what is none.
    #[test]
    fn a_trace_goes_to_a_file() {
        let read = |text: &str| {
            let lookup = |name: &str| (name == "PACELINE_TRACE").then(|| text.into());
            let read = Environment::read_from(&lookup);
            read.map(|all| all.trace).map_err(|error| error.to_string())
        };
        assert_eq!(read(" a-%p.pftrace "), Ok(Some("a-%p.pftrace".to_owned())));
        for bad in ["", " ", "\u{fffd}.pftrace"] {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("PACELINE_TRACE: '"), "{error}");
            assert!(error.contains("use one such as run.pftrace"), "{error}");
        }
    }

    /// Goal: the error for a value that is not understood is one line with the variable, its value and the
    /// values that it may have. Method: mistakes, and a very long value.
    #[test]
    fn mistakes_are_one_clear_line() {
        let long = "9".repeat(10_000);
        for bad in ["", "-1", "1.5", "many", "1025", &long] {
            let error = read(bad, "0").unwrap_err();
            assert!(error.starts_with("PACELINE_WORKERS: "), "{error}");
            assert!(error.ends_with("use auto or a number from 0 to 1024"));
            assert!(!error.contains('\n') && error.len() < 150, "{error}");
        }
        for bad in ["", "x", "1,", "3-1", "1-", "-1", "0-99999", "0 1", &long] {
            let error = read("1", bad).unwrap_err();
            assert!(error.starts_with("PACELINE_CPUS: "), "{bad}: {error}");
            assert!(error.ends_with("such as 0-3,8") && error.len() < 150);
        }
    }
}
