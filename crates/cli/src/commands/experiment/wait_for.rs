//! What source 000 wishes for: a scheduler that knows what a thread waits for.

mod game;
mod scene;

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use sim::Machine;
use sim::scenario::Scenario;

use self::game::ToldGames;
use self::scene::{Scenes, Way};
use super::article::{Experiment, ExperimentPart, Here};
use super::chosen::{ChosenValue, ValueUnit};
use super::claim::ClaimVerdict::Reproduced;
use super::claim::{Claim, Expect, short};
use super::findings::Findings;
use super::lab::{self, Effort};
use super::lesson::Lesson;
use super::priority_inversion::{CORES_BACK, CRITICAL};
use super::virtual_slice::GAME_WORK;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "wait-for",
    source: "source 000's last wish: \"if the scheduler could deduce that this thread is waiting for another \
             one to finish, and take this into account\"",
    question: "What is it worth if programs say what their threads wait for, and a scheduler acts on it?",
    setup: "Policy `waitfor` is fair, and a thread that waits pays for what it waits for. It runs beside \
            Linux's fair classes and scx_rustland, once with programs that say nothing and once with \
            programs that state their waits. First source 000's scene on both phones: frames that differ by \
            a seed, from the main thread's start to the end of its wait, which is busy as in the article or \
            parked. A busy waiter calls sched_yield once after its statement. Then a game at 60 Hz beside a \
            build of 32 compilers, on four machines: its main thread says that it waits for its render \
            thread, and the other way round. A statement costs 20 ns, a decision 2 µs and 0.5 µs for each \
            message (all assumed).",
    machine: "galaxy-s22-exynos, galaxy-s22-snapdragon, ryzen-5800x, core-i9-12900k, vm-2",
    policy: "cfs-4.12, eevdf-6.18, rustland-333, waitfor",
    learnt: &[
        Lesson {
            text: "A statement ends the scene's long waits, even the busy ones: the article's own takes \
                   {w-f}; over frames that differ it is {w-a}.",
            rests_on: &[
                ("w-a", Reproduced),
                ("w-b", Reproduced),
                ("w-f", Reproduced),
            ],
        },
        Lesson {
            text: "Others lose nothing by it: what the dependency uses, the waiter pays. A build \
                   keeps {w-c}.",
            rests_on: &[("w-c", Reproduced), ("w-d", Reproduced)],
        },
        Lesson {
            text: "The program itself gains by it where it misses frames: beside a build a game that makes a \
                   statement has {w-e}.",
            rests_on: &[("w-e", Reproduced)],
        },
    ],
    parts: &[ExperimentPart {
        run,
        values: &[&CORES_BACK, &CRITICAL, &GAME_WORK, &TICK],
        seeds: 9,
        is_varied_quickly: false,
    }],
    here: Here::Nothing("the policy is a kernel's"),
};

/// The time between two ticks on all machines.
pub(super) const TICK: ChosenValue = ChosenValue {
    name: "tick",
    about: "the time between two ticks",
    unit: ValueUnit::Ways(&["each machine's own", "1 ms", "10 ms"]),
    chosen: 0.0,
    others: &[1.0, 2.0],
    why: "HZ=250 on most of them",
};

/// The machine, with the tick of this run.
fn machine(name: &str, effort: &Effort) -> Arc<Machine> {
    let mut machine = lab::machine(name);
    let tick = [None, Some(1), Some(10)][effort.way(&TICK)];
    if let Some(tick) = tick {
        Arc::make_mut(&mut machine).kernel.tick = Nanos::from_millis(tick);
    }
    machine
}

/// A scheduler, and whether the program says what its threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setup {
    policy: &'static str,
    said: bool,
}

impl Setup {
    const ALL: [Setup; 5] = [Setup::silent("cfs-4.12"), LINUX, RUSTLAND, UNTOLD, TOLD];

    const fn silent(policy: &'static str) -> Setup {
        Setup {
            policy,
            said: false,
        }
    }

    fn applied(self, scenario: &Scenario) -> Scenario {
        Scenario {
            hints: self.said,
            ..scenario.clone()
        }
    }

    fn said(self) -> &'static str {
        if self.said { "yes" } else { "no" }
    }

    fn name(self) -> String {
        let told = if self.said { ", told" } else { "" };
        format!("{}{told}", self.policy)
    }
}

const TOLD: Setup = Setup {
    policy: "waitfor",
    said: true,
};
const UNTOLD: Setup = Setup::silent("waitfor");
const LINUX: Setup = Setup::silent("eevdf-6.18");
const RUSTLAND: Setup = Setup::silent("rustland-333");

fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let scenes = Scenes::run(effort)?;
    findings.tables.push(scenes.table());
    findings.plots.push(scenes.plot());
    let games = ToldGames::run(effort)?;
    findings.tables.push(games.table());
    findings.claims.push(own_scene(effort)?);
    findings.claims.extend(claims(&scenes, &games));
    Ok(())
}

fn own_scene(effort: &Effort) -> Result<Claim, Failure> {
    let told = scene::as_it_was(TOLD, effort)?;
    let untold = scene::as_it_was(UNTOLD, effort)?;
    let millis = |wait: Nanos| wait.0 as f64 / 1e6;
    let claim = Claim::ours(
        "w-f",
        "The article's own busy wait of 2 ms takes less than 0.1 ms",
    );
    Ok(claim
        .is(Expect::AtMost(0.1), millis(told), "ms on the slower phone")
        .note(format!("untold: {:.2} ms", millis(untold))))
}

fn claims(scenes: &Scenes, games: &ToldGames) -> Vec<Claim> {
    let p99 = |way, setup| scenes.p99(way, setup);
    vec![
        Claim::ours(
            "w-a",
            "A busy wait that is said ends sooner than under EEVDF",
        )
        .is(
            Expect::AtMost(p99(Way::Busy, LINUX) * 0.6),
            p99(Way::Busy, TOLD),
            "ms, p99 of the worse phone",
        )
        .note(format!(
            "0.6 of EEVDF's p99 or less; the waiter that is told of also calls sched_yield once, and \
             EEVDF's does not; untold, a waiter that parks under the same policy has {} ms, and the busy one \
             under rustland-333 has {} ms",
            short(p99(Way::Parked, UNTOLD)),
            short(p99(Way::Busy, RUSTLAND))
        )),
        Claim::ours("w-b", "… and sooner than under the same policy, untold")
            .is(
                Expect::AtMost(p99(Way::Busy, UNTOLD) * 0.8),
                p99(Way::Busy, TOLD),
                "ms, p99 of the worse phone",
            )
            .note("0.8 of the untold p99 or less"),
        Claim::ours(
            "w-c",
            "A build beside a game that says what it waits for keeps its share",
        )
        .is(
            Expect::AtLeast(0.9),
            games.least(TOLD, LINUX, |game| game.build_share),
            "of its share under EEVDF, on the worst of four machines",
        ),
        Claim::ours("w-d", "… and its compilers share it evenly").is(
            Expect::AtLeast(0.95),
            games.least(TOLD, LINUX, |game| game.fairness),
            "of Jain's index under EEVDF, on the worst of four machines",
        ),
        Claim::source(
            "w-e",
            "A game that misses frames has more of them if it says what it waits for",
            "the wish, in a game",
        )
        .is(
            Expect::MoreThan(1.0),
            games.least_gain(TOLD, UNTOLD),
            "of the frames that it has without, on the worst machine on which it misses some",
        )
        .note(games.without_loss(TOLD, UNTOLD)),
    ]
}
