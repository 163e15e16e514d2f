//! Which waits are to be explained.

use event::{Nanos, Task};

/// Which waits are to be explained, and what is told besides.
///
/// Without anything said, these are, of all threads: waits and frames of our job system, and marked slices
/// whose names say that they are frames or waits. Where there is none of those, each sleep that another
/// thread ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Of these threads only; none: of all.
    pub threads: Option<Vec<Task>>,
    /// Instead of the usual ones, the slices whose names contain one of these texts; frames and waits of our
    /// job system have names, too (see [`names`](super::names)).
    pub slices: Vec<String>,
    /// Slices whose names contain one of these texts are waits, also where their thread does not sleep: it
    /// may spin.
    pub busy: Vec<String>,
    /// So many waits at most, the longest; of sleeps of threads that were not asked for, 200.
    pub limit: usize,
    /// Inversions that are shorter are no news: every wake-up and every switch takes some time.
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
