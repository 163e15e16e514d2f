//! Bodies that attract each other, all by all.

use rayon::prelude::*;

use crate::Step;
use crate::numbers::number;

const BODIES: u64 = 1200;
const TIME: f64 = 1e-3;

#[derive(Clone, Copy)]
struct Body {
    place: [f64; 3],
    speed: [f64; 3],
}

/// A step is a step of time. Each body's force is summed in the same order on any thread.
pub(crate) fn program() -> Step {
    let coordinate = |n: u64| number(n) as f64 / u64::MAX as f64 - 0.5;
    let body = |n: u64| Body {
        place: [0, 1, 2].map(|axis| coordinate(3 * n + axis)),
        speed: [0.0; 3],
    };
    let mut bodies: Vec<Body> = (0..BODIES).map(body).collect();
    Box::new(move || {
        let forces: Vec<[f64; 3]> = bodies.par_iter().map(|body| force(body, &bodies)).collect();
        bodies.par_iter_mut().zip(forces).for_each(|(body, force)| {
            for (axis, force) in force.into_iter().enumerate() {
                body.speed[axis] += force * TIME;
                body.place[axis] += body.speed[axis] * TIME;
            }
        });
        bodies.iter().fold(0, |digest, body| {
            digest.rotate_left(1) ^ body.place[0].to_bits()
        })
    })
}

fn force(on: &Body, bodies: &[Body]) -> [f64; 3] {
    let mut force = [0.0; 3];
    for body in bodies {
        let away: [f64; 3] = std::array::from_fn(|axis| body.place[axis] - on.place[axis]);
        let square = away.iter().map(|x| x * x).sum::<f64>() + 1e-4;
        let strength = 1.0 / (square * square.sqrt());
        for axis in 0..3 {
            force[axis] += away[axis] * strength;
        }
    }
    force
}
