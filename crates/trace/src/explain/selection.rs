//! The selection of the waits to explain.

use event::{Nanos, Task};

/// The waits to explain, and limits of the answer.
///
/// By default these are, of all threads: waits and frames of our job system, late frames of Android's frame
/// timeline, and marked slices whose names say that they are frames or waits. In a recording with none of
/// those they are the sleeps that another thread ended, without those of the kernel's own threads and of
/// threads that slept nearly all the time. If that leaves none they are turns, from a wake-up until the
/// thread has nothing to do, of all threads but the kernel's own; and only without turns those other sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Of these threads only; none: of all.
    pub threads: Option<Vec<Task>>,
    /// Of the threads of these programs only, by their positions in the recording; none: of all.
    pub processes: Option<Vec<usize>>,
    /// Only those that lie in this stretch of time at any instant, from its beginning until just before its
    /// end; none: all.
    pub within: Option<(Nanos, Nanos)>,
    /// Instead of the default ones, the slices whose names contain one of these texts; frames and waits of
    /// our job system have names, too (see [`names`](super::names)).
    pub slices: Vec<String>,
    /// Slices whose names contain one of these texts are waits, even if their thread does not sleep: it may
    /// spin.
    pub busy: Vec<String>,
    /// The largest number of waits, of which the worst are kept.
    pub limit: usize,
    /// The same of sleeps and turns of threads that were not asked for: many of the long sleeps are of
    /// threads with nothing to do.
    pub sleeps: usize,
    /// The shortest inversion that is reported: every wake-up and every switch takes some time.
    pub least: Nanos,
}

impl Selection {
    /// Whether a thread of this program is meant.
    pub fn has(&self, thread: Task, process: Option<usize>) -> bool {
        let threads = self.threads.as_ref();
        let processes = self.processes.as_ref();
        threads.is_none_or(|threads| threads.contains(&thread))
            && processes.is_none_or(|processes| process.is_some_and(|it| processes.contains(&it)))
    }

    /// Whether a stretch of time is meant.
    pub(super) fn touches(&self, begin: Nanos, end: Nanos) -> bool {
        self.within
            .is_none_or(|(from, to)| begin < to && end > from)
    }
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            threads: None,
            processes: None,
            within: None,
            slices: Vec::new(),
            busy: Vec::new(),
            limit: 1000,
            sleeps: 200,
            least: Nanos::from_micros(50),
        }
    }
}
