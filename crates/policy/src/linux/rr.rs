//! `rr`: every task is a `SCHED_RR` task.
//!
//! Its model: as [`fifo`](mod@super::fifo), but tasks of equal priority take turns, 100 ms each
//! (`sched_rr_timeslice_ms`; 100 on Linux 6.18, where two spinners had stints of 100.0 ms). Tasks that are
//! given `SCHED_FIFO` have it.
//!
//! Where it is bad: 100 ms is six frames; a task that wakes up behind n spinners of its priority waits for
//! n times that. Between priorities nothing is fair, as in `fifo`.

use super::eevdf::{Eevdf, V6_18};
use super::{Linux, Ordinary};
use crate::{Class, Discipline, Setting};

/// See the [module](self). The fair class below has no tasks.
pub(crate) fn rr(setting: Setting) -> Box<dyn Class> {
    let ordinary = Ordinary::RealTime(Discipline::RoundRobin);
    let fair = Eevdf::new(V6_18, setting);
    Box::new(Linux::new("rr", ordinary, fair, setting))
}
