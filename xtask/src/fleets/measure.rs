//! Programs that take turns, and what their times say.

use std::fmt;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a program is looked at: programs that are timed run for seconds.
const GLANCE: Duration = Duration::from_millis(2);

/// A figure of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    median: f64,
    least: f64,
    greatest: f64,
}

impl Ratio {
    /// What `figure` makes of the two times of each round.
    pub(super) fn of(times: &[[f64; 2]], figure: impl Fn(f64, f64) -> f64) -> Ratio {
        let mut all: Vec<f64> = times
            .iter()
            .map(|&[one, other]| figure(one, other))
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        let at = |place: usize| all.get(place).copied().unwrap_or(f64::NAN);
        let last = all.len().saturating_sub(1);
        Ratio {
            median: (at(last / 2) + at(last.div_ceil(2))) / 2.0,
            least: at(0),
            greatest: at(last),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ratio {
            median,
            least,
            greatest,
        } = self;
        write!(f, "{median:.2} ({least:.2} … {greatest:.2})")
    }
}

/// The seconds of two programs that take turns, in rounds; in every second one the other is first. A round
/// before them is thrown away.
pub(super) fn turns(
    rounds: usize,
    one: impl Fn() -> Command,
    other: impl Fn() -> Command,
) -> Result<Vec<[f64; 2]>, String> {
    let mut found = Vec::new();
    for round in 0..=rounds {
        let (first, second);
        if round % 2 == 0 {
            first = watched(one())?.0;
            second = watched(other())?.0;
        } else {
            second = watched(other())?.0;
            first = watched(one())?.0;
        }
        found.push([first, second]);
    }
    Ok(found.split_off(1))
}

/// The most memory that a program had, in KiB, where `/proc` tells.
pub(super) fn peak_of(command: Command) -> Result<Option<u64>, String> {
    Ok(watched(command)?.1)
}

/// The seconds that a program says in its last line.
pub(super) fn seconds(mut command: Command) -> Result<f64, String> {
    let output = command.output().map_err(|why| not_run(&command, &why))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().and_then(|line| line.parse().ok());
    match last.filter(|_| output.status.success()) {
        Some(seconds) => Ok(seconds),
        None => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command:?} failed: {text}{said}"))
        }
    }
}

/// Runs a program to its end: its seconds, and the most memory that it had, in KiB.
fn watched(mut command: Command) -> Result<(f64, Option<u64>), String> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let mut child = command.spawn().map_err(|why| not_run(&command, &why))?;
    let about = format!("/proc/{}/status", child.id());
    let mut peak = None;
    loop {
        let ended = child.try_wait().map_err(|why| not_run(&command, &why))?;
        if let Some(status) = ended {
            let seconds = begin.elapsed().as_secs_f64();
            return if status.success() {
                Ok((seconds, peak))
            } else {
                Err(format!("{command:?}: {status}"))
            };
        }
        let now = fs::read_to_string(&about).ok();
        peak = now.and_then(|text| most_memory(&text)).or(peak);
        thread::sleep(GLANCE);
    }
}

fn not_run(command: &Command, why: &dyn fmt::Display) -> String {
    format!("{command:?} does not run: {why}")
}

/// The peak in a process's status.
fn most_memory(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// A line of ftrace's text, so many seconds later: its time is the first word of digits, a point, six digits
/// and a colon.
pub(super) fn shifted(line: &str, seconds: u64) -> String {
    let time = line.split(' ').find(|word| is_time(word));
    let later = time.and_then(|word| {
        let (whole, rest) = word.split_once('.')?;
        let whole: u64 = whole.parse().ok()?;
        Some(line.replacen(word, &format!("{}.{rest}", whole + seconds), 1))
    });
    later.unwrap_or_else(|| line.to_owned())
}

fn is_time(word: &str) -> bool {
    let parts = word.strip_suffix(':').and_then(|word| word.split_once('.'));
    parts.is_some_and(|(whole, micros)| {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        is_number(whole) && is_number(micros) && micros.len() == 6
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a median is one, of an even number of rounds, too. Method: both, by hand.
    #[test]
    fn medians_are_in_the_middle() {
        let ratio = |times: &[[f64; 2]]| Ratio::of(times, |one, other| one / other).to_string();
        assert_eq!(
            ratio(&[[6.0, 2.0], [1.0, 1.0], [8.0, 4.0]]),
            "2.00 (1.00 … 3.00)"
        );
        assert_eq!(ratio(&[[1.0, 1.0], [2.0, 1.0]]), "1.50 (1.00 … 2.00)");
    }

    /// Goal: lines of a trace are shifted, and others are not. Method: an event, and a line of the head.
    #[test]
    fn times_are_shifted() {
        let line = " a-1  [000] d..2.  12.000007: sched_waking: comm=a 3.5: pid=1";
        let later = " a-1  [000] d..2.  112.000007: sched_waking: comm=a 3.5: pid=1";
        assert_eq!(shifted(line, 100), later);
        assert_eq!(shifted("# entries 1.5", 100), "# entries 1.5");
    }

    /// Goal: the peak is read. Method: the line, and none.
    #[test]
    fn peaks_are_read() {
        assert_eq!(
            most_memory("VmPeak:\t 9 kB\nVmHWM:\t  1234 kB\n"),
            Some(1234)
        );
        assert_eq!(most_memory("Name: x\n"), None);
    }
}
