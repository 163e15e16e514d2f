//! Every body passes this probe: the stopwatch of `--record-costs`, and the planted panic of `--panic-at`.
//! Without these options it is one predicted branch.

use std::sync::atomic::{AtomicBool, Ordering};

use platform::{Os, Platform};

use super::costs::RecordedCosts;

/// Looks at bodies.
pub(super) struct Probe {
    costs: Option<RecordedCosts>,
    /// The label whose first job panics.
    panic_at: Option<u32>,
    panicked: AtomicBool,
}

impl Probe {
    pub(super) fn new(costs: Option<RecordedCosts>, panic_at: Option<u32>) -> Probe {
        Probe {
            costs,
            panic_at,
            panicked: AtomicBool::new(false),
        }
    }

    pub(super) fn costs(&self) -> Option<&RecordedCosts> {
        self.costs.as_ref()
    }

    /// Runs the body of a job, or `items` of its pieces.
    #[inline]
    pub(super) fn body(&self, label: u32, items: u64, run: impl FnOnce()) {
        if self.costs.is_none() && self.panic_at.is_none() {
            run();
        } else {
            self.watched(label, items, run);
        }
    }

    #[cold]
    fn watched(&self, label: u32, items: u64, run: impl FnOnce()) {
        // Relaxed: the first job panics, whichever it is, and nothing else depends on it.
        if self.panic_at == Some(label) && !self.panicked.swap(true, Ordering::Relaxed) {
            panic!("planted by --panic-at");
        }
        let begin = Os.now();
        run();
        if let Some(costs) = &self.costs {
            costs.add(label, items, Os.now() - begin);
        }
    }
}
