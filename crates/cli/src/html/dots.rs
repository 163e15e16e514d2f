//! Lengths over the time at which they began: a picture in which the odd ones stand out.

use event::Nanos;
use maud::{Markup, html};

use super::px;
use super::ticks::ticks;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 220.0;
/// The room for the numbers at the left, and below.
const LEFT: f64 = 64.0;
const BELOW: f64 = 26.0;
const ABOVE: f64 = 8.0;
/// The number of dots that a picture has room for; of more, the highest of each column are drawn.
const COLUMNS: usize = 600;

/// One length.
#[derive(Clone, Debug)]
pub(crate) struct Dot {
    /// When it began, since the beginning of the picture.
    pub(crate) at: Nanos,
    pub(crate) length: Nanos,
    /// The style of its colour.
    pub(crate) class: &'static str,
    /// The text of its tooltip.
    pub(crate) title: String,
    /// The address of its details, in the same page.
    pub(crate) link: Option<String>,
}

/// A picture of lengths.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    pub(crate) dots: Vec<Dot>,
    /// Until when the picture goes on.
    pub(crate) end: Nanos,
    /// A length to compare with, and its name.
    pub(crate) level: Option<(Nanos, &'static str)>,
    /// For readers that cannot see it.
    pub(crate) about: String,
}

impl Dots {
    /// The picture, and a note if it does not show all.
    pub(crate) fn draw(&self) -> Markup {
        let shown = self.highest();
        let longest = shown.iter().map(|dot| dot.length).max().unwrap_or_default();
        let level = self.level.map_or(Nanos::ZERO, |(length, _)| length);
        // A level that is far above everything would make everything flat.
        let level = self
            .level
            .filter(|_| level.0 <= longest.0.saturating_mul(3));
        let top = longest.max(level.map_or(Nanos::ZERO, |(length, _)| length));
        let top = Nanos(top.0.saturating_add(top.0 / 20).max(1));
        let x = |time: Nanos| LEFT + (WIDTH - LEFT - 10.0) * part(time, self.end);
        let y = |length: Nanos| ABOVE + (HEIGHT - ABOVE - BELOW) * (1.0 - part(length, top));
        html! {
            svg.dots viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.about) {
                @for (length, text) in ticks(top, 5) {
                    line.grid x1=(LEFT) x2=(WIDTH) y1=(px(y(length))) y2=(px(y(length))) {}
                    text.side x=(LEFT - 6.0) y=(px(y(length) + 4.0)) { (text) }
                }
                @for (time, text) in ticks(self.end, 8) {
                    line.tick x1=(px(x(time))) x2=(px(x(time))) y1=(px(y(Nanos::ZERO)))
                        y2=(px(y(Nanos::ZERO) + 5.0)) {}
                    text.tick x=(px(x(time))) y=(px(HEIGHT - 6.0)) { (text) }
                }
                @if let Some((length, name)) = level {
                    line.level x1=(LEFT) x2=(WIDTH) y1=(px(y(length))) y2=(px(y(length))) {}
                    text.level x=(WIDTH - 4.0) y=(px(y(length) - 4.0)) { (name) }
                }
                @for dot in &shown {
                    @let circle = html! {
                        circle class=(dot.class) cx=(px(x(dot.at))) cy=(px(y(dot.length))) r="3" {
                            title { (dot.title) }
                        }
                    };
                    @match &dot.link {
                        Some(link) => a href=(format!("#{link}")) { (circle) },
                        None => (circle),
                    }
                }
            }
            @if shown.len() < self.dots.len() {
                p.note { "Of " (self.dots.len()) ", the longest of each moment: " (shown.len()) "." }
            }
        }
    }

    /// All dots, or of each column the highest one.
    fn highest(&self) -> Vec<&Dot> {
        if self.dots.len() <= COLUMNS {
            return self.dots.iter().collect();
        }
        let mut highest: Vec<Option<&Dot>> = vec![None; COLUMNS + 1];
        for dot in &self.dots {
            let column = &mut highest[(part(dot.at, self.end) * COLUMNS as f64) as usize];
            if column.is_none_or(|known| known.length < dot.length) {
                *column = Some(dot);
            }
        }
        highest.into_iter().flatten().collect()
    }
}

/// A part of a whole, from 0 to 1.
fn part(of: Nanos, whole: Nanos) -> f64 {
    (of.0 as f64 / whole.0.max(1) as f64).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dots(count: u64) -> Dots {
        let dot = |number: u64| Dot {
            at: Nanos(number),
            length: Nanos(number * 7919 % 1_000),
            class: "other",
            title: format!("<{number}>"),
            link: (number == 1).then(|| "wait-1".to_owned()),
        };
        Dots {
            dots: (0..count).map(dot).collect(),
            end: Nanos(count),
            level: None,
            about: String::new(),
        }
    }

    /// Goal: a picture is small however many there are, has the longest, and says that it does not show all.
    /// Method: three, and a hundred thousand with a known longest one.
    #[test]
    fn many_are_thinned() {
        let few = dots(3).draw().into_string();
        assert_eq!(few.matches("<circle").count(), 3);
        assert!(few.contains("&lt;2&gt;") && few.contains("href=\"#wait-1\""));
        assert!(!few.contains("the longest of each"));
        let mut many = dots(100_000);
        many.dots[77_777].length = Nanos(5_000);
        let many = many.draw().into_string();
        let count = many.matches("<circle").count();
        assert!((500..=COLUMNS + 1).contains(&count), "{count}");
        assert!(many.contains("&lt;77777&gt;") && many.contains("Of 100000, the longest"));
    }

    /// Goal: a level that is far away does not make the rest flat. Method: one near, one far.
    #[test]
    fn levels_are_shown_where_they_are_near() {
        let with = |level: u64| {
            let level = Some((Nanos(level), "budget"));
            Dots { level, ..dots(10) }.draw().into_string()
        };
        assert!(with(1_500).contains("budget") && !with(1_000_000).contains("budget"));
    }
}
