//! The outcome of a run, for people and as JSON.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table};
use console::help::Answer;
use console::output;
use event::Nanos;
use measure::Times;
use serde::Serialize;
use serde_json::{Map, Value};
use sim::machine::ClusterUse;
use sim::scenario::Ran;
use sim::{Machine, Perturb, SimConfig, ThreadReport};

use super::checks::Check;
use super::frames::ProgramFindings;
use super::library::{List, assumed};
use super::recording::TracedRun;
use super::run::{Job, SimulationOutcome};
use crate::commands::accounts::{Account, AccountJson, Switches, ThreadJson};
use crate::commands::frames::interference::{self, InterferenceJson};

/// How many rows a table for people has.
const ROWS_MAX: usize = 64;
/// The span that counts as a frame.
const FRAME: &str = "frame";

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct SimulateReport<'a> {
    scenario: &'a str,
    machine: &'a str,
    policy: &'a str,
    /// Whether the threads said what they waited for.
    hints: bool,
    seed: u64,
    /// As text: JSON's numbers do not hold 64 bits everywhere.
    trace_hash: String,
    makespan_ns: u64,
    events: u64,
    energy_uj: Option<u64>,
    threads: Vec<ThreadJson>,
    frame_ns: Option<Times>,
    spans: Vec<Span>,
    clusters: Vec<ClusterJson<'a>>,
    quota: Option<QuotaJson>,
    /// As `diagnose` has it; null if the run had too many events to be explained.
    #[serde(flatten)]
    account: AccountJson,
    checks: &'a [Check],
    stats: Option<BTreeMap<&'static str, u64>>,
    os_help: &'a [Answer],
    interference: Option<InterferenceJson>,
    trace: Option<&'a TracedRun>,
    assumed: BTreeMap<&'static str, usize>,
    replay: &'a str,
    notes: Vec<&'static str>,
}

#[derive(Serialize)]
struct ClusterJson<'a> {
    name: &'a str,
    energy_uj: Option<u64>,
    busy_ns: u64,
    idle_ns: u64,
    hottest_millidegrees: Option<i64>,
}

#[derive(Serialize)]
struct QuotaJson {
    periods: u64,
    throttled_periods: u64,
    throttled_ns: u64,
}

/// The measurements of one thread under one name.
#[derive(Serialize)]
struct Span {
    thread: String,
    tid: usize,
    name: String,
    count: usize,
    #[serde(flatten)]
    times: Times,
}

/// The parts of every report.
pub(super) const NOTES: [&str; 1] = [
    "modelled, not measured: costs are those of the machine's file, and the movement of data is left out",
];

pub(super) fn json<'a>(job: &'a Job, outcome: &'a SimulationOutcome) -> SimulateReport<'a> {
    let report = &outcome.ran.report;
    let thread = |(number, thread): (usize, &'a ThreadReport)| ThreadJson {
        name: thread.name.clone(),
        tid: u32::try_from(number + 1).ok(),
        run_ns: thread.spent.run.0,
        runnable_ns: thread.spent.runnable.0,
        throttled_ns: Some(thread.spent.throttled.0),
        sleep_ns: thread.spent.sleep.0,
        switches: Switches {
            voluntary: thread.voluntary,
            involuntary: thread.involuntary,
        },
    };
    let clusters = report.clusters.iter().zip(knows_power(job));
    let clusters = clusters.map(|(cluster, knows)| ClusterJson {
        name: &cluster.name,
        energy_uj: knows.then_some(cluster.microjoules),
        busy_ns: busy(cluster).0,
        idle_ns: cluster.idle.0,
        hottest_millidegrees: cluster.hottest_millidegrees,
    });
    let facts = [
        ("values", job.machine.facts.len()),
        ("assumed", job.machine.assumed().count()),
    ];
    let stats = outcome.told.stats.as_ref();
    let account = outcome.account.as_ref();
    SimulateReport {
        scenario: &job.scenario.name,
        machine: &job.machine.name,
        policy: &job.policy,
        hints: job.scenario.hints,
        seed: job.seed,
        trace_hash: format!("{:016x}", report.trace_hash),
        makespan_ns: report.now.0,
        events: report.events,
        energy_uj: energy(job, &outcome.ran),
        threads: report.threads.iter().enumerate().map(thread).collect(),
        frame_ns: frames(outcome),
        spans: spans(job, outcome),
        clusters: clusters.collect(),
        quota: report.quota.map(|quota| QuotaJson {
            periods: quota.periods,
            throttled_periods: quota.throttled_periods,
            throttled_ns: quota.throttled.0,
        }),
        account: account.map(AccountJson::of).unwrap_or_default(),
        checks: &outcome.checks,
        stats: stats.map(|stats| stats.named().into_iter().collect()),
        os_help: &outcome.told.help,
        interference: outcome.told.interference.as_ref().map(interference::json),
        trace: outcome.traced.as_ref(),
        assumed: facts.into_iter().collect(),
        replay: &job.replay,
        notes: NOTES.to_vec(),
    }
}

/// For each cluster, whether its machine's file has its power.
fn knows_power(job: &Job) -> impl Iterator<Item = bool> {
    let clusters = job.machine.clusters.iter();
    clusters.map(|cluster| cluster.points.iter().any(|point| point.microwatts > 0))
}

/// The energy of all clusters, if it is known of all.
pub(super) fn energy(job: &Job, ran: &Ran) -> Option<u64> {
    let clusters = ran.report.clusters.iter();
    knows_power(job)
        .all(|knows| knows)
        .then(|| clusters.map(|cluster| cluster.microjoules).sum())
}

fn busy(cluster: &ClusterUse) -> Nanos {
    Nanos(cluster.busy.iter().map(|(_, time)| time.0).sum())
}

fn frames(outcome: &SimulationOutcome) -> Option<Times> {
    let lengths = frame_lengths(&outcome.ran, &outcome.told);
    (!lengths.is_empty()).then(|| Times::of(&lengths))
}

/// How long frames took: those of the program, or the spans with that name.
pub(super) fn frame_lengths(ran: &Ran, told: &ProgramFindings) -> Vec<u64> {
    let of_program = told.frames.iter();
    let mut lengths: Vec<u64> = of_program.map(|(begin, end)| (*end - *begin).0).collect();
    let spans = ran.measured.iter();
    let spans = spans.filter(|measured| measured.name == FRAME);
    lengths.extend(spans.map(|measured| (measured.end - measured.begin).0));
    lengths
}

/// The lengths of what was measured, by thread and name.
pub(super) fn span_lengths<'a>(
    job: &Job,
    ran: &'a Ran,
    told: &ProgramFindings,
) -> BTreeMap<(usize, &'a str), Vec<u64>> {
    let mut lengths: BTreeMap<(usize, &str), Vec<u64>> = BTreeMap::new();
    let main = job.first_threads();
    let frames = told.frames.iter().map(|&span| (FRAME, span));
    let rounds = told.rounds.iter().map(|&span| ("all rounds", span));
    for (name, (begin, end)) in frames.chain(rounds) {
        let of = lengths.entry((main, name)).or_default();
        of.push((end - begin).0);
    }
    for measured in &ran.measured {
        let of = lengths
            .entry((measured.thread, &measured.name))
            .or_default();
        of.push((measured.end - measured.begin).0);
    }
    lengths
}

/// The measured spans, by thread and name.
fn spans(job: &Job, outcome: &SimulationOutcome) -> Vec<Span> {
    let lengths = span_lengths(job, &outcome.ran, &outcome.told);
    let threads = &outcome.ran.report.threads;
    let span = |((thread, name), lengths): ((usize, &str), Vec<u64>)| Span {
        thread: threads[thread].name.clone(),
        tid: thread + 1,
        name: name.to_owned(),
        count: lengths.len(),
        times: Times::of(&lengths),
    };
    lengths.into_iter().map(span).collect()
}

/// The tables for people.
pub(super) fn text(job: &Job, outcome: &SimulationOutcome) -> String {
    let mut parts: Vec<String> = [
        what(job, outcome),
        threads(outcome),
        span_table(job, outcome),
        clusters(job, outcome),
        outcome
            .told
            .interference
            .as_ref()
            .map_or_else(output::table, interference::table),
        checks(outcome),
    ]
    .iter()
    .filter(|table| !table.is_empty())
    .map(Table::to_string)
    .collect();
    let threads = outcome.ran.report.threads.len();
    if threads > ROWS_MAX {
        parts.push(format!("{} more threads: see --json", threads - ROWS_MAX));
    }
    parts.extend(outcome.account.iter().map(explained));
    parts.extend(NOTES.map(str::to_owned));
    parts.push(format!("trace hash {:016x}", outcome.ran.report.trace_hash));
    parts.join("\n")
}

/// The worst wait and the inversions, between empty lines.
fn explained(account: &Account) -> String {
    let columns = output::columns();
    let parts = [
        account.worst_text(columns),
        account.inversions_text(columns),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "no thread waited for another one, as far as the kernel's events tell".to_owned()
    } else {
        format!("\n{}\n", parts.join("\n\n"))
    }
}

pub(super) fn what(job: &Job, outcome: &SimulationOutcome) -> Table {
    let (scenario, machine, report) = (&job.scenario, &job.machine, &outcome.ran.report);
    let mut table = output::table();
    let mut row = |key: &str, value: String| {
        table.add_row([key.to_owned(), value]);
    };
    row("scenario", format!("{}: {}", scenario.name, scenario.about));
    if let Some(source) = &scenario.source {
        row("after", source.clone());
    }
    row("machine", format!("{}: {}", machine.name, machine.about));
    row("assumed", assumed(machine));
    if scenario.full_speed {
        row(
            "clocks",
            "all at their highest, as the scenario says".into(),
        );
    }
    row("policy", format!("{}: {}", job.policy, job.about_policy));
    if scenario.hints {
        row("hints", said_about_waits(&job.policy).to_owned());
    }
    for (key, value) in &outcome.told.about {
        row(key, value.clone());
    }
    if let (Some(quota), Some(used)) = (&scenario.quota, report.quota) {
        let said = format!(
            "{} CPUs in {}: throttled in {} of {} periods, for {}",
            quota.cpus, quota.period, used.throttled_periods, used.periods, used.throttled
        );
        row("quota", said);
    }
    for answer in &outcome.told.help {
        let said = format!("{}: {}", answer.asked, answer.words());
        row("help of the kernel", said);
    }
    if scenario.perturb != Perturb::default() {
        row("disturbed", disturbances(&scenario.perturb));
    }
    row("seed", job.seed.to_string());
    row("time", report.now.to_string());
    row(
        "simulated",
        format!("{} steps, {} kernel events", report.steps, report.events),
    );
    if let Some(traced) = &outcome.traced {
        let path = traced.path.display();
        row("trace", format!("{path}, {} events", traced.events));
    }
    table
}

/// Whether anybody hears what the threads say.
fn said_about_waits(policy: &str) -> &'static str {
    if SimConfig::on(Machine::ideal(1), policy, 1).is_listened_to() {
        "threads say what they wait for, and the policy listens"
    } else {
        "threads say what they wait for; this policy does not listen"
    }
}

/// The disturbances that the scenario asks for.
fn disturbances(perturb: &Perturb) -> String {
    let mut all = Vec::new();
    if perturb.spurious_one_in > 0 {
        let one_in = perturb.spurious_one_in;
        all.push(format!("1 in {one_in} waits returns early for no reason"));
    }
    if perturb.delay_one_in > 0 {
        let (one_in, most) = (perturb.delay_one_in, perturb.delay_max);
        all.push(format!("1 in {one_in} steps takes up to {most} longer"));
    }
    if perturb.tick_late_max > Nanos::ZERO {
        all.push(format!("ticks are up to {} late", perturb.tick_late_max));
    }
    if perturb.stolen_every > Nanos::ZERO {
        let (every, most) = (perturb.stolen_every, perturb.stolen_max);
        all.push(format!("a CPU is gone every {every} for up to {most}"));
    }
    all.join("; ")
}

pub(super) fn threads(outcome: &SimulationOutcome) -> Table {
    let mut table = output::table();
    let has_quota = outcome.ran.report.quota.is_some();
    let only = |word: &str| has_quota.then(|| word.to_owned());
    let header = ["tid", "thread", "ran", "at a time", "runnable"].map(str::to_owned);
    let header = header.into_iter().chain(only("throttled"));
    table.set_header(header.chain(["slept", "switches: voluntary", "involuntary"].map(Into::into)));
    let threads = outcome.ran.report.threads.iter().enumerate();
    for (number, thread) in threads.take(ROWS_MAX) {
        let spent = thread.spent;
        let ready = [
            (number + 1).to_string(),
            thread.name.clone(),
            spent.run.to_string(),
            at_a_time(thread).to_string(),
            spent.runnable.to_string(),
        ];
        let ready = ready.into_iter().chain(only(&spent.throttled.to_string()));
        table.add_row(ready.chain([
            spent.sleep.to_string(),
            thread.voluntary.to_string(),
            thread.involuntary.to_string(),
        ]));
    }
    align_right(&mut table, 2);
    table
}

/// How long a thread ran from getting a CPU to losing it, on the average.
fn at_a_time(thread: &ThreadReport) -> Nanos {
    Nanos(thread.spent.run.0 / thread.stints.max(1))
}

pub(super) fn span_table(job: &Job, outcome: &SimulationOutcome) -> Table {
    let mut table = output::table();
    let spans = spans(job, outcome);
    if spans.is_empty() {
        return table;
    }
    let mut header = vec!["measured", "thread", "count", "mean", "p50", "p99", "max"];
    header.extend(job.machine.tic.map(|_| "mean in tics"));
    table.set_header(header);
    for span in spans.iter().take(ROWS_MAX) {
        let Times {
            mean,
            p50,
            p99,
            max,
        } = span.times;
        let mut row = vec![
            span.name.clone(),
            span.thread.clone(),
            span.count.to_string(),
        ];
        row.extend([mean, p50, p99, max].map(|ns| Nanos(ns).to_string()));
        row.extend(job.machine.tic.map(|tic| {
            let thousandths = tic.thousandths(Nanos(mean));
            format!("{}.{}", thousandths / 1000, thousandths % 1000 / 100)
        }));
        table.add_row(row);
    }
    align_right(&mut table, 2);
    table
}

pub(super) fn clusters(job: &Job, outcome: &SimulationOutcome) -> Table {
    let mut table = output::table();
    table.set_header(["cluster", "busy", "idle", "energy", "hottest"]);
    let unknown = || "unknown".to_owned();
    for (cluster, knows) in outcome.ran.report.clusters.iter().zip(knows_power(job)) {
        let energy = cluster.microjoules;
        table.add_row([
            cluster.name.clone(),
            busy(cluster).to_string(),
            cluster.idle.to_string(),
            match knows {
                true if energy >= 1_000_000 => format!("{:.3} J", energy as f64 / 1e6),
                true => format!("{:.3} mJ", energy as f64 / 1e3),
                false => unknown(),
            },
            match cluster.hottest_millidegrees {
                Some(degrees) => format!("{:.1} °C", degrees as f64 / 1000.0),
                None => unknown(),
            },
        ]);
    }
    align_right(&mut table, 1);
    table
}

pub(super) fn checks(outcome: &SimulationOutcome) -> Table {
    let mut table = output::table();
    table.set_header(["check", "", "of what"]);
    for check in &outcome.checks {
        let holds = if check.ok { "holds" } else { "FAILED" };
        table.add_row([check.name, holds, &check.note]);
    }
    table
}

fn align_right(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A list for people.
pub(super) fn list_text(list: &List) -> Table {
    let mut table = output::table();
    table.set_header(&list.columns);
    table.add_rows(&list.rows);
    table
}

/// A list as an object with one key, the kind of its entries.
pub(super) fn list_json(list: &List) -> Value {
    let row = |row: &Vec<String>| {
        let columns = list.columns.iter().zip(row);
        let entry =
            |(column, value): (&&str, &String)| ((*column).to_owned(), value.clone().into());
        Value::Object(columns.map(entry).collect::<Map<_, _>>())
    };
    let rows: Vec<Value> = list.rows.iter().map(row).collect();
    Value::Object([(list.what.to_owned(), rows.into())].into_iter().collect())
}
