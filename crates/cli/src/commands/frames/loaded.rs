//! Frames beside hogs, for `experiment`: the frames that `frames --load N --wait POLICY` runs, and what it
//! and `diagnose` report about them.

use std::time::Duration;

use console::Failure;
use event::Nanos;
use measure::Times;
use paceline::WaitPolicy;
use trace::explain::InversionKind;
use workload::graph::Generator;

use super::plan::{FrameContent, Options};
use super::{recorder, run};
use crate::commands::accounts::Account;
use crate::commands::values::Workers;

/// The frames to run: source 001's, at 60 Hz.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Loaded {
    /// How a waiting thread passes the time before it sleeps.
    pub(in crate::commands) wait: WaitPolicy,
    /// The number of threads beside that only burn CPU time.
    pub(in crate::commands) hogs: u32,
    pub(in crate::commands) frames: u32,
}

/// The outcome.
pub(in crate::commands) struct LoadedReport {
    pub(in crate::commands) times: Times,
    pub(in crate::commands) missed: u64,
    /// CPU time of a frame, the hogs' left out.
    pub(in crate::commands) cpu: Option<Nanos>,
    pub(in crate::commands) longest_wait: Nanos,
}

/// Inversions among the waits of some frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct Inversions {
    /// A thread waited busily on a CPU that the awaited thread could have had.
    pub(in crate::commands) busy_waits: u64,
    pub(in crate::commands) busy_waited: Nanos,
    /// Something else had the CPU.
    pub(in crate::commands) others: u64,
    pub(in crate::commands) others_took: Nanos,
}

impl Loaded {
    /// Runs the frames.
    pub(in crate::commands) fn run(&self) -> Result<LoadedReport, Failure> {
        let outcome = run::run(&self.options(false)?)?;
        let longest = outcome.waits.first().map(|wait| Nanos(wait.duration_ns));
        Ok(LoadedReport {
            times: outcome.times,
            missed: outcome.missed,
            cpu: outcome.cpu,
            longest_wait: longest.unwrap_or_default(),
        })
    }

    /// Runs them while the kernel records, which takes time of its own. `None`: the kernel's half is missing.
    pub(in crate::commands) fn inversions(&self) -> Result<Option<Inversions>, Failure> {
        let outcome = run::run(&self.options(true)?)?;
        let recording = outcome.recording.filter(|it| !it.kernel.is_empty());
        Ok(recording.map(|recording| {
            let origin = recorder::first_frame(&recording);
            Inversions::of(&Account::of(recording, origin))
        }))
    }

    fn options(&self, records: bool) -> Result<Options, Failure> {
        let graph = Generator::default().generate().map_err(Failure::usage)?;
        Ok(Options {
            scene: FrameContent::Graph(graph),
            frames: self.frames,
            period: Some(Duration::from_secs_f64(1.0 / 60.0)),
            workers: Workers::Auto,
            load: self.hogs,
            background: 0,
            wait: Some(self.wait),
            image: None,
            costs: None,
            compares: false,
            records,
            trace: None,
            trace_text: None,
            report: None,
            panic_at: None,
            help: Vec::new(),
        })
    }
}

impl Inversions {
    fn of(account: &Account) -> Inversions {
        let mut sum = Inversions::default();
        for inversion in &account.explanation.inversions {
            let (count, took) = match inversion.kind {
                InversionKind::BusyWait => (&mut sum.busy_waits, &mut sum.busy_waited),
                _ => (&mut sum.others, &mut sum.others_took),
            };
            *count += 1;
            *took += inversion.ns;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told<T>(result: Result<T, Failure>) -> T {
        result.unwrap_or_else(|failure| panic!("{}", failure.text()))
    }

    fn beside_a_hog(wait: WaitPolicy) -> Loaded {
        Loaded {
            wait,
            hogs: 1,
            frames: 3,
        }
    }

    /// Goal: it runs the frames that it says, under either wait. Method: three frames beside a hog each;
    /// counts, not times.
    #[test]
    fn a_few_frames_beside_a_hog() {
        for wait in [WaitPolicy::Active, WaitPolicy::Passive] {
            let report = told(beside_a_hog(wait).run());
            assert!(report.times.p50 > 0 && report.times.max >= report.times.p99);
            assert!(report.missed <= 3 && report.longest_wait.0 <= report.times.max);
        }
    }

    /// Goal: a recording with inversions has their lengths, too. Method: three frames beside a hog, where the
    /// kernel's events may be recorded.
    #[test]
    fn inversions_have_lengths() {
        let found = told(beside_a_hog(WaitPolicy::Active).inversions()).unwrap_or_default();
        assert_eq!(found.busy_waits > 0, found.busy_waited > Nanos::ZERO);
        assert_eq!(found.others > 0, found.others_took > Nanos::ZERO);
    }
}
