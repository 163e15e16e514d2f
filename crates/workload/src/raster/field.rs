//! The scenery: statues of the mesh in rows, crates strewn between them.
//!
//! Statues hide, and crates may be hidden. Both are laid out by seeded draws and stay where they are; only
//! the camera moves.

use super::cluster::Clusters;
use super::mesh::Mesh;
use super::simplify::simplified;
use super::view::{Place, Vec3, dot};
use crate::Random;

/// Statues along one side of the field.
const SIDE: u64 = 24;
/// From one statue to the next; streets run in the middle between them.
pub(super) const STREET: f32 = 6.5;
/// How many crates there are.
pub(super) const BOXES: usize = 4_096;
/// The seed of the field.
const SEED: u64 = 1;

/// The levels of detail: how many statues of a frame get each, the nearest the finest, and the most
/// triangles of its mesh. The finest is the mesh as it was given, unless it has more.
pub(super) const LEVELS: [(usize, usize); 4] = [(4, 15_000), (8, 3_750), (40, 920), (200, 100)];
/// The most triangles of a frame, whatever the mesh: 146 800.
pub const MAX_TRIANGLES: usize = {
    let (mut level, mut sum) = (0, 0);
    while level < LEVELS.len() {
        sum += LEVELS[level].0 * LEVELS[level].1;
        level += 1;
    }
    sum
};

/// A crate: its middle and half of its size along each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cuboid {
    pub(super) middle: Vec3,
    pub(super) half: Vec3,
}

/// Statues and crates.
pub(super) struct Field {
    /// The mesh, from full to coarsest.
    pub(super) levels: Vec<Clusters>,
    /// How far the mesh reaches from its middle, at scale 1.
    pub(super) radius: f32,
    pub(super) statues: Vec<Place>,
    pub(super) boxes: Vec<Cuboid>,
}

impl Field {
    /// A field of statues of this mesh.
    pub(super) fn new(mesh: Mesh) -> Field {
        let mesh = mesh.normalized();
        let mut random = Random::new(SEED);
        let squares = mesh.positions().iter().map(|&point| dot(point, point));
        let lowest = mesh.positions().iter().map(|point| point[1]);
        let lowest = lowest.fold(0.0, f32::min);
        let mut levels = Vec::new();
        let mut finer = mesh.clone();
        for (_, most) in LEVELS {
            finer = simplified(&finer, most);
            levels.push(Clusters::new(&finer));
        }
        Field {
            levels,
            radius: squares.fold(0.0, f32::max).sqrt(),
            statues: (0..SIDE * SIDE)
                .map(|index| statue(index, lowest, &mut random))
                .collect(),
            boxes: (0..BOXES).map(|_| cuboid(&mut random)).collect(),
        }
    }
}

/// A number in `low..high`, one of 4096 evenly spaced ones.
fn draw(random: &mut Random, low: f32, high: f32) -> f32 {
    low + (high - low) * random.below(4_096) as f32 / 4_096.0
}

/// The statue at this place of the grid: on the ground, of some size, turned somehow.
fn statue(index: u64, lowest: f32, random: &mut Random) -> Place {
    let at = |row: u64| (row as f32 - (SIDE - 1) as f32 / 2.0) * STREET;
    let scale = draw(random, 1.6, 2.3);
    // Cosine and sine by the tangent of half the angle: exact operations only.
    let tangent = draw(random, -1.0, 1.0);
    let square = tangent * tangent;
    let (cos, sin) = (
        (1.0 - square) / (1.0 + square),
        2.0 * tangent / (1.0 + square),
    );
    // Half of them look the other way.
    let side = if random.below(2) == 0 { 1.0 } else { -1.0 };
    Place {
        position: [at(index % SIDE), -lowest * scale, at(index / SIDE)],
        turn: [side * cos, side * sin],
        scale,
    }
}

/// A crate somewhere in the field, on the ground or on others.
fn cuboid(random: &mut Random) -> Cuboid {
    let reach = SIDE as f32 / 2.0 * STREET;
    let half = std::array::from_fn(|_| draw(random, 0.12, 0.45));
    let above = draw(random, 0.0, 1.2);
    Cuboid {
        middle: [
            draw(random, -reach, reach),
            half[1] + above,
            draw(random, -reach, reach),
        ],
        half,
    }
}
