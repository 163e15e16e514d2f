//! A game beside a build: frames, audio and switches, over seeds.

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use sim::scenario::{Phase, Ran, Scenario};

use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect, short};
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

const POLICIES: [&str; 7] = [
    "uniform-slice",
    "uniform-slice-least",
    "virtual-slice",
    "rustland-pre333",
    "rustland-333",
    "rustland-333-capped",
    "eevdf-6.6",
];
pub(super) const BEFORE: &str = "rustland-pre333";
pub(super) const MERGED: &str = "rustland-333";

/// What was only chosen here. The tick, the promises and the uniform slice are varied in every run.
pub(super) const VALUES: &[&ChosenValue] = &[&LEAST, &GAME_WORK, &BURST, &CROWD];

const LEAST: ChosenValue = ChosenValue {
    name: "least-slice",
    about: "the least slice of the idealised rule, and half of the uniform slice it is compared with",
    unit: ValueUnit::Millis,
    chosen: 1.0,
    others: &[0.5, 2.0],
    why: "a unit of the worked example",
};
pub(in crate::commands::experiment) const GAME_WORK: ChosenValue = ChosenValue {
    name: "game-work",
    about: "the work of a frame",
    unit: ValueUnit::Of("% of 6 to 11 ms"),
    chosen: 100.0,
    others: &[50.0, 75.0, 125.0],
    why: "60 frames a second are in reach, as in some of the article's games",
};
const BURST: ChosenValue = ChosenValue {
    name: "compiler-burst",
    about: "how long a compiler computes before it waits for its disk",
    unit: ValueUnit::Of("% of 20 to 80 ms"),
    chosen: 100.0,
    others: &[50.0, 400.0],
    why: "a compiler is bound by its computation",
};
const CROWD: ChosenValue = ChosenValue {
    name: "crowd",
    about: "the compilers of a build that overloads the system still more",
    unit: ValueUnit::Of("compilers"),
    chosen: 64.0,
    others: &[48.0, 128.0],
    why: "twice the article's 32",
};

/// The time between two ticks, by which the kernel sees that a slice is over: the machine's, that of a kernel
/// for desktops, and one at which slices end about where they should.
pub(super) const TICKS: [Option<Nanos>; 3] = [
    None,
    Some(Nanos::from_millis(1)),
    Some(Nanos::from_micros(100)),
];

/// How much each thread promises to use, where threads promise: the most that it does at a time; and a
/// compiler, which does far more, rustland's slice.
const PROMISES: [(&str, Nanos); 4] = [
    ("game main", Nanos::from_millis(5)),
    ("game render", Nanos::from_millis(4)),
    ("audio", Nanos::from_micros(400)),
    ("cc", Nanos::from_millis(5)),
];

/// The setting of a run: a policy, and the values that the article does not give.
#[derive(Clone, Copy, PartialEq)]
struct Setting {
    policy: &'static str,
    tick: Option<Nanos>,
    is_promised: bool,
    /// More compilers than the scenario has.
    is_crowded: bool,
}

impl Setting {
    fn of(policy: &'static str) -> Setting {
        Setting {
            policy,
            tick: None,
            is_promised: false,
            is_crowded: false,
        }
    }

    fn promised(policy: &'static str) -> Setting {
        Setting {
            is_promised: true,
            ..Setting::of(policy)
        }
    }

    fn ticking(policy: &'static str, tick: Option<Nanos>) -> Setting {
        Setting {
            tick,
            ..Setting::of(policy)
        }
    }

    fn crowded(tick: Option<Nanos>) -> Setting {
        Setting {
            is_crowded: true,
            ..Setting::ticking(BEFORE, tick)
        }
    }

    /// All that are run.
    fn all() -> Vec<Setting> {
        let mut all: Vec<Setting> = POLICIES.into_iter().map(Setting::of).collect();
        all.extend(POLICIES[..3].iter().copied().map(Setting::promised));
        for tick in TICKS {
            let both = [BEFORE, MERGED].map(|policy| Setting::ticking(policy, tick));
            all.extend(both.into_iter().filter(|_| tick.is_some()));
            all.push(Setting::crowded(tick));
        }
        all
    }

    fn run(self, scenario: &Scenario, effort: &Effort, seed: u64) -> Result<Game, Failure> {
        let mut scenario = scenario.clone();
        for thread in &mut scenario.threads {
            let promise = PROMISES.iter().find(|(name, _)| *name == thread.name);
            if let Some((_, promise)) = promise.filter(|_| self.is_promised) {
                thread.slice = Some(*promise);
            }
            if self.is_crowded && thread.name == "cc" {
                thread.count = effort.value(&CROWD) as _;
            }
        }
        let mut machine = lab::machine(&scenario.machine);
        if let Some(tick) = self.tick {
            Arc::make_mut(&mut machine).kernel.tick = tick;
        }
        let policy = self.policy_with(effort.time(&LEAST));
        let ran = lab::run_on(&scenario, machine, &policy, seed, true, |_| ())?;
        Ok(Game::of(&ran))
    }
}

impl Setting {
    /// Its policy, with this least slice if it is an idealised one.
    fn policy_with(self, least: Nanos) -> String {
        let micros = least.0 / 1_000;
        match self.policy {
            "virtual-slice" => format!("virtual-slice-{micros}"),
            "uniform-slice-least" => format!("uniform-slice-{micros}"),
            "uniform-slice" => format!("uniform-slice-{}", 2 * micros),
            other => other.to_owned(),
        }
    }
}

/// The scene, with the chosen lengths of work.
pub(in crate::commands::experiment) fn game_and_build(effort: &Effort) -> Scenario {
    let mut scenario = lab::scenario("game-and-build");
    scenario.until = Some(Nanos::from_millis(effort.of(1_000, 5_000)));
    for thread in &mut scenario.threads {
        let percent = match thread.name.as_str() {
            "game main" | "game render" => effort.value(&GAME_WORK),
            "cc" => effort.value(&BURST),
            _ => 100.0,
        };
        let scaled = |time: Nanos| Nanos((time.0 as f64 * percent / 100.0) as u64);
        for phase in &mut thread.phases {
            if let Phase::Work(span) = phase {
                (span.least, span.most) = (scaled(span.least), scaled(span.most));
            }
        }
    }
    scenario
}

/// Each game that was run, with its setting.
struct Games(Vec<(Setting, Game)>);

impl Games {
    fn run(effort: &Effort, seeds: &[u64]) -> Result<Games, Failure> {
        let scenario = game_and_build(effort);
        let all = Setting::all();
        let all = all
            .iter()
            .flat_map(|setting| seeds.iter().map(move |&seed| (*setting, seed)));
        let all: Vec<(Setting, u64)> = all.collect();
        let games = lab::each("games", &all, |&(setting, seed)| {
            setting.run(&scenario, effort, seed)
        })?;
        let settings = all.iter().map(|(setting, _)| *setting);
        Ok(Games(settings.zip(games).collect()))
    }

    /// This of every game with the setting.
    fn of(&self, setting: Setting, what: fn(&Game) -> f64) -> Vec<f64> {
        let games = self.0.iter().filter(|(ran, _)| *ran == setting);
        games.map(|(_, game)| what(game)).collect()
    }

    fn mean(&self, setting: Setting, what: fn(&Game) -> f64) -> f64 {
        lab::mean(&self.of(setting, what))
    }

    /// How many percent more frames a second there are.
    fn gain(&self, before: Setting, after: Setting) -> f64 {
        let frames = |setting| self.mean(setting, |game| game.frames_a_second);
        (frames(after) / frames(before) - 1.0) * 100.0
    }

    /// What this has to be less than with the second setting: by two standard errors of the difference. And
    /// what it is.
    fn less(&self, settings: [Setting; 2], what: fn(&Game) -> f64) -> (Expect, f64) {
        let errors = settings.map(|setting| lab::standard_error(&self.of(setting, what)));
        let error = errors.iter().map(|error| error * error).sum::<f64>().sqrt();
        let [before, after] = settings.map(|setting| self.mean(setting, what));
        (Expect::LessThan(before - 2.0 * error), after)
    }
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let seeds: Vec<u64> = effort.seeds(3, 20).collect();
    let games = Games::run(effort, &seeds)?;
    show(&games, seeds.len(), findings);
    show_ticks(&games, findings);
    findings.claims.extend([
        ideal(&games),
        merged(&games),
        their_frames(),
        no_audio_missed(&games),
        fewer_switches(&games),
        shorter_slices(&games, effort),
        sooner(&games),
    ]);
    Ok(())
}

/// The table and the picture of all policies.
fn show(games: &Games, seeds: usize, findings: &mut Findings) {
    let title = format!("A game beside a build of 32 compilers on ryzen-5800x, {seeds} seeds");
    let columns = [
        "policy",
        "frames a second",
        "standard error",
        "lowest of a seed",
        "audio missed, of 1000",
        "audio waits for a CPU, us",
        "switches of the build a second",
        "build's share of all CPUs",
    ];
    let mut table = Table::new(title, columns);
    let mut bars = Vec::new();
    for (kind, policy) in POLICIES.into_iter().enumerate() {
        let setting = Setting::of(policy);
        let frames = games.of(setting, |game| game.frames_a_second);
        let mean = |what: fn(&Game) -> f64| games.mean(setting, what);
        table.row([
            policy.into(),
            lab::mean(&frames).into(),
            lab::standard_error(&frames).into(),
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

/// The same for the code before and after the change, by tick.
fn show_ticks(games: &Games, findings: &mut Findings) {
    let columns = [
        "policy",
        "time between ticks",
        "frames a second",
        "standard error",
        "audio missed, of 1000",
        "audio waits for a CPU, us",
        "a compiler runs at a time, us",
    ];
    let mut table = Table::new(
        "The code before the change and with it, by the kernel's tick",
        columns,
    );
    for policy in [BEFORE, MERGED] {
        for tick in TICKS {
            let setting = Setting::ticking(policy, tick);
            let frames = games.of(setting, |game| game.frames_a_second);
            let mean = |what: fn(&Game) -> f64| games.mean(setting, what);
            table.row([
                policy.into(),
                tick_of(tick).into(),
                lab::mean(&frames).into(),
                lab::standard_error(&frames).into(),
                mean(|game| game.audio_misses).into(),
                mean(|game| game.audio_waits).into(),
                mean(|game| game.build_stint).into(),
            ]);
        }
    }
    findings.tables.push(table);
}

pub(super) fn tick_of(tick: Option<Nanos>) -> Nanos {
    tick.unwrap_or_else(|| lab::machine("ryzen-5800x").kernel.tick)
}

fn ideal(games: &Games) -> Claim {
    let range = Expect::Between(10.0, 87.5);
    let [uniform, least, virtual_slice] = [0, 1, 2].map(|place| POLICIES[place]);
    let gain = |setting: fn(&'static str) -> Setting, before| {
        games.gain(setting(before), setting(virtual_slice))
    };
    Claim::source(
        "004-i",
        "A game beside a build has 10 to 20 % more frames a second (the largest of six: 87.5 %)",
        "Experimental results; the idealised rule",
    )
    .is(range, gain(Setting::of, least), "% more frames a second")
    .varied("uniform slice", "two least ones, as in the example", range, gain(Setting::of, uniform))
    .varied("promises", "of all, a compiler 5 ms", range, gain(Setting::promised, least))
    .varied("uniform slice and promises", "both", range, gain(Setting::promised, uniform))
    .note(
        "the virtual slice against a uniform one of the least slice that both have; nobody promises \
         anything; decisions are free and slices end exactly; means over seeds",
    )
}

fn merged(games: &Games) -> Claim {
    let claim = Claim::source(
        "004-j",
        "… and with the code that was merged",
        "Experimental results; the code before and after",
    );
    let claim = by_tick(claim, "% more frames a second", |tick| {
        let [before, after] = before_and_after(tick);
        (Expect::AtLeast(10.0), games.gain(before, after))
    });
    claim.note("scx_rustland before and with the change; means over seeds")
}

fn their_frames() -> Claim {
    Claim::source(
        "004-k",
        "The six games' own frames a second (40 to 48, 8 to 15, 41 to 46, 98 to 108, 81 to 92, 32 to 42)",
        "Experimental results, table",
    )
    .beyond(
        "they depend on the games, a graphics card, its driver and the disk of a build; only the direction \
         is a scheduler's",
    )
}

fn no_audio_missed(games: &Games) -> Claim {
    let misses = |setting| games.mean(setting, |game| game.audio_misses);
    let claim = Claim::source(
        "004-l",
        "No audio is missed with the change, even where the system is overloaded",
        "Experimental results, last paragraph",
    );
    let claim = by_tick(claim, "missed of 1000 periods", |tick| {
        (Expect::Exactly(0.0), misses(Setting::ticking(MERGED, tick)))
    });
    let before = TICKS.map(|tick| short(misses(Setting::ticking(BEFORE, tick))));
    claim.note(format!("before the change: {} of 1000", before.join(", ")))
}

fn fewer_switches(games: &Games) -> Claim {
    let claim = Claim::source(
        "004-m",
        "There are fewer switches of those that compute",
        "Virtual time slice, next to last paragraph; the code before and after",
    );
    let claim = by_tick(claim, "switches of the build a second", |tick| {
        games.less(before_and_after(tick), |game| game.switches_a_second)
    });
    claim
        .or_else("slices decay to their floor where many compute")
        .note("less by two standard errors")
}

fn shorter_slices(games: &Games, effort: &Effort) -> Claim {
    let claim = Claim::source(
        "004-n",
        "Before the change, the more overloaded the system, the shorter the slices",
        "Overview, first paragraph",
    );
    let claim = by_tick(claim, "us, a compiler at a time", |tick| {
        let few_and_many = [Setting::ticking(BEFORE, tick), Setting::crowded(tick)];
        games.less(few_and_many, |game| game.build_stint)
    });
    claim.note(format!(
        "{} against 32; less by two standard errors",
        CROWD.words(effort.value(&CROWD))
    ))
}

fn sooner(games: &Games) -> Claim {
    let claim = Claim::source(
        "004-o",
        "With the change tasks that need little are processed sooner",
        "Virtual time slice; Example, last paragraph",
    );
    let claim = by_tick(claim, "us, the audio's wait for a CPU", |tick| {
        games.less(before_and_after(tick), |game| game.audio_waits)
    });
    claim.note("less by two standard errors")
}

fn before_and_after(tick: Option<Nanos>) -> [Setting; 2] {
    [BEFORE, MERGED].map(|policy| Setting::ticking(policy, tick))
}

/// The claim with each tick: what is expected with it, and what was measured.
pub(super) fn by_tick(
    claim: Claim,
    unit: &'static str,
    measured: impl Fn(Option<Nanos>) -> (Expect, f64),
) -> Claim {
    TICKS.into_iter().fold(claim, |claim, tick| {
        let (expected, got) = measured(tick);
        match tick {
            None => claim.is(expected, got, unit),
            Some(time) => claim.varied("tick", time.to_string(), expected, got),
        }
    })
}
