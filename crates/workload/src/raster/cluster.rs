//! Meshes in the form that frames read them: small groups of triangles with points of their own.
//!
//! A cluster has at most [`POINTS`] points, so its triangles name them by single bytes and its points
//! are transformed by one loop over plain arrays, and at most [`TRIANGLES`] triangles, so a frame's
//! work can be cut into equal parts without looking at meshes. Points on the border of two clusters
//! are in both; they are transformed by the same operations and so to the same place.

use super::mesh::Mesh;

/// The most points of a cluster.
const POINTS: usize = 96;
/// The most triangles of a cluster.
pub(super) const TRIANGLES: usize = 128;

/// A mesh cut into clusters.
pub(super) struct Clusters {
    /// Coordinates of the points, cluster by cluster.
    pub(super) x: Vec<f32>,
    pub(super) y: Vec<f32>,
    pub(super) z: Vec<f32>,
    /// Each triangle's points within its cluster.
    pub(super) triangles: Vec<[u8; 3]>,
    pub(super) clusters: Vec<Cluster>,
}

/// Where a cluster's points and triangles begin and end.
#[derive(Clone, Copy)]
pub(super) struct Cluster {
    pub(super) points: [u32; 2],
    pub(super) triangles: [u32; 2],
}

impl Clusters {
    /// Cuts a mesh, triangle by triangle in the order they have: files are written along the surface,
    /// so neighbours in the file are neighbours in space.
    pub(super) fn new(mesh: &Mesh) -> Clusters {
        let mut made = Clusters {
            x: Vec::new(),
            y: Vec::new(),
            z: Vec::new(),
            triangles: Vec::with_capacity(mesh.triangles().len()),
            clusters: Vec::new(),
        };
        // The points of the cluster being filled, as indices of the mesh.
        let mut points: Vec<u32> = Vec::with_capacity(POINTS);
        let mut first_triangle = 0;
        for &triangle in mesh.triangles() {
            let new = triangle
                .iter()
                .filter(|index| !points.contains(index))
                .count();
            let full = made.triangles.len() - first_triangle == TRIANGLES;
            if full || points.len() + new > POINTS {
                made.close(mesh, &mut points, &mut first_triangle);
            }
            made.triangles.push(triangle.map(|index| {
                let known = points.iter().position(|&point| point == index);
                known.unwrap_or_else(|| {
                    points.push(index);
                    points.len() - 1
                }) as u8
            }));
        }
        made.close(mesh, &mut points, &mut first_triangle);
        made
    }

    fn close(&mut self, mesh: &Mesh, points: &mut Vec<u32>, first_triangle: &mut usize) {
        let first_point = self.x.len();
        for point in points.drain(..) {
            let [x, y, z] = mesh.positions()[point as usize];
            self.x.push(x);
            self.y.push(y);
            self.z.push(z);
        }
        self.clusters.push(Cluster {
            points: [first_point as u32, self.x.len() as u32],
            triangles: [*first_triangle as u32, self.triangles.len() as u32],
        });
        *first_triangle = self.triangles.len();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Goal: cutting loses nothing. Method: triangles between random points; put together again,
        /// the clusters are the mesh, in the same order, and none is too large or empty.
        #[test]
        fn clusters_are_the_mesh(
            corners in prop::collection::vec((0u32..300, 0u32..300, 0u32..300), 1..400),
        ) {
            let positions = (0..300).map(|i| [i as f32, (i * i) as f32, -(i as f32)]).collect();
            let triangles = corners.iter().map(|&(a, b, c)| [a, b, c]).collect();
            let Ok(mesh) = Mesh::new(positions, triangles) else { return Ok(()) };
            let made = Clusters::new(&mesh);
            let mut again = Vec::new();
            for cluster in &made.clusters {
                let [first, end] = cluster.points;
                let [from, to] = cluster.triangles;
                prop_assert!(end - first <= POINTS as u32);
                prop_assert!(to > from && to - from <= TRIANGLES as u32);
                for triangle in &made.triangles[from as usize..to as usize] {
                    again.push(triangle.map(|point| {
                        assert!(u32::from(point) < end - first);
                        let at = first as usize + usize::from(point);
                        [made.x[at], made.y[at], made.z[at]]
                    }));
                }
            }
            let whole: Vec<_> = mesh
                .triangles()
                .iter()
                .map(|triangle| triangle.map(|index| mesh.positions()[index as usize]))
                .collect();
            prop_assert_eq!(again, whole);
        }
    }
}
