//! `fifo`: every task is a `SCHED_FIFO` task.
//!
//! Its model: a program whose threads all have fixed priorities, on any Linux: POSIX's `SCHED_FIFO` as
//! `sched(7)` describes it. Tasks without a real-time discipline count as `SCHED_FIFO` with the priority in
//! their attributes, 0 unless given: equals among each other, and below every real priority. Tasks that are
//! given `SCHED_RR` have it.
//!
//! Where it is bad: a task that does not block keeps its CPU; tasks of equal priority wait for it for
//! ever, and a spin wait for one of them never ends (on one CPU). Nothing is fair; priority inversion is
//! unbounded unless the lock's owner inherits. `sched_yield` does something only among equals.

use super::eevdf::{Eevdf, V6_18};
use super::{Linux, Ordinary};
use crate::{Class, Discipline, Setting};

/// See the [module](self). The fair class below has no tasks.
pub(crate) fn fifo(setting: Setting) -> Box<dyn Class> {
    let ordinary = Ordinary::RealTime(Discipline::Fifo);
    let fair = Eevdf::new(V6_18, setting);
    Box::new(Linux::new("fifo", ordinary, fair, setting))
}
