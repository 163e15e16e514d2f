//! Bars of characters, with lengths in proportion to their values.

use console::output::cut;
use event::Nanos;

use super::{percent, short};

/// The widest label.
const LABEL_MAX: usize = 54;
/// The text behind a bar: " 10.59 ms 100 %".
const NUMBERS: usize = 18;
/// A bar that is shorter says nothing.
const BAR_MIN: usize = 10;

/// One line: a label, and its part of the whole.
pub(super) struct TextBar {
    pub(super) label: String,
    pub(super) length: Nanos,
    /// A part of the bar above it.
    pub(super) is_part: bool,
}

impl TextBar {
    pub(super) fn whole(label: String, length: Nanos) -> TextBar {
        TextBar {
            label,
            length,
            is_part: false,
        }
    }

    pub(super) fn part(label: String, length: Nanos) -> TextBar {
        TextBar {
            is_part: true,
            ..TextBar::whole(label, length)
        }
    }
}

/// A line for each bar, in `columns` columns.
pub(super) fn draw(bars: &[TextBar], whole: Nanos, columns: usize) -> Vec<String> {
    let labels: Vec<String> = bars.iter().map(label).collect();
    let widths = labels.iter().map(|label| label.chars().count());
    let room = columns.saturating_sub(NUMBERS + 2 + BAR_MIN);
    let width = widths
        .max()
        .unwrap_or(0)
        .min(LABEL_MAX.min(room.max(BAR_MIN)));
    let longest = columns.saturating_sub(width + 2 + NUMBERS).max(BAR_MIN);
    let line = |(bar, label): (&TextBar, &String)| {
        let label = cut_label(label, width);
        let blocks = blocks(bar.length, whole, longest, bar.is_part);
        let (time, part) = (short(bar.length), percent(bar.length, whole));
        format!("{label:<width$}  {blocks:<longest$} {time:>10} {part:>5}")
    };
    bars.iter().zip(&labels).map(line).collect()
}

fn label(bar: &TextBar) -> String {
    let indent = if bar.is_part { "  " } else { "" };
    format!("{indent}{}", bar.label)
}

/// A label in so many columns. What stands in parentheses at its end, as how sure it is, stays.
fn cut_label(label: &str, width: usize) -> String {
    let end = label.rfind(" (").filter(|_| label.ends_with(')'));
    let (start, end) = label.split_at(end.unwrap_or(label.len()));
    match width.checked_sub(end.chars().count()) {
        Some(room) if room > 0 => cut(start, room) + end,
        _ => cut(label, width),
    }
}

/// A bar in eighths of a column; parts of others are lighter, and of whole columns.
fn blocks(length: Nanos, whole: Nanos, longest: usize, is_part: bool) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let of = |steps: usize| {
        let share = length.0 as f64 / whole.0.max(1) as f64;
        ((share * (longest * steps) as f64).round() as usize).min(longest * steps)
    };
    if is_part {
        return "░".repeat(of(1));
    }
    let eighths = of(8);
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, length: u64, is_part: bool) -> TextBar {
        let (label, length) = (label.to_owned(), Nanos(length));
        TextBar {
            label,
            length,
            is_part,
        }
    }

    /// Goal: bars are as long as their values, and lines fit. Method: three quarters and a quarter, in 60
    /// columns; a label of 80 characters in 50, without and with how sure it is; no room at all.
    #[test]
    fn bars_fit_and_are_in_proportion() {
        let bars = [bar("a", 3_000_000, false), bar("b", 1_000_000, true)];
        let lines = draw(&bars, Nanos(4_000_000), 60);
        let expected = [
            format!("a    {:<37}    3.00 ms  75 %", "█".repeat(27) + "▊"),
            format!("  b  {:<37}    1.00 ms  25 %", "░".repeat(9)),
        ];
        assert_eq!(lines, expected);
        let long = [bar(&"x".repeat(80), 5, false)];
        let line = &draw(&long, Nanos(5), 50)[0];
        assert!(line.chars().count() <= 50 && line.contains('…'), "{line}");
        assert_eq!(draw(&long, Nanos(0), 0).len(), 1);
        let sure = [bar(&format!("{} (inferred)", "x".repeat(80)), 5, false)];
        let line = &draw(&sure, Nanos(5), 50)[0];
        assert!(line.contains("x… (inferred)  "), "{line}");
    }
}
