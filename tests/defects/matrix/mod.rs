//! The matrix: each kind of code that the program gives to the runtime, times what that code does, times
//! where the runtime calls it.
//!
//! Goal: wherever that code is called, it may panic, wait for a job, schedule one, join and open scopes, and
//! drop the last owner of the job system.
//!
//! Method: a cell of the matrix is a small program with some bystanders: jobs that can run, and one that
//! comes after the code in question. The code acts once. Oracle: nothing hangs; each job ran exactly once or
//! was dropped exactly once, and ran if it could; the workers work afterwards though nothing waits for them;
//! the end of the job system returns. Cells that make no sense say why, in [`Cell::nonsense`].
//!
//! The cells run on threads and on simulated threads in some orders. `PACELINE_CELL=text` runs those whose
//! name contains the text.

mod cells;
mod wakers;
mod world;

use std::fmt;

use platform::Os;
use sim::{Order, Sim, SimConfig};

use super::watched;
use crate::support::{Random, seeds};

/// Whose code it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Body,
    ResultDrop,
    /// A capture of a body that ran.
    CaptureDrop,
    /// A capture of a body that never runs: its predecessor failed, or the job system ended before.
    CancelledDrop,
    RangeDrop,
    RangeBody,
    PayloadDrop,
    ScopeJob,
    JoinHalf,
    FuturePoll,
    /// A future that was ready.
    FutureDrop,
    /// A future that is never ready: its predecessor failed, or the job system ended before.
    PendingDrop,
    StartHook,
    StopHook,
    NameHook,
    /// The hook for panics that nothing waits for.
    PanicHook,
    Sink,
    WakerClone,
    WakerWake,
    WakerDrop,
}

/// The action of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Panics,
    Waits,
    Schedules,
    Joins,
    /// Drops the last owner of the job system.
    Ends,
}

const ACTS: [Act; 5] = [
    Act::Panics,
    Act::Waits,
    Act::Schedules,
    Act::Joins,
    Act::Ends,
];

/// Where it is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// On a worker, and nothing else helps.
    Worker,
    /// On an outside thread inside a wait, while the workers are busy.
    Wait,
    /// On an outside thread inside another call, while the workers are busy.
    Call,
    /// While the job system ends.
    End,
    /// On an outside thread inside a wait, without any worker.
    NoWorkers,
}

const PLACES: [Place; 5] = [
    Place::Worker,
    Place::Wait,
    Place::Call,
    Place::End,
    Place::NoWorkers,
];

/// One cell of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cell {
    kind: Kind,
    act: Act,
    place: Place,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.kind, self.act, self.place)
    }
}

impl Kind {
    /// Whether the code is given a context, and so can call the job system while that ends.
    fn has_context(self) -> bool {
        use Kind::{Body, JoinHalf, RangeBody, ScopeJob};
        matches!(self, Body | RangeBody | ScopeJob | JoinHalf)
    }

    /// Whether the job fails if the code panics.
    fn fails_its_job(self) -> bool {
        use Kind::{CaptureDrop, FutureDrop, FuturePoll};
        self.has_context() || matches!(self, CaptureDrop | FuturePoll | FutureDrop)
    }

    /// Whether the code is no part of a job, so that there is none which could fail or run elsewhere.
    fn is_of_threads(self) -> bool {
        matches!(self, Kind::StartHook | Kind::StopHook | Kind::NameHook)
    }
}

impl Cell {
    /// Why this cell is left out.
    fn nonsense(self) -> Option<&'static str> {
        let Cell { kind, act, place } = self;
        let needs_no_job_system =
            act == Act::Panics || (act == Act::Waits && kind != Kind::PayloadDrop);
        let is_future = matches!(kind, Kind::WakerClone | Kind::WakerDrop);
        let calls_from_outside = place == Place::Call && !is_future;
        match (kind, act, place) {
            (Kind::StartHook, _, Place::Wait | Place::Call | Place::NoWorkers)
            | (Kind::StopHook, _, Place::Wait | Place::Call | Place::NoWorkers) => {
                Some("the hook is called on workers")
            }
            (Kind::NameHook, _, Place::Wait | Place::End) => Some("no thread is started there"),
            (Kind::NameHook, Act::Ends, Place::NoWorkers) => Some("the caller is an owner"),
            (Kind::PanicHook, _, Place::Wait) => Some("what a waiter runs is waited for"),
            (Kind::PanicHook, Act::Ends, Place::NoWorkers) => Some("the caller is an owner"),
            (Kind::WakerClone | Kind::WakerDrop, _, Place::Wait) => Some("no wait takes a waker"),
            (Kind::WakerClone | Kind::WakerDrop, _, Place::End) => {
                Some("handles are not asked then")
            }
            (_, Act::Ends, Place::End) => Some("the last owner has gone already"),
            (_, Act::Ends, Place::Call) if calls_from_outside => Some("the caller is an owner"),
            (_, _, Place::End) if !kind.has_context() && !needs_no_job_system => {
                Some("nothing leads to a job system that ends")
            }
            _ => None,
        }
    }
}

impl Cell {
    /// Whether the jobs behind the gate are dropped by the end of the job system.
    fn keeps_gate(self) -> bool {
        match self.kind {
            Kind::CancelledDrop | Kind::PendingDrop | Kind::WakerWake => self.place == Place::End,
            Kind::WakerClone | Kind::WakerDrop => self.act == Act::Ends,
            _ => false,
        }
    }
}

/// Every cell of a kind.
fn cells_of(kind: Kind) -> impl Iterator<Item = Cell> {
    let wanted = std::env::var("PACELINE_CELL").unwrap_or_default();
    let all = ACTS.into_iter().flat_map(move |act| {
        let cell = move |place| Cell { kind, act, place };
        PLACES.into_iter().map(cell)
    });
    all.filter(move |cell| cell.nonsense().is_none() && cell.to_string().contains(&wanted))
}

/// Job systems of a cell: with one worker and with two, unless it has to have none.
fn workers_of(cell: Cell) -> &'static [usize] {
    match cell.place {
        Place::NoWorkers => &[0],
        Place::Wait | Place::Call => &[1],
        Place::Worker | Place::End => &[1, 2],
    }
}

fn on_threads(kind: Kind) {
    for cell in cells_of(kind) {
        for &workers in workers_of(cell) {
            watched(&format!("{cell}, {workers} workers"), || {
                (0..5).for_each(|_| cells::run(cell, workers, Os));
            });
        }
    }
}

fn simulated(kind: Kind) {
    const SEEDS: u64 = 30;
    for cell in cells_of(kind) {
        for &workers in workers_of(cell) {
            for seed in seeds(SEEDS) {
                let mut random = Random::new(seed);
                let order = if random.chance(50) {
                    Order::Random
                } else {
                    Order::Pct { depth: 3 }
                };
                let config = SimConfig::new(seed)
                    .with_order(order)
                    .with_cpus_shown(*random.pick(&[1, 2, 4]));
                let report = Sim::run(config, |sim| {
                    cells::run(cell, workers, sim);
                });
                let is_well = report.outcome == sim::Outcome::Finished;
                assert!(is_well, "{cell}, {workers} workers, seed {seed}: {report}");
            }
        }
    }
}

macro_rules! rows {
    ($($name:ident: $kind:ident;)*) => {$(
        mod $name {
            use super::*;

            /// Goal and method: those of the matrix.
            #[test]
            fn on_threads() {
                super::on_threads(Kind::$kind);
            }

            /// Goal and method: those of the matrix.
            #[test]
            fn in_simulated_orders() {
                super::simulated(Kind::$kind);
            }
        }
    )*};
}

rows! {
    bodies: Body;
    results_dropped: ResultDrop;
    captures_dropped: CaptureDrop;
    cancelled_captures_dropped: CancelledDrop;
    closures_of_ranges_dropped: RangeDrop;
    bodies_of_ranges: RangeBody;
    payloads_dropped: PayloadDrop;
    jobs_of_scopes: ScopeJob;
    halves_of_joins: JoinHalf;
    futures_polled: FuturePoll;
    futures_dropped: FutureDrop;
    pending_futures_dropped: PendingDrop;
    hooks_at_the_start: StartHook;
    hooks_at_the_end: StopHook;
    hooks_that_name: NameHook;
    hooks_for_panics: PanicHook;
    sinks: Sink;
    wakers_cloned: WakerClone;
    wakers_called: WakerWake;
    wakers_dropped: WakerDrop;
}
