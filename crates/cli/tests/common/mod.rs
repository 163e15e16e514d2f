//! Running the command as its users do.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's folder, where commands run.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run: exit code, standard output, standard error.
pub(crate) fn paceline(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    let output = command
        .current_dir(root())
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// The output of a run that reports no error.
pub(crate) fn fine(arguments: &[&str]) -> String {
    let (code, out, err) = paceline(arguments);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    out
}
