//! Threads that begin together, or not at all.

use std::panic::resume_unwind;
use std::sync::Arc;

use platform::{CpuSet, Platform, SpawnError, Thread, ThreadSpec};

use super::{Flag, NaiveWait};

const WAIT: u64 = 0;
const GO: u64 = 1;
const GIVE_UP: u64 = 2;

/// Runs `body` with the numbers from 0 on, each on a thread of its own with this name and, in turn, these
/// masks, and returns when all have ended. None begins before all are there.
///
/// # Errors
/// If the system refuses a thread; then nothing was run.
///
/// # Panics
/// If a body does.
pub(super) fn run_together<P: Platform>(
    platform: &P,
    names: &[String],
    masks: &[CpuSet],
    body: impl Fn(usize) + Send + Sync + 'static,
) -> Result<(), SpawnError> {
    let gate = Arc::new((Flag::<P>::new(WAIT), body));
    let spawn = |(number, name): (usize, &String)| {
        let spec = ThreadSpec {
            name: name.clone(),
            mask: masks.iter().cycle().nth(number).cloned(),
            ..ThreadSpec::default()
        };
        let (gate, its_platform) = (Arc::clone(&gate), platform.clone());
        let thread = move || {
            let (flag, body) = &*gate;
            NaiveWait::Park.until(&its_platform, flag, |value| value != WAIT);
            if flag.get() == GO {
                body(number);
            }
        };
        platform.spawn(spec, Box::new(thread))
    };
    let mut threads = Vec::with_capacity(names.len());
    let mut refused = None;
    for named in names.iter().enumerate() {
        match spawn(named) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    gate.0.set(if refused.is_some() { GIVE_UP } else { GO });
    let ends: Vec<_> = threads.into_iter().map(Thread::join).collect();
    if let Some(panicked) = ends.into_iter().find_map(Result::err) {
        resume_unwind(panicked);
    }
    refused.map_or(Ok(()), Err)
}
