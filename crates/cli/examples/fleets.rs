//! What `cargo xtask fleets` measures fleets against: the reader alone, reading and explaining, and one trace
//! as tables. It prints how many traces and rows it had.
//!
//! ```text
//! fleets read DIR THREADS | explain DIR THREADS | diagnose FILE ROUNDS
//! ```
//!
//! Without words it explains the small traces of `testdata/pairs`.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use fleet::{Labels, TraceOptions, find, unit_of_file};
use paceline_cli::face;
use trace::Serial;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["read", folder, threads] => on_threads(folder, threads, |path| {
            let file = File::open(path).map_err(|why| why.to_string())?;
            let name = path.to_string_lossy();
            let read = trace::read::read_on(file, &name, &Serial).map_err(|why| why.to_string())?;
            Ok(read.kernel.len())
        }),
        ["explain", folder, threads] => explain(folder, threads),
        [] => explain("testdata/pairs", "2"),
        ["diagnose", file, rounds] => diagnose(Path::new(file), rounds),
        _ => Err("read DIR THREADS | explain DIR THREADS | diagnose FILE ROUNDS".to_owned()),
    };
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("fleets: {why}");
            ExitCode::from(2)
        }
    }
}

/// Does `work` with each trace of a folder, on so many threads.
fn on_threads(
    folder: &str,
    threads: &str,
    work: impl Fn(&Path) -> Result<usize, String> + Sync,
) -> Result<String, String> {
    let threads: usize = threads.parse().map_err(|_| "THREADS is a number")?;
    let files = find(folder, None).map_err(|why| why.to_string())?.files;
    let js = paceline::Builder::new().workers(threads.saturating_sub(1));
    let js = js.build().map_err(|why| why.to_string())?;
    let each = js.over(&files[..]).map(|file| work(&file.path));
    let sum = each.into_iter().sum::<Result<usize, String>>()?;
    Ok(format!("{} traces, {sum}", files.len()))
}

/// The rows of each trace, as a fleet makes them, and no Parquet.
fn explain(folder: &str, threads: &str) -> Result<String, String> {
    let options = TraceOptions::default();
    let files = find(folder, None).map_err(|why| why.to_string())?.files;
    let by_path: std::collections::BTreeMap<_, _> = files
        .iter()
        .map(|file| (file.path.as_path(), file))
        .collect();
    on_threads(folder, threads, |path| {
        let unit = unit_of_file(by_path[path], &options);
        Ok(unit.rows.iter().map(fleet::Rows::len).sum())
    })
}

/// The seconds that one trace takes, as tables, as often as it is asked for; one line for each.
fn diagnose(file: &Path, rounds: &str) -> Result<String, String> {
    let rounds: usize = rounds.parse().map_err(|_| "ROUNDS is a number")?;
    // What `paceline.diagnose` has for its `waits`.
    let options = TraceOptions {
        waits: 1000,
        ..TraceOptions::default()
    };
    let mut lines = Vec::new();
    for _ in 0..rounds {
        let begin = Instant::now();
        let unit = face::trace_file(file, &Labels::default(), &options).map_err(|why| why.text)?;
        let rows: usize = unit.rows.iter().map(fleet::Rows::len).sum();
        let tables: Vec<_> = unit.rows.into_iter().map(fleet::Rows::finish).collect();
        if rows == 0 || tables.is_empty() {
            return Err(format!("{}: has no rows", file.display()));
        }
        lines.push(begin.elapsed().as_secs_f64().to_string());
    }
    Ok(lines.join("\n"))
}
