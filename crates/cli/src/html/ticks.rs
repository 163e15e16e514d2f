//! Round numbers along an axis of time.

use event::Nanos;

/// Times at equal distances of 1, 2 or 5 times a power of ten, from zero up to a length, in at most `most`
/// steps; each with the text for it.
pub(super) fn ticks(length: Nanos, most: u64) -> Vec<(Nanos, String)> {
    let step = step(length.0.div_ceil(most.max(1)).max(1));
    let times = (0..=length.0 / step).map(|number| Nanos(number * step));
    times
        .map(|time| (time, words(time, Nanos(step), length)))
        .collect()
}

/// The least 1, 2 or 5 times a power of ten that is not below.
fn step(least: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for times in [1, 2, 5] {
            let step = power.saturating_mul(times);
            if step >= least {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A time in the unit of its axis, with as many digits as its steps need.
fn words(time: Nanos, step: Nanos, length: Nanos) -> String {
    let (digits, name) = match length.0 {
        0..1_000 => (0, "ns"),
        1_000..1_000_000 => (3, "µs"),
        1_000_000..1_000_000_000 => (6, "ms"),
        _ => (9, "s"),
    };
    let zeros = (0..digits).take_while(|zeros| step.0.is_multiple_of(10u64.pow(zeros + 1)));
    let decimals = digits as usize - zeros.count();
    let number = time.0 as f64 / 10f64.powi(digits as i32);
    format!("{number:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ticks are few, round, and within. Method: lengths from nothing to an hour.
    #[test]
    fn ticks_are_round() {
        let texts = |length| -> Vec<String> {
            let ticks = ticks(Nanos(length), 5);
            ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(0), ["0 ns"]);
        assert_eq!(texts(10_590_000), ["0 ms", "5 ms", "10 ms"]);
        assert_eq!(
            texts(2_000_000),
            ["0.0 ms", "0.5 ms", "1.0 ms", "1.5 ms", "2.0 ms"]
        );
        assert_eq!(
            texts(90_000_000_000),
            ["0 s", "20 s", "40 s", "60 s", "80 s"]
        );
        assert_eq!(texts(30), ["0 ns", "10 ns", "20 ns", "30 ns"]);
        assert_eq!(texts(1_010_000).last().unwrap(), "1.0 ms");
        for length in (0..64).map(|power| 1u64 << power).chain([u64::MAX]) {
            let ticks = ticks(Nanos(length), 5);
            assert!(ticks.len() <= 6 && ticks.iter().all(|(time, _)| time.0 <= length));
        }
    }
}
