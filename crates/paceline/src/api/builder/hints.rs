//! The setting for hints to a scheduler in user space.

use platform::Os;

use super::Builder;
use crate::work::hints::HintSetting;

impl Builder<Os> {
    /// Whether a scheduler in user space is told which thread waits for which; `false` by default.
    ///
    /// Such a scheduler (Linux, `sched_ext`) sees that a thread sleeps, and not why. With hints each thread
    /// says how urgent the job is that it runs, with the deadline of the job's
    /// [frame](crate::JobSystem::frame), and each thread that blocks in a wait says which threads run what it
    /// waits for. It says so in memory that the scheduler reads, without a system call.
    ///
    /// Of frames that overlap, a job has the deadline of the frame that it was made by
    /// ([`Frame::job`](crate::Frame::job)). A normal job that no frame made counts as one of the first of
    /// them, and one in [`Lane::Frame`](crate::Lane::Frame) as one of the frame that has to be over soonest.
    /// A job of another lane has a deadline once a wait has raised it.
    ///
    /// [`build`](Builder::build) asks the scheduler's broker for the memory, at `/run/paceline/hints.sock` or
    /// where the environment variable `PACELINE_HINTS` says. If none listens, or the system is another one,
    /// nothing is different but a sentence in [`JobSystem::explain`](crate::JobSystem::explain). Crate
    /// `paceline-hint` describes the memory, for schedulers and for other job systems.
    ///
    /// ```
    /// let js = paceline::Builder::new().hints(true).build().unwrap();
    /// println!("{}", js.explain().last().unwrap()); // No hints: /run/paceline/hints.sock: no scheduler …
    /// ```
    pub fn hints(mut self, on: bool) -> Self {
        self.hints = HintSetting(on);
        self
    }
}
