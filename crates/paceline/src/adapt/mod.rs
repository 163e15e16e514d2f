//! What adapts a job system to its machine, behind one door: [`Adapt`].
//!
//! The core runs jobs as if all CPUs were alike, always there and its own. This part knows better: how many
//! threads can run at this moment ([`live`]), which worker belongs on which CPUs ([`place`]), that others
//! want the same CPUs ([`interference`]), that the kernel puts a woken worker where it is in the way
//! ([`steer`]), and which threads are to be helped by the kernel ([`roles`]). What the environment asks for
//! is in [`environment`]. Why all of it is as it is, [`explain()`] tells.
//!
//! The core tells what happens and asks what follows, by the methods of [`Adapt`] and of [`Vigil`]. What this
//! part needs of the core it asks of two traits, [`Workers`] and [`Caller`]. It keeps its own words:
//! [`Local`] for each thread, [`WorkerWords`] for each worker.
//!
//! Invariants
//! - Correctness does not depend on any of it. A job system whose `Adapt` does nothing runs the same jobs.
//! - Nothing here happens per job.

pub(crate) mod environment;
mod explain;
mod interference;
mod live;
mod local;
mod place;
mod roles;
mod steer;
mod words;
mod workers;

use event::{EventKind, Nanos};
use platform::{Atomic, CpuSet, Limits, Machine, Ordering, Platform, SchedParams, SpawnError};

use crate::policy::Width;

use interference::{Noticed, Observer};
use roles::Helping;
use steer::{Nudging, Steerer, Steering};

pub use explain::explain;
pub use interference::{Decision, Interference};
pub use place::Placement;
pub use roles::{Help, Role};

pub(crate) use live::{Asked, Live, Reading, caller, limits_of};
pub(crate) use local::Local;
pub(crate) use words::{PlacedThread, WakeReport, WorkerWords};
pub(crate) use workers::{Caller, Workers};

/// What a job system knows of its machine, and does about it.
pub(crate) struct Adapt<P: Platform> {
    helping: Helping<P>,
    live: Live<P>,
    noticed: Noticed<P>,
    steering: Steering<P>,
}

/// What [`Adapt`] is made of; the builder fills this in.
pub(crate) struct Settings {
    /// What is known of the machine, and what was asked for.
    pub(crate) reading: Reading,
    /// The CPUs that workers were told to stay on.
    pub(crate) cpus: Option<CpuSet>,
    /// Whether the machine is looked at again, and what time it is.
    pub(crate) follow: Option<Nanos>,
    pub(crate) help: Vec<SchedParams>,
    /// The slice that workers ask for.
    pub(crate) slice: Option<Nanos>,
    pub(crate) steering: bool,
}

/// How a thread comes by, from time to time.
#[derive(Clone, Copy)]
pub(crate) enum Passing {
    /// Between two blocks of a loop. It knows the time.
    Block(Nanos),
    /// A worker that looks for work that has waited for long.
    Fairness,
    /// It leaves its jobs to a worker that searches, which may be waiting for a CPU.
    Publishing,
    /// A call from outside.
    Outside,
}

/// A worker's place, as far as the core has to do with it.
pub(crate) struct Placed {
    /// Whether it is a slow worker; `None` where there are no places.
    pub(crate) is_slow: Option<bool>,
    /// The mask for a thread that is started for it.
    pub(crate) mask: Option<CpuSet>,
}

impl<P: Platform> Adapt<P> {
    pub(crate) fn new(settings: Settings) -> Adapt<P> {
        let Settings {
            reading,
            cpus,
            follow,
            help,
            slice,
            steering,
        } = settings;
        Adapt {
            helping: Helping::new(help, slice),
            live: Live::new(reading, cpus, follow),
            noticed: Noticed::new(),
            steering: Steering::new(steering),
        }
    }

    /// It never looks at the machine again, and does nothing. As many workers as `reading` says.
    #[cfg(all(test, not(any(miri, paceline_tsan))))]
    pub(crate) fn still(reading: Reading) -> Adapt<P> {
        Adapt::new(Settings {
            reading,
            cpus: None,
            follow: None,
            help: Vec::new(),
            slice: None,
            steering: false,
        })
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

/// What the core tells and asks.
impl<P: Platform> Adapt<P> {
    /// The calling thread has begun to use the job system: a worker that was just started, or a thread from
    /// outside that was given a thread slot, perhaps after another one. A worker tells its name from now on,
    /// and gets the mask and the help that the others have.
    pub(crate) fn thread_started<C: Caller<P>>(&self, caller: &C) {
        self.observer(caller).forget_usage();
        let Some(words) = caller.words() else { return };
        let workers = caller.workers();
        let name = workers.platform().thread_id();
        if self.asks_names() {
            // Relaxed: see `with_thread`.
            words.thread.store(name, Ordering::Relaxed);
        }
        if self.live.has_places() {
            workers.with_given_mask(caller.index(), |cpus| {
                // Refused: as for the mask that it was started with.
                let _ = workers.machine().set_mask(name, cpus);
            });
        }
        self.helping.help_newcomer(workers, caller.index());
    }

    /// The calling thread ends. `worker`: its index, if it is a worker; else it had a role at some time.
    pub(crate) fn thread_ended<W: Workers<P>>(&self, workers: &W, worker: Option<usize>) {
        let Some(index) = worker else {
            let thread = workers.platform().thread_id();
            self.helping.forget_role_thread(workers, thread);
            return;
        };
        if !self.asks_names() {
            return;
        }
        if let Some(words) = workers.worker(index) {
            workers.while_they_live(|| words.thread.store(0, Ordering::Relaxed));
            self.helping.forget_worker(index);
        }
    }

    /// Whether anything is ever done to a worker by its name.
    fn asks_names(&self) -> bool {
        self.steering.on || self.live.is_on || self.helping.is_asked
    }

    /// The caller has just sent a wake-up to this worker.
    #[inline]
    pub(crate) fn signalled<C: Caller<P>>(&self, caller: &C, index: usize) {
        self.steerer(caller).expect_start(index);
    }

    /// The caller is a worker that runs again after a wake-up.
    pub(crate) fn woke<C: Caller<P>>(&self, caller: &C, report: &WakeReport) {
        self.steerer(caller).learn(report);
    }

    /// Whether the caller, a worker without work, should leave its CPU at once instead of spinning there,
    /// because it is in its waker's place.
    pub(crate) fn is_in_the_way<C: Caller<P>>(&self, caller: &C) -> bool {
        self.steerer(caller).displaces_waker()
    }

    /// The caller is a worker that has run out of work, and is about to say that it sleeps.
    #[inline]
    pub(crate) fn runs_dry<C: Caller<P>>(&self, caller: &C) {
        self.observer(caller).note_usage();
    }

    /// The caller is a worker that is about to park.
    pub(crate) fn parks<C: Caller<P>>(&self, caller: &C) {
        self.steerer(caller).before_park();
    }

    /// The caller comes by.
    #[inline]
    pub(crate) fn passes<C: Caller<P>>(&self, caller: &C, passing: Passing) {
        let steerer = self.steerer(caller);
        match passing {
            Passing::Block(now) => {
                steerer.check_overdue_at(now);
                steerer.leave_waker_at(now);
            }
            Passing::Fairness => steerer.leave_waker(),
            Passing::Publishing => steerer.check_overdue(),
            Passing::Outside if self.live.is_on => {
                let now = caller.workers().platform().now();
                self.follow_machine(caller, now);
            }
            Passing::Outside => {}
        }
    }

    /// The caller begins to wait, and has nothing to run.
    pub(crate) fn watch(&self) -> Vigil<'_, P> {
        Vigil {
            adapt: self,
            nudging: None,
        }
    }

    /// A frame begins on this thread. True if something was done that took some time.
    pub(crate) fn frame_begins<C: Caller<P>>(&self, caller: &C, now: Nanos) -> bool {
        if self.live.is_on {
            self.follow_machine(caller, now);
        }
        self.observer(caller).follow(now)
    }

    /// A frame has ended on this thread. Never waits.
    pub(crate) fn frame_ended<C: Caller<P>>(&self, caller: &C, begin: Nanos, end: Nanos) {
        self.observer(caller).end_frame(begin, end);
    }

    /// Whether a worker that has nothing to do should [look](Adapt::look_if_asked) at the machine.
    #[inline]
    pub(crate) fn asks_for_look(&self) -> bool {
        self.live.is_asked()
    }

    /// Has a look at the machine if one was asked for. The caller is a worker without work, and does not
    /// count as searching meanwhile, since others would leave work to it.
    #[cold]
    pub(crate) fn look_if_asked<C: Caller<P>>(&self, caller: &C) {
        if self.live.take_request() {
            self.look(caller);
        }
    }

    /// How many threads can run at the same time, and whether time is short: a thread that spins then spends
    /// what others of ours need.
    #[inline]
    pub(crate) fn width(&self) -> Width {
        let mut width = self.live.width();
        width.is_rationed |= self.noticed.are_fewer();
        width
    }

    /// Sees to it that a worker has the mask of its place, under the lock that keeps it alive. `given`: the
    /// mask that it was given last.
    pub(crate) fn hold_to_place<W: Workers<P>>(
        &self,
        workers: &W,
        words: &WorkerWords<P>,
        given: &mut Option<CpuSet>,
    ) -> Placed {
        let place = self.live.hold_to_place(workers.platform(), words, given);
        Placed {
            is_slow: place.map(|place| place.is_slow),
            mask: given.as_ref().or(self.live.told_cpus()).cloned(),
        }
    }

    /// How many times as long as on a fast CPU something is believed to take a worker, in sixteenths.
    pub(crate) fn times_16(&self, words: &WorkerWords<P>) -> u32 {
        let place = self.live.place(words.ordinal());
        place.map_or(16, |place| place.times_16)
    }
}

/// What a program tells and asks, from [`JobSystem`](crate::JobSystem).
impl<P: Platform> Adapt<P> {
    /// Starts the first workers.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn start<W: Workers<P>>(&self, workers: &W) -> Result<(), SpawnError> {
        workers.set_target(self.live.first_workers());
        workers.fill()
    }

    /// Makes the number of regular workers what the program asks for.
    ///
    /// # Errors
    /// The first refusal of the system, after which fewer workers run.
    pub(crate) fn resize<W: Workers<P>>(
        &self,
        workers: &W,
        asked: usize,
    ) -> Result<(), SpawnError> {
        self.live.ask_for(workers, asked);
        workers.fill()
    }

    /// The thread with this name, the calling one, adopts a role.
    pub(crate) fn adopt<W: Workers<P>>(&self, workers: &W, thread: u64) {
        self.helping.adopt(workers, &self.live, thread);
    }

    /// It gives a role back.
    pub(crate) fn give_back<W: Workers<P>>(&self, workers: &W, thread: u64) {
        self.helping.give_back(workers, &self.live, thread);
    }

    /// What the kernel was asked for, and what it said.
    pub(crate) fn help(&self) -> Vec<Help> {
        self.helping.help()
    }

    /// What others on the same machine do to this job system.
    pub(crate) fn interference(&self) -> Interference {
        self.noticed.report()
    }

    /// Why there are as many workers as there are, and why they are where they are.
    pub(crate) fn explain(&self) -> Vec<String> {
        self.live.explain()
    }

    /// What the last look found.
    pub(crate) fn limits(&self) -> Limits {
        self.live.limits()
    }
}

/// Looks at the machine.
impl<P: Platform> Adapt<P> {
    /// If it is time for that, sees to it that a thread has a look at the machine.
    #[inline]
    fn follow_machine<C: Caller<P>>(&self, caller: &C, now: Nanos) {
        if self.live.takes_turn(now) {
            self.ask_for_look(caller);
        }
    }

    /// A look takes a tenth of a millisecond, which is too much for a thread that has a frame to begin: a
    /// worker has it as soon as it has nothing to do. If all of them sleep, one is woken.
    #[cold]
    fn ask_for_look<C: Caller<P>>(&self, caller: &C) {
        let workers = caller.workers();
        if caller.words().is_none() && workers.has_many_caches() {
            let cpu = workers.platform().current_cpu();
            self.live.saw_waiter(cpu.map(|cpu| workers.cache_of(cpu)));
        }
        if self.live.ask() || workers.active() == 0 {
            self.look(caller);
            return;
        }
        // SeqCst, partner: the fence of a worker that has said that it sleeps and looks around once more.
        P::fence(Ordering::SeqCst);
        caller.wake_one();
    }

    #[cold]
    fn look<C: Caller<P>>(&self, caller: &C) {
        let workers = caller.workers();
        let platform = workers.platform();
        let mut threads = workers.placed();
        let me = live::caller(platform);
        threads.push(PlacedThread {
            given: self.helping.role_mask(me.thread),
            ..me
        });
        let are_preempted = self.noticed.are_preempted();
        let limits = self.live.look(platform, &threads, are_preempted);
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
        self.live.has_looked(now, learned.must_confirm);
        if learned.has_new_cpus && self.steering.on {
            self.live.widen_masks(workers);
        }
        self.helping
            .hold_role_threads(workers.platform(), &self.live);
        if learned.change.is_some() || learned.is_undermanned || learned.has_new_places {
            self.live.fill(workers);
        }
        if let Some(why) = learned.change {
            let arg = (why as u64) << 32 | target as u64;
            caller.note(EventKind::Resized, 0, arg);
        }
        caller.counters().looks.add(1);
    }
}

/// A wait of one thread that has nothing to run: what it does for workers that have no CPU.
pub(crate) struct Vigil<'a, P: Platform> {
    adapt: &'a Adapt<P>,
    nudging: Option<Nudging>,
}

impl<P: Platform> Vigil<'_, P> {
    /// The caller comes by: a signalled worker that has not started in time is helped.
    #[inline]
    pub(crate) fn passes<C: Caller<P>>(&self, caller: &C, now: Nanos) {
        self.adapt.steerer(caller).check_overdue_at(now);
    }

    /// Until when the caller has to spin because workers that lost their CPU were nudged; `None`: it may
    /// sleep.
    pub(crate) fn spins_until<C: Caller<P>>(&mut self, caller: &C, now: Nanos) -> Option<Nanos> {
        let steerer = self.adapt.steerer(caller);
        steerer.nudge_preempted(&mut self.nudging, now)
    }

    /// Until when the caller may sleep without looking for signalled workers.
    pub(crate) fn sleeps_until(&self) -> Nanos {
        self.adapt.steering.overdue_at().unwrap_or(Nanos::MAX)
    }

    /// The caller has slept.
    pub(crate) fn has_slept(&mut self) {
        self.nudging = None;
    }
}
