//! Adaptation to the machine, which is looked at while the job system runs.
//!
//! This part knows how many threads can run at this moment ([`live`]), which worker belongs on which CPUs
//! ([`place`]), whether other programs want the same CPUs ([`interference`]), whether the kernel puts a woken
//! worker where it is in the way ([`steer`]), whether gangs are better left to one thread ([`gangs`]), and
//! which threads the kernel is to help ([`roles`]).
//! [`explain()`] gives the reasons for the result.

mod caches;
mod environment;
mod explain;
mod gangs;
mod interference;
mod live;
mod local;
mod place;
mod roles;
mod steer;

use event::{EventKind, Nanos};
use platform::{Atomic, CpuSet, Limits, Machine, Ordering, Platform, SpawnError};

use super::words::{PlacedThread, WakeReport, WorkerWords};
use super::workers::{Caller, Workers};
use super::{Checkpoint, Help, Interference, Placed, Placement, Settings};
use crate::error::BuildError;
use crate::limits::WORKERS_MAX;
use crate::policy::Width;

use environment::Environment;
use gangs::Gangs;
use interference::{Noticed, Observer};
use live::{calling_thread, limits_of};
use roles::Helping;
use steer::{Nudging, Steerer, Steering};

pub use explain::explain;

pub(crate) use caches::caches;
pub(crate) use live::{LiveMachine, MachineView, WorkersRequest};
pub(crate) use local::AdaptLocal;

/// Whether a worker may be a slow one.
pub(crate) const HAS_SLOW_WORKERS: bool = true;

/// A job system's knowledge of its machine, and the actions that follow from it.
pub(crate) struct Adapt<P: Platform> {
    gangs: Gangs<P>,
    helping: Helping<P>,
    live: LiveMachine<P>,
    noticed: Noticed<P>,
    steering: Steering<P>,
    slow_takes_loops: bool,
}

impl<P: Platform> Adapt<P> {
    /// # Errors
    /// If a variable of the environment cannot be read, or if none of the CPUs asked for may be used.
    pub(crate) fn new(platform: &P, settings: Settings) -> Result<Adapt<P>, BuildError> {
        let environment = if settings.asks_environment {
            Environment::read()?
        } else {
            Environment::default()
        };
        let cpus = environment.cpus.or(settings.cpus);
        let limits = usable_limits(platform, cpus.as_ref())?;
        let request = match settings.workers {
            None => WorkersRequest::Fitting {
                reserve: settings.reserve,
            },
            Some(workers) => WorkersRequest::Exactly {
                workers,
                width_then: limits.effective_parallelism(),
            },
        };
        let topology = platform.machine().topology();
        let follow = settings.follows_machine.then(|| platform.now());
        let placement = environment.placement.unwrap_or(settings.placement);
        let machine = placement.has_classes().then(|| topology.clone());
        let view = MachineView::new(limits, request, WORKERS_MAX).divided_by(machine);
        Ok(Adapt {
            gangs: Gangs::new(),
            helping: Helping::new(settings.help, settings.slice),
            live: LiveMachine::new(view, cpus, follow),
            noticed: Noticed::new(),
            steering: Steering::new(settings.steering),
            slow_takes_loops: placement == Placement::LittleCoresInLoops,
        })
    }

    /// An `Adapt` that does nothing, and never refreshes `view`. There are as many workers as `view` says.
    #[cfg(all(test, paceline_models, not(miri)))]
    pub(crate) fn still(view: MachineView) -> Adapt<P> {
        Adapt {
            gangs: Gangs::new(),
            helping: Helping::new(Vec::new(), None),
            live: LiveMachine::new(view, None, None),
            noticed: Noticed::new(),
            steering: Steering::new(false),
            slow_takes_loops: true,
        }
    }

    fn steerer<'a, C>(&'a self, caller: &'a C) -> Steerer<'a, P, C> {
        Steerer {
            steering: &self.steering,
            live: &self.live,
            noticed: &self.noticed,
            caller,
        }
    }

    fn observer<'a, C>(&'a self, caller: &'a C) -> Observer<'a, P, C> {
        Observer {
            noticed: &self.noticed,
            live: &self.live,
            caller,
        }
    }
}

/// The core's side.
impl<P: Platform> Adapt<P> {
    /// The calling thread has begun to use the job system: a worker that was just started, or a thread from
    /// outside that was given a thread slot, which another thread may have had before. A worker publishes
    /// its thread's id here, and gets the mask and the help that the other workers have.
    pub(crate) fn thread_started<C: Caller<P>>(&self, caller: &C) {
        self.observer(caller).forget_usage();
        self.gangs.forget_usage(caller);
        let Some(words) = caller.words() else { return };
        let workers = caller.workers();
        let thread = workers.platform().thread_id();
        if self.needs_thread_ids() {
            // Relaxed: see `with_thread`.
            words.thread.store(thread, Ordering::Relaxed);
        }
        if self.live.has_places() {
            workers.with_given_mask(caller.index(), |cpus| {
                // Refused: as for the mask that the thread was started with.
                let _ = workers.machine().set_mask(thread, cpus);
            });
        }
        self.helping.help_newcomer(workers, caller.index());
    }

    /// The calling thread ends. `worker`: its index, if it is a worker. Otherwise it had a role at some
    /// time.
    pub(crate) fn thread_ended<W: Workers<P>>(&self, workers: &W, worker: Option<usize>) {
        let Some(index) = worker else {
            let thread = workers.platform().thread_id();
            self.helping.forget_role_thread(workers, thread);
            return;
        };
        if !self.needs_thread_ids() {
            return;
        }
        if let Some(words) = workers.worker(index) {
            workers.while_they_live(|| words.thread.store(0, Ordering::Relaxed));
            self.helping.forget_worker(index);
        }
    }

    /// Whether anything is ever done to a worker by its thread's id.
    fn needs_thread_ids(&self) -> bool {
        self.steering.on || self.live.is_on || self.helping.is_requested
    }

    /// The calling thread has just sent a wake-up to this worker.
    #[inline]
    pub(crate) fn signalled<C: Caller<P>>(&self, caller: &C, index: usize) {
        self.steerer(caller).expect_start(index);
    }

    /// The calling thread is a worker that runs again after a wake-up.
    pub(crate) fn woke<C: Caller<P>>(&self, caller: &C, report: &WakeReport) {
        self.steerer(caller).learn(report);
    }

    /// The calling thread, a worker, is about to rest and to wake this worker in its place. The latter lives
    /// on and rests.
    pub(crate) fn hands_over<C: Caller<P>>(&self, caller: &C, index: usize) {
        self.steerer(caller).hand_over(index);
    }

    /// The calling thread is a worker that runs again in the place of another one.
    pub(crate) fn takes_over<C: Caller<P>>(&self, caller: &C) {
        self.steerer(caller).take_over();
    }

    /// Whether the calling thread, a worker without work, should leave its CPU at once instead of spinning
    /// there, because it has taken its waker's CPU.
    pub(crate) fn is_in_the_way<C: Caller<P>>(&self, caller: &C) -> bool {
        self.steerer(caller).displaces_waker()
    }

    /// The calling thread is a worker that has run out of work, and is about to announce that it sleeps.
    #[inline]
    pub(crate) fn runs_dry<C: Caller<P>>(&self, caller: &C) {
        self.observer(caller).note_usage();
    }

    /// The calling thread is a worker that is about to park.
    pub(crate) fn parks<C: Caller<P>>(&self, caller: &C) {
        self.steerer(caller).before_park();
    }

    /// The calling thread passes a checkpoint.
    #[inline]
    pub(crate) fn passes<C: Caller<P>>(&self, caller: &C, checkpoint: Checkpoint) {
        let steerer = self.steerer(caller);
        match checkpoint {
            Checkpoint::Block(now) => {
                steerer.check_overdue_at(now);
                steerer.leave_waker_at(now);
            }
            Checkpoint::Fairness => steerer.leave_waker(),
            Checkpoint::Publishing => steerer.check_overdue(),
            Checkpoint::Outside if self.live.is_on => {
                let now = caller.workers().platform().now();
                self.follow_machine(caller, now);
            }
            Checkpoint::Outside => {}
        }
    }

    /// The calling thread begins to wait, and has nothing to run.
    pub(crate) fn watch(&self) -> Vigil<'_, P> {
        Vigil {
            adapt: self,
            nudging: None,
        }
    }

    /// A frame begins on this thread. True if this call took some time, because there was something to do.
    pub(crate) fn frame_begins<C: Caller<P>>(&self, caller: &C, now: Nanos) -> bool {
        if self.live.is_on {
            self.follow_machine(caller, now);
        }
        self.observer(caller).apply_verdict(now)
    }

    /// A frame has ended on this thread. Never waits.
    pub(crate) fn frame_ended<C: Caller<P>>(&self, caller: &C, begin: Nanos, end: Nanos) {
        self.observer(caller).end_frame(begin, end);
    }

    /// Whether it is to be told of the jobs of groups that workers run.
    #[inline]
    pub(crate) fn watches_groups(&self) -> bool {
        self.live.is_on
    }

    /// The calling thread is a worker that has run a job of a group.
    #[inline]
    pub(crate) fn group_job_ended<C: Caller<P>>(&self, caller: &C, began: Nanos, ended: Nanos) {
        self.gangs.job_ended(caller, began, ended);
    }

    /// Whether it pays to have workers run jobs of groups.
    #[inline]
    pub(crate) fn groups_are_worth_sharing(&self, now: impl FnOnce() -> Nanos) -> bool {
        self.gangs.are_worth_sharing(now)
    }

    /// Whether a worker without work should call [`refresh_if_requested`](Adapt::refresh_if_requested).
    #[inline]
    pub(crate) fn refresh_is_requested(&self) -> bool {
        self.live.refresh_is_requested()
    }

    /// Looks at the machine if a refresh was requested. The calling thread is a worker without work. It
    /// does not count as searching meanwhile, because other threads would leave work to it.
    #[cold]
    pub(crate) fn refresh_if_requested<C: Caller<P>>(&self, caller: &C) {
        if self.live.take_request() {
            self.refresh(caller);
        }
    }

    /// The number of threads that can run at the same time, and whether CPU time is short. If it is short,
    /// a thread that spins spends time that other threads of this job system need.
    #[inline]
    pub(crate) fn width(&self) -> Width {
        let mut width = self.live.width();
        width.is_rationed |= self.noticed.are_fewer();
        width
    }

    /// Makes sure that a worker has the mask of its place. Called under the lock that keeps the worker
    /// alive. `given`: the mask that it was given last.
    pub(crate) fn assign_place<W: Workers<P>>(
        &self,
        workers: &W,
        words: &WorkerWords<P>,
        given: &mut Option<CpuSet>,
    ) -> Placed {
        let place = self.live.assign_place(workers.platform(), words, given);
        Placed {
            is_slow: place.map(|place| place.is_slow),
            mask: given.as_ref().or(self.live.configured_cpus()).cloned(),
        }
    }

    /// Whether slow workers take part in loops.
    pub(crate) fn slow_takes_loops(&self) -> bool {
        self.slow_takes_loops
    }

    /// How many times as long as on a fast CPU a piece of work is believed to take a worker, in sixteenths.
    pub(crate) fn times_16(&self, words: &WorkerWords<P>) -> u32 {
        let place = self.live.place(words.ordinal());
        place.map_or(16, |place| place.times_16)
    }
}

/// The program's side, called by [`JobSystem`](crate::JobSystem).
impl<P: Platform> Adapt<P> {
    /// Starts the first workers. If their number was not asked for, those that the system starts are enough.
    ///
    /// # Errors
    /// If the system refuses a thread of a number that was asked for, or does not take the settings of one.
    pub(crate) fn start<W: Workers<P>>(&self, workers: &W) -> Result<(), SpawnError> {
        workers.set_target(self.live.first_workers());
        match self.live.fill(workers) {
            Err(error) if self.live.must_start(&error) => Err(error),
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
        self.live.request_workers(workers, count);
        self.live.fill(workers)
    }

    /// The calling thread, which has this id, adopts a role.
    pub(crate) fn adopt<W: Workers<P>>(&self, workers: &W, thread: u64) {
        self.helping.adopt(workers, &self.live, thread);
    }

    /// The thread with this id gives a role back.
    pub(crate) fn give_back<W: Workers<P>>(&self, workers: &W, thread: u64) {
        self.helping.give_back(workers, &self.live, thread);
    }

    /// The requests to the kernel, and its answers.
    pub(crate) fn help(&self) -> Vec<Help> {
        self.helping.help()
    }

    /// The effect of other programs on this job system.
    pub(crate) fn interference(&self) -> Interference {
        self.noticed.report()
    }

    /// The reasons for the number of workers and for their places, and whether they are left out of groups.
    pub(crate) fn explain(&self, now: Nanos) -> Vec<String> {
        let mut sentences = self.live.explain();
        sentences.extend(self.gangs.explain(now));
        sentences
    }

    /// The limits that the last refresh found.
    pub(crate) fn limits<W: Workers<P>>(&self, _workers: &W) -> Limits {
        self.live.limits()
    }
}

/// The part of the machine that the calling thread may use, within the CPUs asked for.
fn usable_limits<P: Platform>(platform: &P, asked: Option<&CpuSet>) -> Result<Limits, BuildError> {
    let limits = limits_of(platform, &[calling_thread(platform)], asked, &CpuSet::new());
    let usable = limits.usable();
    match asked {
        Some(asked) if asked.intersection(&usable).is_empty() => Err(BuildError::NoCpu {
            asked: asked.clone(),
            usable,
        }),
        _ => Ok(limits),
    }
}

/// Refreshes.
impl<P: Platform> Adapt<P> {
    /// Requests a refresh if one is due.
    #[inline]
    fn follow_machine<C: Caller<P>>(&self, caller: &C, now: Nanos) {
        if self.live.takes_turn(now) {
            self.request_refresh(caller);
        }
    }

    /// A refresh takes a tenth of a millisecond, which is too much for a thread that has a frame to begin.
    /// So a worker does it as soon as it has no work. If all workers sleep, one is woken. If there are no
    /// workers, or if none has done the last refresh, the calling thread does it.
    #[cold]
    fn request_refresh<C: Caller<P>>(&self, caller: &C) {
        let workers = caller.workers();
        if self.live.request_refresh() || workers.active() == 0 {
            self.refresh(caller);
            return;
        }
        // SeqCst, partner: the fence of a worker that has announced that it sleeps and looks around once
        // more.
        P::fence(Ordering::SeqCst);
        caller.wake_one();
    }

    #[cold]
    fn refresh<C: Caller<P>>(&self, caller: &C) {
        let workers = caller.workers();
        let platform = workers.platform();
        let mut threads = workers.placed();
        let me = live::calling_thread(platform);
        threads.push(PlacedThread {
            given: self.helping.role_mask(me.thread),
            ..me
        });
        let limits = self.live.refresh(platform, &threads);
        self.learn(caller, limits);
    }

    fn learn<C: Caller<P>>(&self, caller: &C, limits: Limits) {
        let workers = caller.workers();
        let mut target = 0;
        let learned = self.live.learn(limits, |learned, wanted| {
            target = wanted;
            // Counted first: a thread that sees the workers sees the count.
            let resizes = &caller.counters().resizes;
            resizes.add(learned.change.is_some().into());
            workers.set_target(wanted);
        });
        let now = workers.platform().now();
        self.live.refreshed(now, learned.must_confirm);
        if learned.has_new_cpus && self.steering.on {
            self.live.widen_masks(workers);
        }
        self.helping
            .renew_role_masks(workers.platform(), &self.live);
        if learned.change.is_some() || learned.is_undermanned || learned.has_new_places {
            // Refused: the next refresh tries again.
            let _ = self.live.fill(workers);
        }
        if let Some(why) = learned.change {
            let arg = (why as u64) << 32 | target as u64;
            caller.note(EventKind::Resized, 0, arg);
        }
        caller.counters().looks.add(1);
    }
}

/// The help that a waiting thread with nothing to run gives to workers that have no CPU.
pub(crate) struct Vigil<'a, P: Platform> {
    adapt: &'a Adapt<P>,
    nudging: Option<Nudging>,
}

impl<P: Platform> Vigil<'_, P> {
    /// The calling thread passes by, and helps signalled workers that have not started in time.
    #[inline]
    pub(crate) fn passes<C: Caller<P>>(&self, caller: &C, now: Nanos) {
        self.adapt.steerer(caller).check_overdue_at(now);
    }

    /// The time until which the calling thread has to spin because workers that lost their CPU were nudged.
    /// `None`: it may sleep.
    pub(crate) fn spins_until<C: Caller<P>>(&mut self, caller: &C, now: Nanos) -> Option<Nanos> {
        let steerer = self.adapt.steerer(caller);
        steerer.nudge_preempted(&mut self.nudging, now)
    }

    /// The time until which the calling thread may sleep without looking for signalled workers.
    pub(crate) fn sleeps_until(&self) -> Nanos {
        self.adapt.steering.overdue_at().unwrap_or(Nanos::MAX)
    }

    /// The calling thread is about to sleep.
    pub(crate) fn sleeps<C: Caller<P>>(&self, caller: &C) {
        self.adapt.steerer(caller).leave_cpu();
    }

    /// The calling thread has slept.
    pub(crate) fn has_slept(&mut self) {
        self.nudging = None;
    }
}
