//! Settings for the reports that the job system makes by itself.

use std::time::Duration;

use event::Nanos;
use platform::{Platform, Signal};

use super::Builder;
use crate::report::Report;

impl<P: Platform> Builder<P> {
    /// Reports a wait when it has had nothing to run for this long, and again whenever it has lasted twice as
    /// long as the last time. Without this call no wait is reported. The environment variable
    /// `PACELINE_STUCK` wins over it.
    ///
    /// The [report](crate::JobSystem::report) goes to [`on_report`](Builder::on_report), or else to the
    /// standard error output. Waits that become long at about the same time share a report, which shows all
    /// of them. A wait with a timeout is not reported by itself. No thread watches the time: the waiting
    /// thread wakes up when its report is due. Waits that are shorter cost what they cost otherwise.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    /// let (send, receive) = channel();
    /// let js = paceline::Builder::new()
    ///     .stuck_after(Duration::from_millis(1))
    ///     .on_report(move |report| _ = send.send(report.verdict.join("\n")))
    ///     .build()
    ///     .unwrap();
    /// let gate = js.event("gate");
    /// let id = gate.id();
    /// std::thread::scope(|threads| {
    ///     threads.spawn(|| js.wait(id));
    ///     let verdict = receive.recv().unwrap();
    ///     assert!(verdict.contains("for event 'gate'"), "{verdict}");
    ///     gate.complete();
    /// });
    /// ```
    pub fn stuck_after(mut self, time: Duration) -> Self {
        self.stuck.after = Some(Nanos::from(time));
        self
    }

    /// Makes a [report](crate::JobSystem::report) whenever the process is sent this signal. Without this call
    /// signals do what they do otherwise. The environment variable `PACELINE_STUCK` wins over it.
    ///
    /// The report goes to [`on_report`](Builder::on_report), or else to the standard error output. It is made
    /// by a thread that is started for that, one in a process, and that sleeps until the signal comes: the
    /// signal's handler only sends it a byte. So a report is made whatever all other threads do. In a fork's
    /// child the signal does what it does by default. When the job system is dropped, it does what it did
    /// before.
    ///
    /// [`build`](Builder::build) fails if the system has no signals (only Unix has), or if the program has a
    /// handler for this one.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use paceline::{Builder, Signal};
    /// let js = Builder::new().report_on(Signal::Usr1).build().unwrap();
    /// // `kill -USR1` with the number of this process prints a report from here on.
    /// # drop(js);
    /// # }
    /// ```
    pub fn report_on(mut self, signal: Signal) -> Self {
        self.stuck.signal = Some(signal);
        self
    }

    /// A hook for the reports that the job system makes by itself: because a wait lasts long
    /// ([`stuck_after`](Builder::stuck_after)), or because of a signal ([`report_on`](Builder::report_on)).
    /// Without a hook they are printed to the standard error output.
    ///
    /// It is called on the waiting thread, or on the thread that listens to signals. A panic of it is counted
    /// ([`Stats::hook_panics`](crate::Stats::hook_panics)) and has no other consequence.
    ///
    /// ```
    /// let js = paceline::Builder::new()
    ///     .stuck_after(std::time::Duration::from_secs(10))
    ///     .on_report(|report| eprintln!("the game does not respond:\n{report}"))
    ///     .build()
    ///     .unwrap();
    /// # drop(js);
    /// ```
    pub fn on_report(mut self, hook: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        self.hooks.set_report(hook);
        self
    }
}
