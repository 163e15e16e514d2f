//! Values that an experiment needs and its article does not give.
//!
//! Invariant: a chosen value is read by [`Effort::value`] or [`Effort::time`] and nowhere else, so one that
//! is varied is another one for all code that uses it.

use event::Nanos;

use super::claim::short;
use super::lab::Effort;

/// A value that was only chosen, and the other ones that are as good.
pub(super) struct ChosenValue {
    /// Its name, as in `--set NAME=NUMBER`.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) unit: ValueUnit,
    pub(super) chosen: f64,
    /// The other values that are tried.
    pub(super) others: &'static [f64],
    /// Why this one was chosen, and why these are tried.
    pub(super) why: &'static str,
}

/// What a number of a chosen value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueUnit {
    /// A time.
    Millis,
    /// A time.
    Micros,
    /// A number of these.
    Of(&'static str),
    /// One of these ways, by its place.
    Ways(&'static [&'static str]),
}

impl ChosenValue {
    /// One of its values in words.
    pub(super) fn words(&self, number: f64) -> String {
        match self.unit {
            ValueUnit::Millis => format!("{} ms", short(number)),
            ValueUnit::Micros => format!("{} µs", short(number)),
            ValueUnit::Of(what) => format!("{} {what}", short(number)),
            ValueUnit::Ways(ways) => {
                let way = ways.get(number as usize);
                way.map_or_else(|| short(number), |way| (*way).to_owned())
            }
        }
    }

    /// The other values that are tried, in words.
    pub(super) fn others_in_words(&self) -> String {
        let words = self.others.iter().map(|&number| self.words(number));
        words.collect::<Vec<_>>().join(", ")
    }

    /// Whether it can be this at all.
    pub(super) fn takes(&self, number: f64) -> bool {
        match self.unit {
            ValueUnit::Ways(ways) => {
                number.fract() == 0.0 && (0.0..ways.len() as f64).contains(&number)
            }
            _ => number.is_finite() && number > 0.0 && number <= 1e6,
        }
    }
}

/// Another value than the chosen one, for a whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ValueSet {
    pub(super) name: &'static str,
    pub(super) number: f64,
}

impl Effort {
    /// The number of this value in this run.
    pub(super) fn value(&self, value: &ChosenValue) -> f64 {
        match self.set {
            Some(set) if set.name == value.name => set.number,
            _ => value.chosen,
        }
    }

    /// The time that this value is in this run.
    pub(super) fn time(&self, value: &ChosenValue) -> Nanos {
        let nanos = match value.unit {
            ValueUnit::Millis => 1e6,
            ValueUnit::Micros => 1e3,
            ValueUnit::Of(_) | ValueUnit::Ways(_) => 1.0,
        };
        Nanos((self.value(value) * nanos).round() as u64)
    }

    /// Which of its ways this value is in this run.
    pub(super) fn way(&self, value: &ChosenValue) -> usize {
        self.value(value) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: ChosenValue = ChosenValue {
        name: "tick",
        about: "the time between ticks",
        unit: ValueUnit::Millis,
        chosen: 4.0,
        others: &[1.0, 0.1],
        why: "HZ=250",
    };
    const WAY: ChosenValue = ChosenValue {
        name: "way",
        about: "how",
        unit: ValueUnit::Ways(&["so", "otherwise"]),
        chosen: 0.0,
        others: &[1.0],
        why: "both are",
    };

    /// Goal: a run has the value that was set, and the chosen one of all others. Method: a run of each kind;
    /// words and bounds of both.
    #[test]
    fn a_value_is_what_was_set() {
        let effort = Effort::quick(1);
        assert_eq!(effort.time(&TICK), Nanos::from_millis(4));
        let set = Some(ValueSet {
            name: "tick",
            number: 0.1,
        });
        let other = Effort { set, ..effort };
        assert_eq!(other.time(&TICK), Nanos::from_micros(100));
        assert_eq!(other.way(&WAY), 0);
        assert_eq!(TICK.others_in_words(), "1 ms, 0.1 ms");
        assert_eq!(WAY.words(1.0), "otherwise");
        assert!(TICK.takes(0.5) && !TICK.takes(0.0) && !TICK.takes(f64::NAN));
        assert!(WAY.takes(1.0) && !WAY.takes(2.0) && !WAY.takes(0.5));
    }
}
