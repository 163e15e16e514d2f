//! What the replays say, for programs.

use std::path::Path;

use event::Nanos;
use serde::Serialize;

use super::super::arguments::DiagnoseArguments;
use super::report::losers;
use super::study::{Study, Trial, Tried, error, refused};

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct WhatIfReport<'a> {
    trace: &'a Path,
    program: Option<&'a Path>,
    policy: &'a str,
    cpus: usize,
    seeds: u64,
    assumed: &'a [String],
    replay: AsItWas,
    waits: Vec<AskedJson<'a>>,
    what_if: Vec<TriedJson<'a>>,
}

#[derive(Serialize)]
struct AsItWas {
    long_waits: usize,
    within_10_percent: usize,
    share_error: f64,
}

#[derive(Serialize)]
struct SpreadJson {
    median: u64,
    min: u64,
    max: u64,
}

#[derive(Serialize)]
struct AskedJson<'a> {
    thread: String,
    tid: Option<u32>,
    name: &'a str,
    start_ns: u64,
    recorded_ns: u64,
    replayed_ns: Option<SpreadJson>,
    error: Option<f64>,
    refused: Option<&'a str>,
    difference: Option<DifferenceJson<'a>>,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    kind: &'static str,
    thread: Option<&'a str>,
    recorded_ns: u64,
    replayed_ns: u64,
}

#[derive(Serialize)]
struct TriedJson<'a> {
    text: &'a str,
    /// Of the waits that are not refused.
    waits: Vec<PredictedJson>,
    groups: Vec<ManyJson>,
    less_cpu_time: Vec<LoserJson>,
}

/// Waits of one thread and one name, with `*` for numbers, and the medians and means of their lengths.
#[derive(Serialize)]
struct ManyJson {
    thread: String,
    name: String,
    count: usize,
    mean: Option<LengthJson>,
    median: Option<LengthJson>,
}

/// A length that stands for many.
#[derive(Serialize)]
struct LengthJson {
    recorded_ns: u64,
    replayed_ns: u64,
    predicted_ns: u64,
    error: f64,
    refused: Option<&'static str>,
}

#[derive(Serialize)]
struct PredictedJson {
    /// The position in `waits`.
    wait: usize,
    /// None: it does not end.
    predicted_ns: Option<SpreadJson>,
    gain_ns: Option<i64>,
}

#[derive(Serialize)]
struct LoserJson {
    thread: String,
    ns: u64,
}

impl SpreadJson {
    fn of(spread: Trial) -> SpreadJson {
        SpreadJson {
            median: spread.median.0,
            min: spread.least.0,
            max: spread.most.0,
        }
    }
}

/// The object.
pub(super) fn json<'a>(study: &'a Study<'_>, arguments: &'a DiagnoseArguments) -> WhatIfReport<'a> {
    let asked = &study.asked;
    let waits = asked.iter().map(|asked| {
        let wait = study.wait(asked);
        AskedJson {
            thread: study.account.timeline.name(wait.thread),
            tid: study.account.timeline.tid(wait.thread),
            name: &wait.name,
            start_ns: wait.begin.0,
            recorded_ns: wait.length().0,
            replayed_ns: asked.replayed.map(SpreadJson::of),
            error: asked.error,
            refused: asked.refused,
            difference: asked.difference.as_ref().map(|part| DifferenceJson {
                kind: part.kind.word(),
                thread: part.thread.as_deref(),
                recorded_ns: part.recorded.0,
                replayed_ns: part.replayed.0,
            }),
        }
    });
    WhatIfReport {
        trace: &arguments.trace,
        program: arguments.program.as_deref(),
        policy: &study.program.policy,
        cpus: study.program.machine.cpus.len(),
        seeds: study.seeds,
        assumed: &study.program.assumed,
        replay: AsItWas {
            long_waits: asked.len(),
            within_10_percent: study.answered().count(),
            share_error: study.before.share_error,
        },
        waits: waits.collect(),
        what_if: study.tried.iter().map(|tried| of(study, tried)).collect(),
    }
}

fn of<'a>(study: &Study<'_>, tried: &'a Tried) -> TriedJson<'a> {
    let answered = study.asked.iter().enumerate();
    let answered = answered.filter(|(_, asked)| asked.refused.is_none());
    let signed = |length: Nanos| i64::try_from(length.0).unwrap_or(i64::MAX);
    let waits = answered.map(|(wait, asked)| {
        let with = tried.trials.waits[asked.at];
        let gain = asked.replayed.zip(with);
        PredictedJson {
            wait,
            predicted_ns: with.map(SpreadJson::of),
            gain_ns: gain.map(|(was, with)| signed(was.median) - signed(with.median)),
        }
    });
    let losers = losers(study, tried).into_iter();
    let groups = study.groups.iter().map(|group| {
        let length = |[recorded, was, with]: [Nanos; 3], refused| LengthJson {
            recorded_ns: recorded.0,
            replayed_ns: was.0,
            predicted_ns: with.0,
            error: error(recorded, was),
            refused,
        };
        let (means, medians) = (
            study.means(group, &tried.trials),
            study.medians(group, &tried.trials),
        );
        ManyJson {
            thread: group.thread.clone(),
            name: group.name.clone(),
            count: group.waits.len(),
            mean: means.map(|means| length(means.of, means.refused())),
            median: medians.map(|medians| length(medians, refused(medians))),
        }
    });
    TriedJson {
        text: &tried.text,
        waits: waits.collect(),
        groups: groups.collect(),
        less_cpu_time: losers
            .map(|(thread, less)| LoserJson { thread, ns: less.0 })
            .collect(),
    }
}
