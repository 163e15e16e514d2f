//! One event of the array.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::loose::Loose;

/// The number of arguments that are looked at.
const MOST_ARGS: usize = 64;

/// An event: missing fields are empty.
#[derive(Debug, Default)]
pub(super) struct ChromeEvent {
    pub(super) ph: String,
    pub(super) name: String,
    pub(super) cat: String,
    pub(super) ts: Loose,
    pub(super) dur: Loose,
    pub(super) pid: Loose,
    pub(super) tid: Loose,
    id: Loose,
    /// A replacement for `id` in some events, and whether it is a process's own.
    id2: Option<(Loose, bool)>,
    pub(super) bp: String,
    /// The number of an arrow through the slice, by the newer way, and whether it comes in and goes out.
    bind_id: Loose,
    pub(super) flow_in: bool,
    pub(super) flow_out: bool,
    pub(super) args: Vec<(String, Loose)>,
}

impl ChromeEvent {
    /// Its letter.
    pub(super) fn phase(&self) -> Option<u8> {
        match self.ph.as_bytes() {
            [letter] => Some(*letter),
            _ => None,
        }
    }

    /// Its number, and whether it is one of its process alone. Texts that are no numbers are converted to
    /// some.
    pub(super) fn id(&self) -> (u64, bool) {
        let (id, is_local) = match &self.id2 {
            Some((id, is_local)) => (id, *is_local),
            None => (&self.id, false),
        };
        (id_number(id), is_local)
    }

    /// The number of the arrow through its slice, if there is one.
    pub(super) fn bind_id(&self) -> Option<u64> {
        let is_there = self.flow_in || self.flow_out;
        (is_there && self.bind_id != Loose::Nothing).then(|| id_number(&self.bind_id))
    }
}

/// A number; a text that is none is converted to one.
fn id_number(id: &Loose) -> u64 {
    match id {
        Loose::Nothing => 0,
        Loose::Whole(number) => *number as u64,
        Loose::Fraction(number) => number.to_bits(),
        Loose::Text(text) => {
            let hexadecimal = text
                .strip_prefix("0x")
                .map(|digits| u64::from_str_radix(digits, 16));
            let number = hexadecimal.unwrap_or_else(|| text.parse());
            let mix = |hash: u64, byte: u8| event::mix(hash.wrapping_add(1) ^ u64::from(byte));
            number.unwrap_or_else(|_| text.bytes().fold(0, mix))
        }
    }
}

/// An element of the array that is no object is an event without a letter.
impl<'de> Deserialize<'de> for ChromeEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ChromeEvent, D::Error> {
        deserializer.deserialize_any(Object)
    }
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = ChromeEvent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ChromeEvent, A::Error> {
        let mut event = ChromeEvent::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "ph" => event.ph = text(map.next_value()?),
                "name" => event.name = text(map.next_value()?),
                "cat" => event.cat = text(map.next_value()?),
                "bp" => event.bp = text(map.next_value()?),
                "bind_id" => event.bind_id = map.next_value()?,
                "flow_in" => event.flow_in = is_true(&map.next_value()?),
                "flow_out" => event.flow_out = is_true(&map.next_value()?),
                "ts" => event.ts = map.next_value()?,
                "dur" => event.dur = map.next_value()?,
                "pid" => event.pid = map.next_value()?,
                "tid" => event.tid = map.next_value()?,
                "id" => event.id = map.next_value()?,
                "id2" => {
                    let fields = map.next_value::<Args>()?.0;
                    let first = fields.into_iter().next();
                    event.id2 = first.map(|(scope, id)| (id, scope == "local"));
                }
                "args" => event.args = map.next_value::<Args>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(event)
    }

    fn visit_bool<E>(self, _: bool) -> Result<ChromeEvent, E> {
        Ok(ChromeEvent::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<ChromeEvent, E> {
        Ok(ChromeEvent::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<ChromeEvent, E> {
        Ok(ChromeEvent::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<ChromeEvent, E> {
        Ok(ChromeEvent::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<ChromeEvent, E> {
        Ok(ChromeEvent::default())
    }

    fn visit_unit<E>(self) -> Result<ChromeEvent, E> {
        Ok(ChromeEvent::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ChromeEvent, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ChromeEvent::default())
    }
}

/// Whether a value is `true`, or a number that means it.
fn is_true(value: &Loose) -> bool {
    matches!(value, Loose::Whole(1..)) || matches!(value, Loose::Text(text) if text == "true")
}

fn text(value: Loose) -> String {
    match value {
        Loose::Text(text) => text,
        Loose::Whole(number) => number.to_string(),
        Loose::Fraction(number) => number.to_string(),
        Loose::Nothing => String::new(),
    }
}

/// The plain values of an object; of anything else, none.
struct Args(Vec<(String, Loose)>);

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Args, D::Error> {
        deserializer.deserialize_any(ArgsObject)
    }
}

struct ArgsObject;

impl<'de> Visitor<'de> for ArgsObject {
    type Value = Args;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Args, A::Error> {
        let mut args = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Loose>()? {
            if value != Loose::Nothing && args.len() < MOST_ARGS {
                args.push((key, value));
            }
        }
        Ok(Args(args))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Args, E> {
        Ok(Args(Vec::new()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Args, E> {
        Ok(Args(Vec::new()))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Args, E> {
        Ok(Args(Vec::new()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Args, E> {
        Ok(Args(Vec::new()))
    }

    fn visit_str<E>(self, _: &str) -> Result<Args, E> {
        Ok(Args(Vec::new()))
    }

    fn visit_unit<E>(self) -> Result<Args, E> {
        Ok(Args(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Args, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Args(Vec::new()))
    }
}
