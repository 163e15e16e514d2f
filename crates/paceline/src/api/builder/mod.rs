//! The settings of a job system, and how one is made of them.

mod asked;
#[cfg(feature = "pools")]
mod callers;
mod declared;
#[cfg(feature = "hints")]
mod hints;
mod hooks;
#[cfg(feature = "pools")]
mod hosted;
mod limits;
mod order;
mod ranges;
#[cfg(feature = "report")]
mod reports;
#[cfg(not(feature = "report"))]
#[path = "unreported.rs"]
mod reports;
#[cfg(feature = "pools")]
mod wait_rule;

use std::sync::Arc;
use std::time::Duration;

use event::{Nanos, Sink};
use platform::{CpuSet, Lane, Os, Platform, SchedParams};

use self::asked::Asked;
use self::ranges::{in_range, out_of_range};
use super::system::JobSystem;
use crate::adapt::environment::{self, WorkersSetting};
use crate::adapt::{Adapt, Placement, Settings};
use crate::error::BuildError;
use crate::hooks::Hooks;
use crate::limits::{JOBS_MAX, SPARES, SPARES_MAX, THREADS_MAX, VISITORS_MAX, WORKERS_MAX};
use crate::policy::{SpinPolicy, Tuning, WaitPolicy, WaitRule};
use crate::queues::deque::RING_MAX;
use crate::work::hints::HintSetting;
use crate::work::shared::{Parts, Shared};
use crate::work::{LongWaits, MakeOrder, ShareSetting, Spawner, StuckSetting};

/// Settings of a job system; every one has a default.
///
/// Each method changes one setting and costs nothing; [`build`](Builder::build) checks them all and starts
/// the threads.
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
    background_max: Option<usize>,
    shares: [ShareSetting; Lane::SHARES.len()],
    /// A setting that was out of its range, the value, and the range.
    wrong: Option<(&'static str, u64, (u64, u64))>,
    queue_capacity: usize,
    stack_bytes: Option<usize>,
    slice: Option<Nanos>,
    help: Vec<SchedParams>,
    wait_policy: WaitPolicy,
    wait_rule: WaitRule,
    spawner: Option<Spawner<P>>,
    steering: bool,
    placement: Placement,
    sink: Option<Arc<dyn Sink>>,
    recording: bool,
    stuck: StuckSetting,
    checks: bool,
    hints: HintSetting,
    order: Option<MakeOrder<P>>,
    hooks: Hooks,
}

impl Builder<Os> {
    /// Settings for a job system on this machine.
    ///
    /// Environment variables win over them, so that a shipped program can be tuned on the machine at hand:
    ///
    /// - `PACELINE_WAIT` (`active`, `passive`, `adaptive`, or a time such as `20us`) over the
    ///   [wait policy](Builder::wait_policy);
    /// - `PACELINE_WORKERS` (a number, or `auto`) over the number of [workers](Builder::workers);
    /// - `PACELINE_CPUS` (a list such as `0-3,8`) over the [CPUs](Builder::cpus) that workers may run on;
    /// - `PACELINE_PLACEMENT` (`classes`, `little-cores-in-loops` or `free`) over their
    ///   [placement](Builder::placement);
    /// - `PACELINE_STUCK` (a time such as `5s`, a signal such as `quit`, both with a comma, or `off`) over
    ///   when the job system [reports](JobSystem::report) by itself what it is doing (`Builder::stuck_after`,
    ///   `Builder::report_on`).
    ///
    /// `PACELINE_HINTS` (a path) says where the scheduler listens that hears `Builder::hints`.
    ///
    /// `PACELINE_TRACE` (a file such as `run.pftrace`) asks for a trace of the job system from here to its
    /// end, which is written when it is dropped; see `JobSystem::start_trace`. `%p` in the name becomes the
    /// number of the process. The second job system of a process writes `run-2.pftrace`, and so on.
    ///
    /// ```
    /// let js = paceline::Builder::new().build().unwrap();
    /// assert!(js.workers() <= paceline::WORKERS_MAX);
    /// ```
    pub fn new() -> Builder<Os> {
        Builder {
            asks_environment: true,
            ..Builder::with_platform(Os)
        }
    }
}

#[cfg(test)]
impl Builder<Os> {
    /// Settings for a job system with room for little. That is enough for a unit test, and an interpreter
    /// (Miri) makes it in a moment; with the usual numbers it would make thousands of slots first.
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
    /// Settings for a job system on another platform, such as a simulated machine. The environment has no
    /// say in them, except for `PACELINE_WAIT`.
    ///
    /// ```
    /// let js = paceline::Builder::with_platform(paceline::Os).workers(1).build().unwrap();
    /// assert_eq!(js.workers(), 1);
    /// ```
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
            background_max: None,
            shares: [ShareSetting::UNSET; Lane::SHARES.len()],
            wrong: None,
            queue_capacity: RING_MAX,
            stack_bytes: None,
            slice: Some(Tuning::SLICE),
            help: Vec::new(),
            wait_policy: WaitPolicy::default(),
            wait_rule: WaitRule::default(),
            spawner: None,
            steering: true,
            placement: Placement::default(),
            sink: None,
            recording: true,
            stuck: StuckSetting::default(),
            checks: false,
            hints: HintSetting::default(),
            order: None,
            hooks: Hooks::default(),
        }
    }

    /// The number of worker threads, from 0 to [`WORKERS_MAX`].
    ///
    /// Without this call it is the number of threads that can run at the same time, less the
    /// [`reserve`](Builder::reserve), but at least 1. That number follows the machine; see
    /// [`follow_machine`](Builder::follow_machine).
    ///
    /// If the system then refuses threads (because of a limit, or in WebAssembly), there are as many workers
    /// as it starts, maybe none. [`JobSystem::workers`] is their number, and [`JobSystem::explain`] says why.
    /// Each look at the machine tries to start the others, unless the system has no threads at all.
    ///
    /// With this call there are never more workers than `workers`. A number that fits the machine (at most
    /// the number of threads that can run at the same time) is a ceiling: if the machine shrinks later, there
    /// are as many workers as it leaves, at least 1, until it grows again. A larger number is taken to be
    /// intended, and stays. If the system refuses a thread, [`build`](Builder::build) fails. The environment
    /// variable `PACELINE_WORKERS` wins over this call.
    ///
    /// Without workers, jobs run inside waits and in `flush`, `poll` and `pump`. A wait then runs the jobs
    /// that its job needs and, if that is not enough, any others that are ready. (A wait inside a job does
    /// the latter only if no other thread uses the job system, and after a quarter of a second; at once where
    /// there can be no other thread.)
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(0).build().unwrap();
    /// let job = js.job("on this thread").run(|_| std::thread::current().id());
    /// assert_eq!(job.wait(), std::thread::current().id());
    /// ```
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// How many of the threads that can run at the same time are no workers, where the number of
    /// [workers](Builder::workers) is not given; 1 by default, for the thread that waits and helps
    /// meanwhile.
    ///
    /// ```
    /// // One for the main thread, one for a thread that mixes the sound.
    /// let js = paceline::Builder::new().reserve(2).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn reserve(mut self, threads: usize) -> Self {
        self.reserve = threads;
        self
    }

    /// The CPUs that workers may run on; without this call, all that the kernel lets them.
    ///
    /// If no number of [workers](Builder::workers) is given, it is found from these CPUs. A CPU that may not
    /// be used counts for nothing. [`build`](Builder::build) fails if none of them may be used; if that
    /// happens later, workers run anywhere meanwhile. The environment variable `PACELINE_CPUS` wins over this
    /// call. Masks of the program's own threads are not touched. Without feature `adapt` there are no masks,
    /// and [`build`](Builder::build) fails.
    ///
    /// ```
    /// use paceline::Os;
    /// use paceline::platform::Machine;
    /// let first = Os.limits().usable().iter().take(1).collect();
    /// let js = paceline::Builder::new().cpus(first).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn cpus(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Whether the job system looks at the machine again while it runs; `true` by default.
    ///
    /// It looks once a second at most, and never while there is nothing to do. When CPUs go offline, are
    /// taken from the process or are rationed, workers retire at their next idle point. They come back when
    /// the CPUs do. No job is lost either way. With `false`, the first look holds for ever.
    ///
    /// ```
    /// let js = paceline::Builder::new().follow_machine(false).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn follow_machine(mut self, follow: bool) -> Self {
        self.follows_machine = follow;
        self
    }

    /// The stack size of each worker in bytes; without this call, the platform's default.
    ///
    /// ```
    /// let js = paceline::Builder::new().stack_bytes(8 << 20).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// The time slice that workers ask the kernel for: 400 us by default; with `None` they keep the kernel's
    /// own.
    ///
    /// Linux from 6.12 on lets a thread with a shorter slice than the running one take over as soon as it has
    /// a right to run. So a worker that is woken on a loaded machine starts at once instead of at the next
    /// tick. Its share of the CPU stays what it was, and no privilege is needed. The kernel takes a time
    /// below 100 us as 100 us, and one above 100 ms as 100 ms. Other systems take no notice.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::Builder::new().slice(Some(Duration::from_millis(1))).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn slice(mut self, slice: Option<Duration>) -> Self {
        self.slice = slice.map(Nanos::from);
        self
    }

    /// Asks the kernel for help: these scheduling parameters for the threads that
    /// [adopt](JobSystem::adopt) a role, and for the workers together with them, as long as there is such a
    /// thread.
    ///
    /// Each call is a request of its own. It is granted for all of these threads or refused for all of them;
    /// [`JobSystem::os_help`] says which. Nothing is asked for by default, and nothing fails because a
    /// privilege is missing.
    ///
    /// A nice value below 0 brings a [slice](Builder::slice) that is longer by as much as the share is
    /// larger, unless a request for a slice is there, too.
    ///
    /// A nice value below 0, and `SCHED_RR`, need a privilege on Linux (CAP_SYS_NICE, or a limit). Beside
    /// `SCHED_RR` no thread that is scheduled by shares runs on the same CPU: workers should not spin then
    /// ([`WaitPolicy::Active`]), and jobs should not run for long.
    ///
    /// ```
    /// use paceline::{Builder, Role, SchedParams};
    /// let js = Builder::new().os_help(SchedParams::nice(-5)).build().unwrap();
    /// let _main = js.adopt(Role::Main);
    /// let answer = &js.os_help()[0];
    /// println!("{}: {}", answer.asked, if answer.granted { "granted" } else { &answer.why });
    /// ```
    pub fn os_help(mut self, request: SchedParams) -> Self {
        self.help.push(request);
        self
    }

    /// What a thread without work does before it parks; [`WaitPolicy::Adaptive`] by default. The environment
    /// variable `PACELINE_WAIT` wins over this call.
    ///
    /// ```
    /// use paceline::{Builder, WaitPolicy};
    /// let js = Builder::new().wait_policy(WaitPolicy::Passive).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.wait_policy = policy;
        self
    }

    /// Whether workers keep off the CPU of the thread that wakes them; `true` by default.
    ///
    /// Some kernels keep putting a woken worker on its waker's CPU. Such a worker changes its own affinity
    /// mask. Where threads of other programs keep the CPU that a worker waits for, the kernel is asked to
    /// look again which of them should run. The program's own threads are never touched.
    ///
    /// `false` leaves placement to the kernel: for programs that set the masks of workers themselves
    /// (from [`on_thread_start`](Builder::on_thread_start)), and for comparisons.
    ///
    /// ```
    /// let js = paceline::Builder::new().steering(false).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn steering(mut self, on: bool) -> Self {
        self.steering = on;
        self
    }

    /// Whether workers are held to classes of CPUs where CPUs differ; [`Placement::Classes`] by default.
    ///
    /// The masks are within the [CPUs](Builder::cpus) that workers may run on, and follow the machine as the
    /// number of workers does ([`follow_machine`](Builder::follow_machine)). A thread that a job starts
    /// inherits the mask of its worker. The environment variable `PACELINE_PLACEMENT` (`classes`,
    /// `little-cores-in-loops` or `free`) wins over this call.
    ///
    /// ```
    /// use paceline::{Builder, Placement};
    /// let js = Builder::new().placement(Placement::Free).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Makes the job system and starts its workers. Blocks until the system has made their threads, not
    /// until they run.
    ///
    /// ```
    /// let refused = paceline::Builder::new().max_jobs(0).build();
    /// let error = refused.err().unwrap();
    /// assert_eq!(error.to_string(), "max_jobs must be between 1 and 8388608, not 0");
    /// ```
    ///
    /// # Errors
    /// If a setting is out of range, an environment variable cannot be read, none of the
    /// [CPUs](Builder::cpus) asked for may be used, or the system refuses a thread: if it does not take the
    /// settings, or if the number of [workers](Builder::workers) was asked for.
    pub fn build(self) -> Result<JobSystem<P>, BuildError> {
        let asked = if self.asks_environment {
            Asked::by_environment()?
        } else {
            Asked::default()
        };
        let stuck = asked.stuck.unwrap_or(self.stuck);
        let workers = match asked.workers {
            Some(WorkersSetting::Auto) => None,
            Some(WorkersSetting::Exactly(workers)) => Some(workers),
            None => self.workers,
        };
        self.check()?;
        let long_waits = LongWaits::new(&stuck)?;
        let settings = Settings {
            workers,
            reserve: self.reserve,
            cpus: self.cpus,
            placement: self.placement,
            follows_machine: self.follows_machine,
            help: self.help,
            slice: self.slice,
            steering: self.steering,
            asks_environment: self.asks_environment,
        };
        let adapt = Adapt::new(&self.platform, settings)?;
        let policy = environment::wait_policy()?.unwrap_or(self.wait_policy);
        let threads = WORKERS_MAX + self.max_spares + self.max_threads + VISITORS_MAX;
        let (mut hints, mut hooks) = (self.hints.open(self.asks_environment, threads), self.hooks);
        if hints.is_on() && !hooks.has_job_hook() {
            hints.take_hook(&mut hooks);
        }
        let shared = Shared::new(Parts {
            threads,
            guests_max: self.max_threads,
            spares_max: self.max_spares,
            background_max: self.background_max.map(|workers| workers as u32),
            shares: self.shares,
            queue: self.queue_capacity,
            workers_max: WORKERS_MAX,
            max_jobs: self.max_jobs,
            spin: SpinPolicy { policy },
            wait_rule: self.wait_rule,
            slow_takes_loops: adapt.slow_takes_loops(),
            adapt,
            sink: self.sink,
            recording: self.recording,
            hooks,
            stack_bytes: self.stack_bytes,
            slice: self.slice,
            spawner: self.spawner,
            long_waits,
            checks: self.checks,
            hints,
            platform: self.platform,
        });
        if let Some(make) = self.order {
            make(&shared);
        }
        let mut system = JobSystem::from_shared(shared);
        system.listen(&stuck)?;
        if let Some(pattern) = &asked.trace {
            system.trace_to(pattern)?;
        }
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
        if let Some((setting, asked, (low, high))) = self.wrong {
            return Err(out_of_range(setting, asked, low, high));
        }
        let at_most = self.background_max.unwrap_or(1) as u64;
        in_range("background_at_most", at_most, 1, WORKERS_MAX as u64)?;
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
