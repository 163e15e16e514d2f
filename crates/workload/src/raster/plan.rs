//! The plan of a frame: which statues, in which detail, and how the work is cut into chunks.
//!
//! The statues that can be seen are ranked by how near they are; the nearest few are drawn in full,
//! those behind them coarser ([`LEVELS`]). Their clusters, nearest statue first, are the frame's
//! *items*; a chunk is an equal share of them.

use std::ops::Range;

use super::CHUNKS;
use super::cluster::Cluster;
use super::field::{Field, LEVELS, STREET};
use super::view::{CameraView, ToScreen};

/// A frame's draws.
#[derive(Default)]
pub(super) struct Plan {
    /// Which frame.
    pub(super) frame: u64,
    pub(super) view: CameraView,
    draws: Vec<Draw>,
    items: u32,
    /// How many triangles are submitted.
    pub(super) triangles: u64,
    /// How many statues are drawn.
    pub(super) statues: u64,
    /// Scratch: the statues that can be seen and how far ahead they are.
    seen: Vec<(f32, u32)>,
}

/// One statue's part.
struct Draw {
    to_screen: ToScreen,
    level: usize,
    first_item: u32,
}

/// A cluster of a statue.
pub(super) struct Item<'a> {
    pub(super) to_screen: &'a ToScreen,
    pub(super) level: usize,
    pub(super) cluster: u32,
}

impl Plan {
    /// Plans the frame of this number, seen from this step of the way, with the memory of an earlier
    /// one.
    pub(super) fn make(&mut self, field: &Field, frame: u64, step: u64) {
        let view = CameraView::on_the_way(step, STREET);
        self.frame = frame;
        self.view = view;
        self.seen.clear();
        for (index, place) in (0u32..).zip(&field.statues) {
            if let Some(ahead) = view.sees(place.position, field.radius * place.scale) {
                self.seen.push((ahead, index));
            }
        }
        self.seen
            .sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let levels = LEVELS.iter().enumerate();
        let levels = levels.flat_map(|(level, &(count, _))| std::iter::repeat_n(level, count));
        self.draws.clear();
        self.items = 0;
        self.triangles = 0;
        for (level, &(_, statue)) in levels.zip(&self.seen) {
            self.draws.push(Draw {
                to_screen: view.of_object(&field.statues[statue as usize]),
                level,
                first_item: self.items,
            });
            self.items += field.levels[level].clusters.len() as u32;
            self.triangles += field.levels[level].triangles.len() as u64;
        }
        self.statues = self.draws.len() as u64;
    }

    /// The items of a chunk, in the order in which they are drawn.
    pub(super) fn items_of(&self, chunk: usize) -> impl Iterator<Item = Item<'_>> {
        let Range { start, end } = self.share(chunk);
        let mut draw = self.draws.partition_point(|draw| draw.first_item <= start);
        (start..end).map(move |item| {
            while self
                .draws
                .get(draw)
                .is_some_and(|next| next.first_item <= item)
            {
                draw += 1;
            }
            let Draw {
                to_screen,
                level,
                first_item,
            } = &self.draws[draw - 1];
            Item {
                to_screen,
                level: *level,
                cluster: item - first_item,
            }
        })
    }

    fn share(&self, chunk: usize) -> Range<u32> {
        let cut = |chunk: usize| (u64::from(self.items) * chunk as u64 / CHUNKS as u64) as u32;
        cut(chunk)..cut(chunk + 1)
    }
}

impl Item<'_> {
    /// The cluster's place in its mesh.
    pub(super) fn cluster_in(&self, field: &Field) -> Cluster {
        field.levels[self.level].clusters[self.cluster as usize]
    }
}
