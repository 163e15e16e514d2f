//! Shared parts of the tests: seeds, randomness, a watchdog, and the oracle over recorded events.

pub(crate) mod allocations;
pub(crate) mod kept;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod programs;

use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::time::Duration;

use event::Nanos;
use platform::{Platform, ThreadSpec};
use policy::Attr;
use sim::{Machine, Perturb, Sim, SimConfig};

/// SplitMix64: a stream of numbers that is a function of its seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// True in `percent` of the cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len()).rev() {
            values.swap(i, self.below(i + 1));
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let value = text.trim().parse();
    Some(value.unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// The seeds of a test: `PACELINE_SEED` alone, or the first `PACELINE_SEEDS` or `default` ones.
pub(crate) fn seeds(default: u64) -> Range<u64> {
    match number("PACELINE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PACELINE_SEEDS").unwrap_or(default),
    }
}

/// The command that runs a test with one seed.
pub(crate) fn replay(test: &str, seed: u64) -> String {
    format!(
        "PACELINE_SEED={seed} cargo test -p paceline-tests --test integration -- --exact {test} \
         --nocapture"
    )
}

/// Calls `run` with each of the test's [`seeds`]. A failure is passed on, after the command that replays
/// it was printed; with `PACELINE_KEEP_GOING` set, only after all seeds were tried.
pub(crate) fn each_seed(test: &str, default: u64, run: impl Fn(u64)) {
    let keep_going = std::env::var_os("PACELINE_KEEP_GOING").is_some();
    let mut failed = None;
    for seed in seeds(default) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("seed {seed} failed; replay:\n  {}", replay(test, seed));
            failed.get_or_insert(payload);
            if !keep_going {
                break;
            }
        }
    }
    if let Some(payload) = failed {
        resume_unwind(payload);
    }
}

/// Several CPUs, and now and then a thread that stands still in some place until all others rest: that is how
/// work is lost.
pub(crate) fn delays(seed: u64) -> SimConfig {
    let machine = Machine::named("ryzen-5800x").expect("it is in the library");
    SimConfig {
        perturb: Perturb {
            delay_one_in: 20,
            delay_max: Nanos::from_millis(1),
            ..Perturb::default()
        },
        ..SimConfig::on(machine, "eevdf-6.18", seed)
    }
}

/// Unwinds without the noise of the panic hook.
pub(crate) fn fail(message: &'static str) -> ! {
    resume_unwind(Box::new(message))
}

/// How long a test may hang before the process is ended, in seconds; `PACELINE_HANG` is another number.
/// Not a bound on speed: a test that has not finished by then never will.
const HANG: u64 = 150;

/// Calls `f`; if that never returns, names what hung and ends the process.
pub(crate) fn watched<R>(what: &str, f: impl FnOnce() -> R) -> R {
    let (done, watch) = mpsc::channel::<()>();
    let what = what.to_owned();
    let hang = Duration::from_secs(number("PACELINE_HANG").unwrap_or(HANG));
    let watcher = std::thread::spawn(move || {
        if watch.recv_timeout(hang) == Err(mpsc::RecvTimeoutError::Timeout) {
            // Not by `eprintln`, which the test harness captures and would never show.
            let _ = writeln!(std::io::stderr(), "{what}: hangs");
            std::process::abort();
        }
    });
    let result = catch_unwind(AssertUnwindSafe(f));
    drop(done);
    watcher.join().expect("the watcher does not panic");
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Starts threads that compute until `end`, in pieces of this length.
pub(crate) fn start_hogs(sim: &Sim, hogs: usize, piece: Nanos, end: Nanos) {
    for _ in 0..hogs {
        let its = sim.clone();
        let hog = move || {
            while its.time() < end {
                its.charge(piece);
            }
        };
        let started = sim.spawn_with(ThreadSpec::default(), Attr::default(), Box::new(hog));
        drop(started.expect("the machine takes it"));
    }
}
