//! The kernel's events inside of Chrome's JSON: ftrace's text, or Fuchsia's events.

use std::fmt;

use event::Left;
use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use event::Nanos;

use super::ChromeFile;
use super::loose::Loose;
use crate::Loss;
use crate::read::builder::{At, Party, Trust};
use crate::read::ftrace;

/// The value of `systemTraceEvents`.
pub(super) struct System<'f, 'b>(pub(super) &'f mut ChromeFile<'b>);

impl<'de> DeserializeSeed<'de> for System<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for System<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text of ftrace, or an object")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        ftrace::read_text(self.0.builder, text.as_bytes());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "events" => map.next_value_seed(FuchsiaEvents(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Fuchsia's events.
struct FuchsiaEvents<'f, 'b>(&'f mut ChromeFile<'b>);

impl<'de> DeserializeSeed<'de> for FuchsiaEvents<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for FuchsiaEvents<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fuchsia's events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<FuchsiaEvent>()? {
            self.0.fuchsia(&event);
        }
        Ok(())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FuchsiaEvent {
    ph: Loose,
    ts: Loose,
    cpu: Loose,
    pid: Loose,
    tid: Loose,
    name: Loose,
    out: Task,
    r#in: Task,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Task {
    pid: Loose,
    tid: Loose,
    state: Loose,
}

/// The one number of a state with the same meaning in all lists of Zircon's states: the thread is blocked.
const BLOCKED: Loose = Loose::Whole(3);

impl ChromeFile<'_> {
    fn fuchsia(&mut self, event: &FuchsiaEvent) {
        let Loose::Text(phase) = &event.ph else {
            return self.builder.lose(Loss::Malformed, 1);
        };
        match &**phase {
            "k" => self.switch(event),
            "t" | "p" => {
                let ids = (event.pid.id(), event.tid.id());
                let (Loose::Text(name), (Some(pid), Some(tid))) = (&event.name, ids) else {
                    return self.builder.lose(Loss::BadFields, 1);
                };
                if phase == "p" {
                    return self.builder.process_name(pid, name.as_bytes(), Trust::List);
                }
                let tid = self.tid(pid, tid);
                self.builder.thread_name(tid, name.as_bytes(), Trust::List);
                self.builder.belongs(tid, pid, Trust::List);
            }
            _ => self.builder.lose(Loss::OtherEvents, 1),
        }
    }

    fn switch(&mut self, event: &FuchsiaEvent) {
        let (Some(time), Some(cpu)) = (event.ts.nanos(), event.cpu.id()) else {
            return self.builder.lose(Loss::BadFields, 1);
        };
        let (Some(prev), Some(next)) = (self.kernel_tid(&event.out), self.kernel_tid(&event.r#in))
        else {
            return self.builder.lose(Loss::BadFields, 1);
        };
        let state = if event.out.state == BLOCKED {
            Left::Sleeping
        } else {
            // The meanings of the others are not sure. A thread that is not blocked could mostly have
            // continued.
            self.builder.lose(Loss::Unsupported, u64::from(prev != 0));
            Left::Runnable
        };
        let at = At {
            time: Nanos(time),
            cpu,
            tid: prev,
            in_interrupt: false,
        };
        let party = |tid| Party {
            tid,
            comm: b"",
            priority: None,
        };
        self.builder.switch(&at, &party(prev), state, &party(next));
    }

    /// Process 0 is the idle threads'.
    fn kernel_tid(&mut self, task: &Task) -> Option<u32> {
        match task.pid.id()? {
            0 => Some(0),
            pid => {
                let tid = task.tid.id()?;
                Some(self.tid(pid, tid))
            }
        }
    }
}
