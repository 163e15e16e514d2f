//! Chrome's JSON: an array of events, which may be cut off, or an object with one.
//!
//! The "Trace Event Format" of Chrome's documentation, and its variants in real programs: times as numbers or
//! as texts, whole or with fractions, in microseconds. The array is read event by event; its contents are
//! kept in a small form, and brought into the order of their times at the end (`slices.rs`).

mod entry;
mod fuchsia;
mod loose;
mod slices;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;

use self::entry::ChromeEvent;
use self::loose::Loose;
use self::slices::{ChromeSlices, PointKind};
use super::builder::{Builder, ThreadFacts, Trust};
use super::{Format, ReadError};
use crate::{Loss, Name};

/// Made-up tids are counted down from here: no kernel gives them out.
const MADE_UP: u32 = u32::MAX - 2;

/// Reads a file into a recording in the making.
///
/// # Errors
/// If the input fails, or if it is no trace: it has no event, and no list of events.
pub(super) fn read(input: impl Read, builder: &mut Builder) -> Result<(), ReadError> {
    builder.set_format(Format::Chrome.word());
    let mut file = ChromeFile::new(builder);
    let mut json = Deserializer::from_reader(input);
    let result = json.deserialize_any(Top(&mut file));
    let has_list = file.has_list;
    file.finish();
    match result {
        Ok(()) if has_list => Ok(()),
        Ok(()) => Err(ReadError::new(
            "is JSON without \"traceEvents\"",
            "give a trace in Chrome's format",
        )),
        Err(why) if why.is_io() => Err(std::io::Error::from(why).into()),
        Err(why) if !has_list => Err(ReadError::new(
            format!("is not JSON of a trace: {why}"),
            "give a trace in Chrome's format",
        )),
        Err(why) if why.is_eof() => {
            builder.lose(Loss::Truncated, 1);
            Ok(())
        }
        Err(_) => {
            // It is not known where the next event begins.
            builder.lose(Loss::Malformed, 1);
            Ok(())
        }
    }
}

/// The contents of a file so far.
struct ChromeFile<'b> {
    builder: &'b mut Builder,
    slices: ChromeSlices,
    /// By tid: the process that has it.
    owners: HashMap<u32, u32>,
    /// Other processes' threads of the same tid, under made-up ones.
    others: HashMap<(u32, u32), u32>,
    /// Arrows by category, name and number, and those of the newer way by number alone: their numbers here.
    flows: HashMap<(Name, Name, u64), u64>,
    used: HashSet<u64>,
    has_list: bool,
}

/// The file: an array, or an object.
struct Top<'f, 'b>(&'f mut ChromeFile<'b>);

impl<'de> Visitor<'de> for Top<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of events, or an object with one")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        EventArray(self.0).visit_seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => map.next_value_seed(EventArray(self.0))?,
                "systemTraceEvents" => {
                    self.0.has_list = true;
                    map.next_value_seed(fuchsia::System(self.0))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A list of events.
struct EventArray<'f, 'b>(&'f mut ChromeFile<'b>);

impl<'de> DeserializeSeed<'de> for EventArray<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EventArray<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.has_list = true;
        while let Some(event) = seq.next_element::<ChromeEvent>()? {
            self.0.event(&event);
        }
        Ok(())
    }

    /// Another value stands there.
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Err(E::custom("\"traceEvents\" is no array"))
    }
}

impl ChromeFile<'_> {
    fn new(builder: &mut Builder) -> ChromeFile<'_> {
        ChromeFile {
            builder,
            slices: ChromeSlices::default(),
            owners: HashMap::new(),
            others: HashMap::new(),
            flows: HashMap::new(),
            used: HashSet::new(),
            has_list: false,
        }
    }

    /// The tid of a thread. In some files each process numbers its threads by itself; then the first one has
    /// the number, and others have made-up ones.
    fn tid(&mut self, pid: u32, tid: u32) -> u32 {
        let owner = *self.owners.entry(tid).or_insert(pid);
        if owner == pid && tid != 0 {
            return tid;
        }
        let next = MADE_UP - self.others.len() as u32;
        let made_up = *self.others.entry((pid, tid)).or_insert(next);
        if made_up == next {
            self.builder
                .thread_name(made_up, format!("{tid}").as_bytes(), Trust::Hint);
            if let Some(task) = self.builder.task(made_up) {
                let is_made_up = true;
                self.builder.thread_facts(
                    task,
                    ThreadFacts {
                        is_made_up,
                        ..ThreadFacts::default()
                    },
                );
            }
        }
        made_up
    }

    /// Reads an event.
    fn event(&mut self, event: &ChromeEvent) {
        let (Some(phase), Some(pid), Some(tid)) = (event.phase(), event.pid.id(), event.tid.id())
        else {
            return self.builder.lose(Loss::Malformed, 1);
        };
        let tid = self.tid(pid, tid);
        if phase == b'M' {
            return self.about(event, pid, tid);
        }
        let Some(time) = event.ts.nanos() else {
            return self.builder.lose(Loss::BadFields, 1);
        };
        if event.pid != Loose::Nothing {
            self.builder.belongs(tid, pid, Trust::List);
        }
        let name = self.builder.word(event.name.as_bytes());
        match phase {
            b'B' => self.slices.begin(tid, time, name),
            b'E' => self.slices.end(tid, time),
            b'X' => match event.dur.nanos() {
                Some(length) => self
                    .slices
                    .whole(tid, time, time.saturating_add(length), name),
                None => self.builder.lose(Loss::BadFields, 1),
            },
            b'I' | b'i' | b'R' => self.slices.say(tid, time, PointKind::Instant(name)),
            b'C' => self.value(event, pid, time),
            b'b' | b'S' => {
                let key = self.key(event, pid, name);
                self.slices.say(tid, time, PointKind::AsyncBegin(key, name));
            }
            b'e' | b'F' => {
                let key = self.key(event, pid, name);
                self.slices.say(tid, time, PointKind::AsyncEnd(key));
            }
            b'n' | b'T' | b'p' => self.slices.say(tid, time, PointKind::Instant(name)),
            b's' | b't' | b'f' => self.flow(event, phase, tid, time, name),
            // Clocks compared; where a group of events begins and ends.
            b'c' | b'(' | b')' => {}
            // Samples, objects, memory, and undocumented events.
            _ => self.builder.lose(Loss::Unsupported, 1),
        }
        match phase {
            b'B' | b'X' => self.bound_flow(event, tid, time),
            _ if event.bind_id().is_some() => self.builder.lose(Loss::Unsupported, 1),
            _ => {}
        }
    }

    /// Reads metadata of a thread or a process.
    fn about(&mut self, event: &ChromeEvent, pid: u32, tid: u32) {
        let name = event.args.iter().find(|(key, _)| key == "name");
        let Some((_, Loose::Text(name))) = name else {
            return;
        };
        match &*event.name {
            "thread_name" => {
                self.builder.thread_name(tid, name.as_bytes(), Trust::List);
                self.builder.belongs(tid, pid, Trust::List);
            }
            "process_name" => self.builder.process_name(pid, name.as_bytes(), Trust::List),
            _ => {}
        }
    }

    /// A counter's event may have several values.
    fn value(&mut self, event: &ChromeEvent, pid: u32, time: u64) {
        for (key, value) in &event.args {
            let Some(value) = value.whole() else {
                self.builder.lose(Loss::BadFields, 1);
                continue;
            };
            let name = match key.as_str() {
                "value" => event.name.to_string(),
                key => format!("{} {key}", event.name),
            };
            let name = self.builder.word(name.as_bytes());
            self.slices.value(pid, time, name, value);
        }
    }

    /// The number of a slice that may end elsewhere: by category and number, and by process if the number is
    /// one of its process alone.
    fn key(&mut self, event: &ChromeEvent, pid: u32, name: Name) -> slices::Key {
        let category = self.builder.word(event.cat.as_bytes());
        let (id, is_local) = event.id();
        slices::Key {
            pid: if is_local { pid } else { 0 },
            category,
            // Slices of the older kind may differ in their names alone.
            name: matches!(event.phase(), Some(b'S' | b'F')).then_some(name),
            id,
        }
    }

    /// An arrow of the newer way, which passes through the event's own slice.
    fn bound_flow(&mut self, event: &ChromeEvent, tid: u32, time: u64) {
        let Some(id) = event.bind_id() else { return };
        let arrow = self.arrow((Name(u32::MAX), Name(u32::MAX), id));
        let what = PointKind::Flow {
            id: arrow,
            ends: event.flow_in && !event.flow_out,
            to_next: false,
        };
        self.slices.say(tid, time, what);
    }

    /// The number here of an arrow.
    fn arrow(&mut self, key: (Name, Name, u64)) -> u64 {
        let used = &mut self.used;
        *self.flows.entry(key).or_insert_with(|| {
            // Its own number, unless another arrow has it. (An odd step passes through all numbers.)
            let mut own = key.2;
            while !used.insert(own) {
                own = own.wrapping_add(0x9e37_79b9_7f4a_7c15);
            }
            own
        })
    }

    fn flow(&mut self, event: &ChromeEvent, phase: u8, tid: u32, time: u64, name: Name) {
        let category = self.builder.word(event.cat.as_bytes());
        let (id, _) = event.id();
        let arrow = self.arrow((category, name, id));
        let to_next = phase == b'f' && event.bp != "e";
        let ends = phase == b'f';
        self.slices.say(
            tid,
            time,
            PointKind::Flow {
                id: arrow,
                ends,
                to_next,
            },
        );
    }

    fn finish(self) {
        self.slices.tell(self.builder);
    }
}
