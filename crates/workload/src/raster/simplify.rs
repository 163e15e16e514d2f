//! Coarser versions of a mesh.
//!
//! Vertex clustering after Rossignac and Borrel ("Multi-resolution 3D approximations for rendering
//! complex scenes", 1993): a grid is laid over the mesh, all points in a cell become one, their mean,
//! and triangles that no longer have three corners go. It needs nothing of the mesh (no closed
//! surface, no clean edges), so any file that can be read can be made coarser, and the result is the
//! same everywhere. Coarse meshes are for what is far away, where a cell is smaller than a pixel.

use std::collections::{HashMap, HashSet};

use super::mesh::Mesh;

/// The finest grid that is tried, in cells along the longest side.
const FINEST: u32 = 1 << 10;

/// The mesh itself if it has no more than this many triangles; else the finest of the coarser ones
/// that has not. The mesh is a [normalized](Mesh::normalized) one.
pub(super) fn simplified(mesh: &Mesh, triangles_max: usize) -> Mesh {
    if mesh.triangles().len() <= triangles_max {
        return mesh.clone();
    }
    let mut coarsest = None;
    let mut cells = FINEST;
    while cells >= 2 {
        if let Some(coarse) = clustered(mesh, cells) {
            if coarse.triangles().len() <= triangles_max {
                return coarse;
            }
            coarsest = Some(coarse);
        }
        cells -= (cells / 8).max(1);
    }
    // Two cells to a side leave 8 points, which is at most 8 * 7 * 6 triangles: fewer than any caller
    // asks for.
    coarsest.unwrap_or_else(|| mesh.clone())
}

/// The mesh with the points of each cell made one; none if no triangle is left.
fn clustered(mesh: &Mesh, cells: u32) -> Option<Mesh> {
    let last = cells - 1;
    let cell_of = |coordinate: f32| {
        let place = (coordinate + 1.0) * 0.5 * cells as f32;
        (place as u32).min(last)
    };
    let mut cell_points = HashMap::new();
    let mut sums: Vec<([f64; 3], f64)> = Vec::new();
    // Only points that triangles use: others must not pull a cell's point away.
    let mut point_of = vec![u32::MAX; mesh.positions().len()];
    for &index in mesh.triangles().iter().flatten() {
        if point_of[index as usize] != u32::MAX {
            continue;
        }
        let position = mesh.positions()[index as usize];
        let next = sums.len() as u32;
        let point = *cell_points.entry(position.map(cell_of)).or_insert(next);
        if point == next {
            sums.push(([0.0; 3], 0.0));
        }
        point_of[index as usize] = point;
        let (sum, count) = &mut sums[point as usize];
        *sum = std::array::from_fn(|axis| sum[axis] + f64::from(position[axis]));
        *count += 1.0;
    }
    let positions = sums
        .iter()
        .map(|(sum, count)| sum.map(|sum| (sum / count) as f32));
    let mut seen = HashSet::new();
    let corners = mesh.triangles().iter();
    let triangles = corners
        .map(|triangle| triangle.map(|index| point_of[index as usize]))
        .filter(|&[a, b, c]| a != b && b != c && c != a)
        .filter(|&triangle| seen.insert(turned(triangle)));
    Mesh::new(positions.collect(), triangles.collect()).ok()
}

/// The same triangle with its smallest index first.
fn turned([a, b, c]: [u32; 3]) -> [u32; 3] {
    match a.min(b).min(c) {
        first if first == a => [a, b, c],
        first if first == b => [b, c, a],
        _ => [c, a, b],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sheet of `side` x `side` squares with a bump in the middle.
    fn sheet(side: u32) -> Mesh {
        let at = |i: u32| i as f32 * 2.0 / side as f32 - 1.0;
        let height = |x: f32, y: f32| (1.0 - x * x) * (1.0 - y * y);
        let row = side + 1;
        let positions = (0..row * row).map(|i| {
            let (x, y) = (at(i % row), at(i / row));
            [x, y, height(x, y)]
        });
        let squares = (0..side * side).map(|i| i / side * row + i % side);
        let triangles = squares.flat_map(|a| [[a, a + 1, a + row], [a + 1, a + row + 1, a + row]]);
        Mesh::new(positions.collect(), triangles.collect())
            .unwrap()
            .normalized()
    }

    /// Goal: a coarser mesh has no more triangles than asked for, not far fewer, and is the same
    /// shape. Method: a bumpy sheet at several sizes: counts, and every point of the coarse one near
    /// the height that the sheet has there.
    #[test]
    fn coarser_meshes_keep_the_shape() {
        let fine = sheet(64);
        assert_eq!(simplified(&fine, 8_192), fine);
        let mut before = fine.triangles().len();
        for (most, tolerance) in [(2_000, 0.05), (500, 0.1), (100, 0.3)] {
            let coarse = simplified(&fine, most);
            let count = coarse.triangles().len();
            assert!(
                count <= most && count * 3 > most && count < before,
                "{count} of {most}"
            );
            before = count;
            for [x, y, z] in coarse.positions() {
                let height = (1.0 - x * x) * (1.0 - y * y) - 0.5;
                assert!((z - height).abs() < tolerance, "{most}: {x} {y} {z}");
            }
        }
    }
}
