//! The way from points to boxes against slow and simple versions of it.

use proptest::prelude::*;

use super::bins::{Binned, Triangle, double_area};
use super::clip::clip;
use super::occlude::Visibility;
use super::stages::{Buffers, buffers_of};
use super::tile::{Tile, origin};
use super::transform::{SUBPIXELS, ScreenPoint};
use super::view::{CameraView, Clip, NEAR, PATH_FRAMES};
use super::{HEIGHT, Mesh, TILE_WIDTH, TILES, WIDTH, default_mesh, picture};

/// The depth buffer after these triangles.
fn drawn(triangles: &[[ScreenPoint; 3]]) -> Vec<f32> {
    let mut binned = Binned::default();
    binned.refill(|kept| kept.extend(triangles.iter().copied().filter_map(Triangle::new)));
    let (binned, mut whole) = ([binned], vec![0.0; WIDTH * HEIGHT]);
    for number in 0..TILES {
        let mut tile = Tile::default();
        tile.draw(1, number, &binned);
        let [left, top] = origin(number);
        for (down, row) in tile.depth.chunks_exact(TILE_WIDTH).enumerate() {
            whole[(top + down) * WIDTH + left..][..TILE_WIDTH].copy_from_slice(row);
        }
    }
    whole
}

/// Whether a triangle covers the centre of a pixel, straight from the definition; front faces run
/// counter-clockwise as seen from outside.
fn covers(triangle: &[ScreenPoint; 3], pixel: [i64; 2]) -> bool {
    let corner = |i: usize| triangle[i % 3].0.map(i64::from);
    let centre = pixel.map(|at| at * i64::from(SUBPIXELS) + i64::from(SUBPIXELS) / 2);
    let side = |from: [i64; 2], to: [i64; 2], point: [i64; 2]| {
        (to[0] - from[0]) * (point[1] - from[1]) - (to[1] - from[1]) * (point[0] - from[0])
    };
    side(corner(0), corner(1), corner(2)) < 0
        && (0..3).all(|i| {
            // Turned round, the inside is where the sign is positive.
            let (from, to) = (corner(i + 1), corner(i));
            let is_left = to[1] < from[1];
            let is_upper = to[1] == from[1] && to[0] > from[0];
            let side = side(from, to, centre);
            side > 0 || (side == 0 && (is_left || is_upper))
        })
}

/// The depth of a triangle at the centre of a pixel: at least, at most. Of slivers only that it is
/// between those of the corners.
fn depth_at(triangle: &[ScreenPoint; 3], pixel: [i64; 2]) -> [f64; 2] {
    let corner = |i: usize| triangle[i].0.map(f64::from);
    let centre = pixel.map(|at| (at as f64 + 0.5) * f64::from(SUBPIXELS));
    let area = |a: [f64; 2], b: [f64; 2], c: [f64; 2]| {
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    };
    let (a, b, c) = (corner(0), corner(1), corner(2));
    let whole = area(a, b, c);
    let parts = [area(centre, b, c), area(a, centre, c), area(a, b, centre)];
    let depths = [0, 1, 2].map(|i| f64::from(triangle[i].1));
    let (low, high) = depths
        .into_iter()
        .fold((f64::MAX, 0.0f64), |(low, high), depth| {
            (low.min(depth), high.max(depth))
        });
    let longest = [a, b, c]
        .into_iter()
        .flatten()
        .fold(0.0f64, |most, at| most.max(at.abs()));
    let slack = 8e-6 * (high - low) * longest * longest / whole.abs() + 4e-6 * high;
    let exact: f64 = parts
        .iter()
        .zip(depths)
        .map(|(part, depth)| part / whole * depth)
        .sum();
    [(exact - slack).max(low), (exact + slack).min(high)]
}

fn bounds(triangle: &[ScreenPoint; 3]) -> impl Iterator<Item = [i64; 2]> + use<> {
    let range = |axis: usize, size: usize| {
        let ats = triangle.map(|point| i64::from(point.0[axis] / SUBPIXELS));
        let (low, high) = (ats.iter().min().unwrap() - 1, ats.iter().max().unwrap() + 1);
        low.clamp(0, size as i64)..(high + 1).clamp(0, size as i64)
    };
    let (columns, rows) = (range(0, WIDTH), range(1, HEIGHT));
    rows.flat_map(move |y| columns.clone().map(move |x| [x, y]))
}

fn at([x, y]: [i64; 2]) -> usize {
    y as usize * WIDTH + x as usize
}

/// Triangles of all sorts: small ones, large ones, ones far outside, and degenerate ones.
fn triangles() -> impl Strategy<Value = [ScreenPoint; 3]> {
    let depth = || (1u32..=1_000).prop_map(|depth| depth as f32 / 300.0);
    let point = |reach: i32| ((-reach..=reach, -reach..=reach), depth());
    let around = |reach: i32| {
        let shape = (point(reach), point(reach), point(reach));
        (shape, 0..WIDTH as i32 * 16, 0..HEIGHT as i32 * 16).prop_map(|((a, b, c), x, y)| {
            [a, b, c].map(|((dx, dy), depth)| ([x + dx, y + dy], depth))
        })
    };
    let far = point(64_000).prop_map(|((x, y), depth)| ([x, y], depth));
    prop_oneof![
        4 => around(40),
        4 => around(600),
        2 => around(6_000),
        1 => around(2),
        1 => [far.clone(), far.clone(), far],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

    /// Goal: exactly the pixels are drawn whose centres are covered, at the depth of the nearest triangle
    /// there. Method: triangles of all sorts, compared with the definition, pixel by pixel.
    #[test]
    fn triangles_are_drawn_where_they_are(
        triangles in prop::collection::vec(triangles(), 1..10),
    ) {
        let ours = drawn(&triangles);
        let mut lowest = vec![0.0f64; ours.len()];
        let mut highest = vec![0.0f64; ours.len()];
        for triangle in &triangles {
            for pixel in bounds(triangle).filter(|&pixel| covers(triangle, pixel)) {
                let [low, high] = depth_at(triangle, pixel);
                lowest[at(pixel)] = lowest[at(pixel)].max(low);
                highest[at(pixel)] = highest[at(pixel)].max(high);
            }
        }
        for (pixel, &depth) in ours.iter().enumerate() {
            let depth = f64::from(depth);
            prop_assert!(
                lowest[pixel] <= depth && depth <= highest[pixel],
                "pixel {} {}: {} is not in {}..={}",
                pixel % WIDTH, pixel / WIDTH, depth, lowest[pixel], highest[pixel]
            );
        }
    }

    /// Goal: triangles that share edges cover each pixel once. Method: one is cut in three at a point
    /// inside; the parts cover what the whole covers, and nothing twice.
    #[test]
    fn shared_edges_are_covered_once(
        whole in triangles(), cut in (1i64..100, 1i64..100, 1i64..100),
    ) {
        let parts = [cut.0, cut.1, cut.2];
        let sum: i64 = parts.iter().sum();
        let middle = [0, 1].map(|axis| {
            let weighted = (0..3).map(|i| parts[i] * i64::from(whole[i].0[axis]));
            (weighted.sum::<i64>() / sum) as i32
        });
        let three = [0, 1, 2].map(|i| [whole[i], whole[(i + 1) % 3], (middle, 1.0)]);
        let is_front = |triangle: &[ScreenPoint; 3]| {
            double_area(triangle.map(|p| p.0[0]), triangle.map(|p| p.0[1])) < 0
        };
        prop_assume!(is_front(&whole) && three.iter().all(is_front));
        let all = drawn(&[whole]);
        let parts = three.map(|part| drawn(&[part]));
        for pixel in 0..all.len() {
            let times = parts.iter().filter(|part| part[pixel] > 0.0).count();
            prop_assert_eq!(times, usize::from(all[pixel] > 0.0));
        }
    }

    /// Goal: of triangles that reach behind the camera or far to the side, the visible part is drawn. Method:
    /// a ray through every pixel. Rays that pass an edge within a quarter of a pixel may hit or miss: corners
    /// are rounded.
    #[test]
    fn cut_triangles_are_drawn_where_they_are(
        corners in prop::array::uniform3((-9.0f32..9.0, -9.0f32..9.0, -4.0f32..6.0)),
    ) {
        let view = CameraView::new([0.0; 3], [0.0, 1.0]);
        let clips = corners.map(|(x, y, z)| view.world.apply([x, y, z]));
        let mut left = Vec::new();
        clip(clips, |triangle| left.push(triangle));
        let ours = drawn(&left);
        for y in (0..HEIGHT).step_by(3) {
            for x in (0..WIDTH).step_by(3) {
                let around = [(0.0, 0.0), (-0.25, -0.25), (0.25, -0.25), (-0.25, 0.25), (0.25, 0.25)]
                    .map(|(dx, dy)| ray(&clips, x as f64 + 0.5 + dx, y as f64 + 0.5 + dy));
                let depth = f64::from(ours[y * WIDTH + x]);
                if around.iter().all(Option::is_none) {
                    prop_assert_eq!(depth, 0.0, "{} {}", x, y);
                }
                if let [Some(exact), Some(_), Some(_), Some(_), Some(_)] = around {
                    let (low, high) = around.iter().flatten().fold((exact, exact), |(l, h), &d| {
                        (l.min(d), h.max(d))
                    });
                    let slack = (high - low) + 1e-3 * high;
                    prop_assert!(
                        (low - slack..=high + slack).contains(&depth),
                        "{} {}: {} for {}", x, y, depth, exact
                    );
                }
            }
        }
    }
}

/// The depth at which the ray through a point of the screen meets a triangle's front, if it does.
fn ray(corners: &[Clip; 3], x: f64, y: f64) -> Option<f64> {
    let [a, b, c] = corners.map(|corner| corner.map(f64::from));
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let whole = dot(a, cross(b, c));
    if whole >= 0.0 {
        return None;
    }
    // The point of the screen as a sum of the corners.
    let parts = [cross(b, c), cross(c, a), cross(a, b)].map(|side| dot([x, y, 1.0], side) / whole);
    let depth: f64 = parts.iter().sum();
    let hit =
        parts.iter().all(|&part| part >= 0.0) && depth > 0.0 && depth <= 1.0 / f64::from(NEAR);
    hit.then_some(depth)
}

/// Whether a box shows in a pixel: the ray from the camera enters it before it meets a drawn surface.
fn shows(buffers: &Buffers, depth: &[f32], number: usize) -> bool {
    let (view, cuboid) = (buffers.seen().view, buffers.field().boxes[number]);
    let rows = view.world.0.map(|row| row.map(f64::from));
    let on_screen = (0..8).map(|corner| {
        let point: [f64; 3] = std::array::from_fn(|axis| {
            let side = if corner >> axis & 1 == 0 { -1.0 } else { 1.0 };
            f64::from(cuboid.middle[axis]) + side * f64::from(cuboid.half[axis])
        });
        rows.map(|row| row[0] * point[0] + row[1] * point[1] + row[2] * point[2] + row[3])
    });
    let corners: Vec<[f64; 3]> = on_screen.collect();
    if corners.iter().any(|corner| corner[2] < f64::from(NEAR)) {
        // Not a matter of pixels.
        return false;
    }
    let range = |axis: usize, size: usize| {
        let ats = corners.iter().map(|corner| corner[axis] / corner[2]);
        let (low, high) = ats.fold((f64::MAX, f64::MIN), |(l, h), at| (l.min(at), h.max(at)));
        low.max(0.0) as usize..(high.max(0.0) as usize + 1).min(size)
    };
    let columns = range(0, WIDTH);
    range(1, HEIGHT).any(|y| {
        columns.clone().any(|x| {
            let entry = enters(&rows, &cuboid, x as f64 + 0.5, y as f64 + 0.5);
            entry.is_some_and(|w| 1.0 / w > f64::from(depth[y * WIDTH + x]))
        })
    })
}

/// How far ahead the ray through a point of the screen enters a box.
fn enters(rows: &[[f64; 4]; 3], cuboid: &super::field::Cuboid, x: f64, y: f64) -> Option<f64> {
    // A point is seen at x if (row 0 - x row 2) of it is 0, likewise for y; so the ray runs along the
    // cross product of the two, and w grows along it by row 2.
    let plane =
        |row: [f64; 4], at: f64| -> [f64; 4] { std::array::from_fn(|i| row[i] - at * rows[2][i]) };
    let (a, b) = (plane(rows[0], x), plane(rows[1], y));
    let direction = [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ];
    let growth: f64 = (0..3).map(|i| direction[i] * rows[2][i]).sum();
    let direction = direction.map(|part| part / growth);
    // The camera: where w is 0 on all rays. Its height and place follow from the rows.
    let eye = solve(rows);
    let (mut first, mut last) = (f64::MIN, f64::MAX);
    for axis in 0..3 {
        let middle = f64::from(cuboid.middle[axis]) - eye[axis];
        let half = f64::from(cuboid.half[axis]);
        let (near, far) = (
            (middle - half) / direction[axis],
            (middle + half) / direction[axis],
        );
        first = first.max(near.min(far));
        last = last.min(near.max(far));
    }
    (first <= last && first >= f64::from(NEAR)).then_some(first)
}

/// The point that all three rows take to 0, by Cramer's rule.
fn solve(rows: &[[f64; 4]; 3]) -> [f64; 3] {
    let determinant = |m: [[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
            - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let matrix = rows.map(|row| [row[0], row[1], row[2]]);
    std::array::from_fn(|axis| {
        let mut replaced = matrix;
        for (row, of) in replaced.iter_mut().zip(rows) {
            row[axis] = -of[3];
        }
        determinant(replaced) / determinant(matrix)
    })
}

/// Goal: a box that shows in a pixel is never called hidden, and most of those called visible do show.
/// Method: frames along the way with the built-in mesh; rays through all pixels of each box.
#[cfg_attr(miri, ignore = "minutes")]
#[test]
fn no_box_that_shows_is_culled() {
    let buffers = buffers_of(default_mesh());
    for step in [0, 60, 140] {
        buffers.run_serial(1, step, |_| ());
        let depth = picture::depth(&buffers);
        let (mut hidden, mut called, mut showing) = (0, 0, 0);
        for (number, found) in buffers.seen().boxes.iter().enumerate() {
            let shows = shows(&buffers, &depth, number);
            match found {
                Visibility::Visible => called += 1,
                _ => assert!(!shows, "step {step}: box {number} is called {found:?}"),
            }
            hidden += u64::from(*found == Visibility::Hidden);
            showing += u64::from(shows);
        }
        assert!(
            hidden > 500 && called > 50,
            "step {step}: {hidden} hidden, {called} called visible"
        );
        assert!(
            showing * 10 > called * 6,
            "step {step}: {showing} of {called} show"
        );
    }
}

/// Goal: frames do not change, on any platform, and stay within the limit of triangles. Method: the checksums
/// of steps of the way with the built-in mesh, pinned.
#[cfg_attr(miri, ignore = "minutes")]
#[test]
fn the_default_scene_never_changes() {
    let mesh = default_mesh();
    assert_eq!(
        (mesh.positions().len(), mesh.triangles().len()),
        (7_503, 14_842)
    );
    let buffers = buffers_of(mesh);
    let mut sums = Vec::new();
    for step in [0, 100] {
        buffers.run_serial(1, step, |_| ());
        sums.push(buffers.checksum(1));
        let triangles = buffers.seen().triangles;
        assert!(
            (100_000..=super::MAX_TRIANGLES as u64).contains(&triangles),
            "{triangles}"
        );
    }
    assert_eq!(
        sums,
        [6_659_994_816_744_175_977, 16_014_105_896_871_922_699]
    );
}

/// Goal: a mesh of any size makes a scene within the limit of triangles. Method: a single triangle, and the
/// built-in mesh with each triangle cut in four.
#[cfg_attr(miri, ignore = "minutes")]
#[test]
fn meshes_of_any_size_are_drawn() {
    let fine = {
        let mesh = default_mesh();
        let mut positions = mesh.positions().to_vec();
        let mut triangles = Vec::new();
        for &[a, b, c] in mesh.triangles() {
            let [ab, bc, ca] = [(a, b), (b, c), (c, a)].map(|(from, to)| {
                let (p, q) = (positions[from as usize], positions[to as usize]);
                positions.push(std::array::from_fn(|axis| (p[axis] + q[axis]) / 2.0));
                positions.len() as u32 - 1
            });
            triangles.extend([[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]);
        }
        Mesh::new(positions, triangles).unwrap()
    };
    let single = Mesh::new(
        vec![[0.0, 0.0, 1e30], [1e30, 0.0, 0.0], [0.0, 1e-30, 0.0]],
        vec![[0, 1, 2]],
    );
    for (mesh, least) in [(fine, 60_000), (single.unwrap(), 50)] {
        let buffers = buffers_of(mesh);
        buffers.run_serial(1, PATH_FRAMES / 2, |_| ());
        let triangles = buffers.seen().triangles;
        assert!(
            (least..=super::MAX_TRIANGLES as u64).contains(&triangles),
            "{triangles}"
        );
    }
}

/// A job of a frame's graph that others wait for, and one of those: an edge to leave out.
#[derive(Clone, Copy, Debug)]
enum Dropped {
    /// The points of this chunk come after its bin.
    Transform(usize),
    /// The bin of this chunk comes after gathering, so no tile waited for it.
    Bin(usize),
    /// This share of the boxes comes after gathering.
    Boxes(usize),
    /// Gathering comes after this tile is drawn.
    Gather(usize),
    /// This tile is drawn after its test.
    Raster(usize),
    /// This tile is tested after the end.
    Test(usize),
}

/// A frame in the order of a serial one, but for the job whose edge is left out: the latest order in
/// which a scheduler that does not know of the edge may run it.
fn run_without(buffers: &Buffers, frame: u64, step: u64, dropped: Dropped) {
    use super::{BOX_SHARES, CHUNKS};
    buffers.plan(frame, step);
    for chunk in 0..CHUNKS {
        let is_late = matches!(dropped, Dropped::Transform(late) if late == chunk);
        if !is_late {
            buffers.transform(chunk);
        }
        if !matches!(dropped, Dropped::Bin(late) if late == chunk) {
            buffers.bin(chunk);
        }
        if is_late {
            buffers.transform(chunk);
        }
    }
    for share in 0..BOX_SHARES {
        if !matches!(dropped, Dropped::Boxes(late) if late == share) {
            buffers.shadows(share);
        }
    }
    if let Dropped::Gather(early) = dropped {
        buffers.raster(early);
    }
    buffers.gather();
    match dropped {
        Dropped::Bin(late) => {
            buffers.bin(late);
        }
        Dropped::Boxes(late) => {
            buffers.shadows(late);
        }
        _ => {}
    }
    for tile in 0..TILES {
        if !matches!(dropped, Dropped::Gather(early) if early == tile) {
            let is_late = matches!(dropped, Dropped::Raster(late) if late == tile);
            if !is_late {
                buffers.raster(tile);
            }
            if !matches!(dropped, Dropped::Test(late) if late == tile) {
                buffers.test(tile);
            }
            if is_late {
                buffers.raster(tile);
            }
        } else {
            buffers.test(tile);
        }
    }
    buffers.resolve();
    if let Dropped::Test(late) = dropped {
        buffers.test(late);
    }
}

/// Goal: the checksum notices any edge that is missing from the graph, also before a tile in which
/// nothing is drawn. Method: frames with one edge left out, for places all over the chunks and tiles,
/// each after a frame seen from elsewhere; between them whole frames, which stay right.
#[cfg_attr(miri, ignore = "minutes")]
#[test]
fn an_edge_that_is_left_out_is_noticed() {
    use super::{BOX_SHARES, CHUNKS};
    let buffers = buffers_of(default_mesh());
    buffers.run_serial(1, 100, |_| ());
    let right = buffers.checksum(1);
    let chunks = (0..CHUNKS).step_by(21);
    let chunks = chunks.flat_map(|chunk| [Dropped::Transform(chunk), Dropped::Bin(chunk)]);
    let shares = (0..BOX_SHARES).step_by(5).map(Dropped::Boxes);
    let tiles = (0..TILES).step_by(22).flat_map(|tile| {
        [
            Dropped::Gather(tile),
            Dropped::Raster(tile),
            Dropped::Test(tile),
        ]
    });
    let mut frame = 1;
    for dropped in chunks.chain(shares).chain(tiles) {
        frame += 3;
        buffers.run_serial(frame - 2, 100, |_| ());
        assert_eq!(buffers.checksum(frame - 2), right, "before {dropped:?}");
        buffers.run_serial(frame - 1, 0, |_| ());
        run_without(&buffers, frame, 100, dropped);
        assert_ne!(buffers.checksum(frame), right, "{dropped:?} is not noticed");
    }
}
