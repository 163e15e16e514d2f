//! The settings of a slice's job system, drawn from its seed: small and large, quiet and recording, with
//! hooks and a sink that panic, with resizes, and with one of several ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use event::{Event, Random, Sink};
use paceline::{BuildError, JobSystem, RingReader, Rings};

use super::node::CROWD_NAME;
use super::world::fail;
use crate::combination::Combination;

/// How the job system goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// With nothing to do.
    Idle,
    /// With work in flight, and jobs that never can run.
    Busy,
    /// Its last owner goes with the body of a job,
    Body,
    /// with a result that no handle takes,
    Result,
    /// with a cancelled job,
    Cancelled,
    /// with the closure of a range.
    Range,
}

/// The settings.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Queues of two tickets.
    small: bool,
    /// Room for few jobs, and no crowds.
    tight: bool,
    rings: bool,
    sink_panics: bool,
    hooks_panic: bool,
    pub(super) role: bool,
    pub(super) resizes: bool,
    /// Threads that run programs at the same time.
    pub(super) clients: u64,
    pub(super) ending: Ending,
}

/// Names of the settings that can be left out.
pub(super) const NAMES: [&str; 9] = [
    "small", "tight", "rings", "sink", "hooks", "role", "resize", "busy-end", "owner",
];

impl Setup {
    pub(super) fn draw(seed: u64, without: &[String]) -> Setup {
        let mut random = Random::new(seed ^ 0x5e7);
        let mut one_of = |name: &str, number: u64| {
            let drawn = random.below(number) == 0;
            drawn && !without.iter().any(|word| word == name)
        };
        let (small, tight) = (one_of("small", 3), one_of("tight", 4));
        let sink_panics = one_of("sink", 6);
        let rings = one_of("rings", 4) && !sink_panics;
        let hooks_panic = one_of("hooks", 5);
        let (role, resizes) = (one_of("role", 2), one_of("resize", 2));
        let (owner, busy) = (one_of("owner", 2), one_of("busy-end", 2));
        let ending = match (owner, random.below(4)) {
            (true, 0) => Ending::Body,
            (true, 1) => Ending::Result,
            (true, 2) => Ending::Cancelled,
            (true, _) => Ending::Range,
            (false, _) if busy => Ending::Busy,
            (false, _) => Ending::Idle,
        };
        Setup {
            small,
            tight,
            rings,
            sink_panics,
            hooks_panic,
            role,
            resizes,
            clients: random.within(1, 4),
            ending,
        }
    }

    /// The kinds that programs for this job system leave out: there may be no room for crowds.
    pub(super) fn left_out_of_programs(&self, without: &[String]) -> Vec<String> {
        let crowd = self.tight.then(|| CROWD_NAME.to_owned());
        without.iter().cloned().chain(crowd).collect()
    }

    pub(super) fn build(
        &self,
        combination: &Combination,
        name: &str,
        hooks: &Arc<Hooks>,
    ) -> Result<(JobSystem, Option<RingReader>), BuildError> {
        let mut builder = combination.builder(name);
        if self.small {
            builder = builder.queue_capacity(2);
        }
        if self.tight {
            builder = builder.max_jobs(1 << 14);
        }
        let mut reader = None;
        if self.rings {
            let (rings, its_reader) = Rings::new(1024);
            builder = builder.sink(rings);
            reader = Some(its_reader);
        }
        if self.sink_panics {
            builder = builder.sink(Arc::new(PanickingSink::default()));
        }
        let panics = self.hooks_panic;
        let (started, stopped) = (Arc::clone(hooks), Arc::clone(hooks));
        let builder = builder
            .on_thread_start(move |_| Hooks::call(&started.started, panics))
            .on_thread_stop(move |_| Hooks::call(&stopped.stopped, panics))
            .on_unwaited_panic(move |_| {
                if panics {
                    fail();
                }
            });
        Ok((builder.build()?, reader))
    }

    /// Whether panics are counted that the programs do not count themselves.
    pub(super) fn counts_more_hook_panics(&self) -> bool {
        self.hooks_panic || self.sink_panics
    }
}

/// How often threads began and ended.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) started: AtomicU64,
    pub(super) stopped: AtomicU64,
}

impl Hooks {
    fn call(counter: &AtomicU64, panics: bool) {
        let before = counter.fetch_add(1, Ordering::SeqCst);
        if panics && before.is_multiple_of(2) {
            fail();
        }
    }

    /// Whether each thread that has begun has ended.
    pub(super) fn are_all_gone(&self) -> bool {
        let stopped = self.stopped.load(Ordering::SeqCst);
        stopped == self.started.load(Ordering::SeqCst)
    }
}

/// Panics now and then.
#[derive(Default)]
struct PanickingSink(AtomicU64);

impl Sink for PanickingSink {
    fn record(&self, _: &Event) {
        if self.0.fetch_add(1, Ordering::Relaxed) % 97 == 96 {
            fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Goal: all endings are drawn, and those that are left out are not. Method: a hundred seeds, with
    /// everything and without anything.
    #[test]
    fn settings_are_drawn_and_left_out() {
        let none: Vec<String> = NAMES.map(Into::into).to_vec();
        let mut endings = BTreeSet::new();
        for seed in 0..100 {
            endings.insert(format!("{:?}", Setup::draw(seed, &[]).ending));
            let plain = Setup::draw(seed, &none);
            assert_eq!(plain.ending, Ending::Idle);
            assert!(!plain.small && !plain.tight && !plain.rings && !plain.role && !plain.resizes);
            assert!(!plain.counts_more_hook_panics());
        }
        assert_eq!(endings.len(), 6, "{endings:?}");
    }
}
