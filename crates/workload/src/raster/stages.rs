//! The buffers in which the steps of a frame leave their results.
//!
//! Each step ([`super::steps`]) takes its buffers here, once the steps before it are over, on any thread;
//! [`super::run`] says which those are. A serial run calls them one after the other.
//!
//! Invariant: a step writes its own buffers and reads those of the steps before it. The result of a frame
//! does not depend on which thread runs which step, or when. Each step hands on the number of the frame that
//! its input is of, so a step that came too early shows in the checksum even if it had nothing to draw.

use std::sync::Arc;

use event::Nanos;

use super::bins::{Binned, Triangle};
use super::field::Field;
use super::mesh::Mesh;
use super::occlude::{Shadows, Visibility};
use super::plan::Plan;
use super::slot::Slot;
use super::steps::{self, Checksum, Resolve};
use super::tile::Tile;
use super::transform::Points;
use super::view::CameraView;
use super::{BOX_SHARES, CHUNKS, TILES};

/// The number of a frame that there is not.
const NO_FRAME: u64 = u64::MAX;

/// The frame that two inputs are both of, if they are.
fn agreed(a: u64, b: u64) -> u64 {
    if a == b { a } else { NO_FRAME }
}

/// Something and the frame it is of.
struct Dated<T> {
    frame: u64,
    value: T,
}

impl<T: Default> Default for Dated<T> {
    fn default() -> Dated<T> {
        Dated {
            frame: NO_FRAME,
            value: T::default(),
        }
    }
}

/// Takes what all slots have; the frame that all of it is of.
fn take_all<T: Send + Default>(slots: &[Slot<Dated<T>>], mut frame: u64) -> (u64, Vec<T>) {
    let dated = slots.iter().map(Slot::take);
    let values = dated.map(|dated| {
        frame = agreed(frame, dated.frame);
        dated.value
    });
    let values = values.collect();
    (frame, values)
}

/// Puts it back for the next frame, which must not take it for its own.
fn put_back<T: Send>(slots: &[Slot<Dated<T>>], values: Vec<T>) {
    for (slot, value) in slots.iter().zip(values) {
        slot.put(Dated {
            frame: NO_FRAME,
            value,
        });
    }
}

/// The inputs and the buffers of a frame.
pub(super) struct Buffers {
    field: Arc<Field>,
    plan: Slot<Arc<Plan>>,
    /// By chunk.
    points: Vec<Slot<Dated<Points>>>,
    bins: Vec<Slot<Dated<Binned<Triangle>>>>,
    /// By share of the boxes.
    shadows: Vec<Slot<Dated<Shadows>>>,
    gathered: Slot<Arc<Dated<Gathered>>>,
    /// By tile.
    tiles: Vec<Slot<Tile>>,
    seen: Vec<Slot<Dated<Vec<u32>>>>,
    result: Slot<Seen>,
}

/// The input of all tiles.
#[derive(Default)]
struct Gathered {
    bins: Vec<Binned<Triangle>>,
    shadows: Vec<Shadows>,
}

/// The results of a frame.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// The number of the frame.
    pub(super) frame: u64,
    pub(super) view: CameraView,
    /// Of each box.
    pub(super) boxes: Vec<Visibility>,
    /// How many triangles and statues were submitted.
    pub(super) triangles: u64,
    pub(super) statues: u64,
}

impl Buffers {
    pub(super) fn new(field: Arc<Field>) -> Buffers {
        fn slots<T: Send>(count: usize) -> Vec<Slot<T>> {
            (0..count).map(|_| Slot::default()).collect()
        }
        Buffers {
            field,
            plan: Slot::default(),
            points: slots(CHUNKS),
            bins: slots(CHUNKS),
            shadows: slots(BOX_SHARES),
            gathered: Slot::default(),
            tiles: slots(TILES),
            seen: slots(TILES),
            result: Slot::default(),
        }
    }

    pub(super) fn field(&self) -> &Arc<Field> {
        &self.field
    }

    /// First: which statues are drawn in the frame of this number, from this place of the way.
    pub(super) fn plan(&self, frame: u64, step: u64) -> Nanos {
        let mut plan = self.plan.take_back();
        let worth = steps::plan(&self.field, frame, step, &mut plan);
        self.plan.put(Arc::new(plan));
        worth
    }

    /// After the plan: the points of a chunk.
    pub(super) fn transform(&self, chunk: usize) -> Nanos {
        let mut points = self.points[chunk].take();
        let plan = self.plan.share();
        let worth = steps::transform(&self.field, &plan, chunk, &mut points.value);
        points.frame = plan.frame;
        self.points[chunk].put(points);
        worth
    }

    /// After its points: the triangles of a chunk.
    pub(super) fn bin(&self, chunk: usize) -> Nanos {
        let points = self.points[chunk].take();
        let mut bins = self.bins[chunk].take();
        let worth = steps::bin(&self.field, &points.value, &mut bins.value);
        bins.frame = points.frame;
        self.points[chunk].put(points);
        self.bins[chunk].put(bins);
        worth
    }

    /// After the plan: where a share of the boxes is on the screen.
    pub(super) fn shadows(&self, share: usize) -> Nanos {
        let mut shadows = self.shadows[share].take();
        let plan = self.plan.share();
        let worth = steps::shadows(&self.field, &plan, share, &mut shadows.value);
        shadows.frame = plan.frame;
        self.shadows[share].put(shadows);
        worth
    }

    /// After all bins and boxes: they are put together for the tiles to read.
    pub(super) fn gather(&self) -> Nanos {
        let frame = self.plan.share().frame;
        let (frame, bins) = take_all(&self.bins, frame);
        let (frame, shadows) = take_all(&self.shadows, frame);
        let value = Gathered { bins, shadows };
        self.gathered.put(Arc::new(Dated { frame, value }));
        steps::worth(0, 0)
    }

    /// After gathering: the depth of a tile.
    pub(super) fn raster(&self, number: usize) -> Nanos {
        let gathered = self.gathered.share();
        let mut tile = self.tiles[number].take();
        let worth = steps::raster(gathered.frame, number, &gathered.value.bins, &mut tile);
        self.tiles[number].put(tile);
        worth
    }

    /// After its depth: the boxes that show in a tile.
    pub(super) fn test(&self, number: usize) -> Nanos {
        let gathered = self.gathered.share();
        let tile = self.tiles[number].take();
        let mut seen = self.seen[number].take();
        let worth = steps::test(number, &gathered.value.shadows, &tile, &mut seen.value);
        seen.frame = agreed(gathered.frame, tile.frame);
        self.tiles[number].put(tile);
        self.seen[number].put(seen);
        worth
    }

    /// After all tests: a box is visible if it shows in any tile. The buffers go back to where the
    /// next frame looks for them.
    pub(super) fn resolve(&self) -> Nanos {
        let Dated {
            mut frame,
            value: gathered,
        } = self.gathered.take_back();
        let mut result = self.result.take();
        let mut resolve = Resolve::begin(&gathered.shadows, &mut result);
        for seen in &self.seen {
            seen.look(|seen| {
                frame = agreed(frame, seen.frame);
                resolve.add(&seen.value);
            });
        }
        put_back(&self.bins, gathered.bins);
        put_back(&self.shadows, gathered.shadows);
        let plan = self.plan.share();
        let worth = resolve.end(&plan, agreed(frame, plan.frame));
        self.result.put(result);
        worth
    }

    /// The whole frame on this thread.
    pub(super) fn run_serial(&self, frame: u64, step: u64, charge: impl Fn(Nanos)) {
        charge(self.plan(frame, step));
        for chunk in 0..CHUNKS {
            charge(self.transform(chunk));
            charge(self.bin(chunk));
        }
        (0..BOX_SHARES).for_each(|share| charge(self.shadows(share)));
        charge(self.gather());
        for tile in 0..TILES {
            charge(self.raster(tile));
            charge(self.test(tile));
        }
        charge(self.resolve());
    }

    /// The results of the last frame.
    pub(super) fn seen(&self) -> Seen {
        self.result.look(Seen::clone)
    }

    /// Calls `look` with each tile in order.
    pub(super) fn look_at_tiles(&self, mut look: impl FnMut(usize, &Tile)) {
        for (number, tile) in self.tiles.iter().enumerate() {
            tile.look(|tile| look(number, tile));
        }
    }

    /// The checksum of the frame of this number.
    pub(super) fn checksum(&self, frame: u64) -> u64 {
        let mut checksum = Checksum::of(frame);
        self.look_at_tiles(|number, tile| checksum.add(number, tile));
        self.result.look(|seen| checksum.end(seen))
    }
}

/// A field of this mesh with buffers for one frame at a time.
pub(super) fn buffers_of(mesh: Mesh) -> Buffers {
    Buffers::new(Arc::new(Field::new(mesh)))
}
