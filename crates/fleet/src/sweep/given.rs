//! Sweeps as they are written: lists, or one of a thing.

use serde::Deserialize;

use super::Sweep;
use crate::FleetError;

/// The most points of a sweep: their keys are in memory.
const POINTS_MAX: usize = 20_000_000;

/// A table as it is given. What is left out is what the scenario says, and seed 1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepTable {
    scenario: OneOrMany<String>,
    machine: Option<OneOrMany<String>>,
    policy: Option<OneOrMany<String>>,
    workers: Option<OneOrMany<u32>>,
    hints: Option<OneOrMany<bool>>,
    seed: Option<OneOrMany<Seeds>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    fn list(self) -> Vec<T> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

/// A seed, or a range of them: `"1-1000"`, both ends included.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seeds {
    One(u64),
    Range(String),
}

impl Seeds {
    fn add_to(&self, seeds: &mut Vec<u64>) -> Result<(), FleetError> {
        let text = match self {
            Seeds::One(seed) => {
                seeds.push(*seed);
                return Ok(());
            }
            Seeds::Range(text) => text,
        };
        let ends = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let range = number(ends.0)
            .zip(number(ends.1))
            .filter(|(first, last)| first <= last);
        let Some((first, last)) = range else {
            return Err(FleetError::input(format!(
                "seed = {text:?}: give a number, or a range such as \"1-1000\""
            )));
        };
        if last - first >= POINTS_MAX as u64 {
            return Err(too_many(last - first));
        }
        seeds.extend(first..=last);
        Ok(())
    }
}

fn too_many(count: impl std::fmt::Display) -> FleetError {
    FleetError::input(format!(
        "a sweep of {count} points; give at most {POINTS_MAX}, in several data sets if need be"
    ))
}

impl Sweep {
    /// Reads a sweep in TOML: `scenario`, and what is to be varied of `machine`, `policy`, `workers`,
    /// `hints` and `seed`, each one value or a list; `seed` may be a range, `"1-1000"`. `name` is the file's
    /// in errors.
    ///
    /// # Errors
    /// If it is no TOML, has other keys or other values, or too many points.
    ///
    /// ```
    /// use paceline_fleet::Sweep;
    /// let sweep = Sweep::parse("a.toml", r#"
    ///     scenario = "galaxy-s22-inversion"
    ///     policy = ["eevdf-6.6", "eevdf-6.18"]
    ///     seed = "1-1000"
    /// "#)?;
    /// assert_eq!(sweep.len(), 2000);
    /// # Ok::<(), paceline_fleet::FleetError>(())
    /// ```
    pub fn parse(name: &str, text: &str) -> Result<Sweep, FleetError> {
        let table: SweepTable = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let place = line.map_or(String::new(), |line| format!(" line {line}:"));
            let what = error.message().replace('\n', " ");
            FleetError::input(format!(
                "{name}:{place} {what}; give scenario, and machine, policy, workers, hints or seed, each one \
                 value or a list"
            ))
        })?;
        Sweep::of(table).map_err(|why| FleetError::input(format!("{name}: {why}")))
    }

    /// Reads a sweep in JSON, as [`parse`](Sweep::parse) does in TOML.
    ///
    /// # Errors
    /// Those of [`parse`](Sweep::parse).
    pub fn parse_json(text: &str) -> Result<Sweep, FleetError> {
        let table = serde_json::from_str(text);
        let table = table.map_err(|why| FleetError::input(format!("sweep: {why}")))?;
        Sweep::of(table)
    }

    fn of(table: SweepTable) -> Result<Sweep, FleetError> {
        let or_own = |given: Option<OneOrMany<String>>| match given {
            None => vec![None],
            Some(given) => given.list().into_iter().map(Some).collect(),
        };
        let mut seeds = Vec::new();
        for given in table
            .seed
            .map_or_else(|| vec![Seeds::One(1)], OneOrMany::list)
        {
            given.add_to(&mut seeds)?;
        }
        let sweep = Sweep {
            scenarios: table.scenario.list(),
            machines: or_own(table.machine),
            policies: or_own(table.policy),
            workers: match table.workers {
                None => vec![None],
                Some(given) => given.list().into_iter().map(Some).collect(),
            },
            hints: table.hints.map_or_else(|| vec![false], OneOrMany::list),
            seeds,
        };
        match sweep.len() {
            0 => Err(FleetError::input(
                "a list is empty, so there is no point; give a value, or leave it out",
            )),
            count if count > POINTS_MAX => Err(too_many(count)),
            _ => Ok(sweep),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is left out, one value, a list and a range all mean what they say, in both languages.
    /// Method: one table twice, written differently.
    #[test]
    fn one_and_many_are_read() {
        let toml = "scenario = \"a\"\nmachine = [\"m\", \"n\"]\nworkers = 2\nseed = [7, \"10-12\"]";
        let json = r#"{"scenario": ["a"], "machine": ["m", "n"], "workers": [2], "seed": [7, 10, 11, 12]}"#;
        let sweep = Sweep::parse("f.toml", toml).unwrap();
        assert_eq!(sweep, Sweep::parse_json(json).unwrap());
        assert_eq!(sweep.seeds, [7, 10, 11, 12]);
        assert_eq!(
            (&sweep.policies[..], &sweep.hints[..]),
            (&[None][..], &[false][..])
        );
        assert_eq!(sweep.len(), 8);
    }

    /// Goal: what makes no sense is refused in one line that says where and what to do. Method: some of each
    /// kind.
    #[test]
    fn mistakes_are_named() {
        let refused = |text: &str| {
            let error = Sweep::parse("f.toml", text).unwrap_err();
            assert!(
                error.is_input() && !error.to_string().contains('\n'),
                "{error}"
            );
            error.to_string()
        };
        assert!(refused("scenario = 1").contains("f.toml: line 1"));
        assert!(refused("scenario = \"a\"\nsed = 1").contains("sed"));
        assert!(refused("machine = \"a\"").contains("scenario"));
        assert!(refused("scenario = \"a\"\nseed = \"9-1\"").contains("1-1000"));
        assert!(refused("scenario = \"a\"\nseed = []").contains("empty"));
        assert!(refused("scenario = \"a\"\nseed = \"0-18446744073709551615\"").contains("at most"));
        let many = "scenario = \"a\"\nseed = \"1-20000000\"\nworkers = [1, 2]";
        assert!(refused(many).contains("40000000 points"));
        assert!(Sweep::parse_json("{}").unwrap_err().is_input());
    }
}
