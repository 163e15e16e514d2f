//! The third step: a tile of the depth buffer, drawn by one job.
//!
//! Coverage is that of Pineda ("A parallel algorithm for polygon rasterization", 1988): a pixel is
//! covered if its centre is on the inner side of all three edges, or on an edge that is the upper or
//! left one of its triangle; so triangles that share an edge cover each pixel along it once. Edge
//! functions are whole numbers and exact. Depth is interpolated in floats and kept between the depths
//! of the corners, so that no sliver of a triangle sticks out of its plane.
//!
//! Eight pixels of a row are worked on at a time ([`super::lanes`]).

use super::bins::{Binned, OnScreen, Triangle, double_area};
use super::lanes::{Floats, Ints, LANES};
use super::transform::SUBPIXELS;
use super::{TILE_HEIGHT, TILE_WIDTH, TILES_ACROSS};

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
    /// Draws the chunks' triangles for this tile, in their order; gives their number.
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

    /// Whether something at this depth is in front of the drawn surfaces in one of these columns and rows of
    /// the tile.
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
    /// Its gain per pixel.
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
    fn first(&self) -> Ints {
        Ints::splat(self.start) + Ints::steps(self.across)
    }
}

/// Draws one triangle into a tile that begins at `origin`: each pixel keeps the nearer depth.
#[inline(never)]
fn draw(tile: &mut [f32; PIXELS], origin: [usize; 2], triangle: &Triangle) {
    let pixels = triangle.pixels();
    let [left, right] = within(pixels.x, origin[0], TILE_WIDTH);
    let [top, bottom] = within(pixels.y, origin[1], TILE_HEIGHT);
    let (first, last) = (left / LANES, right / LANES);
    let to_centre = |pixel: usize| pixel as i32 * SUBPIXELS + SUBPIXELS / 2;
    let centre = [
        to_centre(origin[0] + first * LANES),
        to_centre(origin[1] + top),
    ];
    let (a, b, c) = (
        Edge::new(triangle, 0, 1, centre),
        Edge::new(triangle, 1, 2, centre),
        Edge::new(triangle, 2, 0, centre),
    );
    let plane = Plane::new(triangle, centre);
    let (nearest, farthest) = (Floats::splat(plane.nearest), Floats::splat(plane.farthest));
    let mut row_a = a.first();
    let mut row_b = b.first();
    let mut row_c = c.first();
    let mut row_depth = Floats::splat(plane.start) + Floats::steps(plane.across);
    for row in tile[top * TILE_WIDTH..(bottom + 1) * TILE_WIDTH].chunks_exact_mut(TILE_WIDTH) {
        let (mut at_a, mut at_b, mut at_c, mut depth) = (row_a, row_b, row_c, row_depth);
        for block in &mut row.as_chunks_mut::<LANES>().0[first..=last] {
            let covered = depth
                .min(nearest)
                .max(farthest)
                .zero_where_negative(at_a | at_b | at_c);
            *block = covered.max(Floats(*block)).0;
            at_a = at_a + Ints::splat(a.across * LANES as i32);
            at_b = at_b + Ints::splat(b.across * LANES as i32);
            at_c = at_c + Ints::splat(c.across * LANES as i32);
            depth = depth + Floats::splat(plane.across * LANES as f32);
        }
        row_a = row_a + Ints::splat(a.down);
        row_b = row_b + Ints::splat(b.down);
        row_c = row_c + Ints::splat(c.down);
        row_depth = row_depth + Floats::splat(plane.down);
    }
}

/// The part of these pixels that is in a tile, counted from its first.
#[inline(always)]
pub(super) fn within([first, last]: [u16; 2], origin: usize, size: usize) -> [usize; 2] {
    let (first, last) = (usize::from(first), usize::from(last));
    [first.max(origin) - origin, (last - origin).min(size - 1)]
}

/// The depth of a triangle over the screen.
struct Plane {
    /// At the centre of the first pixel.
    start: f32,
    /// Its gain per pixel.
    across: f32,
    down: f32,
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
        const PIXELS: f32 = 1.0 / SUBPIXELS as f32;
        let right = (centre[0] - x[0]) as f32 * PIXELS;
        let below = (centre[1] - y[0]) as f32 * PIXELS;
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        let smaller = |a: f32, b: f32| if a < b { a } else { b };
        Plane {
            start: a + across * right + down * below,
            across,
            down,
            nearest: larger(larger(a, b), c),
            farthest: smaller(smaller(a, b), c),
        }
    }
}
