//! What each trace of a fleet has of each wait, cause and inversion.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow_array::Array;
use trace::explain::without_numbers;

use super::{ChangeOf, CompareOptions};
use crate::FleetError;
use crate::set::{ReadRows, SetReader};
use crate::table::TableName;

/// Waits of one kind and name, of one program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WaitGroup {
    pub(super) process: Option<String>,
    pub(super) kind: String,
    pub(super) name: String,
}

/// A cause or an inversion that waits of a group may have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Subject {
    pub(super) of: ChangeOf,
    pub(super) kind: String,
    pub(super) who: Option<String>,
}

/// A number of some of the traces, which are known by their positions, ascending.
pub(super) type Sparse = Vec<(u32, f64)>;

/// What traces have of the waits of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupSums {
    /// How many waits each trace has.
    pub(super) waits: Sparse,
    /// Their length in nanoseconds.
    pub(super) length: Sparse,
    /// What of it is due to a cause, or is an inversion.
    pub(super) parts: BTreeMap<Subject, Sparse>,
}

/// What the traces of a fleet have.
#[derive(Clone, Debug, Default)]
pub(super) struct FleetSums {
    /// How many traces there are that could be read.
    pub(super) traces: usize,
    pub(super) groups: BTreeMap<WaitGroup, GroupSums>,
}

/// Adds to the number of a trace, which is the last one so far or comes after it.
pub(super) fn add(to: &mut Sparse, trace: u32, more: f64) {
    match to.last_mut() {
        Some((last, sum)) if *last == trace => *sum += more,
        _ => to.push((trace, more)),
    }
}

/// The traces of one part that are compared, and their waits.
#[derive(Default)]
struct PartTraces {
    positions: HashMap<String, u32>,
    groups: Vec<WaitGroup>,
    /// By trace and position in it: the waits' groups.
    waits: HashMap<(u32, i64), usize>,
}

/// Which traces of a data set are asked for, and what others there were.
struct Chosen<'a> {
    build: Option<&'a str>,
    device: Option<&'a str>,
    builds: BTreeSet<String>,
    devices: BTreeSet<String>,
    broken: usize,
}

impl FleetSums {
    /// Those of the traces of this build, or of all.
    ///
    /// # Errors
    /// If no trace is left; if a file cannot be read, or lacks a column.
    pub(super) fn read(
        set: &SetReader,
        build: Option<&str>,
        options: &CompareOptions,
    ) -> Result<FleetSums, FleetError> {
        let mut sums = FleetSums::default();
        let mut chosen = Chosen {
            build,
            device: options.device.as_deref(),
            builds: BTreeSet::new(),
            devices: BTreeSet::new(),
            broken: 0,
        };
        for part in set.parts() {
            let mut traces = sums.traces_of(set, part, &mut chosen)?;
            if !traces.positions.is_empty() {
                sums.waits_of(set, part, &mut traces)?;
                sums.causes_of(set, part, &traces)?;
                sums.inversions_of(set, part, &traces)?;
            }
        }
        if sums.traces == 0 {
            return Err(chosen.nothing(set));
        }
        Ok(sums)
    }

    fn traces_of(
        &mut self,
        set: &SetReader,
        part: &str,
        chosen: &mut Chosen<'_>,
    ) -> Result<PartTraces, FleetError> {
        let mut found = PartTraces::default();
        let columns = ["trace", "device", "build", "error"];
        set.rows(part, TableName::Traces, &columns, |rows| {
            let [keys, devices, builds, errors] = texts(rows, columns)?;
            for row in 0..rows.len() {
                let text = |column: &arrow_array::StringArray| {
                    (!column.is_null(row)).then(|| column.value(row).to_owned())
                };
                if chosen.takes(text(devices), text(builds), errors.is_null(row)) {
                    let key = keys.value(row).to_owned();
                    found.positions.insert(key, self.traces as u32);
                    self.traces += 1;
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn waits_of(
        &mut self,
        set: &SetReader,
        part: &str,
        traces: &mut PartTraces,
    ) -> Result<(), FleetError> {
        let columns = [
            "trace",
            "process",
            "kind",
            "wait_group",
            "wait",
            "duration_ns",
        ];
        let mut known: HashMap<WaitGroup, usize> = HashMap::new();
        set.rows(part, TableName::Waits, &columns, |rows| {
            let [keys, processes, kinds, names] =
                texts(rows, ["trace", "process", "kind", "wait_group"])?;
            let (waits, lengths) = (rows.integers("wait")?, rows.integers("duration_ns")?);
            for row in 0..rows.len() {
                let Some(&trace) = traces.positions.get(keys.value(row)) else {
                    continue;
                };
                let process = (!processes.is_null(row)).then(|| processes.value(row).to_owned());
                let group = WaitGroup {
                    process,
                    kind: kinds.value(row).to_owned(),
                    name: names.value(row).to_owned(),
                };
                let sums = self.groups.entry(group.clone()).or_default();
                add(&mut sums.waits, trace, 1.0);
                add(&mut sums.length, trace, lengths.value(row) as f64);
                let at = *known.entry(group).or_insert_with_key(|group| {
                    traces.groups.push(group.clone());
                    traces.groups.len() - 1
                });
                traces.waits.insert((trace, waits.value(row)), at);
            }
            Ok(())
        })
    }

    fn causes_of(
        &mut self,
        set: &SetReader,
        part: &str,
        traces: &PartTraces,
    ) -> Result<(), FleetError> {
        let columns = ["trace", "wait", "kind", "role", "cause_ns"];
        set.rows(part, TableName::Causes, &columns, |rows| {
            let [keys, kinds, roles] = texts(rows, ["trace", "kind", "role"])?;
            let (waits, times) = (rows.integers("wait")?, rows.integers("cause_ns")?);
            for row in 0..rows.len() {
                let subject = || Subject {
                    of: ChangeOf::Cause,
                    kind: kinds.value(row).to_owned(),
                    who: (!roles.is_null(row)).then(|| roles.value(row).to_owned()),
                };
                let at = (keys.value(row), waits.value(row));
                self.part(traces, at, subject, times.value(row));
            }
            Ok(())
        })
    }

    fn inversions_of(
        &mut self,
        set: &SetReader,
        part: &str,
        traces: &PartTraces,
    ) -> Result<(), FleetError> {
        let columns = ["trace", "wait", "kind", "holder", "inversion_ns"];
        set.rows(part, TableName::Inversions, &columns, |rows| {
            let [keys, kinds, holders] = texts(rows, ["trace", "kind", "holder"])?;
            let (waits, times) = (rows.integers("wait")?, rows.integers("inversion_ns")?);
            for row in 0..rows.len() {
                let subject = || Subject {
                    of: ChangeOf::Inversion,
                    kind: kinds.value(row).to_owned(),
                    who: Some(without_numbers(holders.value(row))),
                };
                let at = (keys.value(row), waits.value(row));
                self.part(traces, at, subject, times.value(row));
            }
            Ok(())
        })
    }

    /// Adds a part of a wait, which is that of a trace's key and of a position in it.
    fn part(
        &mut self,
        traces: &PartTraces,
        (key, wait): (&str, i64),
        subject: impl FnOnce() -> Subject,
        ns: i64,
    ) {
        let trace = traces.positions.get(key).copied();
        let found = trace.and_then(|trace| Some((trace, traces.waits.get(&(trace, wait))?)));
        if let Some((trace, &at)) = found {
            let sums = self.groups.entry(traces.groups[at].clone()).or_default();
            add(sums.parts.entry(subject()).or_default(), trace, ns as f64);
        }
    }
}

/// Columns of texts.
fn texts<'a, const N: usize>(
    rows: &'a ReadRows<'_>,
    names: [&str; N],
) -> Result<[&'a arrow_array::StringArray; N], FleetError> {
    let columns = names.iter().map(|name| rows.texts(name));
    let columns: Vec<_> = columns.collect::<Result<_, _>>()?;
    Ok(columns.try_into().expect("as many columns as names"))
}

impl Chosen<'_> {
    /// Whether a trace is one of them.
    fn takes(&mut self, device: Option<String>, build: Option<String>, is_whole: bool) -> bool {
        let is_build = self
            .build
            .is_none_or(|wanted| build.as_deref() == Some(wanted));
        let is_device = self
            .device
            .is_none_or(|wanted| device.as_deref() == Some(wanted));
        self.builds.extend(build);
        self.devices.extend(device);
        self.broken += usize::from(!is_whole);
        is_build && is_device && is_whole
    }

    /// Why there is no trace.
    fn nothing(&self, set: &SetReader) -> FleetError {
        const TOLD: usize = 8;
        let there = |names: &BTreeSet<String>| {
            let mut told: Vec<&str> = names.iter().take(TOLD).map(String::as_str).collect();
            if names.len() > TOLD {
                told.push("…");
            }
            told.join(", ")
        };
        let why = match (self.build, self.device) {
            (Some(_), _) if self.builds.is_empty() => {
                "its traces have no builds; make it with --labels, such as '{build}/'".to_owned()
            }
            (_, Some(_)) if self.devices.is_empty() => {
                "its traces have no devices; make it with --labels, such as '{device}/'".to_owned()
            }
            (Some(build), _) if !self.builds.contains(build) => format!(
                "no trace in it has build {build:?}; there are: {}",
                there(&self.builds)
            ),
            (_, Some(device)) if !self.devices.contains(device) => format!(
                "no trace in it has device {device:?}; there are: {}",
                there(&self.devices)
            ),
            _ if self.broken > 0 => "no trace of those asked for could be read; its table \
                 `traces` has their errors"
                .to_owned(),
            (Some(_), Some(_)) => "no trace in it has both that build and that device".to_owned(),
            _ => "has no traces; give one that `paceline fleet` has filled".to_owned(),
        };
        FleetError::input(format!("{}: {why}", set.path().display()))
    }
}
