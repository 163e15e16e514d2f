//! A game whose threads say what they wait for, beside a build.

use console::Failure;
use measure::Times;
use sim::scenario::Ran;

use super::Setup;
use crate::commands::experiment::claim::short;
use crate::commands::experiment::findings::Table;
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::virtual_slice::game_and_build;

/// A game beside a build.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToldGame {
    pub(super) frames_a_second: f64,
    /// In ms.
    pub(super) frame_p99: f64,
    /// Of all CPUs.
    pub(super) build_share: f64,
    /// Jain's index of the compilers' CPU times: 1 if all had the same.
    pub(super) fairness: f64,
}

impl ToldGame {
    fn of(ran: &Ran) -> ToldGame {
        let frames: Vec<u64> = lab::spans(ran, "frame").map(|frame| frame.0).collect();
        let threads = ran.report.threads.iter();
        let build: Vec<f64> = threads
            .filter(|thread| thread.name.starts_with("cc"))
            .map(|thread| thread.spent.run.0 as f64)
            .collect();
        let cpus = ran.report.config.machine.cpus.len() as f64;
        let sum: f64 = build.iter().sum();
        let squares: f64 = build.iter().map(|time| time * time).sum();
        ToldGame {
            frames_a_second: frames.len() as f64 / ran.report.now.as_secs_f64(),
            frame_p99: Times::of(&frames).p99 as f64 / 1e6,
            build_share: sum / (ran.report.now.0 as f64 * cpus),
            fairness: sum * sum / (squares * build.len() as f64),
        }
    }
}

/// A game with so many frames a second misses none, or less than one of a hundred.
const ALL_BUT_A_FEW: f64 = 0.99 * 60.0;

const MACHINES: [&str; 4] = ["ryzen-5800x", "core-i9-12900k", "galaxy-s22-exynos", "vm-2"];

/// The means over seeds of each machine and setup.
pub(super) struct ToldGames(Vec<(&'static str, Setup, ToldGame)>);

impl ToldGames {
    pub(super) fn run(effort: &Effort) -> Result<ToldGames, Failure> {
        let scenario = game_and_build(effort);
        let seeds: Vec<u64> = effort.seeds(2, effort.some(10)).collect();
        let kinds: Vec<(&str, Setup)> = MACHINES
            .iter()
            .flat_map(|&machine| Setup::ALL.map(|setup| (machine, setup)))
            .collect();
        let of_kind = |&kind| seeds.iter().map(move |&seed| (kind, seed));
        let all: Vec<_> = kinds.iter().flat_map(of_kind).collect();
        let games = lab::each("games", &all, |&((machine, setup), seed)| {
            let scenario = setup.applied(&scenario);
            let machine = super::machine(machine, effort);
            let ran = lab::run_on(&scenario, machine, setup.policy, seed, false, |_| ())?;
            Ok(ToldGame::of(&ran))
        })?;
        let means = games.chunks(seeds.len()).map(|games| {
            let mean = |what: fn(&ToldGame) -> f64| {
                let all: Vec<f64> = games.iter().map(what).collect();
                lab::mean(&all)
            };
            ToldGame {
                frames_a_second: mean(|game| game.frames_a_second),
                frame_p99: mean(|game| game.frame_p99),
                build_share: mean(|game| game.build_share),
                fairness: mean(|game| game.fairness),
            }
        });
        let of = |((machine, setup), game)| (machine, setup, game);
        Ok(ToldGames(kinds.into_iter().zip(means).map(of).collect()))
    }

    pub(super) fn table(&self) -> Table {
        let columns = [
            "machine",
            "policy",
            "said",
            "frames a second",
            "p99 of a frame, ms",
            "build's share of all CPUs",
            "fairness among compilers",
        ];
        let title =
            "A game at 60 Hz beside a build of 32 compilers; its threads state their waits or not";
        let mut table = Table::new(title, columns);
        for (machine, setup, game) in &self.0 {
            table.row([
                (*machine).into(),
                setup.policy.into(),
                setup.said().into(),
                game.frames_a_second.into(),
                game.frame_p99.into(),
                game.build_share.into(),
                game.fairness.into(),
            ]);
        }
        table
    }

    fn of(&self, machine: &str, setup: Setup) -> Option<&ToldGame> {
        let mut all = self.0.iter();
        let found = all.find(|(its, other, _)| (*its, *other) == (machine, setup));
        found.map(|(_, _, game)| game)
    }

    /// A measure's ratio under two setups.
    fn ratio(&self, machine: &str, of: Setup, to: Setup, what: fn(&ToldGame) -> f64) -> f64 {
        let value = |setup| self.of(machine, setup).map_or(f64::NAN, what);
        value(of) / value(to)
    }

    /// The least ratio of a measure under two setups, over the machines.
    pub(super) fn least(&self, of: Setup, to: Setup, what: fn(&ToldGame) -> f64) -> f64 {
        let ratios = MACHINES.map(|machine| self.ratio(machine, of, to, what));
        ratios.into_iter().fold(f64::MAX, f64::min)
    }

    /// Whether the game misses frames there. It can have no more than all.
    fn misses(&self, machine: &str, setup: Setup) -> bool {
        let game = self.of(machine, setup);
        game.is_some_and(|game| game.frames_a_second < ALL_BUT_A_FEW)
    }

    /// The least ratio of frames under two setups, over the machines on which the second misses some; no
    /// number if there is none.
    pub(super) fn least_gain(&self, of: Setup, to: Setup) -> f64 {
        let machines = MACHINES.iter();
        let ratios = machines
            .filter(|machine| self.misses(machine, to))
            .map(|machine| self.ratio(machine, of, to, |game| game.frames_a_second));
        ratios.fold(f64::NAN, f64::min)
    }

    /// The frames under both setups on the other machines.
    pub(super) fn without_loss(&self, of: Setup, to: Setup) -> String {
        let frames = |machine, setup| {
            let game = self.of(machine, setup);
            short(game.map_or(f64::NAN, |game| game.frames_a_second))
        };
        let machines = MACHINES.iter();
        let others: Vec<String> = machines
            .filter(|machine| !self.misses(machine, to))
            .map(|&machine| {
                let (with, without) = (frames(machine, of), frames(machine, to));
                format!("{machine} ({with} a second with, {without} without)")
            })
            .collect();
        if others.is_empty() {
            return "it misses some on all four machines".to_owned();
        }
        format!("it misses none on {}", others.join(" and "))
    }
}
