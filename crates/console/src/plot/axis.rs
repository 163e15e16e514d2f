//! From values to an axis: its scale and its ends.

use std::ops::Range;

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// From zero.
    Linear(Range<f64>),
    /// Between two round numbers.
    Logarithmic(Range<f64>),
}

/// Values that differ by more than this factor share no linear axis: the small ones would be one spot.
const LINEAR_MAX: f64 = 20.0;
/// The end of a linear axis over the largest value.
const HEADROOM: f64 = 1.05;

/// The scale for these values.
pub fn scale(values: impl Iterator<Item = f64>) -> Scale {
    let ends = values.fold((f64::MAX, 0.0f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    match ends {
        (_, 0.0) => Scale::Linear(0.0..1.0),
        (low, high) if low > 0.0 && high / low > LINEAR_MAX => {
            // Logarithmic axes end at round numbers: ticks are at 1, 10, 100.
            Scale::Logarithmic(round_down(low)..round_up(high))
        }
        (_, high) => Scale::Linear(0.0..high * HEADROOM),
    }
}

/// The largest 1, 2 or 5 times a power of ten that is not above the value.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let step = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|step| step * power <= value);
    step.unwrap_or(1.0) * power
}

/// The smallest 1, 2 or 5 times a power of ten that is not below the value.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let step = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

/// A number at an axis.
pub fn tick(value: f64) -> String {
    let text = match value.abs() {
        0.0..0.01 => format!("{value:.4}"),
        0.01..1.0 => format!("{value:.2}"),
        1.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: axes are linear from zero unless values differ a lot, and hold all values. Method: values that
    /// differ by a little, by a lot, with a zero, all zero, none.
    #[test]
    fn scales_fit_their_values() {
        let scale = |values: &[f64]| super::scale(values.iter().copied());
        assert_eq!(scale(&[50.0, 100.0]), Scale::Linear(0.0..105.0));
        assert_eq!(scale(&[30.0, 1500.0]), Scale::Logarithmic(20.0..2000.0));
        assert_eq!(scale(&[0.0, 1000.0]), Scale::Linear(0.0..1050.0));
        assert_eq!(scale(&[0.0]), Scale::Linear(0.0..1.0));
        assert_eq!(scale(&[]), Scale::Linear(0.0..1.0));
    }

    /// Goal: ends are round and on the right side. Method: round numbers, and some between.
    #[test]
    fn ends_are_round() {
        assert_eq!([1.0, 4.9, 5.0, 73.0].map(round_down), [1.0, 2.0, 5.0, 50.0]);
        assert_eq!([1.0, 4.9, 5.0, 73.0].map(round_up), [1.0, 5.0, 5.0, 100.0]);
        assert_eq!((round_down(0.3), round_up(0.3)), (0.2, 0.5));
    }

    /// Goal: numbers at an axis are short. Method: one of each size.
    #[test]
    fn ticks_are_short() {
        assert_eq!(
            [0.0, 0.005, 0.25, 1.0, 2.5, 100.0, 2000.0].map(tick),
            ["0", "0.005", "0.25", "1", "2.5", "100", "2000"]
        );
    }
}
