//! Source 004: a scheduler that gives each task the slice that it has promised to need.

use event::Nanos;
use sim::scenario::{Ran, Scenario};

use super::Experiment;
use super::claim::{Claim, Expect};
use super::findings::{Cell, Findings, Table};
use super::lab::{self, Effort, Run};
use super::plot::{Bar, Lane, Picture, Piece, Plot};
use crate::failure::Failure;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "virtual-slice",
    source: "source 004: scx_rustland, \"introduce virtual time slice\" (A. Righi, pull request 333, 2024)",
    question: "Does a slice made of what a task promises save switches, and frames?",
    setup: "The worked example of four tasks (A 1 unit, twice; B 3; C 6; D 6) on one CPU on which nothing \
    but work \
            takes time, under the rule as the article draws it, the uniform slice it is compared with, and \
            the code \
            of scx_rustland before the change, with it, and a day later with its limit. Then a game with \
            60 frames a \
            second and its audio beside a build of 32 compilers, on the author's 8 cores with 16 threads, \
            over seeds; \
            the lengths of the game's and the build's work are chosen, since the article has none. A frame \
            counts \
            when it is done, a period of the audio is missed when it is not over 5 ms after it began.",
    machine: "ideal-1, ryzen-5800x",
    policy: "uniform-slice, virtual-slice, rustland-pre333, rustland-333, rustland-333-capped",
    learnt: &[
        "Both printed schedules and their counts, 9 and 7, are right, to the letter, for an idealised \
         rule: bursts \
         in which each task's slice is its distance from the one before.",
        "The merged code is not that rule: it makes slices of what tasks have used, and two that compute \
         without end \
         wear each other's slices down to the floor. On the article's own example it switches more often \
         than the \
         code that it replaced.",
        "What the change does for a game shows under the idealised rule; under the merged code our model \
         has no gain \
         to show. The table of six games cannot be had from scheduling alone.",
    ],
    run,
};

/// What the article prints.
const UNIFORM: &str = "A B B C C D D A B C C D D C C D D";
const VIRTUAL: &str = "A B B C C C D A B C C C D D D D D";

const EXAMPLE: [&str; 5] = [
    "uniform-slice",
    "virtual-slice",
    "rustland-pre333",
    "rustland-333",
    "rustland-333-capped",
];

fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    if !effort.simulated {
        findings.notes.push(
            "There is nothing to run on this machine: the policies are a kernel's, and sched_ext programs \
             of their \
             own."
                .into(),
        );
        return Ok(());
    }
    example(effort, findings)?;
    game(effort, findings)
}

/// What one policy makes of the worked example.
struct Schedule {
    policy: &'static str,
    runs: Vec<Run>,
    /// As the article prints it, if every run is of whole units; else a letter for each run.
    printed: String,
    makespan: Nanos,
}

/// The article's unit, in the scenario.
const UNIT: Nanos = Nanos::from_millis(1);
const NAMES: [&str; 4] = ["A", "B", "C", "D"];

impl Schedule {
    fn of(policy: &'static str, ran: &Ran) -> Schedule {
        let mut runs: Vec<Run> = Vec::new();
        for run in lab::runs(&ran.report) {
            match runs.last_mut() {
                // The same task goes on: no boundary.
                Some(last) if last.task == run.task => last.end = run.end,
                _ => runs.push(run),
            }
        }
        Schedule {
            policy,
            printed: printed(&runs),
            runs,
            makespan: ran.report.now,
        }
    }

    /// Boundaries between runs, as the article counts.
    fn switches(&self) -> f64 {
        self.runs.len() as f64 - 1.0
    }

    fn longest(&self) -> Nanos {
        self.runs.iter().map(Run::length).max().unwrap_or_default()
    }
}

fn printed(runs: &[Run]) -> String {
    let is_whole = runs.iter().all(|run| run.length().0 % UNIT.0 == 0);
    let letters = runs.iter().flat_map(|run| {
        let units = if is_whole { run.length().0 / UNIT.0 } else { 1 };
        std::iter::repeat_n(NAMES[run.task as usize], units as usize)
    });
    let letters: Vec<&str> = letters.collect();
    letters.join(" ")
}

/// So much of it as fits a table.
fn shortened(printed: &str) -> String {
    const LETTERS: usize = 20;
    let letters: Vec<&str> = printed.split(' ').collect();
    match letters.len() > LETTERS {
        true => format!("{} …", letters[..LETTERS].join(" ")),
        false => printed.to_owned(),
    }
}

/// How many letters stand where the other text has them.
fn equal_letters(a: &str, b: &str) -> f64 {
    let equal = a.split(' ').zip(b.split(' ')).filter(|(a, b)| a == b);
    equal.count() as f64
}

fn example(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let scenario = lab::scenario("virtual-slice-example");
    let schedules = lab::each("schedules", &EXAMPLE, |policy| {
        let ran = lab::run(&scenario, policy, effort.seed)?;
        Ok(Schedule::of(policy, &ran))
    })?;
    let columns = [
        "policy",
        "schedule",
        "switches",
        "longest run",
        "all done at",
    ];
    let mut table = Table::new("The worked example on ideal-1", columns);
    for schedule in &schedules {
        table.row([
            schedule.policy.into(),
            shortened(&schedule.printed).into(),
            schedule.switches().into(),
            schedule.longest().into(),
            schedule.makespan.into(),
        ]);
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "schedules",
        title: "Tasks of 1, 3, 6 and 6 units: who runs when".into(),
        picture: Picture::Lanes {
            unit: "ms",
            lanes: schedules.iter().map(lane).collect(),
        },
    });
    let [uniform, ideal, before, merged, capped] = schedules.as_slice() else {
        return Err(Failure::failed("five policies were run"));
    };
    findings
        .claims
        .extend(example_claims([uniform, ideal, before, merged, capped]));
    Ok(())
}

fn lane(schedule: &Schedule) -> Lane {
    let millis = |time: Nanos| time.0 as f64 / 1e6;
    let piece = |run: &Run| Piece {
        begin: millis(run.begin),
        end: millis(run.end),
        name: NAMES[run.task as usize].to_owned(),
        kind: run.task as usize,
    };
    Lane {
        name: schedule.policy.to_owned(),
        pieces: schedule.runs.iter().map(piece).collect(),
        result: format!("{} switches", schedule.switches()),
    }
}

fn example_claims([uniform, ideal, before, merged, capped]: [&Schedule; 5]) -> Vec<Claim> {
    let letters = |printed: &str| printed.split(' ').count() as f64;
    let sequence = |claim: Claim, schedule: &Schedule, source: &str| {
        let equal = equal_letters(&schedule.printed, source);
        let length = (letters(&schedule.printed) - letters(source)).abs();
        claim.is(
            Expect::Exactly(letters(source)),
            equal - length,
            "equal letters",
        )
    };
    vec![
        Claim::source("004-a", "A uniform slice of 2 units makes 9 switches", "example, first diagram")
            .is(Expect::Exactly(9.0), uniform.switches(), "switches")
            .note("boundaries between runs, as the article counts; without the first run's begin"),
        sequence(
            Claim::source("004-b", "… and this order: A BB CC DD A B CC DD CC DD", "example, first diagram"),
            uniform,
            UNIFORM,
        ),
        Claim::source("004-c", "The virtual slice makes 7 switches", "example, second diagram")
            .is(Expect::Exactly(7.0), ideal.switches(), "switches")
            .note("by the idealised rule: bursts, and slices of what tasks promise"),
        sequence(
            Claim::source("004-d", "… and this order: A BB CCC D A B CCC DDDDD", "example, second diagram"),
            ideal,
            VIRTUAL,
        ),
        Claim::source(
            "004-e",
            "With the change there are fewer switches in this example than before it",
            "example, both diagrams; the code as merged",
        )
        .is(Expect::LessThan(before.switches()), merged.switches(), "switches")
        .or_else("the merged code takes the time that tasks have used for their promise, not the table's")
        .note("scx_rustland before and with the change, its constants at 1 ms a unit"),
        Claim::source(
            "004-f",
            "Tasks that compute much get longer slices, and their time is packed together",
            "Virtual time slice, last paragraph; the code as merged",
        )
        .is(
            Expect::MoreThan(before.longest().0 as f64 / 1e6),
            merged.longest().0 as f64 / 1e6,
            "ms, longest run of a task",
        )
        .or_else("two tasks that compute wear each other's slices down: the next is the difference of the \
        last two")
        .note("before the change against with it"),
        Claim::ours("004-g", "The limit of a day later changes nothing in the example: no slice reaches \
        it").is(
            Expect::Exactly(merged.switches()),
            capped.switches(),
            "switches",
        ),
        Claim::source("004-h", "The table says that A takes 1 unit of time", "example, table")
            .is(Expect::Exactly(1.0), units_of(ideal, 0), "units of A")
            .or_else("both printed schedules run A twice: its time is per activation, 17 units in all and \
            not 16"),
    ]
}

fn units_of(schedule: &Schedule, task: u32) -> f64 {
    let of = schedule.runs.iter().filter(|run| run.task == task);
    of.map(|run| run.length().0 as f64 / UNIT.0 as f64).sum()
}

/// What a game got under one policy.
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

fn game(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    const POLICIES: [&str; 6] = [
        "uniform-slice",
        "virtual-slice",
        "rustland-pre333",
        "rustland-333",
        "rustland-333-capped",
        "eevdf-6.6",
    ];
    let mut scenario = lab::scenario("game-and-build");
    scenario.until = Some(Nanos::from_millis(effort.of(1_000, 5_000)));
    let seeds: Vec<u64> = effort.seeds(3, 20).collect();
    let all = POLICIES
        .iter()
        .flat_map(|policy| seeds.iter().map(move |&seed| (*policy, seed)));
    let all: Vec<(&str, u64)> = all.collect();
    let games = lab::each("games", &all, |&(policy, seed)| {
        lab::run(&scenario, policy, seed).map(|ran| Game::of(&ran))
    })?;
    let of = |policy: &str, what: fn(&Game) -> f64| -> Vec<f64> {
        let pairs = all
            .iter()
            .zip(&games)
            .filter(|((ran, _), _)| *ran == policy);
        pairs.map(|(_, game)| what(game)).collect()
    };
    let mean = |policy: &str, what: fn(&Game) -> f64| lab::mean(&of(policy, what));
    let title = format!(
        "A game beside a build of 32 compilers on ryzen-5800x, {} seeds",
        seeds.len()
    );
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
        let frames = of(policy, |game| game.frames_a_second);
        table.row([
            policy.into(),
            lab::mean(&frames).into(),
            frames.iter().copied().fold(f64::MAX, f64::min).into(),
            mean(policy, |game| game.audio_misses).into(),
            mean(policy, |game| game.audio_waits).into(),
            mean(policy, |game| game.switches_a_second).into(),
            Cell::Number(mean(policy, |game| game.build_share)),
        ]);
        bars.push(Bar {
            name: policy.to_owned(),
            value: lab::mean(&frames),
            kind,
        });
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "frames",
        title: "A game beside `make -j32`: frames a second".into(),
        picture: Picture::Bars {
            unit: "frames a second",
            bars,
        },
    });
    let gain = |before: &str, after: &str| {
        let frames = |policy| mean(policy, |game| game.frames_a_second);
        (frames(after) / frames(before) - 1.0) * 100.0
    };
    let misses = |policy| mean(policy, |game| game.audio_misses);
    let switches = |policy| mean(policy, |game| game.switches_a_second);
    let waits = |policy| mean(policy, |game| game.audio_waits);
    let crowd = crowded(&scenario, &seeds)?;
    findings.claims.extend(game_claims(&Measured {
        waits: (waits("rustland-pre333"), waits("rustland-333")),
        stints: (mean("rustland-pre333", |game| game.build_stint), crowd),
        ideal_gain: gain("uniform-slice", "virtual-slice"),
        merged_gain: gain("rustland-pre333", "rustland-333"),
        misses: (misses("rustland-pre333"), misses("rustland-333")),
        switches: (switches("rustland-pre333"), switches("rustland-333")),
    }));
    Ok(())
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

/// What claims about the game are measured by; pairs are before and after.
struct Measured {
    waits: (f64, f64),
    /// With 32 compilers, and with [`CROWD`].
    stints: (f64, f64),
    ideal_gain: f64,
    merged_gain: f64,
    misses: (f64, f64),
    switches: (f64, f64),
}

fn game_claims(measured: &Measured) -> Vec<Claim> {
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
            "The six games' own frames a second (40 to 48, 8 to 15, 41 to 46, 98 to 108, 81 to 92, 32 to 42)",
            "Experimental results, table",
        )
        .beyond(
            "they depend on the games, a graphics card, its driver and the disk of a build; only the \
             direction is \
             a scheduler's",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: schedules are printed as the article prints them where runs are whole units, and by runs where
    /// they are not. Method: both.
    #[test]
    fn schedules_are_printed_as_in_the_article() {
        let run = |task, begin, end| Run {
            task,
            cpu: 0,
            begin: Nanos(begin),
            end: Nanos(end),
        };
        let whole = [run(0, 0, 1_000_000), run(1, 1_000_000, 3_000_000)];
        assert_eq!(printed(&whole), "A B B");
        let parts = [run(0, 0, 250_000), run(1, 250_000, 2_250_000)];
        assert_eq!(printed(&parts), "A B");
        assert_eq!(equal_letters("A B C", "A C C D"), 2.0);
    }
}
