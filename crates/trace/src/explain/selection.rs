//! The selection of the waits to explain.

use event::{Nanos, Task};

/// The waits to explain, and limits of the answer.
///
/// By default these are, of all threads: waits and frames of our job system, late frames of Android's frame
/// timeline, and marked slices whose names say that they are frames or waits. In a recording with none of
/// those they are the sleeps that another thread ended, without those of the kernel's own threads and of
/// threads that slept nearly all the time, unless there are no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Of these threads only; none: of all.
    pub threads: Option<Vec<Task>>,
    /// Instead of the default ones, the slices whose names contain one of these texts; frames and waits of
    /// our job system have names, too (see [`names`](super::names)).
    pub slices: Vec<String>,
    /// Slices whose names contain one of these texts are waits, even if their thread does not sleep: it may
    /// spin.
    pub busy: Vec<String>,
    /// The largest number of waits, of which the longest are kept; of sleeps of threads that were not asked
    /// for, 200.
    pub limit: usize,
    /// The shortest inversion that is reported: every wake-up and every switch takes some time.
    pub least: Nanos,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            threads: None,
            slices: Vec::new(),
            busy: Vec::new(),
            limit: 1000,
            least: Nanos::from_micros(50),
        }
    }
}
