//! A finding: a sort of defect, where it was seen, and the command that repeats it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::combination::Kind;
use crate::options::Options;

/// A sort of defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    /// A result, an error or a count differs from the expected one.
    Wrong,
    /// A job was published and never run.
    Lost,
    /// A call never returns.
    Stuck,
    /// The process ended by a signal or an abort.
    Crashed,
    /// The resident set grows.
    Growth,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::Wrong => "WRONG",
            What::Lost => "LOST",
            What::Stuck => "STUCK",
            What::Crashed => "CRASHED",
            What::Growth => "GROWTH",
        })
    }
}

/// Where a slice of the campaign is: enough to repeat it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) workers: usize,
    pub(crate) policy: String,
    pub(crate) seed: u64,
    /// The case of misuse.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) case: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        if let Some(case) = &self.case {
            write!(f, " {case}")?;
        }
        write!(
            f,
            ", workers {}, {}, seed {}",
            self.workers, self.policy, self.seed
        )
    }
}

/// One defect that was seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) what: What,
    pub(crate) place: Place,
    /// One line.
    pub(crate) text: String,
    /// Hints to understand it: states of threads, output on standard error.
    pub(crate) details: Vec<String>,
}

impl Fault {
    pub(crate) fn new(what: What, place: &Place, text: impl Into<String>) -> Fault {
        Fault {
            what,
            place: place.clone(),
            text: text.into().replace('\n', " "),
            details: Vec::new(),
        }
    }

    /// The command that does it again: the same slice, over and over.
    pub(crate) fn command(&self, options: &Options) -> String {
        let Place {
            kind,
            workers,
            policy,
            seed,
            case,
        } = &self.place;
        let mut command = String::from("cargo xtask hostile");
        let mut add = |words: String| {
            command.push(' ');
            command.push_str(&words);
        };
        if cfg!(debug_assertions) {
            add("--debug-assertions".into());
        }
        add(format!("--only {}", kind.name()));
        if let Some(case) = case {
            add(format!("--case {case}"));
        }
        add(format!("--workers {workers} --policy {policy}"));
        if self.what != What::Growth {
            add(format!("--seed {seed} --repeat"));
        }
        if *kind == Kind::Programs && !options.without.is_empty() {
            add(format!("--without {}", options.without.join(",")));
        }
        command
    }

    /// The line that is shown: what, where, the seed, the command.
    pub(crate) fn line(&self, options: &Options) -> String {
        format!(
            "{}: {}: {}; again: {}",
            self.what,
            self.place,
            self.text,
            self.command(options)
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// Goal: a fault is one line that names what, where, the seed and a command that is understood. Method:
    /// a fault with a case; the command is read again by the command line it is for.
    #[test]
    fn a_fault_is_one_line_with_a_command_that_works() {
        let place = Place {
            kind: Kind::Misuse,
            workers: 3,
            policy: "20us".into(),
            seed: 42,
            case: Some("foreign-id".into()),
        };
        let fault = Fault::new(What::Wrong, &place, "no error\nat all");
        let options = Options::parse_from(["hostile"]);
        let line = fault.line(&options);
        let begin = "WRONG: misuse foreign-id, workers 3, 20us, seed 42: no error at all; again: ";
        assert!(line.starts_with(begin), "{line}");
        assert_eq!(line.lines().count(), 1);
        let command = fault.command(&options);
        let again =
            Options::try_parse_from(command.split(' ').skip(2)).expect("the command is understood");
        assert_eq!(again.workers, [3]);
        assert_eq!(again.seed, Some(42));
        assert!(again.repeat);
    }
}
