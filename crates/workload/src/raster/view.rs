//! From the world to the screen: the camera, its way through the field, and the projection.
//!
//! Screen coordinates are in pixels, y downwards, the centre of the first pixel at (0.5, 0.5). Depth
//! is 1/w, w being the distance along the direction of view: it is linear on the screen, larger is
//! nearer, and 0 is infinitely far, which is what an empty depth buffer holds.
//!
//! Invariant: only additions, subtractions, multiplications, divisions and square roots of IEEE 754
//! are used, all rounded to the nearest, in a fixed order; so a frame is the same on every processor.

use super::{HEIGHT, WIDTH};

/// Anything nearer than this is not seen.
pub(super) const NEAR: f32 = 0.3;
/// Pixels per unit of slope: the angle of view is 53 degrees from top to bottom.
const FOCAL: f32 = HEIGHT as f32;
/// How many frames the way through the field takes; then it begins again.
pub(super) const PATH_FRAMES: u64 = 256;
/// The row of the horizon. The camera is level and its picture shifted down, like that of a lens that
/// is: uprights stay upright, and the ground has more of the picture than the sky.
const HORIZON: f32 = HEIGHT as f32 * 3.0 / 10.0;
/// How high the camera is above the ground.
const EYE: f32 = 2.6;
/// How far from a corner of the way its curve begins and ends.
const CORNER: f32 = 3.0;
/// How long the curve counts, in straight metres.
const CURVE: f32 = 1.62 * CORNER;

/// Corners of the way, in streets from the middle of the field.
const WAY: [[i8; 2]; 8] = [
    [-4, -6],
    [-4, 2],
    [1, 2],
    [1, 6],
    [6, 6],
    [6, -3],
    [2, -3],
    [2, -6],
];

pub(super) type Vec3 = [f32; 3];

pub(super) fn dot(a: Vec3, b: Vec3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn scaled(a: Vec3, by: f32) -> Vec3 {
    a.map(|coordinate| coordinate * by)
}

fn plus(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|axis| a[axis] + b[axis])
}

pub(super) fn minus(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

/// A point of some space on its way to the screen: `[x * w, y * w, w]`, x and y in pixels.
pub(super) type Clip = [f32; 3];

/// From some space to the screen, as rows of a matrix with the translation last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ToScreen(pub(super) [[f32; 4]; 3]);

impl ToScreen {
    #[inline(always)]
    pub(super) fn apply(&self, [x, y, z]: Vec3) -> Clip {
        let on = |row: [f32; 4]| row[0] * x + row[1] * y + row[2] * z + row[3];
        [on(self.0[0]), on(self.0[1]), on(self.0[2])]
    }
}

/// The camera's view in one frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CameraView {
    eye: Vec3,
    right: Vec3,
    forward: Vec3,
    pub(super) world: ToScreen,
}

impl CameraView {
    /// The view at a step of the way through streets that are this far apart.
    pub(super) fn on_the_way(step: u64, street: f32) -> CameraView {
        let (eye, direction) = on_the_way(step % PATH_FRAMES, street);
        CameraView::new(eye, direction)
    }

    /// A view from `eye` in a level `direction` (y is up).
    pub(super) fn new(eye: Vec3, direction: [f32; 2]) -> CameraView {
        let [x, z] = direction;
        let length = (x * x + z * z).sqrt();
        let forward = [x / length, 0.0, z / length];
        let right = [forward[2], 0.0, -forward[0]];
        let row = |axis: Vec3, middle: f32| {
            let normal = plus(axis, scaled(forward, middle));
            [normal[0], normal[1], normal[2], -dot(normal, eye)]
        };
        CameraView {
            eye,
            right,
            forward,
            world: ToScreen([
                row(scaled(right, FOCAL), WIDTH as f32 / 2.0),
                row([0.0, -FOCAL, 0.0], HORIZON),
                row([0.0; 3], 1.0),
            ]),
        }
    }

    /// How far ahead a sphere's centre is; none if no part of the sphere can be seen. (One above or
    /// below the picture counts as seen: the camera is level and near the ground.)
    pub(super) fn sees(&self, centre: Vec3, radius: f32) -> Option<f32> {
        let slope = WIDTH as f32 / 2.0 / FOCAL;
        let to_side = (1.0 + slope * slope).sqrt();
        let to_centre = minus(centre, self.eye);
        let ahead = dot(self.forward, to_centre);
        let aside = dot(self.right, to_centre);
        let aside = if aside < 0.0 { -aside } else { aside };
        (ahead > NEAR - radius && aside < ahead * slope + radius * to_side).then_some(ahead)
    }

    /// From the space of an object to the screen.
    pub(super) fn of_object(&self, place: &Place) -> ToScreen {
        let [cos, sin] = place.turn;
        ToScreen(self.world.0.map(|row| {
            let axes = [
                row[0] * cos - row[2] * sin,
                row[1],
                row[0] * sin + row[2] * cos,
            ];
            let [x, y, z] = scaled(axes, place.scale);
            let moved = dot([row[0], row[1], row[2]], place.position) + row[3];
            [x, y, z, moved]
        }))
    }
}

/// Where an object stands: scaled, turned about the vertical axis, moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) position: Vec3,
    /// Cosine and sine of the angle.
    pub(super) turn: [f32; 2],
    pub(super) scale: f32,
}

/// Position and direction at this of [`PATH_FRAMES`] steps: straight lines between the corners of
/// [`WAY`], and in a curve (a quadratic Bézier one) around each.
fn on_the_way(step: u64, street: f32) -> (Vec3, [f32; 2]) {
    let corner = |index: usize| WAY[index % WAY.len()].map(|streets| f32::from(streets) * street);
    let leg = |index: usize| {
        let ([x, z], [to_x, to_z]) = (corner(index), corner(index + 1));
        let (x, z) = (to_x - x, to_z - z);
        // Legs run along one axis.
        let length = if x == 0.0 { z } else { x };
        let length = if length < 0.0 { -length } else { length };
        ([x / length, z / length], length)
    };
    let straight = |index: usize| leg(index).1 - 2.0 * CORNER;
    let whole: f32 = (0..WAY.len()).map(|index| straight(index) + CURVE).sum();
    let mut left = whole * step as f32 / PATH_FRAMES as f32;
    let mut index = 0;
    while left >= straight(index) + CURVE {
        left -= straight(index) + CURVE;
        index += 1;
    }
    let (direction, _) = leg(index);
    let ([x, z], [turn_x, turn_z]) = (corner(index), corner(index + 1));
    if left < straight(index) {
        let along = CORNER + left;
        return (
            [x + direction[0] * along, EYE, z + direction[1] * along],
            direction,
        );
    }
    let (next, _) = leg(index + 1);
    let part = (left - straight(index)) / CURVE;
    let (before, after) = (CORNER * (1.0 - part) * (1.0 - part), CORNER * part * part);
    let eye = [
        turn_x - direction[0] * before + next[0] * after,
        EYE,
        turn_z - direction[1] * before + next[1] * after,
    ];
    let mixed = std::array::from_fn(|axis| direction[axis] * (1.0 - part) + next[axis] * part);
    (eye, mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a point ahead is in the middle of the horizon, one to the right is to the right, one above
    /// is above. Method: a camera that looks along x; positions worked out by hand.
    #[test]
    fn points_are_where_they_should_be() {
        let view = CameraView::new([1.0, 2.0, 3.0], [2.0, 0.0]);
        let on_screen = |point| {
            let [x, y, w] = view.world.apply(point);
            [x / w, y / w, w]
        };
        assert_eq!(on_screen([5.0, 2.0, 3.0]), [320.0, 108.0, 4.0]);
        assert_eq!(on_screen([5.0, 3.0, 3.0]), [320.0, 18.0, 4.0]);
        assert_eq!(on_screen([5.0, 2.0, 1.0]), [500.0, 108.0, 4.0]);
        assert_eq!(view.world.apply([0.0, 2.0, 3.0])[2], -1.0);
    }

    /// Goal: an object is turned, scaled and moved in this order, and spheres are seen exactly when
    /// they may be. Method: one turned by a right angle, compared with the point it must be at.
    #[test]
    fn objects_are_placed() {
        let view = CameraView::new([0.0; 3], [0.0, 1.0]);
        let place = Place {
            position: [1.0, 0.0, 10.0],
            turn: [0.0, 1.0],
            scale: 2.0,
        };
        // x goes to -z, z to x.
        let expected = view.world.apply([1.0 + 2.0 * 3.0, 2.0 * 2.0, 10.0 - 2.0]);
        let off = minus(view.of_object(&place).apply([1.0, 2.0, 3.0]), expected);
        assert!(dot(off, off) < 1e-6, "{off:?}");
        assert_eq!(view.sees([0.0, 0.0, 5.0], 1.0), Some(5.0));
        assert_eq!(view.sees([0.0, 0.0, -5.0], 1.0), None);
        assert_eq!(view.sees([50.0, 0.0, 5.0], 1.0), None);
        assert!(view.sees([5.2, 0.0, 5.0], 1.0).is_some());
    }

    /// Goal: the way is closed and without jumps, and never leaves its streets by more than the
    /// curves do. Method: all steps: how far they are apart, and how far from the nearest street.
    #[test]
    fn the_way_is_smooth_and_in_the_streets() {
        const STREET: f32 = 6.5;
        let at = |step: u64| on_the_way(step % PATH_FRAMES, STREET);
        for step in 0..PATH_FRAMES {
            let (a, direction) = at(step);
            let (b, next) = at(step + 1);
            let moved = minus(a, b);
            let length = dot(moved, moved).sqrt();
            assert!((0.5..1.5).contains(&length), "{step}: {length}");
            let turned = direction[0] * next[0] + direction[1] * next[1];
            assert!(turned > 0.4, "{step}: {direction:?} {next:?}");
            let from_street =
                |coordinate: f32| (coordinate / STREET - (coordinate / STREET).round()).abs();
            let off = from_street(a[0]).min(from_street(a[2])) * STREET;
            assert!(off < 0.36 * CORNER, "{step}: {off}");
        }
    }
}
