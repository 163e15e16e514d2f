//! The last step: which boxes can be seen.
//!
//! A box is taken for the rectangle on the screen that its corners span, at the depth of its nearest
//! corner. It is hidden if everything drawn in that rectangle is nearer still. Both only make it
//! larger and nearer than it is, so a box that shows in a single pixel is never called hidden; one
//! that is hidden may be called visible.

use super::bins::{Binned, OnScreen, PixelRect};
use super::field::Cuboid;
use super::tile::{Tile, origin, within};
use super::view::{CameraView, NEAR};
use super::{TILE_HEIGHT, TILE_WIDTH};

/// The verdict on a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// It is not in the picture.
    #[default]
    Outside,
    /// It is in the picture, behind the drawn surfaces.
    Hidden,
    /// It may be seen.
    Visible,
}

/// A box on the screen.
pub(super) struct Shadow {
    pub(super) index: u32,
    pixels: PixelRect,
    nearest: f32,
}

impl OnScreen for Shadow {
    #[inline(always)]
    fn pixels(&self) -> PixelRect {
        self.pixels
    }
}

/// The state of a box before anything is drawn.
pub(super) enum Projected {
    /// Not in the picture.
    Outside,
    /// So near that the question is not asked.
    Visible,
    /// These pixels at most, at most as near as this.
    Within(PixelRect, f32),
}

/// Where a box is on the screen.
pub(super) fn project(view: &CameraView, cuboid: &Cuboid) -> Projected {
    // Rounding moves a corner by far less than this, in pixels.
    const SLACK: f32 = 0.01;
    const SLACK_DEPTH: f32 = 1.000_01;
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    let (mut nearest, mut behind) = (0.0, 0);
    for corner in 0..8 {
        let point = std::array::from_fn(|axis| {
            let side = if corner >> axis & 1 == 0 { -1.0 } else { 1.0 };
            cuboid.middle[axis] + side * cuboid.half[axis]
        });
        let [x, y, w] = view.world.apply(point);
        if w < NEAR {
            behind += 1;
            continue;
        }
        let depth = 1.0 / w;
        for (axis, at) in [x * depth, y * depth].into_iter().enumerate() {
            low[axis] = if at < low[axis] { at } else { low[axis] };
            high[axis] = if at > high[axis] { at } else { high[axis] };
        }
        nearest = if depth > nearest { depth } else { nearest };
    }
    match behind {
        0 => {}
        8 => return Projected::Outside,
        _ => return Projected::Visible,
    }
    let [x, y] = [0, 1].map(|axis| {
        [
            (low[axis] - SLACK).floor() as i32,
            (high[axis] + SLACK).floor() as i32,
        ]
    });
    match PixelRect::clamped(x, y) {
        None => Projected::Outside,
        Some(pixels) => Projected::Within(pixels, nearest * SLACK_DEPTH),
    }
}

/// A share of the boxes on the screen.
#[derive(Default)]
pub(super) struct Shadows {
    binned: Binned<Shadow>,
    /// Those that are seen, or not, without a look at the drawn tiles.
    pub(super) known: Vec<(u32, Visibility)>,
}

impl Shadows {
    /// Projects boxes, the first of which has this number.
    pub(super) fn project(&mut self, view: &CameraView, first: u32, cuboids: &[Cuboid]) {
        let known = &mut self.known;
        known.clear();
        self.binned.refill(|kept| {
            for (index, cuboid) in (first..).zip(cuboids) {
                match project(view, cuboid) {
                    Projected::Outside => known.push((index, Visibility::Outside)),
                    Projected::Visible => known.push((index, Visibility::Visible)),
                    Projected::Within(pixels, nearest) => {
                        known.push((index, Visibility::Hidden));
                        kept.push(Shadow {
                            index,
                            pixels,
                            nearest,
                        });
                    }
                }
            }
        });
    }

    /// Adds the boxes that show in this tile to `seen`; how many were looked at.
    pub(super) fn test(&self, number: usize, tile: &Tile, seen: &mut Vec<u32>) -> u64 {
        let [left, top] = origin(number);
        for shadow in self.binned.in_tile(number) {
            let columns = within(shadow.pixels.x, left, TILE_WIDTH);
            let rows = within(shadow.pixels.y, top, TILE_HEIGHT);
            if tile.is_before(shadow.nearest, columns, rows) {
                seen.push(shadow.index);
            }
        }
        self.binned.count_in_tile(number)
    }
}
