//! Lessons of an experiment: sentences that stand only where the claims they rest on came out so. If one of
//! these depends on what was only chosen, the sentence says so.
//!
//! Invariant: a figure in a sentence is the one that this run measured; none is written by hand.

use std::fmt::Write;

use super::claim::{Claim, ClaimVerdict, HoldsIn};
#[cfg(test)]
use super::findings::Findings;

/// A sentence, and the claims it rests on.
pub(super) struct Lesson {
    /// `{ID}` stands for the measured value of the claim with this id.
    pub(super) text: &'static str,
    /// Claims by their ids, and how they have to come out.
    pub(super) rests_on: &'static [(&'static str, ClaimVerdict)],
}

/// What came of a claim.
#[derive(Debug, PartialEq)]
pub(super) struct ClaimResult {
    pub(super) verdict: ClaimVerdict,
    /// The measured value in words.
    pub(super) found: String,
    /// In how many settings it holds, if it depends on them and holds with the chosen values.
    pub(super) holds_in: Option<HoldsIn>,
}

impl ClaimResult {
    pub(super) fn of(claim: &Claim) -> ClaimResult {
        let verdict = claim.verdict();
        let depends = verdict == ClaimVerdict::Depends && claim.holds_here() == Some(true);
        ClaimResult {
            verdict,
            found: claim.found(),
            holds_in: depends.then(|| claim.holds_in()),
        }
    }

    /// In how many settings it holds, if a sentence that wants it reproduced may stand with that said: it
    /// holds with the chosen values, and in most of the others.
    fn in_most(&self) -> Option<HoldsIn> {
        self.holds_in.filter(|held| 2 * held.holds > held.of)
    }
}

impl Lesson {
    /// The sentence, if this run bears it out.
    #[cfg(test)]
    pub(super) fn told(&self, findings: &Findings) -> Option<String> {
        self.told_by(&|id| {
            let claim = findings.claims.iter().find(|claim| claim.id == id)?;
            Some(ClaimResult::of(claim))
        })
    }

    /// The sentence, if what came of its claims bears it out.
    pub(super) fn told_by(&self, came: &dyn Fn(&str) -> Option<ClaimResult>) -> Option<String> {
        let mut text = self.text.to_owned();
        let mut most = Vec::new();
        for (id, verdict) in self.rests_on {
            let its = came(id)?;
            if its.verdict != *verdict {
                let held = its.in_most();
                let held = held.filter(|_| *verdict == ClaimVerdict::Reproduced)?;
                let (holds, settings) = if most.is_empty() {
                    (" holds", " settings")
                } else {
                    ("", "")
                };
                most.push(format!(
                    "{id}{holds} in {} of {}{settings}",
                    held.holds, held.of
                ));
            }
            text = text.replace(&format!("{{{id}}}"), &its.found);
        }
        if !most.is_empty() {
            let most = most.join(", ");
            let _ = write!(text, " (It depends on what was only chosen: {most}.)");
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::experiment::claim::{Claim, Expect};

    const LESSON: Lesson = Lesson {
        text: "There are few switches: {000-a}.",
        rests_on: &[("000-a", ClaimVerdict::Reproduced)],
    };

    fn with(got: f64) -> Findings {
        let claim = Claim::ours("000-a", "few").is(Expect::AtMost(9.0), got, "switches");
        Findings {
            claims: vec![claim],
            ..Findings::default()
        }
    }

    /// A claim that holds with the chosen value, and with so many of four others.
    fn holding_in(settings: usize) -> Findings {
        let mut findings = with(7.0);
        let claim = findings.claims.remove(0);
        let numbers = (0..4).map(|setting| if setting < settings { 7.0 } else { 10.0 });
        let varied = numbers.fold(claim, |claim, got| {
            claim.varied("load", got.to_string(), Expect::AtMost(9.0), got)
        });
        findings.claims.push(varied);
        findings
    }

    /// Goal: a sentence whose claim depends on what was chosen says so, and is not told where the claim
    /// holds in half of the settings or fewer, or not with the chosen values. Method: a claim that holds in
    /// other settings, in few, and in the others but not as chosen.
    #[test]
    fn a_sentence_says_what_it_depends_on() {
        let told = "There are few switches: 7 switches. (It depends on what was only chosen: 000-a holds \
                    in 3 of 5 settings.)";
        assert_eq!(LESSON.told(&holding_in(2)).as_deref(), Some(told));
        assert_eq!(LESSON.told(&holding_in(1)), None);
        let mut otherwise = holding_in(3);
        let claim = otherwise.claims.remove(0);
        otherwise
            .claims
            .push(claim.is(Expect::AtMost(9.0), 10.0, "switches"));
        assert_eq!(otherwise.claims[0].verdict(), ClaimVerdict::Depends);
        assert_eq!(LESSON.told(&otherwise), None);
    }

    /// Goal: of two claims that depend on what was chosen a sentence says so once. Method: a lesson that
    /// rests on the same claim twice.
    #[test]
    fn two_claims_that_depend_are_in_one_remark() {
        const REPRODUCED: (&str, ClaimVerdict) = ("000-a", ClaimVerdict::Reproduced);
        let twice = Lesson {
            text: "Few.",
            rests_on: &[REPRODUCED, REPRODUCED],
        };
        let told = "Few. (It depends on what was only chosen: 000-a holds in 3 of 5 settings, \
                    000-a in 3 of 5.)";
        assert_eq!(twice.told(&holding_in(2)).as_deref(), Some(told));
    }

    /// Goal: a sentence is told with the figure of this run, and not where its claim came out otherwise or
    /// was not looked at. Method: all three.
    #[test]
    fn sentences_rest_on_claims() {
        let told = LESSON.told(&with(7.0));
        assert_eq!(told.as_deref(), Some("There are few switches: 7 switches."));
        assert_eq!(LESSON.told(&with(10.0)), None);
        assert_eq!(LESSON.told(&Findings::default()), None);
    }
}
