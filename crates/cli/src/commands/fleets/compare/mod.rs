//! `paceline fleet compare`: which causes and inversions grew between two builds.

mod page;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use console::{Failure, output};
use fleet::{Change, Changes, CompareOptions, Direction, LEAST_TRACES, Side};
use serde::Serialize;

use super::failure;

/// Compare two fleets, or two builds of one: which causes and inversions grew
///
/// Of each cause and inversion the time for each wait is compared, on average over
/// all waits of one name, and B's is told against A's. Intervals are those of a
/// bootstrap that draws whole traces, since waits of one trace are alike. If
/// anything grew beyond chance, the exit code is 1.
///
/// Examples:
///   paceline fleet compare before.parquet after.parquet
///   paceline fleet compare fleet.parquet --builds 1.4 1.5 --report grew.html
#[derive(Args)]
#[command(after_long_help = AFTER)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompareArguments {
    /// What `paceline fleet --out` has written
    #[arg(value_name = "A.parquet")]
    a: PathBuf,
    /// The same of the other traces; without it, two builds of A are compared
    #[arg(value_name = "B.parquet", required_unless_present = "builds")]
    b: Option<PathBuf>,
    /// Only the traces of these builds: of A the first one, of B the second
    #[arg(long, value_names = ["BUILD", "BUILD"], num_args = 2)]
    builds: Option<Vec<String>>,
    /// Only the traces of this device
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// How many times traces are drawn
    #[arg(long, value_name = "N", default_value_t = CompareOptions::default().draws)]
    draws: usize,
    /// The seed of the draws
    #[arg(long, value_name = "N", default_value_t = CompareOptions::default().seed)]
    seed: u64,
    /// Write all rows as a Parquet file
    #[arg(long, value_name = "F.parquet")]
    out: Option<PathBuf>,
    /// Write a page for a browser
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What the command line does not say, at the end of the help.
const AFTER: &str = "\
VERDICTS
  grew, shrank  by more than chance makes of the greatest of all rows: of twenty
                comparisons in which nothing changed, one says so of anything
  same          chance alone may have done it
  few           fewer than 8 traces of A or of B have such waits: no interval

JSON (--json), one object:
  a, b{path, build, traces}
  device, draws, seed, method, out, report
  grew, shrank, same, few
                how many rows have each verdict
  rows[]{what, process, wait_kind, wait_group, kind, who, traces[], waits[],
         a_ns, b_ns, change_ns, low_ns, high_ns, growth, verdict}
                times are nanoseconds for each wait, on average; low_ns and
                high_ns are the interval of the change, 95 % for its row alone";

/// The object of `--json`.
#[derive(Serialize)]
struct ComparedFleets<'a> {
    a: SideJson<'a>,
    b: SideJson<'a>,
    device: Option<&'a str>,
    draws: usize,
    seed: u64,
    method: String,
    out: Option<&'a Path>,
    report: Option<&'a Path>,
    grew: usize,
    shrank: usize,
    same: usize,
    few: usize,
    rows: Vec<FleetChangeJson<'a>>,
}

#[derive(Serialize)]
struct SideJson<'a> {
    path: &'a Path,
    build: Option<&'a str>,
    traces: usize,
}

#[derive(Serialize)]
struct FleetChangeJson<'a> {
    what: &'static str,
    process: Option<&'a str>,
    wait_kind: &'a str,
    wait_group: &'a str,
    kind: Option<&'a str>,
    who: Option<&'a str>,
    traces: [usize; 2],
    waits: [u64; 2],
    a_ns: Option<f64>,
    b_ns: Option<f64>,
    change_ns: Option<f64>,
    low_ns: Option<f64>,
    high_ns: Option<f64>,
    growth: Option<f64>,
    verdict: &'static str,
}

/// What is compared, and what came of it.
struct Compared<'a> {
    sides: &'a [Side; 2],
    device: Option<&'a str>,
    changes: &'a Changes,
}

pub(super) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    let (out, report) = (arguments.out.as_deref(), arguments.report.as_deref());
    let b = arguments.b.as_ref().unwrap_or(&arguments.a);
    let side = |path: &PathBuf, at: usize| Side {
        path: path.clone(),
        build: arguments.builds.as_ref().map(|builds| builds[at].clone()),
    };
    let sides = [side(&arguments.a, 0), side(b, 1)];
    let options = CompareOptions {
        device: arguments.device.clone(),
        draws: arguments.draws,
        seed: arguments.seed,
    };
    let changes = written(&sides, &options, (out, report))?;
    let compared = Compared {
        sides: &sides,
        device: options.device.as_deref(),
        changes: &changes,
    };
    if arguments.json {
        output::print_json(&compared.json(out, report))?;
    } else {
        output::print(compared.text())?;
    }
    let grew = changes.with(Direction::Grew);
    let names: BTreeSet<&str> = grew.map(|row| row.wait_group.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Err(Failure::Failed(format!(
        "waits, causes or inversions grew beyond chance: in {}",
        names.join(", ")
    )))
}

/// Compares two fleets, and writes the table and the page that are asked for.
pub(crate) fn written(
    sides: &[Side; 2],
    options: &CompareOptions,
    (out, report): (Option<&Path>, Option<&Path>),
) -> Result<Changes, Failure> {
    output::check_files(&[], &[("--out", out), ("--report", report)])?;
    let changes = fleet::compare(&sides[0], &sides[1], options).map_err(failure)?;
    if let Some(out) = out {
        changes.write(out).map_err(failure)?;
    }
    if let Some(report) = report {
        let compared = Compared {
            sides,
            device: options.device.as_deref(),
            changes: &changes,
        };
        page::write(report, &compared)?;
    }
    Ok(changes)
}

impl Compared<'_> {
    fn count(&self, direction: Direction) -> usize {
        self.changes.with(direction).count()
    }

    fn json<'a>(&'a self, out: Option<&'a Path>, report: Option<&'a Path>) -> ComparedFleets<'a> {
        let side = |at: usize| SideJson {
            path: &self.sides[at].path,
            build: self.sides[at].build.as_deref(),
            traces: self.changes.traces[at],
        };
        ComparedFleets {
            a: side(0),
            b: side(1),
            device: self.device,
            draws: self.changes.draws,
            seed: self.changes.seed,
            method: self.method(),
            out,
            report,
            grew: self.count(Direction::Grew),
            shrank: self.count(Direction::Shrank),
            same: self.count(Direction::Same),
            few: self.count(Direction::Few),
            rows: self.changes.rows.iter().map(FleetChangeJson::of).collect(),
        }
    }

    /// How changes were told from chance.
    fn method(&self) -> String {
        format!(
            "Differences of the mean time for each wait, B less A. Each interval is a studentized \
             bootstrap's over {} draws of whole traces, seed {}, at a level of 95 % for its row alone; what \
             grew or shrank did so at that level for all rows together. A row with fewer than \
             {LEAST_TRACES} traces on a side has none.",
            self.changes.draws, self.changes.seed
        )
    }
}

impl<'a> FleetChangeJson<'a> {
    fn of(row: &'a Change) -> FleetChangeJson<'a> {
        let [a_ns, b_ns] = row.mean_ns;
        FleetChangeJson {
            what: row.of.word(),
            process: row.process.as_deref(),
            wait_kind: &row.wait_kind,
            wait_group: &row.wait_group,
            kind: row.kind.as_deref(),
            who: row.who.as_deref(),
            traces: row.traces,
            waits: row.waits,
            a_ns,
            b_ns,
            change_ns: row.change_ns(),
            low_ns: row.interval_ns.map(|[low, _]| low),
            high_ns: row.interval_ns.map(|[_, high]| high),
            growth: row.growth(),
            verdict: row.direction.word(),
        }
    }
}
