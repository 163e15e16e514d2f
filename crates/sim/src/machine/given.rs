//! A value of a machine file together with its source.
//!
//! Invariant: no value gets out of a file without its source. [`Given`] is the only form in which a number
//! can be written, and [`Facts::take`] the only way to its inside.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// `[value, "source"]`.
#[derive(Debug)]
pub(super) struct Given<T> {
    value: T,
    source: String,
}

/// The source of one value of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The value's key in the file, as in `cluster.big.idle.c2.exit`.
    pub key: String,
    /// The source of the value.
    pub source: Source,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A reasonable guess, for this reason: no source has the value and it was not measured.
    Assumed(String),
    /// One of the file's sources: its short name, and the place in it.
    Known(String, String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, detail) = match self {
            Source::Assumed(why) => (ASSUMED, why),
            Source::Known(name, detail) => (name.as_str(), detail),
        };
        match detail.as_str() {
            "" => f.write_str(name),
            detail => write!(f, "{name}: {detail}"),
        }
    }
}

/// The word that stands in the place of a missing source.
const ASSUMED: &str = "assumed";

/// Collects the sources of the values that are taken out of a file.
pub(super) struct Facts<'a> {
    named: &'a BTreeMap<String, String>,
    used: BTreeSet<String>,
    facts: Vec<Fact>,
}

impl<'a> Facts<'a> {
    /// The sources that the file names.
    pub(super) fn new(named: &'a BTreeMap<String, String>) -> Result<Facts<'a>, String> {
        for (name, text) in named {
            if name == ASSUMED || text.trim().is_empty() {
                return Err(format!(
                    "sources.{name}: give the source another name than `{ASSUMED}`, and say what it is"
                ));
            }
        }
        Ok(Facts {
            named,
            used: BTreeSet::new(),
            facts: Vec::new(),
        })
    }

    /// The value of this key.
    pub(super) fn take<'g, T>(&mut self, key: &str, given: &'g Given<T>) -> Result<&'g T, String> {
        let text = given.source.as_str();
        let (name, detail) = text.split_once(':').unwrap_or((text, ""));
        let (name, detail) = (name.trim(), detail.trim().to_owned());
        let source = if name == ASSUMED {
            Source::Assumed(detail)
        } else if self.named.contains_key(name) {
            self.used.insert(name.to_owned());
            Source::Known(name.to_owned(), detail)
        } else {
            return Err(format!(
                "{key}: {text:?} is no source: begin with a name from [sources], or with `{ASSUMED}`"
            ));
        };
        let key = key.to_owned();
        self.facts.push(Fact { key, source });
        Ok(&given.value)
    }

    /// All facts. Each named source has to back at least one.
    pub(super) fn finish(self) -> Result<Vec<Fact>, String> {
        let idle = self.named.keys().find(|name| !self.used.contains(*name));
        match idle {
            Some(name) => Err(format!(
                "sources.{name}: no value is from there: name it where it is used, or leave it out"
            )),
            None => Ok(self.facts),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Given<T>, D::Error> {
        from.deserialize_seq(Pair(PhantomData))
    }
}

struct Pair<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Pair<T> {
    type Value = Given<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[value, \"source\"], where the source may be \"assumed\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Given<T>, A::Error> {
        let value = pair.next_element()?;
        let value = value.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let source: Option<String> = pair.next_element()?;
        let source = source.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        match pair.next_element::<serde::de::IgnoredAny>()? {
            None => Ok(Given { value, source }),
            Some(_) => Err(A::Error::invalid_length(3, &self)),
        }
    }
}
