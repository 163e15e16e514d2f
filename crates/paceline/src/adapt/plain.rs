//! No adaptation: the machine is a number of CPUs, which is asked for once.
//!
//! There are no masks and no places, no refreshes, no steering, no help of the kernel and no notice of other
//! programs. What a program asks for that needs any of these is refused where there is an answer to give
//! ([`Builder::cpus`](crate::Builder::cpus), the environment, [`Help`]), and else has no effect.
//!
//! Invariant: the number of workers is the one that the machine or the program gave, or if the system has
//! refused a thread, the number of those before it.

use std::marker::PhantomData;

use event::Nanos;
use platform::{Limits, Lock, Machine, Platform, RefusalKind, SchedParams, SpawnError, Topology};

use super::environment::{Lookup, of_process, variable};
use super::words::{WakeReport, WorkerWords};
use super::workers::{Caller, Workers};
use super::{Checkpoint, Help, Interference, Placed, Settings};
use crate::error::BuildError;
use crate::policy::Width;

/// Whether a worker may be a slow one.
pub(crate) const HAS_SLOW_WORKERS: bool = false;

/// The reason for what is refused here.
const NOT_COMPILED_IN: &str =
    "adaptation to the machine is not compiled in: build with feature `adapt` of crate paceline";

/// A job system's knowledge of its machine.
pub(crate) struct PlainAdapt<P: Platform> {
    /// The number of threads that can run at the same time, as the machine said it.
    width: usize,
    help: Vec<SchedParams>,
    wanted: P::Lock<Wanted>,
}

/// The number of workers.
struct Wanted {
    workers: usize,
    /// The program has asked for this number.
    is_asked_for: bool,
    /// The last refusal of a thread.
    refused: Option<SpawnError>,
}

/// A thread's memory of its machine: there is none.
pub(crate) struct PlainLocal;

impl PlainLocal {
    pub(crate) fn new() -> PlainLocal {
        PlainLocal
    }
}

impl<P: Platform> PlainAdapt<P> {
    /// # Errors
    /// If the program or the environment asks for CPUs or a placement.
    pub(crate) fn new(platform: &P, settings: Settings) -> Result<PlainAdapt<P>, BuildError> {
        if settings.asks_environment {
            refuse_variables(&of_process)?;
        }
        if settings.cpus.is_some() {
            let setting = "cpus";
            return Err(BuildError::NotCompiledIn { setting });
        }
        let width = platform.machine().parallelism();
        let fitting = width.saturating_sub(settings.reserve).max(1);
        Ok(PlainAdapt {
            width,
            help: settings.help,
            wanted: P::Lock::new(Wanted {
                workers: settings.workers.unwrap_or(fitting),
                is_asked_for: settings.workers.is_some(),
                refused: None,
            }),
        })
    }

    /// Whether slow workers take part in loops.
    pub(crate) fn slow_takes_loops(&self) -> bool {
        false
    }

    /// Starts the workers that are missing, as many as the system starts.
    fn fill<W: Workers<P>>(&self, workers: &W) -> Result<(), SpawnError> {
        workers.fill_or_settle(|refused| {
            self.wanted.with(|wanted| {
                wanted.workers = refused.before;
                wanted.refused = Some(refused.error);
                workers.set_target(refused.before);
            });
        })
    }
}

/// # Errors
/// If a variable is set that is about masks or places.
fn refuse_variables(lookup: Lookup<'_>) -> Result<(), BuildError> {
    for name in ["PACELINE_CPUS", "PACELINE_PLACEMENT"] {
        let refuse = |_: &str| Err(format!("{NOT_COMPILED_IN}, or unset the variable"));
        variable::<()>(lookup, name, &refuse)?;
    }
    Ok(())
}

/// The core's side.
impl<P: Platform> PlainAdapt<P> {
    #[inline]
    pub(crate) fn thread_started<C: Caller<P>>(&self, _caller: &C) {}

    #[inline]
    pub(crate) fn thread_ended<W: Workers<P>>(&self, _workers: &W, _worker: Option<usize>) {}

    #[inline]
    pub(crate) fn signalled<C: Caller<P>>(&self, _caller: &C, _index: usize) {}

    #[inline]
    pub(crate) fn woke<C: Caller<P>>(&self, _caller: &C, _report: &WakeReport) {}

    #[inline]
    pub(crate) fn hands_over<C: Caller<P>>(&self, _caller: &C, _index: usize) {}

    #[inline]
    pub(crate) fn takes_over<C: Caller<P>>(&self, _caller: &C) {}

    #[inline]
    pub(crate) fn is_in_the_way<C: Caller<P>>(&self, _caller: &C) -> bool {
        false
    }

    #[inline]
    pub(crate) fn runs_dry<C: Caller<P>>(&self, _caller: &C) {}

    #[inline]
    pub(crate) fn parks<C: Caller<P>>(&self, _caller: &C) {}

    #[inline]
    pub(crate) fn passes<C: Caller<P>>(&self, _caller: &C, _checkpoint: Checkpoint) {}

    #[inline]
    pub(crate) fn watch(&self) -> PlainVigil<'_, P> {
        PlainVigil(PhantomData)
    }

    #[inline]
    pub(crate) fn frame_begins<C: Caller<P>>(&self, _caller: &C, _now: Nanos) -> bool {
        false
    }

    #[inline]
    pub(crate) fn frame_ended<C: Caller<P>>(&self, _caller: &C, _begin: Nanos, _end: Nanos) {}

    #[inline]
    pub(crate) fn watches_groups(&self) -> bool {
        false
    }

    #[inline]
    pub(crate) fn group_job_ended<C: Caller<P>>(&self, _caller: &C, _began: Nanos, _ended: Nanos) {}

    #[inline]
    pub(crate) fn groups_are_worth_sharing(&self, _now: impl FnOnce() -> Nanos) -> bool {
        true
    }

    #[inline]
    pub(crate) fn refresh_is_requested(&self) -> bool {
        false
    }

    #[inline]
    pub(crate) fn refresh_if_requested<C: Caller<P>>(&self, _caller: &C) {}

    /// The number of threads that can run at the same time.
    #[inline]
    pub(crate) fn width(&self) -> Width {
        Width {
            threads: self.width,
            is_rationed: false,
        }
    }

    #[inline]
    pub(crate) fn assign_place<W: Workers<P>>(
        &self,
        _workers: &W,
        _words: &WorkerWords<P>,
        _given: &mut Option<platform::CpuSet>,
    ) -> Placed {
        Placed {
            is_slow: None,
            mask: None,
        }
    }

    /// How many times as long as on a fast CPU a piece of work takes a worker, in sixteenths.
    #[inline]
    pub(crate) fn times_16(&self, _words: &WorkerWords<P>) -> u32 {
        16
    }
}

/// The program's side, called by [`JobSystem`](crate::JobSystem).
impl<P: Platform> PlainAdapt<P> {
    /// Starts the first workers. If their number was not asked for, those that the system starts are enough.
    ///
    /// # Errors
    /// If the system refuses a thread of a number that was asked for, or does not take the settings of one.
    pub(crate) fn start<W: Workers<P>>(&self, workers: &W) -> Result<(), SpawnError> {
        let is_asked_for = self.wanted.with(|wanted| {
            workers.set_target(wanted.workers);
            wanted.is_asked_for
        });
        match self.fill(workers) {
            Err(error) if is_asked_for || error.kind() == RefusalKind::Invalid => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes the number of regular workers the one that the program requests.
    ///
    /// # Errors
    /// The first refusal of the system, after which fewer workers run.
    pub(crate) fn resize<W: Workers<P>>(
        &self,
        workers: &W,
        count: usize,
    ) -> Result<(), SpawnError> {
        self.wanted.with(|wanted| {
            *wanted = Wanted {
                workers: count,
                is_asked_for: true,
                refused: None,
            };
            workers.set_target(count);
        });
        self.fill(workers)
    }

    #[inline]
    pub(crate) fn adopt<W: Workers<P>>(&self, _workers: &W, _thread: u64) {}

    #[inline]
    pub(crate) fn give_back<W: Workers<P>>(&self, _workers: &W, _thread: u64) {}

    /// The requests to the kernel, none of which was passed on.
    pub(crate) fn help(&self) -> Vec<Help> {
        let refused = |asked: &SchedParams| Help {
            asked: asked.clone(),
            granted: false,
            why: NOT_COMPILED_IN.to_owned(),
        };
        self.help.iter().map(refused).collect()
    }

    /// Other programs are not noticed.
    pub(crate) fn interference(&self) -> Interference {
        Interference::default()
    }

    /// The reasons for the number of workers.
    pub(crate) fn explain(&self, _now: Nanos) -> Vec<String> {
        let sentences =
            |wanted: &mut Wanted| reasons(wanted.workers, self.width, wanted.refused.as_ref());
        self.wanted.with(sentences)
    }

    /// The limits of the machine.
    pub(crate) fn limits<W: Workers<P>>(&self, workers: &W) -> Limits {
        workers.machine().limits()
    }
}

/// The help that a waiting thread gives to workers that have no CPU: none.
pub(crate) struct PlainVigil<'a, P>(PhantomData<&'a P>);

impl<P: Platform> PlainVigil<'_, P> {
    #[inline]
    pub(crate) fn passes<C: Caller<P>>(&self, _caller: &C, _now: Nanos) {}

    #[inline]
    pub(crate) fn spins_until<C: Caller<P>>(&mut self, _caller: &C, _now: Nanos) -> Option<Nanos> {
        None
    }

    #[inline]
    pub(crate) fn sleeps_until(&self) -> Nanos {
        Nanos::MAX
    }

    /// The calling thread is about to sleep.
    pub(crate) fn sleeps<C: Caller<P>>(&self, _: &C) {}

    #[inline]
    pub(crate) fn has_slept(&mut self) {}
}

/// For each CPU, by its number: its last-level cache. None is known.
pub(crate) fn caches<P: Platform>(_platform: &P) -> Vec<u32> {
    Vec::new()
}

/// The number of the workers of a job system with default settings on this machine, and the reason for it, a
/// sentence each.
///
/// ```
/// let why = paceline::explain(&paceline::Topology::uniform(8));
/// assert!(why[0].starts_with("7 workers"));
/// ```
pub fn explain(machine: &Topology) -> Vec<String> {
    let width = machine.limits().effective_parallelism();
    reasons(width.saturating_sub(1).max(1), width, None)
}

fn reasons(workers: usize, width: usize, refused: Option<&SpawnError>) -> Vec<String> {
    let why = match refused {
        Some(error) => format!("{workers} workers: {error}."),
        None => format!("{workers} workers; CPUs for {width} threads when this one was made."),
    };
    vec![why, format!("{NOT_COMPILED_IN}.")]
}
