//! A bar on standard error for work that takes longer than two seconds, if a terminal shows it.
//!
//! No thread of its own draws the bar. It moves when the caller reports a step, such as between two
//! measurements.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Work that ends before this shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A number of steps, some of which are done.
pub struct Progress {
    began: Instant,
    done: u64,
    total: u64,
    what: &'static str,
    /// None for the first [`PATIENCE`].
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `total`: 0 if it is not known.
    pub fn new(what: &'static str, total: u64) -> Progress {
        Progress {
            began: Instant::now(),
            done: 0,
            total,
            what,
            bar: None,
        }
    }

    /// One more step is done.
    pub fn step(&mut self) {
        self.reach(self.done + 1);
    }

    /// This many steps are done.
    pub fn reach(&mut self, done: u64) {
        self.done = done;
        if self.bar.is_none() && self.began.elapsed() >= PATIENCE {
            self.bar = Some(self.start());
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }

    fn start(&self) -> ProgressBar {
        // indicatif draws on standard error, and only if that is a terminal.
        let bar = ProgressBar::new(self.total).with_message(self.what);
        let template = match self.total {
            // The total is not known.
            0 => "{msg} {pos}, {elapsed} so far",
            _ => "{msg} {wide_bar} {pos}/{len} {per_sec} {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
