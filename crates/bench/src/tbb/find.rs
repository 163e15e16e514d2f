//! The path of the runner: from `cargo xtask peers`, unless the environment has another.

use std::path::{Path, PathBuf};

use console::Failure;

/// The variable with the path of another runner.
const VARIABLE: &str = "PACELINE_PEER_TBB";

/// The path below cargo's target folder (`xtask/src/peers.rs` has the same).
const BELOW_TARGET: &str = "peers/paceline-peer-tbb";

/// The message if there is none.
pub(super) const NOT_BUILT: &str = "not built: run `cargo xtask peers`, which needs a C++ compiler \
                                    and oneTBB (Debian: libtbb-dev)";

/// The runner's path; `None` if it was not built.
///
/// # Errors
/// If the environment names one that does not exist.
pub(super) fn runner() -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(path);
        if path.is_file() {
            return Ok(Some(path));
        }
        return Err(Failure::usage(format!(
            "{VARIABLE}: {} is not a file; `cargo xtask peers` builds the runner",
            path.display()
        )));
    }
    let program = std::env::current_exe().ok();
    let path = program.as_deref().and_then(beside);
    Ok(path.filter(|path| path.is_file()))
}

/// The runner's path if the program's is cargo's: `target/PROFILE/paceline-bench`.
fn beside(program: &Path) -> Option<PathBuf> {
    Some(program.parent()?.parent()?.join(BELOW_TARGET))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the runner is looked for beside the profile's folder. Method: a path as cargo makes it, and one
    /// that is too short.
    #[test]
    fn the_runner_is_beside_the_profile() {
        let found = beside(Path::new("t/target/release/paceline-bench")).unwrap();
        assert_eq!(found, Path::new("t/target/peers/paceline-peer-tbb"));
        assert_eq!(beside(Path::new("/")), None);
    }
}
