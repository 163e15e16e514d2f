//! A claim of an article, the measured value, and whether they agree.
//!
//! Invariant: a verdict is computed from a measured value and the range it has to be in, and is never written
//! by hand. A claim that no scheduler can show (frames per second of a bought game) has no measured value,
//! and says why.

use std::fmt;

use serde_json::{Value, json};

/// The range that a measured value has to be in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Expect {
    /// This, as far as the digits of a source go.
    Exactly(f64),
    /// From the first to the second.
    Between(f64, f64),
    AtLeast(f64),
    AtMost(f64),
    MoreThan(f64),
    LessThan(f64),
}

impl Expect {
    /// A number and how far beside it a value may be, as a part of it.
    pub(super) fn about(number: f64, part: f64) -> Expect {
        Expect::Between(number * (1.0 - part), number * (1.0 + part))
    }

    /// Whether it holds. For a value that is no number, nothing holds.
    fn holds(self, got: f64) -> bool {
        match self {
            Expect::Exactly(number) => got == number,
            Expect::Between(least, most) => (least..=most).contains(&got),
            Expect::AtLeast(least) => got >= least,
            Expect::AtMost(most) => got <= most,
            Expect::MoreThan(other) => got > other,
            Expect::LessThan(other) => got < other,
        }
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Expect::Exactly(number) => f.write_str(&short(number)),
            Expect::Between(least, most) => write!(f, "{} to {}", short(least), short(most)),
            Expect::AtLeast(least) => write!(f, "at least {}", short(least)),
            Expect::AtMost(most) => write!(f, "at most {}", short(most)),
            Expect::MoreThan(other) => write!(f, "more than {}", short(other)),
            Expect::LessThan(other) => write!(f, "less than {}", short(other)),
        }
    }
}

/// A number with three or four digits that say something.
pub(super) fn short(number: f64) -> String {
    let text = match number.abs() {
        size if size == 0.0 || size >= 1000.0 => format!("{number:.0}"),
        size if size >= 100.0 => format!("{number:.1}"),
        size if size >= 1.0 => format!("{number:.2}"),
        size if size >= 0.01 => format!("{number:.3}"),
        _ => format!("{number:.6}"),
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The author of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The article. If the claim does not hold here, that is a finding.
    Source,
    /// This project, about the same experiment. If the claim does not hold, something is broken.
    Us,
}

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimVerdict {
    Reproduced,
    Contradicted,
    /// Not reproducible by scheduling alone.
    Beyond,
    /// It holds with some of the values that were chosen, and with others not.
    Depends,
    /// It holds because a value of the machine was worked out from it.
    Fitted,
    /// It holds because the scenario says so.
    Given,
}

impl ClaimVerdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            ClaimVerdict::Reproduced => "reproduced",
            ClaimVerdict::Contradicted => "contradicted",
            ClaimVerdict::Beyond => "not reproducible by scheduling alone",
            ClaimVerdict::Depends => "depends",
            ClaimVerdict::Fitted => "fitted",
            ClaimVerdict::Given => "given",
        }
    }
}

/// The measured value, or why there is none.
#[derive(Clone, Debug, PartialEq)]
enum Finding {
    Measured {
        expected: Expect,
        got: f64,
        unit: &'static str,
    },
    Beyond,
}

/// Why it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Because of the rules that are looked at.
    Rules,
    /// Because it was put in. Then this is the verdict.
    PutIn(ClaimVerdict),
}

/// The same measurement with another value of something that was only chosen.
#[derive(Clone, Debug, PartialEq)]
struct Variation {
    what: String,
    expected: Expect,
    got: f64,
}

/// A verdict is given if this part of all settings agree; else it depends.
const AGREED: f64 = 0.9;

/// One claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    /// Its name: the source's number and a letter.
    pub(super) id: &'static str,
    pub(super) by: By,
    /// The claim, in our words.
    pub(super) text: &'static str,
    /// Where in the source.
    pub(super) place: &'static str,
    finding: Finding,
    origin: Origin,
    variations: Vec<Variation>,
    /// How it was measured, or why it cannot be.
    pub(super) note: String,
    /// Why it does not hold here, if it does not.
    reason: &'static str,
}

impl Claim {
    /// A claim of the source.
    pub(super) fn source(id: &'static str, text: &'static str, place: &'static str) -> Claim {
        Claim {
            id,
            by: By::Source,
            text,
            place,
            finding: Finding::Beyond,
            origin: Origin::Rules,
            variations: Vec::new(),
            note: String::new(),
            reason: "",
        }
    }

    /// A claim of ours about the same.
    pub(super) fn ours(id: &'static str, text: &'static str) -> Claim {
        Claim {
            by: By::Us,
            ..Claim::source(id, text, "ours")
        }
    }

    /// The expected range, and the measured value.
    pub(super) fn is(mut self, expected: Expect, got: f64, unit: &'static str) -> Claim {
        self.finding = Finding::Measured {
            expected,
            got,
            unit,
        };
        self
    }

    /// The same with another value of something that was chosen.
    pub(super) fn varied(mut self, what: impl Into<String>, expected: Expect, got: f64) -> Claim {
        self.variations.push(Variation {
            what: what.into(),
            expected,
            got,
        });
        self
    }

    /// A value of the machine was worked out from this claim, or from others that it follows from: which.
    pub(super) fn fitted(mut self, how: &str) -> Claim {
        self.origin = Origin::PutIn(ClaimVerdict::Fitted);
        self.note(how)
    }

    /// The scenario has it as an input: which.
    pub(super) fn given(mut self, how: &str) -> Claim {
        self.origin = Origin::PutIn(ClaimVerdict::Given);
        self.note(how)
    }

    /// Why scheduling alone cannot show it.
    pub(super) fn beyond(self, why: &str) -> Claim {
        self.note(why)
    }

    /// How it was measured.
    pub(super) fn note(mut self, note: impl Into<String>) -> Claim {
        self.note = note.into();
        self
    }

    /// Why it does not hold here; shown only if it does not.
    pub(super) fn or_else(mut self, reason: &'static str) -> Claim {
        self.reason = reason;
        self
    }

    pub(super) fn verdict(&self) -> ClaimVerdict {
        match self.share_that_holds() {
            None => ClaimVerdict::Beyond,
            Some(share) if share >= AGREED => match self.origin {
                Origin::Rules => ClaimVerdict::Reproduced,
                Origin::PutIn(verdict) => verdict,
            },
            Some(share) if share <= 1.0 - AGREED => ClaimVerdict::Contradicted,
            Some(_) => ClaimVerdict::Depends,
        }
    }

    /// In which part of the settings it holds.
    fn share_that_holds(&self) -> Option<f64> {
        let Finding::Measured { expected, got, .. } = self.finding else {
            return None;
        };
        let varied = self
            .variations
            .iter()
            .map(|one| one.expected.holds(one.got));
        let all = std::iter::once(expected.holds(got)).chain(varied);
        Some(all.filter(|holds| *holds).count() as f64 / (1 + self.variations.len()) as f64)
    }

    /// Whether something is broken: a claim of ours does not hold.
    pub(super) fn is_broken(&self) -> bool {
        self.by == By::Us && self.verdict() == ClaimVerdict::Contradicted
    }

    /// The expected range in words.
    pub(super) fn claimed(&self) -> String {
        match self.finding {
            Finding::Measured { expected, unit, .. } => {
                format!("{expected} {unit}").trim_end().to_owned()
            }
            Finding::Beyond => String::new(),
        }
    }

    /// The measured value in words.
    pub(super) fn found(&self) -> String {
        match self.finding {
            Finding::Measured { got, unit, .. } => {
                format!("{} {unit}", short(got)).trim_end().to_owned()
            }
            Finding::Beyond => String::new(),
        }
    }

    /// The rest of the row.
    pub(super) fn remark(&self) -> String {
        let reason = match self.verdict() {
            ClaimVerdict::Contradicted => self.reason,
            _ => "",
        };
        let parts = [reason.to_owned(), self.varied_in_words(), self.note.clone()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("; ")
    }

    /// What was found with other values, and where the claim holds.
    fn varied_in_words(&self) -> String {
        let Finding::Measured { expected, got, .. } = self.finding else {
            return String::new();
        };
        if self.variations.is_empty() {
            return String::new();
        }
        let word = |holds| if holds { "holds" } else { "does not hold" };
        let varied = self.variations.iter().map(|one| {
            let holds = word(one.expected.holds(one.got));
            format!("with {} {} (it {holds})", one.what, short(one.got))
        });
        let varied: Vec<String> = varied.collect();
        format!(
            "here it {}; {}",
            word(expected.holds(got)),
            varied.join(", ")
        )
    }

    pub(super) fn json(&self) -> Value {
        let verdict = self.verdict();
        let (claimed, got, unit) = match &self.finding {
            Finding::Measured {
                expected,
                got,
                unit,
            } => (json!(expected.to_string()), json!(got), json!(unit)),
            Finding::Beyond => (Value::Null, Value::Null, Value::Null),
        };
        json!({
            "id": self.id,
            "by": if self.by == By::Us { "us" } else { "source" },
            "text": self.text,
            "where": self.place,
            "claimed": claimed,
            "got": got,
            "unit": unit,
            "ok": match verdict {
                ClaimVerdict::Reproduced => Some(true),
                ClaimVerdict::Contradicted => Some(false),
                ClaimVerdict::Beyond
                | ClaimVerdict::Depends
                | ClaimVerdict::Fitted
                | ClaimVerdict::Given => None,
            },
            "varied": self.variations.iter().map(|one| json!({
                "what": one.what,
                "claimed": one.expected.to_string(),
                "got": one.got,
                "holds": one.expected.holds(one.got),
            })).collect::<Vec<_>>(),
            "verdict": verdict.name(),
            "note": self.remark(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(got: f64) -> Claim {
        Claim::source("000-a", "there are nine switches", "table 1")
            .is(Expect::Exactly(9.0), got, "switches")
            .note("counted")
            .or_else("it is another scheduler")
    }

    /// Goal: a verdict follows from the measured value, and a wrong measurement turns it over. Method: the
    /// right number and a planted wrong one, the same claim of ours, one that cannot be measured.
    #[test]
    fn a_wrong_measurement_turns_the_verdict_over() {
        assert_eq!(switches(9.0).verdict(), ClaimVerdict::Reproduced);
        assert_eq!(switches(9.0).remark(), "counted");
        let wrong = switches(10.0);
        assert_eq!(wrong.verdict(), ClaimVerdict::Contradicted);
        assert_eq!(wrong.remark(), "it is another scheduler; counted");
        assert_eq!(
            (wrong.claimed(), wrong.found()),
            ("9 switches".into(), "10 switches".into())
        );
        assert!(!wrong.is_broken(), "it is the source's");
        let ours = |got| Claim::ours("000-b", "there are few").is(Expect::AtMost(5.0), got, "");
        assert!(!ours(5.0).is_broken() && ours(5.1).is_broken());
        let beyond = Claim::source("000-c", "it is fun", "title").beyond("nobody simulates fun");
        assert_eq!(
            (beyond.verdict(), beyond.is_broken()),
            (ClaimVerdict::Beyond, false)
        );
        assert_eq!(beyond.json()["ok"], Value::Null);
        assert_eq!(switches(8.0).json()["ok"], Value::Bool(false));
    }

    /// Goal: a claim that holds with some of the chosen values and not with others depends on them, and the
    /// row says on which; nine of ten decide. Method: the same claim with values that agree, and that do not.
    #[test]
    fn a_verdict_that_a_chosen_value_decides_depends() {
        let nine = Expect::Exactly(9.0);
        let turned = switches(9.0).varied("a shorter slice", nine, 8.0);
        assert_eq!(turned.verdict(), ClaimVerdict::Depends);
        assert_eq!(
            turned.remark(),
            "here it holds; with a shorter slice 8 (it does not hold); counted"
        );
        assert_eq!(turned.json()["ok"], Value::Null);
        assert_eq!(turned.json()["varied"][0]["holds"], Value::Bool(false));
        let agreed = switches(9.0).varied("a shorter slice", nine, 9.0);
        assert_eq!(agreed.verdict(), ClaimVerdict::Reproduced);
        let against = switches(8.0).varied("a shorter slice", nine, 7.0);
        assert_eq!(against.verdict(), ClaimVerdict::Contradicted);
        let many = (0..9).fold(switches(8.0), |claim, _| claim.varied("a seed", nine, 9.0));
        assert_eq!(many.verdict(), ClaimVerdict::Reproduced, "nine of ten");
        assert_eq!(
            many.varied("a seed", nine, 8.0).verdict(),
            ClaimVerdict::Depends
        );
    }

    /// Goal: what was put in is not called reproduced, and is found out if it does not come out. Method: both
    /// ways to put it in, and a number that does not fit.
    #[test]
    fn inputs_are_not_results() {
        assert_eq!(
            switches(9.0).fitted("from it").verdict(),
            ClaimVerdict::Fitted
        );
        assert_eq!(
            switches(9.0).given("it is so").verdict(),
            ClaimVerdict::Given
        );
        let wrong = switches(8.0).fitted("from it");
        assert_eq!(wrong.verdict(), ClaimVerdict::Contradicted);
        assert_eq!(switches(9.0).given("it is so").json()["ok"], Value::Null);
    }

    /// Goal: every kind of range has the right ends, and nothing holds for a value that is no number. Method:
    /// both sides of each end.
    #[test]
    fn ranges_have_ends() {
        for (expect, inside, outside) in [
            (Expect::Exactly(2.0), 2.0, 2.1),
            (Expect::about(100.0, 0.02), 98.0, 97.9),
            (Expect::Between(1.0, 2.0), 2.0, 2.01),
            (Expect::AtLeast(3.0), 3.0, 2.9),
            (Expect::AtMost(3.0), 3.0, 3.1),
            (Expect::MoreThan(3.0), 3.1, 3.0),
            (Expect::LessThan(3.0), 2.9, 3.0),
        ] {
            assert!(expect.holds(inside) && !expect.holds(outside), "{expect}");
            assert!(!expect.holds(f64::NAN), "{expect}");
        }
    }

    /// Goal: numbers are short and right. Method: one of each size.
    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 0.25, 0.0014, 9.0, 1.984, 857.71, 5_560_000.0].map(short),
            ["0", "0.25", "0.0014", "9", "1.98", "857.7", "5560000"]
        );
    }
}
