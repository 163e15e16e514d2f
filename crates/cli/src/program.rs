//! This program once more, as a process of its own.

use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::sync::OnceLock;

/// What starts it, and its first arguments, where that is not the file of this process.
static STARTED_BY: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says how this program is started: that of a face is a process of another program. Only the first call
/// counts, and no words say nothing.
pub(crate) fn is_started_by(words: Vec<OsString>) {
    if !words.is_empty() {
        let _ = STARTED_BY.set(words);
    }
}

/// A command that starts this program, without arguments of its own.
///
/// # Errors
/// The file of this process is not known.
pub(crate) fn once_more() -> io::Result<Command> {
    let Some((program, first)) = STARTED_BY.get().and_then(|words| words.split_first()) else {
        return std::env::current_exe().map(Command::new);
    };
    let mut command = Command::new(program);
    command.args(first);
    Ok(command)
}
