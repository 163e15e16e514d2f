//! Tiles of a plane.

use std::ops::Range;

use super::items::{LoopData, LoopItems};

/// A plane of `width` × `height` points, cut into tiles for a loop; tiles at the right and lower edges may be
/// smaller. They come row by row.
///
/// ```
/// use paceline::{JobSystem, Tiles};
/// let js = JobSystem::new();
/// let tiles = Tiles { width: 100, height: 50, size: (32, 32) };
/// let points = js.over(tiles).reduce(|tile| tile.x.len() * tile.y.len(), |a, b| a + b);
/// assert_eq!(points, Some(5000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiles {
    /// Points from left to right.
    pub width: usize,
    /// Points from top to bottom.
    pub height: usize,
    /// The width and the height of a tile; 0 counts as 1.
    pub size: (usize, usize),
}

/// One tile of [`Tiles`].
///
/// ```
/// use paceline::{JobSystem, Tile, Tiles};
/// let js = JobSystem::new();
/// let tiles = Tiles { width: 10, height: 5, size: (8, 8) };
/// let found: Vec<Tile> = js.over(tiles).map(|tile| tile);
/// assert_eq!((found.len(), found[1].x.clone(), found[1].y.clone()), (2, 8..10, 0..5));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tile {
    /// The columns of the tile.
    pub x: Range<usize>,
    /// The rows of the tile.
    pub y: Range<usize>,
}

impl Tiles {
    fn columns(&self) -> usize {
        self.width.div_ceil(self.size.0.max(1))
    }
}

// SAFETY: tiles are plain numbers.
unsafe impl LoopItems for Tiles {
    type Item = Tile;

    fn len(&self) -> usize {
        self.columns() * self.height.div_ceil(self.size.1.max(1))
    }

    unsafe fn item(&self, index: usize) -> Tile {
        let (width, height) = (self.size.0.max(1), self.size.1.max(1));
        let x = index % self.columns() * width;
        let y = index / self.columns() * height;
        Tile {
            x: x..(x + width).min(self.width),
            y: y..(y + height).min(self.height),
        }
    }
}

impl LoopData for Tiles {
    type Items = Tiles;

    fn into_items(self) -> Tiles {
        self
    }
}
