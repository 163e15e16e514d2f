//! Asking a job system what it is doing.

use platform::Platform;

use super::JobSystem;
use crate::error::BuildError;
use crate::report::Report;
use crate::work::StuckSetting;

impl<P: Platform> JobSystem<P> {
    /// What the job system is doing at this moment, and what holds it up: jobs, threads, waits, queues, and a
    /// verdict in sentences. For a program that hangs, see [`Report`].
    ///
    /// It reads what other threads write, while they go on: none of them is stopped, woken or made to wait.
    /// It works from any thread, also from one that gets no thread slot, and from a sink. It allocates, and
    /// looks once at each job. For a moment it takes the lock of the names of jobs, which no thread holds
    /// while it runs code of the program's. In a fork's child it takes no lock, reads nothing, and says so.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let report = js.report();
    /// assert_eq!(report.verdict, ["nothing is stuck: no job is live, and no thread waits"]);
    /// println!("{report}");
    /// ```
    pub fn report(&self) -> Report {
        self.shared.report()
    }

    /// Makes a report whenever the signal comes that is set.
    pub(in crate::api) fn listen(&mut self, setting: &StuckSetting) -> Result<(), BuildError> {
        self.telling = self.shared.listen(setting)?;
        Ok(())
    }
}
