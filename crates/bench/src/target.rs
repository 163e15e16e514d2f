//! The targets of a row, and their verdicts.

use std::fmt;

use crate::session::Setup;

/// The number of threads that the targets are for.
const JUDGED_THREADS: usize = 2;

/// A bound on one number of a case.
pub(crate) struct Target {
    /// The name of the number, such as "paceline / best peer".
    pub(crate) what: String,
    pub(crate) bound: Bound,
    pub(crate) got: Option<f64>,
    /// The unit of the bound; none for ratios.
    unit: Option<&'static str>,
    /// A note on the number.
    pub(crate) note: Option<String>,
    /// The reason why it is not judged although there is a number.
    waived: Option<&'static str>,
}

/// A limit; a number that equals it meets the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// The result of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Met,
    /// The number misses the bound by this amount in the target's unit; without a unit, by this part of the
    /// bound.
    Missed(f64, Option<&'static str>),
    NotJudged(&'static str),
}

impl Target {
    pub(crate) fn new(
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
    pub(crate) fn in_unit(self, unit: &'static str) -> Target {
        Target {
            unit: Some(unit),
            ..self
        }
    }

    /// The same with a note on the number.
    pub(crate) fn with_note(self, note: Option<String>) -> Target {
        Target { note, ..self }
    }

    /// The same, not judged for this reason.
    pub(crate) fn waived(self, why: &'static str) -> Target {
        Target {
            waived: Some(why),
            ..self
        }
    }

    /// The bound with its unit.
    pub(crate) fn limit(&self) -> String {
        format!("{} {}", self.bound, self.unit.unwrap_or_default())
            .trim_end()
            .to_owned()
    }

    pub(crate) fn verdict(&self) -> Verdict {
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

    /// Goal: a bound is met at its limit, missed beyond it by the difference, and not judged without a
    /// number. Method: each, in both directions.
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
