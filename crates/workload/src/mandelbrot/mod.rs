//! The grid of source 002 as a scene: points inside the Mandelbrot set, one job per tile.
//!
//! The source (J. Cownie, "To sched_yield() or not to sched_yield()?") counts how many points of a grid of
//! 1000x1000 lie inside the set. It says neither which part of the plane it looks at nor when it gives up on
//! a point; those are ours. The work per tile is very uneven (a point inside costs `max_iterations`, one far
//! outside a single one), and that makes it a good scene.
//!
//! Invariants: a point's count is a function of the parameters, computed with the four basic
//! operations of IEEE 754 and so the same on every platform; each tile writes its own points only,
//! so a parallel run equals a serial one bit for bit.

mod palette;
mod run;

use std::fmt;

use event::Nanos;

use crate::words::Words32;
pub use run::{MandelbrotScene, Tiles};

/// The most points of a grid; each has a result of 4 bytes.
pub const MAX_POINTS: u64 = 1 << 26;
/// The most iterations for one point.
pub const MAX_ITERATIONS: u32 = 1 << 20;
/// The charge for a thousand iterations where work is only charged: about the time they take on the AMD EPYC
/// this was written on, where an iteration is a chain of four dependent operations.
const CHARGE_PER_1000: Nanos = Nanos(3_000);

/// The grid to compute; the default is source 002's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mandelbrot {
    /// Points from left to right. Source: 1000.
    pub width: u32,
    /// Points from top to bottom. Source: 1000.
    pub height: u32,
    /// After this many iterations a point counts as inside. Ours.
    pub max_iterations: u32,
    /// Tiles are this many points wide and high (less at the right and bottom edges). Ours.
    pub tile: u32,
    /// The part of the plane. Ours: the whole set.
    pub view: View,
}

/// A part of the complex plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Real part of the centre.
    pub re: f64,
    /// Imaginary part of the centre.
    pub im: f64,
    /// How much of the imaginary axis is seen; points are as far apart in both directions.
    pub height: f64,
}

impl Default for Mandelbrot {
    fn default() -> Mandelbrot {
        Mandelbrot {
            width: 1_000,
            height: 1_000,
            max_iterations: 64,
            tile: 32,
            view: View {
                re: -0.75,
                im: 0.0,
                height: 2.5,
            },
        }
    }
}

/// Why a grid cannot be computed: one line that says what and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MandelbrotError(String);

impl fmt::Display for MandelbrotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MandelbrotError {}

/// A grid and, for each of its points, how often it was iterated: preallocated, for any number of
/// frames.
pub struct Grid {
    what: Mandelbrot,
    counts: Words32,
}

impl Grid {
    /// A grid on which nothing was computed yet.
    ///
    /// # Errors
    /// If it has no points, too many, or no place in the plane.
    pub fn new(what: Mandelbrot) -> Result<Grid, MandelbrotError> {
        let fail = |what: String| Err(MandelbrotError(what));
        let points = u64::from(what.width) * u64::from(what.height);
        let View { re, im, height } = what.view;
        if points == 0 || points > MAX_POINTS {
            return fail(format!(
                "a grid of {}x{} points: give 1 to {MAX_POINTS} points",
                what.width, what.height
            ));
        }
        if what.tile == 0 {
            return fail("tiles have no points: give a size of at least 1".to_owned());
        }
        if !(1..=MAX_ITERATIONS).contains(&what.max_iterations) {
            return fail(format!(
                "at most {} iterations: give 1 to {MAX_ITERATIONS}",
                what.max_iterations
            ));
        }
        if !(re.is_finite() && im.is_finite() && height.is_finite() && height > 0.0) {
            return fail(format!(
                "{:?}: give finite numbers and a height above 0",
                what.view
            ));
        }
        Ok(Grid {
            what,
            counts: Words32::zeros(points as usize),
        })
    }

    /// The parameters.
    pub fn what(&self) -> &Mandelbrot {
        &self.what
    }

    /// How many tiles there are.
    pub fn tiles(&self) -> u32 {
        self.what.width.div_ceil(self.what.tile) * self.what.height.div_ceil(self.what.tile)
    }

    /// Computes one tile. `charge` is told its worth.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn run_tile(&self, tile: u32, charge: impl FnOnce(Nanos)) {
        assert!(
            tile < self.tiles(),
            "there is no tile {tile} of {}",
            self.tiles()
        );
        let what = &self.what;
        let across = what.width.div_ceil(what.tile);
        let (left, top) = (tile % across * what.tile, tile / across * what.tile);
        let mut iterations = 0;
        for y in top..top.saturating_add(what.tile).min(what.height) {
            for x in left..left.saturating_add(what.tile).min(what.width) {
                let count = what.count(x, y);
                iterations += u64::from(count);
                self.counts.set(self.index(x, y), count);
            }
        }
        charge(Nanos(iterations * CHARGE_PER_1000.0 / 1_000));
    }

    /// Computes all tiles on this thread.
    pub fn run_serial(&self, charge: impl Fn(Nanos)) {
        (0..self.tiles()).for_each(|tile| self.run_tile(tile, &charge));
    }

    /// Forgets all results, so that a tile that is left out in the next frame is noticed.
    pub fn clear(&self) {
        (0..self.counts.len()).for_each(|index| self.counts.set(index, 0));
    }

    /// How often each point was iterated, row by row.
    pub fn counts(&self) -> impl Iterator<Item = u32> {
        (0..self.counts.len()).map(|index| self.counts.get(index))
    }

    /// How many points are inside the set.
    pub fn inside(&self) -> u64 {
        self.counts()
            .filter(|&count| count == self.what.max_iterations)
            .count() as u64
    }

    /// The grid as a picture: red, green and blue of each point, row by row.
    pub fn pixels(&self) -> Vec<u8> {
        self.counts()
            .flat_map(|count| palette::color(count, self.what.max_iterations))
            .collect()
    }

    fn index(&self, x: u32, y: u32) -> usize {
        y as usize * self.what.width as usize + x as usize
    }
}

impl Mandelbrot {
    /// How often the point in this column and row can be iterated before it has left for good;
    /// `max_iterations` for one that stays.
    fn count(&self, x: u32, y: u32) -> u32 {
        let step = self.view.height / f64::from(self.height);
        let (across, down) = (f64::from(x) + 0.5, f64::from(y) + 0.5);
        let re = self.view.re + (across - f64::from(self.width) / 2.0) * step;
        let im = self.view.im - (down - f64::from(self.height) / 2.0) * step;
        let (mut z_re, mut z_im) = (0.0f64, 0.0f64);
        for count in 0..self.max_iterations {
            let (re_squared, im_squared) = (z_re * z_re, z_im * z_im);
            if re_squared + im_squared > 4.0 {
                return count;
            }
            z_im = 2.0 * z_re * z_im + im;
            z_re = re_squared - im_squared + re;
        }
        self.max_iterations
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn computed(what: Mandelbrot) -> Grid {
        let grid = Grid::new(what).unwrap();
        grid.run_serial(|_| ());
        grid
    }

    /// Goal: it is the Mandelbrot set. Method: its area, known to be 1.5066 (Förstemann, 2012), is
    /// that of the points found inside; and known points are on the side they belong to.
    #[test]
    fn the_area_is_that_of_the_set() {
        let what = Mandelbrot {
            width: 400,
            height: 400,
            max_iterations: 1_000,
            ..Mandelbrot::default()
        };
        let step = what.view.height / 400.0;
        let area = computed(what).inside() as f64 * step * step;
        assert!((area - 1.5066).abs() < 0.02, "{area}");
        let at = |re, im| {
            Mandelbrot {
                width: 1,
                height: 1,
                view: View {
                    re,
                    im,
                    height: 1e-9,
                },
                ..what
            }
            .count(0, 0)
        };
        assert_eq!(
            [at(0.0, 0.0), at(-1.0, 0.0), at(-1.99, 0.0), at(0.0, 1.0)],
            [1_000; 4]
        );
        assert_eq!([at(3.0, 0.0), at(2.0, 0.1), at(1.0, 0.0)], [1, 1, 3]);
    }

    /// Goal: published counts do not change. Method: those of source 002's grid, pinned.
    #[test]
    fn the_default_grid_never_changes() {
        let grid = computed(Mandelbrot::default());
        assert_eq!((grid.tiles(), grid.inside()), (1_024, 251_384));
    }

    /// Goal: a grid that cannot be computed is refused with a reason. Method: one of each.
    #[test]
    fn impossible_grids_are_refused() {
        let default = Mandelbrot::default();
        let view = View {
            height: f64::NAN,
            ..default.view
        };
        for (what, word) in [
            (
                Mandelbrot {
                    width: 0,
                    ..default
                },
                "0x1000",
            ),
            (
                Mandelbrot {
                    width: u32::MAX,
                    height: u32::MAX,
                    ..default
                },
                "points",
            ),
            (Mandelbrot { tile: 0, ..default }, "tiles"),
            (
                Mandelbrot {
                    max_iterations: 0,
                    ..default
                },
                "iterations",
            ),
            (Mandelbrot { view, ..default }, "finite"),
        ] {
            let error = Grid::new(what).err().unwrap().to_string();
            assert!(error.contains(word) && !error.contains('\n'), "{error}");
        }
    }

    proptest! {
        /// Goal: tiles cover every point once, whatever their size. Method: for sizes that fit and sizes that
        /// do not, the counts of tiles run in an odd order equal those of the points, asked one by one, and
        /// the charges are their sum.
        #[test]
        fn tiles_cover_the_grid(
            width in 1u32..70, height in 1u32..70, tile in 1u32..80, rotate: u32,
        ) {
            let what = Mandelbrot { width, height, tile, ..Mandelbrot::default() };
            let grid = Grid::new(what).unwrap();
            let charged = std::cell::Cell::new(0);
            let mut tiles: Vec<u32> = (0..grid.tiles()).collect();
            tiles.rotate_left((rotate % grid.tiles()) as usize);
            for tile in tiles {
                grid.run_tile(tile, |nanos| charged.set(charged.get() + nanos.0));
            }
            let points: Vec<u32> =
                (0..height).flat_map(|y| (0..width).map(move |x| what.count(x, y))).collect();
            prop_assert!(grid.counts().eq(points.iter().copied()));
            let sum: u64 = points.iter().map(|&count| u64::from(count)).sum();
            let exact = sum * CHARGE_PER_1000.0 / 1_000;
            prop_assert!(charged.get() <= exact && charged.get() + u64::from(grid.tiles()) > exact);
            prop_assert_eq!(grid.pixels().len(), 3 * points.len());
            grid.clear();
            prop_assert!(grid.counts().all(|count| count == 0));
        }
    }
}
