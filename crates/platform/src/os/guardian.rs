//! A process that tidies up after this one, however this one ends.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub use crate::error::NoGuardian;

/// A shell that runs a command when this process has ended, even by `kill -9`, or when the guardian is
/// dropped. It waits for the end of a pipe that only this process holds open.
#[derive(Debug)]
pub struct Guardian(Child);

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
        shell.spawn().map(Guardian).map_err(NoGuardian)
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
