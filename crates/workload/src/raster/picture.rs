//! A frame for people: the depth buffer in relief, boxes that may be seen in green, culled ones in red.
//!
//! The edges of a green box are drawn where they are in front of the depth buffer; red ones shine through the
//! surfaces that hide them, which is the point of the picture. Nothing here is part of a frame's work.

use super::field::Cuboid;
use super::occlude::Visibility;
use super::stages::Buffers;
use super::tile::origin;
use super::view::{CameraView, Clip, NEAR};
use super::{HEIGHT, TILE_WIDTH, WIDTH};
use crate::scene::Picture;

/// Pixels of the picture for each of the depth buffer, in both directions.
const ZOOM: usize = 2;
const SKY: [f32; 3] = [0.09, 0.11, 0.16];
const STONE: [f32; 3] = [0.93, 0.91, 0.86];
const SEEN: [f32; 3] = [0.2, 1.0, 0.35];
const CULLED: [f32; 3] = [1.0, 0.16, 0.13];

/// The depth buffer, row by row.
pub(super) fn depth(buffers: &Buffers) -> Vec<f32> {
    let mut whole = vec![0.0; WIDTH * HEIGHT];
    buffers.look_at_tiles(|number, tile| {
        let [left, top] = origin(number);
        for (down, row) in tile.depth.chunks_exact(TILE_WIDTH).enumerate() {
            let first = (top + down) * WIDTH + left;
            whole[first..first + TILE_WIDTH].copy_from_slice(row);
        }
    });
    whole
}

/// The last frame as a picture.
pub(super) fn draw(buffers: &Buffers) -> Picture {
    let mut canvas = Canvas {
        depth: depth(buffers),
        pixels: Vec::new(),
    };
    canvas.paint_depth();
    let seen = buffers.seen();
    let boxes = || buffers.field().boxes.iter().zip(&seen.boxes);
    // Green over red: visible boxes are in front.
    for (kind, color) in [(Visibility::Hidden, CULLED), (Visibility::Visible, SEEN)] {
        for (cuboid, _) in boxes().filter(|&(_, &found)| found == kind) {
            canvas.outline(&seen.view, cuboid, color, kind == Visibility::Hidden);
        }
    }
    let bytes = canvas.pixels.iter().flatten();
    Picture {
        width: (WIDTH * ZOOM) as u32,
        height: (HEIGHT * ZOOM) as u32,
        rgb: bytes
            .map(|&part| (part.clamp(0.0, 1.0) * 255.0 + 0.5) as u8)
            .collect(),
    }
}

struct Canvas {
    depth: Vec<f32>,
    pixels: Vec<[f32; 3]>,
}

impl Canvas {
    /// The depth of the surface at a point of the picture.
    fn depth_at(&self, x: usize, y: usize) -> f32 {
        self.depth[(y / ZOOM).min(HEIGHT - 1) * WIDTH + (x / ZOOM).min(WIDTH - 1)]
    }

    fn paint_depth(&mut self) {
        let (width, height) = (WIDTH * ZOOM, HEIGHT * ZOOM);
        let pixels = (0..width * height).map(|at| self.relief(at % width, at / width));
        self.pixels = pixels.collect();
    }

    /// Brighter where it is nearer, and where it faces up and left.
    fn relief(&self, x: usize, y: usize) -> [f32; 3] {
        let near = self.depth_at(x, y);
        if near == 0.0 {
            return SKY;
        }
        let point = |x: usize, y: usize| {
            let depth = self.depth_at(x, y);
            let w = if depth == 0.0 {
                1.0 / near
            } else {
                1.0 / depth
            };
            let across = (x / ZOOM) as f32 - WIDTH as f32 / 2.0;
            let down = (y / ZOOM) as f32 - HEIGHT as f32 / 2.0;
            [across / HEIGHT as f32 * w, down / HEIGHT as f32 * w, w]
        };
        let slope =
            |from: [f32; 3], to: [f32; 3]| [to[0] - from[0], to[1] - from[1], to[2] - from[2]];
        let (left, right) = (x.saturating_sub(ZOOM), x + ZOOM);
        let (above, below) = (y.saturating_sub(ZOOM), y + ZOOM);
        let a = slope(point(left, y), point(right, y));
        let b = slope(point(x, above), point(x, below));
        // Towards the camera.
        let normal = [
            a[2] * b[1] - a[1] * b[2],
            a[0] * b[2] - a[2] * b[0],
            a[1] * b[0] - a[0] * b[1],
        ];
        let length = normal.iter().map(|n| n * n).sum::<f32>().sqrt().max(1e-12);
        let facing = (-0.45 * normal[0] - 0.65 * normal[1] - 0.61 * normal[2]) / length;
        let light = 0.3 + 0.7 * facing.max(0.0);
        let nearness = (near * 9.0).sqrt().min(1.0);
        std::array::from_fn(|i| SKY[i] + (STONE[i] * light - SKY[i]) * nearness)
    }

    /// The edges of a box, through everything or only where they are in front.
    fn outline(&mut self, view: &CameraView, cuboid: &Cuboid, color: [f32; 3], through: bool) {
        let corner = |index: usize| {
            view.world.apply(std::array::from_fn(|axis| {
                let side = if index >> axis & 1 == 0 { -1.0 } else { 1.0 };
                cuboid.middle[axis] + side * cuboid.half[axis]
            }))
        };
        for axis in 0..3 {
            for index in (0..8).filter(|index| index >> axis & 1 == 0) {
                self.line(corner(index), corner(index | 1 << axis), color, through);
            }
        }
    }

    fn line(&mut self, from: Clip, to: Clip, color: [f32; 3], through: bool) {
        if from[2] < NEAR || to[2] < NEAR {
            return;
        }
        let [a, b] = [from, to].map(|[x, y, w]| {
            let zoom = ZOOM as f32;
            [x / w * zoom, y / w * zoom, 1.0 / w]
        });
        let steps = (b[0] - a[0])
            .abs()
            .max((b[1] - a[1]).abs())
            .ceil()
            .clamp(1.0, 4_096.0);
        for step in 0..=steps as u32 {
            let part = step as f32 / steps;
            let [x, y, depth] = std::array::from_fn(|i| a[i] + (b[i] - a[i]) * part);
            let inside =
                x >= 0.0 && y >= 0.0 && x < (WIDTH * ZOOM) as f32 && y < (HEIGHT * ZOOM) as f32;
            if !inside {
                continue;
            }
            let (x, y) = (x as usize, y as usize);
            if through || depth * 1.002 >= self.depth_at(x, y) {
                let opaque = if through { 0.55 } else { 1.0 };
                let pixel = &mut self.pixels[y * WIDTH * ZOOM + x];
                *pixel = std::array::from_fn(|i| pixel[i] + (color[i] - pixel[i]) * opaque);
            }
        }
    }
}
