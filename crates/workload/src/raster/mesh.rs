//! A mesh: points, triangles, and the conditions they meet before anything is drawn.
//!
//! Invariants of a [`Mesh`], checked by [`Mesh::new`]: every index names a point, every coordinate is
//! finite, no triangle uses a point twice, there is at least one triangle, and not all points are the
//! same. So the code behind it has no case for a bad mesh.

use std::fmt;

/// The most triangles of a mesh.
pub const MAX_MESH_TRIANGLES: usize = 4 << 20;

/// Points and the triangles between them, counter-clockwise seen from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    positions: Vec<[f32; 3]>,
    triangles: Vec<[u32; 3]>,
}

/// Why a mesh cannot be used: one line that says what, where and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshError(pub(super) String);

impl fmt::Display for MeshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MeshError {}

impl Mesh {
    /// A mesh of these points and triangles. Triangles that use a point twice are left out: they
    /// cover nothing.
    ///
    /// # Errors
    /// If an invariant at the top of this module does not hold, or there are more than
    /// [`MAX_MESH_TRIANGLES`].
    pub fn new(positions: Vec<[f32; 3]>, triangles: Vec<[u32; 3]>) -> Result<Mesh, MeshError> {
        let fail = |what: String| Err(MeshError(what));
        if triangles.len() > MAX_MESH_TRIANGLES {
            return fail(format!(
                "{} triangles are too many: at most {MAX_MESH_TRIANGLES} are supported; decimate the mesh",
                triangles.len()
            ));
        }
        let count = positions.len();
        if let Some(index) = triangles
            .iter()
            .flatten()
            .find(|&&index| index as usize >= count)
        {
            return fail(format!(
                "a triangle uses point {index}, but there are {count}, counted from 0"
            ));
        }
        if let Some(at) = positions
            .iter()
            .flatten()
            .position(|coordinate| !coordinate.is_finite())
        {
            let [x, y, z] = positions[at / 3];
            return fail(format!(
                "point {} is ({x}, {y}, {z}): give finite coordinates",
                at / 3
            ));
        }
        let mut mesh = Mesh {
            positions,
            triangles,
        };
        mesh.triangles
            .retain(|&[a, b, c]| a != b && b != c && c != a);
        if mesh.triangles.is_empty() {
            return fail(
                "there are no triangles: give at least one face of three points".to_owned(),
            );
        }
        let (low, high) = mesh.bounds();
        if low == high {
            return fail(
                "all points of the triangles are the same: nothing can be seen of it".to_owned(),
            );
        }
        Ok(mesh)
    }

    /// The points.
    pub fn positions(&self) -> &[[f32; 3]] {
        &self.positions
    }

    /// The triangles, each as the indices of three different points.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// The mesh moved and scaled so that the middle of its bounding box is the origin and the longest
    /// half of the box is 1.
    pub fn normalized(self) -> Mesh {
        let (low, high) = self.bounds();
        let half: [f64; 3] = std::array::from_fn(|axis| (high[axis] - low[axis]) / 2.0);
        let longest = half.into_iter().fold(0.0, f64::max);
        let to_unit = |point: [f32; 3]| {
            std::array::from_fn(|axis| {
                ((f64::from(point[axis]) - low[axis] - half[axis]) / longest) as f32
            })
        };
        // Points that no triangle uses may lie anywhere, also where a float cannot reach.
        let clamp = |point: [f32; 3]| point.map(|coordinate| coordinate.clamp(-1.0, 1.0));
        Mesh {
            positions: self.positions.into_iter().map(to_unit).map(clamp).collect(),
            triangles: self.triangles,
        }
    }

    /// The corners of the bounding box of the points that triangles use.
    fn bounds(&self) -> ([f64; 3], [f64; 3]) {
        let used = self.triangles.iter().flatten();
        let points = used.map(|&index| self.positions[index as usize].map(f64::from));
        points.fold(
            ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]),
            |(low, high), point| {
                (
                    std::array::from_fn(|axis| low[axis].min(point[axis])),
                    std::array::from_fn(|axis| high[axis].max(point[axis])),
                )
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORNERS: [[f32; 3]; 3] = [[2.0, 2.0, 5.0], [6.0, 2.0, 5.0], [2.0, 4.0, 5.0]];

    fn refused(positions: &[[f32; 3]], triangles: &[[u32; 3]]) -> String {
        let error = Mesh::new(positions.to_vec(), triangles.to_vec()).unwrap_err();
        error.to_string()
    }

    /// Goal: an input that is not a mesh is refused with one line that says why. Method: one of each.
    #[test]
    fn bad_meshes_are_refused() {
        let [a, b, c] = CORNERS;
        for (positions, triangles, part) in [
            (&[a, b, c][..], &[][..], "no triangles"),
            (&[a, b, c], &[[0, 1, 1]], "no triangles"),
            (&[a, b, c], &[[0, 1, 3]], "point 3"),
            (&[], &[[0, 1, 2]], "point 0"),
            (&[a, b, [0.0, f32::NAN, 0.0]], &[[0, 1, 2]], "finite"),
            (&[a, b, [f32::INFINITY, 0.0, 0.0]], &[[0, 1, 2]], "finite"),
            (&[a, a, a], &[[0, 1, 2]], "the same"),
        ] {
            let text = refused(positions, triangles);
            assert!(text.contains(part) && !text.contains('\n'), "{text}");
        }
    }

    /// Goal: a mesh of any size and place becomes one of size 1 around the origin. Method: a flat
    /// triangle, one as large as floats get with a point that nothing uses.
    #[test]
    fn meshes_are_normalized() {
        let mesh = Mesh::new(CORNERS.to_vec(), vec![[0, 1, 2]])
            .unwrap()
            .normalized();
        assert_eq!(
            mesh.positions(),
            [[-1.0, -0.5, 0.0], [1.0, -0.5, 0.0], [-1.0, 0.5, 0.0]]
        );
        let far = [
            [f32::MIN, 0.0, 0.0],
            [f32::MAX, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [0.0, 0.0, f32::MAX],
        ];
        let mesh = Mesh::new(far.to_vec(), vec![[0, 1, 2]])
            .unwrap()
            .normalized();
        assert_eq!(
            [0, 1, 2, 3].map(|point| mesh.positions()[point][0]),
            [-1.0, 1.0, 0.0, 0.0]
        );
        assert!(mesh.positions().iter().flatten().all(|c| c.abs() <= 1.0));
    }
}
