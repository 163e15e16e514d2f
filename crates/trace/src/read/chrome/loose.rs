//! Values that are numbers in some files and texts in others.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value, as loosely as programs write them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Loose {
    /// It is missing, or a list, or an object.
    #[default]
    Nothing,
    Whole(i64),
    Fraction(f64),
    Text(String),
}

impl Loose {
    /// Microseconds as nanoseconds; none if it is no time.
    pub(super) fn nanos(&self) -> Option<u64> {
        match self {
            Loose::Nothing => None,
            Loose::Whole(micros) => u64::try_from(*micros).ok()?.checked_mul(1_000),
            Loose::Fraction(micros) => {
                let nanos = (micros * 1e3).round();
                (0.0..=u64::MAX as f64)
                    .contains(&nanos)
                    .then_some(nanos as u64)
            }
            Loose::Text(text) => nanos(text),
        }
    }

    /// A number of a thread or process: a small one; 0 if there is none.
    pub(super) fn id(&self) -> Option<u32> {
        match self {
            Loose::Nothing => Some(0),
            Loose::Whole(number) => u32::try_from(*number).ok(),
            Loose::Fraction(_) => None,
            Loose::Text(text) => text.trim().parse().ok(),
        }
    }

    /// The nearest whole number.
    pub(super) fn whole(&self) -> Option<i64> {
        match self {
            Loose::Nothing => None,
            Loose::Whole(number) => Some(*number),
            Loose::Fraction(number) => Some(number.round() as i64),
            Loose::Text(text) => text
                .trim()
                .parse::<f64>()
                .ok()
                .map(|number| number.round() as i64),
        }
    }
}

/// A decimal fraction of microseconds, digit by digit; digits below a nanosecond are cut off.
fn nanos(text: &str) -> Option<u64> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    let below = digits.fold(0, |below, digit| below * 10 + u64::from(digit - b'0'));
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000)?
        .checked_add(below)
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Loose, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Loose, E> {
        Ok(Loose::Whole(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
        Ok(Loose::Whole(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
        Ok(i64::try_from(value).map_or(Loose::Fraction(value as f64), Loose::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Loose, E> {
        Ok(Loose::Fraction(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Loose, E> {
        Ok(Loose::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Loose, E> {
        Ok(Loose::Text(value))
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Loose, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: times are exact to the nanosecond, however they are written. Method: the same one in three ways,
    /// and texts that are no time.
    #[test]
    fn times_are_exact() {
        let exact = 1_496_637_337_834_125;
        assert_eq!(Loose::Text("1496637337834.125".into()).nanos(), Some(exact));
        assert_eq!(Loose::Fraction(1_496_637_337_834.125).nanos(), Some(exact));
        assert_eq!(Loose::Whole(1_496_637_337_834).nanos(), Some(exact - 125));
        assert_eq!(Loose::Text(" 7.5 ".into()).nanos(), Some(7_500));
        for none in [
            Loose::Whole(-1),
            Loose::Fraction(f64::NAN),
            Loose::Fraction(-0.6),
            Loose::Text("1e3".into()),
            Loose::Text(String::new()),
            Loose::Whole(i64::MAX),
            Loose::Nothing,
        ] {
            assert_eq!(none.nanos(), None, "{none:?}");
        }
    }
}
