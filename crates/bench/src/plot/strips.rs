//! A strip for each subject: a dot for every sample, or for some of many, and a bar at the result.

use console::plot::axis::{Scale, scale};
use console::plot::{Area, Wrong, house_style, text};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::samples::{evenly, readable};
use super::{CAPTION, TICKS, colour};
use crate::case::{Case, Score};
use crate::report::{shown, title};

/// The height of a strip.
const STRIP: u32 = 24;
/// The width of names.
const NAMES: u32 = 230;
/// The width of results.
const RESULTS: u32 = 90;
/// Most dots in a strip. Of more samples this number is drawn, evenly spaced in order of size. So a picture
/// stays below some 80 kB.
pub(super) const DOTS: usize = 80;
/// More samples than this get smaller dots.
const MANY: usize = 60;

pub(super) fn height(case: &Case) -> u32 {
    CAPTION + case.scores.len() as u32 * STRIP + TICKS + 12
}

pub(super) fn draw(area: &Area<'_>, case: &Case) -> Result<(), Wrong> {
    let medians = case.scores.iter().map(|score| score.spread.median);
    let (factor, unit) = readable(case.unit, medians.fold(f64::MAX, f64::min));
    let samples = case.scores.iter().flat_map(|score| &score.samples);
    let scale = scale(samples.map(|sample| sample * factor));
    let most = case.scores.iter().map(|score| score.samples.len()).max();
    let some = most.filter(|&most| most > DOTS);
    let some = some.map(|most| format!("; {DOTS} of {most} samples each, evenly by rank"));
    let caption = format!("{}, {unit}{}", title(case), some.unwrap_or_default());
    match scale {
        Scale::Linear(range) => panel(area, case, factor, &caption, range),
        Scale::Logarithmic(range) => {
            let caption = format!("{caption} (logarithmic)");
            panel(area, case, factor, &caption, range.log_scale())
        }
    }
}

fn panel<X>(area: &Area<'_>, case: &Case, factor: f64, caption: &str, range: X) -> Result<(), Wrong>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let (width, _) = area.dim_in_pixel();
    let style = text(14, HPos::Left).color(&BLACK);
    area.draw(&Text::new(
        caption.to_owned(),
        (NAMES as i32, CAPTION as i32 / 2),
        style,
    ))?;
    let mut chart = ChartBuilder::on(area)
        .margin_left(NAMES)
        .margin_right(RESULTS)
        .margin_top(CAPTION)
        .margin_bottom(12)
        .x_label_area_size(TICKS)
        .build_cartesian_2d(range, 0.0..case.scores.len() as f64)?;
    let mut mesh = chart.configure_mesh();
    house_style(&mut mesh);
    mesh.disable_y_mesh().x_labels(9).draw()?;
    for (place, score) in case.scores.iter().rev().enumerate() {
        let middle = place as f64 + 0.5;
        chart.draw_series(dots(score, middle, factor))?;
        let result = score.spread.median * factor;
        let bar = vec![(result, middle - 0.4), (result, middle + 0.4)];
        chart.draw_series([PathElement::new(bar, BLACK.stroke_width(2))])?;
        let strip = CAPTION + (case.scores.len() - place) as u32 * STRIP - STRIP / 2;
        let write = |what: String, x: u32, side: HPos| {
            let style = text(13, side).color(&BLACK);
            area.draw(&Text::new(what, (x as i32, strip as i32), style))
        };
        write(score.who.name().to_owned(), NAMES - 12, HPos::Right)?;
        write(shown(result), width - 14, HPos::Right)?;
    }
    Ok(())
}

/// A dot for each of the samples, or for [`DOTS`] of them. Their heights in the strip differ, so that equal
/// samples can be told apart.
fn dots(
    score: &Score,
    middle: f64,
    factor: f64,
) -> impl Iterator<Item = Circle<(f64, f64), f64>> + '_ {
    /// Its multiples are evenly spread for any number of them.
    const GOLDEN: f64 = 0.618_033_988_75;
    const HEIGHT: f64 = 0.6;
    let colour = colour(score.who);
    let style = if score.who.is_control() {
        colour.mix(0.8).stroke_width(1)
    } else {
        colour.mix(0.5).filled()
    };
    let radius = if score.samples.len() > MANY { 1.5 } else { 2.5 };
    let mut sorted = score.samples.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let samples = evenly(&sorted, DOTS).into_iter().enumerate();
    samples.map(move |(index, sample)| {
        let place = (index as f64 * GOLDEN).fract() - 0.5;
        Circle::new((sample * factor, middle + place * HEIGHT), radius, style)
    })
}
