//! Tiles of a plane: their columns and rows ([`Tiles`]), and the points in them ([`TilesMut`]).

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use super::items::{LoopData, LoopItems, Seal};

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
    /// The same tiles of the plane whose points are in `points`, row after row. Each tile of the loop is a
    /// [`TileMut`], which leads to the tile's own points and no others.
    ///
    /// # Panics
    /// If `points` is not `width * height` long.
    ///
    /// ```
    /// use paceline::{JobSystem, Tiles};
    /// let js = JobSystem::new();
    /// let tiles = Tiles { width: 100, height: 50, size: (32, 32) };
    /// let mut picture = vec![0; 100 * 50];
    /// js.over(tiles.of(&mut picture)).for_each(|mut tile| {
    ///     let columns = tile.x.clone();
    ///     for (y, row) in tile.rows() {
    ///         for (x, point) in columns.clone().zip(row) {
    ///             *point = 100 * y + x;
    ///         }
    ///     }
    /// });
    /// assert!(picture.iter().enumerate().all(|(index, &point)| point == index));
    /// ```
    #[track_caller]
    pub fn of<T: Send>(self, points: &mut [T]) -> TilesMut<'_, T> {
        let Tiles { width, height, .. } = self;
        assert!(
            width.checked_mul(height) == Some(points.len()),
            "tiles of a plane of {width} × {height} points, and {} points",
            points.len()
        );
        TilesMut(TilePoints {
            tiles: self,
            first: points.as_mut_ptr(),
            _borrow: PhantomData,
        })
    }

    fn columns(&self) -> usize {
        self.width.div_ceil(self.size.0.max(1))
    }
}

/// A plane of mutable points that a loop goes over tile by tile, from [`Tiles::of`], whose example shows it.
/// It is a mutable borrow of the points, so there is no second one of the same plane:
///
/// ```compile_fail,E0599
/// let tiles = paceline::Tiles { width: 2, height: 2, size: (1, 1) };
/// let mut plane = [0; 4];
/// let first = tiles.of(&mut plane);
/// let second = first.clone();
/// ```
pub struct TilesMut<'a, T>(TilePoints<'a, T>);

impl<T> fmt::Debug for TilesMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TilesMut").field(&self.0.tiles).finish()
    }
}

/// The tiles of a plane, as a loop hands them out. It has no example, because programs do not name it.
///
/// Only loops clone it. It is no [`LoopData`], so that no second loop can go over the same points.
#[doc(hidden)]
pub struct TilePoints<'a, T> {
    tiles: Tiles,
    /// Of `width * height` points, which are borrowed for `'a`.
    first: *mut T,
    _borrow: PhantomData<&'a mut [T]>,
}

impl<T> Clone for TilePoints<'_, T> {
    fn clone(&self) -> Self {
        TilePoints { ..*self }
    }
}

// SAFETY: each tile is handed out once at a time (the contract of `LoopItems::item`), so sharing this is
// sending points to other threads (`T: Send`).
unsafe impl<T: Send> Sync for TilePoints<'_, T> {}

// SAFETY: this is a mutable borrow of the points (`T: Send`).
unsafe impl<T: Send> Send for TilePoints<'_, T> {}

/// One tile of [`Tiles::of`], with its points.
///
/// ```
/// use paceline::{JobSystem, Tiles};
/// let js = JobSystem::new();
/// let tiles = Tiles { width: 4, height: 4, size: (2, 2) };
/// let mut plane = [0; 16];
/// js.over(tiles.of(&mut plane)).for_each(|mut tile| {
///     // Its first row, by the row's place in the plane.
///     let top = tile.y.start;
///     tile.row(top).fill(1);
/// });
/// assert_eq!(plane, [1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0]);
/// ```
pub struct TileMut<'a, T> {
    /// The columns of the tile.
    pub x: Range<usize>,
    /// The rows of the tile.
    pub y: Range<usize>,
    /// Where the tile lies, whatever a program does to `x` and `y`.
    tile: Tile,
    /// The first point of the tile. A point below another one is `stride` points behind it.
    first: *mut T,
    stride: usize,
    _borrow: PhantomData<&'a mut T>,
}

// SAFETY: a tile is a mutable borrow of its points (`T: Send`), which no other tile has.
unsafe impl<T: Send> Send for TileMut<'_, T> {}

// SAFETY: a shared tile leads to no point, and rows that one thread has borrowed of it and hands on are
// mutable borrows of points (`T: Send`).
unsafe impl<T: Send> Sync for TileMut<'_, T> {}

impl<T> fmt::Debug for TileMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tile { x, y } = &self.tile;
        write!(f, "TileMut {{ x: {x:?}, y: {y:?} }}")
    }
}

impl<T> TileMut<'_, T> {
    /// The tile's part of row `y` of the plane. It has no example, because that of [`TileMut`] shows it.
    ///
    /// # Panics
    /// If the tile has no such row.
    #[inline]
    #[track_caller]
    pub fn row(&mut self, y: usize) -> &mut [T] {
        let rows = &self.tile.y;
        assert!(rows.contains(&y), "row {y} of a tile of rows {rows:?}");
        // SAFETY: the row is the tile's, and the tile is borrowed for as long as the points are.
        unsafe { self.row_at(y - self.tile.y.start) }
    }

    /// The tile's rows from top to bottom: the place of each in the plane, and its points.
    ///
    /// It has no example, because that of [`Tiles::of`] shows it.
    #[inline]
    pub fn rows(&mut self) -> impl Iterator<Item = (usize, &mut [T])> {
        let (rows, this) = (self.tile.y.clone(), &*self);
        // SAFETY: the row is the tile's, each is handed out once, and the tile is borrowed for as long as the
        // points are.
        rows.map(move |y| (y, unsafe { this.row_at(y - this.tile.y.start) }))
    }

    /// # Safety
    /// The tile has more than `index` rows. The caller has the tile alone for as long as the points are
    /// borrowed, and nothing else that was borrowed of this row is alive.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller has the tile alone")]
    unsafe fn row_at(&self, index: usize) -> &mut [T] {
        // SAFETY: the row is within the plane, which is borrowed mutably for at least as long as the tile
        // lives; other tiles have other points (`LoopItems::item`), and of this one the caller promises it.
        unsafe {
            let first = self.first.add(index * self.stride);
            std::slice::from_raw_parts_mut(first, self.tile.x.end - self.tile.x.start)
        }
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
            x: x..x.saturating_add(width).min(self.width),
            y: y..y.saturating_add(height).min(self.height),
        }
    }
}

// SAFETY: different indices are different tiles, which have no point in common.
unsafe impl<'a, T: Send> LoopItems for TilePoints<'a, T> {
    type Item = TileMut<'a, T>;

    fn len(&self) -> usize {
        self.tiles.len()
    }

    unsafe fn item(&self, index: usize) -> TileMut<'a, T> {
        // SAFETY: the caller's promise.
        let tile = unsafe { self.tiles.item(index) };
        let stride = self.tiles.width;
        TileMut {
            x: tile.x.clone(),
            y: tile.y.clone(),
            // SAFETY: the tile's first point is in the plane, because the index is that of a tile.
            first: unsafe { self.first.add(tile.y.start * stride + tile.x.start) },
            tile,
            stride,
            _borrow: PhantomData,
        }
    }
}

impl<'a, T: Send> LoopData for TilesMut<'a, T> {
    type Items = TilePoints<'a, T>;

    fn into_items(self, _: Seal) -> TilePoints<'a, T> {
        self.0
    }
}

impl LoopData for Tiles {
    type Items = Tiles;

    fn into_items(self, _: Seal) -> Tiles {
        self
    }
}
