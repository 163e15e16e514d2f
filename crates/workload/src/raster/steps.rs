//! The steps of a frame, as functions of what they read and of what they write.
//!
//! Each gives its worth, for platforms on which work is only charged.

use event::{Nanos, mix};

use super::BOX_SHARES;
use super::bins::{Binned, Triangle};
use super::field::{BOXES, Field};
use super::occlude::{Shadows, Visibility};
use super::plan::Plan;
use super::stages::Seen;
use super::tile::Tile;
use super::transform::Points;

/// The charges for things, per thousand of them: about the time they take on the AMD EPYC this was written
/// on.
mod charge {
    pub(super) const STATUE: u64 = 30_000;
    pub(super) const POINT: u64 = 3_000;
    pub(super) const TRIANGLE: u64 = 9_000;
    pub(super) const BOX: u64 = 90_000;
    pub(super) const DRAWN: u64 = 40_000;
    pub(super) const TESTED: u64 = 60_000;
    /// Of any step.
    pub(super) const STEP: u64 = 1_000;
}

pub(super) fn worth(count: u64, per_thousand: u64) -> Nanos {
    Nanos(charge::STEP + count * per_thousand / 1_000)
}

/// First: which statues are drawn in the frame of this number, from this place of the way.
pub(super) fn plan(field: &Field, frame: u64, step: u64, plan: &mut Plan) -> Nanos {
    plan.make(field, frame, step);
    worth(field.statues.len() as u64, charge::STATUE)
}

/// After the plan: the points of a chunk.
pub(super) fn transform(field: &Field, plan: &Plan, chunk: usize, points: &mut Points) -> Nanos {
    worth(points.transform(field, plan, chunk), charge::POINT)
}

/// After its points: the triangles of a chunk.
pub(super) fn bin(field: &Field, points: &Points, bins: &mut Binned<Triangle>) -> Nanos {
    worth(bins.bin(field, points), charge::TRIANGLE)
}

/// After the plan: where a share of the boxes is on the screen.
pub(super) fn shadows(field: &Field, plan: &Plan, share: usize, shadows: &mut Shadows) -> Nanos {
    let cut = |share: usize| share * BOXES / BOX_SHARES;
    let (from, to) = (cut(share), cut(share + 1));
    shadows.project(&plan.view, from as u32, &field.boxes[from..to]);
    worth((to - from) as u64, charge::BOX)
}

/// After all bins: the depth of a tile.
pub(super) fn raster(
    frame: u64,
    number: usize,
    bins: &[Binned<Triangle>],
    tile: &mut Tile,
) -> Nanos {
    worth(tile.draw(frame, number, bins), charge::DRAWN)
}

/// After its depth, and all boxes: those that show in a tile.
pub(super) fn test(number: usize, shadows: &[Shadows], tile: &Tile, seen: &mut Vec<u32>) -> Nanos {
    seen.clear();
    let tested = shadows.iter().map(|share| share.test(number, tile, seen));
    worth(tested.sum(), charge::TESTED)
}

/// After all tests: a box is visible if it shows in any tile.
pub(super) struct Resolve<'a>(&'a mut Seen);

impl<'a> Resolve<'a> {
    /// What is known of the boxes without a look at the tiles.
    pub(super) fn begin(shadows: &[Shadows], result: &'a mut Seen) -> Resolve<'a> {
        result.boxes.clear();
        result.boxes.resize(BOXES, Visibility::Outside);
        for &(index, known) in shadows.iter().flat_map(|shadows| &shadows.known) {
            result.boxes[index as usize] = known;
        }
        Resolve(result)
    }

    /// What shows in a tile.
    pub(super) fn add(&mut self, seen: &[u32]) {
        for &index in seen {
            self.0.boxes[index as usize] = Visibility::Visible;
        }
    }

    /// The rest of the result, which is that of this frame.
    pub(super) fn end(self, plan: &Plan, frame: u64) -> Nanos {
        self.0.frame = frame;
        self.0.view = plan.view;
        (self.0.triangles, self.0.statues) = (plan.triangles, plan.statues);
        worth(BOXES as u64, 1_000)
    }
}

/// A hash of the depth buffer and of the verdict on each box, in the frame of a number: of every bit, and of
/// parts that are not of this frame as missing.
pub(super) struct Checksum {
    frame: u64,
    hash: u64,
}

impl Checksum {
    pub(super) fn of(frame: u64) -> Checksum {
        Checksum { frame, hash: 0 }
    }

    /// Adds the next tile.
    pub(super) fn add(&mut self, number: usize, tile: &Tile) {
        let lacks = u64::from(tile.frame != self.frame) << 32 | number as u64;
        // Four sums that know their place, because one would wait for its own last step.
        let mut sums = [lacks; 4];
        for (four, depths) in (0u64..).zip(tile.depth.as_chunks::<4>().0) {
            sums = std::array::from_fn(|i| {
                let bits = u64::from(depths[i].to_bits());
                sums[i].wrapping_add(mix(four << 32 ^ bits))
            });
        }
        self.hash = sums
            .into_iter()
            .fold(self.hash, |hash, sum| mix(hash ^ sum));
    }

    /// With the verdicts, after all tiles.
    pub(super) fn end(self, seen: &Seen) -> u64 {
        let boxes = seen.boxes.iter().map(|&visibility| visibility as u64);
        let hash = boxes.fold(self.hash, |hash, visibility| mix(hash ^ visibility));
        mix(hash ^ seen.triangles ^ u64::from(seen.frame != self.frame))
    }
}
