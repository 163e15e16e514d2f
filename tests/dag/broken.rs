//! The platform of simulated threads with a defect: an operation that is wrong, or a step that the runtime
//! leaves out on it.
//!
//! Which one is chosen when a platform is made, and holds for all simulated threads of this thread of the
//! system. As a type parameter it would have the compiler build the job system nine times.

use std::cell::Cell;

use event::Nanos;
use platform::{Atomic, Memory, Omission, Ordering, Parker, Platform};
use sim::Sim;

/// The planted defect.
pub(crate) trait Defect: Copy + Send + Sync + 'static {
    /// A token that comes before the thread has parked is gone.
    const FORGETS_TOKENS: bool = false;
    /// The compare-exchange that claims a job succeeds for the second claimer too.
    const CLAIMS_TWICE: bool = false;
    /// `fetch_sub` on 32-bit words is a load and a store.
    const SUBTRACTS_IN_TWO_STEPS: bool = false;
    /// `swap` on 64-bit words is a load and a store.
    const SWAPS_IN_TWO_STEPS: bool = false;
    /// This step is left out.
    const OMITS: Option<Omission> = None;
}

macro_rules! defects {
    ($($name:ident: $what:ident: $type:ty = $is:expr;)*) => {
        $(#[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl Defect for $name {
            const $what: $type = $is;
        })*
    };
}

defects! {
    ForgetsTokens: FORGETS_TOKENS: bool = true;
    ClaimsTwice: CLAIMS_TWICE: bool = true;
    SubtractsInTwoSteps: SUBTRACTS_IN_TWO_STEPS: bool = true;
    SwapsInTwoSteps: SWAPS_IN_TWO_STEPS: bool = true;
    JoinsInVain: OMITS: Option<Omission> = Some(Omission::AnnounceAfterVainJoin);
    LeavesAtOnce: OMITS: Option<Omission> = Some(Omission::AnnounceBeforeLeaving);
    FansOutInSilence: OMITS: Option<Omission> = Some(Omission::AnnounceFan);
    MovesInSilence: OMITS: Option<Omission> = Some(Omission::AnnounceMoved);
}

/// The same platform without a defect: nothing must be found.
#[derive(Clone, Copy)]
pub(crate) struct Sound;
impl Defect for Sound {}

/// All of a [`Defect`].
struct Chosen {
    forgets_tokens: bool,
    claims_twice: bool,
    subtracts_in_two_steps: bool,
    swaps_in_two_steps: bool,
    omits: Option<Omission>,
}

impl Chosen {
    const fn of<D: Defect>() -> Chosen {
        Chosen {
            forgets_tokens: D::FORGETS_TOKENS,
            claims_twice: D::CLAIMS_TWICE,
            subtracts_in_two_steps: D::SUBTRACTS_IN_TWO_STEPS,
            swaps_in_two_steps: D::SWAPS_IN_TWO_STEPS,
            omits: D::OMITS,
        }
    }
}

thread_local! {
    static CHOSEN: Cell<&'static Chosen> = const { Cell::new(const { &Chosen::of::<Sound>() }) };
}

#[derive(Clone)]
pub(crate) struct Broken(Sim);

pub(crate) struct BrokenAtomic<A>(A);

/// The change of a state word by a claim: from ready to running, and one member of the crew.
const CLAIM: u64 = 0x101;

impl Atomic<u64> for BrokenAtomic<<Sim as Memory>::AtomicU64> {
    #[track_caller]
    fn new(value: u64) -> Self {
        BrokenAtomic(Atomic::new(value))
    }
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        if !CHOSEN.get().swaps_in_two_steps {
            return self.0.swap(value, order);
        }
        let before = self.0.load(order_of_load(order));
        self.0.store(value, Ordering::SeqCst);
        before
    }
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let twice = CHOSEN.get().claims_twice;
        match self.0.compare_exchange(current, new, success, failure) {
            Err(now) if twice && now == new && new == current + CLAIM => Ok(current),
            honest => honest,
        }
    }
    testkit::forward_atomic!(|this| this.0, u64:
        load store fetch_add fetch_sub fetch_and fetch_or fetch_max);
}

/// Loads cannot be Release; the simulated machine does not care.
fn order_of_load(order: Ordering) -> Ordering {
    match order {
        Ordering::Release | Ordering::AcqRel => Ordering::Acquire,
        other => other,
    }
}

impl Atomic<u32> for BrokenAtomic<<Sim as Memory>::AtomicU32> {
    #[track_caller]
    fn new(value: u32) -> Self {
        BrokenAtomic(Atomic::new(value))
    }
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        if !CHOSEN.get().subtracts_in_two_steps {
            return self.0.fetch_sub(value, order);
        }
        let before = self.0.load(order_of_load(order));
        self.0.store(before.wrapping_sub(value), Ordering::SeqCst);
        before
    }
    testkit::forward_atomic!(|this| this.0, u32:
        load store swap compare_exchange fetch_add fetch_and fetch_or fetch_max);
}

pub(crate) struct BrokenParker(<Sim as Platform>::Parker);

impl Parker for BrokenParker {
    fn park(&self, deadline: Nanos) {
        if CHOSEN.get().forgets_tokens {
            // Takes the token if there is one.
            self.0.park(Nanos::ZERO);
        }
        self.0.park(deadline);
    }
    fn unpark(&self) -> bool {
        self.0.unpark()
    }
}

// SAFETY: this platform breaks the trait's promises on purpose; the programs run on it have nothing that a
// job run twice or too early could break (see `planted`). Memory itself stays sound: all words are the
// simulated platform's.
unsafe impl Memory for Broken {
    type AtomicU32 = BrokenAtomic<<Sim as Memory>::AtomicU32>;
    type AtomicU64 = BrokenAtomic<<Sim as Memory>::AtomicU64>;
    type Cell<T> = <Sim as Memory>::Cell<T>;
    type Lock<T: Send> = <Sim as Memory>::Lock<T>;

    const UNWINDS: bool = true;

    fn omits(step: Omission) -> bool {
        CHOSEN.get().omits == Some(step)
    }

    fn fence(order: Ordering) {
        Sim::fence(order);
    }
    fn spin_until(word: &Self::AtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        Sim::spin_until(&word.0, wanted, deadline)
    }
}

// SAFETY: all of it is the simulated platform's own.
unsafe impl Platform for Broken {
    type Parker = BrokenParker;

    fn parker(&self) -> Self::Parker {
        BrokenParker(self.0.parker())
    }
    testkit::forward_platform!(Sim: |this| this.0, now spawn);
}

/// The platform over this one, with the defect `D` until another one is made.
pub(crate) fn broken<D: Defect>(sim: Sim) -> Broken {
    CHOSEN.set(const { &Chosen::of::<D>() });
    Broken(sim)
}
