//! Time as one integer type, so that instants of every platform can be compared and recorded.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// Nanoseconds: an instant since the platform's origin, or a length of time.
///
/// Arithmetic saturates: a deadline of "never" ([`Nanos::MAX`]) stays never, and a difference of
/// two instants taken on different CPUs never wraps to half a millennium.
///
/// ```
/// # use paceline_event::Nanos;
/// let frame = Nanos::from_millis(16);
/// assert_eq!(frame + Nanos::from_micros(500), Nanos(16_500_000));
/// assert_eq!(Nanos(3) - Nanos(5), Nanos(0));
/// assert_eq!(frame.to_string(), "16.000 ms");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The beginning of time, or no time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// A deadline that never comes.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs.saturating_mul(1_000_000_000))
    }

    /// The length as a fraction of a second, for rates and averages.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The length in microseconds with its fraction, for people.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        match self.0 {
            u64::MAX => f.write_str("never"),
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.3} µs", n / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.3} ms", n / 1e6),
            _ => write!(f, "{:.3} s", n / 1e9),
        }
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
