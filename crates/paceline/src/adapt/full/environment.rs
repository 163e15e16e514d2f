//! The environment's settings about the machine.

use platform::CpuSet;

use crate::adapt::environment::{Lookup, of_process, shortened, variable};
use crate::adapt::placement::Placement;
use crate::error::BuildError;

/// The variables about the machine, as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    pub(super) cpus: Option<CpuSet>,
    pub(super) placement: Option<Placement>,
}

impl Environment {
    /// The environment of this process.
    pub(super) fn read() -> Result<Environment, BuildError> {
        Environment::read_from(&of_process)
    }

    fn read_from(lookup: Lookup<'_>) -> Result<Environment, BuildError> {
        Ok(Environment {
            cpus: variable(lookup, "PACELINE_CPUS", &cpus)?,
            placement: variable(lookup, "PACELINE_PLACEMENT", &placement)?,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cpus: &str) -> Result<Environment, String> {
        let lookup = |name: &str| (name == "PACELINE_CPUS").then(|| cpus.into());
        Environment::read_from(&lookup).map_err(|error| error.to_string())
    }

    /// Goal: lists are understood as they are meant. Method: numbers, ranges, and nothing at all.
    #[test]
    fn lists_are_read_as_documented() {
        let nothing = Environment::read_from(&|_| None).unwrap();
        assert_eq!(nothing, Environment::default());
        let cpus = read("0-2, 5,5-6").unwrap().cpus.unwrap();
        assert!(cpus.iter().eq([0, 1, 2, 5, 6]));
    }

    /// Goal: a placement is understood as it is meant. Method: every word, in any case, and mistakes.
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

    /// Goal: the error for a list that is not understood is one line with the variable, its value and what
    /// it may be. Method: mistakes, and a very long value.
    #[test]
    fn mistakes_are_one_clear_line() {
        let long = "9".repeat(10_000);
        for bad in ["", "x", "1,", "3-1", "1-", "-1", "0-99999", "0 1", &long] {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("PACELINE_CPUS: "), "{bad}: {error}");
            assert!(error.ends_with("such as 0-3,8") && error.len() < 150);
        }
    }
}
