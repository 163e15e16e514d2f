//! The bootstrap: whole traces are drawn with replacement, and each draw is looked at for all rows.
//!
//! Waits of one trace are alike: they are of one device, one level, one player. So waits are no independent
//! draws, and traces are. A draw has as many traces of each side as that side has. Each trace that was drawn
//! counts with all its waits; the mean of a row is the time of all of them through their number.
//!
//! How far a draw moves a change is told in standard errors *of that draw* (the studentized bootstrap), which
//! hits its level with few traces and long tails, where the plain quantiles of draws are too narrow.

use event::{Random, mix};
use paceline::JobSystem;

use super::sums::Sparse;

/// The part of draws that is within an interval.
const LEVEL: f64 = 0.95;
/// So many draws are made by one thread at a time.
const BLOCK: usize = 32;
/// A draw that has missed all of the few traces with a rare cause seems to be sure of it. Its standard error
/// is taken to be no less than this part of the real one.
const SURE: f64 = 0.5;

/// A trace of a row: which one, its waits, and by how much their time is more than so many waits have on
/// average.
#[derive(Clone, Copy, Debug)]
struct TraceExcess {
    trace: u32,
    waits: f64,
    excess: f64,
}

/// One side of a row.
#[derive(Clone, Debug)]
pub(super) struct RowSide {
    /// The time for each wait; none, if there are no waits.
    pub(super) mean: Option<f64>,
    traces: Vec<TraceExcess>,
}

impl RowSide {
    /// The side with these waits, and this time of some of their traces.
    pub(super) fn new(waits: &Sparse, ns: &Sparse) -> RowSide {
        let sum = |of: &Sparse| of.iter().map(|(_, value)| value).sum::<f64>();
        let count = sum(waits);
        let mean = (count > 0.0).then(|| sum(ns) / count);
        let mut times = ns.iter().peekable();
        let traces = waits.iter().map(|&(trace, waits)| {
            let time = times.next_if(|(at, _)| *at == trace);
            let time = time.map_or(0.0, |(_, ns)| *ns);
            TraceExcess {
                trace,
                waits,
                excess: time - mean.unwrap_or_default() * waits,
            }
        });
        RowSide {
            traces: traces.collect(),
            mean,
        }
    }

    /// How many traces have such waits.
    pub(super) fn len(&self) -> usize {
        self.traces.len()
    }

    /// By how much the mean of the traces that were drawn is greater, each as often as it was, and the
    /// square of its standard error.
    fn drawn(&self, times: impl Fn(u32) -> f64) -> (f64, f64) {
        let (mut drawn, mut waits, mut excess) = (0.0, 0.0, 0.0);
        let (mut squares, mut product, mut wait_squares) = (0.0, 0.0, 0.0);
        for one in &self.traces {
            let times = times(one.trace);
            drawn += times;
            waits += times * one.waits;
            excess += times * one.excess;
            squares += times * one.excess * one.excess;
            product += times * one.excess * one.waits;
            wait_squares += times * one.waits * one.waits;
        }
        if waits == 0.0 {
            return (0.0, 0.0);
        }
        let more = excess / waits;
        // That of a quotient of sums: the squares of what traces have beyond their quotient.
        let beyond = squares - 2.0 * more * product + more * more * wait_squares;
        let few = drawn / (drawn - 1.0_f64).max(1.0);
        (more, (beyond * few).max(0.0) / (waits * waits))
    }
}

/// What the draws tell of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// The interval of the change, of this row alone.
    pub(super) interval: [f64; 2],
    /// Whether the change is beyond what chance makes of all rows together.
    pub(super) is_beyond: bool,
}

/// How far chance moves the change of each row, of sides A and B. `traces` are the numbers of traces of both.
///
/// The time is that of looking at the traces of all rows once for each draw; the memory is that of a number
/// for each row and draw.
pub(super) fn spread(
    js: &JobSystem,
    rows: &[&[RowSide; 2]],
    traces: [usize; 2],
    (draws, seed): (usize, u64),
) -> Vec<Spread> {
    let errors: Vec<f64> = rows
        .iter()
        .map(|sides| {
            let [a, b] = [0, 1].map(|side| sides[side].drawn(|_| 1.0).1);
            (a + b).sqrt()
        })
        .collect();
    let firsts: Vec<usize> = (0..draws).step_by(BLOCK).collect();
    let blocks: Vec<Vec<Vec<f64>>> = js.over(&firsts[..]).map(|&first| {
        let of_block = first..draws.min(first + BLOCK);
        of_block
            .map(|draw| {
                let mut random = Random::new(mix(seed) ^ mix(draw as u64 + 1));
                let times = traces.map(|count| drawn_times(count, &mut random));
                let moved = rows.iter().zip(&errors);
                moved
                    .map(|(sides, error)| moved_by(sides, &times, *error))
                    .collect()
            })
            .collect()
    });
    let drawn: Vec<Vec<f64>> = blocks.into_iter().flatten().collect();
    told(rows, &errors, &drawn)
}

/// How far a draw moves a change, in standard errors of the draw. `error` is that of all traces.
fn moved_by(sides: &[RowSide; 2], times: &[Vec<f64>; 2], error: f64) -> f64 {
    let [a, b] = [0, 1].map(|side| sides[side].drawn(|trace| times[side][trace as usize]));
    let of_draw = (a.1 + b.1).sqrt().max(SURE * error);
    if of_draw > 0.0 {
        (b.0 - a.0).abs() / of_draw
    } else {
        0.0
    }
}

/// How often each of so many traces is drawn.
fn drawn_times(count: usize, random: &mut Random) -> Vec<f64> {
    let mut times = vec![0.0; count];
    for _ in 0..count {
        times[random.below(count as u64) as usize] += 1.0;
    }
    times
}

/// Intervals, of each row alone; and which changes are beyond chance: those that are beyond the greatest of
/// all rows in all but 5 % of the draws.
fn told(rows: &[&[RowSide; 2]], errors: &[f64], drawn: &[Vec<f64>]) -> Vec<Spread> {
    let greatest = drawn
        .iter()
        .map(|draw| draw.iter().copied().fold(0.0, f64::max));
    let bound = quantile(greatest.collect());
    let row = |(row, (sides, error)): (usize, (&&[RowSide; 2], &f64))| {
        let [a, b] = [0, 1].map(|side| sides[side].mean.unwrap_or_default());
        let change = b - a;
        let alone = quantile(drawn.iter().map(|draw| draw[row]).collect());
        Spread {
            interval: [change - alone * error, change + alone * error],
            is_beyond: change.abs() > bound * error,
        }
    };
    rows.iter().zip(errors).enumerate().map(row).collect()
}

/// The value that the level's part of them does not exceed.
fn quantile(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let place = (LEVEL * values.len() as f64).ceil() as usize;
    let found = values.get(place.min(values.len().saturating_sub(1)));
    found.copied().unwrap_or_default()
}
