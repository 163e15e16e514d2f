//! A claim of an article, the measured value, and whether they agree.
//!
//! Invariant: a verdict is computed from a measured value and the range it has to be in, and is never written
//! by hand. A claim that no scheduler can show (frames per second of a bought game) has no measured value,
//! and says why.

mod settings;

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

    /// The one with this name.
    pub(super) fn named(name: &str) -> Option<ClaimVerdict> {
        use ClaimVerdict::{Beyond, Contradicted, Depends, Fitted, Given, Reproduced};
        let all = [Reproduced, Contradicted, Beyond, Depends, Fitted, Given];
        all.into_iter().find(|verdict| verdict.name() == name)
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

/// What came of a claim: in the words of its row, and whether it holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) claimed: String,
    /// Nothing if it is no number.
    pub(super) got: Option<f64>,
    pub(super) holds: bool,
}

impl Outcome {
    fn of(expected: Expect, got: f64) -> Outcome {
        Outcome {
            claimed: expected.to_string(),
            got: Some(got).filter(|got| got.is_finite()),
            holds: expected.holds(got),
        }
    }

    fn got_in_words(&self) -> String {
        self.got.map_or_else(|| "no number".to_owned(), short)
    }
}

/// The same measurement with another value of something that was only chosen.
#[derive(Clone, Debug, PartialEq)]
struct Variation {
    /// The name of what has another value.
    value: &'static str,
    setting: String,
    outcome: Outcome,
    /// It is measured in every run, and not only where everything is varied.
    is_of_every_run: bool,
}

impl Variation {
    fn holds(&self) -> bool {
        self.outcome.holds
    }
}

/// In how many settings a claim holds, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HoldsIn {
    pub(super) holds: usize,
    pub(super) of: usize,
}

impl HoldsIn {
    /// Whether they agree that it does, or that it does not; nothing if they do not agree.
    fn agreed(self) -> Option<bool> {
        match self.holds as f64 / self.of as f64 {
            share if share >= AGREED => Some(true),
            share if share <= 1.0 - AGREED => Some(false),
            _ => None,
        }
    }
}

/// A verdict is given if this part of the settings of each chosen value agree; else it depends on that value.
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
    /// Of a claim about this machine: the simulated one that is about the same.
    simulated_as: Option<&'static str>,
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
            simulated_as: None,
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

    /// The same with another value of something that was chosen: its name, and what it is now.
    pub(super) fn varied(
        mut self,
        value: &'static str,
        setting: impl Into<String>,
        expected: Expect,
        got: f64,
    ) -> Claim {
        self.variations.push(Variation {
            value,
            setting: setting.into(),
            outcome: Outcome::of(expected, got),
            is_of_every_run: true,
        });
        self
    }

    /// Adds what came of it in another run, in which a chosen value was another one.
    pub(super) fn vary(&mut self, value: &'static str, setting: &str, outcome: &Outcome) {
        self.variations.push(Variation {
            value,
            setting: setting.to_owned(),
            outcome: outcome.clone(),
            is_of_every_run: false,
        });
    }

    /// Whether it holds with the values that were chosen; nothing if it was not measured.
    pub(super) fn holds_here(&self) -> Option<bool> {
        match self.finding {
            Finding::Measured { expected, got, .. } => Some(expected.holds(got)),
            Finding::Beyond => None,
        }
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

    /// Which simulated claim of the same experiment is about the same as this one, about this machine.
    pub(super) fn simulated_as(mut self, id: &'static str) -> Claim {
        self.simulated_as = Some(id);
        self
    }

    pub(super) fn verdict(&self) -> ClaimVerdict {
        let Some(here) = self.holds_here() else {
            return ClaimVerdict::Beyond;
        };
        if let (Origin::PutIn(verdict), true) = (self.origin, here) {
            return verdict;
        }
        let mut agreed = self.values().map(|value| self.with(value).agreed());
        let first = agreed.next().unwrap_or(Some(here));
        match first.filter(|_| agreed.all(|other| other == first)) {
            Some(true) => ClaimVerdict::Reproduced,
            Some(false) => ClaimVerdict::Contradicted,
            None => ClaimVerdict::Depends,
        }
    }

    /// The names of the chosen values that it was measured with others of, each once.
    pub(super) fn values(&self) -> impl Iterator<Item = &'static str> + '_ {
        let is_first = |place: &usize| {
            let value = self.variations[*place].value;
            self.variations[..*place]
                .iter()
                .all(|one| one.value != value)
        };
        let places = (0..self.variations.len()).filter(is_first);
        places.map(|place| self.variations[place].value)
    }

    /// What was measured with each setting of this chosen value, first with the chosen one; nothing if it was
    /// not varied.
    pub(super) fn measured_with(&self, value: &str) -> Vec<f64> {
        let others = self.variations.iter().filter(|one| one.value == value);
        let others: Vec<f64> = others.filter_map(|one| one.outcome.got).collect();
        match self.finding {
            Finding::Measured { got, .. } if !others.is_empty() => [&[got], &others[..]].concat(),
            _ => Vec::new(),
        }
    }

    /// The settings of this chosen value in which it holds, with the chosen one.
    pub(super) fn with(&self, value: &str) -> HoldsIn {
        let of = self.variations.iter().filter(|one| one.value == value);
        let here = usize::from(self.holds_here() == Some(true));
        HoldsIn {
            holds: here + of.clone().filter(|one| one.holds()).count(),
            of: 1 + of.count(),
        }
    }

    /// The same for all settings of all values.
    pub(super) fn holds_in(&self) -> HoldsIn {
        let here = usize::from(self.holds_here() == Some(true));
        HoldsIn {
            holds: here + self.variations.iter().filter(|one| one.holds()).count(),
            of: 1 + self.variations.len(),
        }
    }

    /// Whether settings of this chosen value disagree so much that the verdict depends on it.
    pub(super) fn depends_on(&self, value: &str) -> bool {
        let here = self.holds_here();
        self.with(value).agreed() != here
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
                "value": one.value,
                "setting": one.setting,
                "claimed": one.outcome.claimed,
                "got": one.outcome.got,
                "holds": one.holds(),
            })).collect::<Vec<_>>(),
            "holds": self.holds_here(),
            "holds_in": self.holds_here().map(|_| self.holds_in().holds),
            "settings": self.holds_in().of,
            "verdict": verdict.name(),
            "note": self.remark(),
            "simulated_as": self.simulated_as,
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
        let turned = switches(9.0).varied("slice", "1 ms", nine, 8.0);
        assert_eq!(turned.verdict(), ClaimVerdict::Depends);
        assert_eq!(
            turned.remark(),
            "slice: holds with 1 of 2, not with 1 ms (8); counted"
        );
        assert_eq!(turned.json()["ok"], Value::Null);
        assert_eq!(turned.json()["varied"][0]["holds"], Value::Bool(false));
        assert_eq!(turned.json()["settings"], 2);
        let agreed = switches(9.0).varied("slice", "1 ms", nine, 9.0);
        assert_eq!(agreed.verdict(), ClaimVerdict::Reproduced);
        assert_eq!(
            agreed.remark(),
            "slice: holds with 2 of 2, also with 1 ms (9); counted"
        );
        let against = switches(8.0).varied("slice", "1 ms", nine, 7.0);
        assert_eq!(against.verdict(), ClaimVerdict::Contradicted);
        let many = (0..9).fold(switches(8.0), |claim, _| {
            claim.varied("seed", "2", nine, 9.0)
        });
        assert_eq!(many.verdict(), ClaimVerdict::Reproduced, "nine of ten");
        let fewer = many.varied("seed", "3", nine, 8.0);
        assert_eq!(fewer.verdict(), ClaimVerdict::Depends);
        assert!(fewer.depends_on("seed") && !fewer.depends_on("slice"));
    }

    /// Goal: a value that turns a claim over is not outvoted by others that do not matter. Method: twenty
    /// seeds that agree, and one slice of two that does not; a claim that was put in stays what it is.
    #[test]
    fn each_chosen_value_is_judged_alone() {
        let nine = Expect::Exactly(9.0);
        let seeds = |claim| {
            (0..20).fold(claim, |claim: Claim, seed: u32| {
                claim.varied("seed", seed.to_string(), nine, 9.0)
            })
        };
        let turned = seeds(switches(9.0)).varied("slice", "1 ms", nine, 8.0);
        assert_eq!(turned.verdict(), ClaimVerdict::Depends);
        assert_eq!(turned.holds_in(), HoldsIn { holds: 21, of: 22 });
        assert_eq!(turned.values().collect::<Vec<_>>(), ["seed", "slice"]);
        assert!(turned.depends_on("slice") && !turned.depends_on("seed"));
        let given = switches(9.0)
            .given("it is so")
            .varied("slice", "1 ms", nine, 8.0);
        assert_eq!(given.verdict(), ClaimVerdict::Given);
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
