//! `for`: parallel loops, short and not so short.

use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use event::Nanos;
use paceline::{Grain, JobSystem};
use platform::Os;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use workload::busy::Busy;

use super::{Row, check, nanos, short};
use crate::commands::bench::case::Case;
use crate::commands::bench::pools;
use crate::commands::bench::session::{Contestant, Sample, Setup, interleave};
use crate::commands::bench::target::{Bound, Target};
use crate::commands::bench::who::Who;
use crate::failure::Failure;

pub(super) const ROW: Row = Row {
    name: "for",
    title: "parallel loops over 1000 items of 5 ns and of 200 ns",
    means: "A loop over 1000 items, each a chain of dependent integer steps of about that length, \
            called again and again by the calling thread; the time of one loop. No grain or cut-off \
            is given, except for chili, which has no loops: there the range is halved by joins down \
            to 16 items. The sum over all items is checked.",
    measure,
};

/// Somebody who can add up what the body gives for each item.
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

/// chili has no loops: the range is halved by joins down to some items.
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

#[derive(Clone, Copy)]
struct Size {
    items: u64,
    item: Nanos,
    repeats: u32,
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let size = |nanos, repeats, quick| Size {
        items: 1_000,
        item: Nanos(nanos),
        repeats: if quick { 5 } else { repeats },
    };
    let quick = setup.quick;
    let short = measure_size(setup, size(5, 1_000, quick))?;
    let short = short
        .with_target(|case| Target::ratio(setup, case, "serial", case.median(Who::Serial), 1.1))
        .with_target(|case| Target::to_best_peer(setup, case, 0.5));
    let long = measure_size(setup, size(200, 50, quick))?;
    let long = long.with_target(|case| {
        let both = case.median(Who::Serial).zip(case.median(Who::Paceline));
        let speedup = both.map(|(serial, ours)| serial / ours);
        Target::new(setup, "speed-up", Bound::AtLeast(1.8), speedup)
    });
    Ok(vec![short, long])
}

fn measure_size(setup: &mut Setup, size: Size) -> Result<Case, Failure> {
    let (threads, rounds, busy) = (setup.threads, setup.size(25, 2), setup.busy);
    let length = fitted(busy, size.item);
    let body = move |item: u64| {
        busy.spin_for(length, item);
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
        subjects.push(Contestant::new(Who::Chili, chili));
    }
    let samples = interleave(setup, ROW.name, rounds, subjects)?;
    let samples = samples.into_iter().map(|samples| samples.only());
    let label = format!("items of {}", short(size.item));
    Ok(Case::new(ROW.name, label, "ns per loop", samples))
}

/// The length to ask for so that an item takes the wanted one, call and rounding to whole steps
/// included: for a few nanoseconds these are not small.
fn fitted(busy: Busy, wanted: Nanos) -> Nanos {
    const ITEMS: u64 = 1_000;
    const TRIALS: u32 = 30;
    let item_takes = |length: u64| {
        let trials = (0..TRIALS).map(|_| {
            nanos(|| (0..ITEMS).for_each(|item| busy.spin_for(Nanos(length), black_box(item))))
        });
        trials.fold(f64::MAX, f64::min) / ITEMS as f64
    };
    let wrong_by = |&length: &u64| (item_takes(length) - wanted.0 as f64).abs();
    let candidates = (0..=20).map(|tenth| wanted.0 * tenth / 10);
    let errors = candidates.map(|length| (wrong_by(&length), length));
    let best = errors.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(wanted, |(_, length)| Nanos(length))
}

fn sample(pool: &impl Loops, size: Size, body: &(impl Fn(u64) -> u64 + Sync)) -> Sample {
    let expected = size.items * (size.items - 1) / 2;
    check(pool.sum(size.items, body), expected)?;
    let mut sum = 0;
    let time = nanos(|| {
        (0..size.repeats).for_each(|_| sum += pool.sum(black_box(size.items), body));
    });
    check(sum, expected * u64::from(size.repeats))?;
    Ok(vec![time / f64::from(size.repeats)])
}
