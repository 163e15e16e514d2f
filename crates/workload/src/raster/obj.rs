//! Reading meshes from Wavefront OBJ files.
//!
//! The `tobj` crate reads; this module adds limits and lines in messages, and skips the parts that are not
//! needed. `tobj` is given the file line by line, without the texture coordinates and normals (`vt`, `vn`),
//! so indices of these are not checked; a material library that the file names is not opened.

use std::io::{self, BufRead, Read};
use std::path::Path;

use tobj::{LoadError, LoadOptions};

use super::mesh::{Mesh, MeshError};

/// The longest OBJ file that is read, in bytes.
pub const MAX_OBJ_FILE: u64 = 256 << 20;

impl Mesh {
    /// Reads a mesh from a file.
    ///
    /// # Errors
    /// If it cannot be read, is longer than [`MAX_OBJ_FILE`], or as [`from_obj`](Mesh::from_obj).
    pub fn load(path: &Path) -> Result<Mesh, MeshError> {
        let origin = path.display().to_string();
        let fail = |what: &dyn std::fmt::Display| MeshError(format!("{origin}: {what}"));
        let file = std::fs::File::open(path).map_err(|error| fail(&error))?;
        let mut bytes = Vec::new();
        // One byte more than the limit tells a file that is too long from one that just fits.
        file.take(MAX_OBJ_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| fail(&error))?;
        if bytes.len() as u64 > MAX_OBJ_FILE {
            let limit = MAX_OBJ_FILE >> 20;
            return Err(fail(&format!(
                "a mesh file has at most {limit} MiB; decimate the mesh"
            )));
        }
        Mesh::from_obj(&bytes, &origin)
    }

    /// Reads a mesh from the text of an OBJ file: points, and faces of any number of corners, of all objects
    /// and groups together. `origin` is its name in errors: the file's.
    ///
    /// ```
    /// use paceline_workload::raster::Mesh;
    /// let mesh = Mesh::from_obj(b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf -4 -3 -2 -1\n", "square");
    /// assert_eq!(mesh?.triangles().len(), 2);
    /// # Ok::<(), paceline_workload::raster::MeshError>(())
    /// ```
    ///
    /// # Errors
    /// If it is not such text, or not a valid mesh.
    pub fn from_obj(text: &[u8], origin: &str) -> Result<Mesh, MeshError> {
        if !text.split(|&byte| byte == b'\n').any(is_point_or_face) {
            return Err(MeshError(format!(
                "{origin}: this is no Wavefront OBJ: no line is a point ('v 0 1.5 -2') or a face \
                 ('f 1 2 3')"
            )));
        }
        let mut lines = Lines::new(text);
        let options = LoadOptions {
            triangulate: true,
            ignore_points: true,
            ignore_lines: true,
            ..LoadOptions::default()
        };
        // No material library is looked for.
        let read = tobj::load_obj_buf(&mut lines, &options, |_| Ok(Default::default()));
        let (models, _) = read
            .map_err(|error| MeshError(format!("{origin}: {}", explain(&error, text, &lines))))?;
        let (mut positions, mut triangles) = (Vec::new(), Vec::new());
        for model in models {
            let first = positions.len() as u32;
            let points = model.mesh.positions.chunks_exact(3);
            positions.extend(points.map(|point| [point[0], point[1], point[2]]));
            let corners = model.mesh.indices.chunks_exact(3);
            triangles.extend(corners.map(|c| [c[0], c[1], c[2]].map(|index| first + index)));
        }
        Mesh::new(positions, triangles).map_err(|error| match line_of_infinite(text) {
            Some(line) => MeshError(format!(
                "{origin}: line {line}: a coordinate is not a finite number"
            )),
            None => MeshError(format!("{origin}: {error}")),
        })
    }
}

/// The error: what is wrong, where, and what to do.
fn explain(error: &LoadError, text: &[u8], lines: &Lines<'_>) -> String {
    let (line, what) = match error {
        LoadError::FaceVertexOutOfBounds => (
            line_of_bad_index(text).unwrap_or(lines.number),
            "a face uses a point that is not there: indices count from 1, or from -1 backwards",
        ),
        LoadError::PositionParseError
        | LoadError::ScalingByZeroError
        | LoadError::ColorParseError => (
            lines.number,
            "a point is not 3 numbers (and 1 or 3 more): give for example 'v 0 1.5 -2'",
        ),
        LoadError::FaceParseError | LoadError::InvalidPolygon => (
            lines.number,
            "a face is not 3 or more indices of points: give for example 'f 1 2 3'",
        ),
        LoadError::ReadError => (lines.number, "not text; give a Wavefront OBJ file"),
        _ => return format!("line {}: {error}; give a Wavefront OBJ file", lines.number),
    };
    format!("line {line}: {what}")
}

/// The lines of the file as `tobj` is to see them: those of texture coordinates and normals left out.
struct Lines<'a> {
    rest: &'a [u8],
    /// The part of `rest` that belongs to the current line.
    left: usize,
    /// The current line, counted from 1.
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a [u8]) -> Lines<'a> {
        Lines {
            rest: text,
            left: 0,
            number: 0,
        }
    }
}

impl BufRead for Lines<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.left == 0 && !self.rest.is_empty() {
            let end = self.rest.iter().position(|&byte| byte == b'\n');
            let length = end.map_or(self.rest.len(), |end| end + 1);
            self.number += 1;
            match words(&self.rest[..length]).next() {
                Some(b"vt" | b"vn") => self.rest = &self.rest[length..],
                _ => self.left = length,
            }
        }
        Ok(&self.rest[..self.left])
    }

    fn consume(&mut self, count: usize) {
        let count = count.min(self.left);
        self.rest = &self.rest[count..];
        self.left -= count;
    }
}

impl Read for Lines<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

/// The words of a line, as `tobj` cuts them: at whatever Unicode calls white space, which is more than ASCII
/// does. A line that is no text has none; `tobj` reports it when it gets there.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    text.split_whitespace().map(str::as_bytes)
}

fn is_point_or_face(line: &[u8]) -> bool {
    matches!(words(line).next(), Some(b"v" | b"f"))
}

/// The first line with a point that has a coordinate which is no finite number.
fn line_of_infinite(text: &[u8]) -> Option<usize> {
    let infinite = |word: &[u8]| {
        let number = std::str::from_utf8(word)
            .ok()
            .and_then(|w| w.parse::<f32>().ok());
        number.is_some_and(|number| !number.is_finite())
    };
    let lines = text.split(|&byte| byte == b'\n');
    let found = lines.enumerate().find(|(_, line)| {
        let mut words = words(line);
        words.next() == Some(b"v") && words.any(infinite)
    });
    found.map(|(index, _)| index + 1)
}

/// The first line with a face one of whose indices names no point of the file.
fn line_of_bad_index(text: &[u8]) -> Option<usize> {
    let lines = || text.split(|&byte| byte == b'\n');
    let points = lines()
        .filter(|line| words(line).next() == Some(b"v"))
        .count() as i64;
    let mut before = 0;
    for (index, line) in lines().enumerate() {
        let mut words = words(line);
        match words.next() {
            Some(b"v") => before += 1,
            Some(b"f") => {
                let first = |word: &[u8]| {
                    let number = word.split(|&byte| byte == b'/').next()?;
                    std::str::from_utf8(number).ok()?.parse::<i64>().ok()
                };
                let bad = |index: i64| index == 0 || index > points || index < -before;
                if words.filter_map(first).any(bad) {
                    return Some(index + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POINTS: &str = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0.5\n";

    fn read(faces: &str) -> Result<Mesh, String> {
        Mesh::from_obj(format!("{POINTS}{faces}").as_bytes(), "F.obj")
            .map_err(|error| error.to_string())
    }

    /// Goal: every form of face in OBJ files is understood. Method: one of each kind, with the number of
    /// triangles they must become; a line that is no face is passed over.
    #[test]
    fn faces_are_read() {
        for (faces, triangles) in [
            ("f 1 2 3\n", 1),
            ("f 1 2 3 4", 2),
            ("f -4 -3 -2\r\nf -4 -2 -1\r\n", 2),
            (
                "vt 0 0\nvn 0 0 1\nf 1/1/1 2/1/1 3/1/1\nf 1//1 3//1 4//1\nf 1/1 2/1 4/1\n",
                3,
            ),
            ("vn 1 2\nf 1//99 2//-99 3//9223372036854775807\n", 1),
            ("\u{b}vt 0 0\nf 1/-9223372036854775807 2/9 3/9\n", 1),
            (
                "\u{2003}vn\u{b}0 0 1\nf\u{b}1//9 2//-9 3//9223372036854775807\n",
                1,
            ),
            (
                "# f 9 9 9\no a\nusemtl m\nf 1 2 3\ng b\ns off\nf 1 3 4\nl 1 2\n",
                2,
            ),
            ("mtllib no/such.mtl\nf 1 2 3\nv 5 5 5\nf 5 1 2\n", 2),
            ("f 1 2 2\nf 1 2 3\n", 1),
        ] {
            let mesh = read(faces).unwrap_or_else(|error| panic!("{faces:?}: {error}"));
            assert_eq!(mesh.triangles().len(), triangles, "{faces:?}");
        }
        let mesh = read("f -4 -3 -2").unwrap();
        assert_eq!(mesh.positions()[1], [1.0, 0.0, 0.0]);
    }

    /// Goal: an error is one line, with the file and the line of it. Method: one fault of each kind.
    #[test]
    fn faults_are_named_with_their_line() {
        for (faces, parts) in [
            ("f 1 2 x\n", &["line 5", "f 1 2 3"][..]),
            ("f 1 2 3\nf 1 2 9\n", &["line 6", "not there"]),
            ("g a\nf 1 2 0\n\n\ng b\nf 1 2 3\n", &["line 6", "not there"]),
            ("f 1 2 -5\n", &["line 5", "not there"]),
            ("vt 1 1\nv 1 2\nf 1 2 3\n", &["line 6", "v 0 1.5 -2"]),
            ("v nan 0 0\nf 1 2 5\n", &["line 5", "finite"]),
            ("v 0 1e39 0\nf 1 2 5\n", &["line 5", "finite"]),
            ("v 1 2 3 0\n", &["line 5"]),
            ("", &["no triangles"]),
            ("f 1 2\nf 3\n", &["no triangles"]),
            ("f\n", &["f 1 2 3"]),
        ] {
            let error = read(faces).unwrap_err();
            assert!(
                error.starts_with("F.obj: ") && !error.contains('\n'),
                "{error}"
            );
            for part in parts {
                assert!(error.contains(part), "{faces:?}: {error}");
            }
        }
        let error = Mesh::from_obj(b"v 0 0 0\n\xff\xfe\n", "F.obj").unwrap_err();
        assert!(error.to_string().contains("line 2: not text"), "{error}");
    }

    /// Goal: a file of another kind is told from a mesh without triangles. Method: nothing, texts, and
    /// bytes of which some happen to be valid text.
    #[test]
    fn files_of_other_kinds_are_refused() {
        for bytes in [
            &b""[..],
            b"\n\n",
            b"solid cube\nfacet normal 0 0 1\nvertex 0 0 0\n",
            b"# only a remark\no thing\nvn 0 0 1\n",
            b"\x00\x01\x02\nvf\x00\x7f\n",
            b"\x7fELF\xff\xfe\x80\n",
        ] {
            let error = Mesh::from_obj(bytes, "F.bin").unwrap_err().to_string();
            let begins = error.starts_with("F.bin: this is no Wavefront OBJ");
            assert!(begins && !error.contains('\n'), "{bytes:?}: {error}");
        }
    }

    /// Goal: a file that is too long is refused without being held whole. Method: an endless one,
    /// where the system has it.
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "a quarter of a gigabyte")]
    #[test]
    fn endless_files_are_refused() {
        let error = Mesh::load(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("256 MiB"), "{error}");
        let error = Mesh::load(Path::new("no/such.obj"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no/such.obj"), "{error}");
    }

    /// The elements of OBJ files, and some that are not.
    fn pieces() -> impl Strategy<Value = Vec<String>> {
        let word = prop_oneof![
            Just("v".to_owned()),
            Just("f".to_owned()),
            Just("vt".to_owned()),
            Just("vn".to_owned()),
            Just("\n".to_owned()),
            Just("\n".to_owned()),
            Just("o".to_owned()),
            Just("usemtl".to_owned()),
            Just("mtllib".to_owned()),
            Just("l".to_owned()),
            (-9i64..9).prop_map(|n| n.to_string()),
            (-9i64..9, -9i64..9).prop_map(|(a, b)| format!("{a}/{b}/{a}")),
            any::<i64>().prop_map(|n| n.to_string()),
            any::<f32>().prop_map(|n| n.to_string()),
            "\\PC{0,4}",
        ];
        prop::collection::vec(word, 0..60)
    }

    proptest! {
        /// Goal: no file makes the reader panic. Method: any bytes; a mesh that comes out holds what
        /// [`Mesh`] promises.
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok(mesh) = Mesh::from_obj(&bytes, "F") {
                prop_assert!(!mesh.triangles().is_empty());
            }
        }

        /// Goal: the same for files that get further. Method: words of the format in any order.
        #[test]
        fn any_words_are_read_or_refused(words in pieces()) {
            match Mesh::from_obj(words.join(" ").as_bytes(), "F") {
                Ok(mesh) => {
                    let count = mesh.positions().len() as u32;
                    prop_assert!(mesh.triangles().iter().flatten().all(|&index| index < count));
                    prop_assert!(mesh.normalized().positions().iter().flatten().all(|c| c.abs() <= 1.0));
                }
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }
    }
}
