//! What remedies are worth, by replays.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use event::{Nanos, Task};
use serde::Serialize;
use trace::explain::{Inversion, Remedy, Who};

use super::worth::{Worth, is_felt, medians};

/// What a remedy is for: the thread that waits, the one that is waited for, the one that ran, and its word.
type Case = (Task, Task, Who, &'static str);

/// What remedies are worth, by replays.
#[derive(Debug, Default)]
pub(in crate::commands) struct Gains {
    changes: Vec<Gain>,
    of: BTreeMap<Case, usize>,
    /// Why there are none, or not all.
    pub(super) left_out: Option<String>,
}

/// What a change is worth.
#[derive(Debug)]
pub(in crate::commands) struct Gain {
    /// The change, as `--what-if` takes it.
    pub(in crate::commands) text: String,
    /// By wait whose replay is near the recording: how long it was in each draw of the replay, and is with
    /// the change.
    pub(in crate::commands) waits: BTreeMap<usize, Vec<[Nanos; 2]>>,
    /// The threads that lose CPU time, most first.
    pub(in crate::commands) less_cpu_time: Vec<(String, Nanos)>,
}

/// A change in JSON.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct TriedChange {
    text: String,
    waits: usize,
    replayed_ns: u64,
    predicted_ns: u64,
    /// Of the draws.
    predicted_min_ns: u64,
    predicted_max_ns: u64,
    verdict: &'static str,
    longest_loss: Option<LossJson>,
    less_cpu_time: Vec<LosingThread>,
}

#[derive(Debug, Serialize)]
struct LossJson {
    wait: usize,
    ns: u64,
}

#[derive(Debug, Serialize)]
struct LosingThread {
    thread: String,
    ns: u64,
}

/// What a remedy is worth for an inversion's wait, in JSON.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct GainJson {
    remedy: &'static str,
    change: String,
    /// Lengths of the wait, medians of several draws; null if its replay is too far off.
    replayed_ns: Option<u64>,
    predicted_ns: Option<u64>,
    predicted_min_ns: Option<u64>,
    predicted_max_ns: Option<u64>,
    /// What they say of the remedy for this inversion.
    verdict: Option<&'static str>,
}

impl Gains {
    /// None, and why.
    pub(in crate::commands) fn none(why: String) -> Gains {
        Gains {
            left_out: Some(why),
            ..Gains::default()
        }
    }

    /// A change is what a remedy of an inversion comes to.
    pub(in crate::commands) fn add(
        &mut self,
        inversion: &Inversion,
        remedy: Remedy,
        change: usize,
    ) {
        self.of.insert(case(inversion, remedy), change);
    }

    /// Takes in a change, and returns its position.
    pub(in crate::commands) fn tried(&mut self, gain: Gain) -> usize {
        self.changes.push(gain);
        self.changes.len() - 1
    }

    /// The changes that were tried, the one that is worth most first.
    pub(in crate::commands) fn json(&self) -> Vec<TriedChange> {
        let mut changes: Vec<&Gain> = self.changes.iter().collect();
        changes.sort_by_key(|gain| Reverse(gain.all().gain()));
        let changes = changes.into_iter().map(|gain| {
            let worth = gain.all();
            let losing = gain.less_cpu_time.iter();
            TriedChange {
                text: gain.text.clone(),
                waits: worth.count,
                replayed_ns: worth.was.0,
                predicted_ns: worth.with.0,
                predicted_min_ns: worth.least.0,
                predicted_max_ns: worth.most.0,
                verdict: worth.verdict().word(),
                longest_loss: gain
                    .longest_loss()
                    .map(|(wait, longer)| LossJson { wait, ns: longer.0 }),
                less_cpu_time: losing
                    .map(|(thread, less)| LosingThread {
                        thread: thread.clone(),
                        ns: less.0,
                    })
                    .collect(),
            }
        });
        changes.collect()
    }

    /// What the remedies of an inversion are worth for its wait.
    pub(super) fn of_json(&self, inversion: &Inversion) -> Vec<GainJson> {
        let found = inversion.remedies.iter().filter_map(|remedy| {
            let gain = self.find(inversion, *remedy)?;
            let worth = gain.over([&inversion.wait].into_iter());
            let of = |ns: Nanos| (worth.count > 0).then_some(ns.0);
            let verdict = worth.verdict_for(inversion.ns);
            Some(GainJson {
                remedy: remedy.word(),
                change: gain.text.clone(),
                replayed_ns: of(worth.was),
                predicted_ns: of(worth.with),
                predicted_min_ns: of(worth.least),
                predicted_max_ns: of(worth.most),
                verdict: (worth.count > 0).then(|| verdict.word()),
            })
        });
        found.collect()
    }

    pub(super) fn find(&self, inversion: &Inversion, remedy: Remedy) -> Option<&Gain> {
        let at = self.of.get(&case(inversion, remedy))?;
        self.changes.get(*at)
    }
}

fn case(inversion: &Inversion, remedy: Remedy) -> Case {
    let Inversion {
        waiter,
        holder,
        runner,
        ..
    } = *inversion;
    (waiter, holder, runner, remedy.word())
}

impl Gain {
    /// What it is worth for some of the waits.
    pub(super) fn over<'a>(&self, waits: impl Iterator<Item = &'a usize>) -> Worth {
        Worth::of(waits.filter_map(|wait| self.waits.get(wait)))
    }

    /// What it is worth for all waits.
    pub(super) fn all(&self) -> Worth {
        Worth::of(self.waits.values())
    }

    /// The wait that gets longer by most, and by how much; none: no wait gets longer by more than a trifle.
    pub(super) fn longest_loss(&self) -> Option<(usize, Nanos)> {
        let losses = self.waits.iter().map(|(wait, draws)| {
            let [was, with] = medians(draws);
            (*wait, with - was, was)
        });
        let losses = losses.filter(|(_, longer, was)| is_felt(*longer, *was));
        let losses = losses.map(|(wait, longer, _)| (wait, longer));
        losses.max_by_key(|(wait, longer)| (*longer, Reverse(*wait)))
    }
}
