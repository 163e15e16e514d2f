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
    /// It sleeps until another thread has done something.
    Wait {
        /// The other thread.
        on: Arc<str>,
        /// What that has to do.
        until: WaitUntil,
        /// How much later than the signal the thread can run, because its CPU was in an idle state that takes
        /// long to leave, for example: `wait worker late 300 us`.
        late: Nanos,
        /// Whether the sender runs with the priority of the waiting thread meanwhile, if that is better than
        /// its own: `wait worker lending`.
        lends: bool,
    },
    /// It may run on this CPU only, from its next wake-up on: `next-cpu 3`.
    NextCpu(u32),
    /// It goes to this CPU at once, and may run on no other one: `cpu 3`.
    Cpu(u32),
    /// It begins to hold a lock that this thread may want: `hold ui`.
    Hold(Arc<str>),
    /// It gives it back, and wakes that thread if it waits for it: `free ui`.
    Free(Arc<str>),
    /// It gives back what it took, to that thread if it waits for it with `take`: `hand ui`.
    Hand(Arc<str>),
    /// If that thread waits for a signal of this one, it works for this long and sends it; otherwise it goes
    /// on at once: `serve ui for 1 ms`. So a thread does that looks for jobs between pieces of its own work.
    Serve {
        /// The thread that waits.
        waiter: Arc<str>,
        /// The work.
        work: Nanos,
    },
    /// As `wait`, and keeps its CPU busy meanwhile: `spin worker`.
    Spin(Arc<str>),
    /// It sleeps for this long: `sleep 5 ms`. With a time, `sleep 5 ms until 1.25 s`, it does so until that
    /// time since the beginning, if the two differ by no more than an eighth of the length and a millisecond:
    /// so what comes a little sooner or later than in a recording does not shift all that follows.
    Sleep {
        /// The length.
        length: Nanos,
        /// The time.
        until: Option<Nanos>,
    },
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

/// What ends a wait for another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitUntil {
    /// It has sent this thread one more signal than this one has waited for: `wait worker`. What was sent
    /// before counts.
    Signal,
    /// It holds nothing that this thread wants, from its `hold` to its `free`: `lock worker`.
    Free,
    /// The same, and this thread has it from then on, until its own `hand`: `take worker`. If the other one
    /// gives it back by `hand`, this one has it at once, before it runs. So a fair lock is between two
    /// threads that both take it and hand it over.
    Taken,
}

impl WaitUntil {
    fn word(self) -> &'static str {
        match self {
            WaitUntil::Signal => "wait",
            WaitUntil::Free => "lock",
            WaitUntil::Taken => "take",
        }
    }
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
            Segment::Hold(name) | Segment::Free(name) | Segment::Hand(name) => Some(name),
            Segment::Serve { waiter, .. } => Some(waiter),
            _ => None,
        })
    }
}

/// The word behind the name of a thread that the waiter lends its priority to.
const LENDING: &str = " lending";
/// The word before the length of time by which a wake-up is late.
const LATE: &str = " late ";

/// The word before the length of work for a thread that waits.
const FOR: &str = " for ";

/// The word before the time until which a thread sleeps.
const UNTIL: &str = " until ";

/// What is behind the word `sleep`.
fn sleep(rest: &str) -> Result<Segment, String> {
    let (length, until) = match rest.split_once(UNTIL) {
        Some((length, until)) => (length, Some(span::parse(until.trim())?)),
        None => (rest, None),
    };
    let length = span::parse(length.trim())?;
    Ok(Segment::Sleep { length, until })
}

/// When a sleep is over that begins now.
pub(super) fn wakes(now: Nanos, length: Nanos, until: Option<Nanos>) -> Nanos {
    const NEAR: Nanos = Nanos::from_millis(1);
    let end = now + length;
    let near = NEAR.min(Nanos(length.0 / 8));
    match until {
        Some(until) if Nanos(end.0.abs_diff(until.0)) <= near => until,
        _ => end,
    }
}

/// What is behind the word of a wait.
fn wait(rest: &str, until: WaitUntil) -> Result<Segment, String> {
    let (rest, lends) = match rest.strip_suffix(LENDING) {
        Some(rest) => (rest.trim_end(), true),
        None => (rest, false),
    };
    let late = rest.rsplit_once(LATE);
    let late = late.and_then(|(on, late)| Some((on, span::parse(late.trim()).ok()?)));
    let (on, late) = late.unwrap_or((rest, Nanos::ZERO));
    match on.trim_end() {
        "" => Err("a wait needs a name behind it".to_owned()),
        on => Ok(Segment::Wait {
            on: on.into(),
            until,
            late,
            lends,
        }),
    }
}

/// What is behind the word `serve`.
fn serve(rest: &str) -> Result<Segment, String> {
    let Some((waiter, work)) = rest.rsplit_once(FOR) else {
        return Err("give a thread and a length: serve ui for 1 ms".to_owned());
    };
    match waiter.trim_end() {
        "" => Err("`serve` needs a name behind it".to_owned()),
        waiter => Ok(Segment::Serve {
            waiter: waiter.into(),
            work: span::parse(work.trim())?,
        }),
    }
}

fn cpu(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "give the number of a CPU".to_owned())
}

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
        "wait" => wait(rest, WaitUntil::Signal)?,
        "lock" => wait(rest, WaitUntil::Free)?,
        "take" => wait(rest, WaitUntil::Taken)?,
        "hold" => Segment::Hold(name()?),
        "free" => Segment::Free(name()?),
        "hand" => Segment::Hand(name()?),
        "spin" => Segment::Spin(name()?),
        "serve" => serve(rest)?,
        "sleep" => sleep(rest)?,
        "until" => Segment::Until(length()?),
        "begin" => Segment::Begin(name()?),
        "end" => Segment::End(name()?),
        "next-cpu" => Segment::NextCpu(cpu(rest)?),
        "cpu" => Segment::Cpu(cpu(rest)?),
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
                "`{shown}` is no segment: give work, wake, wait, lock, hold, free, take, hand, spin, \
                 serve, sleep, until, nice, fifo, cpu, next-cpu, begin, end, hog or rest"
            ));
        }
    })
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Work(length) => write!(f, "work {}", Exactly(*length)),
            Segment::Wake(name) => write!(f, "wake {name}"),
            Segment::Wait {
                on,
                until,
                late,
                lends,
            } => {
                write!(f, "{} {on}", until.word())?;
                if *late > Nanos::ZERO {
                    write!(f, "{LATE}{}", Exactly(*late))?;
                }
                f.write_str(if *lends { LENDING } else { "" })
            }
            Segment::Hold(name) => write!(f, "hold {name}"),
            Segment::Free(name) => write!(f, "free {name}"),
            Segment::Hand(name) => write!(f, "hand {name}"),
            Segment::NextCpu(cpu) => write!(f, "next-cpu {cpu}"),
            Segment::Cpu(cpu) => write!(f, "cpu {cpu}"),
            Segment::Spin(name) => write!(f, "spin {name}"),
            Segment::Serve { waiter, work } => {
                write!(f, "serve {waiter}{FOR}{}", Exactly(*work))
            }
            Segment::Sleep { length, until } => {
                write!(f, "sleep {}", Exactly(*length))?;
                until.map_or(Ok(()), |until| write!(f, "{UNTIL}{}", Exactly(until)))
            }
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
        let until = prop_oneof![
            Just(WaitUntil::Signal),
            Just(WaitUntil::Free),
            Just(WaitUntil::Taken),
        ];
        let numbers = (-20..=19i8, 1..=99u8, until);
        (0..18, length, name, numbers).prop_map(|(kind, length, name, (nice, fifo, until))| {
            match kind {
                0 => Segment::Work(length),
                1 => Segment::Wake(name),
                2 | 3 => Segment::Wait {
                    on: name,
                    until,
                    late: if kind == 2 { length } else { Nanos::ZERO },
                    lends: fifo > 50,
                },
                4 => Segment::Spin(name),
                5 => Segment::Sleep {
                    length,
                    until: (nice > 0).then_some(Nanos(u64::from(fifo))),
                },
                6 => Segment::Until(length),
                7 => Segment::Nice(nice),
                8 => Segment::Fifo(fifo),
                9 => Segment::Begin(name),
                10 => Segment::End(name),
                13 => Segment::Hold(name),
                14 => Segment::Free(name),
                16 => Segment::Hand(name),
                11 => Segment::NextCpu(u32::from(fifo)),
                12 => Segment::Cpu(u32::from(fifo)),
                15 => Segment::Serve {
                    waiter: name,
                    work: length,
                },
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

    /// Goal: a sleep that is nearly where it was ends where it did, and one that is elsewhere is as long as
    /// it was. Method: a sleep of 16 ms to 116 ms, begun a little and much sooner and later.
    #[test]
    fn a_sleep_keeps_its_end_or_its_length() {
        let ms = Nanos::from_millis;
        let (length, until) = (ms(16), Some(ms(116)));
        assert_eq!(wakes(ms(100), length, until), ms(116));
        assert_eq!(wakes(ms(99), length, until), ms(116));
        assert_eq!(wakes(ms(101), length, until), ms(116));
        assert_eq!(wakes(ms(98), length, until), ms(114));
        assert_eq!(wakes(ms(109), length, until), ms(125));
        assert_eq!(wakes(ms(101), length, None), ms(117));
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
