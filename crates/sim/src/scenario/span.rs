//! Lengths of time in scenarios: a quantity with its unit, or a range of two.

use event::{Nanos, Random};
use serde::{Deserialize, Deserializer, de::Error};

use crate::quantity::{Length, Of, length};

/// A length of time, or a range to draw one from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The least.
    pub least: Nanos,
    /// The most; equal to the least if nothing is drawn.
    pub most: Nanos,
}

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
        if self.least == self.most {
            self.least
        } else {
            Nanos(random.within(self.least.0, self.most.0))
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Nanos, String> {
    Of::<Length>::parse(text).map(|length| Nanos(length.0))
}

/// For fields that may hold one length.
pub(super) fn maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
    length(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum SpanText {
            One(String),
            Two(String, String),
        }
        let wrong = "a length of time is text such as \"1.5 ms\", or two of them in brackets";
        match SpanText::deserialize(deserializer).map_err(|_| D::Error::custom(wrong))? {
            SpanText::One(text) => parse(&text).map(Span::fixed).map_err(D::Error::custom),
            SpanText::Two(least, most) => {
                let least = parse(&least).map_err(D::Error::custom)?;
                let most = parse(&most).map_err(D::Error::custom)?;
                if least <= most {
                    Ok(Span { least, most })
                } else {
                    Err(D::Error::custom("of two lengths the shorter comes first"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a span is one length, or two with the shorter one first, and nothing else. Method: a table, as
    /// values of a TOML file.
    #[test]
    fn a_span_is_one_length_or_two() {
        #[derive(Deserialize)]
        struct File {
            span: Span,
        }
        let read = |text: &str| {
            let file = toml::from_str::<File>(&format!("span = {text}"));
            file.map(|file| (file.span.least.0, file.span.most.0))
                .map_err(|error| error.message().to_owned())
        };
        assert_eq!(read("\"0.3 us\""), Ok((300, 300)));
        assert_eq!(read("[\"1 ms\", \"2 ms\"]"), Ok((1_000_000, 2_000_000)));
        for (text, part) in [
            ("[\"2 ms\", \"1 ms\"]", "the shorter comes first"),
            ("5", "text such as"),
            ("[\"1 ms\"]", "text such as"),
            ("\"1.5\"", "not a length of time: write digits"),
            ("[\"1 ms\", \"0.1 ns\"]", "round it"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
