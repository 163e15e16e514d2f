//! What the machine said: runs of frames, and checks.

use std::collections::BTreeMap;

use super::checks::Checks;
use super::guest::{BASE, IDLE, SHORTER, TOLD, UNTOLD};

/// Frames with hints have at most this share of the 99th percentile under the kernel's own scheduler …
const TO_BASE: f64 = 0.6;
/// … and this one of the same policy's without.
const TO_UNTOLD: f64 = 0.8;
/// Hogs compute at least this share of what they do under the kernel's own scheduler.
const HOGS: f64 = 0.9;

/// One run of frames, times in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    phase: u64,
    frames: u64,
    dropped: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
    hogs: u64,
    millis: u64,
    /// Thousandths of the CPUs' time in which nothing ran.
    idle: u64,
}

/// All that one machine said.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// By label, in the order in which they ran.
    runs: Vec<(String, Vec<Run>)>,
    checks: Checks,
}

impl Results {
    /// Reads what a machine printed.
    ///
    /// # Errors
    /// A line of results that cannot be read.
    pub(super) fn read(text: &str) -> Result<Results, String> {
        let mut results = Results {
            checks: Checks::read(text),
            ..Results::default()
        };
        for line in text.lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix("result ") {
                let (label, run) =
                    read_run(rest).ok_or_else(|| format!("vm: not a result: {line:?}"))?;
                match results.runs.iter_mut().find(|(known, _)| *known == label) {
                    Some((_, runs)) => runs.push(run),
                    None => results.runs.push((label, vec![run])),
                }
            }
        }
        Ok(results)
    }

    /// Whether all that had to happen did, and there were frames.
    pub(super) fn all_well(&self) -> bool {
        self.checks.all_passed() && !self.runs.is_empty()
    }

    /// A table in Markdown, and the checks in a sentence.
    pub(super) fn table(&self) -> String {
        let mut text =
            "| scheduler | p50, ms | p90, ms | p99, ms | longest, ms | dropped | p99 to EEVDF's \
                        | hogs' work to EEVDF's | CPUs idle, % |\n\
                        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
                .to_owned();
        for (label, runs) in &self.runs {
            let ms = |value: fn(&Run) -> u64| spread(runs.iter().map(value), 1_000.0);
            let dropped = spread(runs.iter().map(|run| run.dropped), 1.0);
            let (tail, work) = if label == IDLE {
                ("–".to_owned(), "–".to_owned())
            } else {
                let shorter = label.ends_with(SHORTER);
                let base = format!("{BASE}{}", if shorter { SHORTER } else { "" });
                let part = |value: fn(&Run) -> f64| share(self.ratio(label, &base, value));
                (part(|run: &Run| run.p99 as f64), part(Run::hog_rate))
            };
            let idle = spread(runs.iter().map(|run| run.idle), 10.0);
            text += &format!(
                "| {label} | {} | {} | {} | {} | {dropped} | {tail} | {work} | {idle} |\n",
                ms(|run| run.p50),
                ms(|run| run.p90),
                ms(|run| run.p99),
                ms(|run| run.max),
            );
        }
        let checks = self.checks.sentence("loading, unloading and faults");
        text + &format!("\n{checks}\n")
    }

    /// Says whether the targets are met; they count where `binding`.
    pub(super) fn verdict(&self, binding: bool) -> bool {
        let p99 = |run: &Run| run.p99 as f64;
        let bounds = [
            (
                "p99 with hints to EEVDF's",
                self.ratio(TOLD, BASE, p99),
                TO_BASE,
                true,
            ),
            (
                "p99 with hints to that without",
                self.ratio(TOLD, UNTOLD, p99),
                TO_UNTOLD,
                true,
            ),
            (
                "hogs' work with hints to EEVDF's",
                self.ratio(TOLD, BASE, Run::hog_rate),
                HOGS,
                false,
            ),
        ];
        let mut met = true;
        for (name, ratio, bound, at_most) in bounds {
            let holds = ratio.is_some_and(|ratio| {
                if at_most {
                    ratio <= bound
                } else {
                    ratio >= bound
                }
            });
            let kind = if at_most { "at most" } else { "at least" };
            let verdict = if holds { "met" } else { "MISSED" };
            println!("vm: {name}: {}, {kind} {bound}: {verdict}", share(ratio));
            met &= holds;
        }
        let well = self.all_well();
        if !well {
            println!("vm: not all checks passed");
        }
        well && (met || !binding)
    }

    /// The median over phases of one label to another's.
    fn ratio(&self, label: &str, to: &str, value: impl Fn(&Run) -> f64) -> Option<f64> {
        let middle = |label: &str| {
            let (_, runs) = self.runs.iter().find(|(known, _)| known == label)?;
            let mut values: Vec<f64> = runs.iter().map(&value).collect();
            values.sort_unstable_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        Some(middle(label)? / middle(to)?)
    }
}

impl Run {
    /// What the hogs computed in a second.
    fn hog_rate(&self) -> f64 {
        self.hogs as f64 / self.millis.max(1) as f64
    }
}

fn share(ratio: Option<f64>) -> String {
    ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// The median, and the least and the largest.
fn spread(values: impl Iterator<Item = u64>, unit: f64) -> String {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let (Some(&least), Some(&most)) = (values.first(), values.last()) else {
        return "–".to_owned();
    };
    let places = if unit == 1.0 { 0 } else { 1 };
    let shown = |value: u64| format!("{:.places$}", value as f64 / unit);
    let middle = shown(values[values.len() / 2]);
    if values.len() == 1 {
        return middle;
    }
    format!("{middle} ({}–{})", shown(least), shown(most))
}

/// A label and names, each before its number.
fn read_run(text: &str) -> Option<(String, Run)> {
    let mut words = text.split_whitespace();
    let label = words.next()?.to_owned();
    let mut numbers = BTreeMap::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        numbers.insert(name, value.parse::<u64>().ok()?);
    }
    let number = |name| numbers.get(name).copied();
    let run = Run {
        phase: number("phase")?,
        frames: number("frames")?,
        dropped: number("dropped")?,
        p50: number("p50")?,
        p90: number("p90")?,
        p99: number("p99")?,
        max: number("max")?,
        hogs: number("hogs")?,
        millis: number("ms")?,
        idle: number("idle")?,
    };
    Some((label, run))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, phase: u64, p99: u64, hogs: u64) -> String {
        format!(
            "result {label} phase {phase} frames 250 dropped 1 p50 5000 p90 6000 p99 {p99} max 9000 \
             wake99 1 begun50 2 begun99 3 hogs {hogs} ms 4000 idle 15\r\n"
        )
    }

    fn results(told: u64, hogs: u64) -> Results {
        let mut text = "talk\n".to_owned();
        for phase in [0, 1, 2] {
            text += &line(BASE, phase, 30_000 + phase * 1000, 2000);
            text += &line(UNTOLD, phase, 20_000, 1990);
            text += &line(TOLD, phase, told, hogs);
        }
        Results::read(&(text + "check load ok\n")).expect("results")
    }

    /// Goal: targets are met and missed as they should. Method: results at both sides of each bound.
    #[test]
    fn targets_can_be_met_and_missed() {
        assert!(results(15_000, 1900).verdict(true));
        // 0.8 of the same policy's.
        assert!(!results(16_100, 1900).verdict(true));
        assert!(results(16_100, 1900).verdict(false));
        assert!(!results(15_000, 1700).verdict(true));
    }

    /// Goal: a check that failed, and results without checks, are no success. Method: both.
    #[test]
    fn a_failed_check_is_a_failure() {
        let mut bad = results(15_000, 1900);
        bad.checks = Checks::read("check load ok\ncheck unload FAILED: why\n");
        assert!(!bad.verdict(false));
        assert!(bad.table().contains("unload: FAILED: why"));
        let none = Results::read(&line(BASE, 0, 1, 1)).expect("results");
        assert!(!none.all_well());
    }

    /// Goal: the table has the middle and both ends of each number. Method: one row.
    #[test]
    fn the_table_shows_the_spread() {
        let table = results(15_000, 1900).table();
        assert!(table.contains("| 31.0 (30.0–32.0) |"), "{table}");
        assert!(table.contains("| 0.48 | 0.95 | 1.5 (1.5–1.5) |"), "{table}");
        assert!(table.contains("1 checks of loading"), "{table}");
    }

    /// Goal: a broken line is an error and no number. Method: a word for a number, and a line without one.
    #[test]
    fn a_broken_line_is_refused() {
        for text in ["result eevdf phase x", "result eevdf phase 1 frames 2"] {
            assert!(Results::read(text).is_err(), "{text}");
        }
    }
}
