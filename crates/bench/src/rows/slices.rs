//! `slices`: loops over data, as programs write them.

use std::hint::black_box;

use console::Failure;
use paceline::JobSystem;
use platform::Os;
use rayon::iter::{
    IndexedParallelIterator, IntoParallelRefIterator, IntoParallelRefMutIterator, ParallelIterator,
};

use super::loops::Serial;
use crate::case::Case;
use crate::pools;
use crate::row::{Row, nanos};
use crate::session::{Contestant, Sample, Setup, interleave};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "slices",
    title: "loops over slices: particles that move, their energy, a list of results",
    means: "*move*: the positions of particles and their speeds, two slices side by side, the first one \
            written (`js.over((&mut positions, &speeds)).for_each(…)`; `par_iter_mut().zip(…)` of rayon). \
            *energy*: a sum of squares (`reduce`). *collect*: a new vector of results (`map`). 40 000 and \
            400 000 particles of two floating-point numbers, which takes one thread some 0.03 to 1 ms; the \
            time of one loop, called again and again by the same thread. Results are compared with serial \
            ones. Sums of rayon depend on where it divides the items, and are compared within rounding.",
    measure,
};

/// The ways to go over the data.
trait Slices {
    fn step(&self, positions: &mut [f64], speeds: &[f64]);
    fn energy(&self, speeds: &[f64]) -> f64;
    fn collect(&self, positions: &[f64]) -> Vec<f64>;
}

impl Slices for Serial {
    fn step(&self, positions: &mut [f64], speeds: &[f64]) {
        for (position, speed) in positions.iter_mut().zip(speeds) {
            moved(position, *speed);
        }
    }

    fn energy(&self, speeds: &[f64]) -> f64 {
        speeds.iter().map(|&speed| energy(speed)).sum()
    }

    fn collect(&self, positions: &[f64]) -> Vec<f64> {
        positions.iter().map(|&position| seen(position)).collect()
    }
}

impl Slices for JobSystem<Os> {
    fn step(&self, positions: &mut [f64], speeds: &[f64]) {
        self.over((positions, speeds))
            .for_each(|(position, speed)| moved(position, *speed));
    }

    fn energy(&self, speeds: &[f64]) -> f64 {
        let sum = self
            .over(speeds)
            .reduce(|&speed| energy(speed), |a, b| a + b);
        sum.unwrap_or(0.0)
    }

    fn collect(&self, positions: &[f64]) -> Vec<f64> {
        self.over(positions).map(|&position| seen(position))
    }
}

impl Slices for rayon::ThreadPool {
    fn step(&self, positions: &mut [f64], speeds: &[f64]) {
        self.install(|| {
            let both = positions.par_iter_mut().zip(speeds);
            both.for_each(|(position, speed)| moved(position, *speed));
        });
    }

    fn energy(&self, speeds: &[f64]) -> f64 {
        self.install(|| speeds.par_iter().map(|&speed| energy(speed)).sum())
    }

    fn collect(&self, positions: &[f64]) -> Vec<f64> {
        self.install(|| {
            positions
                .par_iter()
                .map(|&position| seen(position))
                .collect()
        })
    }
}

fn moved(position: &mut f64, speed: f64) {
    let next = *position + 0.016 * speed;
    *position = if next > 1.0 { next - 1.0 } else { next };
}

fn energy(speed: f64) -> f64 {
    0.5 * speed * speed
}

fn seen(position: f64) -> f64 {
    (position * 1.5 + 0.25).sqrt()
}

/// The loops of the row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Move,
    Energy,
    Collect,
}

const WORKS: [(Work, &str); 3] = [
    (Work::Move, "move"),
    (Work::Energy, "energy"),
    (Work::Collect, "collect"),
];

#[derive(Clone, Copy)]
struct Size {
    work: Work,
    items: usize,
    repeats: u32,
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for items in [40_000, 400_000] {
        for (work, name) in WORKS {
            let size = Size {
                work,
                items: setup.size(items, items / 100),
                repeats: setup.size(4_000_000 / items as u32, 3),
            };
            let case = measure_size(setup, size, name)?;
            cases.push(case.with_target(|case| case.to_best_peer(setup, 1.0)));
        }
    }
    Ok(cases)
}

fn measure_size(setup: &mut Setup, size: Size, name: &str) -> Result<Case, Failure> {
    let (threads, rounds) = (setup.threads, setup.size(25, 2));
    let mut subjects = vec![
        Contestant::new(Who::Serial, move || sample(&Serial, size)),
        Contestant::new(Who::Paceline, move || {
            sample(&pools::paceline(threads)?, size)
        }),
    ];
    if setup.peers {
        let rayon = move || sample(&pools::rayon(threads)?, size);
        let member = move || pools::on_own_thread(|| sample(&pools::rayon_member(threads)?, size));
        subjects.push(Contestant::new(Who::Rayon, rayon));
        subjects.push(Contestant::new(Who::RayonMember, member));
    }
    let samples = interleave(setup, ROW.name, rounds, subjects)?;
    let samples = samples.into_iter().map(|samples| samples.only());
    let label = format!("{name}, {} items", size.items);
    let case = Case::new(ROW.name, label, "µs per loop", samples);
    if !setup.peers {
        return Ok(case);
    }
    Ok(case
        .with_cannot(Who::Chili, "joins only")
        .with_cannot(Who::Bevy, "chunks of one slice, by number")
        .with_cannot(Who::Tbb, "its runner has no data of its own"))
}

/// The median time of a loop, in microseconds.
fn sample(pool: &impl Slices, size: Size) -> Sample {
    let value = |item: usize| (item % 1000) as f64 / 1000.0;
    let mut positions: Vec<f64> = (0..size.items).map(value).collect();
    let speeds: Vec<f64> = (0..size.items).map(|item| 1.0 - value(item)).collect();
    compare(pool, size.work, &positions, &speeds)?;
    let mut times: Vec<f64> = (0..size.repeats)
        .map(|_| nanos(|| once(pool, size.work, &mut positions, &speeds)) / 1e3)
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    Ok(vec![times[times.len() / 2]])
}

fn once(pool: &impl Slices, work: Work, positions: &mut [f64], speeds: &[f64]) {
    match work {
        Work::Move => pool.step(black_box(positions), black_box(speeds)),
        Work::Energy => _ = black_box(pool.energy(black_box(speeds))),
        Work::Collect => drop(black_box(pool.collect(black_box(positions)))),
    }
}

/// Fails if the result is not the serial one.
fn compare(
    pool: &impl Slices,
    work: Work,
    positions: &[f64],
    speeds: &[f64],
) -> Result<(), String> {
    let is_right = match work {
        Work::Move => {
            let (mut ours, mut alone) = (positions.to_vec(), positions.to_vec());
            pool.step(&mut ours, speeds);
            Serial.step(&mut alone, speeds);
            ours == alone
        }
        Work::Energy => {
            let (ours, alone) = (pool.energy(speeds), Serial.energy(speeds));
            (ours - alone).abs() <= 1e-9 * alone.abs()
        }
        Work::Collect => pool.collect(positions) == Serial.collect(positions),
    };
    if is_right {
        Ok(())
    } else {
        Err("a loop gave another result than the serial one".to_owned())
    }
}
