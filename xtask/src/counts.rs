//! How many tests ran, read from what the test harness prints.
//!
//! The harness closes each binary with one line:
//! `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.1s`.
//! `cargo test`, doctests and Miri all print it. Tests that were filtered out are not counted.

use std::fmt;
use std::ops::AddAssign;

/// Tests that ran, and those marked `#[ignore]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    /// The result that this line of output reports, if it is a harness's closing line.
    pub(crate) fn in_line(line: &str) -> Option<Counts> {
        let line = without_colour(line);
        // A test may print without a line end, so the words need not be at the start.
        let (_, result) = line.split_once("test result: ")?;
        let (_verdict, numbers) = result.split_once(". ")?;
        let mut counts = Counts::default();
        let mut known = 0;
        for part in numbers.split(';') {
            let Some((number, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let slot = match what {
                "passed" => &mut counts.passed,
                "failed" => &mut counts.failed,
                "ignored" => &mut counts.skipped,
                _ => continue,
            };
            *slot = number.parse().ok()?;
            known += 1;
        }
        (known == 3).then_some(counts)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// The closing line that CI reads: `N passed, N failed`, and `, N skipped` if there are any.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// The text without terminal colour sequences (`ESC [ … letter`).
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // Skip the bracket and the parameters, up to and with the closing letter.
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; \
                      3 filtered out; finished in 0.10s";

    #[test]
    fn a_closing_line_is_read() {
        assert_eq!(
            Counts::in_line(OK),
            Some(Counts {
                passed: 12,
                failed: 0,
                skipped: 1
            })
        );
    }

    #[test]
    fn a_failed_run_is_read() {
        let line = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(
            Counts::in_line(line),
            Some(Counts {
                passed: 3,
                failed: 2,
                skipped: 0
            })
        );
    }

    #[test]
    fn colour_and_text_before_it_do_no_harm() {
        let line = format!(
            "left over\u{1b}[32m{}",
            OK.replace("ok", "\u{1b}[1;32mok\u{1b}[0m")
        );
        assert_eq!(
            Counts::in_line(&line),
            Some(Counts {
                passed: 12,
                failed: 0,
                skipped: 1
            })
        );
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in [
            "",
            "test a ... ok",
            "test result: ok. many passed; 0 failed",
            "12 passed",
        ] {
            assert_eq!(Counts::in_line(line), None, "{line}");
        }
    }

    #[test]
    fn sums_are_shown_in_the_form_that_ci_reads() {
        let mut sum = Counts::default();
        sum += Counts {
            passed: 2,
            failed: 1,
            skipped: 0,
        };
        assert_eq!(sum.to_string(), "2 passed, 1 failed");
        sum += Counts {
            passed: 40,
            failed: 0,
            skipped: 3,
        };
        assert_eq!(sum.to_string(), "42 passed, 1 failed, 3 skipped");
    }
}
