//! Working on many units on all cores: each once, in parts that are written as they come.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use paceline::Builder;

use crate::FleetError;
use crate::set::{DataSet, Part, Unit};

/// A part is written when its rows take so many bytes,
const PART_BYTES: usize = 8 << 20;
/// or when it has so many units: what small ones take beside their rows adds up, and while one thread writes
/// the others go on,
const PART_UNITS: usize = 1024;
/// or this long after the one before: that much is done again after an interruption.
const PART_AGE: Duration = Duration::from_secs(5);

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Units that were worked on.
    pub units: usize,
    /// Those of them with an error.
    pub failed: usize,
    /// Their rows, in all tables.
    pub rows: u64,
}

/// What looks on while a run goes on.
pub trait Watch: Sync {
    /// One more unit is done.
    fn reached(&self, done: Done) {
        let _ = done;
    }

    /// Whether to stop: units that have begun are ended and written, and no others begin. It is asked
    /// before each unit, on any thread.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Nothing looks on.
impl Watch for () {}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worked {
    /// What was done.
    pub done: Done,
    /// Whether it was stopped before all was done.
    pub is_stopped: bool,
}

/// What was worked out and is not written yet.
struct Collected {
    units: Vec<Unit>,
    bytes: usize,
    since: Instant,
    done: Done,
}

impl Collected {
    fn new() -> Collected {
        Collected {
            units: Vec::new(),
            bytes: 0,
            since: Instant::now(),
            done: Done::default(),
        }
    }

    /// Adds a unit. Returns what is to be written now, which may be nothing.
    fn add(&mut self, unit: Unit) -> Vec<Unit> {
        self.done.units += 1;
        self.done.failed += usize::from(unit.error.is_some());
        self.done.rows += unit.rows.iter().map(|rows| rows.len() as u64).sum::<u64>();
        self.bytes += unit.bytes();
        self.units.push(unit);
        let is_full = self.bytes >= PART_BYTES || self.units.len() >= PART_UNITS;
        if is_full || self.since.elapsed() >= PART_AGE {
            self.bytes = 0;
            self.since = Instant::now();
            std::mem::take(&mut self.units)
        } else {
            Vec::new()
        }
    }
}

/// Where parts go, until one of them cannot be written.
struct Written<'s> {
    set: &'s mut DataSet,
    error: Option<FleetError>,
}

impl Written<'_> {
    fn add(&mut self, part: Result<Part, FleetError>) {
        if self.error.is_none() {
            self.error = part.and_then(|part| self.set.commit(&part)).err();
        }
    }
}

/// Works on each of `units` once, on `threads` threads (none: as many as the machine has CPUs for this
/// process), and writes their rows into `set`. `work` makes a unit's rows; a panic in it is what
/// `broken` makes of its message.
///
/// # Errors
/// If a part cannot be written: then no further unit begins. If no job system can be made.
pub fn run<T: Sync>(
    units: &[T],
    threads: Option<usize>,
    set: &mut DataSet,
    work: impl Fn(&T) -> Unit + Sync,
    broken: impl Fn(&T, &str) -> Unit + Sync,
    watch: &dyn Watch,
) -> Result<Worked, FleetError> {
    let builder = Builder::new();
    // The thread that waits is one of them.
    let builder = match threads {
        Some(threads) => builder.workers(threads.saturating_sub(1)),
        None => builder,
    };
    let js = builder.build();
    let js = js.map_err(|why| FleetError::failed(format!("cannot begin: {why}")))?;
    let is_over = AtomicBool::new(false);
    let kind = set.kind();
    let collected = Mutex::new(Collected::new());
    let written = Mutex::new(Written { set, error: None });
    // What a panic left is whole: nothing that runs under a lock is the caller's.
    let locked = || collected.lock().unwrap_or_else(PoisonError::into_inner);
    let write = |units: Vec<Unit>| {
        if units.is_empty() {
            return;
        }
        // Most of the work of writing is here, while others go on.
        let part = Part::new(kind, units);
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        written.add(part);
        if written.error.is_some() {
            is_over.store(true, Ordering::Relaxed);
        }
    };
    js.over(units).for_each(|unit| {
        if is_over.load(Ordering::Relaxed) || watch.is_stopped() {
            is_over.store(true, Ordering::Relaxed);
            return;
        }
        let made = catch_unwind(AssertUnwindSafe(|| work(unit)));
        let made = made.unwrap_or_else(|payload| broken(unit, &told(payload.as_ref())));
        let mut collected = locked();
        let full = collected.add(made);
        let done = collected.done;
        drop(collected);
        write(full);
        watch.reached(done);
    });
    let last = std::mem::replace(&mut *locked(), Collected::new());
    write(last.units);
    let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
    match written.error {
        Some(error) => Err(error),
        None => Ok(Worked {
            done: last.done,
            is_stopped: is_over.into_inner(),
        }),
    }
}

/// The message of a panic.
fn told(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    format!(
        "panicked: {}",
        text.unwrap_or_else(|| "without a message".into())
    )
}
