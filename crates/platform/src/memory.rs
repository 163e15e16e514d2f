//! What a lock-free structure may ask of the world.

use core::sync::atomic::Ordering;

use event::Nanos;

use crate::Omission;

/// Shared memory: atomics, fences, cells, locks, and waiting by spinning.
///
/// All functions are static: a structure that needs nothing but memory has a type parameter and no value.
///
/// # Safety
/// Implementations give the C11 memory model or something stronger: unsafe code elsewhere relies on
/// Acquire/Release edges and fences to make plain data visible.
pub unsafe trait Memory: Sized + 'static {
    /// A 32-bit atomic word.
    type AtomicU32: Atomic<u32>;
    /// A 64-bit atomic word.
    type AtomicU64: Atomic<u64>;
    /// Plain shared memory whose accesses a model checker can see.
    type Cell<T>: SharedCell<T>;
    /// A mutual-exclusion lock for cold paths.
    type Lock<T: Send>: Lock<T>;

    /// Whether operations of this memory may unwind: those of a world that ends an execution in the middle,
    /// as a model checker does that has found something, or that is broken on purpose. A guard that aborts
    /// the process when something unwinds through it has to stay out of the way there, and what follows from
    /// a bug has to be a panic and not undefined behaviour.
    const UNWINDS: bool = false;

    /// Whether the job system leaves out this step of a protocol: never, but where a test plants a bug. It
    /// costs nothing, since the compiler knows the answer.
    #[inline(always)]
    fn omits(step: Omission) -> bool {
        let _ = step;
        false
    }

    /// A fence. Store-buffering edges ("I wrote mine, now I look at yours") use a SeqCst fence and
    /// not SeqCst accesses: the model checker treats the latter as weaker than they are.
    fn fence(order: Ordering);

    /// Asks for the first two cache lines of `value`, which are going to be written. A hint: it may do
    /// nothing.
    #[inline(always)]
    fn prefetch<T>(value: &T) {
        let _ = value;
    }

    /// Calls `make`, whose atomics lie together in memory: on cache lines of their own, 64 bytes to a
    /// line, in the order in which they are made. On a real machine the layout of types sees to that, and
    /// this does nothing. A simulated one goes by neither addresses nor layouts: it is told this way what
    /// shares a line. Calls nest. What the inner one makes lies apart from the rest.
    #[inline(always)]
    fn on_own_lines<R>(make: impl FnOnce() -> R) -> R {
        make()
    }

    /// Spins until `wanted` holds for the value of `word` or `deadline` has come, whichever is
    /// first, and returns the value last seen (loaded with Acquire).
    ///
    /// Returns may be early: callers test again. On the OS this is a loop of pause instructions,
    /// bounded in time. A simulated machine puts the thread to sleep until that line is written, and
    /// charges the time as running. It is the only way to spin: no bare spin hint is exported.
    fn spin_until(word: &Self::AtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64;
}

/// One atomic word. The operations are those of std's atomics and mean the same.
pub trait Atomic<T: Copy>: Send + Sync + Sized + 'static {
    /// A word with this value.
    fn new(value: T) -> Self;
    /// Reads the word. This and [`store`](Atomic::store) cost a plain access; the others below cost one
    /// read-modify-write each.
    fn load(&self, order: Ordering) -> T;
    /// Writes the word.
    fn store(&self, value: T, order: Ordering);
    /// Writes the word and returns what it held.
    fn swap(&self, value: T, order: Ordering) -> T;
    /// Writes `new` if the word holds `current`, else `Err` has what it holds.
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;
    /// Adds (wrapping) and returns the value before.
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    /// Subtracts (wrapping) and returns the value before.
    fn fetch_sub(&self, value: T, order: Ordering) -> T;
    /// Ands and returns the value before.
    fn fetch_and(&self, value: T, order: Ordering) -> T;
    /// Ors and returns the value before.
    fn fetch_or(&self, value: T, order: Ordering) -> T;
    /// Keeps the larger of the two and returns the value before.
    fn fetch_max(&self, value: T, order: Ordering) -> T;
}

/// Plain memory that several threads may reach. Which thread may touch it when is the structure's business.
/// A model checker reports the races.
pub trait SharedCell<T>: Sized {
    /// A cell with this value.
    fn new(value: T) -> Self;

    /// Calls `f` with a pointer to read through.
    ///
    /// # Safety
    /// No other thread writes the cell while `f` runs, and all earlier writes happened before.
    unsafe fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R;

    /// Calls `f` with a pointer to write through.
    ///
    /// # Safety
    /// No other thread reads or writes the cell while `f` runs, and all earlier accesses happened
    /// before.
    unsafe fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R;
}

/// A lock for paths that run a few times a second: registries, failure records, resizing.
pub trait Lock<T>: Send + Sync + Sized {
    /// An unlocked lock around `value`.
    fn new(value: T) -> Self;
    /// Calls `f` with the value, alone. Not reentrant.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}
