//! How a job system is set up.

use std::sync::Arc;

use event::{Nanos, Sink};
use platform::{CpuSet, Limits, Os, Platform, Treatment};

use crate::adapt::environment::{self, Environment, WorkersAsked};
use crate::adapt::{Adapt, Asked, Placement, Reading, Settings, caller, limits_of};
use crate::border::Hooks;
use crate::deque::RING_MAX;
use crate::error::{BuildError, Stuck, UnwaitedPanic};
use crate::limits::{JOBS_MAX, SPARES, SPARES_MAX, THREADS_MAX, VISITORS_MAX, WORKERS_MAX};
use crate::policy::{SpinPolicy, Tuning, WaitPolicy};
use crate::shared::{Parts, Shared, cache_of};
use crate::system::JobSystem;

/// Settings of a job system; every one has a default.
///
/// ```
/// let js = paceline::Builder::new()
///     .workers(2)
///     .thread_name(|i| format!("job {i}"))
///     .build()
///     .expect("two threads can be started");
/// assert_eq!(js.workers(), 2);
/// ```
#[must_use = "nothing happens before `build`"]
pub struct Builder<P: Platform = Os> {
    platform: P,
    workers: Option<usize>,
    cpus: Option<CpuSet>,
    follows_machine: bool,
    /// Whether the environment may say how much of the machine to use.
    asks_environment: bool,
    reserve: usize,
    max_jobs: u32,
    max_threads: usize,
    max_spares: usize,
    queue_capacity: usize,
    stack_bytes: Option<usize>,
    slice: Option<Nanos>,
    help: Vec<Treatment>,
    wait_policy: WaitPolicy,
    steering: bool,
    placement: Placement,
    sink: Option<Arc<dyn Sink>>,
    recording: bool,
    hooks: Hooks,
}

impl Builder<Os> {
    /// Settings for a job system on this machine. The environment wins over them: `PACELINE_WAIT` over the
    /// [wait policy](Builder::wait_policy), `PACELINE_WORKERS` (a number, or `auto`) over the number of
    /// [workers](Builder::workers), `PACELINE_CPUS` (a list such as `0-3,8`) over the [CPUs](Builder::cpus)
    /// they may run on, and `PACELINE_PLACEMENT` (`classes` or `free`) over their
    /// [placement](Builder::placement).
    pub fn new() -> Builder<Os> {
        Builder {
            asks_environment: true,
            ..Builder::with_platform(Os)
        }
    }
}

#[cfg(test)]
impl Builder<Os> {
    /// Settings for a job system with room for little: what a unit test needs, and what an interpreter
    /// (Miri) makes in a moment. With the usual numbers it makes thousands of slots first.
    pub(crate) fn small() -> Builder<Os> {
        let few_jobs = Builder::new().max_jobs(64).max_threads(4);
        few_jobs.queue_capacity(16)
    }
}

impl Default for Builder<Os> {
    fn default() -> Self {
        Builder::new()
    }
}

impl<P: Platform> Builder<P> {
    /// Settings for a job system on another platform.
    pub fn with_platform(platform: P) -> Builder<P> {
        Builder {
            platform,
            workers: None,
            cpus: None,
            follows_machine: true,
            asks_environment: false,
            reserve: 1,
            max_jobs: 1 << 20,
            max_threads: 256,
            max_spares: SPARES,
            queue_capacity: RING_MAX,
            stack_bytes: None,
            slice: Some(Tuning::SLICE),
            help: Vec::new(),
            wait_policy: WaitPolicy::default(),
            steering: true,
            placement: Placement::default(),
            sink: None,
            recording: true,
            hooks: Hooks::default(),
        }
    }

    /// Worker threads: 0 to [`WORKERS_MAX`]. Without this call: the number of threads that can run
    /// at the same time, less the [`reserve`](Builder::reserve), but at least 1; and that number follows
    /// the machine, see [`follow_machine`](Builder::follow_machine).
    ///
    /// A number that is given is respected: there are never more workers than that. If it fits the machine
    /// (it is at most the number of threads that can run at the same time), and the machine shrinks later,
    /// there are as many as that leaves, at least 1, until it grows again. A larger number is taken to be
    /// meant that way, and stays. The environment variable `PACELINE_WORKERS` wins over this call.
    ///
    /// With no workers at all, jobs run inside waits and in `flush`, `poll` and `pump`. A wait then runs what
    /// the job needs, and, if that is not enough, whatever else is ready. (A wait inside a job does that only
    /// if no other thread uses the job system, and after a quarter of a second.)
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// How many of the machine's threads to leave to others when the number of workers is not given;
    /// 1 by default, for the thread that waits and helps meanwhile.
    pub fn reserve(mut self, threads: usize) -> Self {
        self.reserve = threads;
        self
    }

    /// The CPUs that workers may run on; without this call, wherever the kernel lets them. The number of
    /// workers that fit, if none is given, is that of these CPUs. CPUs that may not be used count for
    /// nothing; while none of these may, workers run anywhere. The environment variable `PACELINE_CPUS`
    /// wins over this call. Masks of the program's own threads are not touched.
    pub fn cpus(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Whether to have a look at the machine while running, once a second at most and never while there is
    /// nothing to do; `true` by default. When CPUs go offline, are taken from the process or are rationed,
    /// workers retire at their next idle point; they come back when the CPUs do, and nothing is lost either
    /// way. `false`: what the machine was at the beginning holds for ever.
    pub fn follow_machine(mut self, follow: bool) -> Self {
        self.follows_machine = follow;
        self
    }

    /// How many jobs may be alive (waiting, ready or running) at the same time at least; 2^20 by
    /// default, at most [`JOBS_MAX`]. There is room for a few more: each thread that has used the job system
    /// keeps up to 62 free slots at hand, which come on top. Memory is taken as it is needed: about 200 bytes
    /// for each job that was ever alive at the same time as the others.
    pub fn max_jobs(mut self, jobs: u32) -> Self {
        self.max_jobs = jobs;
        self
    }

    /// How many outside threads may use the job system; 256 by default, at most [`THREADS_MAX`]. A thread
    /// counts from its first call until it ends. A further one gets
    /// [`ScheduleError::TooManyThreads`](crate::ScheduleError::TooManyThreads); it can complete and drop
    /// events, and drop the job system, all the same.
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.max_threads = threads;
        self
    }

    /// How many spare workers there may be; 256 by default, at most [`SPARES_MAX`]. A
    /// spare is a further thread that works while every worker waits inside a job and other work is ready. If
    /// that many wait, too, what is ready has to wait for one of them: see [`on_stuck`](Builder::on_stuck).
    pub fn max_spares(mut self, spares: usize) -> Self {
        self.max_spares = spares;
        self
    }

    /// Tickets a thread's own queue holds before it shares half of them with everybody: a power of
    /// two from 2 to 4096, which is the default.
    pub fn queue_capacity(mut self, tickets: usize) -> Self {
        self.queue_capacity = tickets;
        self
    }

    /// Stack size of the workers in bytes.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// The time slice that workers ask the kernel for: 400 us by default; `None` leaves them the
    /// kernel's own.
    ///
    /// Linux from 6.12 on lets a thread with a shorter slice than the running one take over as soon as
    /// it has a right to run, so a worker that is woken on a loaded machine starts at once instead of
    /// at the next tick. Its share of the CPU stays what it was, no privilege is needed, and what is
    /// not between 100 us and 100 ms is taken as the nearer of these. Other systems take no notice.
    pub fn slice(mut self, slice: Option<Nanos>) -> Self {
        self.slice = slice;
        self
    }

    /// Asks the kernel for help: to treat threads that [adopt](JobSystem::adopt) a role, and the workers
    /// together with them, like this from then on. Called several times, it asks for several things, each of
    /// which is granted or refused by itself, for all of these threads; [`JobSystem::os_help`] says which.
    /// Nothing is asked for by default, and nothing fails because a privilege is missing.
    ///
    /// With a nice value below 0 comes a [slice](Builder::slice) that is longer by as much as the share is
    /// larger, unless another slice is asked for, too.
    ///
    /// A nice value below 0, and `SCHED_RR`, need a privilege on Linux (CAP_SYS_NICE, or a limit). Beside
    /// `SCHED_RR` no thread that is scheduled by shares runs on the same CPU: do not let workers spin then
    /// ([`WaitPolicy::Active`]), nor jobs run for long.
    pub fn os_help(mut self, wish: Treatment) -> Self {
        self.help.push(wish);
        self
    }

    /// What a thread without work does before it parks. The environment variable `PACELINE_WAIT`
    /// wins over it.
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.wait_policy = policy;
        self
    }

    /// Whether workers may change their own affinity masks to stay off the CPU of whoever wakes them,
    /// where the kernel keeps putting them there, and whether the kernel is asked to look again where others
    /// keep the CPU that a worker waits for; `true` by default. The program's own threads are never touched
    /// either way.
    ///
    /// `false` leaves placement to the kernel: for programs that set the masks of workers themselves
    /// (from [`on_thread_start`](Builder::on_thread_start)), and for comparisons.
    pub fn steering(mut self, on: bool) -> Self {
        self.steering = on;
        self
    }

    /// Whether workers are held to classes of CPUs where CPUs differ: [`Placement::Classes`] by default.
    /// Within the [CPUs](Builder::cpus) that workers may run on; masks follow the machine as their number
    /// does ([`follow_machine`](Builder::follow_machine)). Threads that jobs start inherit the mask of their
    /// worker. The environment variable `PACELINE_PLACEMENT` (`classes` or `free`) wins over this call.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Where events go, such as [`Rings`](crate::Rings). Without this call nothing can be recorded.
    pub fn sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Whether events go to the [`sink`](Builder::sink) from the beginning on: `true` by default. `false`
    /// waits for [`JobSystem::set_recording`].
    pub fn recording(mut self, on: bool) -> Self {
        self.recording = on;
        self
    }

    /// Names the worker threads, by seat. Linux shows the first 15 bytes.
    pub fn thread_name(mut self, name: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        self.hooks.set_name(name);
        self
    }

    /// Called on each worker thread before its first job, with its seat.
    pub fn on_thread_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.hooks.set_start(hook);
        self
    }

    /// Called on each worker thread after its last job, with its seat.
    pub fn on_thread_stop(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.hooks.set_stop(hook);
        self
    }

    /// Called when a job panics and nobody hears of it: no wait, future, handle or scope for the job,
    /// nor for the first job at the end of a chain that was cancelled because of it. At most once a
    /// panic, on the thread that found out, when the job is over. A wait that begins later is told all the
    /// same.
    ///
    /// A panic of this hook, or of another one, is counted
    /// ([`Stats::hook_panics`](crate::Stats::hook_panics)) and has no other consequence.
    pub fn on_unwaited_panic(
        mut self,
        hook: impl Fn(&UnwaitedPanic) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.set_unwaited(hook);
        self
    }

    /// Called when work is ready that no thread may run: every worker waits inside a job, and a further
    /// [spare](Builder::max_spares) cannot be started. That may end by itself, if what they wait for does not
    /// depend on that work, or be a deadlock. Called on a thread that is about to wait, once until spares can
    /// be started again. Without a hook a line is printed to the standard error output.
    ///
    /// Jobs that wait for each other's results are better scheduled with
    /// [`after`](crate::NewJob::after), which holds no thread.
    pub fn on_stuck(mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) -> Self {
        self.hooks.set_stuck(hook);
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// If a setting is out of range, a variable of the environment cannot be read, none of the
    /// [CPUs](Builder::cpus) asked for may be used, or the system refuses a thread.
    pub fn build(self) -> Result<JobSystem<P>, BuildError> {
        let environment = match self.asks_environment {
            true => Environment::read()?,
            false => Environment::default(),
        };
        let workers = match environment.workers {
            Some(WorkersAsked::Auto) => None,
            Some(WorkersAsked::Exactly(workers)) => Some(workers),
            None => self.workers,
        };
        self.check()?;
        let cpus = environment.cpus.or(self.cpus);
        let limits = limits(&self.platform, cpus.as_ref())?;
        let parallelism = limits.effective_parallelism();
        let asked = match workers {
            None => Asked::Fitting {
                reserve: self.reserve,
            },
            Some(workers) => Asked::Exactly {
                workers,
                width_then: parallelism,
            },
        };
        let policy = environment::wait_policy()?.unwrap_or(self.wait_policy);
        let topology = self.platform.topology();
        let follow = self.follows_machine.then(|| self.platform.now());
        let placement = environment.placement.unwrap_or(self.placement);
        let machine = (placement == Placement::Classes).then(|| topology.clone());
        // Where nobody looks again, nobody would follow that thread.
        let waiter = follow.and_then(|_| self.platform.current_cpu());
        let waiter = waiter.map(|cpu| cache_of(topology, cpu));
        let reading = Reading::new(limits, asked, WORKERS_MAX)
            .near(waiter)
            .divided_by(machine);
        let shared = Shared::new(Parts {
            seats: WORKERS_MAX + self.max_spares + self.max_threads + VISITORS_MAX,
            guests_max: self.max_threads,
            spares_max: self.max_spares,
            queue: self.queue_capacity,
            workers_max: WORKERS_MAX,
            max_jobs: self.max_jobs,
            spin: SpinPolicy { policy },
            adapt: Adapt::new(Settings {
                reading,
                cpus,
                follow,
                help: self.help,
                slice: self.slice,
                steering: self.steering,
            }),
            sink: self.sink,
            recording: self.recording,
            hooks: self.hooks,
            stack_bytes: self.stack_bytes,
            slice: self.slice,
            platform: self.platform,
        });
        let system = JobSystem::from_shared(shared);
        let shared = system.shared();
        let started = shared.adapt.start(shared);
        started.map_err(BuildError::Thread)?;
        Ok(system)
    }

    /// Whether each number is within its range.
    fn check(&self) -> Result<(), BuildError> {
        let workers = self.workers.unwrap_or(0) as u64;
        in_range("workers", workers, 0, WORKERS_MAX as u64)?;
        in_range("max_jobs", self.max_jobs.into(), 1, JOBS_MAX.into())?;
        in_range(
            "max_threads",
            self.max_threads as u64,
            1,
            THREADS_MAX as u64,
        )?;
        in_range("max_spares", self.max_spares as u64, 0, SPARES_MAX as u64)?;
        in_range(
            "queue_capacity",
            self.queue_capacity as u64,
            2,
            RING_MAX as u64,
        )?;
        if !self.queue_capacity.is_power_of_two() {
            let text = "queue_capacity (a power of two)";
            return Err(out_of_range(
                text,
                self.queue_capacity as u64,
                2,
                RING_MAX as u64,
            ));
        }
        Ok(())
    }
}

/// What the calling thread may use of the machine, of the CPUs asked for.
fn limits<P: Platform>(platform: &P, asked: Option<&CpuSet>) -> Result<Limits, BuildError> {
    let limits = limits_of(platform, &[caller(platform)], asked, &CpuSet::new());
    let usable = limits.usable();
    match asked {
        Some(asked) if asked.intersection(&usable).is_empty() => Err(BuildError::NoCpu {
            asked: asked.clone(),
            usable,
        }),
        _ => Ok(limits),
    }
}

fn in_range(setting: &'static str, asked: u64, low: u64, high: u64) -> Result<(), BuildError> {
    if (low..=high).contains(&asked) {
        Ok(())
    } else {
        Err(out_of_range(setting, asked, low, high))
    }
}

fn out_of_range(setting: &'static str, asked: u64, low: u64, high: u64) -> BuildError {
    BuildError::OutOfRange {
        setting,
        asked,
        range: (low, high),
    }
}
