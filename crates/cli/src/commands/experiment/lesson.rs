//! Lessons of an experiment: sentences that stand only where the claims they rest on came out so.
//!
//! Invariant: a figure in a sentence is the one that this run measured; none is written by hand.

use super::claim::ClaimVerdict;
#[cfg(test)]
use super::findings::Findings;

/// A sentence, and the claims it rests on.
pub(super) struct Lesson {
    /// `{ID}` stands for the measured value of the claim with this id.
    pub(super) text: &'static str,
    /// Claims by their ids, and how they have to come out.
    pub(super) rests_on: &'static [(&'static str, ClaimVerdict)],
}

impl Lesson {
    /// The sentence, if this run bears it out.
    #[cfg(test)]
    pub(super) fn told(&self, findings: &Findings) -> Option<String> {
        self.told_by(&|id| {
            let claim = findings.claims.iter().find(|claim| claim.id == id)?;
            Some((claim.verdict(), claim.found()))
        })
    }

    /// The sentence, if what came of its claims bears it out: `came` has a claim's verdict, and its value
    /// in words.
    pub(super) fn told_by(
        &self,
        came: &dyn Fn(&str) -> Option<(ClaimVerdict, String)>,
    ) -> Option<String> {
        let mut text = self.text.to_owned();
        for (id, verdict) in self.rests_on {
            let (its, found) = came(id)?;
            if its != *verdict {
                return None;
            }
            text = text.replace(&format!("{{{id}}}"), &found);
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
