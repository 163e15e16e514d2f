//! How far a campaign is: a bar on standard error, or a line now and then where that is no terminal.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// A campaign that ends before this shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two lines, where there is no terminal.
const PERIOD: Duration = Duration::from_secs(30);

/// The bar has this many steps.
const STEPS: u64 = 1000;

pub(crate) struct Progress {
    began: Instant,
    last: Instant,
    has_terminal: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        let now = Instant::now();
        Progress {
            began: now,
            last: now,
            has_terminal: stderr().is_terminal(),
            bar: None,
        }
    }

    /// This part of all, from 0 to 1, is done.
    pub(crate) fn reach(&mut self, fraction: f64, what: &str) {
        if !self.has_terminal {
            if self.last.elapsed() >= PERIOD {
                self.last = Instant::now();
                let percent = fraction * 100.0;
                eprintln!(
                    "{percent:.0} %, {} s: {what}",
                    self.began.elapsed().as_secs()
                );
            }
            return;
        }
        if self.bar.is_none() && self.began.elapsed() >= PATIENCE {
            self.bar = Some(bar());
        }
        if let Some(bar) = &self.bar {
            bar.set_position((fraction * STEPS as f64) as u64);
            bar.set_message(what.to_owned());
        }
    }

    /// A line for the person at the screen, above the bar.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(STEPS);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent} %, {elapsed}: {msg}") {
        bar.set_style(style);
    }
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
