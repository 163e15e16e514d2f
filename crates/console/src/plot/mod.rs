//! The look of all pictures: fonts, colours and axes.
//!
//! Texts are in the fonts of the program that shows the picture. The ground is white, so that the picture can
//! be read on any page.

pub mod axis;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The area of a picture or a part of it.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// The reason why a picture could not be drawn.
pub type Wrong = Box<dyn std::error::Error>;

const FONT: &str = "sans-serif";

// Colours that can be told apart with colour blindness, too (M. Okabe and K. Ito, "Color universal design",
// 2008).

/// Blue.
pub const BLUE: RGBColor = RGBColor(0, 114, 178);
/// Vermilion.
pub const VERMILION: RGBColor = RGBColor(213, 94, 0);
/// Bluish green.
pub const GREEN: RGBColor = RGBColor(0, 158, 115);
/// Reddish purple.
pub const PURPLE: RGBColor = RGBColor(204, 121, 167);
/// Orange.
pub const ORANGE: RGBColor = RGBColor(230, 159, 0);
/// Sky blue.
pub const SKY: RGBColor = RGBColor(86, 180, 233);

/// The colour of numbers at axes.
const GREY: RGBAColor = RGBAColor(0, 0, 0, 0.8);

/// Text of this size, its middle beside the given point.
pub fn text(size: i32, side: HPos) -> TextStyle<'static> {
    let style = TextStyle::from((FONT, size).into_font());
    style.pos(Pos::new(side, VPos::Center))
}

/// Gives axes and the lines across the picture the usual look, with short numbers at both axes. A picture
/// that needs another look sets it afterwards.
pub fn house_style<'a, 'b, X, Y>(mesh: &mut MeshStyle<'a, 'b, X, Y, SVGBackend<'_>>)
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    mesh.x_label_formatter(&|value| axis::tick(*value))
        .y_label_formatter(&|value| axis::tick(*value))
        .axis_desc_style(text(13, HPos::Center).color(&BLACK))
        .label_style(text(12, HPos::Center).color(&GREY))
        .y_label_style(text(12, HPos::Right).color(&GREY))
        .bold_line_style(BLACK.mix(0.15))
        .light_line_style(BLACK.mix(0.04))
        .axis_style(BLACK.mix(0.5));
}
