//! A simulated platform: whole programs on simulated threads, in an order chosen from a seed.
//!
//! Simulated atomics are sequentially consistent; preemption happens only at facade calls; what
//! lies between two facade calls is atomic. A `Sim` therefore finds wrong *orders* (lost wake-ups,
//! deadlocks, races between steps) and never wrong memory orderings. Operations cost no time: only
//! [`Platform::charge`] and deadlines move the clock.
//!
//! The threads are coroutines on the OS thread that calls [`Sim::run`]. Each atomic operation,
//! fence, lock, park, unpark, spin, spawn, join, charge and look at the clock is a step, before
//! which any other runnable thread may go first. Who does is decided by [`Order`].
//!
//! What a program under test must know:
//! - `std` thread-locals, locks and floating-point modes are shared by all simulated threads;
//!   blocking on anything but the facade blocks the whole run.
//! - While a thread panics it is not switched out; if it then waits for ever, the process ends with
//!   a message.
//! - A run that ends early (deadlock, step limit) leaks the stacks of the threads that had not
//!   ended, with everything on them. No destructor runs.
//!
//! ```
//! use event::Nanos;
//! use platform::{Atomic, Memory, Ordering, Platform, Thread, ThreadSpec};
//! use std::sync::Arc;
//! use testkit::{Sim, SimConfig};
//!
//! let report = Sim::run(SimConfig::new(7), |sim| {
//!     let word = Arc::new(<Sim as Memory>::AtomicU64::new(0));
//!     let theirs = word.clone();
//!     let body = move || theirs.store(1, Ordering::Release);
//!     let thread = sim.spawn(ThreadSpec::default(), Box::new(body)).unwrap();
//!     Sim::spin_until(&word, |value| value == 1, Nanos::MAX);
//!     thread.join().unwrap();
//! });
//! report.expect_finished();
//! ```

mod ambient;
mod fiber;
mod machine;
mod memory;
mod order;
mod parker;
mod report;
mod rng;
mod state;
mod tag;
mod thread;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use event::Nanos;
use platform::{CpuSet, MaskError, Platform, SpawnError, ThreadSpec, Topology, Usage};

use crate::quiet;
use machine::Machine;
use rng::Rng;
use state::Op;

pub use memory::{SimAtomicU32, SimAtomicU64, SimCell, SimLock};
pub use order::Order;
pub use parker::SimParker;
pub use report::{Blocked, On, Outcome, SimReport, ThreadReport, ThreadState};
pub use thread::SimThread;

/// What to run under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// Everything that is random follows from it.
    pub seed: u64,
    /// How the next thread is chosen.
    pub order: Order,
    /// How many equal CPUs the topology shows. Threads do not compete for them.
    pub cpus: usize,
    /// How many steps a run may take.
    pub steps_max: u64,
    /// How many threads a run may start, the first one included; `spawn` fails beyond.
    pub threads_max: usize,
    /// Whether `park` and `spin_until` sometimes return early for no reason, as they may.
    pub spurious: bool,
}

impl SimConfig {
    /// Random order, two CPUs, a million steps, 256 threads, no spurious returns.
    pub fn new(seed: u64) -> SimConfig {
        SimConfig {
            seed,
            order: Order::Random,
            cpus: 2,
            steps_max: 1_000_000,
            threads_max: 256,
            spurious: false,
        }
    }

    /// The same with another order.
    pub fn with_order(self, order: Order) -> SimConfig {
        SimConfig { order, ..self }
    }
}

impl Default for SimConfig {
    fn default() -> SimConfig {
        SimConfig::new(0)
    }
}

/// What all handles of one run share. Nothing here is a machine's secret: handles outlive the run.
#[derive(Debug)]
struct Shared {
    topology: Topology,
    seed: u64,
    fork_epoch: AtomicU32,
    clock: AtomicU64,
}

impl Shared {
    /// Relaxed: the clock is a number, nothing is published with it.
    fn now(&self) -> Nanos {
        Nanos(self.clock.load(Ordering::Relaxed))
    }

    fn set_now(&self, now: Nanos) {
        self.clock.store(now.0, Ordering::Relaxed);
    }
}

/// The simulated platform, as the threads of one run see it.
#[derive(Clone, Debug)]
pub struct Sim {
    shared: Arc<Shared>,
}

impl Sim {
    /// Runs `body` as simulated thread 0 and all it starts, until all threads have ended or none
    /// can go on.
    ///
    /// The body may borrow from the caller. Panics in simulated threads are not printed; the report
    /// has the first one.
    ///
    /// # Panics
    /// Inside another run, and if there is no memory for a stack.
    pub fn run(config: SimConfig, body: impl FnOnce(Sim)) -> SimReport {
        assert!(!ambient::is_inside(), "a run inside a run");
        assert!(config.cpus > 0 && config.threads_max > 0, "{config:?}");
        // Another stream than the chooser's, so that the two seeds do not repeat each other.
        const PLATFORM_STREAM: u64 = 0x05ee_d0f7_1e0f_fe70;
        let shared = Arc::new(Shared {
            topology: Topology::uniform(config.cpus),
            seed: Rng::new(config.seed ^ PLATFORM_STREAM).next(),
            fork_epoch: AtomicU32::new(0),
            clock: AtomicU64::new(0),
        });
        let sim = Sim {
            shared: shared.clone(),
        };
        let machine = Machine::new(config, shared);
        let spec = ThreadSpec {
            name: "main".into(),
            ..ThreadSpec::default()
        };
        // SAFETY: what the body borrows outlives this function, hence `Machine::run`; a body that
        // is left behind in the middle is never resumed or dropped.
        let started = unsafe { machine.add_thread(spec, Box::new(move || body(sim))) };
        started.expect("there is memory for the first stack");
        quiet::quietly(|| machine.run());
        machine.report()
    }

    /// Runs `body` under this many seeds, from the configuration's on, and returns how many
    /// different schedules that were.
    ///
    /// # Panics
    /// At the first run that does not finish; the text has the report and the seed.
    #[track_caller]
    pub fn explore(config: SimConfig, seeds: u64, body: impl Fn(Sim)) -> usize {
        let mut schedules = BTreeSet::new();
        for seed in config.seed..config.seed + seeds {
            let config = SimConfig {
                seed,
                ..config.clone()
            };
            let report = Sim::run(config, &body).expect_finished();
            schedules.insert(report.schedule_hash);
        }
        schedules.len()
    }

    /// Makes the platform say that it went through the child side of `fork` this many times.
    pub fn set_fork_epoch(&self, epoch: u32) {
        // Relaxed: a number, nothing is published with it.
        self.shared.fork_epoch.store(epoch, Ordering::Relaxed);
    }
}

// SAFETY: `spawn` gives the body to one fiber, whose entry calls it once; a thread's word is a
// field of its control block that starts as null, and `machine::entry` runs the destructor on that
// thread after the body. The clock only jumps forward (`State::jump`).
unsafe impl Platform for Sim {
    type Parker = SimParker;
    type Thread = SimThread;

    fn now(&self) -> Nanos {
        ambient::with(|machine| machine.step(Op::Now, None));
        self.shared.now()
    }

    #[track_caller]
    fn parker(&self) -> SimParker {
        SimParker::new()
    }

    /// As the trait says. Only the name and the stack size of the specification have a meaning, and
    /// small stacks are made larger.
    fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<SimThread, SpawnError> {
        ambient::with(|machine| machine.spawn(spec, body))
            .unwrap_or_else(|| Err(SpawnError("no simulated machine is running".into())))
    }

    fn local(&self) -> *const () {
        ambient::with(Machine::local).unwrap_or(std::ptr::null())
    }

    /// As the trait says.
    ///
    /// # Panics
    /// Outside a simulated thread: nothing would ever call `at_exit`.
    fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) {
        ambient::with(|machine| machine.set_local(word, at_exit))
            .expect("only simulated threads have a local word");
    }

    fn topology(&self) -> &Topology {
        &self.shared.topology
    }

    fn current_cpu(&self) -> Option<u32> {
        let cpus = self.shared.topology.effective_parallelism() as u32;
        ambient::with(|machine| machine.me() % cpus)
    }

    /// The thread's number in the order of starting, from 1 on; 0 outside a run.
    fn thread_id(&self) -> u64 {
        ambient::with(|machine| u64::from(machine.me()) + 1).unwrap_or(0)
    }

    /// Nothing: CPUs are only said to be there.
    fn set_mask(&self, _thread: u64, _cpus: &CpuSet) -> Result<(), MaskError> {
        Ok(())
    }

    fn threads_ready(&self) -> Option<usize> {
        None
    }

    fn usage(&self) -> Usage {
        Usage {
            cpu: ambient::with(Machine::charged),
            ..Usage::default()
        }
    }

    fn charge(&self, work: Nanos) {
        ambient::with(|machine| machine.charge(work));
    }

    fn seed(&self) -> u64 {
        self.shared.seed
    }

    fn fork_epoch(&self) -> u32 {
        // Relaxed: as in `set_fork_epoch`.
        self.shared.fork_epoch.load(Ordering::Relaxed)
    }
}
