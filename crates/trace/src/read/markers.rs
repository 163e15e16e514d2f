//! Android's markers: the texts that programs write to `trace_marker`, one for each event.
//!
//! Letters and fields are those of `system/core`'s libcutils and frameworks' `Trace`; every form is accepted
//! that other readers accept. The name of a slice is everything after the second bar. A text of another form
//! is a note: an instant with that name.

use event::Nanos;

use super::builder::{At, Builder, MOST_CPUS, Trust};
use super::numbers::{field, integer, seconds, signed};
use crate::{Loss, MarkKind, Name};

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
    Track(OnTrack<'a>),
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

/// A slice on a track with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnTrack<'a> {
    tgid: u32,
    track: &'a [u8],
    /// Missing only where the slice ends.
    name: Option<&'a [u8]>,
    begins: bool,
    cookie: u64,
}

/// The most frequent kinds of texts, in the form they have after reading.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    Begin { tgid: u32, name: Name },
    End,
}

/// Reads one text into the recording. Returns its known form, if it is of a frequent kind.
pub(crate) fn read(builder: &mut Builder, at: &At, text: &[u8]) -> Option<Known> {
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\0' | b'\r'));
    let text = &text[..end.map_or(0, |last| last + 1)];
    let marker = match parse(text) {
        Some(Marker::Begin { name, .. }) if at.in_interrupt => {
            let name = builder.word(name);
            mark_interrupt(builder, at, MarkKind::Begin(name));
            return None;
        }
        Some(Marker::End) if at.in_interrupt => {
            mark_interrupt(builder, at, MarkKind::End);
            return None;
        }
        Some(Marker::Begin { tgid, name }) if at.tid != 0 => {
            let name = builder.word(name);
            Known::Begin { tgid, name }
        }
        Some(Marker::End) => Known::End,
        Some(other) if apply(builder, at, other).is_some() => return None,
        _ => {
            builder.lose(Loss::BadMarkers, 1);
            return None;
        }
    };
    again(builder, at, marker);
    Some(marker)
}

/// A slice of an interrupt is its CPU's, and not of the thread that it stopped, which may be the idle one.
/// The track of it is no thread: its number is beyond the kernel's.
fn mark_interrupt(builder: &mut Builder, at: &At, what: MarkKind) {
    const TRACKS: u32 = u32::MAX - (1 << 17);
    let tid = TRACKS + at.cpu.min(MOST_CPUS);
    if let Some(on) = builder.task(tid) {
        builder.no_thread(tid, &format!("interrupts of CPU {}", at.cpu));
        builder.mark(at.time, on, what);
    }
}

/// Reads a text whose form is known.
pub(crate) fn again(builder: &mut Builder, at: &At, marker: Known) {
    // Without a thread, since the idle task speaks.
    let Some(on) = builder.task(at.tid) else {
        return builder.lose(Loss::BadMarkers, 1);
    };
    let what = match marker {
        Known::Begin { tgid, name } => {
            // A slice is the thread's, whatever process it names.
            builder.belongs_to(on, tgid, Trust::Hint);
            MarkKind::Begin(name)
        }
        Known::End => MarkKind::End,
    };
    builder.mark(at.time, on, what);
}

/// None: a marker's letter, but not the fields of one.
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
            Some(Marker::Track(OnTrack {
                tgid,
                track,
                name,
                begins,
                cookie: signed(cookie)? as u64,
            }))
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

/// The text before the first bar and, if there is one, after it.
fn cut(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == b'|') {
        Some(bar) => (&text[..bar], Some(&text[bar + 1..])),
        None => (text, None),
    }
}

/// The text before and after the last bar.
fn cut_last(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let bar = text.iter().rposition(|byte| *byte == b'|')?;
    Some((&text[..bar], &text[bar + 1..]))
}

/// None: it is about a thread and there is none, since the idle task speaks.
fn apply(builder: &mut Builder, at: &At, marker: Marker<'_>) -> Option<()> {
    let time = at.time;
    match marker {
        // The idle task's; those of others are known.
        Marker::Begin { .. } | Marker::End => return None,
        Marker::Async {
            tgid,
            begins,
            name,
            cookie,
        } => {
            let on = builder.speaker(at.tid, tgid)?;
            let name = builder.word(name);
            let what = if begins {
                MarkKind::AsyncBegin { name, cookie }
            } else {
                MarkKind::AsyncEnd { name, cookie }
            };
            builder.mark(time, on, what);
        }
        Marker::Track(slice) => apply_on_track(builder, at, slice)?,
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

/// As `apply`.
fn apply_on_track(builder: &mut Builder, at: &At, slice: OnTrack<'_>) -> Option<()> {
    let cookie = slice.cookie;
    let on = builder.speaker(at.tid, slice.tgid)?;
    let key = (slice.tgid, builder.word(slice.track), cookie);
    let given = slice.name.map(|name| builder.word(name));
    // There is no place for the track's name.
    builder.lose(Loss::Unsupported, 1);
    let what = if slice.begins {
        let name = given?;
        builder.on_track(key, Some(name));
        MarkKind::AsyncBegin { name, cookie }
    } else {
        let open = builder.on_track(key, None);
        let name = given.or(open).unwrap_or(key.1);
        MarkKind::AsyncEnd { name, cookie }
    };
    builder.mark(at.time, on, what);
    Some(())
}

#[cfg(test)]
mod tests {
    use event::Task;

    use super::*;
    use crate::Recording;

    fn read_all(texts: &[&str]) -> Recording {
        let mut builder = Builder::new("test");
        for (time, text) in (1..).zip(texts) {
            let at = At {
                time: Nanos(time),
                cpu: 0,
                tid: 7,
                in_interrupt: false,
            };
            read(&mut builder, &at, text.as_bytes());
        }
        builder.finish()
    }

    fn said(recording: &Recording) -> Vec<(u32, String)> {
        let word = |name| recording.names.word(name);
        let mark = |what: MarkKind| match what {
            MarkKind::Begin(name) => format!("begin {}", word(name)),
            MarkKind::End => "end".to_owned(),
            MarkKind::AsyncBegin { name, cookie } => format!("open {} {cookie}", word(name)),
            MarkKind::AsyncEnd { name, cookie } => format!("close {} {cookie}", word(name)),
            MarkKind::Instant(name) => format!("instant {}", word(name)),
            MarkKind::Flow { .. } => "flow".to_owned(),
        };
        let marks = recording.marks.iter();
        marks
            .map(|found| {
                (
                    recording.threads[found.on.index()].tid.unwrap(),
                    mark(found.what),
                )
            })
            .collect()
    }

    /// Goal: every payload is read as Android's own tools read it. Method: one of each, with names that hold
    /// bars, empty names, every form of an end, and trailing bytes.
    #[test]
    fn every_payload() {
        for (text, wanted) in [
            ("B|7|frame 1", "begin frame 1"),
            ("B|7|a|b\n", "begin a|b"),
            ("B|7|", "begin "),
            ("B|7", "begin "),
            ("E", "end"),
            ("E|", "end"),
            ("E|7\n\0", "end"),
            ("S|7|input|263", "open input 263"),
            ("F|7|in|put|-1", "close in|put 18446744073709551615"),
            ("I|7|vsync", "instant vsync"),
            ("N|7|track|vsync", "instant vsync"),
            ("G|7|track|load|5", "open load 5"),
            ("H|7|track|load|5", "close load 5"),
            ("hello world", "instant hello world"),
            ("", "instant "),
        ] {
            assert_eq!(
                said(&read_all(&[text])),
                [(7, wanted.to_owned())],
                "{text:?}"
            );
        }
    }

    /// Goal: the end of a slice on a named track, which need not name the slice, ends the one that is open
    /// there. Method: two tracks, closed without names, one of them twice.
    #[test]
    fn tracks_remember_names() {
        let recording = read_all(&[
            "G|7|t|one|1",
            "G|7|u|two|1",
            "H|7|t|1",
            "H|7|u|1",
            "H|7|u|1",
        ]);
        let all: Vec<String> = said(&recording).into_iter().map(|(_, text)| text).collect();
        assert_eq!(
            all,
            [
                "open one 1",
                "open two 1",
                "close one 1",
                "close two 1",
                "close u 1"
            ]
        );
        assert_eq!(recording.losses.get(Loss::Unsupported), 5);
    }

    /// Goal: values belong to the process that they name, and are kept by name. Method: two processes with
    /// one name, categories, the machine's own.
    #[test]
    fn values() {
        let recording = read_all(&["C|7|n|1", "C|8|n|-2", "C|7|n|3|cat", "C|0|n|4", "C||n|5"]);
        let pid =
            |process: Option<usize>| process.and_then(|process| recording.processes[process].pid);
        let found = recording
            .counters
            .iter()
            .map(|c| (pid(c.process), c.values.clone()));
        let wanted = [
            (Some(7), vec![(Nanos(1), 1), (Nanos(3), 3)]),
            (Some(8), vec![(Nanos(2), -2)]),
            (None, vec![(Nanos(4), 4), (Nanos(5), 5)]),
        ];
        assert_eq!(found.collect::<Vec<_>>(), wanted);
        assert!(recording.losses.is_empty() && recording.marks.is_empty());
    }

    /// Goal: a marker tells the process of its thread, and an asynchronous one about another process belongs
    /// to that process. Method: a slice, then an asynchronous one of a foreign process.
    #[test]
    fn speakers() {
        let recording = read_all(&["B|6|x", "S|9|y|1", "B|6|z"]);
        let on: Vec<u32> = said(&recording).into_iter().map(|(tid, _)| tid).collect();
        assert_eq!(on, [7, 9, 7]);
        let process = recording.threads[0].process.unwrap();
        assert_eq!(recording.processes[process].pid, Some(6));
    }

    /// Goal: clocks compared are no events; frequencies and sleep states as text are the CPU's. Method: one
    /// of each, as systrace and LISA write them.
    #[test]
    fn words_of_tools() {
        let recording = read_all(&[
            "trace_event_clock_sync: parent_ts=683201.375000",
            "trace_event_clock_sync: realtime_ts=3720325137",
            "cpu_frequency:        state=450000 cpu_id=3",
            "cpu_idle: state=4294967295 cpu_id=1",
        ]);
        let kernel: Vec<_> = recording
            .kernel
            .iter()
            .map(|event| (event.cpu.0, event.what))
            .collect();
        let wanted = [
            (3, event::KernelEventKind::Frequency(450_000)),
            (1, event::KernelEventKind::Idle(None)),
        ];
        assert_eq!(kernel, wanted);
        assert!(recording.marks.is_empty() && recording.losses.is_empty());
    }

    /// Goal: texts that begin as a marker and are none are counted. Method: markers without their fields.
    #[test]
    fn bad_markers() {
        let bad = [
            "B|x|name",
            "S|7|name",
            "S|7",
            "F|7|n|x",
            "G|7|t",
            "G|7|t|x",
            "H|7",
            "C|7|n",
            "C|7|n|1.5",
            "N|7|t",
            "I|7",
            "B|99999999999|n",
            "trace_event_clock_sync: x",
            "cpu_frequency: state=1",
        ];
        let recording = read_all(&bad);
        assert_eq!(recording.losses.get(Loss::BadMarkers), bad.len() as u64);
        assert!(recording.marks.is_empty() && recording.kernel.is_empty());
    }

    /// Goal: slices of interrupts are their CPU's, whichever thread they stop. Method: one on the idle task,
    /// and one on a thread that is in a slice of its own.
    #[test]
    fn slices_of_interrupts() {
        let mut builder = Builder::new("test");
        let at = |time, tid, in_interrupt| At {
            time: Nanos(time),
            cpu: 3,
            tid,
            in_interrupt,
        };
        for (at, text) in [
            (at(1, 0, true), "B|0|rd_ptr_irq"),
            (at(2, 0, true), "E|0|rd_ptr_irq"),
            (at(3, 7, false), "B|7|draw"),
            (at(4, 7, true), "B|0|rd_ptr_irq"),
            (at(5, 7, true), "E|0|"),
            (at(6, 7, false), "E"),
        ] {
            read(&mut builder, &at, text.as_bytes());
        }
        let recording = builder.finish();
        assert!(recording.losses.is_empty(), "{:?}", recording.losses);
        let on = |mark: &crate::Mark| recording.threads[mark.on.index()].name.as_str();
        let marks: Vec<_> = recording.marks.iter().map(on).collect();
        let cpu = "interrupts of CPU 3";
        assert_eq!(marks, [cpu, cpu, "7", cpu, cpu, "7"]);
        let track = recording
            .threads
            .iter()
            .find(|thread| thread.name == cpu)
            .unwrap();
        assert_eq!(track.tid, None);
    }

    /// Goal: the idle task has no slices. Method: a slice of tid 0.
    #[test]
    fn idle_has_no_slices() {
        let mut builder = Builder::new("test");
        assert_eq!(builder.task(0), None::<Task>);
        let at = At {
            time: Nanos(1),
            cpu: 0,
            tid: 0,
            in_interrupt: false,
        };
        read(&mut builder, &at, b"B|1|x");
        read(&mut builder, &at, b"C|1|x|1");
        let recording = builder.finish();
        assert_eq!((recording.marks.len(), recording.counters.len()), (0, 1));
        assert_eq!(recording.losses.get(Loss::BadMarkers), 1);
    }
}
