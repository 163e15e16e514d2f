//! Device and build of a trace: from its path, or from a sidecar file.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;

use crate::FleetError;

/// What is told of a trace beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    /// The device that it was recorded on.
    pub device: Option<String>,
    /// The build that it was recorded of.
    pub build: Option<String>,
}

impl Labels {
    /// These, and where they say nothing, others.
    pub(super) fn or(self, others: &Labels) -> Labels {
        Labels {
            device: self.device.or_else(|| others.device.clone()),
            build: self.build.or_else(|| others.build.clone()),
        }
    }
}

/// The end of the name of a sidecar file, after the whole name of its trace.
pub(super) const SIDECAR: &str = ".labels.json";
/// A sidecar file is short.
const SIDECAR_BYTES: u64 = 64 << 10;

/// What the text of a sidecar file says; `shown` is its name in errors.
fn told(text: &str, shown: &str) -> Result<Labels, String> {
    serde_json::from_str(text).map_err(|why| {
        format!("{shown}: {why}; give {{\"device\": \"…\", \"build\": \"…\"}} or one of them")
    })
}

/// The same of its bytes, which were fetched.
pub(super) fn sidecar_of_bytes(bytes: &[u8], trace: &str) -> Result<Labels, String> {
    let shown = format!("{trace}{SIDECAR}");
    if bytes.len() as u64 > SIDECAR_BYTES {
        return Err(format!(
            "{shown}: has {} bytes; give a short one",
            bytes.len()
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|why| format!("{shown}: {why}"))?;
    told(text, &shown)
}

/// What the sidecar file of this trace says; nothing if there is none.
pub(super) fn sidecar(trace: &Path) -> Result<Labels, String> {
    let mut path = trace.as_os_str().to_owned();
    path.push(SIDECAR);
    let path = Path::new(&path);
    let shown = path.display();
    let size = match fs::metadata(path) {
        Ok(about) => about.len(),
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Labels::default()),
        Err(why) => return Err(format!("{shown}: cannot be read: {why}")),
    };
    if size > SIDECAR_BYTES {
        return Err(format!("{shown}: has {size} bytes; give a short one"));
    }
    let text = fs::read_to_string(path).map_err(|why| format!("{shown}: cannot be read: {why}"))?;
    told(&text, &shown.to_string())
}

/// A pattern of the beginnings of paths, such as `{device}/{build}/`, that names their parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPattern(Vec<PatternPiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    Text(String),
    Device,
    Build,
    /// Any text.
    Any,
}

impl FromStr for LabelPattern {
    type Err = FleetError;

    fn from_str(text: &str) -> Result<LabelPattern, FleetError> {
        let wrong = |what: &str| {
            FleetError::input(format!(
                "{text:?}: {what}; give a pattern of paths with {{device}}, {{build}} and *, such as \
                 {{device}}/{{build}}/"
            ))
        };
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '*']) {
            let (plain, special) = rest.split_at(at);
            if !plain.is_empty() {
                pieces.push(PatternPiece::Text(plain.to_owned()));
            }
            let (piece, len) = if special.starts_with('*') {
                (PatternPiece::Any, 1)
            } else if special.starts_with("{device}") {
                (PatternPiece::Device, "{device}".len())
            } else if special.starts_with("{build}") {
                (PatternPiece::Build, "{build}".len())
            } else {
                return Err(wrong("has a { that begins neither {device} nor {build}"));
            };
            pieces.push(piece);
            rest = &special[len..];
        }
        if !rest.is_empty() {
            pieces.push(PatternPiece::Text(rest.to_owned()));
        }
        let count = |piece| pieces.iter().filter(|it| **it == piece).count();
        match (count(PatternPiece::Device), count(PatternPiece::Build)) {
            (0, 0) => Err(wrong("names neither")),
            (0 | 1, 0 | 1) => Ok(LabelPattern(pieces)),
            _ => Err(wrong("names one of them twice")),
        }
    }
}

impl fmt::Display for LabelPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                PatternPiece::Text(text) => f.write_str(text)?,
                PatternPiece::Device => f.write_str("{device}")?,
                PatternPiece::Build => f.write_str("{build}")?,
                PatternPiece::Any => f.write_str("*")?,
            }
        }
        Ok(())
    }
}

impl LabelPattern {
    /// What the beginning of this path says; nothing if it is not as the pattern is. A name is as short as it
    /// can be and has no `/`; so does what a `*` stands for.
    pub fn labels(&self, path: &str) -> Labels {
        let mut labels = Labels::default();
        fits(&self.0, path, &mut labels);
        labels
    }
}

fn fits(pieces: &[PatternPiece], path: &str, labels: &mut Labels) -> bool {
    let Some((piece, others)) = pieces.split_first() else {
        return true;
    };
    if let PatternPiece::Text(text) = piece {
        let rest = path.strip_prefix(text.as_str());
        return rest.is_some_and(|rest| fits(others, rest, labels));
    }
    let longest = path.find('/').unwrap_or(path.len());
    // A name at the end of the pattern is a whole component.
    let shortest = if others.is_empty() { longest } else { 1 };
    let mut ends = (shortest..=longest).filter(|&end| end > 0 && path.is_char_boundary(end));
    let end = ends.find(|&end| fits(others, &path[end..], labels));
    let Some(end) = end else { return false };
    let name = Some(path[..end].to_owned());
    match piece {
        PatternPiece::Device => labels.device = name,
        PatternPiece::Build => labels.build = name,
        PatternPiece::Text(_) | PatternPiece::Any => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pattern: &str, path: &str) -> (Option<String>, Option<String>) {
        let labels = pattern.parse::<LabelPattern>().unwrap().labels(path);
        (labels.device, labels.build)
    }

    /// Goal: names come from the right places of a path. Method: patterns and paths, fitting and not.
    #[test]
    fn paths_name_devices_and_builds() {
        let both = |device: &str, build: &str| (Some(device.to_owned()), Some(build.to_owned()));
        assert_eq!(
            told("{device}/{build}/", "s22/1.4/a.pftrace"),
            both("s22", "1.4")
        );
        assert_eq!(
            told("{build}/{device}-", "1.4/pixel-7.gz"),
            both("pixel", "1.4")
        );
        assert_eq!(
            told("x/*/{build}", "x/any/b7/t.gz"),
            (None, Some("b7".into()))
        );
        assert_eq!(
            told("{device}_{build}.", "s22_b_1.4.gz"),
            both("s22", "b_1")
        );
        for other in ["a.pftrace", "s22/a.pftrace", "/1.4/a"] {
            assert_eq!(told("{device}/{build}/", other), (None, None), "{other}");
        }
    }

    /// Goal: a pattern that can say nothing is refused in one line. Method: some of each kind; what is
    /// accepted is written as it was given.
    #[test]
    fn wrong_patterns_are_refused() {
        for wrong in ["", "a/b", "{divice}/", "{device}/{device}", "{"] {
            let error = wrong.parse::<LabelPattern>().unwrap_err();
            assert!(error.is_input() && error.to_string().contains("{device}/{build}/"));
        }
        let given = "a/{device}/*-{build}";
        assert_eq!(given.parse::<LabelPattern>().unwrap().to_string(), given);
    }
}
