//! The same on this machine: shown, and never judged.

use console::Failure;
use event::Nanos;
use measure::Machine;
use platform::{CpuSet, Machine as _, Os};
use workload::busy::Busy;
use workload::naive::{NaiveWait, PollBeside};

use super::barrier::{BarrierWait, ideal, round, work};
use super::beside::{COLUMNS, row};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::Effort;

pub(super) fn measured(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let busy = Busy::calibrate(&Os);
    let here = Machine::read();
    beside(effort, busy, &here, findings)?;
    barrier(effort, busy, &here, findings)
}

fn beside(
    effort: &Effort,
    busy: Busy,
    here: &Machine,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let work = Nanos::from_millis(effort.of(50, 500));
    let allowed = Os.topology().allowed().clone();
    let Some(last) = allowed.iter().last() else {
        findings
            .notes
            .push("This machine: no CPU is allowed, so nothing was run.".into());
        return Ok(());
    };
    let title = format!(
        "This machine ({here}): {work} of computation beside a thread that waits, on CPU {last}"
    );
    let mut table = Table::new(title, COLUMNS);
    for wait in NaiveWait::ALL {
        let what = PollBeside {
            wait,
            work,
            pieces: 100,
            mask: Some(CpuSet::from_iter([last])),
        };
        let report = what.run(&Os, busy).map_err(Failure::failed)?;
        table.row(row(here.kernel.as_str().into(), wait, work, &report));
    }
    findings.tables.push(table);
    Ok(())
}

fn barrier(
    effort: &Effort,
    busy: Busy,
    here: &Machine,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let cpus = here.parallelism.max(1);
    let rounds = effort.of(20, 300);
    let mut columns = vec!["threads a CPU".to_owned()];
    columns.extend(BarrierWait::all().map(|wait| wait.name().to_owned()));
    let title = format!(
        "This machine ({here}): {rounds} rounds at a barrier, threads free; a round, in times of its work \
         spread evenly"
    );
    let mut table = Table::with_columns(title, columns);
    for crowd in [1, 2, 4] {
        let work = work(crowd * cpus, effort.seed);
        let mut row = vec![(crowd as u64).into()];
        for wait in BarrierWait::all() {
            let took = round(&Os, &[], wait, &work, rounds, busy)?;
            row.push((took.0 as f64 / ideal(&work, cpus).0 as f64).into());
        }
        table.row(row);
    }
    findings.tables.push(table);
    Ok(())
}
