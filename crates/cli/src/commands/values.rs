//! Values on the command line: parsed, with a reason if they are wrong.

use std::path::Path;

use event::Nanos;
use paceline::WORKERS_MAX;
use workload::graph::{JobGraph, library, named};

/// How many workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workers {
    /// As many as the machine can use, less the thread that waits.
    Auto,
    Count(usize),
}

/// Reads `auto` or a number.
pub(super) fn workers(text: &str) -> Result<Workers, String> {
    let hint = format!("give auto, or 0 to {WORKERS_MAX}");
    match text {
        "auto" => Ok(Workers::Auto),
        _ => match text.parse::<usize>() {
            Ok(count) if count <= WORKERS_MAX => Ok(Workers::Count(count)),
            Ok(_) => Err(format!("too many workers: {hint}")),
            Err(_) => Err(hint),
        },
    }
}

/// Reads how many waits are explained, which are at least one.
pub(super) fn waits(text: &str) -> Result<u64, String> {
    const MOST: u64 = 10_000_000;
    let given = text.parse().ok().filter(|count| (1..=MOST).contains(count));
    given.ok_or_else(|| format!("give a whole number from 1 to {MOST}"))
}

/// Reads a number of frames per second; 0 is as fast as possible.
pub(super) fn fps(text: &str) -> Result<f64, String> {
    number(text, 0.0, 100_000.0)
}

/// Reads a length in microseconds, to be rounded to nanoseconds.
pub(super) fn micros(text: &str) -> Result<Nanos, String> {
    const MICROS_MAX: f64 = 1e6;
    number(text, 0.0, MICROS_MAX).map(|micros| Nanos((micros * 1e3).round() as u64))
}

/// A graph of the library, or else one in a file.
pub(super) fn find_graph(given: &str) -> Result<JobGraph, String> {
    if let Some(graph) = named(given) {
        return Ok(graph);
    }
    let path = Path::new(given);
    JobGraph::load(path).map_err(|error| {
        if path.exists() {
            error.to_string()
        } else {
            let known = library().collect::<Vec<_>>().join(", ");
            format!("{error}; graphs known by name: {known}")
        }
    })
}

fn number(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("give a number from {low} to {high}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: workers are auto or a number within the runtime's limit. Method: both ends and beyond.
    #[test]
    fn workers_are_within_the_limit() {
        assert_eq!(workers("auto"), Ok(Workers::Auto));
        assert_eq!(workers("0"), Ok(Workers::Count(0)));
        assert_eq!(workers("1024"), Ok(Workers::Count(1_024)));
        for bad in ["1025", "-1", "many", ""] {
            assert!(workers(bad).unwrap_err().contains("0 to 1024"), "{bad}");
        }
    }

    /// Goal: a number of waits is told how to write it. Method: some numbers and what is none.
    #[test]
    fn waits_are_at_least_one() {
        assert_eq!(waits("1"), Ok(1));
        assert_eq!(waits("10000000"), Ok(10_000_000));
        for bad in [
            "0",
            "-3",
            "1.5",
            "",
            "ten",
            "10000001",
            "99999999999999999999999",
        ] {
            assert!(
                waits(bad)
                    .unwrap_err()
                    .contains("whole number from 1 to 10000000"),
                "{bad}"
            );
        }
    }

    /// Goal: numbers that cannot be read, are not finite or out of range are refused. Method: some of each.
    #[test]
    fn numbers_are_finite_and_within_range() {
        assert_eq!(fps("0"), Ok(0.0));
        assert_eq!(fps("59.94"), Ok(59.94));
        assert_eq!(micros("0.5"), Ok(Nanos(500)));
        for bad in ["nan", "inf", "-1", "1e9", "", "60Hz"] {
            assert!(fps(bad).is_err() && micros(bad).is_err(), "{bad}");
        }
    }
}
