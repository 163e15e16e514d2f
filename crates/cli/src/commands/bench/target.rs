//! What a row should reach, and whether it did.

use std::fmt;

use super::case::Case;
use super::session::Setup;
use super::who::Who;

/// The number of threads that the targets are for.
const JUDGED_THREADS: usize = 2;

/// A bound on one number of a case.
pub(super) struct Target {
    /// What is bounded, such as "paceline / best peer".
    pub(super) what: String,
    pub(super) bound: Bound,
    pub(super) got: Option<f64>,
    /// Of the bound; none for ratios.
    unit: Option<&'static str>,
    /// What else there is to say about the number.
    pub(super) note: Option<String>,
    /// Why it is not judged although there is a number.
    waived: Option<&'static str>,
}

/// A limit that still meets the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// What became of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Met,
    /// By so much in the target's unit; without one: by this part of the bound.
    Missed(f64, Option<&'static str>),
    NotJudged(&'static str),
}

impl Target {
    pub(super) fn new(
        setup: &Setup,
        what: impl Into<String>,
        bound: Bound,
        got: Option<f64>,
    ) -> Target {
        let waived = if setup.quick {
            Some("sizes too small")
        } else if !setup.is_as_usual {
            Some("PACELINE_WORKERS, _CPUS or _PLACEMENT is set")
        } else if setup.threads != JUDGED_THREADS {
            Some("for 2 threads only")
        } else {
            None
        };
        Target {
            what: what.into(),
            bound,
            got,
            unit: None,
            note: None,
            waived,
        }
    }

    /// The same for a number that has a unit.
    pub(super) fn in_unit(self, unit: &'static str) -> Target {
        Target {
            unit: Some(unit),
            ..self
        }
    }

    /// The same with something to say about the number.
    pub(super) fn with_note(self, note: Option<String>) -> Target {
        Target { note, ..self }
    }

    /// The same, not judged for this reason.
    pub(super) fn waived(self, why: &'static str) -> Target {
        Target {
            waived: Some(why),
            ..self
        }
    }

    /// The median of ours over that of somebody else.
    pub(super) fn ratio(
        setup: &Setup,
        case: &Case,
        than: &str,
        other: Option<f64>,
        at_most: f64,
    ) -> Target {
        let got = case
            .median(Who::Paceline)
            .zip(other)
            .map(|(ours, other)| ours / other);
        Target::new(
            setup,
            format!("paceline / {than}"),
            Bound::AtMost(at_most),
            got,
        )
    }

    /// As [`ratio`](Target::ratio) to the best peer.
    pub(super) fn to_best_peer(setup: &Setup, case: &Case, at_most: f64) -> Target {
        let best = case.best_peer().map(|(_, median)| median);
        Target::ratio(setup, case, "best peer", best, at_most)
    }

    /// The bound with its unit.
    pub(super) fn limit(&self) -> String {
        format!("{} {}", self.bound, self.unit.unwrap_or_default())
            .trim_end()
            .to_owned()
    }

    pub(super) fn verdict(&self) -> Verdict {
        let (Some(got), None) = (self.got, self.waived) else {
            return Verdict::NotJudged(self.waived.unwrap_or("needs --peers"));
        };
        let (limit, missed_by) = match self.bound {
            Bound::AtMost(limit) => (limit, got - limit),
            Bound::AtLeast(limit) => (limit, limit - got),
        };
        match self.unit {
            _ if missed_by <= 0.0 => Verdict::Met,
            None => Verdict::Missed(missed_by / limit, None),
            unit => Verdict::Missed(missed_by, unit),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtMost(limit) => write!(f, "≤ {limit}"),
            Bound::AtLeast(limit) => write!(f, "≥ {limit}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Met => f.write_str("met"),
            Verdict::Missed(by, None) => write!(f, "missed by {:.0} %", (by * 100.0).max(1.0)),
            Verdict::Missed(by, Some(unit)) => write!(f, "missed by {:.0} {unit}", by.max(1.0)),
            Verdict::NotJudged(why) => write!(f, "not judged: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(bound: Bound, got: Option<f64>) -> Target {
        Target {
            what: String::new(),
            bound,
            got,
            unit: None,
            note: None,
            waived: None,
        }
    }

    fn verdict(bound: Bound, got: Option<f64>) -> String {
        target(bound, got).verdict().to_string()
    }

    /// Goal: a bound is met at its limit, missed beyond by so much, and not judged without a number.
    /// Method: each, in both directions.
    #[test]
    fn verdicts_are_about_the_bound() {
        assert_eq!(verdict(Bound::AtMost(0.5), Some(0.5)), "met");
        assert_eq!(verdict(Bound::AtMost(0.5), Some(0.6)), "missed by 20 %");
        assert_eq!(verdict(Bound::AtLeast(1.8), Some(1.9)), "met");
        assert_eq!(verdict(Bound::AtLeast(1.8), Some(0.9)), "missed by 50 %");
        assert_eq!(verdict(Bound::AtMost(0.5), Some(0.5001)), "missed by 1 %");
        let floor = target(Bound::AtMost(200.0), Some(450.0)).in_unit("ns");
        assert_eq!(floor.verdict().to_string(), "missed by 250 ns");
        assert_eq!(
            verdict(Bound::AtMost(0.5), None),
            "not judged: needs --peers"
        );
    }
}
