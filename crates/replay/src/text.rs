//! A program as a scenario file that a person can read, edit and run.

use std::fmt::Write;

use policy::Discipline;
use sim::scenario::{Exactly, Segment};

use crate::program::{Program, ProgramThread};

impl Program {
    /// The program as a scenario file. `recording`: what it was made of; `machine`: a name or a file. Points
    /// that are only there to be measured are left out.
    pub fn to_toml(&self, recording: &str, machine: &str) -> String {
        let mut text = String::new();
        let one_line = recording.replace(|c: char| c.is_control(), " ");
        let _ = write!(
            text,
            "# Made of a recording by `paceline diagnose --program`. Each thread has a list of what it did:\n\
             # work (its time, as on the fastest CPU), wait X (for a signal of thread X), wake X (such a\n\
             # signal), sleep, until (a time since the beginning), hog and rest (to the end).\n\
             #\n\
             # Assumed, because the recording does not say it:\n"
        );
        for what in &self.assumed {
            let _ = writeln!(text, "# - {}", what.replace(|c: char| c.is_control(), " "));
        }
        let _ = write!(
            text,
            "about = {}\nmachine = {}\npolicy = {}\nuntil = \"{}\"\n",
            quoted(&format!("{one_line}, run again")),
            quoted(machine),
            quoted(&self.policy),
            Exactly(self.length),
        );
        for thread in &self.threads {
            write_thread(&mut text, thread, self.is_placed);
        }
        text
    }
}

/// A text of TOML's.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn write_thread(text: &mut String, thread: &ProgramThread, is_placed: bool) {
    let attr = &thread.attr;
    let _ = write!(text, "\n[[thread]]\nname = {}\n", quoted(&thread.name));
    let discipline = match attr.discipline {
        Discipline::Fair => None,
        Discipline::Batch => Some("batch"),
        Discipline::Idle => Some("idle"),
        Discipline::Fifo => Some("fifo"),
        Discipline::RoundRobin => Some("rr"),
    };
    if let Some(discipline) = discipline {
        let _ = writeln!(text, "discipline = \"{discipline}\"");
    }
    if attr.discipline.is_realtime() {
        let _ = writeln!(text, "priority = {}", attr.priority);
    } else if attr.nice != 0 {
        let _ = writeln!(text, "nice = {}", attr.nice);
    }
    if let Some(slice) = attr.slice {
        let _ = writeln!(text, "slice = \"{}\"", Exactly(slice));
    }
    let cpus = thread.cpus_at_first(is_placed);
    if !cpus.is_empty() {
        let _ = writeln!(text, "cpus = {cpus:?}");
    }
    text.push_str("segments = '''\n");
    let mut waits = thread.waits.iter().peekable();
    for (at, segment) in thread.segments.iter().enumerate() {
        let place = waits.next_if(|wait| wait.segment == at);
        if matches!(segment, Segment::Begin(_) | Segment::End(_)) {
            continue;
        }
        // What ends the text in a file is no part of a name.
        let line = segment.to_string().replace("'''", "' ' '");
        match place.map(|place| place.within.as_str()) {
            Some(within) if !within.is_empty() => {
                let within = within.replace("'''", "' ' '");
                let within = within.replace(|c: char| c.is_control(), " ");
                let _ = writeln!(text, "{line}  # {within}");
            }
            _ => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text.push_str("'''\n");
}
