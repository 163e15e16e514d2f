//! Finding the traces of a fleet.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::labels::{LabelPattern, SIDECAR};
use super::{Labels, TraceFile};
use crate::FleetError;

/// The traces that were found, and what else was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// In the order of their keys.
    pub files: Vec<TraceFile>,
    /// Folders and files that could not be looked at, each with the reason.
    pub unseen: Vec<String>,
}

/// The traces below a folder, or those that a pattern such as `traces/**/*.pftrace*` is of. Of a folder all
/// files are traces but those with names that begin with a dot, and sidecar files. Links to files are
/// followed, and links to folders are not.
///
/// # Errors
/// If there is no such folder, if the pattern is none, or if no trace is there.
pub fn find(given: &str, labels: Option<&LabelPattern>) -> Result<Traces, FleetError> {
    let mut traces = Traces::default();
    let path = Path::new(given);
    if path.is_dir() {
        below(path, path, labels, &mut traces);
    } else if path.is_file() {
        let folder = path.parent().unwrap_or(Path::new(""));
        traces.add(folder, path, labels);
    } else {
        by_pattern(given, labels, &mut traces)?;
    }
    traces.files.sort_by(|a, b| a.key.cmp(&b.key));
    if traces.files.is_empty() {
        let why = traces
            .unseen
            .first()
            .map_or_else(String::new, |why| format!(" ({why})"));
        return Err(FleetError::input(format!(
            "{given}: no traces are there{why}; give a folder with traces, or a pattern such as \
             'traces/**/*.pftrace*'"
        )));
    }
    Ok(traces)
}

/// All files below `folder`, which is `root` or in it.
fn below(root: &Path, folder: &Path, labels: Option<&LabelPattern>, traces: &mut Traces) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(why) => return traces.unseen.push(format!("{}: {why}", folder.display())),
    };
    for entry in entries {
        let (path, kind) = match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
            Ok(found) => found,
            Err(why) => {
                traces.unseen.push(format!("{}: {why}", folder.display()));
                continue;
            }
        };
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with('.') || name.ends_with(SIDECAR) {
            continue;
        }
        if kind.is_dir() {
            below(root, &path, labels, traces);
        } else {
            traces.add(root, &path, labels);
        }
    }
}

fn by_pattern(
    given: &str,
    labels: Option<&LabelPattern>,
    traces: &mut Traces,
) -> Result<(), FleetError> {
    let is_pattern = given.contains(['*', '?', '[']);
    if !is_pattern {
        return Err(FleetError::input(format!(
            "{given}: there is no such folder; give one with traces, or a pattern such as \
             'traces/**/*.pftrace*'"
        )));
    }
    let found = glob::glob(given)
        .map_err(|why| FleetError::input(format!("{given}: is no pattern of paths: {why}")))?;
    let root = fixed_part(Path::new(given));
    for path in found {
        match path {
            Ok(path) if path.is_dir() || path.to_string_lossy().ends_with(SIDECAR) => {}
            Ok(path) => traces.add(&root, &path, labels),
            Err(why) => traces
                .unseen
                .push(format!("{}: {}", why.path().display(), why.error())),
        }
    }
    Ok(())
}

/// The folders before the first component that is a pattern.
fn fixed_part(pattern: &Path) -> PathBuf {
    let is_fixed = |component: &Component<'_>| {
        let text = component.as_os_str().to_string_lossy();
        !text.contains(['*', '?', '['])
    };
    pattern.components().take_while(is_fixed).collect()
}

impl Traces {
    fn add(&mut self, root: &Path, path: &Path, labels: Option<&LabelPattern>) {
        let about = match fs::metadata(path) {
            Ok(about) => about,
            Err(why) => return self.unseen.push(format!("{}: {why}", path.display())),
        };
        // Pipes and devices have no end, and links to folders may lead back.
        if !about.is_file() {
            return;
        }
        let key = path.strip_prefix(root).unwrap_or(path);
        let parts: Vec<_> = key.iter().map(|part| part.to_string_lossy()).collect();
        let key = parts.join("/");
        self.files.push(TraceFile {
            labels: labels.map_or_else(Labels::default, |pattern| pattern.labels(&key)),
            key,
            path: path.to_owned(),
            size: about.len(),
        });
    }
}
