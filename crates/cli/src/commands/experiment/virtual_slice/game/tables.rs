//! The tables and the picture of a game beside a build.

use super::{BEFORE, BEFORE_ALL, Decided, Game, Games, MERGED, POLICIES, Setting, TICKS, tick_of};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab;
use crate::commands::experiment::plot::{Plot, PlotBar, PlotShape};

/// The table and the picture of all policies.
pub(super) fn show(games: &Games, seeds: usize, findings: &mut Findings) {
    let title = format!("A game beside a build of 32 compilers on ryzen-5800x, {seeds} seeds");
    let columns = [
        "policy",
        "frames a second",
        "standard error",
        "lowest of a seed",
        "audio missed, of 1000",
        "audio waits for a CPU, µs",
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
pub(super) fn show_ticks(games: &Games, findings: &mut Findings) {
    let columns = [
        "policy",
        "time between ticks",
        "frames a second",
        "standard error",
        "audio missed, of 1000",
        "audio waits for a CPU, µs",
        "a compiler runs at a time, µs",
    ];
    let mut table = Table::new(
        "The code before the change and with it, by the kernel's tick",
        columns,
    );
    for policy in [BEFORE, BEFORE_ALL, MERGED] {
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

/// What a process saw when it gave a slice, and what it gave.
pub(super) fn show_decisions(games: &Games, crowd: &str, findings: &mut Findings) {
    let columns = [
        "policy",
        "time between ticks",
        "build",
        "tasks that wait for a decision",
        "tasks without a CPU",
        "slice given, µs",
        "a compiler runs at a time, µs",
    ];
    let title = "What the process sees when it gives a slice, that task included; and the slice";
    let mut table = Table::new(title, columns);
    for policy in [BEFORE, BEFORE_ALL, MERGED] {
        for tick in TICKS {
            let both = [
                ("32 compilers", Setting::ticking(policy, tick)),
                (crowd, Setting::crowded(policy, tick)),
            ];
            for (build, setting) in both {
                let decided = games.decided(setting);
                if decided.is_empty() {
                    continue;
                }
                let mean = |what: fn(&Decided) -> f64| {
                    lab::mean(&decided.iter().map(what).collect::<Vec<f64>>())
                };
                table.row([
                    policy.into(),
                    tick_of(tick).into(),
                    build.into(),
                    mean(|decided| decided.in_hand).into(),
                    mean(|decided| decided.waiting).into(),
                    mean(|decided| decided.slice).into(),
                    games.mean(setting, |game| game.build_stint).into(),
                ]);
            }
        }
    }
    findings.tables.push(table);
}
