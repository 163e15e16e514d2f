//! Cutting triangles that come too near or reach too far outside.
//!
//! Sutherland and Hodgman ("Reentrant polygon clipping", 1974): the polygon is cut by one plane after
//! the other. This is rare, and for the few.
//!
//! Invariant: two triangles that share an edge share the rest of it, to the last bit: planes come in one
//! order, and where an edge is cut is computed from its inner end to its outer one, whichever way the
//! triangle runs. And a point that [`super::transform`] does not mark is never cut off, so that an uncut
//! neighbour ends at the same points: the planes lie beyond the marks.

use super::transform::{GUARD, ScreenPoint, project};
use super::view::{Clip, NEAR};

/// Where triangles are cut at the sides, in pixels. Coordinates up to here fit in 17 bits.
const REACH: f32 = 4_064.0;
const _: () = assert!(GUARD < REACH && REACH < 4_096.0);

/// How far inside of each plane a point is.
const PLANES: [fn(Clip) -> f32; 5] = [
    |[_, _, w]| w - NEAR,
    |[x, _, w]| REACH * w + x,
    |[x, _, w]| REACH * w - x,
    |[_, y, w]| REACH * w + y,
    |[_, y, w]| REACH * w - y,
];

/// Room for the corners of the rest. A plane adds one to a convex polygon, and in the worst case, of one that
/// rounding has bent, half as many as there are: 3, 4, 6, 9, 13, 19.
const CORNERS: usize = 20;

/// Calls `draw` with each triangle that is left of this one.
#[cold]
pub(super) fn clip(triangle: [Clip; 3], mut draw: impl FnMut([ScreenPoint; 3])) {
    let mut polygon = Polygon::default();
    for corner in triangle {
        polygon.push(corner);
    }
    for inside in PLANES {
        polygon = polygon.cut(inside);
    }
    let corners = &polygon.corners[..polygon.count];
    if let [first, rest @ ..] = corners {
        for pair in rest.windows(2) {
            draw([*first, pair[0], pair[1]].map(project));
        }
    }
}

#[derive(Default)]
struct Polygon {
    corners: [Clip; CORNERS],
    count: usize,
}

impl Polygon {
    fn push(&mut self, corner: Clip) {
        self.corners[self.count] = corner;
        self.count += 1;
    }

    /// The part of it on the inner side of a plane.
    fn cut(&self, inside: fn(Clip) -> f32) -> Polygon {
        let mut left = Polygon::default();
        let corners = &self.corners[..self.count];
        for (index, &corner) in corners.iter().enumerate() {
            let next = corners[(index + 1) % corners.len()];
            let (here, there) = (inside(corner), inside(next));
            if here >= 0.0 {
                left.push(corner);
            }
            // A value that is not a number counts as outside, like one below 0.
            match (here >= 0.0, there >= 0.0) {
                (true, false) => left.push(between(corner, next, here, there)),
                (false, true) => left.push(between(next, corner, there, here)),
                _ => {}
            }
        }
        left
    }
}

/// Where the edge from a point inside to one outside meets the plane.
fn between(inner: Clip, outer: Clip, inside: f32, outside: f32) -> Clip {
    let part = inside / (inside - outside);
    std::array::from_fn(|axis| inner[axis] + (outer[axis] - inner[axis]) * part)
}
