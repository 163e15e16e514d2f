//! `--background`: endless jobs without a waiter, on the same job system as the frames.
//!
//! Each computes for a millisecond and schedules itself again. They go through the same calls as the jobs of
//! frames: nothing tells the job system that they can wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use event::Nanos;
use paceline::{Context, JobSystem};
use platform::Os;
use workload::busy::Busy;

use measure::thread_cpu;

/// The work of one slice.
const SLICE: Nanos = Nanos::from_millis(1);

/// Background jobs, until they are stopped or dropped.
pub(super) struct Background {
    state: Arc<State>,
}

struct State {
    stop: AtomicBool,
    /// CPU time of all slices so far.
    used: AtomicU64,
    busy: Busy,
}

impl Background {
    pub(super) fn start(js: &JobSystem<Os>, count: u32, busy: Busy) -> Background {
        let state = Arc::new(State {
            stop: AtomicBool::new(false),
            used: AtomicU64::new(0),
            busy,
        });
        for _ in 0..count {
            let state = Arc::clone(&state);
            js.job("background").schedule(move |cx| slice(cx, state));
        }
        js.flush();
        Background { state }
    }

    /// No further slices; the CPU time used so far.
    pub(super) fn stop(&self) -> Nanos {
        self.state.stop.store(true, Ordering::Relaxed);
        Nanos(self.state.used.load(Ordering::Relaxed))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

fn slice(cx: &Context<'_, Os>, state: Arc<State>) {
    if state.stop.load(Ordering::Relaxed) {
        return;
    }
    let before = thread_cpu();
    state.busy.spin_for(SLICE, 1);
    if let (Some(before), Some(after)) = (before, thread_cpu()) {
        state.used.fetch_add((after - before).0, Ordering::Relaxed);
    }
    cx.job("background").schedule(move |cx| slice(cx, state));
}
