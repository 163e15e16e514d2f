//! Reports that the job system makes by itself: because a wait has lasted long, or because of a signal.

use std::fmt;
use std::io::Write;

use event::Nanos;
use platform::{Atomic, Memory, OnSignal, Ordering, Platform, Signal};

use crate::error::BuildError;
use crate::report::Report;
use crate::report::text::time;
use crate::work::context::Context;
use crate::work::shared::Shared;

/// When the job system makes reports by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StuckSetting {
    /// When a wait has lasted that long.
    pub(crate) after: Option<Nanos>,
    /// When this signal comes.
    pub(crate) signal: Option<Signal>,
}

/// Reports are made when a signal comes, as long as it is there.
pub(crate) type Telling = Option<OnSignal>;

/// When waits are reported because they last long.
pub(crate) struct LongWaits<M: Memory> {
    /// How long a wait may last until then; [`Nanos::MAX`]: for ever.
    after: Nanos,
    /// When the last such report was made; 0: never.
    reported_at: M::AtomicU64,
}

impl<M: Memory> LongWaits<M> {
    /// # Errors
    /// If a wait is to be reported at once.
    pub(crate) fn new(setting: &StuckSetting) -> Result<LongWaits<M>, BuildError> {
        let after = setting.after.unwrap_or(Nanos::MAX);
        if after == Nanos::ZERO {
            return Err(BuildError::OutOfRange {
                setting: "stuck_after, in ns,",
                asked: 0,
                range: (1, u64::MAX),
            });
        }
        Ok(LongWaits {
            after,
            reported_at: M::AtomicU64::new(0),
        })
    }

    #[inline]
    pub(crate) fn after(&self) -> Nanos {
        self.after
    }

    /// Whether the calling thread reports the waits at this moment. If there was a report a short time ago,
    /// or another thread makes one now, that one has shown all waits.
    pub(crate) fn may_report(&self, now: Nanos) -> bool {
        // Relaxed: it only decides which thread reports.
        let relaxed = Ordering::Relaxed;
        let last = self.reported_at.load(relaxed);
        let is_due = last == 0 || now - Nanos(last) >= self.after;
        let (reported_at, now) = (&self.reported_at, now.0.max(1));
        is_due
            && reported_at
                .compare_exchange(last, now, relaxed, relaxed)
                .is_ok()
    }
}

impl<P: Platform> Shared<P> {
    /// The calling thread is in a wait that has had nothing to run for that long.
    #[cold]
    pub(crate) fn report_long_wait(&self, context: &Context<'_, P>, lasted: Nanos) {
        let report = self.report();
        if self.hooks.has_report_hook() {
            context.call_hook(|| self.hooks.report(&report).unwrap_or(Ok(())));
        } else {
            let lasted = time(lasted.into());
            print(format_args!("a wait has lasted {lasted}"), &report);
        }
    }

    /// Makes a report whenever the signal comes that is set, until the returned value is dropped.
    pub(crate) fn listen(&self, setting: &StuckSetting) -> Result<Telling, BuildError> {
        let Some(signal) = setting.signal else {
            return Ok(None);
        };
        let shared = self.this.clone();
        let report = move || {
            if let Some(shared) = shared.upgrade() {
                shared.report_after(signal);
            }
        };
        let on_signal = self.platform.on_signal(signal, Box::new(report));
        on_signal.map(Some).map_err(BuildError::Signal)
    }

    /// The process was sent a signal. The calling thread is outside of the job system.
    fn report_after(&self, signal: Signal) {
        let report = self.report();
        if self.hooks.has_report_hook() {
            let hook = || self.hooks.report(&report).unwrap_or(Ok(()));
            self.panics.call_hook(hook);
        } else {
            print(format_args!("{signal}"), &report);
        }
    }
}

/// Prints a report to the standard error output, in one piece.
fn print(why: fmt::Arguments<'_>, report: &Report) {
    let text = format!("paceline: {why}\n{report}\n");
    // If it cannot be printed, it cannot be said either.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
