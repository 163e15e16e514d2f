//! Android's markers: what programs write to `trace_marker`, one text an event.
//!
//! Letters and fields as in `system/core`'s libcutils and frameworks' `Trace`; what readers before this one
//! accept is accepted. The name of a slice is everything after the second bar. A text that is none of them is
//! somebody's note: an instant with that name.

use event::Nanos;

use super::builder::{At, Builder};
use super::numbers::{field, integer, seconds, signed};
use crate::{Loss, MarkKind};

/// A marker, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker<'a> {
    Begin {
        tgid: u32,
        name: &'a [u8],
    },
    End,
    Async {
        tgid: u32,
        begins: bool,
        name: &'a [u8],
        cookie: u64,
    },
    Track {
        tgid: u32,
        track: &'a [u8],
        /// None only where it ends.
        name: Option<&'a [u8]>,
        begins: bool,
        cookie: u64,
    },
    Instant {
        tgid: u32,
        on_track: bool,
        name: &'a [u8],
    },
    Value {
        tgid: u32,
        name: &'a [u8],
        value: i64,
    },
    /// Two clocks compared: says nothing about threads.
    ClockSync,
    /// A frequency, as measuring scripts write it when they begin.
    Frequency {
        cpu: u32,
        khz: u32,
    },
    /// A sleep state, likewise.
    Idle {
        cpu: u32,
        state: u32,
    },
    Note(&'a [u8]),
}

/// Reads one text into the recording.
pub(crate) fn read(builder: &mut Builder, at: &At, text: &[u8]) {
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\0' | b'\r'));
    let text = &text[..end.map_or(0, |last| last + 1)];
    let is_read = match parse(text) {
        Some(marker) => apply(builder, at, marker).is_some(),
        None => false,
    };
    if !is_read {
        builder.lose(Loss::BadMarkers, 1);
    }
}

/// None: a marker's letter, and not what follows it.
fn parse(text: &[u8]) -> Option<Marker<'_>> {
    let (letter, rest) = match text {
        [b'E'] => return Some(Marker::End),
        [letter, b'|', rest @ ..] => (letter, rest),
        _ => return words(text),
    };
    // Kernel code marks without a process, as `C||name|1` or `C|0|name|1`.
    let (tgid, rest) = cut(rest);
    let tgid = match (letter, tgid) {
        (b'E', _) => return Some(Marker::End),
        (b'B' | b'S' | b'F' | b'G' | b'H' | b'I' | b'N' | b'C', b"") => Some(0),
        (b'B' | b'S' | b'F' | b'G' | b'H' | b'I' | b'N' | b'C', tgid) => {
            integer(tgid).and_then(|tgid| u32::try_from(tgid).ok())
        }
        _ => return words(text),
    };
    let tgid = tgid?;
    match letter {
        b'B' => Some(Marker::Begin {
            tgid,
            name: rest.unwrap_or_default(),
        }),
        b'S' | b'F' => {
            let (name, cookie) = cut_last(rest?)?;
            Some(Marker::Async {
                tgid,
                begins: *letter == b'S',
                name,
                cookie: signed(cookie)? as u64,
            })
        }
        b'G' | b'H' => {
            let (track, rest) = cut(rest?);
            let begins = *letter == b'G';
            let (name, cookie) = match cut_last(rest?) {
                Some((name, cookie)) => (Some(name), cookie),
                None if begins => return None,
                None => (None, rest?),
            };
            Some(Marker::Track {
                tgid,
                track,
                name,
                begins,
                cookie: signed(cookie)? as u64,
            })
        }
        b'I' => Some(Marker::Instant {
            tgid,
            on_track: false,
            name: rest?,
        }),
        b'N' => Some(Marker::Instant {
            tgid,
            on_track: true,
            name: cut(rest?).1?,
        }),
        _ => {
            let (name, rest) = cut(rest?);
            Some(Marker::Value {
                tgid,
                name,
                value: signed(cut(rest?).0)?,
            })
        }
    }
}

/// Texts that begin with a word.
fn words(text: &[u8]) -> Option<Marker<'_>> {
    let number = |key| {
        field(text, key)
            .and_then(integer)
            .and_then(|n| u32::try_from(n).ok())
    };
    if let Some(rest) = text.strip_prefix(b"trace_event_clock_sync:") {
        let told = field(rest, b"parent_ts=").and_then(seconds);
        let told = told.or_else(|| field(rest, b"realtime_ts=").and_then(integer).map(Nanos));
        return told.map(|_| Marker::ClockSync);
    }
    if text.starts_with(b"cpu_frequency:") || text.starts_with(b"cpu_frequency_devlib:") {
        return Some(Marker::Frequency {
            cpu: number(b"cpu_id=")?,
            khz: number(b"state=")?,
        });
    }
    if text.starts_with(b"cpu_idle:") {
        return Some(Marker::Idle {
            cpu: number(b"cpu_id=")?,
            state: number(b"state=")?,
        });
    }
    Some(Marker::Note(text))
}

/// What is before the first bar and, if there is one, after it.
fn cut(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == b'|') {
        Some(bar) => (&text[..bar], Some(&text[bar + 1..])),
        None => (text, None),
    }
}

/// What is before and after the last bar.
fn cut_last(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let bar = text.iter().rposition(|byte| *byte == b'|')?;
    Some((&text[..bar], &text[bar + 1..]))
}

/// None: it is about a thread and nobody's, since the idle task speaks.
fn apply(builder: &mut Builder, at: &At, marker: Marker<'_>) -> Option<()> {
    let time = at.time;
    match marker {
        Marker::Begin { tgid, name } => {
            // A slice is the thread's, whatever process it names.
            builder.speaker(at.tid, tgid)?;
            let on = builder.task(at.tid)?;
            let name = builder.word(name);
            builder.mark(time, on, MarkKind::Begin(name));
        }
        Marker::End => {
            let on = builder.task(at.tid)?;
            builder.mark(time, on, MarkKind::End);
        }
        Marker::Async {
            tgid,
            begins,
            name,
            cookie,
        } => {
            let on = builder.speaker(at.tid, tgid)?;
            let name = builder.word(name);
            let what = match begins {
                true => MarkKind::AsyncBegin { name, cookie },
                false => MarkKind::AsyncEnd { name, cookie },
            };
            builder.mark(time, on, what);
        }
        Marker::Track {
            tgid,
            track,
            name,
            begins,
            cookie,
        } => {
            let on = builder.speaker(at.tid, tgid)?;
            let key = (tgid, builder.word(track), cookie);
            let given = name.map(|name| builder.word(name));
            // There is no place for the track's name.
            builder.lose(Loss::Unsupported, 1);
            if begins {
                let name = given?;
                builder.on_track(key, Some(name));
                builder.mark(time, on, MarkKind::AsyncBegin { name, cookie });
            } else {
                let open = builder.on_track(key, None);
                let name = given.or(open).unwrap_or(key.1);
                builder.mark(time, on, MarkKind::AsyncEnd { name, cookie });
            }
        }
        Marker::Instant {
            tgid,
            on_track,
            name,
        } => {
            let on = builder.speaker(at.tid, tgid)?;
            builder.lose(Loss::Unsupported, u64::from(on_track));
            let name = builder.word(name);
            builder.mark(time, on, MarkKind::Instant(name));
        }
        Marker::Value { tgid, name, value } => {
            let name = builder.word(name);
            builder.value(time, tgid, name, value);
        }
        Marker::ClockSync => {}
        Marker::Frequency { cpu, khz } => builder.frequency(at, cpu, khz),
        Marker::Idle { cpu, state } => builder.idle(at, cpu, state),
        Marker::Note(text) => {
            let on = builder.task(at.tid)?;
            let name = builder.word(text);
            builder.mark(time, on, MarkKind::Instant(name));
        }
    }
    Some(())
}
