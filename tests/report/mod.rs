//! Goal: a program that hangs can be asked why, and the answer names what holds it up.
//!
//! Method: programs in situations of each kind, mostly on a simulated machine, where time is exact and texts
//! can be compared word for word (`situations`); waits that report themselves (`long_waits`); processes that
//! are asked by an environment variable and by a signal (`asked`). That reports are true whatever goes on is
//! in `dag::reported`.

mod asked;
mod graphs;
mod hang;
mod long_waits;
mod situations;

use event::Nanos;
use paceline::{Builder, JobSystem, Report};
use platform::{Platform, ThreadSpec};
use sim::{Sim, SimConfig, SimThread};
use std::sync::Arc;

/// A job system on a simulated machine, and the means of a program there.
#[derive(Clone)]
struct Site {
    sim: Sim,
    js: Arc<JobSystem<Sim>>,
}

impl Site {
    /// Runs a program on a job system of these settings, with several orders of steps.
    fn run(settings: fn(Builder<Sim>) -> Builder<Sim>, program: impl Fn(Site)) {
        for seed in 0..8 {
            let report = Sim::run(SimConfig::new(seed), |sim| {
                let builder = settings(Builder::with_platform(sim.clone()));
                let js = Arc::new(builder.build().expect("the settings are in range"));
                program(Site { sim, js });
            });
            report.expect_finished();
        }
    }

    /// Starts a thread with this name.
    fn thread(&self, name: &str, body: impl FnOnce(&JobSystem<Sim>) + Send + 'static) -> SimThread {
        let spec = ThreadSpec {
            name: name.to_owned(),
            ..ThreadSpec::default()
        };
        let js = self.js.clone();
        let body = Box::new(move || body(&js));
        self.sim.spawn(spec, body).expect("there is room")
    }

    /// The calling thread sleeps; when it goes on, all others have come to a rest.
    fn sleep(&self, millis: u64) {
        self.sim
            .sleep_until(self.sim.time() + Nanos::from_millis(millis));
    }
}

/// The text of a report without the places in the program.
fn plain(report: &Report) -> String {
    without_places(&report.to_string())
}

/// Leaves out ` (file:line)` and ` at file:line`.
fn without_places(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(".rs:") {
        let begin = rest[..at]
            .rfind([' ', '('])
            .expect("a place is not the first word");
        let is_bracketed = rest[begin..].starts_with('(');
        let before = &rest[..begin];
        let before = if is_bracketed {
            before
        } else {
            before.strip_suffix(" at").expect("at")
        };
        plain += before.trim_end_matches(' ');
        rest = rest[at + 4..].trim_start_matches(|c: char| c.is_ascii_digit());
        rest = if is_bracketed { &rest[1..] } else { rest };
    }
    plain + rest
}
