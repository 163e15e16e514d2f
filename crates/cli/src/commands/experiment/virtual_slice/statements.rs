//! What the article's text says of both ways, beside its table: waits of all, slices that fluctuate, tasks
//! that preempt, and tasks that are wrongly taken for interactive.

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use sim::SimReport;
use sim::scenario::Scenario;

use super::game::{
    BEFORE, BEFORE_ALL, MERGED, TICKS, UNSHRUNK, VALUES as GAME_VALUES, by_rule_and_tick, by_tick,
    game_and_build, tick_of,
};
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::timeline::{Doing, Stint, stints};

/// What was only chosen here, and moves it.
pub(super) const VALUES: &[&ChosenValue] = &[GAME_VALUES[1], GAME_VALUES[2], &PRETENDER];

const PRETENDER: ChosenValue = ChosenValue {
    name: "pretender",
    about: "how long a task computes that blocks so often before that it is taken for interactive",
    unit: ValueUnit::Millis,
    chosen: 20.0,
    others: &[10.0, 40.0],
    why: "longer than any slice; it blocks twenty times in between",
};

/// From here on it is known who blocks often: that is averaged over seconds.
const KNOWN: Nanos = Nanos::from_millis(1_200);
/// A wait that is longer was one for another task's slice.
const SOON: Nanos = Nanos::from_micros(100);

/// What all tasks of a game beside a build met with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Met {
    /// How long a task waited for a CPU, each time, in microseconds.
    wait: f64,
    /// The deviation of the compilers' turns that others ended, in parts of their mean.
    fluctuation: f64,
    /// The mean of these turns, in microseconds.
    compiler: f64,
    /// The same of the one that is wrongly taken for interactive.
    pretender: f64,
    /// How many of 100 of the audio's waits were for another task's slice.
    audio_late: f64,
}

impl Met {
    fn of(report: &SimReport) -> Met {
        let all = stints(report);
        let all: Vec<&Stint> = all.iter().filter(|stint| stint.begin >= KNOWN).collect();
        let named = |stint: &Stint, name: &str| report.threads[stint.thread].name.starts_with(name);
        let micros = |stint: &&Stint| (stint.end - stint.begin).0 as f64 / 1e3;
        let waits = |stint: &&&Stint| stint.doing == Doing::Ready;
        // A turn that another task ended: the thread is ready from then on.
        let ended = |name: &str| -> Vec<f64> {
            let mut turns = Vec::new();
            for thread in 0..report.threads.len() {
                let of: Vec<&&Stint> = all.iter().filter(|stint| stint.thread == thread).collect();
                let pairs = of.windows(2).filter(|pair| {
                    let is_cut = pair[0].doing != Doing::Ready && pair[1].doing == Doing::Ready;
                    named(pair[0], name) && is_cut && pair[0].end == pair[1].begin
                });
                turns.extend(pairs.map(|pair| micros(pair[0])));
            }
            turns
        };
        let wait: Vec<f64> = all.iter().filter(waits).map(micros).collect();
        let audio = all
            .iter()
            .filter(waits)
            .filter(|stint| named(stint, "audio"));
        let late = audio.clone().filter(|stint| stint.end - stint.begin > SOON);
        let compilers = ended("cc");
        Met {
            wait: lab::mean(&wait),
            fluctuation: lab::deviation(&compilers) / lab::mean(&compilers),
            compiler: lab::mean(&compilers),
            pretender: lab::mean(&ended("pretender")),
            audio_late: late.count() as f64 * 100.0 / audio.count().max(1) as f64,
        }
    }
}

/// The game, its build, and a task that blocks often and then computes for long.
fn scene(effort: &Effort) -> Result<Scenario, Failure> {
    let mut scenario = game_and_build(effort);
    scenario.until = Some(Nanos::from_millis(effort.of(2_000, 5_000)));
    let blocks = "{ work = '20 us' }, { sleep = '100 us' }, ".repeat(20);
    let length = effort.time(&PRETENDER);
    let text = format!(
        "about = 'a task that is wrongly taken for interactive'\nmachine = '{}'\n\
         policy = '{BEFORE}'\nuntil = '1 s'\n\
         [[thread]]\nname = 'pretender'\nrepeat = 'forever'\n\
         phases = [{blocks}{{ work = '{} ns' }}]\n",
        scenario.machine, length.0
    );
    let pretender = Scenario::parse("pretender", &text);
    let pretender = pretender.map_err(|error| Failure::failed(error.to_string()))?;
    scenario.threads.extend(pretender.threads);
    Ok(scenario)
}

/// All that are run: the code before the change, without shrinking slices and with them, and that with it.
const ALL: [&str; 4] = [UNSHRUNK, BEFORE, BEFORE_ALL, MERGED];

/// The code, and the time between two ticks.
type CodeAndTick = (&'static str, Option<Nanos>);

/// One of the measurements, with this setting.
type MetWith = (CodeAndTick, fn(&Met) -> f64);

struct AllMet(Vec<(CodeAndTick, Met)>);

impl AllMet {
    fn of(&self, setting: CodeAndTick, what: fn(&Met) -> f64) -> Vec<f64> {
        let met = self.0.iter().filter(|(its, _)| *its == setting);
        met.map(|(_, met)| what(met)).collect()
    }

    fn mean(&self, setting: CodeAndTick, what: fn(&Met) -> f64) -> f64 {
        lab::mean(&self.of(setting, what))
    }

    /// What this has to be less than with the second setting, by two standard errors; and what it is.
    fn less(&self, [than, it]: [MetWith; 2]) -> (Expect, f64) {
        let error = |(setting, what): MetWith| lab::standard_error(&self.of(setting, what));
        let error = error(than).hypot(error(it));
        (
            Expect::LessThan(self.mean(than.0, than.1) - 2.0 * error),
            self.mean(it.0, it.1),
        )
    }
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let scenario = scene(effort)?;
    let settings = TICKS
        .into_iter()
        .flat_map(|tick| ALL.map(|policy| (policy, tick)));
    let seeds: Vec<u64> = effort.seeds(2, effort.some(10)).collect();
    let all: Vec<(CodeAndTick, u64)> = settings
        .flat_map(|setting| seeds.iter().map(move |&seed| (setting, seed)))
        .collect();
    let met = lab::each("games with a pretender", &all, |&((policy, tick), seed)| {
        let mut machine = lab::machine(&scenario.machine);
        if let Some(tick) = tick {
            Arc::make_mut(&mut machine).kernel.tick = tick;
        }
        let ran = lab::run_on(&scenario, machine, policy, seed, true, |_| ())?;
        Ok(Met::of(&ran.report))
    })?;
    let met = AllMet(
        all.into_iter()
            .map(|(setting, _)| setting)
            .zip(met)
            .collect(),
    );
    findings.tables.push(table(&met, seeds.len()));
    findings.claims.extend(claims(&met));
    Ok(())
}

fn table(met: &AllMet, seeds: usize) -> Table {
    let columns = [
        "policy",
        "time between ticks",
        "a task waits for a CPU, each time, µs",
        "a compiler's turn, µs",
        "its deviation, of the mean",
        "the pretender's turn, µs",
        "audio waits for another's slice, of 100",
    ];
    let title = format!("With a task that is wrongly taken for interactive, {seeds} seeds");
    let mut table = Table::new(title, columns);
    for policy in ALL {
        for tick in TICKS {
            let mean = |what: fn(&Met) -> f64| met.mean((policy, tick), what);
            table.row([
                policy.into(),
                tick_of(tick).into(),
                mean(|met| met.wait).into(),
                mean(|met| met.compiler).into(),
                mean(|met| met.fluctuation).into(),
                mean(|met| met.pretender).into(),
                mean(|met| met.audio_late).into(),
            ]);
        }
    }
    table
}

fn claims(met: &AllMet) -> [Claim; 4] {
    let waits = Claim::source(
        "004-q",
        "Before the change, slices that shrink with the queue help to reduce the mean wait of all tasks",
        "Overview, second paragraph",
    );
    let fluctuate = Claim::source(
        "004-r",
        "Before the change, tasks come in bursts, so slices fluctuate more than with it",
        "Overview, fourth paragraph",
    );
    let forced = Claim::source(
        "004-s",
        "Tasks that were incorrectly classified as interactive are still forced to release the CPU quickly",
        "Example, last paragraph",
    );
    let preempt = Claim::source(
        "004-t",
        "Tasks that need little preempt others, so they are processed as soon as they need to",
        "Virtual time slice; Example, last paragraph",
    );
    [
        by_rule_and_tick(waits, "µs a wait", |before, tick| {
            met.less([((UNSHRUNK, tick), |met| met.wait), ((before, tick), |met| met.wait)])
        })
        .note("of every wait of every task, against slices of 5 ms that do not shrink; less by two standard \
               errors"),
        by_rule_and_tick(fluctuate, "of the mean, a compiler's turns with the change", |before, tick| {
            let of = |met: &Met| met.fluctuation;
            met.less([((before, tick), of), ((MERGED, tick), of)])
        })
        .note("standard deviation of the turns that others end; less by two standard errors"),
        by_tick(forced, "µs, the turn of such a task", |tick| {
            let of = (MERGED, tick);
            met.less([(of, |met| met.compiler), (of, |met| met.pretender)])
        })
        .note("against a compiler's turn, with the change; less by two standard errors"),
        by_tick(preempt, "of 100 waits of the audio are for a slice", |tick| {
            (Expect::AtMost(1.0), met.mean((MERGED, tick), |met| met.audio_late))
        })
        .note("longer than 0.1 ms, with the change"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: CodeAndTick = (MERGED, None);

    fn met(numbers: [f64; 5]) -> Met {
        let [wait, fluctuation, compiler, pretender, audio_late] = numbers;
        Met {
            wait,
            fluctuation,
            compiler,
            pretender,
            audio_late,
        }
    }

    /// Goal: each of the claims can hold and can fail. Method: games that were made up, in which everything
    /// is as the article says, the other way round, or the same before and after.
    #[test]
    fn statements_hold_if_what_was_met_says_so() {
        let judged = |before: [f64; 5], after: [f64; 5]| {
            let each = [
                (UNSHRUNK, after),
                (BEFORE, before),
                (BEFORE_ALL, before),
                (MERGED, after),
            ];
            let all = TICKS
                .into_iter()
                .flat_map(|tick| each.map(|(policy, numbers)| ((policy, tick), met(numbers))));
            claims(&AllMet(all.collect())).map(|claim| claim.holds_here())
        };
        let (so, not) = ([Some(true); 4], [Some(false); 4]);
        let (before, after) = ([1.0, 0.9, 9.0, 9.0, 50.0], [2.0, 0.1, 9.0, 1.0, 0.0]);
        assert_eq!(judged(before, after), so);
        assert_eq!(judged(after, [1.0, 0.9, 9.0, 9.0, 50.0]), not);
        assert_eq!(judged(before, before), not);
    }

    /// Goal: what tasks met with is read off the trace. Method: a short game; a task cannot be cut off after
    /// its longest phase, and the one that blocks often is in the scene, and is cut off.
    #[test]
    fn a_game_is_read_off_its_trace() {
        let effort = Effort::quick(1);
        let scenario = scene(&effort).unwrap_or_else(|failure| panic!("{}", failure.text()));
        let machine = lab::machine(&scenario.machine);
        let ran = lab::run_on(&scenario, machine, NOW.0, 1, true, |_| ());
        let met = Met::of(
            &ran.unwrap_or_else(|failure| panic!("{}", failure.text()))
                .report,
        );
        assert!(met.wait > 0.0 && met.fluctuation > 0.0, "{met:?}");
        assert!((0.0..20_100.0).contains(&met.pretender), "{met:?}");
        assert!((0.0..80_100.0).contains(&met.compiler), "{met:?}");
        assert!((0.0..=100.0).contains(&met.audio_late), "{met:?}");
    }
}
