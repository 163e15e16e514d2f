//! Runtimes that are broken on purpose, to see that the oracles find it.
//!
//! The simulated machine is sequentially consistent, so a missing fence is no defect there; these
//! are defects of logic, put below the runtime: a parker that forgets, and read-modify-writes that
//! are not atomic.
//!
//! A broken runtime must not break the process. Where the defect can make a job run twice or too
//! early, the programs borrow nothing and give no results, bodies lie in their slots (a boxed one
//! would be freed twice), and the notes are kept alive however often they are dropped.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Parker, Platform, SpawnError, ThreadSpec};
use sim::{Sim, SimConfig};

use super::plan::{Plan, Taste};
use super::run::Ending;
use super::simulated::{Shape, run_once, shape_of, traced, world_of};
use super::theme::Theme;
use super::world::World;
use crate::support::{Random, replay, seeds};

/// What is broken.
trait Defect: Copy + Send + Sync + 'static {
    /// A token that comes before the thread has parked is gone.
    const FORGETS_TOKENS: bool = false;
    /// The compare-exchange that claims a job succeeds for the second claimer too.
    const CLAIMS_TWICE: bool = false;
    /// `fetch_sub` on 32-bit words is a load and a store.
    const SUBTRACTS_IN_TWO_STEPS: bool = false;
    /// `swap` on 64-bit words is a load and a store.
    const SWAPS_IN_TWO_STEPS: bool = false;
}

macro_rules! defects {
    ($($name:ident: $what:ident;)*) => {
        $(#[derive(Clone, Copy)]
        struct $name;
        impl Defect for $name {
            const $what: bool = true;
        })*
    };
}

defects! {
    ForgetsTokens: FORGETS_TOKENS;
    ClaimsTwice: CLAIMS_TWICE;
    SubtractsInTwoSteps: SUBTRACTS_IN_TWO_STEPS;
    SwapsInTwoSteps: SWAPS_IN_TWO_STEPS;
}

/// The same platform without a defect: nothing must be found.
#[derive(Clone, Copy)]
struct Sound;
impl Defect for Sound {}

#[derive(Clone)]
struct Broken<D>(Sim, PhantomData<D>);

struct BrokenAtomic<A, D>(A, PhantomData<D>);

/// What a claim adds to a state word: from ready to running, and one member of the crew.
const CLAIM: u64 = 0x101;

impl<D: Defect> Atomic<u64> for BrokenAtomic<<Sim as Memory>::AtomicU64, D> {
    #[track_caller]
    fn new(value: u64) -> Self {
        BrokenAtomic(Atomic::new(value), PhantomData)
    }
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        if !D::SWAPS_IN_TWO_STEPS {
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
        match self.0.compare_exchange(current, new, success, failure) {
            Err(now) if D::CLAIMS_TWICE && now == new && new == current + CLAIM => Ok(current),
            honest => honest,
        }
    }
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_add(value, order)
    }
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }
    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_and(value, order)
    }
    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_or(value, order)
    }
    fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_max(value, order)
    }
}

/// Loads cannot be Release; the simulated machine does not care.
fn order_of_load(order: Ordering) -> Ordering {
    match order {
        Ordering::Release | Ordering::AcqRel => Ordering::Acquire,
        other => other,
    }
}

impl<D: Defect> Atomic<u32> for BrokenAtomic<<Sim as Memory>::AtomicU32, D> {
    #[track_caller]
    fn new(value: u32) -> Self {
        BrokenAtomic(Atomic::new(value), PhantomData)
    }
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }
    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.0.compare_exchange(current, new, success, failure)
    }
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        if !D::SUBTRACTS_IN_TWO_STEPS {
            return self.0.fetch_sub(value, order);
        }
        let before = self.0.load(order_of_load(order));
        self.0.store(before.wrapping_sub(value), Ordering::SeqCst);
        before
    }
    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_and(value, order)
    }
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_or(value, order)
    }
    fn fetch_max(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_max(value, order)
    }
}

struct BrokenParker<D>(<Sim as Platform>::Parker, PhantomData<D>);

impl<D: Defect> Parker for BrokenParker<D> {
    fn park(&self, deadline: Nanos) {
        if D::FORGETS_TOKENS {
            // Takes the token if there is one.
            self.0.park(Nanos::ZERO);
        }
        self.0.park(deadline);
    }
    fn unpark(&self) -> bool {
        self.0.unpark()
    }
}

// SAFETY: this platform does NOT keep what the trait promises, which is its purpose; the programs
// run on it have nothing that a job run twice or too early could break (see the file's comment).
// Memory itself stays sound: all words are the simulated platform's.
unsafe impl<D: Defect> Memory for Broken<D> {
    type AtomicU32 = BrokenAtomic<<Sim as Memory>::AtomicU32, D>;
    type AtomicU64 = BrokenAtomic<<Sim as Memory>::AtomicU64, D>;
    type Cell<T> = <Sim as Memory>::Cell<T>;
    type Lock<T: Send> = <Sim as Memory>::Lock<T>;

    const UNWINDS: bool = Sim::UNWINDS;

    fn fence(order: Ordering) {
        Sim::fence(order);
    }
    fn spin_until(word: &Self::AtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        Sim::spin_until(&word.0, wanted, deadline)
    }
}

// SAFETY: all of it is the simulated platform's own.
unsafe impl<D: Defect> Platform for Broken<D> {
    type Parker = BrokenParker<D>;
    type Thread = <Sim as Platform>::Thread;

    fn now(&self) -> Nanos {
        self.0.now()
    }
    fn parker(&self) -> Self::Parker {
        BrokenParker(self.0.parker(), PhantomData)
    }
    fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Self::Thread, SpawnError> {
        self.0.spawn(spec, body)
    }
    testkit::forward_platform!(|this| this.0, |word| &word.0);
}

/// A program, and how it is run on the broken platform.
struct Case<D> {
    config: SimConfig,
    shape: Shape,
    plan: Plan,
    /// The defect cannot make a job run twice or too early.
    harmless: bool,
    defect: PhantomData<D>,
}

impl<D: Defect> Case<D> {
    fn of(seed: u64, harmless: bool) -> Case<D> {
        let mut random = Random::new(seed ^ 0x9148_7ed0);
        let taste = Taste {
            nodes: 16,
            has_workers: true,
            waits_by_id: true,
            events: harmless,
            ranges: harmless,
            results: harmless,
            borrowing: harmless,
            panics: 0,
            background: 0,
            theme: Theme::None,
            items: 40,
        };
        let config = SimConfig {
            steps_max: 300_000,
            ..world_of(&mut random, seed)
        };
        let workers = 1 + random.below(3);
        Case {
            config,
            shape: shape_of(&mut random, workers, Ending::Settled),
            plan: Plan::generate(&mut random, taste),
            harmless,
            defect: PhantomData,
        }
    }

    fn world(&self) -> Arc<World<Broken<D>>> {
        let world = World::new(self.plan.clone());
        if !self.harmless {
            // What runs twice is dropped twice: the notes must outlive that.
            (0..1000).for_each(|_| std::mem::forget(world.clone()));
        }
        world
    }

    /// What the oracles say of it.
    fn faults(&self) -> Vec<String> {
        let run = run_once(self.config.clone(), &self.shape, self.world(), broken);
        run.faults(&self.shape)
    }

    /// Its trace, in this folder.
    fn traced(&self, test: &str, folder: &Path) -> PathBuf {
        let (config, world) = (self.config.clone(), self.world());
        traced((test, folder), config, &self.shape, world, broken)
    }
}

fn broken<D>(sim: Sim) -> Broken<D> {
    Broken(sim, PhantomData)
}

/// Runs programs on the broken platform until the oracles complain. Returns what they said first,
/// and of which seed.
fn find<D: Defect>(most: u64, harmless: bool) -> Option<(u64, String)> {
    seeds(most).find_map(|seed| {
        let faults = Case::<D>::of(seed, harmless).faults();
        (!faults.is_empty()).then(|| (seed, faults.join("\n")))
    })
}

/// The defect is found, the seed it is found with finds the same again, and leaves a trace that can be read.
fn is_found<D: Defect>(test: &str, what: &str, harmless: bool, says: impl Fn(&str) -> bool) {
    let test = format!("dag::planted::{test}");
    let found = find::<D>(5_000, harmless);
    let (seed, fault) = found.unwrap_or_else(|| panic!("nobody noticed: {what}"));
    println!(
        "{what}: seed {seed}: {}; replay:\n  {}",
        fault.lines().next().unwrap_or(""),
        replay(&test, seed)
    );
    assert!(says(&fault), "{what}: {fault}");
    let again = Case::<D>::of(seed, harmless);
    assert_eq!(again.faults().join("\n"), fault, "{what}: again");
    let folder = tempfile::tempdir().expect("there is room");
    let path = again.traced(&test, folder.path());
    let bytes = std::fs::read(&path).expect("it was written");
    let read = trace::read::read(&*bytes, "kept").expect("it can be read");
    assert!(!read.kernel.is_empty(), "{what}: no kernel events");
    let is_there = |name: &str| read.threads.iter().any(|thread| thread.name == name);
    assert!(
        is_there("main") && is_there("paceline 0"),
        "{what}: {:?}",
        read.threads
    );
    let said: Vec<&str> = read.annotations.iter().map(|of| &*of.name).collect();
    println!(
        "  its trace: {} bytes, {} events of jobs, {said:?}",
        bytes.len(),
        read.jobs.len()
    );
}

#[test]
fn a_sound_platform_is_not_accused() {
    assert_eq!(find::<Sound>(100, true), None);
}

#[test]
fn a_parker_that_forgets_is_found_as_a_deadlock() {
    is_found::<ForgetsTokens>(
        "a_parker_that_forgets_is_found_as_a_deadlock",
        "forgotten tokens",
        true,
        |fault| fault.contains("deadlock"),
    );
}

#[test]
fn a_job_claimed_twice_is_found() {
    is_found::<ClaimsTwice>(
        "a_job_claimed_twice_is_found",
        "claims that succeed twice",
        false,
        |fault| fault.contains("runs 2 times"),
    );
}

#[test]
fn a_subtraction_that_is_lost_is_found() {
    is_found::<SubtractsInTwoSteps>(
        "a_subtraction_that_is_lost_is_found",
        "lost subtractions",
        false,
        |_| true,
    );
}

#[test]
fn an_edge_that_is_lost_is_found() {
    is_found::<SwapsInTwoSteps>(
        "an_edge_that_is_lost_is_found",
        "lists closed in two steps",
        false,
        |_| true,
    );
}
