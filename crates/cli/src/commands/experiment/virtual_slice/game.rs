//! A game beside a build: frames, audio and switches, over seeds.

use console::Failure;
use event::Nanos;
use sim::scenario::{Ran, Scenario};

use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Plot, PlotBar, PlotShape};

/// The measurements of a game under one policy.
#[derive(Clone, Copy)]
struct Game {
    frames_a_second: f64,
    /// Of 1000 periods.
    audio_misses: f64,
    /// Of the build.
    switches_a_second: f64,
    build_share: f64,
    /// How long the audio waited for a CPU, of each period, in microseconds.
    audio_waits: f64,
    /// How long a compiler ran at a time, in microseconds.
    build_stint: f64,
}

/// The period of the audio in the scenario.
const AUDIO: Nanos = Nanos::from_millis(5);

impl Game {
    fn of(ran: &Ran) -> Game {
        let seconds = ran.report.now.as_secs_f64();
        let periods = ran.report.now.0 / AUDIO.0;
        let in_time = ran.measured.iter().filter(|span| span.name == "audio");
        let in_time = in_time.filter(|span| span.end <= next_period(span.begin));
        let all = ran.report.threads.iter();
        let audio = all.clone().filter(|thread| thread.name == "audio");
        let audio_waited: u64 = audio.map(|thread| thread.spent.runnable.0).sum();
        let build = all.filter(|thread| thread.name.starts_with("cc"));
        let lost: u64 = build.clone().map(|thread| thread.involuntary).sum();
        let blocked: u64 = build.clone().map(|thread| thread.voluntary).sum();
        let ran_for: u64 = build.map(|thread| thread.spent.run.0).sum();
        let cpus = ran.report.config.machine.cpus.len() as f64;
        Game {
            frames_a_second: lab::spans(ran, "frame").count() as f64 / seconds,
            audio_misses: (periods as f64 - in_time.count() as f64).max(0.0) * 1000.0
                / periods as f64,
            switches_a_second: lost as f64 / seconds,
            build_share: ran_for as f64 / (ran.report.now.0 as f64 * cpus),
            audio_waits: audio_waited as f64 / periods as f64 / 1e3,
            build_stint: ran_for as f64 / (lost + blocked).max(1) as f64 / 1e3,
        }
    }
}

/// When the period is over in which this is.
fn next_period(begin: Nanos) -> Nanos {
    Nanos((begin.0 / AUDIO.0 + 1) * AUDIO.0)
}

const POLICIES: [&str; 6] = [
    "uniform-slice",
    "virtual-slice",
    "rustland-pre333",
    "rustland-333",
    "rustland-333-capped",
    "eevdf-6.6",
];

/// Each game that was run, with its policy.
struct Games(Vec<(&'static str, Game)>);

impl Games {
    fn run(scenario: &Scenario, seeds: &[u64]) -> Result<Games, Failure> {
        let all = POLICIES
            .iter()
            .flat_map(|policy| seeds.iter().map(move |&seed| (*policy, seed)));
        let all: Vec<(&str, u64)> = all.collect();
        let games = lab::each("games", &all, |&(policy, seed)| {
            lab::run(scenario, policy, seed).map(|ran| Game::of(&ran))
        })?;
        let policies = all.iter().map(|(policy, _)| *policy);
        Ok(Games(policies.zip(games).collect()))
    }

    /// This of every game under the policy.
    fn of(&self, policy: &str, what: fn(&Game) -> f64) -> Vec<f64> {
        let games = self.0.iter().filter(|(ran, _)| *ran == policy);
        games.map(|(_, game)| what(game)).collect()
    }

    fn mean(&self, policy: &str, what: fn(&Game) -> f64) -> f64 {
        lab::mean(&self.of(policy, what))
    }
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let mut scenario = lab::scenario("game-and-build");
    scenario.until = Some(Nanos::from_millis(effort.of(1_000, 5_000)));
    let seeds: Vec<u64> = effort.seeds(3, 20).collect();
    let games = Games::run(&scenario, &seeds)?;
    show(&games, seeds.len(), findings);
    let mean = |policy: &str, what: fn(&Game) -> f64| games.mean(policy, what);
    let gain = |before: &str, after: &str| {
        let frames = |policy| mean(policy, |game| game.frames_a_second);
        (frames(after) / frames(before) - 1.0) * 100.0
    };
    let misses = |policy| mean(policy, |game| game.audio_misses);
    let switches = |policy| mean(policy, |game| game.switches_a_second);
    let waits = |policy| mean(policy, |game| game.audio_waits);
    let crowd = crowded(&scenario, &seeds)?;
    findings.claims.extend(claims(&GameMeasures {
        waits: (waits("rustland-pre333"), waits("rustland-333")),
        stints: (mean("rustland-pre333", |game| game.build_stint), crowd),
        ideal_gain: gain("uniform-slice", "virtual-slice"),
        merged_gain: gain("rustland-pre333", "rustland-333"),
        misses: (misses("rustland-pre333"), misses("rustland-333")),
        switches: (switches("rustland-pre333"), switches("rustland-333")),
    }));
    Ok(())
}

/// The table and the picture of all policies.
fn show(games: &Games, seeds: usize, findings: &mut Findings) {
    let title = format!("A game beside a build of 32 compilers on ryzen-5800x, {seeds} seeds");
    let columns = [
        "policy",
        "frames a second",
        "lowest of a seed",
        "audio missed, of 1000",
        "audio waits for a CPU, us",
        "switches of the build a second",
        "build's share of all CPUs",
    ];
    let mut table = Table::new(title, columns);
    let mut bars = Vec::new();
    for (kind, policy) in POLICIES.into_iter().enumerate() {
        let frames = games.of(policy, |game| game.frames_a_second);
        let mean = |what: fn(&Game) -> f64| games.mean(policy, what);
        table.row([
            policy.into(),
            lab::mean(&frames).into(),
            frames.iter().copied().fold(f64::MAX, f64::min).into(),
            mean(|game| game.audio_misses).into(),
            mean(|game| game.audio_waits).into(),
            mean(|game| game.switches_a_second).into(),
            Cell::Number(mean(|game| game.build_share)),
        ]);
        bars.push(PlotBar {
            name: policy.to_owned(),
            value: lab::mean(&frames),
            kind,
        });
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "frames",
        title: "A game beside `make -j32`: frames a second".into(),
        picture: PlotShape::Bars {
            unit: "frames a second",
            bars,
        },
    });
}

/// How long a compiler runs at a time in a build that is larger still, before the change.
fn crowded(scenario: &Scenario, seeds: &[u64]) -> Result<f64, Failure> {
    let mut crowd = scenario.clone();
    let compilers = crowd.threads.iter_mut().find(|thread| thread.name == "cc");
    compilers
        .ok_or_else(|| Failure::failed("the build has compilers"))?
        .count = CROWD;
    let crowds = lab::each("crowds", seeds, |&seed| {
        lab::run(&crowd, "rustland-pre333", seed).map(|ran| Game::of(&ran).build_stint)
    })?;
    Ok(lab::mean(&crowds))
}

/// How many compilers a build has that is larger still.
const CROWD: usize = 64;

/// The measurements that claims about the game need; pairs are before and after.
struct GameMeasures {
    waits: (f64, f64),
    /// With 32 compilers, and with [`CROWD`].
    stints: (f64, f64),
    ideal_gain: f64,
    merged_gain: f64,
    misses: (f64, f64),
    switches: (f64, f64),
}

fn claims(measured: &GameMeasures) -> Vec<Claim> {
    vec![
        Claim::source(
            "004-i",
            "A game beside a build has 10 to 20 % more frames a second (the largest of six: 87.5 %)",
            "Experimental results; the idealised rule",
        )
        .is(Expect::Between(10.0, 87.5), measured.ideal_gain, "% more frames a second")
        .note("the virtual slice against the uniform one, both idealised; means over seeds"),
        Claim::source(
            "004-j",
            "… and with the code that was merged",
            "Experimental results; the code before and after",
        )
        .is(Expect::AtLeast(10.0), measured.merged_gain, "% more frames a second")
        .or_else("no gain of scheduling in our model, whose build and game are chosen")
        .note("scx_rustland before and with the change; means over seeds"),
        Claim::source(
            "004-k",
            "The six games' own frames a second (40 to 48, 8 to 15, 41 to 46, 98 to 108, 81 to 92, 32 to \
             42)",
            "Experimental results, table",
        )
        .beyond(
            "they depend on the games, a graphics card, its driver and the disk of a build; only the \
             direction is a scheduler's",
        ),
        Claim::source(
            "004-l",
            "No audio is missed with the change, even where the system is overloaded",
            "Experimental results, last paragraph",
        )
        .is(Expect::Exactly(0.0), measured.misses.1, "missed of 1000 periods")
        .or_else("in our model the audio is late about as often as before")
        .note(format!("before the change: {:.2} of 1000", measured.misses.0)),
        Claim::source(
            "004-m",
            "There are fewer switches of those that compute",
            "Virtual time slice, next to last paragraph; the code before and after",
        )
        .is(
            Expect::LessThan(measured.switches.0),
            measured.switches.1,
            "switches of the build a second",
        )
        .or_else("slices decay to their floor where many compute"),
        Claim::source(
            "004-n",
            "Before the change, the more overloaded the system, the shorter the slices",
            "Overview, first paragraph",
        )
        .is(
            Expect::LessThan(measured.stints.0),
            measured.stints.1,
            "us, a compiler at a time",
        )
        .note(format!("{CROWD} compilers against 32")),
        Claim::source(
            "004-o",
            "With the change tasks that need little are processed sooner",
            "Virtual time slice; Example, last paragraph",
        )
        .is(
            Expect::LessThan(measured.waits.0),
            measured.waits.1,
            "us, the audio's wait for a CPU",
        )
        .or_else("in our model short tasks wait about as long as before"),
    ]
}
