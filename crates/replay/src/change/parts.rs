//! The parts of a change, as text.

use event::Nanos;
use policy::{Attr, Discipline};
use sim::scenario::{Segment, Segments};

/// A part of a change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// Threads have other attributes, all the time.
    Attr(String, AttrChange),
    /// Threads may run on these CPUs.
    Mask(String, Vec<u32>),
    /// What threads do takes no time.
    Without { name: String, is_process: bool },
    /// The machine has this many CPUs.
    Cpus(u32),
    /// CPUs have this capacity, the fastest 1024.
    Capacity(Vec<u32>, u32),
    /// The kernel has another policy.
    Policy(String),
    /// Waits lend their priority: for locks, or in slices with this text in their names.
    Inherit(Option<String>),
    /// A lock goes from its owner to the thread that waits for it: all locks, or those that threads want in
    /// slices with this text in their names.
    HandOver(Option<String>),
    /// Work takes this many thousandths of its time.
    Work(String, u64),
    /// Busy waits sleep.
    Park(String),
    /// Pieces, which are slices with this text in their names, are cut in so many.
    Cut(String, u32),
    /// Sleeps that a timer ends do so earlier.
    Earlier(String, Nanos),
    /// The threads of a process have this many thousandths of a CPU together; none: as much as they want.
    Quota(String, Option<u32>),
}

/// A change of a thread's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttrChange {
    Nice(i8),
    Discipline(Discipline),
    Realtime(Discipline, u8),
    Slice(Nanos),
}

impl AttrChange {
    pub(super) fn of(self, attr: &Attr) -> Attr {
        match self {
            AttrChange::Nice(nice) => Attr {
                slice: attr.slice,
                ..Attr::nice(nice)
            },
            AttrChange::Discipline(discipline) => Attr {
                discipline,
                priority: 0,
                ..attr.clone()
            },
            AttrChange::Realtime(discipline, priority) => Attr {
                discipline,
                priority,
                ..attr.clone()
            },
            AttrChange::Slice(slice) => Attr {
                slice: Some(slice),
                ..attr.clone()
            },
        }
    }
}

/// How each kind of part is written, and what it means. T is a thread: its name, its number, or a pattern.
pub(super) const KINDS: &[(&str, &str)] = &[
    (
        "inherit",
        "all locks lend their waiters' priorities to their owners",
    ),
    ("inherit:TEXT", "so do waits in slices with this text"),
    (
        "hand-over",
        "locks go from their owners to threads that wait for them",
    ),
    (
        "hand-over:TEXT",
        "so do those that threads want in slices with this text",
    ),
    ("nice:T=N", "the niceness of threads, -20 to 19"),
    ("fifo:T=N", "SCHED_FIFO with this priority, 1 to 99"),
    ("rr:T=N", "SCHED_RR with this priority"),
    ("fair:T", "an ordinary thread"),
    ("batch:T", "SCHED_BATCH"),
    ("idle:T", "SCHED_IDLE"),
    ("slice:T=3 ms", "the slice that threads ask for"),
    ("mask:T=0-3,6", "the CPUs that threads may use"),
    ("without:T", "what threads do takes no time"),
    ("without-process:P", "the same of all threads of a process"),
    ("park:T", "busy waits sleep instead"),
    (
        "work:T=50%",
        "the work of threads takes this part of its time",
    ),
    ("earlier:T=1 ms", "timers wake threads so much earlier"),
    (
        "cut:TEXT=N",
        "slices with this text are cut in N, with jobs in between",
    ),
    (
        "quota:P=150%",
        "the CPU time of a process, or of T,T, in 100 ms",
    ),
    ("quota:P=none", "a process has no quota any more"),
    ("cpus=N", "the number of CPUs"),
    ("capacity:0-3=1024", "how fast CPUs are, the fastest 1024"),
    (
        "policy=NAME",
        "the kernel's policy: paceline simulate --policies",
    ),
];

impl Part {
    /// The name in it, and whether it is a process's.
    pub(super) fn name(&self) -> Option<(&str, bool)> {
        match self {
            Part::Attr(name, _)
            | Part::Mask(name, _)
            | Part::Work(name, _)
            | Part::Park(name)
            | Part::Earlier(name, _) => Some((name, false)),
            Part::Quota(name, _) => Some((name, true)),
            Part::Without { name, is_process } => Some((name, *is_process)),
            _ => None,
        }
    }
}

/// Reads a part.
pub(super) fn read(part: &str) -> Result<Part, String> {
    let shown: String = part.chars().take(60).collect();
    let unknown = || {
        let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        format!("`{shown}` is no change; give one of: {}", kinds.join(", "))
    };
    let (head, value) = match part.rsplit_once('=') {
        Some((head, value)) => (head.trim(), Some(value.trim())),
        None => (part, None),
    };
    let (kind, name) = match head.split_once(':') {
        Some((kind, name)) => (
            kind.trim(),
            Some(name.trim()).filter(|name| !name.is_empty()),
        ),
        None => (head, None),
    };
    let of = |why: String| format!("`{shown}`: {why}");
    let read = match (kind, name, value) {
        ("inherit", name, None) => return Ok(Part::Inherit(name.map(str::to_owned))),
        ("hand-over", name, None) => return Ok(Part::HandOver(name.map(str::to_owned))),
        ("cpus", None, Some(value)) => number(value, 1, 1024).map(|count| Part::Cpus(count as u32)),
        ("policy", None, Some(value)) => Ok(Part::Policy(value.to_owned())),
        ("capacity", Some(list), Some(value)) => {
            cpus(list).and_then(|cpus| Ok(Part::Capacity(cpus, number(value, 1, 1024)? as u32)))
        }
        ("cut", Some(text), Some(value)) => {
            number(value, 2, 1000).map(|parts| Part::Cut(text.to_owned(), parts as u32))
        }
        (kind, Some(name), value) => {
            of_thread(kind, name.to_owned(), value).unwrap_or_else(|| Err(unknown()))
        }
        _ => return Err(unknown()),
    };
    read.map_err(|why| if why.starts_with('`') { why } else { of(why) })
}

/// A part about threads; none if there is no such part.
fn of_thread(kind: &str, name: String, value: Option<&str>) -> Option<Result<Part, String>> {
    let realtime = |name, value, discipline| {
        let priority = number(value, 1, 99)?;
        Ok(Part::Attr(
            name,
            AttrChange::Realtime(discipline, priority as u8),
        ))
    };
    Some(match (kind, value) {
        ("nice", Some(value)) => {
            number(value, -20, 19).map(|nice| Part::Attr(name, AttrChange::Nice(nice as i8)))
        }
        ("fifo", Some(value)) => realtime(name, value, Discipline::Fifo),
        ("rr", Some(value)) => realtime(name, value, Discipline::RoundRobin),
        ("fair", None) => Ok(Part::Attr(name, AttrChange::Discipline(Discipline::Fair))),
        ("batch", None) => Ok(Part::Attr(name, AttrChange::Discipline(Discipline::Batch))),
        ("idle", None) => Ok(Part::Attr(name, AttrChange::Discipline(Discipline::Idle))),
        ("slice", Some(value)) => {
            length(value).map(|slice| Part::Attr(name, AttrChange::Slice(slice)))
        }
        ("mask", Some(value)) => cpus(value).map(|cpus| Part::Mask(name, cpus)),
        ("without", None) => Ok(Part::Without {
            name,
            is_process: false,
        }),
        ("without-process", None) => Ok(Part::Without {
            name,
            is_process: true,
        }),
        ("park", None) => Ok(Part::Park(name)),
        ("work", Some(value)) => {
            let percent = value.strip_suffix('%').unwrap_or(value).trim();
            number(percent, 0, 10_000).map(|percent| Part::Work(name, percent as u64 * 10))
        }
        ("earlier", Some(value)) => length(value).map(|by| Part::Earlier(name, by)),
        ("quota", Some("none")) => Ok(Part::Quota(name, None)),
        ("quota", Some(value)) => {
            let percent = value.strip_suffix('%').unwrap_or(value).trim();
            let percent = number(percent, 1, 100_000);
            percent.map(|percent| Part::Quota(name, Some(percent as u32 * 10)))
        }
        _ => return None,
    })
}

fn number(text: &str, least: i64, most: i64) -> Result<i64, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("give a number from {least} to {most}")),
    }
}

/// Reads a length of time as scenario files have it; the blank before the unit may be left out.
///
/// # Errors
/// If it is none, or nothing.
///
/// ```
/// assert_eq!(paceline_replay::length("1.5ms"), Ok(event::Nanos(1_500_000)));
/// ```
pub fn length(text: &str) -> Result<Nanos, String> {
    let unit = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let line = format!("work {} {unit}", number.trim());
    match Segments::parse(&line).as_ref().map(|read| &read.0[..]) {
        Ok([Segment::Work(length)]) if *length > Nanos::ZERO => Ok(*length),
        _ => Err("give a length of time, such as 3 ms".to_owned()),
    }
}

/// A list of CPUs: "0-3,6".
fn cpus(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || "give CPUs, such as 0-3,6".to_owned();
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > 1023 {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each kind of part that the help shows is read, and nothing else is. Method: the help's own
    /// examples, then one mistake of each sort.
    #[test]
    fn what_the_help_shows_is_read() {
        for (kind, _) in KINDS {
            let part = kind.replace("=N", "=5");
            assert!(read(&part).is_ok(), "{part}: {:?}", read(&part));
        }
        for (part, why) in [
            ("nice:a=20", "give a number from -20 to 19"),
            ("nice=5", "is no change; give one of: inherit"),
            ("nice:a", "is no change"),
            ("fifo:a=0", "from 1 to 99"),
            ("slice:a=3", "such as 3 ms"),
            ("mask:a=3-1", "such as 0-3,6"),
            ("cut:a=1", "from 2 to 1000"),
            ("cut=4", "is no change"),
            ("hand-over=4", "is no change"),
            ("cpus=0", "from 1 to 1024"),
            ("", "is no change"),
        ] {
            let error = read(part).unwrap_err();
            assert!(error.contains(why), "{part}: {error}");
        }
        assert_eq!(read("slice:a=3ms"), read("slice:a=3 ms"));
        let name = read("nice:kworker/0:1=5").unwrap();
        assert_eq!(name.name(), Some(("kworker/0:1", false)));
    }
}
