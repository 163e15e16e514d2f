//! JSON with comments, in which the order of keys counts and keys may be repeated.
//!
//! rt-app's files are read in their order: a task's events are keys of one object. Its own examples have
//! comments. Its tool `workgen` makes repeated keys unique by numbering them, so repeated keys are kept here.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Integer(i64),
    /// A number that is no integer of 64 bits.
    Number,
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads this text.
    ///
    /// # Errors
    /// The mistake and its place.
    pub(super) fn parse(text: &str) -> Result<Json, String> {
        let text = without_comments(text);
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Json {
    /// A short form, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Integer(value) => write!(f, "{value}"),
            Json::Number => f.write_str("a number with a fraction or out of range"),
            Json::Text(text) => write!(f, "{:?}", text.chars().take(40).collect::<String>()),
            Json::List(_) => f.write_str("a list"),
            Json::Object(_) => f.write_str("an object"),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(i64::try_from(value).map_or(Json::Number, Json::Integer))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Json::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Json::Object(entries))
    }
}

/// The text with blanks instead of comments, those of C and of C++; line ends stay where they are.
fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut result = String::with_capacity(text.len());
    while let Some(next) = rest.find(['"', '/']) {
        result.push_str(&rest[..next]);
        rest = &rest[next..];
        let length = match rest {
            _ if rest.starts_with('"') => {
                let length = length_of_text(rest);
                result.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            _ => 0,
        };
        if length == 0 {
            result.push('/');
            rest = &rest[1..];
            continue;
        }
        let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
        result.extend(rest[..length].chars().map(blank));
        rest = &rest[length..];
    }
    result.push_str(rest);
    result
}

/// The length of the quoted text at the beginning of `rest`, quotes included; all of `rest` if the quote has
/// no end.
fn length_of_text(rest: &str) -> usize {
    let mut escaped = false;
    for (place, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: order and repetition of keys survive, and so do numbers of all kinds. Method: an object with
    /// both.
    #[test]
    fn order_and_repetition_survive() {
        let Json::Object(entries) = Json::parse(
            r#"{"b": 1, "a": [true, null], "b": -2, "c": 1.5, "d": 18446744073709551615}"#,
        )
        .unwrap() else {
            panic!("it is an object");
        };
        let keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["b", "a", "b", "c", "d"]);
        assert_eq!(entries[1].1, Json::List(vec![Json::Bool(true), Json::Null]));
        assert_eq!(entries[2].1, Json::Integer(-2));
        assert_eq!(
            [&entries[3].1, &entries[4].1],
            [&Json::Number, &Json::Number]
        );
    }

    /// Goal: comments become blanks, a comment's marks inside a text are text, and errors name the right
    /// line. Method: a table; an error behind a comment of three lines.
    #[test]
    fn comments_are_blanks() {
        for (text, without) in [
            ("{} // end", "{}       "),
            ("/* a */{}", "       {}"),
            ("{/*\n*/}", "{  \n  }"),
            (r#"{"/*": "//\"/*"}"#, r#"{"/*": "//\"/*"}"#),
            ("{} /* no end", "{}          "),
            ("1 / 2", "1 / 2"),
            ("\"no end /*", "\"no end /*"),
            ("/*/ {}", "      "),
        ] {
            assert_eq!(without_comments(text), without, "{text}");
        }
        let error = Json::parse("/*\n\n*/ {\"a\": }").unwrap_err();
        assert!(error.contains("line 3"), "{error}");
    }
}
