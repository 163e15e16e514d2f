//! What pictures have in common, whatever they show: fonts, colours, axes and what runs along them.
//!
//! Texts are in the fonts of whoever shows the picture, on white, so that it can be read on any page.

pub(crate) mod axis;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The area of a picture or a part of it.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Why something could not be drawn.
pub(crate) type Wrong = Box<dyn std::error::Error>;

const FONT: &str = "sans-serif";

/// Colours for those who cannot tell all of them apart, too (M. Okabe and K. Ito, "Color universal design",
/// 2008).
pub(crate) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(crate) const VERMILION: RGBColor = RGBColor(213, 94, 0);
pub(crate) const GREEN: RGBColor = RGBColor(0, 158, 115);
pub(crate) const PURPLE: RGBColor = RGBColor(204, 121, 167);
pub(crate) const ORANGE: RGBColor = RGBColor(230, 159, 0);
pub(crate) const SKY: RGBColor = RGBColor(86, 180, 233);

/// Of numbers at axes.
const GREY: RGBAColor = RGBAColor(0, 0, 0, 0.8);

/// Text of this size, its middle beside the given point.
pub(crate) fn text(size: i32, side: HPos) -> TextStyle<'static> {
    let style = TextStyle::from((FONT, size).into_font());
    style.pos(Pos::new(side, VPos::Center))
}

/// Gives axes and the lines across the picture the look of the house, with short numbers at both. What a
/// picture wants otherwise it sets afterwards.
pub(crate) fn house_style<'a, 'b, X, Y>(mesh: &mut MeshStyle<'a, 'b, X, Y, SVGBackend<'_>>)
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
