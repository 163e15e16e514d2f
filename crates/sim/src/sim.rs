//! The simulated platform, as the threads of one run see it.

use std::collections::BTreeSet;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use event::{Cpu, Nanos, Random, Task};
use platform::{
    CpuSet, Limits, Machine, MaskError, Parker, Platform, Poll, Polling, Quota, RefusalKind,
    SchedParams, SchedParamsError, SpawnError, ThreadSpec, Topology, Usage,
};
use policy::{Attr, Mask};

use crate::config::SimConfig;
use crate::kernel::{Kernel, TaskPhase};
use crate::quiet;
use crate::report::{On, SimReport};
use crate::run::ambient;
use crate::run::engine::{Engine, Op, Shared};
use crate::run::memory::SimAtomicU64;
use crate::run::parker::SimParker;
use crate::run::thread::SimThread;
use crate::sched_params::changed;

/// A thread that is there when a run begins.
pub struct FirstThread<'a> {
    /// Its name.
    pub name: String,
    /// The attributes it asks the scheduler for.
    pub attr: Attr,
    /// The CPUs it may run on; the empty mask: all.
    pub mask: Mask,
    /// Its code.
    pub body: Box<dyn FnOnce() + 'a>,
}

/// The simulated platform, as the threads of one run see it.
#[derive(Clone, Debug)]
pub struct Sim {
    shared: Arc<Shared>,
}

impl Sim {
    /// Runs `body` as simulated thread 0, and all threads that it starts, until all have ended or none can
    /// continue.
    ///
    /// The body may borrow from the caller. Panics in simulated threads are not printed; the report has the
    /// first one.
    ///
    /// # Panics
    /// Inside another run, if there is no memory for a stack, and if there is no policy of that name.
    pub fn run(config: SimConfig, body: impl FnOnce(Sim)) -> SimReport {
        Sim::run_all(config, |sim| {
            let sim = sim.clone();
            vec![FirstThread {
                name: "main".into(),
                attr: Attr::default(),
                mask: Mask::default(),
                body: Box::new(move || body(sim)),
            }]
        })
    }

    /// Runs several threads that are all there when time begins, and all threads that they start, until all
    /// have ended or none can continue. `prepare` makes them, and the objects they share; it runs outside of
    /// simulated time.
    ///
    /// # Panics
    /// As [`run`](Sim::run), if there are more threads than the configuration allows, and if the policy
    /// refuses one of them.
    pub fn run_all<'a>(
        config: SimConfig,
        prepare: impl FnOnce(&Sim) -> Vec<FirstThread<'a>>,
    ) -> SimReport {
        assert!(!ambient::is_inside(), "a run inside a run");
        assert!(config.threads_max > 0, "a run has a thread");
        // Another stream than the policy's, so that the two do not repeat each other.
        const PLATFORM_STREAM: u64 = 0x05ee_d0f7_1e0f_fe70;
        let topology = config.shown.clone();
        let shared = Arc::new(Shared {
            topology: topology.unwrap_or_else(|| config.machine.topology()),
            seed: Random::new(config.seed ^ PLATFORM_STREAM).next_u64(),
            fork_epoch: AtomicU32::new(0),
            quota: Mutex::new(None),
            shown: Mutex::new(None),
            reached: AtomicU64::new(0),
        });
        let sim = Sim {
            shared: shared.clone(),
        };
        let engine = Engine::new(config, shared);
        let threads = ambient::enter(&engine, || prepare(&sim));
        for thread in threads {
            let spec = ThreadSpec {
                name: thread.name,
                ..ThreadSpec::default()
            };
            // SAFETY: the bodies' borrows outlive this function, hence `Engine::run`; a body that is left
            // behind in the middle is never resumed or dropped.
            let started = unsafe { engine.add_thread(spec, thread.attr, thread.mask, thread.body) };
            started.unwrap_or_else(|error| panic!("{error}"));
        }
        quiet::quietly(|| engine.run());
        engine.report()
    }

    /// Runs `body` under this many seeds, from the configuration's on, and returns the number of different
    /// schedules.
    ///
    /// # Panics
    /// At the first run that does not finish; the text has the report and the seed.
    #[track_caller]
    pub fn explore(config: SimConfig, seeds: u64, body: impl Fn(Sim)) -> usize {
        let mut schedules = BTreeSet::new();
        for seed in config.seed..config.seed + seeds {
            let config = SimConfig {
                seed,
                ..config.clone()
            };
            let report = Sim::run(config, &body).expect_finished();
            schedules.insert(report.schedule_hash);
        }
        schedules.len()
    }

    /// Makes the platform report that it went through the child side of `fork` this many times.
    pub fn set_fork_epoch(&self, epoch: u32) {
        // Relaxed: a number, nothing is published with it.
        self.shared.fork_epoch.store(epoch, Ordering::Relaxed);
    }

    /// Makes the platform report from now on that the process has this quota of CPU time; `None`: no limit.
    /// Unlike [`SimConfig::quota`], the machine does not enforce it.
    pub fn set_quota(&self, quota: Option<Quota>) {
        let told = self.shared.quota.lock();
        *told.unwrap_or_else(PoisonError::into_inner) = quota;
    }

    /// Makes the platform report this machine and its limits from now on, when a program asks anew
    /// ([`Machine::detect`], [`Machine::limits`]). The machine that runs stays as it is.
    pub fn show(&self, topology: Topology) {
        let shown = self.shared.shown.lock();
        *shown.unwrap_or_else(PoisonError::into_inner) = Some(topology);
    }

    fn quota(&self) -> Option<Quota> {
        let told = self.shared.quota.lock();
        *told.unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread that the kernel's policy schedules as `attr` says. Its mask is that of the
    /// specification, or every CPU.
    ///
    /// # Errors
    /// If the limit of threads is reached, and if the policy refuses such a thread.
    pub fn spawn_with(
        &self,
        spec: ThreadSpec,
        attr: Attr,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<SimThread, SpawnError> {
        let mask = spec.mask.as_ref().map(mask_of).unwrap_or_default();
        ambient::with(|engine| engine.spawn_with(spec, attr, mask, body)).unwrap_or_else(no_run)
    }

    /// The time, read for free: for measuring a simulated program. Outside of the run: how far it has come,
    /// roughly, or when it ended.
    pub fn time(&self) -> Nanos {
        // Relaxed: a number, nothing is published with it.
        let reached = || Nanos(self.shared.reached.load(Ordering::Relaxed));
        ambient::with(Engine::now).unwrap_or_else(reached)
    }

    /// The calling thread sleeps until then.
    pub fn sleep_until(&self, deadline: Nanos) {
        let parker = self.parker();
        while self.time() < deadline {
            parker.park(deadline);
        }
    }

    /// The calling thread calls `sched_yield`.
    pub fn yields(&self) {
        ambient::with(Engine::yields);
    }

    /// The calling thread calls the kernel, which finds nothing to do: a futex wake without a waiter.
    pub fn call(&self) {
        ambient::with(|engine| engine.call(Op::Wake, None));
    }

    /// Whether programs say what their threads wait for ([`SimConfig::hints`]).
    pub fn has_hints(&self) -> bool {
        ambient::with(|engine| engine.has_hints()).unwrap_or(false)
    }

    /// The calling thread says that it waits for these threads, by their numbers, from now on; for none: that
    /// it waits no more. It costs two stores into shared memory (20 ns, assumed), and nothing where nobody
    /// says anything ([`SimConfig::hints`]).
    pub fn waits_for(&self, threads: &[usize]) {
        ambient::with(|engine| engine.say_waits(threads));
    }

    /// The calling thread gives its CPU away until this time, even if that is over.
    pub(crate) fn leave_until(&self, time: Nanos) {
        ambient::with(|engine| engine.block(On::Work, None, time));
    }

    /// The thread of this number, which sleeps, is woken by a timer at this time, if nothing else does so
    /// earlier.
    pub(crate) fn wake_later(&self, thread: usize, at: Nanos) {
        let set = |engine: &Engine| {
            engine.with_kernel(|kernel| kernel.wake_at(Task(thread as u32), at));
        };
        ambient::with(set);
    }

    /// The calling thread may run on this CPU only: at once, or from its next wake-up on. A CPU that is not
    /// there is no limit.
    pub(crate) fn place(&self, cpu: u32, at_once: bool) {
        let set = |engine: &Engine| {
            let me = engine.me();
            let is_there = engine.with_kernel(|kernel| kernel.is_active(Cpu(cpu)));
            let mask = Mask::of(is_there.then_some(Cpu(cpu)));
            if at_once {
                engine.set_mask(me, mask);
            } else {
                engine.with_kernel(|kernel| kernel.tasks[me.index()].mask = mask);
            }
        };
        ambient::with(set);
    }

    /// The thread of this number is scheduled as `attr` says from now on.
    pub(crate) fn set_attr_of(&self, thread: usize, attr: Attr) {
        ambient::with(|engine| engine.set_attr(Task(thread as u32), attr));
    }

    /// The calling thread is scheduled as `attr` says from now on.
    pub fn set_attr(&self, attr: Attr) {
        ambient::with(|engine| engine.set_attr(engine.me(), attr));
    }
}

fn mask_of(cpus: &CpuSet) -> Mask {
    Mask::of(cpus.iter().map(Cpu))
}

/// What a call is told that comes from outside of a run.
const NO_RUN: &str = "no simulated machine is running: ask inside of a run";
const NO_CPU: &str = "none of these CPUs is there: name some that are online";
const NO_THREAD: &str = "there is no such thread: name one that has not ended";

fn no_run<T>() -> Result<T, SpawnError> {
    Err(SpawnError::new(RefusalKind::Other, NO_RUN))
}

// SAFETY: `spawn` gives the body to one fiber, whose entry calls it once; a thread's word is a field of
// its program that starts as null, and `engine::entry` runs the destructor on that thread after the body.
// The clock only goes forward (`Kernel::next`).
unsafe impl Platform for Sim {
    type Parker = SimParker;
    type Thread = SimThread;
    type Machine = Sim;

    fn now(&self) -> Nanos {
        let read = |engine: &Engine| {
            engine.step(Op::Now, None, |kernel| {
                let cost = kernel.machine.kernel.clock;
                kernel.spend(cost)
            });
            engine.now()
        };
        ambient::with(read).unwrap_or_else(|| self.time())
    }

    #[track_caller]
    fn parker(&self) -> SimParker {
        SimParker::new()
    }

    /// As the trait says. Small stacks are made larger. The new thread gets the attributes of its parent. A
    /// policy may refuse it: then the call is an error, as on a system that refuses a thread.
    fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<SimThread, SpawnError> {
        ambient::with(|engine| engine.spawn(spec, body)).unwrap_or_else(no_run)
    }

    fn local(&self) -> *const () {
        ambient::with(Engine::local).unwrap_or(ptr::null())
    }

    /// As the trait says.
    ///
    /// # Panics
    /// Outside a simulated thread: nothing would ever call `at_exit`.
    fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) -> bool {
        ambient::with(|engine| engine.set_local(word, at_exit))
            .expect("only simulated threads have a local word")
    }

    fn machine(&self) -> &Sim {
        self
    }

    fn current_cpu(&self) -> Option<u32> {
        ambient::with(|engine| engine.with_kernel(|kernel| kernel.here().0))
    }

    /// The thread's number in the order of starting, from 1 on; 0 outside a run.
    fn thread_id(&self) -> u64 {
        ambient::with(|engine| u64::from(engine.me().0) + 1).unwrap_or(0)
    }

    /// As the trait says. It takes no time.
    fn thread_name(&self) -> Option<String> {
        let name = |engine: &Engine| {
            let me = engine.me().0 as usize;
            engine.with_kernel(|kernel| kernel.tasks[me].name.clone())
        };
        ambient::with(name).filter(|name| !name.is_empty())
    }

    fn charge(&self, work: Nanos) {
        ambient::with(|engine| engine.charge(work));
    }

    fn seed(&self) -> u64 {
        self.shared.seed
    }

    fn fork_epoch(&self) -> u32 {
        // Relaxed: as in `set_fork_epoch`.
        self.shared.fork_epoch.load(Ordering::Relaxed)
    }
}

impl Machine for Sim {
    fn topology(&self) -> &Topology {
        &self.shared.topology
    }

    /// As the trait says. It takes no time.
    fn detect(&self) -> Topology {
        let shown = self.shared.shown.lock();
        let shown = shown.unwrap_or_else(PoisonError::into_inner);
        shown.as_ref().unwrap_or(&self.shared.topology).clone()
    }

    /// As the trait says. It takes no time. On a machine that is only shown, all CPUs count as online.
    fn limits(&self) -> Limits {
        let mut limits = self.detect().limits().clone();
        let is_online = |kernel: &Kernel, cpu: u32| !kernel.is_offline(Cpu(cpu));
        let online = |engine: &Engine| {
            engine.with_kernel(|kernel| {
                let shown = limits.online.iter();
                shown.filter(|&cpu| is_online(kernel, cpu)).collect()
            })
        };
        let enforced = ambient::with(Engine::quota_of_me).flatten();
        if let Some(online) = ambient::with(online) {
            limits.online = online;
        }
        limits.quota = self.quota().or(enforced).or(limits.quota);
        limits
    }

    /// As the trait says. It takes no time.
    fn allowed(&self, threads: &[u64]) -> Option<CpuSet> {
        let shown = self.detect().limits().allowed.clone();
        let of_threads = |engine: &Engine| {
            engine.with_kernel(|kernel| {
                let tasks = threads.iter().filter_map(|&thread| {
                    let task = kernel.tasks.get(thread.checked_sub(1)? as usize)?;
                    (task.phase != TaskPhase::Ended).then_some(&task.mask)
                });
                let masks: Vec<&Mask> = tasks.collect();
                let is_allowed = |&cpu: &u32| {
                    let allows = |mask: &&Mask| mask.is_empty() || mask.has(Cpu(cpu));
                    masks.iter().any(allows)
                };
                shown.iter().filter(is_allowed).collect::<CpuSet>()
            })
        };
        ambient::with(of_threads).filter(|cpus| !cpus.is_empty())
    }

    fn set_mask(&self, thread: u64, cpus: &CpuSet) -> Result<(), MaskError> {
        let refused = |kind, text| Err(MaskError::new(kind, text));
        let set = |engine: &Engine| {
            let Some(task) = thread.checked_sub(1).map(|task| Task(task as u32)) else {
                return refused(RefusalKind::NoThread, NO_THREAD);
            };
            let (tasks, active) = engine.with_kernel(|kernel| {
                let active = cpus.iter().any(|cpu| kernel.is_active(Cpu(cpu)));
                (kernel.tasks.len(), active)
            });
            match (task.index() < tasks, active) {
                (false, _) => refused(RefusalKind::NoThread, NO_THREAD),
                (true, false) => refused(RefusalKind::Invalid, NO_CPU),
                (true, true) => {
                    engine.set_mask(task, mask_of(cpus));
                    Ok(())
                }
            }
        };
        ambient::with(set).unwrap_or_else(|| refused(RefusalKind::Other, NO_RUN))
    }

    fn set_sched_params(
        &self,
        thread: u64,
        how: &SchedParams,
    ) -> Result<SchedParams, SchedParamsError> {
        let refused = |kind, text| SchedParamsError::new(how, kind, text);
        let set = |engine: &Engine| {
            let task = thread.checked_sub(1).map(|task| Task(task as u32));
            let own_attr = |task: Task| {
                engine.with_kernel(|kernel| {
                    let control = kernel.tasks.get(task.index())?;
                    control.is_alive().then(|| control.own_attr.clone())
                })
            };
            let known = task.and_then(|task| Some((task, own_attr(task)?)));
            let (task, before) = known.ok_or_else(|| refused(RefusalKind::NoThread, NO_THREAD))?;
            let (after, undo) = changed(&before, how)?;
            if after != before {
                engine.set_attr(task, after);
            }
            Ok(undo)
        };
        ambient::with(set).unwrap_or_else(|| Err(refused(RefusalKind::Other, NO_RUN)))
    }

    fn is_on_cpu(&self, thread: u64) -> Option<bool> {
        let task = Task(thread.checked_sub(1)? as u32);
        let is_running = |engine: &Engine| {
            engine.with_kernel(|kernel| {
                let control = kernel.tasks.get(task.index())?;
                Some(control.is_running())
            })
        };
        ambient::with(is_running).flatten()
    }

    fn usage(&self) -> Usage {
        let of_me = |engine: &Engine| {
            let (me, explores) = (engine.me(), engine.explores());
            engine.with_kernel(|kernel| {
                let control = &kernel.tasks[me.index()];
                let spent = control.spent_until(kernel.now);
                Usage {
                    cpu: Some(if explores { control.charged } else { spent.run }),
                    runnable: Some(spent.runnable),
                    involuntary: Some(control.involuntary),
                    voluntary: Some(control.voluntary),
                }
            })
        };
        ambient::with(of_me).unwrap_or_default()
    }
}

impl Polling for Sim {
    /// As the trait says. Under a policy that looks for errors every turn lasts until the word is written or
    /// time goes on. Such a policy ends a run in which all threads poll for ever at the limit of steps,
    /// others at [`SimConfig::until`].
    fn poll(&self, kind: Poll, word: &SimAtomicU64) {
        ambient::with(|engine| word.poll_inside(engine, kind));
    }
}
