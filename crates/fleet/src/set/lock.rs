//! One process at a time writes a data set.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::FleetError;

const NAME: &str = "_lock";

/// A file with the number of the process that writes. It goes with its owner; one that a killed process has
/// left is taken over where `/proc` tells that there is no such process any more.
#[derive(Debug)]
pub(super) struct SetLock {
    path: PathBuf,
}

impl SetLock {
    /// Takes the lock of the data set in this folder.
    pub(super) fn take(folder: &Path) -> Result<SetLock, FleetError> {
        let path = folder.join(NAME);
        for is_first in [true, false] {
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return SetLock::signed(file, path),
                Err(why) if why.kind() != ErrorKind::AlreadyExists => {
                    return Err(FleetError::of_file("write", &path, why));
                }
                Err(_) if is_first && is_left_over(&path) => {
                    fs::remove_file(&path)
                        .map_err(|why| FleetError::of_file("remove", &path, why))?;
                }
                Err(_) => break,
            }
        }
        let owner = fs::read_to_string(&path).unwrap_or_default();
        Err(FleetError::input(format!(
            "{}: process {} writes this data set; wait for it, or remove {} if it is gone",
            folder.display(),
            owner.trim(),
            path.display()
        )))
    }

    fn signed(mut file: File, path: PathBuf) -> Result<SetLock, FleetError> {
        let signed = writeln!(file, "{}", std::process::id());
        let lock = SetLock { path };
        signed.map_err(|why| FleetError::of_file("write", &lock.path, why))?;
        Ok(lock)
    }
}

/// Whether the process that made this file is gone. Without `/proc` nothing tells.
fn is_left_over(path: &Path) -> bool {
    let owner = fs::read_to_string(path).unwrap_or_default();
    let Ok(owner) = owner.trim().parse::<u32>() else {
        return false;
    };
    let processes = Path::new("/proc");
    processes.join("self").exists()
        && (owner != std::process::id())
        && !processes.join(owner.to_string()).exists()
}

impl Drop for SetLock {
    fn drop(&mut self) {
        // If it cannot be removed, the next process says which file it is.
        let _ = fs::remove_file(&self.path);
    }
}
