//! Lengths of time in files: text with a unit, or a range of them.
//!
//! Decimals are read exactly: "0.3 us" is 300 ns and not what a floating-point number makes of it.

use event::{Nanos, Random};
use serde::{Deserialize, Deserializer, de::Error};

/// A length of time, or a range to draw one from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The least.
    pub least: Nanos,
    /// The most; equal to the least if nothing is drawn.
    pub most: Nanos,
}

/// The longest: a day. Sums of them stay far from the end of the clock.
const MOST: u64 = 86_400_000_000_000;

impl Span {
    /// Always this long.
    pub fn fixed(length: Nanos) -> Span {
        Span {
            least: length,
            most: length,
        }
    }

    /// One length of it.
    pub fn draw(&self, random: &mut Random) -> Nanos {
        match self.least == self.most {
            true => self.least,
            false => Nanos(random.within(self.least.0, self.most.0)),
        }
    }
}

/// What a text such as "1.5 ms" says.
///
/// # Errors
/// What is wrong with it, for the one who wrote it.
pub(crate) fn parse(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("{text:?} is no length of time: give a number and ns, us, ms or s");
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let scale: u64 = match unit.trim() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = scale.ilog10() as usize;
    if whole.is_empty() || (number.contains('.') && part.is_empty()) || part.contains('.') {
        return Err(wrong());
    }
    if part.trim_end_matches('0').len() > digits {
        return Err(format!("{text:?} is finer than a nanosecond"));
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let padded = format!("{:0<digits$}", part.trim_end_matches('0'));
    let part: u64 = if padded.is_empty() {
        0
    } else {
        padded.parse().map_err(|_| wrong())?
    };
    let nanos = whole
        .checked_mul(scale)
        .and_then(|whole| whole.checked_add(part));
    match nanos {
        Some(nanos) if nanos <= MOST => Ok(Nanos(nanos)),
        _ => Err(format!("{text:?} is longer than a day")),
    }
}

/// For fields that hold one length.
pub(super) fn one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(D::Error::custom)
}

/// For fields that may hold one length.
pub(super) fn maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
    one(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            One(String),
            Two(String, String),
        }
        let wrong = "a length of time is text such as \"1.5 ms\", or two of them in brackets";
        match Given::deserialize(deserializer).map_err(|_| D::Error::custom(wrong))? {
            Given::One(text) => parse(&text).map(Span::fixed).map_err(D::Error::custom),
            Given::Two(least, most) => {
                let least = parse(&least).map_err(D::Error::custom)?;
                let most = parse(&most).map_err(D::Error::custom)?;
                match least <= most {
                    true => Ok(Span { least, most }),
                    false => Err(D::Error::custom("of two lengths the shorter comes first")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: decimals mean what they say, and nothing else is taken for a length. Method: a table.
    #[test]
    fn lengths_are_read_exactly() {
        for (text, nanos) in [
            ("100ns", 100),
            ("0.3 us", 300),
            ("1.500 ms", 1_500_000),
            ("5 µs", 5_000),
            (" 2 s ", 2_000_000_000),
            ("0 ns", 0),
        ] {
            assert_eq!(parse(text), Ok(Nanos(nanos)), "{text}");
        }
        assert!(parse("8.7654321 ms").unwrap_err().contains("finer"));
        for text in [
            "", "5", "ms", "-1 ms", "1,5 ms", "1. ms", ".5 ms", "1.2.3 ms", "2 days",
        ] {
            assert!(parse(text).unwrap_err().contains("give a number"), "{text}");
        }
        assert!(parse("100000 s").unwrap_err().contains("a day"));
        assert!(parse("99999999999999999999 s").is_err());
    }
}
