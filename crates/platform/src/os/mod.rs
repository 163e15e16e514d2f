//! The machine at hand, as a zero-sized [`Platform`] that is its own [`Machine`].
//!
//! This file holds the only `cfg` ladder: it picks one module for the system's clock, one for parking, one
//! for the facts about the machine, and so on. Everything below is written once.

mod clock;
mod float;
mod memory;
mod poll;

#[cfg(any(test, all(target_family = "wasm", target_os = "unknown")))]
mod program_clock;

#[cfg(all(unix, not(miri)))]
#[path = "system_clock_unix.rs"]
mod system_clock;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
#[path = "system_clock_program.rs"]
mod system_clock;
#[cfg(not(any(
    all(unix, not(miri)),
    all(target_family = "wasm", target_os = "unknown")
)))]
#[path = "system_clock_std.rs"]
mod system_clock;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
#[path = "park_futex.rs"]
mod park;
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(miri))))]
#[path = "park_std.rs"]
mod park;

#[cfg(all(target_family = "wasm", not(unix)))]
#[path = "alone_wasm.rs"]
mod alone;
#[cfg(not(all(target_family = "wasm", not(unix))))]
#[path = "alone_none.rs"]
mod alone;

#[cfg(all(
    feature = "machine",
    any(target_os = "linux", target_os = "android"),
    not(miri)
))]
#[path = "facts_linux.rs"]
mod facts;
#[cfg(all(feature = "machine", windows, not(miri)))]
#[path = "facts_windows.rs"]
mod facts;
#[cfg(all(feature = "machine", target_os = "macos", not(miri)))]
#[path = "facts_macos.rs"]
mod facts;
#[cfg(not(all(
    feature = "machine",
    any(target_os = "linux", target_os = "android"),
    not(miri)
)))]
#[cfg_attr(
    any(windows, target_os = "macos"),
    allow(
        dead_code,
        reason = "these take from it what they do not say themselves"
    )
)]
mod facts_std;
#[cfg(not(all(
    feature = "machine",
    any(
        target_os = "linux",
        target_os = "android",
        windows,
        target_os = "macos"
    ),
    not(miri)
)))]
use facts_std as facts;

#[cfg(all(
    feature = "machine",
    any(target_os = "linux", target_os = "android"),
    not(miri)
))]
#[path = "sched_params_linux.rs"]
mod sched_params;
#[cfg(all(feature = "machine", windows, not(miri)))]
#[path = "sched_params_windows.rs"]
mod sched_params;
#[cfg(all(feature = "machine", target_os = "macos", not(miri)))]
#[path = "sched_params_macos.rs"]
mod sched_params;
#[cfg(not(all(
    feature = "machine",
    any(
        target_os = "linux",
        target_os = "android",
        windows,
        target_os = "macos"
    ),
    not(miri)
)))]
#[path = "sched_params_none.rs"]
mod sched_params;

#[cfg(all(unix, not(miri)))]
#[path = "fork_unix.rs"]
mod fork;
#[cfg(not(all(unix, not(miri))))]
#[path = "fork_none.rs"]
mod fork;

#[cfg(all(unix, not(miri)))]
#[path = "local_unix.rs"]
mod local;
#[cfg(not(all(unix, not(miri))))]
#[path = "local_std.rs"]
mod local;

#[cfg(all(unix, not(miri)))]
#[path = "stack_unix.rs"]
mod stack;
#[cfg(all(windows, not(miri)))]
#[path = "stack_windows.rs"]
mod stack;
#[cfg(not(all(unix, not(miri))))]
#[cfg_attr(
    all(windows, not(miri)),
    allow(dead_code, reason = "Windows knows the end of a stack")
)]
mod stack_none;
#[cfg(not(any(all(unix, not(miri)), all(windows, not(miri)))))]
use stack_none as stack;

#[cfg(all(windows, not(miri)))]
#[path = "join_windows.rs"]
mod join;
#[cfg(not(all(windows, not(miri))))]
#[path = "join_std.rs"]
mod join;

#[cfg(all(unix, not(miri)))]
#[path = "signals_unix.rs"]
mod signals;
#[cfg(not(all(unix, not(miri))))]
#[path = "signals_none.rs"]
mod signals;

#[cfg(all(feature = "machine", unix))]
pub mod guardian;
#[cfg(feature = "hosted")]
mod hosted;
#[cfg(all(feature = "machine", unix))]
pub mod interrupts;
mod kept;

#[cfg(all(target_os = "linux", not(miri)))]
#[path = "pthread_linux.rs"]
pub mod pthread;
#[cfg(not(all(target_os = "linux", not(miri))))]
#[path = "pthread_none.rs"]
pub mod pthread;

#[cfg(all(feature = "machine", target_os = "linux", not(miri)))]
#[path = "tracefs_linux/mod.rs"]
pub mod tracefs;
#[cfg(all(feature = "machine", not(all(target_os = "linux", not(miri)))))]
#[path = "tracefs_none.rs"]
pub mod tracefs;

use std::any::Any;
use std::sync::OnceLock;
use std::time::Duration;

use event::Nanos;

pub use crate::error::Refused;
use crate::{
    CpuSet, Limits, Machine, MaskError, OnSignal, Platform, Poll, Polling, SchedParams,
    SchedParamsError, Signal, SignalError, SpawnError, Thread, ThreadSpec, Topology, Usage,
};
#[cfg(feature = "hosted")]
pub use hosted::HostedThread;
pub use kept::Kept;
pub use memory::{OsLock, StdAtomicU32, StdAtomicU64, StdCell};
pub use park::OsParker;

/// The operating system this program runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Os;

impl Os {
    /// [`now`](Platform::now) and the system's monotonic clock, both of one moment, give or take what it
    /// takes to read one of them.
    ///
    /// `now` is aimed at the system's clock (CLOCK_MONOTONIC on Linux) twice a second and may be some
    /// microseconds off in between. What others stamped with the system's clock, such as the kernel's
    /// recorder with its clock `mono`, is compared with events of ours exactly by way of such pairs.
    pub fn now_and_monotonic(&self) -> (Nanos, Nanos) {
        clock::pair_of_clocks()
    }

    /// Gives the program's job systems a clock where the system has none, and returns whether it is used. It
    /// is for the target `wasm32-unknown-unknown` alone, where std's clock panics. Everywhere else nothing
    /// happens. Takes no lock.
    ///
    /// `clock` says how much time has passed since any moment of its choice. It must not panic, nor call a
    /// job system, because it is read under locks. If it stands still or goes back, the time goes on by a
    /// nanosecond with each reading. The first clock stays. Set it before the first job system is made.
    ///
    /// Without a clock time is a counter. Each reading takes 100 ns, and a thread that would sleep sets the
    /// counter to the end of its sleep. So a module needs no import and no glue. Everything works, timeouts
    /// and deadlines of frames too, but no duration means anything. With a clock, a thread that would sleep
    /// reads the clock until the time has come, because it cannot sleep there.
    ///
    /// With wasm-bindgen, crate `web-time` has a clock:
    ///
    /// ```ignore
    /// static START: OnceLock<web_time::Instant> = OnceLock::new();
    /// Os::set_clock(|| START.get_or_init(web_time::Instant::now).elapsed());
    /// ```
    ///
    /// Without, the module imports one:
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline_platform::Os;
    ///
    /// # #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    /// #[link(wasm_import_module = "host")]
    /// unsafe extern "C" {
    ///     /// `performance.now`, given to `WebAssembly.instantiate` as `{ host: { now } }`.
    ///     safe fn now() -> f64;
    /// }
    /// # #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    /// # fn now() -> f64 { 1.5 }
    ///
    /// let is_used = Os::set_clock(|| Duration::from_secs_f64(now() / 1000.0));
    /// assert_eq!(is_used, cfg!(all(target_family = "wasm", target_os = "unknown")));
    /// ```
    pub fn set_clock(clock: fn() -> Duration) -> bool {
        system_clock::set(clock)
    }
}

/// A thread of the operating system.
#[derive(Debug)]
pub struct OsThread(Made);

#[derive(Debug)]
enum Made {
    BySystem(std::thread::JoinHandle<()>, join::Beginning),
    #[cfg(feature = "hosted")]
    ByProgram(hosted::Hosted),
}

impl Thread for OsThread {
    fn join(self) -> Result<(), Box<dyn Any + Send>> {
        match self.0 {
            Made::BySystem(thread, _) => thread.join(),
            #[cfg(feature = "hosted")]
            Made::ByProgram(thread) => thread.join(),
        }
    }

    fn join_last(self) -> Result<(), Box<dyn Any + Send>> {
        match self.0 {
            Made::BySystem(thread, beginning) => join::join_last(thread, &beginning),
            #[cfg(feature = "hosted")]
            Made::ByProgram(thread) => thread.join(),
        }
    }

    fn is_current(&self) -> bool {
        match &self.0 {
            Made::BySystem(thread, _) => stack::is_current(thread),
            #[cfg(feature = "hosted")]
            Made::ByProgram(thread) => thread.is_current(),
        }
    }
}

/// What a new thread does first, and then its body.
fn begins_as(
    mask: Option<CpuSet>,
    slice: Option<Nanos>,
    body: Box<dyn FnOnce() + Send>,
) -> impl FnOnce() + Send {
    let environment = float::environment();
    move || {
        float::set_environment(environment);
        if let Some(cpus) = mask {
            // A refused mask costs locality only; the thread runs where it may.
            let _ = facts::set_mask(facts::thread_id(), &cpus);
        }
        if let Some(slice) = slice {
            sched_params::ask_for_slice(slice);
        }
        body();
    }
}

// SAFETY: `spawn` hands the body to a std thread, which runs it once; `local` starts as null on
// every thread and its destructor runs on the owning thread (see `local_unix.rs`). The clock is
// monotonic per thread (see `clock.rs`).
unsafe impl Platform for Os {
    type Parker = OsParker;
    type Thread = OsThread;
    type Machine = Os;

    fn now(&self) -> Nanos {
        clock::now()
    }

    fn parker(&self) -> OsParker {
        OsParker::new()
    }

    fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<OsThread, SpawnError> {
        // A name ends at a NUL for the system, and std panics at one.
        let name = spec.name.replace('\0', "?");
        let mut builder = std::thread::Builder::new().name(name);
        if let Some(bytes) = spec.stack_bytes {
            builder = builder.stack_size(bytes);
        }
        let beginning = join::Beginning::default();
        let (own, begins) = (beginning.clone(), begins_as(spec.mask, spec.slice, body));
        let begins = move || {
            if own.begin() {
                begins();
            }
        };
        builder
            .spawn(begins)
            .map(|thread| OsThread(Made::BySystem(thread, beginning)))
            .map_err(|error| SpawnError::from_system(&error))
    }

    #[inline]
    fn local(&self) -> *const () {
        local::get()
    }

    fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) -> bool {
        local::set(word, at_exit)
    }

    fn stack_end(&self) -> Option<usize> {
        stack::end()
    }

    #[inline]
    fn machine(&self) -> &Os {
        self
    }

    fn current_cpu(&self) -> Option<u32> {
        facts::current_cpu()
    }

    fn thread_id(&self) -> u64 {
        facts::thread_id()
    }

    #[inline]
    fn is_alone(&self) -> bool {
        alone::is_certain()
    }

    fn thread_name(&self) -> Option<String> {
        facts::thread_name()
    }

    fn on_signal(
        &self,
        signal: Signal,
        call: Box<dyn Fn() + Send + Sync>,
    ) -> Result<OnSignal, SignalError> {
        signals::on_signal(signal, call)
    }

    fn charge(&self, _work: Nanos) {}

    fn seed(&self) -> u64 {
        /// 2^64 divided by the golden ratio.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        // The last digits of the time are chance. The product has them in all of its bits.
        clock::now().0.wrapping_mul(ODD)
    }

    #[inline]
    fn fork_epoch(&self) -> u32 {
        fork::epoch()
    }
}

impl Machine for Os {
    fn topology(&self) -> &Topology {
        static TOPOLOGY: OnceLock<Topology> = OnceLock::new();
        TOPOLOGY.get_or_init(facts::topology)
    }

    fn detect(&self) -> Topology {
        facts::topology()
    }

    fn limits(&self) -> Limits {
        facts::limits()
    }

    fn parallelism(&self) -> usize {
        facts::parallelism()
    }

    fn allowed(&self, threads: &[u64]) -> Option<CpuSet> {
        facts::allowed(threads)
    }

    fn set_mask(&self, thread: u64, cpus: &CpuSet) -> Result<(), MaskError> {
        facts::set_mask(thread, cpus)
    }

    fn set_sched_params(
        &self,
        thread: u64,
        how: &SchedParams,
    ) -> Result<SchedParams, SchedParamsError> {
        sched_params::set(thread, how)
    }

    fn is_on_cpu(&self, thread: u64) -> Option<bool> {
        facts::is_on_cpu(thread)
    }

    fn usage(&self) -> Usage {
        facts::usage()
    }

    fn usage_so_far(&self) -> Usage {
        facts::usage_so_far()
    }

    fn involuntary(&self) -> Option<u64> {
        facts::involuntary()
    }
}

impl Polling for Os {
    #[inline]
    fn poll(&self, kind: Poll, _word: &StdAtomicU64) {
        poll::turn(kind);
    }
}
