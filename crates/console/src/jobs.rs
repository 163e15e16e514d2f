//! Reading traces on the job system.

use std::cell::OnceCell;

use paceline::{Builder, JobSystem};
use platform::{Machine, Os};
use trace::{Executor, Part};

/// An executor that makes jobs of parts. There is no job system before there are any.
#[derive(Default)]
pub struct OnJobs {
    /// None if the system refused a thread: then the caller works alone.
    js: OnceCell<Option<JobSystem<Os>>>,
}

impl Executor for OnJobs {
    fn width(&self) -> usize {
        Os.limits().effective_parallelism()
    }

    fn run(&self, parts: Vec<Part<'_>>) {
        let Some(js) = self.js.get_or_init(|| Builder::new().build().ok()) else {
            for part in parts {
                part();
            }
            return;
        };
        js.scope(|scope| {
            for part in parts {
                scope.spawn(move |_| part());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Goal: each part runs once, and all are over when the call returns. Method: a bit for each part,
    /// several times.
    #[test]
    fn each_part_is_done_once() {
        let jobs = OnJobs::default();
        let done = AtomicU64::new(0);
        for _ in 0..20 {
            done.store(0, Ordering::Relaxed);
            let part = |at: u64| -> Part<'_> {
                let done = &done;
                Box::new(move || {
                    done.fetch_add(1 << at, Ordering::Relaxed);
                })
            };
            jobs.run((0..64).map(part).collect());
            assert_eq!(done.load(Ordering::Relaxed), u64::MAX);
        }
    }
}
