//! Quantities with units: the form that files of machines and scenarios have, and the integers that the
//! simulator computes with.
//!
//! A quantity is text, `"307.2 MHz"`, never a floating-point number, and its conversion is exact: a value
//! that is no whole number of the simulator's unit is refused instead of rounded.

use std::fmt;
use std::marker::PhantomData;

use event::Nanos;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A kind of quantity.
pub(crate) trait Kind {
    /// The name of the kind, with an article.
    const WHAT: &'static str;
    /// The units it may be given in, each with the power of ten that converts it to the simulator's unit.
    const UNITS: &'static [(&'static str, u32)];
    /// The largest value that is accepted, in the simulator's unit.
    const MAX: u64;
}

/// Declares kinds of quantities.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $units:expr, at most $max:expr;)*) => {
        $($(#[$doc])* #[derive(Debug)] pub(crate) enum $name {}
        impl Kind for $name {
            const WHAT: &'static str = $what;
            const UNITS: &'static [(&'static str, u32)] = $units;
            const MAX: u64 = $max;
        })*
    };
}

kinds! {
    /// In nanoseconds; at most an hour.
    Time: "a time", &[("ns", 0), ("us", 3), ("µs", 3), ("ms", 6), ("s", 9)], at most 3_600_000_000_000;
    /// In nanoseconds; at most a day. Sums of them stay far from the end of the clock.
    Length: "a length of time", Time::UNITS, at most 86_400_000_000_000;
    /// In kHz.
    Frequency: "a frequency", &[("kHz", 0), ("MHz", 3), ("GHz", 6)], at most 100_000_000;
    /// In microwatts.
    Power: "a power", &[("uW", 0), ("mW", 3), ("W", 6)], at most 10_000_000_000;
    /// In microvolts.
    Voltage: "a voltage", &[("uV", 0), ("mV", 3), ("V", 6)], at most 10_000_000;
    /// Power for each MHz and square volt, as energy models of kernels have it.
    Coefficient: "a power coefficient", &[("uW/MHz/V2", 0)], at most 1_000_000;
    /// In thousandths of a degree Celsius.
    Temperature: "a temperature", &[("C", 3)], at most 1_000_000;
    /// In thousandths of a degree for each watt.
    Resistance: "a thermal resistance", &[("C/W", 3)], at most 1_000_000;
    /// In hundredths.
    Percent: "a share", &[("%", 0)], at most 100;
}

/// A quantity of this kind, in the simulator's unit.
pub(crate) struct Of<K>(pub(crate) u64, PhantomData<K>);

/// Several, written as numbers with one unit behind them: `"600 972 1332 MHz"`.
pub(crate) struct ListOf<K>(pub(crate) Vec<u64>, PhantomData<K>);

/// Nanoseconds as a fraction: `"4900/841 ns"`.
pub(crate) struct Fraction(pub(crate) u64, pub(crate) u64);

/// The most numbers in a list.
const LIST_MAX: usize = 256;

impl<K: Kind> Of<K> {
    /// Reads a text such as `"1.5 ms"`.
    ///
    /// # Errors
    /// The mistake, in words for the text's author.
    pub(crate) fn parse(text: &str) -> Result<Of<K>, String> {
        match list::<K>(text)?.as_slice() {
            [one] => Ok(Of(*one, PhantomData)),
            many => Err(format!("`{text}` is {} numbers, and not one", many.len())),
        }
    }
}

impl<K: Kind> ListOf<K> {
    fn parse(text: &str) -> Result<ListOf<K>, String> {
        Ok(ListOf(list::<K>(text)?, PhantomData))
    }
}

impl Fraction {
    fn parse(text: &str) -> Result<Fraction, String> {
        let parts = text
            .strip_suffix(" ns")
            .and_then(|text| text.split_once('/'));
        let number = |text: &str| {
            text.parse()
                .ok()
                .filter(|number| (1..=1_000_000_000).contains(number))
        };
        let fraction =
            parts.and_then(|(over, under)| Some(Fraction(number(over)?, number(under)?)));
        fraction
            .ok_or_else(|| format!("`{text}` is no fraction of nanoseconds: write `4900/841 ns`"))
    }
}

fn list<K: Kind>(text: &str) -> Result<Vec<u64>, String> {
    let text = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == ' ';
    let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let (numbers, unit) = text.split_at(end);
    let Some((_, digits)) = K::UNITS.iter().find(|(name, _)| *name == unit) else {
        let names: Vec<&str> = K::UNITS.iter().map(|(name, _)| *name).collect();
        let (what, names) = (K::WHAT, names.join(", "));
        return Err(format!(
            "`{}` is not {what}: write digits, with a point if need be, a space and one of: {names}",
            shown(text)
        ));
    };
    let words: Vec<&str> = numbers.split_whitespace().take(LIST_MAX + 1).collect();
    if words.is_empty() || words.len() > LIST_MAX {
        return Err(format!(
            "`{}` has no number, or more than {LIST_MAX}",
            shown(text)
        ));
    }
    let convert = |word: &&str| {
        let number = scaled(word, *digits)
            .map_err(|why| format!("`{} {unit}` is not {}: {why}", shown(word), K::WHAT))?;
        if number <= K::MAX {
            Ok(number)
        } else {
            Err(format!(
                "`{} {unit}` is not believed: it is too large",
                shown(word)
            ))
        }
    };
    words.iter().map(convert).collect()
}

/// The beginning of a text, for messages.
fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

/// A decimal number times a power of ten, exactly.
fn scaled(text: &str, digits: u32) -> Result<u64, &'static str> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) {
        return Err("write digits, with a point if need be");
    }
    let part = part.trim_end_matches('0');
    let Some(zeros) = (digits as usize).checked_sub(part.len()) else {
        return Err("it is no whole number of the unit that is computed with; round it");
    };
    let text = format!("{whole}{part}{}", "0".repeat(zeros));
    text.parse().map_err(|_| "it is too large")
}

/// Reads a type from text by its `parse`.
macro_rules! from_text {
    ([$($generic:tt)*] $type:ty, $what:expr) => {
        impl<'de $($generic)*> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Text($what, <$type>::parse))
            }
        }
    };
}

from_text!([, K: Kind] Of<K>, K::WHAT);
from_text!([, K: Kind] ListOf<K>, K::WHAT);
from_text!([] Fraction, "a time");

/// The name of the expected type, and its parser.
struct Text<T>(&'static str, fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with its unit, in quotes", self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).map_err(E::custom)
    }
}

/// For fields that hold one length.
pub(crate) fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
    Of::<Length>::deserialize(deserializer).map(|length| Nanos(length.0))
}

/// Full speed: that of the machine's fastest CPU at its highest frequency. Speeds are fractions of it.
pub(crate) const FULL: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: units are converted exactly. Method: a table of texts and the integers they mean.
    #[test]
    fn units_are_converted_exactly() {
        let times = [
            ("4 ms", 4_000_000),
            ("0.35us", 350),
            ("154 ns", 154),
            ("32.768 ms", 32_768_000),
            ("5 µs", 5_000),
            ("1.500 ms", 1_500_000),
            ("100ns", 100),
            (" 2 s ", 2_000_000_000),
            ("0 ns", 0),
        ];
        for (text, nanos) in times {
            assert_eq!(
                Of::<Time>::parse(text).map(|time| time.0),
                Ok(nanos),
                "{text}"
            );
        }
        assert_eq!(Of::<Frequency>::parse("307.2 MHz").unwrap().0, 307_200);
        assert_eq!(Of::<Frequency>::parse("3.9 GHz").unwrap().0, 3_900_000);
        assert_eq!(Of::<Power>::parse("4.010 W").unwrap().0, 4_010_000);
        assert_eq!(Of::<Voltage>::parse("781 mV").unwrap().0, 781_000);
        assert_eq!(
            ListOf::<Frequency>::parse("600 972.5 MHz").unwrap().0,
            [600_000, 972_500]
        );
        let Fraction(over, under) = Fraction::parse("4900/841 ns").unwrap();
        assert_eq!((over, under), (4900, 841));
    }

    /// Goal: inexact and absurd numbers, and texts that are no number, are refused, and the message says what
    /// to do. Method: a table of texts and words that their messages must have.
    #[test]
    fn what_is_no_quantity_is_refused() {
        let bad = [
            ("38.6 ns", "round it"),
            ("0.0001 us", "round it"),
            ("4", "one of: ns, us, µs, ms, s"),
            ("", "one of"),
            ("ms", "has no number"),
            ("-4 ms", "write digits"),
            ("1e3 ms", "digits"),
            (".5 ms", "digits"),
            ("5. ms", "digits"),
            ("1,5 ms", "one of"),
            ("1.2.3 ms", "digits"),
            ("2 days", "one of"),
            ("3601 s", "not believed"),
            ("99999999999999999999 s", "too large"),
            ("1 2 ms", "not one"),
            ("4 MHz", "not a time"),
        ];
        for (text, word) in bad {
            let error = Of::<Time>::parse(text).map(|time| time.0).unwrap_err();
            assert!(error.contains(word), "{text:?}: {error}");
        }
        let too_long = Of::<Length>::parse("86401 s").map(|length| length.0);
        assert!(too_long.unwrap_err().contains("not believed"));
        assert!(Of::<Length>::parse("86400 s").is_ok());
        let long = format!("{}MHz", "1 ".repeat(LIST_MAX + 1));
        assert!(ListOf::<Frequency>::parse(&long).is_err());
        for text in ["4900/0 ns", "4900 ns", "/ ns", "1/2", "1/99999999999 ns"] {
            assert!(Fraction::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        /// Goal: reading is the inverse of writing, in every unit. Method: any number of nanoseconds, written
        /// in each unit with as many decimals as that takes.
        #[test]
        fn what_was_written_is_read(nanos in 0..=Time::MAX) {
            for (unit, digits) in Time::UNITS {
                let one = 10u64.pow(*digits);
                let decimals = *digits as usize;
                let text = match decimals {
                    0 => format!("{nanos} {unit}"),
                    _ => format!("{}.{:0decimals$} {unit}", nanos / one, nanos % one),
                };
                prop_assert_eq!(Of::<Time>::parse(&text).map(|time| time.0), Ok(nanos));
            }
        }

        /// Goal: no text makes the reader panic. Method: any text, and any text made of the characters of
        /// numbers.
        #[test]
        fn any_text_is_read_or_refused(any in ".*", near in "[0-9./ numsMHz]{0,40}") {
            for text in [any, near] {
                let _ = (Of::<Time>::parse(&text), ListOf::<Frequency>::parse(&text), Fraction::parse(&text));
            }
        }
    }
}
