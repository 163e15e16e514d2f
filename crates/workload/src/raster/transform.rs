//! The first step of a chunk: its points go to the screen.
//!
//! Coordinates are rounded to a sixteenth of a pixel there, and everything about coverage is computed
//! in whole numbers from then on. A point that is too near, or so far outside the picture that these
//! numbers would not fit, is marked; triangles with such a point are cut ([`super::clip`]).

use super::field::Field;
use super::plan::Plan;
use super::view::{Clip, NEAR, ToScreen};

/// Sixteenths of a pixel.
pub(super) const SUBPIXELS: i32 = 16;
/// A point further than this from the corner of the picture, in pixels, is marked.
pub(super) const GUARD: f32 = 4_000.0;
/// The mark, in place of x.
pub(super) const MARK: i32 = i32::MIN;

/// A chunk's points on the screen.
#[derive(Default)]
pub(super) struct Points {
    pub(super) parts: Vec<Part>,
    /// In sixteenths of a pixel; or [`MARK`].
    pub(super) x: Vec<i32>,
    pub(super) y: Vec<i32>,
    pub(super) depth: Vec<f32>,
}

/// A cluster of a chunk.
pub(super) struct Part {
    pub(super) to_screen: ToScreen,
    pub(super) level: usize,
    pub(super) cluster: u32,
    /// Its first point among those of the chunk.
    pub(super) first: usize,
}

/// A point on the screen: x and y in sixteenths of a pixel, and its depth.
pub(super) type ScreenPoint = ([i32; 2], f32);

/// A point on the screen.
#[inline(always)]
pub(super) fn project([x, y, w]: Clip) -> ScreenPoint {
    let depth = 1.0 / w;
    let to_fixed = |scaled: f32| round(scaled * depth * SUBPIXELS as f32);
    ([to_fixed(x), to_fixed(y)], depth)
}

/// Rounds to the nearest whole number, ties to even, below 2^22. Added to 1.5 * 2^23, a float has no
/// bits for fractions left; the library's rounding is a call where processors have no instruction
/// for it, and keeps loops from being vectorized.
#[inline(always)]
fn round(value: f32) -> i32 {
    const MAGIC: f32 = 12_582_912.0;
    (value + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i32
}

/// Whether a point is to be marked.
#[inline(always)]
fn is_outside([x, y, w]: Clip) -> bool {
    let reach = GUARD * w;
    // Also true if anything is not a number. `|`: no branch, so that the loop can be vectorized.
    !((w >= NEAR) & (x <= reach) & (x >= -reach) & (y <= reach) & (y >= -reach))
}

impl Points {
    /// Transforms the points of a chunk, with the memory of an earlier frame; how many there were.
    pub(super) fn transform(&mut self, field: &Field, plan: &Plan, chunk: usize) -> u64 {
        self.parts.clear();
        self.x.clear();
        self.y.clear();
        self.depth.clear();
        for item in plan.items_of(chunk) {
            let mesh = &field.levels[item.level];
            let [from, to] = item.cluster_in(field).points.map(|point| point as usize);
            let first = self.x.len();
            self.parts.push(Part {
                to_screen: *item.to_screen,
                level: item.level,
                cluster: item.cluster,
                first,
            });
            let end = first + (to - from);
            self.x.resize(end, 0);
            self.y.resize(end, 0);
            self.depth.resize(end, 0.0);
            transform(
                item.to_screen,
                [&mesh.x[from..to], &mesh.y[from..to], &mesh.z[from..to]],
                (&mut self.x[first..], &mut self.y[first..]),
                &mut self.depth[first..],
            );
        }
        self.x.len() as u64
    }
}

/// Transforms points; the loop works on several at a time.
#[inline(never)]
fn transform(
    to_screen: &ToScreen,
    [xs, ys, zs]: [&[f32]; 3],
    (out_x, out_y): (&mut [i32], &mut [i32]),
    out_depth: &mut [f32],
) {
    let count = xs.len();
    let (ys, zs) = (&ys[..count], &zs[..count]);
    let (out_x, out_y) = (&mut out_x[..count], &mut out_y[..count]);
    let out_depth = &mut out_depth[..count];
    for i in 0..count {
        let clip = to_screen.apply([xs[i], ys[i], zs[i]]);
        let ([x, y], depth) = project(clip);
        out_x[i] = if is_outside(clip) { MARK } else { x };
        out_y[i] = y;
        out_depth[i] = depth;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: rounding is to the nearest, and points are marked exactly when they are outside. Method:
    /// values around halves and around each border.
    #[test]
    fn points_are_rounded_and_marked() {
        for (value, rounded) in [
            (0.49, 0),
            (0.5, 0),
            (0.51, 1),
            (1.5, 2),
            (-0.51, -1),
            (-64_999.7, -65_000),
        ] {
            assert_eq!(round(value), rounded, "{value}");
        }
        for (clip, outside) in [
            ([0.0, 0.0, NEAR], false),
            ([0.0, 0.0, NEAR - 0.001], true),
            ([8_000.0, -8_000.0, 2.0], false),
            ([8_001.0, 0.0, 2.0], true),
            ([0.0, -8_001.0, 2.0], true),
            ([f32::NAN, 0.0, 2.0], true),
            ([0.0, 0.0, f32::NAN], true),
        ] {
            assert_eq!(is_outside(clip), outside, "{clip:?}");
        }
        assert_eq!(project([20.0, 5.0, 2.0]), ([160, 40], 0.5));
    }
}
