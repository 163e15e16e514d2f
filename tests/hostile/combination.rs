//! The combinations of a campaign: kinds of programs, numbers of workers, wait policies.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use event::Random;
use paceline::{Builder, WaitPolicy};
use serde::{Deserialize, Serialize};

/// A kind of hostile program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Random programs over the whole public API, each compared with a serial evaluation
    Programs,
    /// Random graphs whose jobs must all be run by idle workers, because no other thread helps
    Liveness,
    /// The mistakes that programs make, each with the error that it must get
    Misuse,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Programs, Kind::Liveness, Kind::Misuse];

    /// The word for it on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Programs => "programs",
            Kind::Liveness => "liveness",
            Kind::Misuse => "misuse",
        }
    }

    /// Liveness needs idle workers.
    pub(crate) fn takes(self, combination: &Combination) -> bool {
        self != Kind::Liveness || combination.workers > 0
    }
}

/// A wait policy and the text it was read from, which is also how it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Policy {
    text: String,
    policy: WaitPolicy,
}

impl FromStr for Policy {
    type Err = paceline::WaitPolicyError;

    fn from_str(text: &str) -> Result<Policy, Self::Err> {
        let text = text.trim();
        Ok(Policy {
            policy: text.parse()?,
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The settings of a job system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Combination {
    pub(crate) workers: usize,
    pub(crate) policy: Policy,
}

impl Combination {
    /// All of them, in the order in which they take turns.
    pub(crate) fn all(workers: &[usize], policies: &[Policy]) -> Vec<Combination> {
        let of = |policy: &Policy| {
            let policy = policy.clone();
            workers.iter().map(move |&workers| Combination {
                workers,
                policy: policy.clone(),
            })
        };
        policies.iter().flat_map(of).collect()
    }

    /// Settings for a job system. Its threads are named after `name` and their thread slot.
    pub(crate) fn builder(&self, name: &str) -> Builder {
        self.builder_for_this_machine(name).workers(self.workers)
    }

    /// The same with as many workers as fit.
    pub(crate) fn builder_for_this_machine(&self, name: &str) -> Builder {
        let name = name.to_owned();
        Builder::new()
            .wait_policy(self.policy.policy)
            .thread_name(move |slot| format!("{name}.{slot}"))
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.workers == 1 { "" } else { "s" };
        write!(f, "{} worker{plural}, {}", self.workers, self.policy)
    }
}

/// The seed of a slice. The first slice of a campaign has the campaign's own seed: that is how a slice is
/// repeated alone.
pub(crate) fn slice_seed(campaign: u64, number: u64) -> u64 {
    match number {
        0 => campaign,
        _ => stir(campaign, number),
    }
}

/// A seed that follows from a seed and a number.
pub(crate) fn stir(seed: u64, number: u64) -> u64 {
    Random::new(seed ^ Random::new(number).next_u64()).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each number of workers meets each policy once. Method: two of one and three of the other.
    #[test]
    fn all_combinations_are_there() {
        let policies = ["passive", "20us"].map(|text| text.parse().expect("a policy"));
        let all = Combination::all(&[0, 1, 32], &policies);
        let shown: Vec<String> = all.iter().map(Combination::to_string).collect();
        let expected = [
            "0 workers, passive",
            "1 worker, passive",
            "32 workers, passive",
            "0 workers, 20us",
            "1 worker, 20us",
            "32 workers, 20us",
        ];
        assert_eq!(shown, expected);
        assert!(!Kind::Liveness.takes(&all[0]) && Kind::Programs.takes(&all[0]));
    }

    /// Goal: the seed that a failure names begins the same slice again, and other slices differ. Method: the
    /// first numbers.
    #[test]
    fn the_first_slice_has_the_seed_of_the_campaign() {
        assert_eq!(slice_seed(7, 0), 7);
        let seeds: std::collections::BTreeSet<u64> = (0..100).map(|n| slice_seed(7, n)).collect();
        assert_eq!(seeds.len(), 100);
    }
}
