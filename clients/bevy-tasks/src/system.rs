//! The job system that all pools run on.

use std::fmt;
use std::sync::{Arc, OnceLock};

use paceline::{Builder, JobSystem, WaitRule};

static SYSTEM: OnceLock<Arc<JobSystem>> = OnceLock::new();

/// A job system was asked for after a pool had made its own; from [`use_job_system`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSystemInUse(());

impl fmt::Display for JobSystemInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "task pools have a job system already; call use_job_system before anything of Bevy's",
        )
    }
}

impl std::error::Error for JobSystemInUse {}

/// Has all task pools run on this job system, which the program has made.
///
/// # Errors
/// If one is in use: this has to come before any pool is made.
pub fn use_job_system(js: Arc<JobSystem>) -> Result<(), JobSystemInUse> {
    SYSTEM.set(js).map_err(|_| JobSystemInUse(()))
}

/// The job system that all pools run on: the program's, or else one with a worker for each CPU but one, and
/// with at least one. The first call makes it.
pub fn job_system() -> &'static Arc<JobSystem> {
    SYSTEM.get_or_init(|| {
        // What a future waits for is not known: a thread that waits for one runs any job.
        let made = |builder: Builder| builder.wait_rule(WaitRule::Anything).build().ok();
        // Bevy's programs wait for futures in ways that run nothing, so on one CPU there is a worker, too.
        let usual = made(Builder::new()).filter(|js| js.workers() > 0);
        let one = || made(Builder::new().workers(1));
        Arc::new(usual.or_else(one).unwrap_or_else(JobSystem::new))
    })
}
