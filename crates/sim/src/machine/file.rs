//! The types of machine files, the description of their format [below](#machine-files), and reading them.
#![doc = include_str!("../../machines/README.md")]

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::given::Given;
use super::layout::{Layout, Siblings};
use super::{Machine, read};
use crate::quantity::{
    Coefficient, Fraction, Frequency, ListOf, Of, Percent, Power, Resistance, Temperature, Time,
    Voltage,
};

/// The longest machine file.
const BYTES_MAX: u64 = 256 * 1024;

/// A machine file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) sources: BTreeMap<String, String>,
    pub(super) tic: Option<Given<Fraction>>,
    pub(super) layout: Layout,
    pub(super) kernel: KernelTable,
    pub(super) lines: LinesTable,
    pub(super) cluster: Vec<ClusterTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct KernelTable {
    pub(super) tick: Given<Of<Time>>,
    pub(super) placement: Given<PlacementName>,
    pub(super) syscall: Given<Of<Time>>,
    pub(super) yields: Given<Of<Time>>,
    pub(super) switch: Given<Of<Time>>,
    pub(super) wake: Given<Of<Time>>,
    pub(super) ipi_send: Given<Of<Time>>,
    pub(super) ipi_deliver: Given<Of<Time>>,
    pub(super) tick_cost: Given<Of<Time>>,
    pub(super) migrate: Given<Of<Time>>,
    pub(super) clock: Given<Of<Time>>,
    pub(super) message: Given<Of<Time>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PlacementName {
    Mainline,
    Pack,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LinesTable {
    pub(super) hit: Given<Of<Time>>,
    pub(super) rmw: Given<Of<Time>>,
    pub(super) core: Option<Given<Of<Time>>>,
    pub(super) module: Option<Given<Of<Time>>>,
    pub(super) cache: Option<Given<Of<Time>>>,
    pub(super) node: Option<Given<Of<Time>>>,
    pub(super) remote: Option<Given<Of<Time>>>,
    pub(super) queued: Option<Given<Of<Percent>>>,
    #[serde(default)]
    pub(super) between: Vec<BetweenTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BetweenTable {
    pub(super) clusters: (String, String),
    pub(super) takes: Given<Of<Time>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClusterTable {
    pub(super) name: String,
    pub(super) cpus: Given<String>,
    pub(super) threads: Option<Given<u32>>,
    pub(super) siblings: Option<Given<Siblings>>,
    pub(super) smt_share: Option<Given<ListOf<Percent>>>,
    pub(super) capacity: Given<u32>,
    pub(super) points: Given<ListOf<Frequency>>,
    pub(super) power: Option<Given<ListOf<Power>>>,
    pub(super) power_coefficient: Option<Given<Of<Coefficient>>>,
    pub(super) voltage: Option<Given<ListOf<Voltage>>>,
    pub(super) governor: Given<GovernorName>,
    pub(super) fixed_at: Option<Given<Of<Frequency>>>,
    pub(super) rate_limit: Option<Given<Of<Time>>>,
    pub(super) half_life: Option<Given<Of<Time>>>,
    #[serde(default)]
    pub(super) idle: Vec<IdleTable>,
    pub(super) thermal: Option<ThermalTable>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GovernorName {
    Fixed,
    Schedutil,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct IdleTable {
    pub(super) name: String,
    pub(super) residency: Given<Of<Time>>,
    pub(super) exit: Given<Of<Time>>,
    pub(super) power: Given<Of<Power>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ThermalTable {
    pub(super) ambient: Given<Of<Temperature>>,
    pub(super) resistance: Given<Of<Resistance>>,
    pub(super) time_constant: Given<Of<Time>>,
    pub(super) limit: Given<Of<Temperature>>,
    pub(super) period: Given<Of<Time>>,
}

/// Why there is no machine: the file, the place in it, the mistake and the remedy, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineError(pub(super) String);

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MachineError {}

impl Machine {
    /// The machine that this text describes; `file` is its name in errors.
    ///
    /// # Errors
    /// If it describes none: the first mistake.
    ///
    /// ```
    /// let error = paceline_sim::machine::Machine::from_toml("mine.toml", "name = 4").unwrap_err();
    /// assert!(error.to_string().starts_with("mine.toml:1: "));
    /// ```
    pub fn from_toml(file: &str, text: &str) -> Result<Machine, MachineError> {
        if text.len() as u64 > BYTES_MAX {
            return Err(too_long(file));
        }
        let tables: File = toml::from_str(text).map_err(|error| explain(file, text, &error))?;
        read::machine(&tables).map_err(|what| MachineError(one_line(&format!("{file}: {what}"))))
    }

    /// The machine that this file describes.
    ///
    /// # Errors
    /// If it cannot be read, and as [`from_toml`](Machine::from_toml).
    pub fn load(path: &Path) -> Result<Machine, MachineError> {
        let file = path.display().to_string();
        let is_too_long = |length: u64| length > BYTES_MAX;
        let unreadable =
            |error: std::io::Error| MachineError(format!("{file}: cannot be read: {error}"));
        if std::fs::metadata(path).is_ok_and(|about| is_too_long(about.len())) {
            return Err(too_long(&file));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Machine::from_toml(&file, &text)
    }
}

fn too_long(file: &str) -> MachineError {
    MachineError(format!(
        "{file}: has more than {BYTES_MAX} bytes; this is no machine file"
    ))
}

/// An error of the TOML reader in one line: the file, the line, its key, and the mistake.
fn explain(file: &str, text: &str, error: &toml::de::Error) -> MachineError {
    let Some(span) = error.span() else {
        return MachineError(one_line(&format!("{file}: {}", error.message())));
    };
    let before = text.get(..span.start).unwrap_or(text);
    let number = before.matches('\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or("");
    let key: String = line
        .split('=')
        .next()
        .unwrap_or("")
        .trim()
        .chars()
        .take(40)
        .collect();
    let what = error.message();
    MachineError(one_line(&match key.as_str() {
        "" => format!("{file}:{number}: {what}"),
        key => format!("{file}:{number}: {key}: {what}"),
    }))
}

/// A message in one line: it may quote a part of the file with line ends.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}
