//! The workspace as every task needs to know it: where it is, where builds go, its packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand, Package};

/// The workspace that xtask was called in.
pub(crate) struct Context {
    /// Folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds (`CARGO_TARGET_DIR` is honoured).
    pub(crate) target: PathBuf,
    /// The workspace's own packages as cargo sees them; no outside package.
    pub(crate) metadata: Metadata,
    /// Whether a run of stages has those that take part with `--all` only.
    pub(crate) all_stages: bool,
}

impl Context {
    /// Asks cargo about the workspace around the current folder.
    pub(crate) fn load() -> Result<Context, String> {
        let metadata = MetadataCommand::new()
            .no_deps()
            .exec()
            .map_err(|error| format!("cargo cannot read this workspace: {error}"))?;
        Ok(Context {
            root: metadata.workspace_root.clone().into_std_path_buf(),
            target: metadata.target_directory.clone().into_std_path_buf(),
            metadata,
            all_stages: false,
        })
    }

    /// A command in the root folder, without the variables that `cargo run` left for xtask itself
    /// (a cargo below would rebuild what depends on them).
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .stdin(std::process::Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_of_cargo_run) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Replaces `{target}` by the target folder and `{host}` by the compiler's own triple.
    pub(crate) fn fill_in(&self, text: &str) -> Result<String, String> {
        let mut text = text.replace("{target}", &self.target.display().to_string());
        if text.contains("{host}") {
            text = text.replace("{host}", &host()?);
        }
        Ok(text)
    }

    /// `path` as seen from the root, for messages.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

/// Whether the manifest lets the package be published.
pub(crate) fn is_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|to| !to.is_empty())
}

/// The triple of the machine that rustc runs on.
pub(crate) fn host() -> Result<String, String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .map_err(|error| format!("rustc does not start: {error}"))?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

fn is_of_cargo_run(name: &str) -> bool {
    name == "CARGO"
        || [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings of the person (target folder, colours) stay; what describes xtask goes.
    #[test]
    fn only_the_variables_of_cargo_run_are_dropped() {
        assert!(is_of_cargo_run("CARGO_PKG_NAME"));
        assert!(is_of_cargo_run("CARGO_MANIFEST_DIR"));
        assert!(!is_of_cargo_run("CARGO_TARGET_DIR"));
        assert!(!is_of_cargo_run("CARGO_HOME"));
        assert!(!is_of_cargo_run("CARGO_TERM_COLOR"));
    }
}
