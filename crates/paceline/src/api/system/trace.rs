//! Beginning a trace.

use std::path::Path;

use platform::Os;

use super::JobSystem;
use crate::api::trace::{Trace, TraceError};

impl JobSystem<Os> {
    /// Begins to record a trace of this job system into a file, which replaces one of that name. It is
    /// written when the returned [`Trace`] is finished or dropped.
    ///
    /// Without a line of code the environment variable `PACELINE_TRACE` does it from the building of the
    /// job system to its end; see [`Builder::new`](crate::Builder::new). Jobs that were scheduled before the
    /// trace began have no names in it.
    ///
    /// An event costs some nanoseconds while a trace is recorded. A thread that records for the first time
    /// allocates 1 MB. A thread of the trace's own takes the events every 10 ms.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let file = std::env::temp_dir().join(format!("paceline-doc-start-{}.pftrace", std::process::id()));
    /// let trace = js.start_trace(&file)?;
    /// for _ in 0..3 {
    ///     let frame = js.frame("update", Duration::from_millis(16));
    ///     js.wait(frame.job("physics").schedule(|_| ()));
    /// }
    /// let traced = trace.finish()?;
    /// assert_eq!(std::fs::metadata(&file).unwrap().len(), traced.bytes);
    /// # std::fs::remove_file(file).unwrap();
    /// # Ok::<(), paceline::TraceError>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be made, if the program has a [`sink`](crate::Builder::sink) of its own, while
    /// another trace is being recorded, or in a fork's child.
    pub fn start_trace(&self, path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        Trace::start(self.shared(), path.as_ref())
    }
}
