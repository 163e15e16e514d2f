//! The statistics line of source 002.

use std::fmt;

use event::Nanos;

/// Count, least, mean, largest, sum and standard deviation of lengths of time, without keeping them.
///
/// Integers only, so that a simulated run prints the same line everywhere. Sums saturate: after 584
/// years, or if the squares exceed 128 bits.
///
/// ```
/// use event::Nanos;
/// use paceline_workload::naive::Statistic;
///
/// let mut yields = Statistic::default();
/// for length in [400, 500, 11_320_000] {
///     yields.add(Nanos(length));
/// }
/// assert_eq!(yields.to_string(), "3, 400.00 ns, 3.77 ms, 11.32 ms, 11.32 ms, 5.34 ms");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistic {
    count: u64,
    min: Nanos,
    max: Nanos,
    total: Nanos,
    /// In square nanoseconds.
    squares: u128,
}

impl Statistic {
    /// The columns of the line.
    pub const TITLE: &str = "Count, Min, Mean, Max, Total, SD";

    /// Adds one length.
    pub fn add(&mut self, length: Nanos) {
        self.min = match self.count {
            0 => length,
            _ => self.min.min(length),
        };
        self.max = self.max.max(length);
        self.count += 1;
        self.total += length;
        let square = u128::from(length.0) * u128::from(length.0);
        self.squares = self.squares.saturating_add(square);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest; zero if there are none.
    pub fn min(&self) -> Nanos {
        self.min
    }

    /// The longest; zero if there are none.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// All together.
    pub fn total(&self) -> Nanos {
        self.total
    }

    /// The mean in hundredths of a nanosecond, rounded down; zero if there are none.
    pub fn mean_centinanos(&self) -> u128 {
        (u128::from(self.total.0) * 100)
            .checked_div(u128::from(self.count))
            .unwrap_or(0)
    }

    /// The standard deviation of all of them, rounded down; zero if there are none.
    pub fn deviation(&self) -> Nanos {
        let Some(count) = (self.count > 0).then_some(u128::from(self.count)) else {
            return Nanos::ZERO;
        };
        let total = u128::from(self.total.0);
        let variance = self.squares.saturating_sub(total * total / count) / count;
        Nanos(variance.isqrt() as u64)
    }
}

impl fmt::Display for Statistic {
    /// The line as the source prints it, without the title.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: Nanos| Time(u128::from(time.0) * 100);
        write!(
            f,
            "{}, {}, {}, {}, {}, {}",
            Count(self.count),
            time(self.min),
            Time(self.mean_centinanos()),
            time(self.max),
            time(self.total),
            time(self.deviation()),
        )
    }
}

/// A count with a decimal prefix.
struct Count(u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{}", self.0),
            1_000..1_000_000 => write!(f, "{} k", Hundredths(u128::from(self.0), 1_000)),
            _ => write!(f, "{} M", Hundredths(u128::from(self.0), 1_000_000)),
        }
    }
}

/// Hundredths of a nanosecond with a unit.
struct Time(u128);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 / 100 {
            0..1_000 => (100, "ns"),
            1_000..1_000_000 => (100_000, "µs"),
            1_000_000..1_000_000_000 => (100_000_000, "ms"),
            _ => (100_000_000_000, "s"),
        };
        write!(f, "{} {unit}", Hundredths(self.0, divisor))
    }
}

/// A quotient with two decimals, rounded to nearest.
struct Hundredths(u128, u128);

impl fmt::Display for Hundredths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0 * 100 + self.1 / 2) / self.1;
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the line has the source's form and the right values. Method: the numbers that source 002's
    /// own line implies: 233 yields of 10.235 ms during which the other thread ran, one that took 11.32
    /// ms, and 5.56 million of 429 ns that returned at once, the shortest after 400 ns.
    #[test]
    fn the_lengths_behind_the_source_line_give_it() {
        let mut yields = Statistic::default();
        yields.add(Nanos(400));
        yields.add(Nanos(11_320_000));
        (0..232).for_each(|_| yields.add(Nanos(10_235_000)));
        (0..5_559_766).for_each(|_| yields.add(Nanos(429)));
        assert_eq!(yields.count(), 5_560_000);
        assert_eq!(
            yields.to_string(),
            "5.56 M, 400.00 ns, 858.08 ns, 11.32 ms, 4.77 s, 66.28 µs"
        );
    }

    /// Goal: the corners. Method: nothing, one length, equal lengths, and the largest there are.
    #[test]
    fn corners() {
        let mut lengths = Statistic::default();
        assert_eq!(
            lengths.to_string(),
            "0, 0.00 ns, 0.00 ns, 0.00 ns, 0.00 ns, 0.00 ns"
        );
        lengths.add(Nanos(7));
        lengths.add(Nanos(7));
        assert_eq!((lengths.deviation(), lengths.min()), (Nanos(0), Nanos(7)));
        lengths.add(Nanos(u64::MAX));
        lengths.add(Nanos(u64::MAX));
        assert_eq!(lengths.max(), Nanos(u64::MAX));
        assert_eq!(lengths.total(), Nanos(u64::MAX));
    }

    /// Goal: mean and deviation are those of the definition. Method: lengths of which they are known.
    #[test]
    fn mean_and_deviation_are_as_defined() {
        let mut lengths = Statistic::default();
        for length in [2, 4, 4, 4, 5, 5, 7, 9] {
            lengths.add(Nanos(length));
        }
        assert_eq!(
            (lengths.mean_centinanos(), lengths.deviation()),
            (500, Nanos(2))
        );
    }
}
