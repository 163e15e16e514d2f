//! A low thread with a mutex, one in the middle that computes, a high one that wants the mutex.

use std::sync::{Arc, Mutex, PoisonError};

use console::Failure;
use event::Nanos;
use measure::{Machine, thread_cpu};
use platform::os::pthread;
use platform::{CpuSet, Os, Parker, Platform, SchedParams};
use workload::busy::Busy;
use workload::gang::{Member, run_gang};

use super::why;
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::Effort;

/// The work of the low thread while it has the mutex.
const HELD: Nanos = Nanos::from_millis(5);

/// From low to high.
const PRIORITIES: [(&str, u8); 3] = [("low", 10), ("middle", 20), ("high", 30)];

/// The data that the three threads share.
struct Scene {
    mutex: pthread::Mutex,
    busy: Busy,
    hog: Nanos,
    wake_middle: <Os as Platform>::Parker,
    wake_high: <Os as Platform>::Parker,
    waited: Mutex<Nanos>,
}

impl Scene {
    fn live(&self, thread: usize) {
        match thread {
            0 => self.mutex.with(|| {
                // The high one first: it waits for the mutex before the middle one computes.
                self.wake_high.unpark();
                self.wake_middle.unpark();
                self.compute(HELD);
            }),
            1 => {
                self.wake_middle.park(Nanos::MAX);
                self.compute(self.hog);
            }
            _ => {
                self.wake_high.park(Nanos::MAX);
                let begin = Os.now();
                let end = self.mutex.with(|| Os.now());
                *self.waited.lock().unwrap_or_else(PoisonError::into_inner) = end - begin;
            }
        }
    }

    /// Computes for this much CPU time, by the kernel's own count.
    fn compute(&self, length: Nanos) {
        const LOOK: Nanos = Nanos::from_micros(50);
        let Some(begin) = thread_cpu() else {
            return self.busy.spin_for(length, 1);
        };
        while thread_cpu().is_some_and(|now| now - begin < length) {
            self.busy.spin_for(LOOK, 1);
        }
    }
}

/// How long the high thread waits.
fn wait(inherits: bool, hog: Nanos, busy: Busy, cpu: u32) -> Result<Nanos, Failure> {
    let mutex = pthread::Mutex::new(inherits);
    let scene = Arc::new(Scene {
        mutex: mutex.map_err(|error| Failure::failed(format!("no such mutex: {error}")))?,
        busy,
        hog,
        wake_middle: Os.parker(),
        wake_high: Os.parker(),
        waited: Mutex::new(Nanos::ZERO),
    });
    let members = PRIORITIES.map(|(name, priority)| Member {
        name: name.to_owned(),
        params: SchedParams::fifo(priority),
    });
    let theirs = Arc::clone(&scene);
    let body = move |thread| theirs.live(thread);
    run_gang(&Os, &members, Some(&CpuSet::from_iter([cpu])), body).map_err(why)?;
    let waited = scene.waited.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(*waited)
}

pub(super) fn measured(
    effort: &Effort,
    here: &Machine,
    cpu: u32,
    findings: &mut Findings,
) -> Result<(), Failure> {
    // Shorter than what real-time threads may take of a second (sched_rt_runtime_us).
    let hog = Nanos::from_millis(effort.of(30, 300));
    let busy = Busy::calibrate(&Os);
    let without = wait(false, hog, busy, cpu)?;
    let with = wait(true, hog, busy, cpu)?;
    let title = format!(
        "This machine ({here}): SCHED_FIFO threads on CPU {cpu}, a low one with a mutex for {HELD} of \
         work, a middle one that computes for {hog}"
    );
    let mut table = Table::new(title, ["mutex", "the high thread waits"]);
    table.row(["plain".into(), without.into()]);
    table.row(["that inherits (PTHREAD_PRIO_INHERIT)".into(), with.into()]);
    findings.tables.push(table);
    let millis = |time: Nanos| time.0 as f64 / 1e6;
    findings.claims.extend([
        Claim::source(
            "003-w",
            "A high thread that wants a low one's lock waits for the one in the middle",
            "Priority Inheritance, first paragraphs; on this machine",
        )
        .is(Expect::AtLeast(millis(hog)), millis(without), "ms")
        .note("a plain mutex"),
        Claim::source(
            "003-x",
            "Inheritance lets the low one run until it gives the lock back",
            "Priority Inheritance, third paragraph; on this machine",
        )
        .is(Expect::AtMost(millis(HELD) * 1.2), millis(with), "ms")
        .note(format!("{HELD} of work under the lock")),
    ]);
    Ok(())
}
