//! How the command watches a scene: each wait of the main thread is timed, each body passes the
//! [`Probe`], and a job that panics is an error with its name and not a panic.

use paceline::{JobId, JobSystem, WaitError};
use platform::Os;
use workload::{Watch, WatchBodies};

use super::probe::Probe;
use super::waits::TimedWaits;

/// The command's look at one frame.
pub(super) struct FrameWatch<'a> {
    pub(super) probe: &'static Probe,
    pub(super) waits: &'a mut TimedWaits,
}

impl Watch<Os> for FrameWatch<'_> {
    type Bodies = &'static Probe;

    fn bodies(&self) -> &'static Probe {
        self.probe
    }

    fn wait(
        &mut self,
        js: &JobSystem<Os>,
        job: JobId,
        name: &'static str,
    ) -> Result<(), WaitError> {
        self.waits.time(name, || js.try_wait(job))
    }
}

impl WatchBodies for &'static Probe {
    #[inline]
    fn body(&self, label: u32, pieces: u64, run: impl FnOnce()) {
        Probe::body(self, label, pieces, run);
    }
}
