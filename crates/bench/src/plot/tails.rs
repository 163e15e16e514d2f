//! The share of all frames that took longer than a time, a line for each subject. A mean hides it.

use console::plot::axis::tick;
use console::plot::{Area, Wrong, house_style, text};
use measure::rank;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::samples::{readable, tail};
use super::{CAPTION, TICKS, colour};
use crate::case::{Case, Score};
use crate::report::title;

pub(super) const HEIGHT: u32 = 420;
/// The width of shares.
const SHARES: u32 = 60;
/// The width of names.
const NAMES: u32 = 210;
/// The height of a name.
const LINE: i32 = 22;
/// The dashes of controls, in this order: several controls have the colour of one subject.
const DASHES: [(u32, u32); 3] = [(6, 4), (2, 3), (12, 3)];

pub(super) fn draw(area: &Area<'_>, case: &Case) -> Result<(), Wrong> {
    let medians = case.scores.iter().map(|score| score.spread.median);
    let (factor, unit) = readable(case.unit, medians.fold(f64::MAX, f64::min));
    let beyond = case
        .scores
        .iter()
        .map(|score| nearly_longest(score) * factor);
    let longest = beyond.fold(0.0, f64::max);
    let most = case.scores.iter().map(|score| score.samples.len()).max();
    let least = 1.0 / most.unwrap_or(1).max(10) as f64;
    let caption = format!(
        "{}: share of all frames that took longer than …, {unit} (at 1 %: p99)",
        title(case).split(' ').next().unwrap_or_default()
    );
    let style = text(14, HPos::Left).color(&BLACK);
    area.draw(&Text::new(
        caption,
        (SHARES as i32, CAPTION as i32 / 2),
        style,
    ))?;
    let mut chart = ChartBuilder::on(area)
        .margin_top(CAPTION)
        .margin_right(NAMES)
        .margin_bottom(12)
        .x_label_area_size(TICKS)
        .y_label_area_size(SHARES)
        .build_cartesian_2d(0.0..(longest * 1.1).max(1e-9), (least..1.0).log_scale())?;
    let mut mesh = chart.configure_mesh();
    house_style(&mut mesh);
    mesh.y_label_formatter(&|share| format!("{} %", tick(share * 100.0)))
        .x_labels(10)
        .y_labels(5)
        .draw()?;
    let (width, _) = area.dim_in_pixel();
    let mut dashes = DASHES.iter().cycle();
    for (place, score) in case.scores.iter().enumerate() {
        let colour = colour(score.who);
        let line = steps(score, factor);
        let key = CAPTION as i32 + LINE / 2 + place as i32 * LINE;
        let left = width as i32 - NAMES as i32 + 14;
        let sample = vec![(left, key), (left + 26, key)];
        if score.who.is_control() {
            let &(dash, gap) = dashes.next().expect("there are dashes");
            let style = colour.stroke_width(1);
            chart.draw_series(DashedLineSeries::new(line, dash, gap, style))?;
            area.draw(&DashedPathElement::new(sample, dash, gap, style))?;
        } else {
            let style = colour.stroke_width(2);
            chart.draw_series(LineSeries::new(line, style))?;
            area.draw(&PathElement::new(sample, style))?;
        }
        let style = text(13, HPos::Left).color(&BLACK);
        area.draw(&Text::new(score.who.name(), (left + 34, key), style))?;
    }
    Ok(())
}

/// The value below which 999 of 1000 samples are. A single sample far out would leave no room for the others;
/// the line runs out of the picture there.
fn nearly_longest(score: &Score) -> f64 {
    let mut sorted = score.samples.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    rank(&sorted, 0.999).copied().unwrap_or(0.0)
}

/// The corners of the line: the share stays until the next sample.
fn steps(score: &Score, factor: f64) -> Vec<(f64, f64)> {
    let mut sorted = score.samples.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let points: Vec<(f64, f64)> = tail(&sorted);
    let scaled = points.iter().map(|&(value, share)| (value * factor, share));
    let below = points.iter().skip(1).map(|&(_, share)| share);
    // Along its share to each point, and then down to the next one's; the last has none below.
    let least = points.last().map(|&(_, share)| share);
    let corners = scaled.zip(below.chain(least));
    let corners = corners.flat_map(|((value, share), below)| [(value, share), (value, below)]);
    corners.collect()
}
