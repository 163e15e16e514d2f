//! A change to a program: what would it have been?
//!
//! A change is text: one or more parts with " and " between them, such as `nice:hog=19 and cpus=4`.
//! [`parts`] reads them, [`apply`] does them.

mod apply;
mod machine;
mod parts;

use std::fmt;

use crate::program::{Program, ProgramThread};
use parts::Part;

pub use apply::check_policy;
pub use parts::length;

/// A change to a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    text: String,
    parts: Vec<Part>,
}

/// Why there is no such change, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadChange(pub String);

impl fmt::Display for BadChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadChange {}

impl Change {
    /// The parts that a change can have, each with what it means.
    pub const PARTS: &'static [(&'static str, &'static str)] = parts::KINDS;

    /// Reads a change.
    ///
    /// # Errors
    /// The first part that is none, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Change, BadChange> {
        let parts = text.split(" and ").map(|part| parts::read(part.trim()));
        let parts: Result<Vec<Part>, String> = parts.collect();
        Ok(Change {
            text: text.trim().to_owned(),
            parts: parts.map_err(BadChange)?,
        })
    }

    /// Whether it changes where threads can run, so that they cannot run where they ran in the recording.
    pub fn sets_free(&self) -> bool {
        let is_free =
            |part: &Part| matches!(part, Part::Cpus(_) | Part::Capacity(..) | Part::Policy(_));
        self.parts.iter().any(is_free)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of threads and processes in it, each with whether it is a process's.
    pub fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        self.parts.iter().filter_map(Part::name)
    }

    /// The texts in the names of slices that it cuts: a program has to be made with these as
    /// [`pieces`](crate::BuildOptions::pieces).
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Cut(text, _) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Whether it hands locks over: a program has to be made with the marks of their owners as
    /// [`owners`](crate::BuildOptions::owners).
    pub fn hands_over(&self) -> bool {
        let is_one = |part: &Part| matches!(part, Part::HandOver(_));
        self.parts.iter().any(is_one)
    }

    /// The program with the change. `is_meant` says whether a name is a thread's, or that of its process.
    ///
    /// # Errors
    /// If it changes nothing or cannot be: no such thread, no CPU left, a policy that does not take a thread.
    pub fn apply(
        &self,
        program: &Program,
        is_meant: impl Fn(&str, bool, &ProgramThread) -> bool,
    ) -> Result<Program, BadChange> {
        let mut changed = program.clone();
        for part in &self.parts {
            apply::apply(part, &mut changed, &is_meant).map_err(BadChange)?;
        }
        changed.check().map_err(BadChange)?;
        Ok(changed)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
