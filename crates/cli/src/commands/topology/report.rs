//! A machine as text and as JSON.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table};
use console::help::Answer;
use console::output;
use platform::topology::{Confidence, Witness};
use platform::{CpuSet, Lane, Plan, PlannedWorker, Quota, Topology};
use serde::Serialize;

use super::draw;

/// The plan of a job system with default settings: one thread of the machine is left to the waiting thread.
fn plan(machine: &Topology) -> Plan {
    let workers = machine.effective_parallelism().saturating_sub(1).max(1);
    Plan::new(machine, machine.limits(), workers)
}

#[derive(Serialize)]
struct TopologyJson<'a> {
    model: &'a str,
    cpus: usize,
    present: Vec<u32>,
    online: Vec<u32>,
    allowed: Vec<u32>,
    isolated: Vec<u32>,
    classes: Vec<JsonClass<'a>>,
    class_source: String,
    confidence: &'static str,
    smt: Vec<Vec<u32>>,
    llc: Vec<Vec<u32>>,
    numa: Vec<Vec<u32>>,
    quota_cpus: Option<f64>,
    effective_parallelism: usize,
    fast: Vec<u32>,
    workers: Vec<JsonWorker>,
    os_help: Vec<Answer>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct JsonClass<'a> {
    name: &'a str,
    cpus: Vec<u32>,
    capacity: Option<u32>,
}

#[derive(Serialize)]
struct JsonWorker {
    cpus: Vec<u32>,
    class: String,
    lanes: Vec<String>,
}

impl JsonWorker {
    fn of(worker: PlannedWorker) -> JsonWorker {
        JsonWorker {
            cpus: numbers(&worker.cpus),
            class: worker.class,
            lanes: worker.lanes.iter().map(Lane::to_string).collect(),
        }
    }
}

fn numbers(set: &CpuSet) -> Vec<u32> {
    set.iter().collect()
}

/// The object of `--json`.
pub(super) fn json(machine: &Topology, help: Vec<Answer>) -> impl Serialize + '_ {
    let groups = |sets: Vec<CpuSet>| sets.iter().map(numbers).collect();
    let limits = machine.limits();
    let classes = machine.classes().iter().map(|class| JsonClass {
        name: &class.name,
        cpus: numbers(&class.cpus),
        capacity: class.capacity,
    });
    TopologyJson {
        model: machine.model(),
        cpus: machine.present().len(),
        present: numbers(machine.present()),
        online: numbers(&limits.online),
        allowed: numbers(&limits.allowed),
        isolated: numbers(machine.isolated()),
        classes: classes.collect(),
        class_source: machine.witness().to_string(),
        confidence: match machine.confidence() {
            Confidence::High => "high",
            Confidence::Low => "low",
        },
        smt: groups(machine.cores()),
        llc: groups(machine.caches()),
        numa: groups(machine.nodes()),
        quota_cpus: limits.quota.map(Quota::cpus),
        effective_parallelism: machine.effective_parallelism(),
        fast: numbers(&machine.fast(machine.allowed())),
        workers: plan(machine)
            .workers
            .into_iter()
            .map(JsonWorker::of)
            .collect(),
        os_help: help,
        notes: machine.notes(),
    }
}

/// The machine as a person reads it, in `columns` columns, and the help that its kernel would give this
/// process.
pub(super) fn text(machine: &Topology, help: &[Answer], columns: usize) -> String {
    let mut text = format!("{}\n{}\n\n", machine.model(), summary(machine));
    let _ = writeln!(text, "{}\n", draw::machine(machine, columns));
    let _ = writeln!(text, "{}", classes(machine));
    let _ = match machine.witness() {
        Witness::Nothing => writeln!(text, "Nothing says that CPUs differ.\n"),
        witness => writeln!(text, "Told apart by: {witness}.\n"),
    };
    let _ = write!(text, "{}", workers(machine));
    for sentence in paceline::explain(machine) {
        let _ = write!(text, "\n{sentence}");
    }
    if !help.is_empty() {
        let _ = write!(text, "\n\n{}", helps(help));
    }
    if !machine.notes().is_empty() {
        text.push_str("\n\nDistrusted:");
        for note in machine.notes() {
            let _ = write!(text, "\n  {note}");
        }
    }
    text
}

/// The help that the kernel would give threads of this process.
fn helps(help: &[Answer]) -> Table {
    let mut table = output::table();
    table.set_header(["help of the kernel", "would be"]);
    for answer in help {
        table.add_row([answer.asked.clone(), answer.words()]);
    }
    table
}

/// How many CPUs there are, and how many can be used.
fn summary(machine: &Topology) -> String {
    let limits = machine.limits();
    let present = machine.present().len();
    let mut parts = vec![format!(
        "{present} CPU{}",
        if present == 1 { "" } else { "s" }
    )];
    let offline = machine.present().difference(&limits.online);
    if !offline.is_empty() {
        parts.push(format!("offline: {offline}"));
    }
    if !machine.isolated().is_empty() {
        parts.push(format!("isolated: {}", machine.isolated()));
    }
    if *machine.allowed() != limits.online {
        parts.push(format!("usable: {}", machine.allowed()));
    }
    if let Some(quota) = limits.quota {
        parts.push(format!(
            "quota: {} CPUs",
            (quota.cpus() * 100.0).round() / 100.0
        ));
    }
    let parallelism = machine.effective_parallelism();
    parts.push(format!("{parallelism} at a time"));
    parts.join("; ")
}

fn classes(machine: &Topology) -> Table {
    let mut table = output::table();
    table.set_header(["class", "CPUs", "", "capacity"]);
    for class in machine.classes().iter().rev() {
        let capacity = class.capacity.map_or("unknown".into(), |n| n.to_string());
        let count = class.cpus.len().to_string();
        table.add_row([class.name.clone(), count, class.cpus.to_string(), capacity]);
    }
    for column in [1, 3] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Equal workers in one line.
fn workers(machine: &Topology) -> Table {
    let mut table = output::table();
    table.set_header(["workers", "may run on", "class", "lanes"]);
    let mut rows: Vec<(PlannedWorker, usize)> = Vec::new();
    for worker in plan(machine).workers {
        match rows.last_mut().filter(|row| row.0 == worker) {
            Some(row) => row.1 += 1,
            None => rows.push((worker, 1)),
        }
    }
    for (worker, count) in rows {
        let lanes: Vec<String> = worker.lanes.iter().map(Lane::to_string).collect();
        let cpus = worker.cpus.to_string();
        table.add_row([count.to_string(), cpus, worker.class, lanes.join(", ")]);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
