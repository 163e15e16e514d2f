//! Two fleets compared: which waits, causes and inversions grew from one build to another, beyond chance.
//!
//! Waits are grouped by program, kind and name, as in `trace::explain`. A row is the length of a group's
//! waits, or the time of one of their causes or inversions, for each wait on average. [`draws`] says how far
//! chance moves it: it draws traces, since waits of one trace are alike.

mod draws;
mod sums;
mod table;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;

use paceline::{Builder, JobSystem};

use crate::FleetError;
use crate::set::SetReader;
use draws::{RowSide, Spread, spread};
use sums::{FleetSums, GroupSums, Sparse, Subject, WaitGroup};

/// A row has an interval if each side has so many traces with such waits, or more. With fewer, a bootstrap
/// has too few different draws to tell anything.
pub const LEAST_TRACES: usize = 8;

/// A cause or an inversion is compared if it is one of so many parts of its group's length, or more, on
/// either side.
const PARTS: f64 = 100.0;

/// The least and the most draws.
const DRAWS: (usize, usize) = (100, 20_000);

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The data set.
    pub path: PathBuf,
    /// Only its traces of this build.
    pub build: Option<String>,
}

impl Side {
    /// Its name for people.
    pub fn name(&self) -> String {
        match &self.build {
            Some(build) => format!("{}, build {build}", self.path.display()),
            None => self.path.display().to_string(),
        }
    }
}

/// How fleets are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareOptions {
    /// Only traces of this device.
    pub device: Option<String>,
    /// How many times traces are drawn: 100 to 20 000.
    pub draws: usize,
    /// The seed of the draws.
    pub seed: u64,
}

impl Default for CompareOptions {
    fn default() -> CompareOptions {
        CompareOptions {
            device: None,
            draws: 2000,
            seed: 1,
        }
    }
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeOf {
    /// The length of waits.
    Wait,
    /// A cause of waits.
    Cause,
    /// Inversions in waits.
    Inversion,
}

impl ChangeOf {
    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            ChangeOf::Wait => "wait",
            ChangeOf::Cause => "cause",
            ChangeOf::Inversion => "inversion",
        }
    }
}

/// What follows for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// B has more, by more than chance makes of all rows together.
    Grew,
    /// B has less, by more than that.
    Shrank,
    /// Chance alone may have done it.
    Same,
    /// Too few traces tell of it.
    Few,
}

impl Direction {
    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Grew => "grew",
            Direction::Shrank => "shrank",
            Direction::Same => "same",
            Direction::Few => "few",
        }
    }
}

/// How the time of something differs. Times are nanoseconds for each wait of the group, on average.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What it is about.
    pub of: ChangeOf,
    /// The program of the waiting thread.
    pub process: Option<String>,
    /// The kind of the waits: job, frame, slice, turn or sleep.
    pub wait_kind: String,
    /// Their name, with * for numbers.
    pub wait_group: String,
    /// The kind of the cause or of the inversion.
    pub kind: Option<String>,
    /// The role of the thread on the path, or the inversion's holder.
    pub who: Option<String>,
    /// How many traces of A and of B have such waits.
    pub traces: [usize; 2],
    /// How many such waits there are.
    pub waits: [u64; 2],
    /// The means; none if there are no such waits.
    pub mean_ns: [Option<f64>; 2],
    /// The interval of the change, 95 % for this row alone; none if there are too few traces.
    pub interval_ns: Option<[f64; 2]>,
    /// What follows.
    pub direction: Direction,
}

impl Change {
    /// How much more there is in B.
    pub fn change_ns(&self) -> Option<f64> {
        let [a, b] = self.mean_ns;
        Some(b? - a?)
    }

    /// How many times as much there is in B.
    pub fn growth(&self) -> Option<f64> {
        let [a, b] = self.mean_ns;
        Some(b? / a.filter(|a| *a > 0.0)?)
    }
}

/// Two fleets compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// How many traces of A and of B there are that could be read.
    pub traces: [usize; 2],
    /// What grew first, then what shrank, then the rest; of each the greatest change first.
    pub rows: Vec<Change>,
    /// How many times was drawn.
    pub draws: usize,
    /// By which seed.
    pub seed: u64,
}

impl Changes {
    /// The rows for which this follows.
    pub fn with(&self, direction: Direction) -> impl Iterator<Item = &Change> {
        let rows = self.rows.iter();
        rows.filter(move |row| row.direction == direction)
    }
}

/// Compares two fleets: B with A. Both are data sets of traces, or one of them and two of its builds. They
/// are only read; another process may write them meanwhile.
///
/// Each row has an interval that holds for it alone. A row is said to have grown or shrunk if its change is
/// beyond what chance makes of the greatest of all rows: of comparisons in which nothing changed, one in
/// twenty says so of anything. The result depends on the data sets, the draws and the seed alone.
///
/// The memory is a number for each trace and row, and one for each draw and row; the time is that of adding
/// up the former for each draw, on all cores.
///
/// # Errors
/// If a side is no data set of traces or has no trace; if both sides are the same, or their rows were made
/// with other options; if the number of draws is out of range; if a file cannot be read.
pub fn compare(a: &Side, b: &Side, options: &CompareOptions) -> Result<Changes, FleetError> {
    if !(DRAWS.0..=DRAWS.1).contains(&options.draws) {
        return Err(FleetError::input(format!(
            "{} draws: give {} to {}",
            options.draws, DRAWS.0, DRAWS.1
        )));
    }
    let sets = [SetReader::open(&a.path)?, SetReader::open(&b.path)?];
    let is_one = a.path.canonicalize().ok() == b.path.canonicalize().ok();
    if is_one && a.build == b.build {
        return Err(FleetError::input(format!(
            "{}: would be compared with itself; give two data sets, or two builds",
            a.name()
        )));
    }
    let [one, other] = [0, 1].map(|side| made_with(sets[side].made_with()));
    if one != other {
        return Err(FleetError::input(format!(
            "{} was made with {one}, and {} with {other}: their waits are others; make both alike",
            a.path.display(),
            b.path.display()
        )));
    }
    let builder = Builder::new().build();
    let js = builder.map_err(|why| FleetError::failed(format!("cannot begin: {why}")))?;
    let sums = [
        FleetSums::read(&sets[0], a.build.as_deref(), options)?,
        FleetSums::read(&sets[1], b.build.as_deref(), options)?,
    ];
    Ok(changes(&js, &sums, options))
}

/// How rows were made, but for labels, which change no wait.
fn made_with(text: &str) -> &str {
    // The labels are a text in quotes, in which a quote has a backslash.
    text.find("\", {").map_or(text, |at| &text[at + 3..])
}

/// A row before anything is drawn.
struct Compared<'a> {
    group: &'a WaitGroup,
    subject: Option<&'a Subject>,
    waits: [u64; 2],
    sides: [RowSide; 2],
}

const NO_VALUES: &Sparse = &Sparse::new();

fn changes(js: &JobSystem, sums: &[FleetSums; 2], options: &CompareOptions) -> Changes {
    let none = GroupSums::default();
    let groups = sums.iter().flat_map(|side| side.groups.keys());
    let groups: BTreeSet<&WaitGroup> = groups.collect();
    let compared: Vec<Compared<'_>> = groups
        .into_iter()
        .flat_map(|group| {
            let sides = [0, 1].map(|side| sums[side].groups.get(group).unwrap_or(&none));
            rows_of(group, sides)
        })
        .collect();
    let is_enough = |row: &&Compared<'_>| row.sides.iter().all(|side| side.len() >= LEAST_TRACES);
    let drawn: Vec<&[RowSide; 2]> = compared
        .iter()
        .filter(is_enough)
        .map(|row| &row.sides)
        .collect();
    let traces = [0, 1].map(|side| sums[side].traces);
    let mut spreads = spread(js, &drawn, traces, (options.draws, options.seed)).into_iter();
    let with_spread = compared.iter().map(|row| {
        let found = is_enough(&row).then(|| spreads.next()).flatten();
        row.change(found)
    });
    let mut rows: Vec<Change> = with_spread.collect();
    rows.sort_by_key(|row| {
        // Times are no NaN, and whole nanoseconds are enough for an order.
        let change = row.change_ns().unwrap_or_default().abs();
        (row.direction, Reverse(change as u64))
    });
    Changes {
        traces,
        rows,
        draws: options.draws,
        seed: options.seed,
    }
}

/// The length of the waits of a group, and those of its causes and inversions that are no small part of it.
fn rows_of<'a>(group: &'a WaitGroup, sides: [&'a GroupSums; 2]) -> Vec<Compared<'a>> {
    let total = |of: &Sparse| of.iter().map(|(_, ns)| ns).sum::<f64>();
    let is_large = |side: &GroupSums, ns: &Sparse| {
        let sum = total(ns);
        sum > 0.0 && sum * PARTS >= total(&side.length)
    };
    let large = sides.iter().flat_map(|side| {
        let parts = side.parts.iter();
        parts
            .filter(|(_, ns)| is_large(side, ns))
            .map(|(subject, _)| subject)
    });
    let subjects: BTreeSet<&Subject> = large.collect();
    let waits = sides.map(|side| side.waits.iter().map(|(_, count)| *count as u64).sum());
    let compared = |subject: Option<&'a Subject>| Compared {
        group,
        subject,
        waits,
        sides: sides.map(|side| {
            let ns = match subject {
                None => &side.length,
                Some(subject) => side.parts.get(subject).unwrap_or(NO_VALUES),
            };
            RowSide::new(&side.waits, ns)
        }),
    };
    let parts = subjects.into_iter().map(Some);
    [None].into_iter().chain(parts).map(compared).collect()
}

impl Compared<'_> {
    fn change(&self, spread: Option<Spread>) -> Change {
        let mean_ns = [0, 1].map(|side| self.sides[side].mean);
        let grew = mean_ns[1] > mean_ns[0];
        let direction = match spread {
            None => Direction::Few,
            Some(Spread {
                is_beyond: false, ..
            }) => Direction::Same,
            Some(_) if grew => Direction::Grew,
            Some(_) => Direction::Shrank,
        };
        Change {
            of: self.subject.map_or(ChangeOf::Wait, |subject| subject.of),
            process: self.group.process.clone(),
            wait_kind: self.group.kind.clone(),
            wait_group: self.group.name.clone(),
            kind: self.subject.map(|subject| subject.kind.clone()),
            who: self.subject.and_then(|subject| subject.who.clone()),
            traces: [0, 1].map(|side| self.sides[side].len()),
            waits: self.waits,
            mean_ns,
            interval_ns: spread.map(|spread| spread.interval),
            direction,
        }
    }
}
