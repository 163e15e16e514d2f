//! Goal: whatever programs do with the public API at the same time, each gives what its serial evaluation
//! gives, and a job system that is not used any more is gone.
//!
//! Method: a slice is one job system with settings drawn from the slice's seed (`setup.rs`), on which some
//! threads evaluate random programs (`node.rs`, `eval.rs`) and compare. Then all leftovers of the programs
//! have to end, the counts of panics on purpose have to be right, and the job system goes in one of several
//! ways, some of them from inside its own jobs (`ending.rs`).

mod bombs;
mod borrow;
mod ending;
mod eval;
mod graphs;
mod node;
mod setup;
mod values;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use event::Random;
use paceline::{BuildError, Role};

use crate::combination::stir;
use crate::fault::What;
use crate::options::Plant;
use crate::session::{Outcome, Slice, said};
use crate::watchdog;

use node::{Failed, Node};
use setup::{Hooks, Setup};
use world::World;

/// All that `--without` can leave out: kinds of nodes, and settings.
pub(crate) fn ingredients() -> Vec<&'static str> {
    let crowd = [node::CROWD_NAME];
    node::names().chain(crowd).chain(setup::NAMES).collect()
}

/// One job system and the work on it.
pub(crate) fn slice(slice: &Slice<'_>) -> Outcome {
    let setup = Setup::draw(slice.seed, &slice.options.without);
    let hooks = Arc::new(Hooks::default());
    let name = format!("p{}", slice.number % 100_000);
    let built = setup.build(slice.combination, &name, &hooks);
    let (js, _reader) = match built {
        Ok(built) => built,
        Err(error) => return Outcome::wrong(format!("the job system cannot be built: {error}")),
    };
    let without = setup.left_out_of_programs(&slice.options.without);
    let (mut world, foreign) = World::new(Arc::new(js), without);
    world.is_planted = slice.has(Plant::Wrong);
    let world = Arc::new(world);
    plant(slice, &world);
    let mut outcome = run_clients(slice, &setup, &world);
    if outcome.faults.is_empty() {
        let ended = ending::end(world, &setup, &hooks, slice.combination.workers);
        match ended {
            Ok(jobs) => outcome.jobs += jobs,
            Err(text) => outcome.faults.push((What::Wrong, text)),
        }
        for thread in foreign {
            if thread.join().is_err() {
                let text = "completing an event panicked".to_owned();
                outcome.faults.push((What::Wrong, text));
            }
        }
    } else {
        outcome.jobs = world.js.stats().jobs;
        // The remains may hang, and are of no interest.
        std::mem::forget(world);
    }
    outcome
}

/// The state that the clients of a slice share.
struct Shared<'a> {
    slice: &'a Slice<'a>,
    world: &'a Arc<World>,
    begun: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    is_over: AtomicBool,
    /// At most one of each client.
    faults: std::sync::Mutex<Vec<String>>,
}

fn run_clients(slice: &Slice<'_>, setup: &Setup, world: &Arc<World>) -> Outcome {
    let shared = Shared {
        slice,
        world,
        begun: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        faults: std::sync::Mutex::default(),
    };
    watchdog::stage("programs");
    thread::scope(|threads| {
        let shared = &shared;
        let clients = (1..setup.clients).map(|_| threads.spawn(|| shared.client()));
        let clients: Vec<_> = clients.collect();
        if setup.resizes {
            threads.spawn(|| shared.resize());
        }
        let role = setup.role.then(|| world.js.adopt(Role::Main));
        shared.client();
        drop(role);
        for client in clients {
            if client.join().is_err() {
                shared.fault("a client panicked".into());
            }
        }
        shared.is_over.store(true, Ordering::Relaxed);
    });
    let faults = shared
        .faults
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    Outcome {
        programs: shared.ended.into_inner(),
        jobs: 0,
        expected_failures: shared.failed.into_inner(),
        faults: faults.into_iter().map(|text| (What::Wrong, text)).collect(),
    }
}

impl Shared<'_> {
    /// Runs programs until the slice is over or something is wrong.
    fn client(&self) {
        loop {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            let is_over = self.is_over.load(Ordering::Relaxed);
            if is_over || !self.slice.goes_on(number) {
                return;
            }
            let seed = stir(self.slice.seed, number);
            let depth = 2 + seed % 4;
            match evaluate(self.world, seed, depth) {
                Ok(true) => {}
                Ok(false) => _ = self.failed.fetch_add(1, Ordering::Relaxed),
                Err(text) => {
                    self.fault(format!(
                        "program {number}, seed {seed}, depth {depth}: {text}"
                    ));
                    return;
                }
            }
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn fault(&self, text: String) {
        world::lock(&self.faults).push(text);
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Changes the number of workers all the time: to fewer, to none, to more.
    fn resize(&self) {
        let mut random = Random::new(self.slice.seed);
        let most = self.slice.combination.workers as u64 + 2;
        while !self.is_over.load(Ordering::Relaxed) {
            let workers = random.within(0, most) as usize;
            match self.world.js.resize(workers) {
                // How many there can be depends on the machine.
                Ok(()) | Err(BuildError::OutOfRange { .. }) => {}
                Err(error) => self.fault(format!("resize({workers}): {error}")),
            }
            thread::sleep(Duration::from_micros(random.below(5_000)));
        }
    }
}

/// Runs one program and compares: whether it gave a value, or failed as expected.
fn evaluate(world: &Arc<World>, seed: u64, depth: u64) -> Result<bool, String> {
    let program = Node::draw(seed, depth, &world.without);
    let expected = program.serial();
    let run = || eval::eval(world, None, &program);
    let mut panic = String::new();
    let found = catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        if !payload.is::<world::Expected>() {
            panic = format!(" ({})", said(&*payload));
        }
        Failed
    });
    if let Some(text) = world.first_wrong() {
        return Err(text);
    }
    if found == expected {
        Ok(found.is_ok())
    } else {
        Err(format!(
            "{}{panic} instead of {}, of {} nodes",
            shown(found),
            shown(expected),
            program.size()
        ))
    }
}

fn shown(value: Result<u64, Failed>) -> String {
    match value {
        Ok(value) => format!("{value:#x}"),
        Err(Failed) => "a failure".into(),
    }
}

/// Does to this process whatever a test of the campaign asks for.
fn plant(slice: &Slice<'_>, world: &World) {
    if slice.has(Plant::Crash) {
        std::process::abort();
    }
    if slice.has(Plant::Stuck) {
        let never = world.js.event("never");
        let id = never.id();
        std::mem::forget(never);
        _ = world.js.try_wait(id);
    }
    if slice.has(Plant::Growth) {
        let megabytes = vec![1_u8; 64 << 20];
        std::mem::forget(std::hint::black_box(megabytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combination::Combination;

    fn world(is_planted: bool) -> Arc<World> {
        let policy = "adaptive".parse().expect("a policy");
        let combination = Combination { workers: 2, policy };
        let js = combination
            .builder("test")
            .build()
            .expect("it can be built");
        // Kinds that the comparison has nothing to do with.
        let bombs = node::names().filter(|name| name.ends_with("-bomb"));
        let (mut world, _) = World::new(Arc::new(js), bombs.map(Into::into).collect());
        world.is_planted = is_planted;
        Arc::new(world)
    }

    /// Goal: a result that differs from the serial evaluation is found, and the right one is not. Method:
    /// evaluations in which some leaves are one bit wrong on purpose, and the same without.
    #[test]
    fn a_planted_wrong_result_is_found() {
        let planted = world(true);
        let found = (0..200).filter_map(|seed| evaluate(&planted, stir(1, seed), 1).err());
        let found: Vec<String> = found.collect();
        assert!(!found.is_empty());
        assert!(found[0].contains(" instead of 0x"), "{}", found[0]);
        let right = world(false);
        let wrong = (0..200).find_map(|seed| evaluate(&right, stir(1, seed), 1).err());
        assert_eq!(wrong, None);
    }

    /// Goal: a node's note is found although a node above it catches its panic. Method: a note.
    #[test]
    fn a_note_is_a_fault() {
        let world = world(false);
        assert!(evaluate(&world, 1, 0).is_ok());
        world.wrong("noted");
        assert_eq!(evaluate(&world, 1, 0), Err("noted".into()));
    }
}
