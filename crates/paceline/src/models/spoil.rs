//! Memory with something wrong: how bugs are planted.
//!
//! [`Spoiled`] is the checker's platform with one thing changed by a [`Spoil`]: an ordering, the
//! compare-exchange, the value that is written. The code under test stays as it is, and is told apart by
//! its file.
//!
//! The spoil is chosen when a model begins, and each operation asks for it. With a type parameter instead,
//! the compiler would build the whole job system for each of sixty of them, which takes minutes. The checker
//! runs all threads of a model on one thread of the system, so the choice is a variable of that thread.

#![allow(
    clippy::disallowed_types,
    reason = "the choice is no part of the model, and the checker has no variables of its own for that"
)]

use std::cell::Cell;
use std::panic::Location;

use event::Nanos;
use platform::{Atomic, Memory, Omission, Ordering, Platform};
use testkit::Loom;

pub(super) type Word32 = <Loom as Memory>::AtomicU32;
type Word64 = <Loom as Memory>::AtomicU64;

/// A way to spoil memory. By default nothing is spoiled. Of 32-bit words only
/// [`count_down`](Spoil::count_down), [`or_small`](Spoil::or_small) and [`store_small`](Spoil::store_small)
/// are spoiled.
pub(super) trait Spoil: Send + Sync + Copy + 'static {
    /// A store follows, in the modification order, the value that it overwrites; see [`Ordered`].
    const ORDERED: bool = false;
    /// Only operations in the files whose paths end like these are spoiled.
    const FILES: &'static [&'static str] = &[""];
    /// The step that the job system leaves out.
    const OMITS: Option<Omission> = None;
    /// A spin ends only when it sees the value that it waits for, however late that is. A spin in vain is
    /// longer than a model may be.
    const SPINS_ON: bool = false;
    /// Compare-exchanges and ands of 64-bit words are a load and a store.
    const TORN: bool = false;
    /// The ordering that takes the place of that of a load,
    fn load(order: Ordering) -> Ordering {
        order
    }
    /// … of a store of `_value`,
    fn store(_value: u64, order: Ordering) -> Ordering {
        order
    }
    /// … of a compare-exchange that succeeds,
    fn exchange(order: Ordering) -> Ordering {
        order
    }
    /// … of any other read-modify-write, with `_operand`,
    fn change(_operand: u64, order: Ordering) -> Ordering {
        order
    }
    /// … of a subtraction from a 32-bit word,
    fn count_down(order: Ordering) -> Ordering {
        order
    }
    /// … of a store to one,
    fn store_small(order: Ordering) -> Ordering {
        order
    }
    /// … and of a fence.
    fn fence(order: Ordering) -> Ordering {
        order
    }
    /// The operand that a swap, or an and or or of a 64-bit word, really has.
    fn operand(value: u64) -> u64 {
        value
    }
    /// … and of an or of a 32-bit word,
    fn or_small(order: Ordering) -> Ordering {
        order
    }
    /// The value that a store or an exchange really writes.
    fn written(value: u64) -> u64 {
        value
    }
    /// The value that an exchange of `_current` for `_new` writes although it finds `_now`.
    fn mistaken(_now: u64, _current: u64, _new: u64) -> Option<u64> {
        None
    }
}

/// For words that one thread stores to while others change them by read-modify-write, as the deque's
/// anchor: stores are swaps.
///
/// Nothing can come between an RMW and the store that it read from. Yet Loom leaves a plain store and
/// another thread's RMW unordered, even if the RMW read from a store that the storing thread has seen. A
/// thread would then read the RMW's value *after* its own store. A swap is ordered. It gives one thing too
/// much, the release sequence of the value that it overwrites. That is subsumed by a Release store of the
/// same owner.
#[derive(Clone, Copy)]
pub(super) struct Ordered;

impl Spoil for Ordered {
    const ORDERED: bool = true;
}

/// No fence is as strong as it has to be: a write before the fence may still be on its way when a read
/// after it happens.
#[derive(Clone, Copy)]
pub(super) struct WeakFences;

impl Spoil for WeakFences {
    const ORDERED: bool = true;
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the other fences, now too weak.
    }
}

/// All of a [`Spoil`].
struct Chosen {
    is_ordered: bool,
    files: &'static [&'static str],
    omits: Option<Omission>,
    spins_on: bool,
    is_torn: bool,
    load: fn(Ordering) -> Ordering,
    store: fn(u64, Ordering) -> Ordering,
    exchange: fn(Ordering) -> Ordering,
    change: fn(u64, Ordering) -> Ordering,
    count_down: fn(Ordering) -> Ordering,
    store_small: fn(Ordering) -> Ordering,
    fence: fn(Ordering) -> Ordering,
    operand: fn(u64) -> u64,
    or_small: fn(Ordering) -> Ordering,
    written: fn(u64) -> u64,
    mistaken: fn(u64, u64, u64) -> Option<u64>,
}

impl Chosen {
    const fn of<S: Spoil>() -> Chosen {
        Chosen {
            is_ordered: S::ORDERED,
            files: S::FILES,
            omits: S::OMITS,
            spins_on: S::SPINS_ON,
            is_torn: S::TORN,
            load: S::load,
            store: S::store,
            exchange: S::exchange,
            change: S::change,
            count_down: S::count_down,
            store_small: S::store_small,
            fence: S::fence,
            operand: S::operand,
            or_small: S::or_small,
            written: S::written,
            mistaken: S::mistaken,
        }
    }

    /// It, if the calling code is in a file to spoil.
    #[track_caller]
    fn here() -> Option<&'static Chosen> {
        let chosen = CHOSEN.get();
        let caller = Location::caller().file();
        let is_here = chosen.files.iter().any(|file| caller.ends_with(file));
        is_here.then_some(chosen)
    }
}

thread_local! {
    static CHOSEN: Cell<&'static Chosen> = const { Cell::new(const { &Chosen::of::<Ordered>() }) };
}

/// Loom with something wrong.
#[derive(Clone, Copy)]
pub(super) struct Spoiled;

impl Spoiled {
    /// Memory is spoiled like this from now on, until the next model begins.
    pub(super) fn by<S: Spoil>() -> Spoiled {
        CHOSEN.set(const { &Chosen::of::<S>() });
        Spoiled
    }
}

/// A model of parts that need memory alone, which is spoiled like this.
pub(super) fn spoiled<S: Spoil>(model: impl FnOnce()) {
    let Spoiled = Spoiled::by::<S>();
    model();
}

/// A word of spoiled memory.
pub(super) struct SpoiledWord(Word64);

impl Atomic<u64> for SpoiledWord {
    #[track_caller]
    fn new(value: u64) -> Self {
        SpoiledWord(Word64::new(value))
    }
    #[track_caller]
    fn load(&self, order: Ordering) -> u64 {
        let order = Chosen::here().map_or(order, |spoil| (spoil.load)(order));
        self.0.load(order)
    }
    #[track_caller]
    fn store(&self, value: u64, order: Ordering) {
        let (value, order) = match Chosen::here() {
            Some(spoil) => ((spoil.written)(value), (spoil.store)(value, order)),
            None => (value, order),
        };
        if CHOSEN.get().is_ordered {
            _ = self.0.swap(value, order)
        } else {
            self.0.store(value, order)
        }
    }
    #[track_caller]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.0
            .swap(Self::operand(value), Self::change(value, order))
    }
    #[track_caller]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let Some(spoil) = Chosen::here() else {
            return self.0.compare_exchange(current, new, success, failure);
        };
        if spoil.is_torn {
            // AcqRel in two halves, partner: those of the exchange.
            let now = self.0.load(Ordering::Acquire);
            if now != current {
                return Err(now);
            }
            self.0.store(new, Ordering::Release);
            return Ok(now);
        }
        let (new, success) = ((spoil.written)(new), (spoil.exchange)(success));
        let exchange = |current, new| self.0.compare_exchange(current, new, success, failure);
        exchange(current, new).or_else(|now| match (spoil.mistaken)(now, current, new) {
            Some(new) => exchange(now, new),
            None => Err(now),
        })
    }
    #[track_caller]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_add(value, Self::change(value, order))
    }
    #[track_caller]
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, Self::change(value, order))
    }
    #[track_caller]
    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        if Chosen::here().is_some_and(|spoil| spoil.is_torn) {
            // AcqRel in two halves, partner: those of the and.
            let now = self.0.load(Ordering::Acquire);
            self.0.store(now & value, Ordering::Release);
            return now;
        }
        self.0
            .fetch_and(Self::operand(value), Self::change(value, order))
    }
    #[track_caller]
    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        self.0
            .fetch_or(Self::operand(value), Self::change(value, order))
    }
    #[track_caller]
    fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_max(value, Self::change(value, order))
    }
}

impl SpoiledWord {
    #[track_caller]
    fn operand(value: u64) -> u64 {
        Chosen::here().map_or(value, |spoil| (spoil.operand)(value))
    }
    #[track_caller]
    fn change(operand: u64, order: Ordering) -> Ordering {
        Chosen::here().map_or(order, |spoil| (spoil.change)(operand, order))
    }
}

/// A 32-bit word of spoiled memory.
pub(super) struct SpoiledCount(Word32);

impl Atomic<u32> for SpoiledCount {
    #[track_caller]
    fn new(value: u32) -> Self {
        SpoiledCount(Word32::new(value))
    }
    #[track_caller]
    fn store(&self, value: u32, order: Ordering) {
        let order = Chosen::here().map_or(order, |spoil| (spoil.store_small)(order));
        self.0.store(value, order)
    }
    #[track_caller]
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        let order = Chosen::here().map_or(order, |spoil| (spoil.count_down)(order));
        self.0.fetch_sub(value, order)
    }
    #[track_caller]
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        let order = Chosen::here().map_or(order, |spoil| (spoil.or_small)(order));
        self.0.fetch_or(value, order)
    }
    testkit::forward_atomic!(|this| this.0, u32:
        load swap compare_exchange fetch_add fetch_and fetch_max);
}

// SAFETY: none is needed: the checker finds the planted errors, and reports a race instead of having one.
unsafe impl Memory for Spoiled {
    type AtomicU32 = SpoiledCount;
    type AtomicU64 = SpoiledWord;
    type Cell<T> = <Loom as Memory>::Cell<T>;
    type Lock<T: Send> = <Loom as Memory>::Lock<T>;

    const UNWINDS: bool = Loom::UNWINDS;

    fn omits(step: Omission) -> bool {
        CHOSEN.get().omits == Some(step)
    }

    #[track_caller]
    fn fence(order: Ordering) {
        let order = Chosen::here().map_or(order, |spoil| (spoil.fence)(order));
        Loom::fence(order)
    }
    fn spin_until(word: &Self::AtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        loop {
            let value = Loom::spin_until(&word.0, &wanted, deadline);
            if !CHOSEN.get().spins_on || wanted(value) {
                return value;
            }
        }
    }
}

// SAFETY: threads, parkers and the thread's word are Loom's own.
unsafe impl Platform for Spoiled {
    testkit::forward_platform!(Loom: |_this| Loom, now parker spawn);
}
