//! An account of waits, in the forms that every command shares: as JSON, as the few lines that matter to a
//! person, and as a page for a browser.
//!
//! Crate `trace` explains; this module only puts it into words. What a command adds of its own (where a frame
//! began, what a trace lacks) is in that command.

mod against;
mod bars;
mod findings;
mod gains;
mod groups;
mod json;
mod page;
mod people;
mod remedies;
mod sentence;
mod small;
#[cfg(test)]
mod tests;
mod threads;
mod worth;

use std::collections::BTreeMap;

use event::{Nanos, Task};
use trace::explain::{Explanation, Selection, Wait, Who, explain};
use trace::timeline::{Options, Timeline};
use trace::{Name, Recording};

pub(super) use against::{ComparedJson, compared_json, how_much, method};
pub(super) use gains::{Gain, Gains, TriedChange};
pub(super) use groups::GroupJson;
pub(super) use json::{AccountJson, InversionJson, WaitJson, WhoJson};
pub(super) use page::{Chart, compared_page, data as page_data, interfered, opening};
pub(super) use people::{losses, wrapped};
pub(super) use threads::{Switches, ThreadJson, TotalJson, Totals};
pub(super) use worth::is_felt;

/// An explanation and the timeline it is of.
pub(super) struct Account {
    pub(super) timeline: Timeline,
    pub(super) explanation: Explanation,
    /// The instant from which times are counted.
    origin: Nanos,
    /// How many threads have each name, as it is shown.
    namesakes: BTreeMap<String, usize>,
    /// What remedies are worth.
    gains: Gains,
}

impl Account {
    /// Times are told since `origin`.
    pub(super) fn new(timeline: Timeline, explanation: Explanation, origin: Nanos) -> Account {
        let mut namesakes = BTreeMap::new();
        for thread in &timeline.recording().threads {
            let name = timeline.name(thread.task).trim().to_owned();
            *namesakes.entry(name).or_default() += 1;
        }
        Account {
            timeline,
            explanation,
            origin,
            namesakes,
            gains: Gains::default(),
        }
    }

    /// Explains the usual waits of a recording of ours.
    pub(super) fn of(recording: Recording, origin: Nanos) -> Account {
        let timeline = Timeline::new(recording, &Options::default());
        let explanation = explain(&timeline, &Selection::default());
        Account::new(timeline, explanation, origin)
    }

    /// The name to show for a thread.
    pub(super) fn name_of(&self, task: Task) -> String {
        self.thread(task)
    }

    /// Which wait it was, and how long: the beginning of a sentence.
    pub(super) fn head_of(&self, wait: &Wait) -> String {
        self.head(wait)
    }

    /// The longest wait.
    pub(super) fn worst(&self) -> Option<&Wait> {
        self.explanation.waits.first()
    }

    /// The name to show for a thread: its name, and its number where others have the same name. Kernels keep
    /// 15 bytes of a name, which may end in the middle of it, with a blank.
    fn thread(&self, task: Task) -> String {
        let name = self.timeline.name(task);
        let name = name.trim();
        let is_alone = self.namesakes.get(name).is_none_or(|&count| count == 1);
        match self.timeline.tid(task).filter(|_| !is_alone) {
            Some(tid) => format!("{name} ({tid})"),
            None => name.to_owned(),
        }
    }

    /// The name to show for a thread and its program, if that has another name.
    fn of_program(&self, task: Task) -> String {
        let name = self.thread(task);
        match self.program(task) {
            Some(program) => format!("{name} of {program}"),
            None => name,
        }
    }

    /// The program of a thread, if there are several, it is known, and its name says more than the thread's.
    /// The name of a main thread is an end of its program's.
    fn program(&self, task: Task) -> Option<&str> {
        let thread = self.timeline.name(task);
        let program = self.timeline.program(task)?;
        let (long, short) = (program.to_lowercase(), thread.trim().to_lowercase());
        let is_one_of_many = self.timeline.recording().processes.len() > 1;
        let is_new = is_one_of_many && !long.ends_with(&short) && !long.starts_with(&short);
        is_new.then_some(program)
    }

    /// A word of the recording.
    fn word(&self, name: Name) -> &str {
        self.timeline.recording().names.word(name)
    }

    /// The name to show for what had a CPU.
    fn who(&self, who: Who) -> String {
        match who {
            Who::Task(task) => self.thread(task),
            Who::Idle => "an idle CPU".to_owned(),
            Who::Offline => "no CPU online".to_owned(),
            Who::Unknown => "an unknown thread".to_owned(),
        }
    }

    /// Time since the beginning, in seconds to the microsecond.
    fn at(&self, time: Nanos) -> String {
        let micros = (time - self.origin).0 / 1_000;
        format!("{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
    }
}

/// A length with as many digits as a person wants to read: "10.59 ms".
pub(super) fn short(length: Nanos) -> String {
    let scaled = |unit: f64, name: &str| {
        let number = length.0 as f64 / unit;
        match number {
            100.0.. => format!("{number:.1} {name}"),
            _ => format!("{number:.2} {name}"),
        }
    };
    match length.0 {
        0..1_000 => format!("{} ns", length.0),
        1_000..1_000_000 => scaled(1e3, "µs"),
        1_000_000..1_000_000_000 => scaled(1e6, "ms"),
        _ => scaled(1e9, "s"),
    }
}

/// A name with `*` for its numbers.
pub(super) fn starred(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            c if !c.is_ascii_digit() => text.push(c),
            _ if text.ends_with('*') => {}
            _ => text.push('*'),
        }
    }
    text
}

/// A part of a whole, in per cent.
fn percent(part: Nanos, whole: Nanos) -> String {
    match whole.0 {
        0 => "–".to_owned(),
        whole => format!("{:.0} %", part.0 as f64 * 100.0 / whole as f64),
    }
}

/// A number of things: "1 other", "2 others".
pub(super) fn plural(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}
