//! The model checker as a platform: every interleaving, every outcome C11 allows, for small models.
//!
//! Loom needs no `--cfg loom` here: it is a type like any other. [`model`] runs a closure under all
//! schedules with a bounded number of preemptions; [`expect_bug`] demands that a planted bug is
//! found, since a checker that never failed proves nothing.
//!
//! Loom does not show load buffering, or the full strength of SeqCst *accesses* (it treats them as AcqRel;
//! use SeqCst fences). A model has at most [`MAX_THREADS`](::loom::MAX_THREADS) threads, its own included.
//! Time stands still at zero, so a deadline may be taken as passed whenever that is allowed: a timed park
//! never blocks, it yields once.
//!
//! Invariants: the parker makes exactly the edges of the OS's futex parker and no more. A mutex
//! with a condition variable would also order the sleeper's past before the waker's future, and
//! hide bugs that way. Thread exit runs the local word's destructor before `join` returns, as on
//! the OS.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::AtomicU64 as StdAtomicU64;
use std::sync::{Arc, OnceLock, PoisonError};

use event::Nanos;
use loom::sync::Notify;
use loom::sync::atomic as modelled;
use platform::{
    Atomic, Lock, Memory, Ordering, Parker, Platform, SharedCell, SpawnError, Thread, ThreadSpec,
    Uniform,
};

use sim::quiet;

/// A bound on the switch points of one execution; a model that reaches it spins.
const BRANCHES_MAX: usize = 20_000;

/// Checks `f` under every schedule with up to `preemptions` preemptions and returns how many
/// executions that took.
///
/// `LOOM_MAX_PREEMPTIONS` may raise the bound, for long runs.
///
/// # Panics
/// If an execution panics, deadlocks, leaks or races.
pub fn model(preemptions: usize, f: impl Fn() + Send + Sync + 'static) -> u64 {
    let executions = Arc::new(StdAtomicU64::new(0));
    let counter = executions.clone();
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.max(Some(preemptions));
    builder.max_branches = builder.max_branches.max(BRANCHES_MAX);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        f();
    });
    executions.load(Ordering::Relaxed)
}

/// Checks that [`model`] finds something wrong with `f`, and returns its message.
///
/// # Panics
/// If every execution is fine.
pub fn expect_bug(preemptions: usize, f: impl Fn() + Send + Sync + 'static) -> String {
    let checked = quiet::quietly(|| catch_unwind(AssertUnwindSafe(|| model(preemptions, f))));
    match checked {
        Err(payload) => quiet::text_of(&*payload),
        Ok(executions) => panic!("the planted bug was not found in {executions} executions"),
    }
}

/// The model checker as a [`Platform`]; only usable inside [`model`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Loom;

macro_rules! modelled_atomic {
    ($name:ident, $int:ty) => {
        /// A word whose history the model checker keeps.
        #[derive(Debug)]
        pub struct $name(modelled::$name);

        impl Atomic<$int> for $name {
            #[track_caller]
            fn new(value: $int) -> Self {
                Self(modelled::$name::new(value))
            }
            #[track_caller]
            fn load(&self, order: Ordering) -> $int {
                self.0.load(order)
            }
            #[track_caller]
            fn store(&self, value: $int, order: Ordering) {
                self.0.store(value, order)
            }
            #[track_caller]
            fn swap(&self, value: $int, order: Ordering) -> $int {
                self.0.swap(value, order)
            }
            #[track_caller]
            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.compare_exchange(current, new, success, failure)
            }
            #[track_caller]
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_add(value, order)
            }
            #[track_caller]
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_sub(value, order)
            }
            #[track_caller]
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_and(value, order)
            }
            #[track_caller]
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_or(value, order)
            }
            #[track_caller]
            fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_max(value, order)
            }
        }
    };
}

modelled_atomic!(AtomicU32, u32);
modelled_atomic!(AtomicU64, u64);

/// A cell whose accesses are checked for races.
#[derive(Debug)]
pub struct LoomCell<T>(::loom::cell::UnsafeCell<T>);

impl<T> SharedCell<T> for LoomCell<T> {
    #[track_caller]
    fn new(value: T) -> Self {
        LoomCell(::loom::cell::UnsafeCell::new(value))
    }
    #[track_caller]
    unsafe fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }
    #[track_caller]
    unsafe fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }
}

/// A lock whose waiters the model checker schedules.
#[derive(Debug)]
pub struct LoomLock<T>(::loom::sync::Mutex<T>);

impl<T: Send> Lock<T> for LoomLock<T> {
    fn new(value: T) -> Self {
        LoomLock(::loom::sync::Mutex::new(value))
    }
    #[track_caller]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// SAFETY: loom's types have the outcomes C11 allows (a subset of them: no load buffering), and its
// fences make the edges C11 asks for; loom is the keeper.
unsafe impl Memory for Loom {
    type AtomicU32 = AtomicU32;
    type AtomicU64 = AtomicU64;
    type Cell<T> = LoomCell<T>;
    type Lock<T: Send> = LoomLock<T>;

    const UNWINDS: bool = true;

    fn fence(order: Ordering) {
        modelled::fence(order);
    }

    /// Looks, and if that does not do lets others run once and looks again. The deadline may always
    /// have passed.
    fn spin_until(word: &AtomicU64, wanted: impl Fn(u64) -> bool, _deadline: Nanos) -> u64 {
        let value = word.load(Ordering::Acquire);
        if wanted(value) {
            return value;
        }
        ::loom::thread::yield_now();
        word.load(Ordering::Acquire)
    }
}

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
const PARKED: u32 = u32::MAX;

/// The OS's futex parker with the futex replaced by loom's notification, which also explores a
/// spurious return.
#[derive(Debug)]
pub struct LoomParker {
    state: modelled::AtomicU32,
    futex: Notify,
}

impl Parker for LoomParker {
    #[track_caller]
    fn park(&self, deadline: Nanos) {
        // TOKEN → EMPTY or EMPTY → PARKED. Acquire, partner: the Release swap in `unpark`.
        if self.state.fetch_sub(1, Ordering::Acquire) == TOKEN {
            return;
        }
        if deadline == Nanos::MAX {
            self.futex.wait();
        } else {
            ::loom::thread::yield_now();
        }
        // Acquire as above. A notification that comes after a spurious return ends the next wait,
        // as a late futex wake-up does.
        self.state.swap(EMPTY, Ordering::Acquire);
    }

    #[track_caller]
    fn unpark(&self) -> bool {
        // Release, partner: the Acquire operations in `park`.
        let parked = self.state.swap(TOKEN, Ordering::Release) == PARKED;
        if parked {
            self.futex.notify();
        }
        parked
    }
}

/// A thread of the model.
#[derive(Debug)]
pub struct LoomThread(::loom::thread::JoinHandle<()>);

impl Thread for LoomThread {
    /// Never an error: a panic in any thread ends the whole model.
    #[track_caller]
    fn join(self) -> Result<(), Box<dyn Any + Send>> {
        self.0.join()
    }

    #[track_caller]
    fn is_current(&self) -> bool {
        self.0.thread().id() == ::loom::thread::current().id()
    }
}

/// The thread's word and its destructor.
struct Slot {
    word: Cell<*const ()>,
    at_exit: Cell<Option<unsafe fn(*const ())>>,
}

impl Slot {
    /// Runs the destructor if there is a word, at most once per word.
    fn finish(&self) {
        let word = self.word.replace(ptr::null());
        if let (false, Some(at_exit)) = (word.is_null(), self.at_exit.get()) {
            // SAFETY: the code that set the word promised with it that `at_exit` may be called with it on
            // this thread; it was taken out, so this happens once.
            unsafe { at_exit(word) };
        }
    }
}

impl Drop for Slot {
    /// The words of an execution that was cut short cannot be used any more, as `at_exit` would do.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.finish();
        }
    }
}

::loom::thread_local! {
    static SLOT: Slot = Slot { word: Cell::new(ptr::null()), at_exit: Cell::new(None) };
}

// SAFETY: `spawn` hands the body to a loom thread, which runs it once; loom gives each thread its
// own `SLOT`, which starts as null and is finished on that thread: by `spawn`'s closure after the
// body, or, on the model's first thread, by loom when that thread is done.
unsafe impl Platform for Loom {
    type Parker = LoomParker;
    type Thread = LoomThread;
    type Machine = Uniform;

    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    #[track_caller]
    fn parker(&self) -> LoomParker {
        LoomParker {
            state: modelled::AtomicU32::new(EMPTY),
            futex: Notify::new(),
        }
    }

    #[track_caller]
    fn spawn(
        &self,
        _spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<LoomThread, SpawnError> {
        /// In words. Loom's own 32 KiB are too few for a panic on top of a worker's frames in a debug build.
        const STACK: usize = (128 << 10) / size_of::<usize>();
        let thread = ::loom::thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn(move || {
            body();
            // Loom drops thread-locals only after it has let `join` go on; the OS does so before.
            let _ = SLOT.try_with(Slot::finish);
        });
        Ok(LoomThread(
            thread.expect("loom ends a model that has too many threads"),
        ))
    }

    fn local(&self) -> *const () {
        // Gone only while the thread's own destructors run: then there is no word any more.
        SLOT.try_with(|slot| slot.word.get()).unwrap_or(ptr::null())
    }

    fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) -> bool {
        let set = SLOT.try_with(|slot| {
            slot.word.set(word);
            slot.at_exit.set(Some(at_exit));
        });
        set.is_ok()
    }

    fn machine(&self) -> &Uniform {
        static MACHINE: OnceLock<Uniform> = OnceLock::new();
        MACHINE.get_or_init(|| Uniform::new(2))
    }

    fn current_cpu(&self) -> Option<u32> {
        None
    }

    fn thread_id(&self) -> u64 {
        0
    }

    fn charge(&self, _work: Nanos) {}

    fn seed(&self) -> u64 {
        1
    }

    fn fork_epoch(&self) -> u32 {
        0
    }
}
