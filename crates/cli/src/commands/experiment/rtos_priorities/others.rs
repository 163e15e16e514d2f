//! The article on inheritance.

use console::Failure;
use event::Nanos;
use sim::Outcome;
use sim::scenario::{Forever, Phase, Repeat, Scenario};

use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// How long the high thread waits for the lock.
struct LockWait {
    took: Option<Nanos>,
    is_over: bool,
}

pub(super) const MIDDLE: ChosenValue = ChosenValue {
    name: "middle",
    about: "how long the thread in the middle computes",
    unit: ValueUnit::Millis,
    chosen: 300.0,
    others: &[30.0, 3_000.0],
    why: "the article gives no length; it was measured on Linux with this one, too",
};
pub(super) const HELD: ChosenValue = ChosenValue {
    name: "held",
    about: "how long the low thread computes with the lock",
    unit: ValueUnit::Millis,
    chosen: 5.0,
    others: &[2.0, 50.0],
    why: "longer than until the middle one begins, after 1 ms, and far shorter than that one",
};

/// The scene, with the chosen lengths.
fn inverted(effort: &Effort) -> Scenario {
    let mut scenario = on_mcu(lab::scenario("rtos-inversion"));
    for (thread, value) in [("middle", &MIDDLE), ("low", &HELD)] {
        let of = scenario.threads.iter_mut().filter(|it| it.name == thread);
        let first = of
            .flat_map(|thread| &mut thread.phases)
            .find_map(|phase| match phase {
                Phase::Work(span) => Some(span),
                _ => None,
            });
        if let Some(span) = first {
            (span.least, span.most) = (effort.time(value), effort.time(value));
        }
    }
    scenario
}

pub(super) fn inversion(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let scenario = inverted(effort);
    let policies = [
        ("rtos", "with inheritance"),
        ("rtos-plain", "without inheritance"),
        ("rtos-unique", "with inheritance, one thread at a priority"),
    ];
    let waits = lab::each("inversions", &policies, |(policy, _)| {
        let ran = lab::run(&scenario, policy, effort.seed)?;
        Ok(LockWait {
            took: lab::spans(&ran, "wait for m").next(),
            is_over: ran.report.outcome == Outcome::Finished,
        })
    })?;
    let [middle, held] = [&MIDDLE, &HELD].map(|value| effort.value(value));
    let title = format!(
        "A low thread with a lock for {held} ms of work, a middle one that computes for {middle} ms, on mcu"
    );
    let mut table = Table::new(title, ["policy", "mutexes", "the high thread waits"]);
    for ((policy, about), wait) in policies.iter().zip(&waits) {
        table.row([(*policy).into(), (*about).into(), wait.took.into()]);
    }
    findings.tables.push(table);
    let [with, without, unique] = waits.as_slice() else {
        return Err(Failure::failed("three policies"));
    };
    let endless = never_lets_go(&scenario, effort.seed)?;
    let for_ever = |is_over: bool| f64::from(u8::from(!is_over));
    let millis = |wait: &LockWait| wait.took.map_or(f64::NAN, |took| took.0 as f64 / 1e6);
    findings.claims.extend([
        Claim::source(
            "003-o",
            "A high thread that wants a low one's lock waits for the one in the middle",
            "Priority Inheritance, first paragraphs",
        )
        .is(Expect::AtLeast(middle), millis(without), "ms")
        .note("without inheritance"),
        Claim::source(
            "003-p",
            "… effectively for ever, deadlocked",
            "Priority Inheritance, second paragraph",
        )
        .is(Expect::Exactly(1.0), for_ever(without.is_over), "(1: for ever)")
        .varied("middle", "without end", Expect::Exactly(1.0), for_ever(endless))
        .note("no deadlock: a wait without a bound of its own, which ends when the middle thread does"),
        Claim::source(
            "003-q",
            "Inheritance lets the low one run until it gives the lock back",
            "Priority Inheritance, third paragraph",
        )
        .is(Expect::AtMost(held * 1.02), millis(with), "ms")
        .note("its work under the lock, and a fiftieth"),
        Claim::source(
            "003-r",
            "Where only one thread may have a priority, none can be inherited",
            "Priority Inheritance, last paragraph",
        )
        .is(Expect::AtLeast(middle), millis(unique), "ms")
        .note("a kernel that allows one thread at each priority; Linux and ThreadX allow many"),
    ]);
    Ok(())
}

/// Whether the high thread's wait is over after ten seconds, without inheritance and with a middle thread
/// that computes all that time.
fn never_lets_go(scenario: &Scenario, seed: u64) -> Result<bool, Failure> {
    let mut scenario = scenario.clone();
    scenario.until = Some(Nanos::from_secs(10));
    let middle = scenario
        .threads
        .iter_mut()
        .find(|thread| thread.name == "middle");
    middle
        .ok_or_else(|| Failure::failed("there is a middle thread"))?
        .repeat = Repeat::Word(Forever::Forever);
    let ran = lab::run(&scenario, "rtos-plain", seed)?;
    Ok(lab::spans(&ran, "wait for m").next().is_some())
}

/// The scenario is Linux's: there the highest number goes first, and its CPU is the second one.
fn on_mcu(mut scenario: Scenario) -> Scenario {
    scenario.machine = "mcu".into();
    for thread in &mut scenario.threads {
        thread.cpus.clear();
        thread.priority = 31 - thread.priority;
    }
    scenario
}
