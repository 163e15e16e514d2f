//! Loops over data: particles, bodies that attract each other, sums, lists, pictures. Each is a line or
//! three.
#![forbid(unsafe_code)]

use paceline::{JobSystem, Tiles};

#[derive(Clone, Copy)]
struct Particle {
    position: f64,
    velocity: f64,
}

fn main() {
    let js = JobSystem::new();
    let start = |i| Particle {
        position: f64::from(i),
        velocity: 1.0,
    };
    let mut particles: Vec<Particle> = (0..100_000).map(start).collect();

    // Every particle moves. Mutable items, in safe code.
    js.over(&mut particles)
        .for_each(|p| p.position += 0.5 * p.velocity);

    // A sum. It is the same on every machine, although floating-point additions are not associative.
    let energy = js
        .over(&particles)
        .reduce(|p| p.velocity * p.velocity / 2.0, |a, b| a + b);
    println!("energy {:?}", energy);

    // All bodies attract each other: the forces are made from all, then each body takes its own.
    let mut bodies = particles[..1000].to_vec();
    let pull = |a: &Particle, b: &Particle| 1.0 / (b.position - a.position + 0.25).abs().max(1.0);
    let forces = js
        .over(&bodies)
        .map(|a| bodies.iter().map(|b| pull(a, b)).sum::<f64>());
    js.over((&mut bodies, &forces))
        .for_each(|(body, force)| body.velocity += force / 1000.0);
    println!(
        "fastest {:.4}",
        bodies.iter().map(|b| b.velocity).fold(0.0, f64::max)
    );

    // What was found, by the thread that found it.
    let found = js.per_worker(|_| Vec::new());
    js.over((0..particles.len(), &particles))
        .for_each_with(|cx, (i, p)| {
            if p.position % 10_000.0 == 0.5 {
                found.with(cx, |list| list.push(i));
            }
        });
    let mut found: Vec<usize> = found.into_iter().flatten().collect();
    found.sort_unstable();
    println!("found {found:?}");

    // A search that stops early.
    println!(
        "first beyond 500: {:?}",
        js.over(0..particles.len()).find(|&i| i * i > 500)
    );

    // A picture, in tiles of neighbours in both directions.
    let picture = Tiles {
        width: 64,
        height: 48,
        size: (16, 16),
    };
    let sums = js.over(picture).map(|tile| {
        let row = |y: usize| tile.x.clone().map(move |x| (x * y % 7) as u32);
        tile.y.clone().flat_map(row).sum::<u32>()
    });
    println!("{} tiles, {} in all", sums.len(), sums.iter().sum::<u32>());
}
