//! What happened when, a lane for each thread or CPU: a picture of a stretch of time.
//!
//! A stretch may hold a thousand times more pieces than a picture has columns. Pieces that are too short to
//! be seen are drawn as one, in the colour that has most of it, and as strong as it is busy. So the size of a
//! picture does not depend on what happened, and nothing vanishes.

use console::output::cut;
use event::Nanos;
use maud::{Markup, html};

use super::px;
use super::ticks::ticks;

/// The picture's width, and the part of it to the left of the lanes, in units of the picture.
const WIDTH: f64 = 1000.0;
const NAMES: f64 = 168.0;
/// The height of a lane, with the space below it; of a title; of the axis.
const ROW: f64 = 24.0;
const TITLE: f64 = 22.0;
const AXIS: f64 = 26.0;
/// A shorter piece is drawn together with its neighbours.
const SHORT: f64 = 1.0;
/// The width of a character, for what fits into a piece or beside a lane.
const CHARACTER: f64 = 6.4;
/// The faintest that can be seen.
const FAINT: f64 = 0.25;
const STEPS: u64 = 8;

/// How a piece is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ink {
    /// Not at all: nothing was there.
    Blank,
    /// As a thin line: it was there and did nothing.
    Line,
    /// As a bar, in the style of this class.
    Fill(&'static str),
}

/// A part of a lane.
#[derive(Clone, Debug)]
pub(crate) struct LanePiece {
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    pub(crate) ink: Ink,
    /// The text in it, if there is room.
    pub(crate) label: String,
    /// The text of its tooltip.
    pub(crate) title: String,
}

/// Pieces beside each other, in the order of their beginnings; of those that are inside of others, after
/// them.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) pieces: Vec<LanePiece>,
}

/// A row of the picture.
#[derive(Clone, Debug)]
pub(crate) enum LaneRow {
    Title(String),
    Lane(Lane),
}

/// A stretch of time.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    /// The part shown.
    pub(crate) window: (Nanos, Nanos),
    /// The part it is about: marked, and the beginning of the axis.
    pub(crate) marked: (Nanos, Nanos),
    pub(crate) rows: Vec<LaneRow>,
    /// For readers that cannot see it.
    pub(crate) about: String,
}

/// A piece as it is drawn: from where to where, and how strong.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    from: f64,
    to: f64,
    ink: Ink,
    strength: f64,
    label: String,
    title: String,
}

impl Lanes {
    /// The picture.
    pub(crate) fn draw(&self) -> Markup {
        let heights = self.rows.iter().map(|row| match row {
            LaneRow::Title(_) => TITLE,
            LaneRow::Lane(_) => ROW,
        });
        let height: f64 = heights.clone().sum();
        let tops = heights.scan(0.0, |top, height| {
            let this = *top;
            *top += height;
            Some(this)
        });
        let marks = [self.marked.0, self.marked.1].map(|time| self.x(time));
        let axis = ticks(self.window.1 - self.marked.0, STEPS).into_iter();
        let axis = axis.map(|(time, text)| (self.x(self.marked.0 + time), text));
        html! {
            @let size = format!("0 0 {WIDTH} {:.0}", height + AXIS);
            svg.lanes viewBox=(size) role="img" aria-label=(self.about) {
                @for (row, top) in self.rows.iter().zip(tops) {
                    @match row {
                        LaneRow::Title(title) => text.title x="0" y=(px(top + 15.0)) { (title) },
                        LaneRow::Lane(lane) => (self.lane(lane, top)),
                    }
                }
                @for x in marks {
                    line.mark x1=(px(x)) x2=(px(x)) y1="0" y2=(px(height)) {}
                }
                @for (x, text) in axis {
                    line.tick x1=(px(x)) x2=(px(x)) y1=(px(height)) y2=(px(height + 5.0)) {}
                    text.tick x=(px(x)) y=(px(height + 18.0)) { (text) }
                }
            }
        }
    }

    /// Where a time is.
    fn x(&self, time: Nanos) -> f64 {
        let (begin, end) = self.window;
        let length = (end - begin).0.max(1) as f64;
        let inside = (time.clamp(begin, end) - begin).0 as f64;
        NAMES + (WIDTH - NAMES) * inside / length
    }

    fn lane(&self, lane: &Lane, top: f64) -> Markup {
        let room = ((NAMES - 10.0) / CHARACTER) as usize;
        html! {
            text.name x="0" y=(px(top + 14.0)) {
                (cut(&lane.name, room))
                title { (lane.name) }
            }
            @for shape in self.shapes(&lane.pieces) {
                (shape.draw(top))
            }
        }
    }

    fn shapes(&self, pieces: &[LanePiece]) -> Vec<Shape> {
        let mut shapes = Vec::new();
        let mut crowd = Crowd::default();
        for piece in pieces {
            let (from, to) = (self.x(piece.begin), self.x(piece.end));
            if to - from < SHORT {
                if crowd.is_over(from) {
                    shapes.extend(crowd.take());
                }
                crowd.add(from, to, piece);
                continue;
            }
            shapes.extend(crowd.take());
            shapes.push(Shape {
                from,
                to,
                ink: piece.ink,
                strength: 1.0,
                label: piece.label.clone(),
                title: piece.title.clone(),
            });
        }
        shapes.extend(crowd.take());
        shapes.retain(|shape| shape.ink != Ink::Blank);
        shapes
    }
}

/// Pieces that are too short to be seen alone.
#[derive(Default)]
struct Crowd<'a> {
    /// From where to where.
    extent: Option<(f64, f64)>,
    /// How much each ink has.
    inks: Vec<(Ink, f64)>,
    pieces: Vec<&'a LanePiece>,
}

impl<'a> Crowd<'a> {
    /// Whether a piece that begins there is drawn apart from these.
    fn is_over(&self, from: f64) -> bool {
        self.extent
            .is_some_and(|(begin, end)| from - end >= SHORT || end - begin >= SHORT)
    }

    fn add(&mut self, from: f64, to: f64, piece: &'a LanePiece) {
        let (begin, end) = self.extent.unwrap_or((from, to));
        self.extent = Some((begin, end.max(to)));
        let known = self.inks.iter_mut().find(|(ink, _)| *ink == piece.ink);
        match known {
            Some((_, width)) => *width += to - from,
            None => self.inks.push((piece.ink, to - from)),
        }
        self.pieces.push(piece);
    }

    /// The drawing for all of them; nothing, if there are none.
    fn take(&mut self) -> Option<Shape> {
        let crowd = std::mem::take(self);
        let (from, to) = crowd.extent?;
        let is_bar = |ink: &Ink| matches!(ink, Ink::Fill(_));
        let bars = crowd.inks.iter().filter(|(ink, _)| is_bar(ink));
        let busy: f64 = bars.clone().map(|(_, width)| width).sum();
        let all: f64 = crowd.inks.iter().map(|(_, width)| width).sum();
        let most = bars.max_by(|a, b| a.1.total_cmp(&b.1));
        let ink = most.or(crowd.inks.first()).map(|(ink, _)| *ink)?;
        let title = match crowd.pieces.as_slice() {
            [alone] => alone.title.clone(),
            more => {
                let longest = more.iter().filter(|piece| piece.ink == ink);
                let longest = longest.max_by_key(|piece| piece.end - piece.begin);
                let longest = longest.map_or("", |piece| &piece.title);
                format!("{} short ones, such as: {longest}", more.len())
            }
        };
        Some(Shape {
            from,
            // As wide as can be seen, even if it is alone.
            to: to.max(from + SHORT / 2.0),
            ink,
            strength: if is_bar(&ink) && all > 0.0 {
                (busy / all).max(FAINT)
            } else {
                1.0
            },
            label: String::new(),
            title,
        })
    }
}

impl Shape {
    fn draw(&self, top: f64) -> Markup {
        const HEIGHT: f64 = ROW - 6.0;
        let width = self.to - self.from;
        let (y, height, class) = match self.ink {
            Ink::Fill(class) => (top, HEIGHT, class),
            _ => (top + HEIGHT / 2.0 - 0.75, 1.5, "line"),
        };
        let faint = (self.strength < 1.0).then(|| format!("{:.2}", self.strength));
        let is_room = self.label.chars().count() as f64 * CHARACTER + 6.0 <= width;
        let label = Some(&self.label).filter(|label| is_room && !label.is_empty());
        html! {
            rect class=(class) x=(px(self.from)) y=(px(y)) width=(px(width)) height=(px(height))
                opacity=[faint] {
                title { (self.title) }
            }
            @if let Some(label) = label {
                text.label x=(px(self.from + width / 2.0)) y=(px(top + 13.0)) { (label) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Ink = Ink::Fill("busy");

    fn piece(begin: u64, end: u64, ink: Ink) -> LanePiece {
        LanePiece {
            begin: Nanos(begin),
            end: Nanos(end),
            ink,
            label: format!("{begin}"),
            title: format!("{begin} to {end}"),
        }
    }

    /// One column for each thousand.
    fn lanes() -> Lanes {
        let window = (Nanos(0), Nanos((WIDTH - NAMES) as u64 * 1_000));
        Lanes {
            window,
            marked: window,
            rows: Vec::new(),
            about: String::new(),
        }
    }

    /// Goal: visible pieces are where they were, and blanks are not drawn. Method: a bar, a gap, a line that
    /// goes on behind the window.
    #[test]
    fn pieces_are_where_they_were() {
        let pieces = [
            piece(0, 10_000, BUSY),
            piece(10_000, 20_000, Ink::Blank),
            piece(20_000, 99_000_000, Ink::Line),
        ];
        let shapes = lanes().shapes(&pieces);
        let places: Vec<_> = shapes.iter().map(|it| (it.from, it.to, it.ink)).collect();
        let at = |column: f64| NAMES + column;
        assert_eq!(
            places,
            [(at(0.0), at(10.0), BUSY), (at(20.0), WIDTH, Ink::Line)]
        );
    }

    /// Goal: a picture is small whatever happened, and short pieces do not vanish. Method: four
    /// hundred thousand pieces, a quarter of the time busy; one alone in an empty lane.
    #[test]
    fn short_pieces_are_drawn_as_one() {
        let mut pieces = Vec::new();
        let all = (WIDTH - NAMES) as u64 * 1_000;
        for begin in (0..all).step_by(4) {
            pieces.push(piece(begin, begin + 1, BUSY));
            pieces.push(piece(begin + 1, begin + 4, Ink::Line));
        }
        let lanes = lanes();
        let shapes = lanes.shapes(&pieces);
        assert!(shapes.len() <= WIDTH as usize, "{}", shapes.len());
        let is_faint = |shape: &Shape| shape.ink == BUSY && (shape.strength - 0.25).abs() < 0.01;
        assert!(shapes.iter().all(is_faint));
        let alone = lanes.shapes(&[
            piece(0, 400_000, Ink::Blank),
            piece(400_000, 400_001, BUSY),
            piece(400_001, 900_000, Ink::Blank),
        ]);
        assert_eq!(alone.len(), 1);
        assert!(alone[0].to - alone[0].from >= 0.5 && alone[0].title == "400000 to 400001");
    }

    /// Goal: names are text, in the picture as well. Method: a lane with markup in its name and in a piece.
    #[test]
    fn names_are_text() {
        let mut lanes = lanes();
        let mut odd = piece(0, 500_000, BUSY);
        odd.label = "<b>".to_owned();
        lanes.rows = vec![
            LaneRow::Title("threads".into()),
            LaneRow::Lane(Lane {
                name: "<script>".into(),
                pieces: vec![odd],
            }),
        ];
        let markup = lanes.draw().into_string();
        assert!(
            !markup.contains("<script") && !markup.contains("<b>"),
            "{markup}"
        );
        assert!(markup.contains("&lt;b&gt;") && markup.contains("class=\"busy\""));
    }
}
