//! What source 004 says of a game beside a build, judged.

use event::Nanos;

use super::{
    BEFORE, CROWD, Game, Games, MERGED, POLICIES, Setting, TICKS, by_rule_and_tick, by_tick,
};
use crate::commands::experiment::claim::{Claim, Expect, short};
use crate::commands::experiment::lab::Effort;

/// All of them.
pub(super) fn all(games: &Games, effort: &Effort) -> [Claim; 8] {
    [
        ideal(games),
        merged(games),
        their_frames(),
        no_audio_missed(games),
        fewer_switches(games),
        shorter_slices(games, effort),
        shorter_turns(games, effort),
        sooner(games),
    ]
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
    let claim = by_rule_and_tick(claim, "% more frames a second", |before, tick| {
        let [before, after] = before_and_after(before, tick);
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
    let claim = by_rule_and_tick(claim, "switches of the build a second", |before, tick| {
        games.less(before_and_after(before, tick), |game| {
            game.switches_a_second
        })
    });
    claim
        .or_else("the merged code gives compilers the shorter slices, as a table below has it")
        .note("less by two standard errors")
}

fn shorter_slices(games: &Games, effort: &Effort) -> Claim {
    let claim = Claim::source(
        "004-n",
        "Before the change, the more overloaded the system, the shorter the slices",
        "Overview, first paragraph",
    );
    let claim = by_rule_and_tick(claim, "µs, a slice that is given", |before, tick| {
        games.less(few_and_many(before, tick), Game::slice)
    });
    claim.note(crowded_against_few(effort))
}

fn shorter_turns(games: &Games, effort: &Effort) -> Claim {
    let claim = Claim::ours(
        "004-u",
        "… and the shorter does a task run at a time: a turn ends at a tick, which may come after the slice",
    );
    let claim = by_rule_and_tick(claim, "µs, a compiler at a time", |before, tick| {
        games.less(few_and_many(before, tick), |game| game.build_stint)
    });
    claim.note(crowded_against_few(effort))
}

fn few_and_many(before: &'static str, tick: Option<Nanos>) -> [Setting; 2] {
    [
        Setting::ticking(before, tick),
        Setting::crowded(before, tick),
    ]
}

fn crowded_against_few(effort: &Effort) -> String {
    format!(
        "{} against 32; less by two standard errors",
        CROWD.words(effort.value(&CROWD))
    )
}

fn sooner(games: &Games) -> Claim {
    let claim = Claim::source(
        "004-o",
        "With the change tasks that need little are processed sooner",
        "Virtual time slice; Example, last paragraph",
    );
    let claim = by_rule_and_tick(claim, "µs, the audio's wait for a CPU", |before, tick| {
        games.less(before_and_after(before, tick), |game| game.audio_waits)
    });
    claim.note("less by two standard errors")
}

fn before_and_after(before: &'static str, tick: Option<Nanos>) -> [Setting; 2] {
    [before, MERGED].map(|policy| Setting::ticking(policy, tick))
}
