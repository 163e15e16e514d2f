//! Pictures of findings, as SVG: lines, bars, and lanes in which things follow each other.

mod lanes;

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use console::plot::axis::{Scale, scale};
use console::plot::{Area, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Wrong, house_style, text};
use console::{Failure, output};

/// A picture, with the name of its file.
pub(super) struct Plot {
    pub(super) file: &'static str,
    pub(super) title: String,
    pub(super) picture: PlotShape,
}

pub(super) enum PlotShape {
    /// Values over values, a line for each series.
    Lines {
        x: &'static str,
        y: &'static str,
        lines: Vec<Line>,
        /// A value to compare with, and its name.
        level: Option<(f64, &'static str)>,
    },
    /// A bar for each value.
    Bars {
        unit: &'static str,
        bars: Vec<PlotBar>,
    },
    /// Events over time, a lane for each.
    Lanes {
        unit: &'static str,
        lanes: Vec<PlotLane>,
        /// Moments, in order.
        marks: Vec<PlotMark>,
    },
}

/// A moment, and what happens then.
pub(super) struct PlotMark {
    pub(super) at: f64,
    pub(super) what: String,
}

pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

pub(super) struct PlotBar {
    pub(super) name: String,
    pub(super) value: f64,
    /// Bars of one kind have one colour.
    pub(super) kind: usize,
}

pub(super) struct PlotLane {
    pub(super) name: String,
    pub(super) pieces: Vec<PlotPiece>,
    /// The text at its end.
    pub(super) result: String,
}

pub(super) struct PlotPiece {
    pub(super) begin: f64,
    pub(super) end: f64,
    /// The text in it, or beside it, if there is room.
    pub(super) name: String,
    pub(super) fill: PieceFill,
}

/// The colour of a piece.
#[derive(Clone, Copy)]
pub(super) enum PieceFill {
    /// Pieces of one kind have one colour.
    Kind(usize),
    /// Nothing runs: grey.
    Pale,
}

const WIDTH: u32 = 900;
const TITLE: u32 = 40;
const TICKS: u32 = 44;
/// The height of a bar or a lane, with the space around it.
const ROW: u32 = 28;
/// The room for names of bars and lanes, and for what stands at their ends.
const NAMES: u32 = 250;
const RESULTS: u32 = 120;
/// The room for names of lines.
const LEGEND: u32 = 190;
const LINES_HEIGHT: u32 = 420;

const COLOURS: [RGBColor; 8] = [
    BLUE,
    VERMILION,
    GREEN,
    PURPLE,
    ORANGE,
    SKY,
    RGBColor(120, 120, 120),
    RGBColor(200, 190, 40),
];

fn colour(kind: usize) -> RGBColor {
    COLOURS[kind % COLOURS.len()]
}

/// Writes each picture as `NAME-FILE.svg`.
pub(super) fn write(folder: &Path, name: &str, plots: &[Plot]) -> Result<(), Failure> {
    for plot in plots {
        let svg = plot.svg();
        let svg =
            svg.map_err(|error| Failure::failed(format!("cannot draw a picture: {error}")))?;
        output::write_file(&folder.join(plot.file_name(name)), svg.as_bytes())?;
    }
    Ok(())
}

impl Line {
    /// The same lines with those drawn once that lie on one another: within a fiftieth
    /// everywhere, which is less than they are wide. Such a line has all their names.
    pub(super) fn joined(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
        let mut joined: Vec<Line> = Vec::new();
        for line in lines {
            match joined.iter_mut().find(|other| other.lies_on(&line)) {
                Some(other) => other.name = format!("{}, {}", other.name, line.name),
                None => joined.push(line),
            }
        }
        joined
    }

    /// Whether both have the same points, up to a fiftieth.
    fn lies_on(&self, other: &Line) -> bool {
        let is_near = |a: f64, b: f64| (a - b).abs() <= a.abs().max(b.abs()) / 50.0;
        let mut both = self.measured().zip(other.measured());
        let counts = [self, other].map(|line| line.measured().count());
        counts[0] == counts[1]
            && counts[0] > 0
            && both.all(|(a, b)| a.0 == b.0 && is_near(a.1, b.1))
    }

    /// Its points, without those at which nothing was measured.
    fn measured(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.points.iter().copied().filter(|(_, y)| y.is_finite())
    }
}

impl Plot {
    /// The name of its file, of the experiment `name`.
    pub(super) fn file_name(&self, name: &str) -> String {
        format!("{name}-{}.svg", self.file)
    }

    fn svg(&self) -> Result<String, Wrong> {
        let height = TITLE
            + match &self.picture {
                PlotShape::Lines { .. } => LINES_HEIGHT,
                PlotShape::Bars { bars, .. } => bars.len() as u32 * ROW + TICKS,
                PlotShape::Lanes { lanes, marks, .. } => {
                    lanes.len() as u32 * ROW + TICKS + lanes::marks_height(marks)
                }
            };
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let style = text(16, HPos::Left).color(&BLACK);
        root.draw(&Text::new(
            self.title.clone(),
            (12, TITLE as i32 / 2),
            style,
        ))?;
        let area = root.split_vertically(TITLE).1;
        match &self.picture {
            PlotShape::Lines { x, y, lines, level } => draw_lines(&area, (x, y), lines, *level)?,
            PlotShape::Bars { unit, bars } => draw_bars(&area, unit, bars)?,
            PlotShape::Lanes { unit, lanes, marks } => lanes::draw(&area, unit, lanes, marks)?,
        }
        root.present()?;
        drop((area, root));
        Ok(svg)
    }
}

fn draw_lines(
    area: &Area<'_>,
    axes: (&str, &str),
    lines: &[Line],
    level: Option<(f64, &'static str)>,
) -> Result<(), Wrong> {
    let all = || lines.iter().flat_map(Line::measured);
    let first = all().map(|(x, _)| x).fold(f64::INFINITY, f64::min);
    let last = all().map(|(x, _)| x).fold(0.0, f64::max);
    // Values begin where they are measured; one of them alone is no range.
    let xs = if first < last {
        first..last
    } else {
        0.0..last.max(1e-9)
    };
    let values = all().map(|(_, y)| y).chain(level.map(|(value, _)| value));
    match scale(values.filter(|y| y.is_finite())) {
        Scale::Linear(range) => lines_on(area, axes, lines, level, (xs, range)),
        Scale::Logarithmic(range) => {
            let y = format!("{} (logarithmic)", axes.1);
            lines_on(area, (axes.0, &y), lines, level, (xs, range.log_scale()))
        }
    }
}

fn lines_on<Y>(
    area: &Area<'_>,
    (x, y): (&str, &str),
    lines: &[Line],
    level: Option<(f64, &'static str)>,
    (xs, range): (std::ops::Range<f64>, Y),
) -> Result<(), Wrong>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .margin_right(LEGEND)
        .margin_top(6)
        .margin_left(14)
        .x_label_area_size(TICKS)
        .y_label_area_size(64)
        .build_cartesian_2d(xs.clone(), range)?;
    let mut mesh = chart.configure_mesh();
    house_style(&mut mesh);
    mesh.x_desc(x).y_desc(y).draw()?;
    if let Some((value, _)) = level {
        let ends = [(xs.start, value), (xs.end, value)];
        chart.draw_series(DashedLineSeries::new(
            ends,
            6,
            4,
            BLACK.mix(0.7).stroke_width(1),
        ))?;
    }
    let left = (WIDTH - LEGEND) as i32 + 14;
    let mut key = 20;
    for (kind, line) in lines.iter().enumerate() {
        let colour = colour(kind);
        chart.draw_series(LineSeries::new(line.measured(), colour.stroke_width(2)))?;
        let dots = line
            .measured()
            .map(|point| Circle::new(point, 3, colour.filled()));
        chart.draw_series(dots)?;
        let sample = vec![(left, key), (left + 22, key)];
        area.draw(&PathElement::new(sample, colour.stroke_width(2)))?;
        let style = text(13, HPos::Left).color(&BLACK);
        area.draw(&Text::new(line.name.clone(), (left + 30, key), style))?;
        key += 22;
    }
    if let Some((_, what)) = level {
        let grey = BLACK.mix(0.7);
        let style = text(13, HPos::Left).color(&grey);
        area.draw(&Text::new(format!("- - {what}"), (left, key), style))?;
    }
    Ok(())
}

fn draw_bars(area: &Area<'_>, unit: &str, bars: &[PlotBar]) -> Result<(), Wrong> {
    match scale(
        bars.iter()
            .map(|bar| bar.value)
            .filter(|value| value.is_finite()),
    ) {
        Scale::Linear(range) => bars_on(area, unit, bars, (0.0, range)),
        Scale::Logarithmic(range) => {
            let unit = format!("{unit} (logarithmic)");
            bars_on(area, &unit, bars, (range.start, range.log_scale()))
        }
    }
}

fn bars_on<X>(
    area: &Area<'_>,
    unit: &str,
    bars: &[PlotBar],
    (from, range): (f64, X),
) -> Result<(), Wrong>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let rows: Vec<(&str, String)> = bars
        .iter()
        .map(|bar| (bar.name.as_str(), super::claim::short(bar.value)))
        .collect();
    let mut chart = rows_chart(area, unit, &rows, range)?;
    for (place, bar) in bars.iter().rev().enumerate() {
        let place = place as f64;
        let corners = [(from, place + 0.2), (bar.value.max(from), place + 0.8)];
        chart.draw_series([Rectangle::new(corners, colour(bar.kind).filled())])?;
    }
    Ok(())
}

type Rows<'a, 'b, X> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<<X as AsRangedCoord>::CoordDescType, plotters::coord::types::RangedCoordf64>,
>;

/// A chart of named rows, the first one on top, with a result at the end of each.
fn rows_chart<'a, 'b, X>(
    area: &'a Area<'b>,
    unit: &str,
    rows: &[(&str, String)],
    range: X,
) -> Result<Rows<'a, 'b, X>, Wrong>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .margin_left(NAMES)
        .margin_right(RESULTS)
        .x_label_area_size(TICKS)
        .build_cartesian_2d(range, 0.0..rows.len() as f64)?;
    let mut mesh = chart.configure_mesh();
    house_style(&mut mesh);
    mesh.disable_y_mesh().x_desc(unit).x_labels(9).draw()?;
    for (place, (name, result)) in rows.iter().enumerate() {
        let middle = (place as u32 * ROW + ROW / 2) as i32;
        let write = |what: String, x: u32, side: HPos| {
            let style = text(13, side).color(&BLACK);
            area.draw(&Text::new(what, (x as i32, middle), style))
        };
        write((*name).to_owned(), NAMES - 12, HPos::Right)?;
        write(result.clone(), WIDTH - RESULTS + 12, HPos::Left)?;
    }
    Ok(chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(picture: PlotShape) -> String {
        let title = "of <this> & that".to_owned();
        Plot {
            file: "x",
            title,
            picture,
        }
        .svg()
        .unwrap()
    }

    /// Goal: lines that lie on one another are drawn once, with all their names, and values begin where they
    /// are measured. Method: two equal lines, one beside them and one without points, from 1 on.
    #[test]
    fn equal_lines_are_drawn_once() {
        let line = |name: &str, ys: [f64; 2]| Line {
            name: name.to_owned(),
            points: vec![(1.0, ys[0]), (4.0, ys[1])],
        };
        let lines = Line::joined([
            line("spin", [1.0, 26.0]),
            line("yield", [1.0, 2.0]),
            line("pause", [1.01, 26.1]),
            line("none", [f64::NAN, f64::NAN]),
        ]);
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["spin, pause", "yield", "none"]);
        let picture = svg(PlotShape::Lines {
            x: "threads",
            y: "times",
            lines,
            level: None,
        });
        assert_eq!(picture.matches("<circle").count(), 4);
        assert!(picture.contains("spin, pause") && !picture.contains("NaN"));
    }

    /// Goal: a picture of each kind has its title, its names and a mark for every value, and shows no value
    /// that is no number. Method: small ones, one of them with values far apart on a logarithmic axis.
    #[test]
    fn pictures_have_all_their_parts() {
        let line = |name: &str, scale: f64| Line {
            name: name.to_owned(),
            points: (0..5)
                .map(|x| (f64::from(x), f64::from(x + 1) * scale))
                .collect(),
        };
        let lines = svg(PlotShape::Lines {
            x: "workers",
            y: "speed-up",
            lines: vec![line("one", 1.0), line("two", 1000.0)],
            level: Some((1.0, "serial")),
        });
        assert_eq!(lines.matches("<circle").count(), 10);
        let bar = |name: &str, value| PlotBar {
            name: name.to_owned(),
            value,
            kind: 0,
        };
        let bars = svg(PlotShape::Bars {
            unit: "ms",
            bars: vec![bar("one", 0.0), bar("two", 5.0)],
        });
        let piece = |begin, end, name: &str, fill| PlotPiece {
            begin,
            end,
            name: name.into(),
            fill,
        };
        let pieces = vec![
            piece(0.0, 4.0, "A", PieceFill::Kind(1)),
            piece(4.0, 4.01, "sliver", PieceFill::Pale),
        ];
        let lane = PlotLane {
            name: "one".into(),
            pieces,
            result: "two".into(),
        };
        let mark = |at, what: &str| PlotMark {
            at,
            what: what.into(),
        };
        let lanes = svg(PlotShape::Lanes {
            unit: "ms",
            lanes: vec![lane],
            marks: vec![
                mark(4.0, "first mark"),
                mark(4.1, "second mark"),
                mark(9.0, "last mark"),
            ],
        });
        for part in ["sliver", "first mark", "second mark", "last mark"] {
            assert!(lanes.contains(part), "{part} is missing in {lanes}");
        }
        for picture in [lines, bars, lanes] {
            for part in ["of &lt;this&gt; &amp; that", "one", "two"] {
                assert!(picture.contains(part), "{part} is missing in {picture}");
            }
            assert!(!picture.contains("NaN") && picture.trim_end().ends_with("</svg>"));
        }
    }
}
