//! The third step: a tile of the depth buffer, drawn by one job.
//!
//! Coverage is that of Pineda ("A parallel algorithm for polygon rasterization", 1988): a pixel is
//! covered if its centre is on the inner side of all three edges, or on an edge that is the upper or
//! left one of its triangle; so triangles that share an edge cover each pixel along it once. Edge
//! functions are whole numbers and exact. Depth is interpolated in floats and kept between the depths
//! of the corners, so that no sliver of a triangle sticks out of its plane.
//!
//! Eight pixels of a row are worked on at a time, all lanes alike and without a branch: the compiler
//! makes vector instructions of it wherever there are some (SSE2, NEON).

use super::bins::{Binned, OnScreen, Triangle, double_area};
use super::transform::SUBPIXELS;
use super::{TILE_HEIGHT, TILE_WIDTH, TILES_ACROSS};

/// Pixels worked on together.
const LANES: usize = 8;
const _: () = assert!(TILE_WIDTH.is_multiple_of(LANES));
const PIXELS: usize = TILE_WIDTH * TILE_HEIGHT;

/// A tile of the depth buffer, row by row.
pub(super) struct Tile {
    /// The frame it was drawn in.
    pub(super) frame: u64,
    pub(super) depth: Box<[f32; PIXELS]>,
}

impl Default for Tile {
    /// A tile of no frame.
    fn default() -> Tile {
        Tile {
            frame: u64::MAX,
            depth: Box::new([0.0; PIXELS]),
        }
    }
}

/// The first column and row of a tile.
pub(super) fn origin(tile: usize) -> [usize; 2] {
    [
        tile % TILES_ACROSS * TILE_WIDTH,
        tile / TILES_ACROSS * TILE_HEIGHT,
    ]
}

impl Tile {
    /// Draws what the chunks have for this tile, in their order; how many triangles that were.
    pub(super) fn draw(&mut self, frame: u64, tile: usize, chunks: &[Binned<Triangle>]) -> u64 {
        self.frame = frame;
        self.depth.fill(0.0);
        let origin = origin(tile);
        let mut drawn = 0;
        for chunk in chunks {
            for triangle in chunk.in_tile(tile) {
                draw(&mut self.depth, origin, triangle);
            }
            drawn += chunk.count_in_tile(tile);
        }
        drawn
    }

    /// Whether something at this depth is in front of what is drawn in one of these columns and rows
    /// of the tile.
    pub(super) fn is_before(&self, depth: f32, columns: [usize; 2], rows: [usize; 2]) -> bool {
        let rows = self
            .depth
            .chunks_exact(TILE_WIDTH)
            .take(rows[1] + 1)
            .skip(rows[0]);
        rows.into_iter().any(|row| {
            let row = &row[columns[0]..=columns[1]];
            // All of the row: without a way out the loop takes several pixels at a time.
            row.iter()
                .fold(false, |found, &drawn| found | (drawn <= depth))
        })
    }
}

/// One edge of a triangle within a tile.
struct Edge {
    /// At least 0 inside, at the centre of the first pixel.
    start: i32,
    /// What it gains per pixel.
    across: i32,
    down: i32,
}

impl Edge {
    /// The edge from corner `from` to corner `to`, as seen from the centre of a pixel (in sixteenths).
    #[inline(always)]
    fn new(triangle: &Triangle, from: usize, to: usize, centre: [i32; 2]) -> Edge {
        // Within a tile an edge function changes by less than this: 17 bits of coordinates, 4 of a
        // pixel's width, 7 of pixels. So one that starts beyond it has the same sign all over the
        // tile, and can be cut off there to fit 32 bits.
        const FAR: i64 = 1 << 29;
        let dx = triangle.x[to] - triangle.x[from];
        let dy = triangle.y[to] - triangle.y[from];
        let start = i64::from(dx) * i64::from(centre[1] - triangle.y[from])
            - i64::from(dy) * i64::from(centre[0] - triangle.x[from]);
        let is_upper_or_left = dy < 0 || (dy == 0 && dx > 0);
        Edge {
            start: (start - i64::from(!is_upper_or_left)).clamp(-FAR, FAR) as i32,
            across: -dy * SUBPIXELS,
            down: dx * SUBPIXELS,
        }
    }

    #[inline(always)]
    fn lanes(&self) -> [i32; LANES] {
        std::array::from_fn(|lane| self.across * lane as i32)
    }
}

/// Draws one triangle into a tile that begins at `origin`: each pixel keeps what is nearer.
#[inline(never)]
fn draw(tile: &mut [f32; PIXELS], origin: [usize; 2], triangle: &Triangle) {
    let pixels = triangle.pixels();
    let within = |[first, last]: [u16; 2], origin: usize, size: usize| {
        let first = usize::from(first).max(origin) - origin;
        [first, (usize::from(last) - origin).min(size - 1)]
    };
    let [left, right] = within(pixels.x, origin[0], TILE_WIDTH);
    let [top, bottom] = within(pixels.y, origin[1], TILE_HEIGHT);
    let (first_block, last_block) = (left / LANES, right / LANES);
    let centre = [origin[0] + first_block * LANES, origin[1] + top]
        .map(|pixel| pixel as i32 * SUBPIXELS + SUBPIXELS / 2);
    let edges = [(0, 1), (1, 2), (2, 0)].map(|(from, to)| Edge::new(triangle, from, to, centre));
    let lanes = [edges[0].lanes(), edges[1].lanes(), edges[2].lanes()];
    let plane = Plane::new(triangle, centre);
    let mut starts = [edges[0].start, edges[1].start, edges[2].start];
    for (down, row) in tile
        .chunks_exact_mut(TILE_WIDTH)
        .take(bottom + 1)
        .skip(top)
        .enumerate()
    {
        let mut at = starts;
        let row_depth = plane.start + plane.down * down as f32;
        let blocks = row.as_chunks_mut::<LANES>().0;
        for (across, block) in blocks[first_block..=last_block].iter_mut().enumerate() {
            let depth = row_depth + plane.across * (across * LANES) as f32;
            cover(block, at, &lanes, depth, &plane);
            at = std::array::from_fn(|edge| at[edge] + edges[edge].across * LANES as i32);
        }
        starts = std::array::from_fn(|edge| starts[edge] + edges[edge].down);
    }
}

/// Eight pixels: `at` is what the edge functions are at the first.
#[inline(always)]
fn cover(
    block: &mut [f32; LANES],
    at: [i32; 3],
    lanes: &[[i32; LANES]; 3],
    depth: f32,
    plane: &Plane,
) {
    for lane in 0..LANES {
        let outside =
            (at[0] + lanes[0][lane]) | (at[1] + lanes[1][lane]) | (at[2] + lanes[2][lane]);
        let depth = depth + plane.lanes[lane];
        let depth = if depth > plane.nearest {
            plane.nearest
        } else {
            depth
        };
        let depth = if depth < plane.farthest {
            plane.farthest
        } else {
            depth
        };
        let drawn = block[lane];
        block[lane] = if (outside >= 0) & (depth > drawn) {
            depth
        } else {
            drawn
        };
    }
}

/// The depth of a triangle over the screen.
struct Plane {
    /// At the centre of the first pixel.
    start: f32,
    /// What it gains per pixel.
    across: f32,
    down: f32,
    lanes: [f32; LANES],
    nearest: f32,
    farthest: f32,
}

impl Plane {
    #[inline(always)]
    fn new(triangle: &Triangle, centre: [i32; 2]) -> Plane {
        let [a, b, c] = triangle.depth;
        let (x, y) = (triangle.x, triangle.y);
        let (to_b, to_c) = (b - a, c - a);
        let part = SUBPIXELS as f32 / double_area(x, y) as f32;
        let across = (to_b * (y[2] - y[0]) as f32 - to_c * (y[1] - y[0]) as f32) * part;
        let down = (to_c * (x[1] - x[0]) as f32 - to_b * (x[2] - x[0]) as f32) * part;
        let [right, below] =
            [centre[0] - x[0], centre[1] - y[0]].map(|steps| steps as f32 / SUBPIXELS as f32);
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        let smaller = |a: f32, b: f32| if a < b { a } else { b };
        Plane {
            start: a + across * right + down * below,
            across,
            down,
            lanes: std::array::from_fn(|lane| across * lane as f32),
            nearest: larger(larger(a, b), c),
            farthest: smaller(smaller(a, b), c),
        }
    }
}
