//! Settings for the reports that the job system makes by itself, in code and in the environment.

use std::time::Duration;

use event::Nanos;
use platform::{Platform, Signal};

use super::Builder;
use crate::adapt::environment::{of_process, shortened, variable};
use crate::error::BuildError;
use crate::report::Report;
use crate::work::StuckSetting;

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

/// When the environment asks for reports, whatever the program says.
pub(super) fn from_environment() -> Result<Option<StuckSetting>, BuildError> {
    variable(&of_process, "PACELINE_STUCK", &read_stuck)
}

fn read_stuck(text: &str) -> Result<StuckSetting, String> {
    let mut setting = StuckSetting::default();
    if text.eq_ignore_ascii_case("off") {
        return Ok(setting);
    }
    for part in text.split(',').map(str::trim) {
        if let (Ok(signal), None) = (part.parse(), setting.signal) {
            setting.signal = Some(signal);
        } else if let (Some(time), None) = (read_time(part), setting.after) {
            setting.after = Some(time);
        } else {
            return Err(format!(
                "'{}' says not when to report: use a time such as 500ms or 5s, a signal (quit, usr1, usr2), \
                 both such as 5s,quit, or off",
                shortened(text)
            ));
        }
    }
    Ok(setting)
}

/// A length of time that is not zero.
fn read_time(text: &str) -> Option<Nanos> {
    let word = text.to_ascii_lowercase();
    let units = [("ms", 1), ("s", 1_000), ("min", 60_000)];
    let mut numbers = units.into_iter().filter_map(|(unit, millis)| {
        let digits = word.strip_suffix(unit)?.trim_end();
        digits.parse::<u64>().ok()?.checked_mul(millis)
    });
    let millis = numbers.next().filter(|millis| *millis > 0)?;
    Some(Nanos::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: values of `PACELINE_STUCK` are understood as they are meant. Method: times in each unit, each
    /// signal, both in either order, `off`; and mistakes, among them two of a kind.
    #[test]
    fn reports_have_a_time_or_a_signal_or_both() {
        let read = |text: &str| {
            let lookup = |name: &str| (name == "PACELINE_STUCK").then(|| text.into());
            let read = variable(&lookup, "PACELINE_STUCK", &read_stuck);
            read.map(|setting| setting.expect("it is set"))
                .map_err(|error| error.to_string())
        };
        let of = |after, signal| Ok(StuckSetting { after, signal });
        let millis = |millis| Some(Nanos::from_millis(millis));
        assert_eq!(read(" 5s "), of(millis(5_000), None));
        assert_eq!(read("250 MS"), of(millis(250), None));
        assert_eq!(read("2min"), of(millis(120_000), None));
        assert_eq!(read("off"), of(None, None));
        for (name, signal) in Signal::ALL {
            let both = of(millis(1_000), Some(signal));
            assert_eq!(read(name), of(None, Some(signal)));
            assert_eq!(read(&format!("1s, sig{name}")), both);
            assert_eq!(read(&format!("{name},1s")), both);
        }
        let long = "9".repeat(10_000);
        let mistakes = [
            "",
            "5",
            "0s",
            "-1s",
            "1h",
            "1s,",
            "1s,2s",
            "quit,usr1",
            "kill",
            "off,1s",
        ];
        for bad in mistakes.into_iter().chain([&long[..]]) {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("PACELINE_STUCK: '"), "{bad}: {error}");
            assert!(error.ends_with("both such as 5s,quit, or off"), "{error}");
            assert!(!error.contains('\n') && error.len() < 180, "{error}");
        }
    }
}
