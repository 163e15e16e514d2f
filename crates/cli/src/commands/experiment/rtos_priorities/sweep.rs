//! Other costs of a switch than the one that the article's numbers determine.

use console::Failure;
use event::Nanos;
use sim::Machine;
use sim::machine::KernelSpec;

use super::messages::{self, Order, PriorityCase};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Line, Plot, PlotShape};

/// A tic of the article's own example of a clock, 200 MHz.
const CYCLE: Nanos = Nanos(5);

/// The same on this machine, for other costs of a switch than its own.
pub(super) fn sweep(
    effort: &Effort,
    mcu: &Machine,
    findings: &mut Findings,
) -> Result<(), Failure> {
    const SWITCHES: [u64; 6] = [50, 70, 100, 200, 350, 500];
    let count = effort.of(50, 500);
    let rows = lab::each("costs of a switch", &SWITCHES, |&cycles| {
        let machine = mcu.clone();
        let kernel = KernelSpec {
            switch: Nanos(cycles * CYCLE.0),
            ..machine.kernel
        };
        let machine = machine.with_kernel(kernel).into();
        let cycle = |case| {
            let ran = messages::cycles(&machine, case, Order::ByReceiver, count, effort.seed);
            ran.map(|cycles| cycles.mean() / CYCLE.0 as f64)
        };
        Ok((
            cycles,
            cycle(PriorityCase::Equal)?,
            cycle(PriorityCase::Unique)?,
        ))
    })?;
    let columns = [
        "CPU cycles a switch",
        "equal: cycles",
        "unique: cycles",
        "more, in %",
    ];
    let mut table = Table::new("The same at 200 MHz, for other costs of a switch", columns);
    for row in &rows {
        table.row([row.0.into(), row.1.into(), row.2.into(), more(row).into()]);
    }
    findings.tables.push(table);
    let points = rows.iter().map(|row| (row.0 as f64, more(row)));
    findings.plots.push(Plot {
        file: "switch-costs",
        title: "How much longer a cycle takes with unique priorities".into(),
        picture: PlotShape::Lines {
            x: "CPU cycles a switch",
            y: "% more than with equal ones",
            lines: vec![Line {
                name: "unique".into(),
                points: points.collect(),
            }],
            level: None,
        },
    });
    findings.claims.extend(claims(&rows));
    Ok(())
}

/// How much longer a cycle takes with unique priorities, in percent.
fn more(&(_, equal, unique): &(u64, f64, f64)) -> f64 {
    (unique / equal - 1.0) * 100.0
}

fn claims(rows: &[(u64, f64, f64)]) -> [Claim; 2] {
    let (cheapest, dearest) = (&rows[0], &rows[rows.len() - 1]);
    [
        Claim::source(
            "003-a",
            "Where a switch takes longer than 0.35 µs the loss is even greater",
            "below figure 11",
        )
        .is(
            Expect::MoreThan(more(&rows[1])),
            more(dearest),
            "% more time",
        )
        .note(format!(
            "500 cycles a switch against 70 (0.35 µs at 200 MHz); with 50 it is {:.0} %",
            more(cheapest)
        )),
        Claim::source("003-b", "A switch costs 50 to 500 CPU cycles, by RTOS", "above figure 11").beyond(
            "a property of systems and processors, and an input here; the table shows the consequences",
        ),
    ]
}
