//! Programs as lists of segments: what a thread did in a recording, one line for each thing.
//!
//! Phases say what a thread does again and again; segments are for what it did once, in the order in which it
//! did it: work, waits for others at the points of their work where these woke it, sleeps that a timer ended.
//! A line is a word and what belongs to it; `#` and what follows it on a line is for readers.

use std::fmt;
use std::sync::Arc;

use event::Nanos;
use serde::{Deserialize, Deserializer, de::Error};

use super::span;

/// The largest number of segments of one thread.
const SEGMENTS_MAX: usize = 4_000_000;

/// One thing that a thread with a list of segments does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// It works for this long, as measured on the machine's fastest CPU: `work 1.5 ms`.
    Work(Nanos),
    /// It sends a signal to this thread, and wakes it if it waits for that: `wake ui`.
    Wake(Arc<str>),
    /// It sleeps until this thread has sent it one more signal than it has waited for: `wait worker`. What
    /// was sent before counts.
    Wait {
        /// The sender.
        on: Arc<str>,
        /// Whether the sender runs with the priority of the waiting thread meanwhile, if that is better than
        /// its own: `wait worker lending`.
        lends: bool,
    },
    /// As `wait`, and keeps its CPU busy meanwhile: `spin worker`.
    Spin(Arc<str>),
    /// It sleeps for this long: `sleep 5 ms`.
    Sleep(Nanos),
    /// It sleeps until this time since the beginning, if that is not over: `until 1.25 s`.
    Until(Nanos),
    /// It is a fair thread of this niceness from now on: `nice 5`.
    Nice(i8),
    /// It is of `SCHED_FIFO` with this priority from now on: `fifo 50`.
    Fifo(u8),
    /// A measured stretch of time begins: `begin frame 7`.
    Begin(Arc<str>),
    /// It ends: `end frame 7`.
    End(Arc<str>),
    /// It works until the scenario is over: `hog`.
    Hog,
    /// It sleeps until the scenario is over: `rest`.
    Rest,
}

/// A list of segments. In a file it is text, one line for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(pub Arc<[Segment]>);

impl Segments {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the lines.
    ///
    /// # Errors
    /// The first line that is none, with its number in the text, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Segments, String> {
        let mut segments = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.split_once('#').map_or(line, |(line, _)| line).trim();
            if line.is_empty() {
                continue;
            }
            if segments.len() >= SEGMENTS_MAX {
                return Err(format!("segments: more than {SEGMENTS_MAX}"));
            }
            let read = segment(line).map_err(|why| format!("segments, line {number}: {why}"))?;
            segments.push(read);
        }
        Ok(Segments(segments.into()))
    }

    /// The threads that they name.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Wake(name) | Segment::Spin(name) | Segment::Wait { on: name, .. } => {
                Some(name)
            }
            _ => None,
        })
    }
}

/// The word behind the name of a thread that the waiter lends its priority to.
const LENDING: &str = " lending";

fn segment(line: &str) -> Result<Segment, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let length = || span::parse(rest);
    let name = || match rest {
        "" => Err(format!("`{word}` needs a name behind it")),
        name => Ok(Arc::from(name)),
    };
    Ok(match word {
        "work" => Segment::Work(length()?),
        "wake" => Segment::Wake(name()?),
        "wait" => match rest.strip_suffix(LENDING) {
            Some(on) => Segment::Wait {
                on: on.trim_end().into(),
                lends: true,
            },
            None => Segment::Wait {
                on: name()?,
                lends: false,
            },
        },
        "spin" => Segment::Spin(name()?),
        "sleep" => Segment::Sleep(length()?),
        "until" => Segment::Until(length()?),
        "begin" => Segment::Begin(name()?),
        "end" => Segment::End(name()?),
        "hog" if rest.is_empty() => Segment::Hog,
        "rest" if rest.is_empty() => Segment::Rest,
        "nice" => match rest.parse() {
            Ok(nice @ -20..=19) => Segment::Nice(nice),
            _ => return Err(format!("nice {rest}: give -20 to 19")),
        },
        "fifo" => match rest.parse() {
            Ok(priority @ 1..=99) => Segment::Fifo(priority),
            _ => return Err(format!("fifo {rest}: give 1 to 99")),
        },
        _ => {
            let shown: String = line.chars().take(40).collect();
            return Err(format!(
                "`{shown}` is no segment: give work, wake, wait, spin, sleep, until, nice, fifo, begin, \
                 end, hog or rest"
            ));
        }
    })
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Work(length) => write!(f, "work {}", Exactly(*length)),
            Segment::Wake(name) => write!(f, "wake {name}"),
            Segment::Wait { on, lends: false } => write!(f, "wait {on}"),
            Segment::Wait { on, lends: true } => write!(f, "wait {on}{LENDING}"),
            Segment::Spin(name) => write!(f, "spin {name}"),
            Segment::Sleep(length) => write!(f, "sleep {}", Exactly(*length)),
            Segment::Until(time) => write!(f, "until {}", Exactly(*time)),
            Segment::Nice(nice) => write!(f, "nice {nice}"),
            Segment::Fifo(priority) => write!(f, "fifo {priority}"),
            Segment::Begin(name) => write!(f, "begin {name}"),
            Segment::End(name) => write!(f, "end {name}"),
            Segment::Hog => f.write_str("hog"),
            Segment::Rest => f.write_str("rest"),
        }
    }
}

/// A length of time as scenario files have it, not rounded: "1.234567 ms".
#[derive(Clone, Copy, Debug)]
pub struct Exactly(pub Nanos);

impl fmt::Display for Exactly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.0;
        let (unit, digits, name) = match nanos {
            0..1_000 => return write!(f, "{nanos} ns"),
            1_000..1_000_000 => (1_000, 3, "us"),
            1_000_000..1_000_000_000 => (1_000_000, 6, "ms"),
            _ => (1_000_000_000, 9, "s"),
        };
        let fraction = format!("{:0digits$}", nanos % unit);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{} {name}", nanos / unit),
            fraction => write!(f, "{}.{fraction} {name}", nanos / unit),
        }
    }
}

impl<'de> Deserialize<'de> for Segments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Segments, D::Error> {
        let text = String::deserialize(deserializer)?;
        Segments::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_segment() -> impl Strategy<Value = Segment> {
        let length = prop_oneof![0..5_000u64, 0..20_000_000_000_u64].prop_map(Nanos);
        let name = "[a-z:/()0-9]{1,8}( [a-z0-9]{1,8})?"
            .prop_filter("an end that means something", |name| {
                !name.ends_with(LENDING)
            })
            .prop_map(Arc::from);
        (0..12, length, name, -20..=19i8, 1..=99u8).prop_map(|(kind, length, name, nice, fifo)| {
            match kind {
                0 => Segment::Work(length),
                1 => Segment::Wake(name),
                2 => Segment::Wait {
                    on: name,
                    lends: false,
                },
                3 => Segment::Wait {
                    on: name,
                    lends: true,
                },
                4 => Segment::Spin(name),
                5 => Segment::Sleep(length),
                6 => Segment::Until(length),
                7 => Segment::Nice(nice),
                8 => Segment::Fifo(fifo),
                9 => Segment::Begin(name),
                10 => Segment::End(name),
                _ => Segment::Rest,
            }
        })
    }

    proptest! {
        /// Goal: what is written is read again, to the nanosecond. Method: random segments, written with
        /// comments and blanks around them.
        #[test]
        fn what_is_written_is_read(segments in prop::collection::vec(any_segment(), 0..20)) {
            let lines = segments.iter().map(|segment| format!("  {segment}  # why\n\n"));
            let text: String = lines.collect();
            prop_assert_eq!(Segments::parse(&text), Ok(Segments(segments.into())));
        }
    }

    /// Goal: a mistake is named with its line. Method: one of each kind, behind a good line.
    #[test]
    fn a_mistake_has_its_line() {
        for (line, part) in [
            ("wrk 1 ms", "`wrk 1 ms` is no segment: give work"),
            ("work 1", "is not a length of time"),
            ("wake", "`wake` needs a name"),
            ("nice 20", "give -20 to 19"),
            ("fifo 0", "give 1 to 99"),
            ("hog 1 ms", "is no segment"),
        ] {
            let error = Segments::parse(&format!("work 1 ms\n{line}\n")).unwrap_err();
            assert!(error.starts_with("segments, line 2: "), "{error}");
            assert!(error.contains(part), "{error}");
        }
    }
}
