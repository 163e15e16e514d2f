//! Graphs as files: `paceline frames --graph F.json`.
//!
//! ```json
//! {
//!   "name": "editor", "source": "…", "unit": "…", "scale": "…",
//!   "jobs": [
//!     {"label": "input", "us": 40},
//!     {"label": "physics", "pieces": 64, "us": 12.5, "after": ["input"]},
//!     {"label": "draw", "ns": 800000, "after": ["physics", 0]}
//!   ],
//!   "syncs": [{"after": "draw", "wait_for": "physics"}]
//! }
//! ```
//!
//! Only `jobs` and their labels and times are needed. A job with `pieces` is a parallel one, and
//! the time is that of each piece, in microseconds (`us`) or nanoseconds (`ns`). `after` names the
//! jobs it waits for, by label or by position in the file (from 0). Jobs may stand in any order:
//! they are scheduled in the order of the file as far as their dependencies allow. `syncs` are the
//! places where the main thread, having scheduled `after`, waits for `wait_for`. The four texts on
//! top are for people: where the graph is from, what one job of it was, and how its times were
//! scaled.
//!
//! Invariants: no input makes the reader panic; every error is one line that names the file and, where there
//! is one, the job; a written graph reads back as the same one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt::{self, Write};
use std::io::Read;
use std::path::Path;

use event::Nanos;
use serde::{Deserialize, Deserializer, de};

use super::{About, GraphError, JobGraph, Kind, MAX_COST, MAX_JOBS, Node, SyncPoint};

/// The longest file that is read, in bytes: room for the most jobs and dependencies with labels of
/// some fifty bytes.
pub const MAX_FILE: u64 = 64 << 20;

const EXAMPLE: &str = concat!(
    r#"a graph looks like {"jobs": [{"label": "a", "us": 10}, "#,
    r#"{"label": "b", "us": 5, "after": ["a"]}]}"#
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    name: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    scale: String,
    jobs: Vec<FileJob>,
    #[serde(default)]
    syncs: Vec<FileSync>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileJob {
    label: String,
    pieces: Option<u32>,
    us: Option<f64>,
    ns: Option<f64>,
    #[serde(default)]
    after: Vec<Reference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSync {
    after: Reference,
    wait_for: Reference,
}

/// A job, by its label or by its position in the file.
enum Reference {
    Label(String),
    Index(u64),
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Reference, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Reference;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the label of a job or its position in the file")
            }
            fn visit_u64<E: de::Error>(self, index: u64) -> Result<Reference, E> {
                Ok(Reference::Index(index))
            }
            fn visit_str<E: de::Error>(self, label: &str) -> Result<Reference, E> {
                Ok(Reference::Label(label.to_owned()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JobGraph {
    /// Reads the graph in the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read or is not a graph.
    pub fn load(path: &Path) -> Result<JobGraph, GraphError> {
        let origin = path.display().to_string();
        let fail = |error| one_line(&origin, &format!("cannot read the file: {error}"));
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(fail)?;
        // One byte more than the limit tells a file that is too long from one that just fits.
        file.take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        if bytes.len() as u64 > MAX_FILE {
            let limit = MAX_FILE >> 20;
            return Err(one_line(
                &origin,
                &format!("a graph file has at most {limit} MiB"),
            ));
        }
        JobGraph::from_json(&bytes, &origin)
    }

    /// Reads a graph from JSON. `origin` is its name in errors: the file's.
    ///
    /// # Errors
    /// If it is not JSON, not in the format above, or the graph is not a valid one.
    pub fn from_json(json: &[u8], origin: &str) -> Result<JobGraph, GraphError> {
        let file: File = serde_json::from_slice(json)
            .map_err(|error| one_line(origin, &format!("{error}; {EXAMPLE}")))?;
        build(file).map_err(|what| one_line(origin, &what))
    }

    /// Writes the graph in the same format, a job a line, dependencies by label.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\n");
        let about = self.about();
        for (key, text) in [
            ("name", &about.name),
            ("source", &about.source),
            ("unit", &about.unit),
            ("scale", &about.scale),
        ] {
            let _ = writeln!(out, "  \"{key}\": {},", quoted(text));
        }
        let label = |index: u32| quoted(&self.jobs()[index as usize].label);
        let jobs = self.jobs().iter().map(|node| {
            let mut line = format!("    {{\"label\": {}", quoted(&node.label));
            if let Kind::Parallel { pieces } = node.kind {
                let _ = write!(line, ", \"pieces\": {pieces}");
            }
            let _ = match node.cost.0 % 1_000 {
                0 => write!(line, ", \"us\": {}", node.cost.0 / 1_000),
                _ => write!(line, ", \"ns\": {}", node.cost.0),
            };
            if !node.deps.is_empty() {
                let after: Vec<_> = node.deps.iter().map(|&dep| label(dep)).collect();
                let _ = write!(line, ", \"after\": [{}]", after.join(", "));
            }
            line + "}"
        });
        let _ = write!(
            out,
            "  \"jobs\": [\n{}\n  ]",
            jobs.collect::<Vec<_>>().join(",\n")
        );
        let syncs = self.syncs().iter().map(|sync| {
            let (after, wait_for) = (label(sync.after), label(sync.wait_for));
            format!("    {{\"after\": {after}, \"wait_for\": {wait_for}}}")
        });
        if !self.syncs().is_empty() {
            let _ = write!(
                out,
                ",\n  \"syncs\": [\n{}\n  ]",
                syncs.collect::<Vec<_>>().join(",\n")
            );
        }
        out + "\n}\n"
    }
}

/// From the file to a graph: references become positions, positions the order in which jobs are scheduled.
fn build(file: File) -> Result<JobGraph, String> {
    if file.jobs.len() > MAX_JOBS {
        return Err(format!(
            "{} jobs are too many: at most {MAX_JOBS} are supported",
            file.jobs.len()
        ));
    }
    let labels = LabelIndex::of(&file.jobs)?;
    let deps = labels.dependencies()?;
    let order = order(&deps).map_err(|cycle| labels.describe(&cycle))?;
    let mut place = vec![0; order.len()];
    (0u32..)
        .zip(&order)
        .for_each(|(new, &old)| place[old as usize] = new);

    let node = |&old: &u32| {
        let job = &file.jobs[old as usize];
        Ok(Node {
            label: job.label.clone(),
            kind: job
                .pieces
                .map_or(Kind::Single, |pieces| Kind::Parallel { pieces }),
            cost: cost(job)?,
            deps: deps[old as usize]
                .iter()
                .map(|&dep| place[dep as usize])
                .collect(),
        })
    };
    let nodes = order.iter().map(node).collect::<Result<_, String>>()?;
    let sync = |(index, sync): (usize, &FileSync)| {
        let resolve = |reference| match labels.resolve(reference) {
            Ok(job) => Ok(place[job as usize]),
            Err(what) => Err(format!("sync point {index}: {what}")),
        };
        Ok(SyncPoint {
            after: resolve(&sync.after)?,
            wait_for: resolve(&sync.wait_for)?,
        })
    };
    let syncs = file
        .syncs
        .iter()
        .enumerate()
        .map(sync)
        .collect::<Result<_, String>>()?;
    let about = About {
        name: file.name,
        source: file.source,
        unit: file.unit,
        scale: file.scale,
    };
    JobGraph::new(about, nodes, syncs).map_err(|error| error.to_string())
}

/// The time of a body of this job.
fn cost(job: &FileJob) -> Result<Nanos, String> {
    let fail = |what| Err(format!("job {}: {what}", shown(&job.label)));
    let (time, unit, scale) = match (job.us, job.ns) {
        (Some(us), None) => (us, "us", 1e3),
        (None, Some(ns)) => (ns, "ns", 1.0),
        (None, None) => return fail("give its time as \"us\" or \"ns\"".to_owned()),
        (Some(_), Some(_)) => return fail("give its time once, as \"us\" or \"ns\"".to_owned()),
    };
    let most = MAX_COST.0 as f64 / scale;
    if !(0.0..=most).contains(&time) {
        return fail(format!("its time is {time} {unit}: give 0 to {most}"));
    }
    Ok(Nanos((time * scale).round() as u64))
}

/// The jobs of a file and where each label is.
struct LabelIndex<'a> {
    jobs: &'a [FileJob],
    index: HashMap<&'a str, u32>,
}

impl<'a> LabelIndex<'a> {
    fn of(jobs: &'a [FileJob]) -> Result<LabelIndex<'a>, String> {
        let mut index = HashMap::new();
        for (position, job) in (0u32..).zip(jobs) {
            if let Some(first) = index.insert(job.label.as_str(), position) {
                return Err(format!(
                    "jobs {first} and {position} are both called {}: give each its own label",
                    shown(&job.label)
                ));
            }
        }
        Ok(LabelIndex { jobs, index })
    }

    fn resolve(&self, reference: &Reference) -> Result<u32, String> {
        match reference {
            Reference::Label(label) => self.index.get(label.as_str()).copied().ok_or_else(|| {
                format!(
                    "there is no job called {}: correct the label or add the job",
                    shown(label)
                )
            }),
            Reference::Index(index) => match u32::try_from(*index) {
                Ok(job) if (job as usize) < self.jobs.len() => Ok(job),
                _ => Err(format!(
                    "there is no job {index}: the file has {} jobs, counted from 0",
                    self.jobs.len()
                )),
            },
        }
    }

    /// For each job the jobs it waits for.
    fn dependencies(&self) -> Result<Vec<Vec<u32>>, String> {
        let of_job = |(position, job): (u32, &FileJob)| {
            let at = |what: String| format!("job {}: {what}", shown(&job.label));
            let deps: Result<Vec<u32>, String> = job
                .after
                .iter()
                .map(|reference| self.resolve(reference))
                .collect();
            match deps {
                Err(what) => Err(at(what)),
                Ok(deps) if deps.contains(&position) => Err(at(
                    "it waits for itself: remove it from its own \"after\"".to_owned(),
                )),
                Ok(deps) => Ok(deps),
            }
        };
        (0..).zip(self.jobs).map(of_job).collect()
    }

    fn describe(&self, cycle: &[u32]) -> String {
        const SHOWN: usize = 8;
        let label = |&job: &u32| shown(&self.jobs[job as usize].label);
        let mut names: Vec<String> = cycle.iter().take(SHOWN).map(label).collect();
        if cycle.len() > SHOWN {
            names.push(format!("… ({} more)", cycle.len() - SHOWN));
        }
        names.extend(cycle.first().map(label));
        format!(
            "these jobs wait for each other: {}; remove one \"after\"",
            names.join(" after ")
        )
    }
}

/// An order in which every job comes after those it waits for, and otherwise the given one (Kahn's
/// algorithm, the first of the ready jobs next). `Err` has a cycle, each job waiting for the next.
fn order(deps: &[Vec<u32>]) -> Result<Vec<u32>, Vec<u32>> {
    let mut missing: Vec<usize> = deps.iter().map(Vec::len).collect();
    let mut successors = vec![Vec::new(); deps.len()];
    for (job, deps) in (0u32..).zip(deps) {
        for &dep in deps {
            successors[dep as usize].push(job);
        }
    }
    let ready = (0u32..).zip(&missing).filter(|&(_, &missing)| missing == 0);
    let mut ready: BinaryHeap<_> = ready.map(|(job, _)| Reverse(job)).collect();
    let mut order = Vec::with_capacity(deps.len());
    while let Some(Reverse(job)) = ready.pop() {
        order.push(job);
        for &next in &successors[job as usize] {
            missing[next as usize] -= 1;
            if missing[next as usize] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    match missing.iter().position(|&missing| missing > 0) {
        None => Ok(order),
        Some(stuck) => Err(cycle(deps, &missing, stuck as u32)),
    }
}

/// A cycle that can be reached from `stuck`. Each job that is stuck waits for at least one that is.
fn cycle(deps: &[Vec<u32>], missing: &[usize], stuck: u32) -> Vec<u32> {
    let mut path = Vec::new();
    let mut visited = vec![false; deps.len()];
    let mut job = stuck;
    while !std::mem::replace(&mut visited[job as usize], true) {
        path.push(job);
        let next = deps[job as usize]
            .iter()
            .find(|&&dep| missing[dep as usize] > 0);
        job = *next.expect("a stuck job waits for a stuck one");
    }
    // The way into the cycle is not a part of it.
    path.into_iter()
        .skip_while(|&visited| visited != job)
        .collect()
}

/// A label as it appears in a message.
fn shown(label: &str) -> String {
    const LONGEST: usize = 60;
    let mut cut: String = label.chars().take(LONGEST).collect();
    if cut.len() < label.len() {
        cut.push('…');
    }
    format!("{cut:?}")
}

/// The error, on one line whatever the file contained.
fn one_line(origin: &str, what: &str) -> GraphError {
    const LONGEST: usize = 600;
    let line = format!("{origin}: {what}");
    let clean = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    GraphError(clean.take(LONGEST).collect())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
