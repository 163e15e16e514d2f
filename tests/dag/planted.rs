//! Runtimes that are broken on purpose, to see that the oracles find it.
//!
//! The simulated machine is sequentially consistent, so a missing fence is no defect there; these
//! are defects of logic, put below the runtime (a parker that forgets, and read-modify-writes that
//! are not atomic), or steps that the runtime leaves out on such a platform (`platform::Omission`).
//!
//! A broken runtime must not break the process. Where the defect can make a job run twice or too
//! early, the programs borrow nothing and give no results, bodies lie in their slots (a boxed one
//! would be freed twice), and the notes are kept alive however often they are dropped.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sim::SimConfig;

use super::broken::*;
use super::left;
use super::plan::{Plan, Taste};
use super::run::Ending;
use super::simulated::{Shape, run_once, shape_of, traced, world_of};
use super::theme::Theme;
use super::world::World;
use crate::support::{Random, replay, seeds};

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
            lanes: 0,
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

    /// A program that is left to the workers.
    fn left(seed: u64, theme: Theme) -> Case<D> {
        let left::Case {
            config,
            shape,
            plan,
        } = left::Case::of(seed, &[theme]);
        Case {
            config,
            shape,
            plan,
            harmless: true,
            defect: PhantomData,
        }
    }

    fn world(&self) -> Arc<World<Broken>> {
        let world = World::new(self.plan.clone());
        if !self.harmless {
            // A body that runs twice is dropped twice: the notes must outlive that.
            (0..1000).for_each(|_| std::mem::forget(world.clone()));
        }
        world
    }

    /// The complaint of the oracles.
    fn faults(&self) -> Vec<String> {
        let run = run_once(self.config.clone(), &self.shape, self.world(), broken::<D>);
        run.faults(&self.shape)
    }

    /// Its trace, in this folder.
    fn traced(&self, test: &str, folder: &Path) -> PathBuf {
        let (config, world) = (self.config.clone(), self.world());
        traced((test, folder), config, &self.shape, world, broken::<D>)
    }
}

/// Runs programs on the broken platform until the oracles complain. Returns their first complaint, and its
/// seed.
fn find<D: Defect>(most: u64, case: impl Fn(u64) -> Case<D>) -> Option<(u64, String)> {
    seeds(most).find_map(|seed| {
        let faults = case(seed).faults();
        (!faults.is_empty()).then(|| (seed, faults.join("\n")))
    })
}

/// The defect is found, the seed it is found with finds the same again, and leaves a trace that can be read.
fn is_found<D: Defect>(test: &str, what: &str, harmless: bool, says: impl Fn(&str) -> bool) {
    is_found_in::<D>(test, what, 5_000, says, |seed| Case::of(seed, harmless));
}

/// This many programs that are left to the workers are enough: the rarest of these bugs shows in one of five
/// thousand.
const LEFT_SEEDS: u64 = 100_000;

/// The same for a step that is left out. Workers that spin do so in vain, or for too long.
fn is_missed<D: Defect>(test: &str, what: &str, theme: Theme) {
    let says = |fault: &str| {
        fault.contains("deadlock")
            || fault.contains("the workers took")
            || fault.contains("lies there")
    };
    is_found_in::<D>(test, what, LEFT_SEEDS, says, |seed| Case::left(seed, theme));
}

fn is_found_in<D: Defect>(
    test: &str,
    what: &str,
    most: u64,
    says: impl Fn(&str) -> bool,
    case: impl Fn(u64) -> Case<D>,
) {
    let test = format!("dag::planted::{test}");
    let found = find::<D>(most, &case);
    let (seed, fault) = found.unwrap_or_else(|| panic!("no oracle noticed: {what}"));
    println!(
        "{what}: seed {seed}: {}; replay:\n  {}",
        fault.lines().next().unwrap_or(""),
        replay(&test, seed)
    );
    assert!(says(&fault), "{what}: {fault}");
    let again = case(seed);
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
    assert_eq!(find::<Sound>(100, |seed| Case::of(seed, true)), None);
    for theme in [
        Theme::None,
        Theme::Range,
        Theme::Crew,
        Theme::Event,
        Theme::Batch,
    ] {
        assert_eq!(find::<Sound>(300, |seed| Case::left(seed, theme)), None);
    }
}

/// A thread that has lost its token either sleeps for ever, or sleeps beside work that it was woken for. The
/// seeds decide which of the two comes first.
#[test]
fn a_parker_that_forgets_is_found() {
    is_found::<ForgetsTokens>(
        "a_parker_that_forgets_is_found",
        "forgotten tokens",
        true,
        |fault| fault.contains("deadlock") || fault.contains("lies there"),
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

#[test]
fn a_vain_join_that_is_not_announced_is_found() {
    is_missed::<JoinsInVain>(
        "a_vain_join_that_is_not_announced_is_found",
        "the end of a range that a thread joined in vain, unannounced",
        Theme::Crew,
    );
}

#[test]
fn a_spare_that_leaves_a_ticket_is_found() {
    is_missed::<LeavesAtOnce>(
        "a_spare_that_leaves_a_ticket_is_found",
        "the ticket of a spare that leaves, unannounced",
        Theme::Event,
    );
}

#[test]
fn tickets_that_are_moved_in_silence_are_found() {
    is_missed::<MovesInSilence>(
        "tickets_that_are_moved_in_silence_are_found",
        "tickets that came along with another, unannounced",
        Theme::Batch,
    );
}
