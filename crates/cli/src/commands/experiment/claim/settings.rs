//! The settings of a claim, in the words of its row.

use super::{Claim, HoldsIn, Variation};

/// So many settings are named in a remark.
const NAMED: usize = 3;

impl Claim {
    /// With which other values it holds where it does not hold here, or the other way round; and what was
    /// measured with those of every run.
    pub(super) fn varied_in_words(&self) -> String {
        let Some(here) = self.holds_here() else {
            return String::new();
        };
        let of_value = self.values().filter_map(|value| {
            let of = self.variations.iter().filter(|one| one.value == value);
            let (turned, other): (Vec<&Variation>, _) = of.partition(|one| one.holds() != here);
            let shown = other.into_iter().filter(|one| one.is_of_every_run);
            let shown: Vec<&Variation> = shown.collect();
            let words = if here {
                ["not with", "also with"]
            } else {
                ["with", "not with"]
            };
            let parts = words.into_iter().zip([turned, shown]);
            let parts: Vec<String> = parts
                .filter(|(_, settings)| !settings.is_empty())
                .map(|(word, settings)| format!("{word} {}", settings_in_words(&settings)))
                .collect();
            let HoldsIn { holds, of } = self.with(value);
            let parts = Some(parts.join(", ")).filter(|parts| !parts.is_empty())?;
            Some(format!("{value}: holds with {holds} of {of}, {parts}"))
        });
        of_value.collect::<Vec<_>>().join("; ")
    }
}

/// The first of these settings, with what was measured, and how many more there are.
fn settings_in_words(settings: &[&Variation]) -> String {
    let named = settings.iter().take(NAMED);
    let named = named.map(|one| format!("{} ({})", one.setting, one.outcome.got_in_words()));
    let named = named.collect::<Vec<_>>().join(", ");
    match settings.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::experiment::claim::{Expect, Outcome};

    fn claim(got: f64) -> Claim {
        Claim::source("000-a", "there are nine", "table 1").is(Expect::Exactly(9.0), got, "")
    }

    /// Goal: what was measured with a setting of every run is in the row, whatever its verdict is: its sign
    /// is not hidden. Other settings are named only where they turn the claim over. Method: one that agrees
    /// and one that does not, of a claim that holds and of one that does not; the same from another run.
    #[test]
    fn settings_of_every_run_show_what_they_measured() {
        let (nine, less) = (Expect::Exactly(9.0), Expect::LessThan(0.0));
        let both = claim(9.0)
            .varied("slice", "1 ms", nine, 8.0)
            .varied("slice", "2 ms", nine, 9.0);
        assert_eq!(
            both.varied_in_words(),
            "slice: holds with 2 of 3, not with 1 ms (8), also with 2 ms (9)"
        );
        let against = claim(8.0).varied("slice", "1 ms", less, 7.0);
        assert_eq!(
            against.varied_in_words(),
            "slice: holds with 0 of 2, not with 1 ms (7)"
        );
        let mut other = claim(9.0);
        other.vary("slice", "1 ms", &Outcome::of(nine, 9.0));
        assert_eq!(other.varied_in_words(), "");
    }
}
