//! Any platform, with its operations counted, so that the cost of a hot path can be a unit test.
//!
//! The counts are of the operations in the code, not of the machine's: a failed compare-exchange is a
//! read-modify-write, `spin_until` is one spin however often it looks.
//!
//! Two views: [`Counted::here`] has the counts of the calling OS thread; [`Counted::total`] has those of its
//! *family*, that is, the thread that called [`Counted::reset`] and the threads that were spawned from it,
//! and from those, through a counted platform. Families keep tests that run side by side in one process out
//! of each other's counts.
//!
//! Invariant: each operation is counted exactly once, before it happens, on the thread that does
//! it; nothing is sampled or batched, so both views are exact at every moment.

use std::cell::Cell;
use std::fmt;
use std::ops::Sub;
use std::sync::atomic::AtomicU64;

use event::Nanos;
use platform::{
    Atomic, Lock, Memory, Omission, Ordering, Os, Parker, Platform, SpawnError, ThreadSpec,
};

/// How many operations of each sort.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Atomic loads.
    pub loads: u64,
    /// Atomic stores.
    pub stores: u64,
    /// Swaps, compare-exchanges (failed ones too) and `fetch_…`.
    pub rmws: u64,
    /// SeqCst fences: the expensive ones.
    pub full_fences: u64,
    /// Fences weaker than SeqCst: on x86 they cost nothing.
    pub weak_fences: u64,
    /// Reads of the clock.
    pub stamps: u64,
    /// Locks taken.
    pub locks: u64,
    /// Calls of `spin_until`.
    pub spins: u64,
    /// Calls of `park`.
    pub parks: u64,
    /// Calls of `unpark`.
    pub unparks: u64,
}

/// The sorts, as indices.
#[derive(Clone, Copy)]
enum Sort {
    Load,
    Store,
    Rmw,
    FullFence,
    WeakFence,
    Stamp,
    Lock,
    Spin,
    Park,
    Unpark,
}

const SORTS: usize = Sort::Unpark as usize + 1;

impl Counts {
    fn from_array(counts: [u64; SORTS]) -> Counts {
        let [
            loads,
            stores,
            rmws,
            full_fences,
            weak_fences,
            stamps,
            locks,
            spins,
            parks,
            unparks,
        ] = counts;
        Counts {
            loads,
            stores,
            rmws,
            full_fences,
            weak_fences,
            stamps,
            locks,
            spins,
            parks,
            unparks,
        }
    }

    fn named(&self) -> [(&'static str, u64); SORTS] {
        [
            ("loads", self.loads),
            ("stores", self.stores),
            ("rmws", self.rmws),
            ("full_fences", self.full_fences),
            ("weak_fences", self.weak_fences),
            ("stamps", self.stamps),
            ("locks", self.locks),
            ("spins", self.spins),
            ("parks", self.parks),
            ("unparks", self.unparks),
        ]
    }
}

impl fmt::Debug for Counts {
    /// Only counts other than zero: a failed budget should show the surprise and nothing else.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Counts");
        for (name, count) in self.named() {
            if count != 0 {
                shown.field(name, &count);
            }
        }
        shown.finish()
    }
}

impl Sub for Counts {
    type Output = Counts;

    /// The counts between two snapshots of one view.
    ///
    /// # Panics
    /// If `earlier` is not the earlier one.
    fn sub(self, earlier: Counts) -> Counts {
        let (now, then) = (self.named(), earlier.named());
        Counts::from_array(std::array::from_fn(|sort| {
            now[sort]
                .1
                .checked_sub(then[sort].1)
                .expect("the right side is the earlier snapshot")
        }))
    }
}

/// The common counts of a family.
struct Family([AtomicU64; SORTS]);

impl Family {
    /// Families are never freed: a thread that is still ending, in the destructors of its locals,
    /// counts too. It is a hundred bytes for each `reset`, in tests.
    fn leaked() -> &'static Family {
        Box::leak(Box::new(Family(std::array::from_fn(|_| AtomicU64::new(0)))))
    }
}

/// A thread's counting state. Without destructors, so that it works until the very end of the thread.
struct Here {
    counts: Cell<[u64; SORTS]>,
    family: Cell<Option<&'static Family>>,
}

thread_local! {
    static HERE: Here = const { Here { counts: Cell::new([0; SORTS]), family: Cell::new(None) } };
}

#[inline]
fn count(sort: Sort) {
    HERE.with(|here| {
        let mut counts = here.counts.get();
        counts[sort as usize] += 1;
        here.counts.set(counts);
        // Relaxed: only the sum matters.
        family_of(here).0[sort as usize].fetch_add(1, Ordering::Relaxed);
    });
}

fn family_of(here: &Here) -> &'static Family {
    here.family.get().unwrap_or_else(|| {
        let family = Family::leaked();
        here.family.set(Some(family));
        family
    })
}

/// A platform (or just a memory) whose operations are counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted<M = Os>(pub M);

impl Counted<Os> {
    /// The counts of the calling thread since its start or its last [`reset`](Counted::reset), through a
    /// counted platform of any sort.
    pub fn here() -> Counts {
        HERE.with(|here| Counts::from_array(here.counts.get()))
    }

    /// The counts of the calling thread's family. Exact once the others are joined.
    pub fn total() -> Counts {
        HERE.with(|here| {
            let family = family_of(here);
            // Relaxed: joining a thread orders its counts before.
            let load = |sort: usize| family.0[sort].load(Ordering::Relaxed);
            Counts::from_array(std::array::from_fn(load))
        })
    }

    /// Sets the calling thread's counts to zero and makes it the first of a new family.
    pub fn reset() {
        HERE.with(|here| {
            here.counts.set([0; SORTS]);
            here.family.set(Some(Family::leaked()));
        });
    }

    /// The counts of `f` on the calling thread, and its result.
    pub fn during<R>(f: impl FnOnce() -> R) -> (R, Counts) {
        let before = Counted::here();
        let result = f();
        (result, Counted::here() - before)
    }
}

/// A word whose accesses are counted.
#[derive(Debug)]
pub struct CountedAtomic<A>(A);

impl<A> CountedAtomic<A> {
    /// The word, for one access of this sort.
    #[inline]
    fn counted(&self, sort: Sort) -> &A {
        count(sort);
        &self.0
    }
}

impl<T: Copy, A: Atomic<T>> Atomic<T> for CountedAtomic<A> {
    fn new(value: T) -> Self {
        CountedAtomic(A::new(value))
    }
    crate::forward_atomic!(|this| this.counted(Sort::Load), T: load);
    crate::forward_atomic!(|this| this.counted(Sort::Store), T: store);
    crate::forward_atomic!(|this| this.counted(Sort::Rmw), T:
        swap compare_exchange fetch_add fetch_sub fetch_and fetch_or fetch_max);
}

/// A lock whose takings are counted.
#[derive(Debug)]
pub struct CountedLock<L>(L);

impl<T, L: Lock<T>> Lock<T> for CountedLock<L> {
    fn new(value: T) -> Self {
        CountedLock(L::new(value))
    }
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        count(Sort::Lock);
        self.0.with(f)
    }
}

// SAFETY: every operation is `M`'s own on a word, cell or lock of `M`; counting adds accesses to
// other memory only. `M` is the keeper of the memory model.
unsafe impl<M: Memory> Memory for Counted<M> {
    type AtomicU32 = CountedAtomic<M::AtomicU32>;
    type AtomicU64 = CountedAtomic<M::AtomicU64>;
    type Cell<T> = M::Cell<T>;
    type Lock<T: Send> = CountedLock<M::Lock<T>>;

    const UNWINDS: bool = M::UNWINDS;

    #[inline(always)]
    fn omits(step: Omission) -> bool {
        M::omits(step)
    }

    #[inline]
    fn fence(order: Ordering) {
        match order {
            Ordering::SeqCst => count(Sort::FullFence),
            _ => count(Sort::WeakFence),
        }
        M::fence(order);
    }

    fn spin_until(word: &Self::AtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        count(Sort::Spin);
        M::spin_until(&word.0, wanted, deadline)
    }
}

/// A parker whose calls are counted.
#[derive(Debug)]
pub struct CountedParker<P>(P);

impl<P: Parker> Parker for CountedParker<P> {
    fn park(&self, deadline: Nanos) {
        count(Sort::Park);
        self.0.park(deadline);
    }
    fn unpark(&self) -> bool {
        count(Sort::Unpark);
        self.0.unpark()
    }
}

// SAFETY: every operation is `P`'s own; `spawn` adds one assignment to a thread-local before the
// body, which it still passes on once.
unsafe impl<P: Platform> Platform for Counted<P> {
    type Parker = CountedParker<P::Parker>;
    type Thread = P::Thread;

    fn now(&self) -> Nanos {
        count(Sort::Stamp);
        self.0.now()
    }

    fn parker(&self) -> Self::Parker {
        CountedParker(self.0.parker())
    }

    fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<P::Thread, SpawnError> {
        let family = HERE.with(family_of);
        let joins_the_family = move || {
            HERE.with(|here| here.family.set(Some(family)));
            body();
        };
        self.0.spawn(spec, Box::new(joins_the_family))
    }

    crate::forward_platform!(P: |this| this.0);
}
