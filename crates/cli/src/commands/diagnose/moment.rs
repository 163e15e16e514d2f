//! `--from 2177.55`, `--to +0.5`: times on a trace's clock, or since its beginning.

use event::Nanos;

/// A time that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moment {
    /// On the trace's clock.
    At(Nanos),
    /// Since the trace's beginning.
    Since(Nanos),
}

impl Moment {
    /// The time on the clock of a trace that begins then.
    pub(super) fn on_clock(self, begin: Nanos) -> Nanos {
        match self {
            Moment::At(time) => time,
            Moment::Since(time) => Nanos(begin.0.saturating_add(time.0)),
        }
    }
}

/// Reads seconds, with or without their unit. All digits count: clocks may have more than an `f64` holds.
///
/// # Errors
/// Says how to write it.
pub(super) fn read(text: &str) -> Result<Moment, String> {
    let text = text.trim();
    let seconds = text.strip_suffix('s').unwrap_or(text).trim_end();
    let (since, seconds) = match seconds.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, seconds),
    };
    let nanos = nanos(seconds).ok_or(
        "write seconds: 2177.558534 as in the output, or +0.5 since the beginning of the trace",
    )?;
    Ok(if since {
        Moment::Since(nanos)
    } else {
        Moment::At(nanos)
    })
}

/// A decimal number of seconds.
fn nanos(seconds: &str) -> Option<Nanos> {
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) || part.len() > 9 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    Some(Nanos(whole.checked_mul(1_000_000_000)?.checked_add(part)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: times are read to the nanosecond, and what is none is refused. Method: some of each.
    #[test]
    fn seconds_are_exact() {
        for (text, expected) in [
            ("2177.558534", Moment::At(Nanos(2_177_558_534_000))),
            ("2177.558534 s", Moment::At(Nanos(2_177_558_534_000))),
            (
                "1700000000.000000001",
                Moment::At(Nanos(1_700_000_000_000_000_001)),
            ),
            ("+0.5", Moment::Since(Nanos(500_000_000))),
            ("0", Moment::At(Nanos(0))),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for bad in [
            "",
            "-1",
            "1e3",
            "1.2.3",
            "1.0000000001",
            "+",
            "99999999999",
            "1 ms",
            "nan",
            "+-1",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let begin = Nanos(u64::MAX - 1);
        assert_eq!(Moment::Since(Nanos(5)).on_clock(begin), Nanos(u64::MAX));
    }
}
