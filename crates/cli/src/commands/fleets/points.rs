//! `paceline sweep`: many simulated runs as tables.

use std::path::{Path, PathBuf};

use clap::Args;
use console::Failure;
use fleet::{DataSet, Kind, Point, Sweep};

use super::plan::SweepPlan;
use super::summary::DataSetReport;
use super::{SharedBar, failure};

/// Run a scenario with many seeds, machines and policies, and write a Parquet table
///
/// The file says what is varied; every combination is a point, which is run as
/// `simulate` does, as many at a time as there are CPUs. OUT is a folder with the
/// Parquet files of two tables: `points`, a row for each point with its frames,
/// times, energy and trace hash, and `spans`, what the scenario measures. A point
/// that fails is a row with the error and the command that repeats it.
///
/// The same command again goes on with what is missing: after an interruption, or
/// with more seeds. A point whose scenario or machine was edited is another one.
///
/// Examples:
///   paceline sweep policies.toml --out policies.parquet
///   duckdb -c "SELECT policy, avg(frame_p99_ns) FROM 'policies.parquet/points/*'
///              GROUP BY policy"
#[derive(Args)]
#[command(after_long_help = AFTER)]
#[command(verbatim_doc_comment)]
pub(crate) struct SweepArguments {
    /// The file that says what is varied
    #[arg(value_name = "F.toml")]
    sweep: PathBuf,
    /// The folder to write, or to continue
    #[arg(long, value_name = "F.parquet")]
    out: PathBuf,
    /// How many runs at a time, instead of one for each CPU
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The file and the keys of `--json`, at the end of the help.
const AFTER: &str = "\
FILE, each key one value or a list; all but scenario may be left out:
  scenario = \"galaxy-s22-inversion\"
                      names, or files beside this one
  machine = [\"galaxy-s22\", \"vm-2\"]
  policy = [\"eevdf-6.6\", \"eevdf-6.18\"]
  workers = [1, 3]    of the scenario's job system
  hints = [false, true]
  seed = \"1-1000\"     a number, or a range, both ends included

JSON (--json), one object:
  out, rows, tables{points, spans}
  before, added       how many points were there, and came
  failed              how many have an error
  failures[]{key, error, again}
                      the first of them";

/// The longest file.
const BYTES_MAX: u64 = 1 << 20;

pub(in crate::commands) fn run(arguments: SweepArguments) -> Result<(), Failure> {
    let sweep = read(&arguments.sweep)?;
    let folder = arguments.sweep.parent().unwrap_or(Path::new(""));
    let plan = SweepPlan::new(&sweep, folder)?;
    let mut set = DataSet::open(&arguments.out, Kind::Points, "").map_err(failure)?;
    let points = plan.points().iter();
    let new: Vec<&Point> = points.filter(|point| !set.has(&point.key())).collect();
    let worked = fleet::run(
        &new,
        arguments.threads.map(usize::from),
        &mut set,
        |point| plan.run(point),
        |point, why| SweepPlan::broken(point, why),
        &SharedBar::new("points", new.len()),
    );
    let worked = worked.map_err(failure)?;
    let report = DataSetReport::of(&arguments.out, &set, &worked, Vec::new())?;
    report.print(arguments.json, "point")
}

fn read(path: &Path) -> Result<Sweep, Failure> {
    let shown = path.display();
    let unreadable =
        |why: std::io::Error| Failure::Usage(format!("{shown}: cannot be read: {why}"));
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() || about.len() > BYTES_MAX {
        return Err(Failure::Usage(format!(
            "{shown}: is no file that says what is varied; see paceline sweep --help"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Sweep::parse(&shown.to_string(), &text).map_err(failure)
}
