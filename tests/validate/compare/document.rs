//! `--doc`: the document about validation, written anew from one run.

use std::fmt::Write;

use measure::markdown::{boot_flags, date, table};
use policy::Placement;

use super::calibrate::Cost;
use super::judge::{Verdict, number};
use super::session::{Outcome, Session, seconds, spread, was_quiet};

const COLUMNS: [&str; 5] = ["quantity", "real", "simulated", "tolerance", "verdict"];

/// The whole document.
pub(crate) fn markdown(session: &Session) -> String {
    let mut out = String::from(
        "# Validation\n\n\
         The simulator against the kernel of a real machine. This document is written by \
         `cargo xtask validate --doc docs/validation.md`, whole and from one run: change the program \
         (`tests/validate`), not the text.\n\n\
         The same programs ran as threads of the machine and as threads of the simulated `vm-2` under \
         `eevdf-6.18`, `fifo` and `rr`; the same code looked at both.\n\n",
    );
    if session.quick {
        out.push_str("**This run used the short programs of `--quick`. It judges nothing.**\n\n");
    }
    summary(&mut out, session);
    machine(&mut out, session);
    costs(&mut out, session);
    out.push_str("## Experiments\n\n");
    out.push_str(
        "*real*: the median, with the number of samples and the range of the middle eight tenths. A row \
         without a tolerance is reported and not judged. An experiment is skipped, and never kept or missed, \
         where the machine was not quiet, where its kernel is not the simulated one, or where a right is \
         missing.\n",
    );
    session
        .results
        .iter()
        .for_each(|outcome| experiment(&mut out, outcome));
    out.push_str(NOT_MEASURED);
    out
}

fn summary(out: &mut String, session: &Session) {
    let verdicts = || session.results.iter().flat_map(|outcome| &outcome.rows);
    let count =
        |wanted: fn(&Verdict) -> bool| verdicts().filter(|(_, verdict)| wanted(verdict)).count();
    let skipped = session
        .results
        .iter()
        .filter(|outcome| outcome.skipped.is_some())
        .count();
    let _ = writeln!(
        out,
        "**Bounds kept: {}, missed: {}, not judged: {}. Experiments not done: {skipped}.**\n",
        count(|verdict| *verdict == Verdict::Kept),
        count(|verdict| *verdict == Verdict::Missed),
        count(|verdict| matches!(verdict, Verdict::Skipped(_))),
    );
}

fn machine(out: &mut String, session: &Session) {
    let (machine, kernel) = (&session.machine, &session.kernel);
    let told = |time: Option<event::Nanos>| time.map_or("not told".into(), |time| time.to_string());
    let tick = match kernel.tick {
        Some(tick) => format!("{tick} (HZ={})", 1_000_000_000 / tick.0.max(1)),
        None => "not told".into(),
    };
    let placement = match kernel.placement {
        Placement::Pack => "on the waker's CPU (`pack`)",
        Placement::Mainline => "as mainline does",
    };
    let load = match session.load {
        Some(load) if was_quiet(session.load) => format!("{load}: quiet"),
        Some(load) => format!("{load}: not quiet"),
        None => "not told".into(),
    };
    let rows = [
        ("date", date()),
        ("processor", machine.model.clone()),
        ("CPUs", machine.cpus.to_string()),
        ("kernel", machine.kernel.clone()),
        ("boot flags that matter here", boot_flags(machine)),
        ("tick", tick),
        ("base slice", told(kernel.slice)),
        ("what wakes up is put", placement.into()),
        (
            "groups by session (autogroup)",
            if kernel.autogroup { "on" } else { "off" }.into(),
        ),
        ("switches were seen by", session.recording.clone()),
        ("load in the minute before", load),
        ("the run took", seconds(session.took)),
    ];
    let rows: Vec<[String; 2]> = rows.map(|(key, value)| [key.into(), value]).into();
    out.push_str("## Machine\n\n");
    table(out, &["", ""], &rows);
    out.push('\n');
}

fn costs(out: &mut String, session: &Session) {
    out.push_str("## Costs\n\n");
    if session.costs.is_empty() {
        out.push_str("No costs were measured: the simulated machine has those of its file.\n\n");
        return;
    }
    out.push_str(
        "The costs of the kernel's operations are facts about a machine and not about a policy. V7, V8, \
         V12 and V14 depend on it: just before each of them, these costs were measured by programs of \
         their own and given to the simulated machine. All other values are those of \
         `crates/sim/machines/vm-2.toml`. The times in the experiments are predicted from these costs. \
         The last ones:\n\n",
    );
    let row = |cost: &Cost| {
        [
            cost.what.into(),
            cost.measured.to_string(),
            cost.file.to_string(),
        ]
    };
    let rows: Vec<[String; 3]> = session.costs.iter().map(row).collect();
    table(out, &["operation", "here", "in the file"], &rows);
    out.push('\n');
}

fn experiment(out: &mut String, outcome: &Outcome) {
    let _ = write!(out, "\n### {}: {}\n\n", outcome.id, outcome.what);
    if let Some(why) = &outcome.skipped {
        let _ = writeln!(out, "Skipped: {why}.");
        return;
    }
    if let Some(noise) = &outcome.noise {
        let pieces = match outcome.thrown_away {
            0 => String::new(),
            1 => {
                " One piece was measured again, because the machine was not quiet during it.".into()
            }
            pieces => format!(
                " {pieces} pieces were measured again, because the machine was not quiet during them."
            ),
        };
        let noise = noise.to_string();
        let figures = noise
            .split_once('(')
            .map_or(&*noise, |(_, figures)| figures);
        let _ = write!(
            out,
            "Meanwhile {}.{pieces}\n\n",
            figures.trim_end_matches(')')
        );
    }
    let row = |(row, verdict): &(super::judge::Row, Verdict)| {
        [
            row.what.clone(),
            spread(&row.real),
            row.simulated.map_or("–".into(), number),
            row.bound.map_or(String::new(), |bound| bound.to_string()),
            match verdict {
                Verdict::Skipped(_) => "skipped".into(),
                verdict => verdict.to_string(),
            },
        ]
    };
    let rows: Vec<[String; 5]> = outcome.rows.iter().map(row).collect();
    table(out, &COLUMNS, &rows);
}

/// Facts that no machine at hand could have contradicted.
const NOT_MEASURED: &str = "
## Modelled, not measured

The machines that this was run on lack the hardware or the kernel for the following. The rules follow
documentation and published sources. The values are those of the machine files, each with its source or
the word `assumed`. No measurement of ours stands behind them: read results as orders, not as times.

- **Frequencies (schedutil)**: a virtual machine has no say in them.
- **Energy and heat**: there is no meter, and the model of heat has one pole.
- **SMT**: the CPUs of the virtual machine are shown as cores. The speed that two threads of one core
  leave each other is a constant of the machine file.
- **Cores of different kinds (big.LITTLE, P and E cores)**: capacities are the vendors'.
- **The Galaxy S22, and all machines but `vm-2`**: no measurement of ours was made on them.
- **Schedulers in user space (`rustland-*`, `waitfor`)**: they need `sched_ext`, which these kernels are built
  without. Source 004's own strings are reproduced exactly; the times of a real message to user space
  are assumed.
- **CFS 4.12 and EEVDF 6.6**: other kernels than this one. CFS is compared with source 002's published
  statistics.
- **More than two CPUs**: statements about 32 threads rest on the model of cache lines, which is
  compared with two threads.

## Not modelled

None of this is in any result.

- **Energy-aware placement**: the kernel of a phone puts a task where an energy model says that it costs
  least. Simulated tasks go to CPUs that have the capacity and are idle. On the Galaxy S22, where a task
  runs is a matter of that model; results on it say nothing about battery or about that choice.
- **Utilization clamping (`uclamp`)**: a simulated program that asks for it is refused, as by a kernel
  without it.
- **Timer slack**: Linux lets a task that is no real-time one sleep up to 50 us longer than it asked for, if
  it does not ask for less. Simulated sleeps end on time; the programs of these experiments ask for 1 ns.
- **The host**: time that it takes away, and its tails of milliseconds, are left out.
";

#[cfg(test)]
mod tests {
    use super::super::judge::{Bound, Row};
    use super::super::kernel::Kernel;
    use super::*;
    use measure::Machine;
    use std::time::Duration;

    fn session(results: Vec<Outcome>) -> Session {
        Session {
            machine: Machine::read(),
            kernel: Kernel::read(),
            recording: "magic".into(),
            load: Some(0.5),
            quick: false,
            costs: Vec::new(),
            took: Duration::from_secs(3),
            results,
        }
    }

    /// Goal: the document has the findings: numbers with n and spread, tolerance, verdict, why something was
    /// skipped, on which kernel, and what is not measured. Method: a made-up session with one of each.
    #[test]
    fn the_document_says_what_was_found() {
        let row =
            Row::new("stint, ms", vec![4.0, 4.1, 3.9], Some(4.0)).bounded(Bound::Within(0.005));
        let verdict = row.verdict(None);
        let outcome = |id, rows, skipped: Option<&str>| Outcome {
            id,
            what: "something",
            rows,
            skipped: skipped.map(str::to_owned),
            noise: None,
            thrown_away: 0,
        };
        let text = markdown(&session(vec![
            outcome("V1", vec![(row, verdict)], None),
            outcome("V2", Vec::new(), Some("no rights")),
        ]));
        for expected in [
            "**Bounds kept: 1, missed: 0, not judged: 0. Experiments not done: 1.**",
            "| stint, ms | 4 (n 3, 3.9 to 4.1) | 4 | ±0.5 % | kept |",
            "Skipped: no rights.",
            "| switches were seen by | magic |",
            "| load in the minute before | 0.5: quiet |",
            "## Modelled, not measured",
        ] {
            assert!(text.contains(expected), "{expected}\nis not in\n{text}");
        }
    }
}
