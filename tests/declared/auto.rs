//! Goal: jobs that are all `auto` leave what they would leave one after the other, in the order of the calls,
//! whoever runs them, also beside dependencies that were told, and waits in between.
//! Method: random jobs whose steps do not commute, on simulated threads under random orders of steps, and on
//! the machine, against the serial run.

use paceline::{Builder, JobId, JobSystem, Shared};
use platform::Platform;
use sim::{Sim, SimConfig};

use crate::support::{Random, delays, each_seed, watched};

const PIECES: usize = 4;
const ITEMS: usize = 6;
const JOBS: u64 = 30;

fn step(job: u64, read: &[u64], written: &mut [u64]) {
    let sum = read
        .iter()
        .fold(job, |sum, item| sum.wrapping_mul(31).wrapping_add(*item));
    for item in written {
        *item = item.wrapping_mul(37).wrapping_add(sum);
    }
}

fn program<P: Platform>(js: &JobSystem<P>, random: &mut Random) {
    let piece = |number| js.share_slice("piece", vec![number as u64; ITEMS]);
    let data: Vec<Shared<[u64], P>> = (0..PIECES).map(piece).collect();
    let mut serial: Vec<Vec<u64>> = (0..PIECES as u64)
        .map(|number| vec![number; ITEMS])
        .collect();
    let mut jobs: Vec<JobId> = Vec::new();
    for number in 0..JOBS {
        let (from, to) = (random.below(PIECES), random.below(PIECES));
        let to = if to == from { (to + 1) % PIECES } else { to };
        let start = random.below(ITEMS);
        let part = start..start + random.below(ITEMS - start + 1);
        let read = serial[from][part.clone()].to_vec();
        step(number, &read, &mut serial[to]);
        let mut job = js.job("step").auto();
        if let Some(last) = jobs.last().filter(|_| random.chance(20)) {
            job = job.after(*last);
        }
        let job = job.reads(data[from].part(part)).writes(&data[to]);
        jobs.push(job.schedule(move |_, (read, written)| step(number, read, written)));
        if random.chance(10) {
            js.wait(*random.pick(&jobs));
        }
    }
    for job in jobs {
        js.wait(job);
    }
    for (data, serial) in data.iter().zip(&serial) {
        assert_eq!(data.read()[..], serial[..]);
    }
}

#[test]
fn auto_on_simulated_threads() {
    each_seed("declared::auto::auto_on_simulated_threads", 500, |seed| {
        let config = match seed % 3 {
            0 => delays(seed),
            _ => SimConfig::new(seed),
        };
        let report = Sim::run(config, |sim| {
            let builder = Builder::with_platform(sim).workers(seed as usize % 4);
            program(
                &builder.checks(true).build().unwrap(),
                &mut Random::new(seed),
            );
        });
        assert_eq!(report.outcome, sim::Outcome::Finished, "{report}");
    });
}

#[test]
fn auto_on_threads() {
    watched("auto on threads", || {
        for workers in [0, 1, 3] {
            let js = Builder::new()
                .workers(workers)
                .checks(true)
                .build()
                .unwrap();
            each_seed("declared::auto::auto_on_threads", 200, |seed| {
                program(&js, &mut Random::new(seed));
            });
        }
    });
}
