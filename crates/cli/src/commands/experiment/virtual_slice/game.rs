//! A game beside a build: frames, audio and switches, over seeds.

mod claims;
mod tables;

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use policy::Decisions;
use sim::scenario::{Phase, Ran, Scenario};

use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::Findings;
use crate::commands::experiment::lab::{self, Effort};

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
    /// What the process decided on, if one decides.
    decided: Option<Decided>,
}

/// What a process decided on: means over all tasks that it dispatched.
#[derive(Clone, Copy)]
struct Decided {
    /// The tasks that it had in hand.
    in_hand: f64,
    /// The tasks that had no CPU, wherever they waited.
    waiting: f64,
    /// The slice that it gave, in microseconds.
    slice: f64,
}

impl Decided {
    fn of(decisions: Decisions) -> Option<Decided> {
        let each = |sum: u64| sum as f64 / decisions.dispatched as f64;
        (decisions.dispatched > 0).then(|| Decided {
            in_hand: each(decisions.in_hand),
            waiting: each(decisions.waiting),
            slice: each(decisions.slices.0) / 1e3,
        })
    }
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
            decided: ran.report.decisions.and_then(Decided::of),
        }
    }

    /// The slice that a process gave, in microseconds; of a policy without one there is none.
    fn slice(&self) -> f64 {
        self.decided.map_or(f64::NAN, |decided| decided.slice)
    }
}

/// When the period is over in which this is.
fn next_period(begin: Nanos) -> Nanos {
    Nanos((begin.0 / AUDIO.0 + 1) * AUDIO.0)
}

const POLICIES: [&str; 8] = [
    "uniform-slice",
    "uniform-slice-least",
    "virtual-slice",
    "rustland-pre333",
    "rustland-pre333-all",
    "rustland-333",
    "rustland-333-capped",
    "eevdf-6.6",
];
/// The code before the change: its slices shrink with the number of tasks that wait for a decision.
pub(super) const BEFORE: &str = "rustland-pre333";
/// The same as the article's text has it: they shrink with the number of all tasks that wait for a CPU.
pub(super) const BEFORE_ALL: &str = "rustland-pre333-all";
/// The code before the change, and its slices do not shrink: they are its base slice.
pub(super) const UNSHRUNK: &str = "rustland-pre333-5000";
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

    fn crowded(policy: &'static str, tick: Option<Nanos>) -> Setting {
        Setting {
            is_crowded: true,
            ..Setting::ticking(policy, tick)
        }
    }

    /// All that are run.
    fn all() -> Vec<Setting> {
        let mut all: Vec<Setting> = POLICIES.into_iter().map(Setting::of).collect();
        all.extend(POLICIES[..3].iter().copied().map(Setting::promised));
        for tick in TICKS {
            let each = [BEFORE, BEFORE_ALL, MERGED].map(|policy| Setting::ticking(policy, tick));
            all.extend(each.into_iter().filter(|_| tick.is_some()));
            all.extend([BEFORE, BEFORE_ALL].map(|policy| Setting::crowded(policy, tick)));
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

    /// What the process decided on, in every game with the setting.
    fn decided(&self, setting: Setting) -> Vec<Decided> {
        let games = self.0.iter().filter(|(ran, _)| *ran == setting);
        games.filter_map(|(_, game)| game.decided).collect()
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
    tables::show(&games, seeds.len(), findings);
    tables::show_ticks(&games, findings);
    tables::show_decisions(&games, &CROWD.words(effort.value(&CROWD)), findings);
    findings.claims.extend(claims::all(&games, effort));
    Ok(())
}

pub(super) fn tick_of(tick: Option<Nanos>) -> Nanos {
    tick.unwrap_or_else(|| lab::machine("ryzen-5800x").kernel.tick)
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

/// The same, and with the other number that slices may shrink with before the change.
pub(super) fn by_rule_and_tick(
    claim: Claim,
    unit: &'static str,
    measured: impl Fn(&'static str, Option<Nanos>) -> (Expect, f64),
) -> Claim {
    const ALL: &str = "all tasks without a CPU";
    let claim = by_tick(claim, unit, |tick| measured(BEFORE, tick));
    TICKS.into_iter().fold(claim, |claim, tick| {
        let (expected, got) = measured(BEFORE_ALL, tick);
        match tick {
            None => claim.varied("slices shrink with", ALL, expected, got),
            Some(tick) => {
                let setting = format!("{ALL}, {tick}");
                claim.varied("slices shrink with, and tick", setting, expected, got)
            }
        }
    })
}
