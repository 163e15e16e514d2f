//! `for`: parallel loops, short and longer ones.

use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bevy_tasks::TaskPool;
use console::Failure;
use event::Nanos;
use paceline::{Grain, JobSystem};
use platform::Os;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use workload::busy::{Busy, chain};

use crate::case::Case;
use crate::pools;
use crate::row::{Row, check, nanos, short};
use crate::session::{Contestant, Sample, Setup, interleave};
use crate::target::{Bound, Target};
use crate::tbb::Tbb;
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "for",
    title: "parallel loops over 1000 items of 5 ns and of 200 ns",
    means: "A loop over 1000 items, each a chain of dependent integer steps of about that length, \
            called again and again by the calling thread; the time of one loop. No grain or cut-off \
            is given, except for chili and bevy_tasks. chili has no loops: there the range is halved by \
            joins down to 16 items. bevy_tasks wants a number of tasks: there is one per thread, as its \
            `par_splat_map` has it. oneTBB is a `parallel_reduce`. The sum over all items is checked.",
    measure,
};

/// A subject that can run a loop: the sum of the body over the items.
pub(super) trait Loops {
    fn sum(&self, items: u64, body: &(impl Fn(u64) -> u64 + Sync)) -> u64;
}

/// The calling thread alone.
pub(super) struct Serial;

impl Loops for Serial {
    fn sum(&self, items: u64, body: &(impl Fn(u64) -> u64 + Sync)) -> u64 {
        (0..items).map(body).sum()
    }
}

impl Loops for JobSystem<Os> {
    fn sum(&self, items: u64, body: &(impl Fn(u64) -> u64 + Sync)) -> u64 {
        let sum = AtomicU64::new(0);
        self.parallel_for(0..items as usize, Grain::Auto, |part, _| {
            let part: u64 = part.map(|item| body(item as u64)).sum();
            sum.fetch_add(part, Ordering::Relaxed);
        });
        sum.into_inner()
    }
}

impl Loops for rayon::ThreadPool {
    fn sum(&self, items: u64, body: &(impl Fn(u64) -> u64 + Sync)) -> u64 {
        self.install(|| (0..items).into_par_iter().map(body).sum())
    }
}

/// chili has no loops: joins halve the range down to `cut_off` items.
pub(super) struct Halves {
    pub(super) pool: chili::ThreadPool,
    pub(super) cut_off: u64,
}

impl Loops for Halves {
    fn sum(&self, items: u64, body: &(impl Fn(u64) -> u64 + Sync)) -> u64 {
        fn sum(
            scope: &mut chili::Scope<'_>,
            range: Range<u64>,
            cut_off: u64,
            body: &(impl Fn(u64) -> u64 + Sync),
        ) -> u64 {
            if range.end - range.start <= cut_off {
                return range.map(body).sum();
            }
            let middle = range.start.midpoint(range.end);
            let (low, high) = (range.start..middle, middle..range.end);
            let (a, b) = scope.join(
                |scope| sum(scope, low, cut_off, body),
                |scope| sum(scope, high, cut_off, body),
            );
            a + b
        }
        sum(&mut self.pool.scope(), 0..items, self.cut_off, body)
    }
}

/// bevy_tasks spawns a task for each chunk of `items` items, as `ParallelSlice::par_chunk_map` does for a
/// slice.
pub(super) struct Chunks {
    pub(super) pool: TaskPool,
    pub(super) items: u64,
}

impl Loops for Chunks {
    fn sum(&self, items: u64, body: &(impl Fn(u64) -> u64 + Sync)) -> u64 {
        let starts = (0..items).step_by(self.items as usize);
        let chunks = starts.map(|start| start..(start + self.items).min(items));
        let sums = self.pool.scope(|scope| {
            for chunk in chunks {
                scope.spawn(async { chunk.map(body).sum::<u64>() });
            }
        });
        sums.into_iter().sum()
    }
}

#[derive(Clone, Copy)]
struct LoopSize {
    items: u64,
    item: Nanos,
    repeats: u32,
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let size = |nanos, repeats, quick| LoopSize {
        items: 1_000,
        item: Nanos(nanos),
        repeats: if quick { 5 } else { repeats },
    };
    let quick = setup.quick;
    let short = measure_size(setup, size(5, 1_000, quick))?;
    let short = short
        .with_target(|case| case.ratio(setup, "serial", case.median(Who::Serial), 1.1))
        .with_target(|case| case.to_best_peer(setup, 0.5));
    let long = measure_size(setup, size(200, 50, quick))?;
    let long = long.with_target(|case| {
        let both = case.median(Who::Serial).zip(case.median(Who::Paceline));
        let speedup = both.map(|(serial, ours)| serial / ours);
        Target::new(setup, "speed-up", Bound::AtLeast(1.8), speedup)
    });
    Ok(vec![short, long])
}

fn measure_size(setup: &mut Setup, size: LoopSize) -> Result<Case, Failure> {
    let (threads, rounds, busy) = (setup.threads, setup.size(25, 2), setup.busy);
    let steps = fitted(busy, size.item);
    let body = move |item: u64| {
        black_box(chain(steps, item));
        item
    };
    let serial = move || sample(&Serial, size, &body);
    let paceline = move || sample(&pools::paceline(threads)?, size, &body);
    let mut subjects = vec![
        Contestant::new(Who::Serial, serial),
        Contestant::new(Who::Paceline, paceline),
    ];
    if setup.peers {
        let rayon = move || sample(&pools::rayon(threads)?, size, &body);
        let member =
            move || pools::on_own_thread(|| sample(&pools::rayon_member(threads)?, size, &body));
        let chili = move || {
            let (pool, cut_off) = (pools::chili(threads), 16);
            sample(&Halves { pool, cut_off }, size, &body)
        };
        subjects.push(Contestant::new(Who::Rayon, rayon));
        subjects.push(Contestant::new(Who::RayonMember, member));
        let bevy = move || {
            let (pool, items) = (pools::bevy(threads), size.items.div_ceil(threads as u64));
            sample(&Chunks { pool, items }, size, &body)
        };
        subjects.push(Contestant::new(Who::Chili, chili));
        subjects.push(Contestant::new(Who::Bevy, bevy));
    }
    if let Some(tbb) = setup.tbb.clone() {
        let tbb = move || tbb_sample(&tbb, threads, size, steps);
        subjects.push(Contestant::new(Who::Tbb, tbb));
    }
    let samples = interleave(setup, ROW.name, rounds, subjects)?;
    let samples = samples.into_iter().map(|samples| samples.only());
    let label = format!("items of {}", short(size.item));
    Ok(Case::new(ROW.name, label, "ns per loop", samples))
}

/// The number of steps with which an item takes the wanted time, the call included. Beside a few nanoseconds
/// the call is not small.
fn fitted(busy: Busy, wanted: Nanos) -> u64 {
    const ITEMS: u64 = 1_000;
    const TRIALS: u32 = 30;
    let item_takes = |steps: u64| {
        let item = |item: u64| {
            black_box(chain(steps, item));
        };
        let all = || {
            for number in 0..ITEMS {
                item(number);
            }
        };
        let trials = (0..TRIALS).map(|_| nanos(all));
        trials.fold(f64::MAX, f64::min) / ITEMS as f64
    };
    let wrong_by = |steps: u64| (item_takes(steps) - wanted.0 as f64).abs();
    let simple = busy.steps(wanted);
    // Up to the simple answer, which does not include the call, in tenths or in single steps.
    let candidates = (0..=simple).rev().step_by((simple / 10).max(1) as usize);
    let errors = candidates.map(|steps| (wrong_by(steps), steps));
    let best = errors.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(simple, |(_, steps)| steps)
}

fn tbb_sample(tbb: &Tbb, threads: usize, size: LoopSize, steps: u64) -> Sample {
    let expected = size.items * (size.items - 1) / 2;
    let timed = tbb.sum(threads, size.items, steps, size.repeats)?;
    check(timed.first, expected)?;
    check(timed.sum, expected * u64::from(size.repeats))?;
    Ok(vec![timed.time.0 as f64 / f64::from(size.repeats)])
}

fn sample(pool: &impl Loops, size: LoopSize, body: &(impl Fn(u64) -> u64 + Sync)) -> Sample {
    let expected = size.items * (size.items - 1) / 2;
    check(pool.sum(size.items, body), expected)?;
    let mut sum = 0;
    let time = nanos(|| {
        for _ in 0..size.repeats {
            sum += pool.sum(black_box(size.items), body);
        }
    });
    check(sum, expected * u64::from(size.repeats))?;
    Ok(vec![time / f64::from(size.repeats)])
}
