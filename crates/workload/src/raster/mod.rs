//! Software occlusion culling, the work that source 000 was profiled with: which boxes are hidden
//! behind statues?
//!
//! Every frame draws the statues that the camera sees into a depth buffer, the nearest with all
//! triangles of their mesh and the others coarser, and then looks up for each of some thousand boxes
//! whether anything of it is in front. The mesh is the user's ([`Mesh::load`]) or a well-known free one
//! ([`default_mesh`]).
//!
//! The steps, in the order of the data: `plan` (which statues), `transform` (points to the screen), `bins`
//! (triangles to tiles; `clip` for the few that need it), `tile` (depth), `occlude` (boxes). What each reads
//! and writes is in `steps`, the buffers between them are in `stages`, the order of the jobs in `run`;
//! `built` is the same frame as a graph that is built once.
//!
//! Invariants: a frame is a function of the mesh and of where the camera is, computed in whole numbers
//! and with those operations of IEEE 754 whose results are exact or rounded to the nearest, in a fixed
//! order; so a frame of jobs equals a serial one bit for bit, on every platform. A box that shows in a
//! pixel is never called hidden.

mod bins;
mod built;
mod clip;
mod cluster;
mod field;
mod lanes;
mod mesh;
mod obj;
mod occlude;
mod picture;
mod plan;
mod run;
mod simplify;
mod slot;
mod stages;
mod steps;
#[cfg(test)]
mod tests;
mod tile;
mod transform;
mod view;

pub use built::BuiltRaster;
pub use field::MAX_TRIANGLES;
pub use mesh::{MAX_MESH_TRIANGLES, Mesh, MeshError};
pub use obj::MAX_OBJ_FILE;
pub use occlude::Visibility;
pub use run::{Counts, RasterScene};

/// The depth buffer.
const WIDTH: usize = 640;
const HEIGHT: usize = 360;
/// A tile of it: 10 KiB, a part of the smallest cache.
const TILE_WIDTH: usize = 64;
const TILE_HEIGHT: usize = 40;
const TILES_ACROSS: usize = WIDTH / TILE_WIDTH;
const TILES: usize = TILES_ACROSS * (HEIGHT / TILE_HEIGHT);
const _: () = assert!(WIDTH.is_multiple_of(TILE_WIDTH) && HEIGHT.is_multiple_of(TILE_HEIGHT));
/// Equal shares of a frame's triangles: enough that the last one to end is short.
const CHUNKS: usize = 64;
/// Equal shares of the boxes.
const BOX_SHARES: usize = 16;

/// The mesh that comes with the crate: Suzanne, 14 842 triangles. Its origin and licence are in
/// `meshes/README.md`.
pub fn default_mesh() -> Mesh {
    const FILE: &[u8] = include_bytes!("../../meshes/suzanne.obj");
    Mesh::from_obj(FILE, "suzanne.obj").expect("a test reads it")
}
