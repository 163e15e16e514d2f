//! Source 003: what it costs to give every thread a priority of its own.

mod here;
mod levels;
mod messages;
mod one_cycle;
mod others;
mod shares;
mod sweep;

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use sim::Machine;
use sim::machine::KernelSpec;

use self::messages::{Cycles, Order, PriorityCase};
use super::article::{Experiment, ExperimentPart, Here};
use super::chosen::{ChosenValue, ValueUnit};
use super::claim::ClaimVerdict::{Depends, Fitted, Reproduced};
use super::claim::{Claim, Expect};
use super::findings::{Findings, Table};
use super::lab::{self, Effort};
use super::lesson::Lesson;
use super::plot::{Plot, PlotBar, PlotShape};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "rtos-priorities",
    source: "source 003: W. E. Lamie, \"Lowering RTOS overhead through proper use of thread priorities\", \
             part 3 (2009)",
    question: "What does it cost to give every thread of a real-time system a priority of its own?",
    setup: "D sends three messages to each of A, B and C and relinquishes the CPU; each of these takes its \
            messages and waits for more. Equal: all four have one priority. Unique: A before B before C \
            before D; and levels between the two. The machine is the microcontroller that the article's \
            numbers determine: 60.04 tics a switch, 88.26 tics a message. Then the same with other costs of \
            a switch and other orders of messages; messages that are forwarded in an order that is drawn \
            for every cycle; a thread of low priority with a lock, with and without inheritance; a block of \
            1000 cycles dealt out by percentages, and equal slices among equals. A cycle is what passes \
            between two relinquishments of D. On this machine the first and the inheritance, with \
            SCHED_FIFO threads on one CPU where they are allowed; relinquishing is sched_yield.",
    machine: "mcu",
    policy: "rtos, rtos-plain, rtos-unique",
    learnt: &[
        Lesson {
            text: "The article's count follows from the rules ({003-c} more a cycle). Its times are no test: \
                   what a switch and a message cost here is solved from {003-g} and {003-h}.",
            rests_on: &[("003-c", Reproduced), ("003-g", Fitted), ("003-h", Fitted)],
        },
        Lesson {
            text: "A preemption-threshold gives unique priorities the switches of equal ones ({003-m}), \
                   and takes back their gain: the short way from sending to retrieving ({003-n}, \
                   where unique ones alone have {003-i}).",
            rests_on: &[
                ("003-i", Reproduced),
                ("003-m", Reproduced),
                ("003-n", Reproduced),
            ],
        },
        Lesson {
            text: "Where the order of activations is drawn, equal priorities always need the same number \
                   of switches, and unique ones do not ({003-j}). The article is right about this, \
                   although its own example cannot show it: there, unique priorities need as many in every \
                   order of messages.",
            rests_on: &[("003-j", Reproduced), ("003-k", Reproduced)],
        },
        Lesson {
            text: "Fewer levels are no help by themselves: two cost what four do where the thread that sends \
                   is below those that receive, and each level more costs where the lowest one is shared \
                   ({003-y}).",
            rests_on: &[("003-y", Depends)],
        },
        Lesson {
            text: "The article's deadlock is a wait without a bound of its own: it ends when the thread in \
                   the middle does ({003-o}), and never if that one computes without end.",
            rests_on: &[("003-o", Reproduced), ("003-p", Depends)],
        },
        Lesson {
            text: "Linux switches as often as the article counts ({003-t} more a cycle); the cost of a \
                   switch is another kernel's and another processor's.",
            rests_on: &[("003-t", Reproduced)],
        },
    ],
    parts: &[
        ExperimentPart {
            run: messages_in_cycles,
            values: &[&SWITCH, &MESSAGE],
            seeds: 9,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: others::inversion,
            values: &[&others::MIDDLE, &others::HELD],
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: shares::percentages,
            values: &[],
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: shares::equal_slices,
            values: &[&shares::SLICE],
            seeds: 0,
            is_varied_quickly: false,
        },
    ],
    here: Here::Run(here::measured),
};

/// What a switch costs, which no figure of the article says alone.
const SWITCH: ChosenValue = ChosenValue {
    name: "switch",
    about: "the cost of a switch",
    unit: ValueUnit::Of("% of the solved one"),
    chosen: 100.0,
    others: &[10.0, 50.0, 200.0, 1000.0],
    why: "solved from 8.7 and 4.8 messages in 1000 tics; the article gives 50 to 500 cycles, by RTOS",
};
/// The same of a message.
const MESSAGE: ChosenValue = ChosenValue {
    name: "message",
    about: "the cost of sending or receiving a message",
    unit: ValueUnit::Of("% of the solved one"),
    chosen: 100.0,
    others: &[10.0, 50.0, 200.0],
    why: "solved from the same numbers",
};

/// The article's machine, with these costs.
fn mcu(effort: &Effort) -> Arc<Machine> {
    let machine = Machine::clone(&lab::machine("mcu"));
    let part = |time: Nanos, value| Nanos((time.0 as f64 * effort.value(value) / 100.0) as u64);
    let kernel = KernelSpec {
        switch: part(machine.kernel.switch, &SWITCH),
        message: part(machine.kernel.message, &MESSAGE),
        ..machine.kernel
    };
    machine.with_kernel(kernel).into()
}

fn messages_in_cycles(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let costs = cycles(effort, findings)?;
    sweep::sweep(effort, &mcu(effort), findings)?;
    let spread = forwarding(effort, findings)?;
    findings.claims.extend(message_claims(&costs, &spread));
    Ok(())
}

/// The cost of a case.
struct CycleCosts {
    equal: Cycles,
    unique: Cycles,
    threshold: Cycles,
}

/// Tics of this machine, or nanoseconds if it has none.
fn tics(machine: &Machine, time: f64) -> f64 {
    match machine.tic {
        Some(tic) => time * tic.tics as f64 / tic.nanos as f64,
        None => time,
    }
}

/// How many messages a cycle has.
const MESSAGES: f64 = 9.0;

fn cycles(effort: &Effort, findings: &mut Findings) -> Result<CycleCosts, Failure> {
    let machine = mcu(effort);
    let count = effort.of(200, 2_000);
    let all: Vec<(PriorityCase, Order)> = PriorityCase::ALL
        .into_iter()
        .flat_map(|case| Order::ALL.into_iter().map(move |order| (case, order)))
        .collect();
    let ran = lab::each("cycles", &all, |&(case, order)| {
        messages::cycles(&machine, case, order, count, effort.seed)
    })?;
    show_cycles(&machine, count, &all, &ran, findings);
    findings.claims.extend(levels::claims(|case| {
        levels::switches(all.iter().map(|(case, _)| *case).zip(&ran), case)
    }));
    let mut found = all
        .iter()
        .zip(ran)
        .filter(|((_, order), _)| *order == Order::ByReceiver);
    let mut of = |wanted: PriorityCase| {
        let next = found
            .find(|((case, _), _)| *case == wanted)
            .map(|(_, cycles)| cycles);
        next.ok_or_else(|| Failure::failed("every case was run"))
    };
    let (equal, unique) = (of(PriorityCase::Equal)?, of(PriorityCase::Unique)?);
    findings.plots.push(one_cycle::picture(&equal, &unique));
    let threshold = of(PriorityCase::Threshold)?;
    Ok(CycleCosts {
        equal,
        unique,
        threshold,
    })
}

/// The table and the picture of these cycles.
fn show_cycles(
    machine: &Machine,
    count: u64,
    all: &[(PriorityCase, Order)],
    ran: &[Cycles],
    findings: &mut Findings,
) {
    let columns = [
        "priorities",
        "order of messages",
        "switches a cycle",
        "tics a cycle",
        "their deviation",
        "messages in 1000 tics",
        "tics from send to retrieve, mean",
        "longest",
    ];
    let mut table = Table::new(
        format!("Nine messages a cycle on mcu, {count} cycles"),
        columns,
    );
    let mut bars = Vec::new();
    for (&(case, order), cycles) in all.iter().zip(ran) {
        let cycle = tics(machine, cycles.mean());
        let latency = tics(machine, lab::mean(&cycles.latencies));
        let longest = cycles.latencies.iter().copied().fold(0.0, f64::max);
        table.row([
            case.name().into(),
            order.name().into(),
            cycles.switches.into(),
            cycle.into(),
            tics(machine, cycles.deviation()).into(),
            (MESSAGES * 1000.0 / cycle).into(),
            latency.into(),
            tics(machine, longest).into(),
        ]);
        if order == Order::ByReceiver {
            bars.push(PlotBar {
                name: format!("{}: cycle", case.name()),
                value: cycle,
                kind: 0,
            });
            bars.push(PlotBar {
                name: format!("{}: send to retrieve", case.name()),
                value: latency,
                kind: 1,
            });
        }
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "cycles",
        title: "Nine messages: tics a cycle, and tics from sending to retrieving".into(),
        picture: PlotShape::Bars { unit: "tics", bars },
    });
}

/// How switches and times of a cycle spread where the order of activations is drawn.
struct Spread {
    equal: Cycles,
    unique: Cycles,
}

fn forwarding(effort: &Effort, findings: &mut Findings) -> Result<Spread, Failure> {
    let machine = mcu(effort);
    let count = effort.of(300, 3_000);
    let cases = [PriorityCase::Equal, PriorityCase::Unique];
    let ran = lab::each("orders", &cases, |&case| {
        messages::forwarding(&machine, case, count, effort.seed)
    })?;
    let columns = [
        "priorities",
        "switches a cycle, mean",
        "tics a cycle, mean",
        "shortest",
        "longest",
        "standard deviation",
    ];
    let title =
        format!("A message that A, B and C forward in an order drawn for each of {count} cycles");
    let mut table = Table::new(title, columns);
    for (case, cycles) in cases.iter().zip(&ran) {
        let (least, most) = cycles.ends();
        table.row([
            case.name().into(),
            cycles.switches.into(),
            tics(&machine, cycles.mean()).into(),
            tics(&machine, least).into(),
            tics(&machine, most).into(),
            tics(&machine, cycles.deviation()).into(),
        ]);
    }
    findings.tables.push(table);
    let [equal, unique] = <[Cycles; 2]>::try_from(ran).map_err(|_| Failure::failed("two cases"))?;
    Ok(Spread { equal, unique })
}

fn message_claims(costs: &CycleCosts, spread: &Spread) -> Vec<Claim> {
    let machine = lab::machine("mcu");
    let mut claims = claims_of_figure_11(&machine, costs);
    claims.extend(claims_of_figure_12(&machine, costs));
    claims.extend(claims_of_the_order(&machine, costs, spread));
    claims
}

/// What the article's times are here.
const SOLVED: &str =
    "the machine's tics for a switch and for a message are solved from 8.7 and 4.8";

/// Switches, time and messages of a cycle.
fn claims_of_figure_11(machine: &Machine, costs: &CycleCosts) -> Vec<Claim> {
    let cycle = |cycles: &Cycles| tics(machine, cycles.mean());
    let (equal, unique) = (&costs.equal, &costs.unique);
    vec![
        Claim::source(
            "003-c",
            "Unique priorities need 14 more switches a cycle",
            "below figure 11",
        )
        .is(
            Expect::Exactly(14.0),
            (unique.switches - equal.switches).round(),
            "switches",
        )
        .note(format!(
            "{:.2} and {:.2} a cycle",
            equal.switches, unique.switches
        )),
        Claim::source(
            "003-d",
            "… the processing time grows by more than 80 %",
            "below figure 11",
        )
        .is(
            Expect::Between(80.0, 90.0),
            (cycle(unique) / cycle(equal) - 1.0) * 100.0,
            "% more time",
        )
        .fitted(SOLVED),
        Claim::source(
            "003-e",
            "… the RTOS overhead grows by (the same) 80 %",
            "below figure 11",
        )
        .is(
            Expect::Between(80.0, 90.0),
            (cycle(unique) / cycle(equal) - 1.0) * 100.0,
            "% more time",
        )
        .fitted("a cycle is sending, receiving and switching: all of its time is the kernel's"),
        Claim::source(
            "003-f",
            "… while as many messages are sent and received",
            "below figure 11",
        )
        .is(
            Expect::Exactly(equal.latencies.len() as f64),
            unique.latencies.len() as f64,
            "messages",
        )
        .given("both programs send three to each"),
    ]
}

/// How many messages pass, and how fast.
fn claims_of_figure_12(machine: &Machine, costs: &CycleCosts) -> Vec<Claim> {
    let cycle = |cycles: &Cycles| tics(machine, cycles.mean());
    let rate = |cycles: &Cycles| (MESSAGES * 10_000.0 / cycle(cycles)).round() / 10.0;
    let latency = |cycles: &Cycles| tics(machine, lab::mean(&cycles.latencies));
    let (equal, unique) = (&costs.equal, &costs.unique);
    vec![
        Claim::source(
            "003-g",
            "Equal priorities: 8.7 messages in 1000 tics",
            "figure 12",
        )
        .is(Expect::Exactly(8.7), rate(equal), "messages in 1000 tics")
        .fitted(SOLVED),
        Claim::source(
            "003-h",
            "Unique priorities: 4.8 messages in 1000 tics",
            "figure 12",
        )
        .is(Expect::Exactly(4.8), rate(unique), "messages in 1000 tics")
        .fitted(SOLVED),
        Claim::source(
            "003-i",
            "Unique priorities make the way of a message shorter",
            "figure 12",
        )
        .is(
            Expect::LessThan(latency(equal)),
            latency(unique),
            "tics, mean",
        )
        .note("the figure's numbers are lost; the direction is the text's"),
    ]
}

/// The effect of the order in which threads run, and of a preemption-threshold on it.
fn claims_of_the_order(machine: &Machine, costs: &CycleCosts, spread: &Spread) -> Vec<Claim> {
    let latency = |cycles: &Cycles| tics(machine, lab::mean(&cycles.latencies));
    let (equal, unique, threshold) = (&costs.equal, &costs.unique, &costs.threshold);
    vec![
        Claim::source(
            "003-j",
            "With unique priorities the time varies with the sequence of activations",
            "below figure 11",
        )
        .is(Expect::MoreThan(0.0), tics(machine, spread.unique.deviation()), "tics, standard deviation")
        .note("messages that are forwarded; in the article's own example no order changes the 18 switches"),
        Claim::source(
            "003-k",
            "With equal ones the number of switches is always the same",
            "below figure 11",
        )
        .is(Expect::AtMost(0.5), tics(machine, spread.equal.deviation()), "tics, standard deviation"),
        Claim::source(
            "003-l",
            "Round robin: no thread is preempted by one of a higher priority",
            "Round-Robin Scheduling",
        )
        .is(Expect::Exactly(0.0), equal.preemptions as f64, "preemptions")
        .note(format!("with unique priorities: {}", unique.preemptions)),
        Claim::ours(
            "003-m",
            "A preemption-threshold gives unique priorities the switches of equal ones",
        )
        .is(Expect::Exactly(equal.switches.round()), threshold.switches.round(), "switches a cycle"),
        Claim::ours("003-n", "… and how long a message takes").is(
            Expect::about(latency(equal), 0.01),
            latency(threshold),
            "tics, mean",
        ),
    ]
}
