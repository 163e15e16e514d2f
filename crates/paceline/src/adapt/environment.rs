//! What the environment says: so that a shipped program can be tuned on the machine at hand.
//!
//! - `PACELINE_WAIT`: what a thread without work does, as [`WaitPolicy`] reads it.
//! - `PACELINE_WORKERS`: how many workers, or `auto`.
//! - `PACELINE_CPUS`: the CPUs that workers may run on, as a list such as `0-3,8`.
//! - `PACELINE_PLACEMENT`: whether workers are held to classes of CPUs: `classes` or `free`.
//!
//! Whoever sets one of these has the machine before their eyes, which the program's author had not: they
//! win over what the program asks for. What cannot be read is an error, not a guess.

use std::ffi::OsString;

use platform::CpuSet;

use crate::adapt::place::Placement;
use crate::error::BuildError;
use crate::limits::WORKERS_MAX;
use crate::policy::WaitPolicy;

/// Where the variables are looked up; tests have their own.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// What it says about the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    pub(crate) workers: Option<WorkersAsked>,
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) placement: Option<Placement>,
}

/// A number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkersAsked {
    /// As fits the machine, whatever the program says.
    Auto,
    Exactly(usize),
}

impl Environment {
    /// That of this process.
    pub(crate) fn read() -> Result<Environment, BuildError> {
        Environment::read_from(&|name| std::env::var_os(name))
    }

    fn read_from(lookup: Lookup<'_>) -> Result<Environment, BuildError> {
        Ok(Environment {
            workers: variable(lookup, "PACELINE_WORKERS", workers)?,
            cpus: variable(lookup, "PACELINE_CPUS", cpus)?,
            placement: variable(lookup, "PACELINE_PLACEMENT", placement)?,
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

fn workers(text: &str) -> Result<WorkersAsked, String> {
    match text.parse() {
        _ if text.eq_ignore_ascii_case("auto") => Ok(WorkersAsked::Auto),
        Ok(workers) if workers <= WORKERS_MAX => Ok(WorkersAsked::Exactly(workers)),
        _ => Err(format!(
            "'{}' is no number of workers: use auto or a number from 0 to {WORKERS_MAX}",
            shortened(text)
        )),
    }
}

/// Strict, unlike [`CpuSet::parse`], which reads what a kernel wrote: a slip of a person's is to be seen.
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
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    match text {
        _ if is("classes") => Ok(Placement::Classes),
        _ if is("free") => Ok(Placement::Free),
        _ => Err(format!(
            "'{}' is no placement: use classes or free",
            shortened(text)
        )),
    }
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
            "PACELINE_PLACEMENT" => None,
            other => panic!("{other} is asked for"),
        };
        Environment::read_from(&lookup).map_err(|error| error.to_string())
    }

    /// Goal: what is meant is understood. Method: numbers, `auto`, lists, and nothing at all.
    #[test]
    fn values_are_read_as_documented() {
        let nothing = Environment::read_from(&|_| None).unwrap();
        assert_eq!(nothing, Environment::default());
        let some = read(" 3 ", "0-2, 5,5-6").unwrap();
        assert_eq!(some.workers, Some(WorkersAsked::Exactly(3)));
        let cpus = some.cpus.unwrap();
        assert!(cpus.iter().eq([0, 1, 2, 5, 6]));
        assert_eq!(read("AUTO", "0").unwrap().workers, Some(WorkersAsked::Auto));
        assert_eq!(
            read("0", "0").unwrap().workers,
            Some(WorkersAsked::Exactly(0))
        );
    }

    /// Goal: as above, for the placement. Method: both words, in any case, and slips.
    #[test]
    fn a_placement_is_one_of_two_words() {
        let read = |text: &str| {
            let lookup = |name: &str| (name == "PACELINE_PLACEMENT").then(|| text.into());
            let read = Environment::read_from(&lookup);
            read.map(|all| all.placement)
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(" Free "), Ok(Some(Placement::Free)));
        assert_eq!(read("classes"), Ok(Some(Placement::Classes)));
        for bad in ["", "freee", "none"] {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("PACELINE_PLACEMENT: "), "{error}");
            assert!(error.ends_with("use classes or free"), "{error}");
        }
    }

    /// Goal: what is not understood is one line that names the variable, what it said and what it may say.
    /// Method: slips, and something very long.
    #[test]
    fn slips_are_one_clear_line() {
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
