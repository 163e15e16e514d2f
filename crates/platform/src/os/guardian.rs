//! Somebody who tidies up after this process, however it ends.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that runs a command when this process has ended, even by `kill -9`, or when the guardian is
/// dropped. It waits for the end of a pipe that only this process holds open.
#[derive(Debug)]
pub struct Guardian(Child);

/// No shell could be started, so that nobody could be sure that the command will run.
#[derive(Debug)]
pub struct NoGuardian(String);

impl fmt::Display for NoGuardian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start sh, which would tidy up: {}", self.0)
    }
}

impl std::error::Error for NoGuardian {}

impl Guardian {
    /// A guardian that will run this command of `sh` in that folder.
    ///
    /// # Errors
    /// If no shell can be started.
    pub fn new(command: &str, folder: &Path) -> Result<Guardian, NoGuardian> {
        let script = format!("trap '' INT TERM HUP; cat; {{ {command}; }} 2>&-");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(folder);
        // Not of the terminal's foreground group: what is typed there is not for the guardian.
        shell.stdin(Stdio::piped()).process_group(0);
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        let started = shell.spawn();
        started
            .map(Guardian)
            .map_err(|error| NoGuardian(error.to_string()))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // Closes the pipe.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the guardian acts when it is dropped, and not before, in its folder. Method: it makes a file.
    #[test]
    fn the_guardian_acts_at_the_end() {
        let folder = std::env::temp_dir().join(format!("paceline-guardian-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let guardian = Guardian::new("echo yes > done", &folder).unwrap();
        assert!(!folder.join("done").exists());
        drop(guardian);
        let done = std::fs::read_to_string(folder.join("done")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(done, "yes\n");
    }
}
