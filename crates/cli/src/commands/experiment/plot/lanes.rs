//! Lanes in which things follow each other, with moments that are marked.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use console::plot::{Area, Wrong, text};

use super::{
    NAMES, PieceFill, PlotLane, PlotMark, PlotPiece, RESULTS, ROW, Rows, WIDTH, colour, rows_chart,
};

/// The height of a line of marks' texts.
const MARK_ROW: u32 = 16;
/// The width of a letter, more or less: in pieces, and in marks.
const LETTER: f64 = 7.0;
/// What is left free around a text.
const GAP: f64 = 6.0;

const PALE: RGBColor = RGBColor(222, 222, 222);

fn width_of(what: &str) -> f64 {
    what.chars().count() as f64 * LETTER
}

/// The height of all texts of marks.
pub(super) fn marks_height(marks: &[PlotMark]) -> u32 {
    marks.len() as u32 * MARK_ROW
}

/// Draws marks' texts above the lanes, each at its moment and in a line of its own, so that none covers
/// another.
pub(super) fn draw(
    area: &Area<'_>,
    unit: &str,
    lanes: &[PlotLane],
    marks: &[PlotMark],
) -> Result<(), Wrong> {
    let pieces = lanes.iter().flat_map(|lane| &lane.pieces);
    let times = pieces
        .map(|piece| piece.end)
        .chain(marks.iter().map(|mark| mark.at));
    let last = times.fold(0.0, f64::max).max(1e-9);
    let rows: Vec<(&str, String)> = lanes
        .iter()
        .map(|lane| (lane.name.as_str(), lane.result.clone()))
        .collect();
    let (above, below) = area.split_vertically(marks_height(marks));
    let scale = f64::from(WIDTH - NAMES - RESULTS) / last;
    let mut chart = rows_chart(&below, unit, &rows, 0.0..last)?;
    for (place, lane) in lanes.iter().rev().enumerate() {
        // Where no result stands.
        let margin = f64::from(if lane.result.is_empty() { RESULTS } else { 0 });
        for (number, piece) in lane.pieces.iter().enumerate() {
            let behind = lane.pieces.get(number + 1).map(|next| next.begin);
            let free = match behind {
                Some(begin) => (begin - piece.end) * scale,
                None => (last - piece.end) * scale + margin,
            };
            draw_piece(&mut chart, place as f64, piece, (scale, free))?;
        }
    }
    let bottom = (lanes.len() as u32 * ROW + marks_height(marks)) as i32;
    for (row, mark) in marks.iter().enumerate() {
        let x = (f64::from(NAMES) + mark.at * scale) as i32;
        let y = (row as u32 * MARK_ROW + MARK_ROW / 2) as i32;
        let grey = BLACK.mix(0.6);
        let line = [(x, y), (x, bottom)];
        area.draw(&PathElement::new(line.to_vec(), grey.stroke_width(1)))?;
        // On the side on which there is room.
        let fits = mark.at * scale + width_of(&mark.what) < f64::from(WIDTH - NAMES);
        let (side, x) = if fits {
            (HPos::Left, x + 4)
        } else {
            (HPos::Right, x - 4)
        };
        above.draw(&Text::new(
            mark.what.clone(),
            (x, y),
            text(12, side).color(&BLACK),
        ))?;
    }
    Ok(())
}

/// `scale`: of times to the picture's width; `free`: how much room is behind the piece.
fn draw_piece(
    chart: &mut Rows<'_, '_, plotters::coord::types::RangedCoordf64>,
    place: f64,
    piece: &PlotPiece,
    (scale, free): (f64, f64),
) -> Result<(), Wrong> {
    let (fill, ink) = match piece.fill {
        PieceFill::Kind(kind) => (colour(kind), WHITE),
        PieceFill::Pale => (PALE, BLACK),
    };
    let corners = [(piece.begin, place + 0.12), (piece.end, place + 0.88)];
    chart.draw_series([Rectangle::new(corners, fill.filled())])?;
    let width = (piece.end - piece.begin) * scale;
    // A border would cover the whole of a sliver.
    if width > 3.0 {
        chart.draw_series([Rectangle::new(corners, WHITE.stroke_width(1))])?;
    }
    let needed = width_of(&piece.name) + GAP;
    if width > needed {
        let middle = ((piece.begin + piece.end) / 2.0, place + 0.5);
        let style = text(12, HPos::Center).color(&ink);
        chart.draw_series([Text::new(piece.name.clone(), middle, style)])?;
    } else if free > needed {
        let behind = (piece.end + GAP / 2.0 / scale, place + 0.5);
        let style = text(12, HPos::Left).color(&BLACK);
        chart.draw_series([Text::new(piece.name.clone(), behind, style)])?;
    }
    Ok(())
}
