//! The second step of a chunk: its triangles, sorted by the tiles they may touch.
//!
//! Invariant: a tile's list has a chunk's triangles in the order in which they were submitted, so that
//! tiles that read the chunks in order see the order of a serial run.

use super::clip::clip;
use super::field::Field;
use super::transform::{MARK, Points, SUBPIXELS, ScreenPoint};
use super::{HEIGHT, TILE_HEIGHT, TILE_WIDTH, TILES, TILES_ACROSS, WIDTH};

/// Pixels, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PixelRect {
    pub(super) x: [u16; 2],
    pub(super) y: [u16; 2],
}

impl PixelRect {
    /// The pixels of the picture in these columns and rows; none if there are none.
    #[inline(always)]
    pub(super) fn clamped(x: [i32; 2], y: [i32; 2]) -> Option<PixelRect> {
        let x = [x[0].max(0), x[1].min(WIDTH as i32 - 1)];
        let y = [y[0].max(0), y[1].min(HEIGHT as i32 - 1)];
        (x[0] <= x[1] && y[0] <= y[1]).then_some(PixelRect {
            x: [x[0] as u16, x[1] as u16],
            y: [y[0] as u16, y[1] as u16],
        })
    }

    /// Calls `visit` with each tile it touches.
    #[inline(always)]
    fn for_each_tile(self, mut visit: impl FnMut(usize)) {
        let (left, right) = (usize::from(self.x[0]), usize::from(self.x[1]));
        let (top, bottom) = (usize::from(self.y[0]), usize::from(self.y[1]));
        let (left, right) = (left / TILE_WIDTH, right / TILE_WIDTH);
        let (top, bottom) = (top / TILE_HEIGHT, bottom / TILE_HEIGHT);
        // Nearly all triangles are in one tile.
        if left == right && top == bottom {
            return visit(top * TILES_ACROSS + left);
        }
        for row in top..=bottom {
            for column in left..=right {
                visit(row * TILES_ACROSS + column);
            }
        }
    }
}

/// For each tile, a list of things by their number, ascending.
#[derive(Default)]
pub(super) struct TileLists {
    /// Where each tile's list ends in `numbers`.
    ends: Vec<u32>,
    numbers: Vec<u32>,
}

impl TileLists {
    /// Sorts things by the tiles that their pixels are in.
    fn sort(&mut self, pixels: impl Iterator<Item = PixelRect> + Clone) {
        self.ends.clear();
        self.ends.resize(TILES, 0);
        for pixels in pixels.clone() {
            pixels.for_each_tile(|tile| self.ends[tile] += 1);
        }
        let mut sum = 0;
        for end in &mut self.ends {
            (*end, sum) = (sum, sum + *end);
        }
        self.numbers.clear();
        self.numbers.resize(sum as usize, 0);
        // Each list's end is its beginning now, and moves on with every number.
        for (number, pixels) in (0u32..).zip(pixels) {
            pixels.for_each_tile(|tile| {
                self.numbers[self.ends[tile] as usize] = number;
                self.ends[tile] += 1;
            });
        }
    }

    /// The list of a tile.
    pub(super) fn of(&self, tile: usize) -> &[u32] {
        let Some(&end) = self.ends.get(tile) else {
            return &[];
        };
        let begin = if tile == 0 { 0 } else { self.ends[tile - 1] };
        &self.numbers[begin as usize..end as usize]
    }
}

/// Things on the screen with the tiles they touch.
pub(super) struct Binned<T> {
    things: Vec<T>,
    lists: TileLists,
}

impl<T> Default for Binned<T> {
    fn default() -> Binned<T> {
        Binned {
            things: Vec::new(),
            lists: TileLists::default(),
        }
    }
}

/// Something that touches some pixels of the screen.
pub(super) trait OnScreen {
    /// The pixels it touches at most.
    fn pixels(&self) -> PixelRect;
}

impl<T: OnScreen> Binned<T> {
    /// Forgets everything and takes what `fill` gives.
    pub(super) fn refill(&mut self, fill: impl FnOnce(&mut Vec<T>)) {
        self.things.clear();
        fill(&mut self.things);
        self.lists.sort(self.things.iter().map(T::pixels));
    }

    /// The things that touch a tile, in order.
    pub(super) fn in_tile(&self, tile: usize) -> impl Iterator<Item = &T> {
        let numbers = self.lists.of(tile).iter();
        numbers.map(|&number| &self.things[number as usize])
    }

    /// How many there are in this tile.
    pub(super) fn count_in_tile(&self, tile: usize) -> u64 {
        self.lists.of(tile).len() as u64
    }
}

/// A triangle that faces the camera and may cover a pixel: corners in sixteenths of a pixel, such that
/// its area is positive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Triangle {
    pub(super) x: [i32; 3],
    pub(super) y: [i32; 3],
    pub(super) depth: [f32; 3],
    pixels: PixelRect,
}

impl OnScreen for Triangle {
    #[inline(always)]
    fn pixels(&self) -> PixelRect {
        self.pixels
    }
}

/// Twice the area of a triangle on the screen, positive if it runs clockwise as people see it.
#[inline(always)]
pub(super) fn double_area(x: [i32; 3], y: [i32; 3]) -> i64 {
    i64::from(x[1] - x[0]) * i64::from(y[2] - y[0])
        - i64::from(x[2] - x[0]) * i64::from(y[1] - y[0])
}

impl Triangle {
    /// The triangle of these corners; none if it faces away, or no centre of a pixel is in its bounds.
    #[inline(always)]
    pub(super) fn new(
        [(a, near_a), (b, near_b), (c, near_c)]: [ScreenPoint; 3],
    ) -> Option<Triangle> {
        // Front faces run counter-clockwise in space; the screen's y points down.
        let (x, y) = ([a[0], c[0], b[0]], [a[1], c[1], b[1]]);
        if double_area(x, y) <= 0 {
            return None;
        }
        Some(Triangle {
            x,
            y,
            depth: [near_a, near_c, near_b],
            pixels: PixelRect::clamped(centres(x), centres(y))?,
        })
    }
}

/// The first and the last pixel whose centre is not outside of these coordinates.
#[inline(always)]
fn centres([a, b, c]: [i32; 3]) -> [i32; 2] {
    const HALF: i32 = SUBPIXELS / 2;
    let (low, high) = (a.min(b).min(c), a.max(b).max(c));
    [
        (low + HALF - 1).div_euclid(SUBPIXELS),
        (high - HALF).div_euclid(SUBPIXELS),
    ]
}

impl Binned<Triangle> {
    /// Bins the triangles of a chunk's points; how many were submitted.
    pub(super) fn bin(&mut self, field: &Field, points: &Points) -> u64 {
        let mut submitted = 0;
        self.refill(|kept| {
            for part in &points.parts {
                let mesh = &field.levels[part.level];
                let cluster = mesh.clusters[part.cluster as usize];
                let [from, to] = cluster.triangles.map(|index| index as usize);
                submitted += (to - from) as u64;
                // One check of the borders for the whole cluster.
                let end = part.first + (cluster.points[1] - cluster.points[0]) as usize;
                let x = &points.x[part.first..end];
                let (y, depth) = (&points.y[part.first..end], &points.depth[part.first..end]);
                let origin = cluster.points[0] as usize;
                for &[a, b, c] in &mesh.triangles[from..to] {
                    let [a, b, c] = [usize::from(a), usize::from(b), usize::from(c)];
                    if x[a] == MARK || x[b] == MARK || x[c] == MARK {
                        let on_screen = [a, b, c].map(|corner| {
                            let at = origin + corner;
                            part.to_screen.apply([mesh.x[at], mesh.y[at], mesh.z[at]])
                        });
                        clip(on_screen, |triangle| kept.extend(Triangle::new(triangle)));
                    } else {
                        let point = |at: usize| ([x[at], y[at]], depth[at]);
                        if let Some(triangle) = Triangle::new([point(a), point(b), point(c)]) {
                            kept.push(triangle);
                        }
                    }
                }
            }
        });
        submitted
    }
}
