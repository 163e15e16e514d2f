//! Perfetto's own trace processor, as the judge of our files and of our accounts.
//!
//! It comes as WebAssembly with Perfetto's user interface. `cargo xtask oracle` fetches it; it runs under
//! Node. Without it, a test that asks for it prints one line and passes.

mod critical_path;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names another folder with the same files.
const VARIABLE: &str = "PACELINE_TRACE_PROCESSOR";

/// Below cargo's target folder (`xtask/src/oracle.rs` has the same).
const FOLDER: &str = "oracle/perfetto-v52.0";

/// The folder of the trace processor: the one that the environment names, or one above the program of the
/// tests.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    named.or_else(|| {
        let tests = std::env::current_exe().ok()?;
        let mut folders = tests.ancestors().map(|above| above.join(FOLDER));
        folders.find(|folder| folder.is_dir())
    })
}

/// The rows of each query, their values separated by tabs; `None`, and a line that says why, if there is no
/// trace processor.
///
/// # Panics
/// If the trace cannot be read, or a query is wrong.
pub(crate) fn ask(trace: &[u8], queries: &[&str]) -> Option<Vec<Vec<String>>> {
    let Some(folder) = folder() else {
        eprintln!(
            "skipped: Perfetto's trace processor is not there; `cargo xtask oracle` fetches it"
        );
        return None;
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), trace).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/oracle.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(folder).arg(file.path()).args(queries);
    let output = match node.output() {
        Ok(output) => output,
        Err(why) => {
            eprintln!("skipped: cannot run node: {why}");
            return None;
        }
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut answers = vec![Vec::new()];
    for line in text.lines() {
        match line {
            "" => answers.push(Vec::new()),
            row => answers.last_mut().unwrap().push(row.to_owned()),
        }
    }
    answers.pop();
    assert_eq!(answers.len(), queries.len());
    Some(answers)
}
