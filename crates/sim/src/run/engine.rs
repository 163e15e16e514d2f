//! One run: the simulated kernel around programs that are coroutines.
//!
//! A program's step has three parts: a policy that looks for errors may let others go first; the time of the
//! step passes; the operation is done. The code between two steps of a program is atomic. The loop in
//! [`Engine::run`] resumes the program that the kernel names.
//!
//! Invariants:
//! - No borrow of `kernel` is alive across a suspension.
//! - A stopped run resumes no program: those that were suspended then stay so for ever.
//! - A program that panics is not switched out: std counts panics by OS thread, and another simulated thread
//!   would take it for its own. Its steps take no time.

use std::cell::{Cell, RefCell, RefMut};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::panicking;

use event::{Nanos, Random, Task};
use platform::Quota;
use policy::{Attr, Mask};

use super::ambient;
use super::fiber::{Fiber, FiberState, Suspender};
use super::life::{Program, Stack};
use super::tag::Tag;
use crate::config::SimConfig;
use crate::kernel::{Kernel, Next, Steals};
use crate::lines::Access;
use crate::report::On;
use crate::trace::{Trace, stir};

/// A run.
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    /// Tells runs apart in tags; never visible in an output.
    pub(crate) run: u32,
    pub(super) config: SimConfig,
    pub(super) kernel: RefCell<Kernel>,
    pub(super) programs: RefCell<Vec<Program>>,
    pub(super) stacks: RefCell<Vec<Stack>>,
    /// The next program after the one that has just left its stack, if it was known by then.
    next: Cell<Option<Task>>,
    pub(super) stop: Cell<Option<Stop>>,
    pub(super) first_panic: RefCell<Option<(usize, String)>>,
    /// The first thread that the policy refused.
    pub(super) refused: RefCell<Option<String>>,
    pub(super) schedule_hash: Cell<u64>,
    steps_panicking: Cell<u64>,
    asks_at_steps: bool,
    /// Whether anything happens before steps: the policy asks, or they are delayed.
    is_disturbed: bool,
    /// The line that new words are placed on; `None`: each word has a line of its own.
    open_line: Cell<Option<OpenLine>>,
    /// The running program, and its suspender, which it calls to leave its stack.
    pub(super) current: Cell<Task>,
    pub(super) suspender: Cell<*const Suspender>,
    pub(super) perturb: RefCell<Random>,
}

/// The part of a run that its handles share. Nothing here is a machine's secret: handles outlive the run.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) topology: platform::Topology,
    pub(crate) seed: u64,
    pub(crate) fork_epoch: AtomicU32,
    /// The quota of CPU time that programs are told; none: no limit.
    pub(crate) quota: Mutex<Option<Quota>>,
    /// The machine that programs see now, if it was changed.
    pub(crate) shown: Mutex<Option<platform::Topology>>,
    /// The time that the run has reached, for callers outside of it or after it.
    pub(crate) reached: AtomicU64,
}

/// Why no program is resumed any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    AllEnded,
    Deadlock,
    StepLimit,
    TimeUp,
}

/// A line that has room for more words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenLine {
    line: u32,
    left: u32,
}

/// The length of a line.
const LINE_BYTES: u32 = 64;

/// The kind of a step; part of the schedule's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Load,
    Store,
    Rmw,
    Fence,
    Spin,
    Lock,
    Park,
    Unpark,
    Spawn,
    Join,
    Now,
    Charge,
    Wake,
    Yield,
    Mask,
    End,
}

impl Engine {
    pub(crate) fn new(config: SimConfig, shared: Arc<Shared>) -> Engine {
        // Relaxed: only the uniqueness of the number matters.
        static RUNS: AtomicU32 = AtomicU32::new(1);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let trace = Trace::new(config.trace, config.checks);
        let class = config.class();
        let asks_at_steps = class.has_steps();
        let (machine, plan) = (config.machine.clone(), config.plan.clone());
        const PERTURB_STREAM: u64 = 0x7e27_bed0_5eed_0001;
        const TICK_STREAM: u64 = 0x7e27_bed0_5eed_0002;
        const STEAL_STREAM: u64 = 0x7e27_bed0_5eed_0003;
        let kernel = Kernel::new(machine, class, plan, config.until, config.starvation, trace)
            .with_late_ticks(config.perturb.tick_late_max, config.seed ^ TICK_STREAM)
            .with_steals(Steals::new(&config.perturb, config.seed ^ STEAL_STREAM))
            .with_quota(config.quota.clone());
        let is_disturbed = asks_at_steps || config.perturb.is_on();
        Engine {
            shared,
            run,
            is_disturbed,
            perturb: RefCell::new(Random::new(config.seed ^ PERTURB_STREAM)),
            config,
            kernel: RefCell::new(kernel),
            programs: RefCell::new(Vec::new()),
            stacks: RefCell::new(Vec::new()),
            next: Cell::new(None),
            stop: Cell::new(None),
            first_panic: RefCell::new(None),
            refused: RefCell::new(None),
            schedule_hash: Cell::new(0),
            steps_panicking: Cell::new(0),
            asks_at_steps,
            open_line: Cell::new(None),
            current: Cell::new(Task(0)),
            suspender: Cell::new(ptr::null()),
        }
    }

    /// Runs the programs until all have ended or none can continue. Called outside of the run.
    pub(crate) fn run(&self) {
        // Once for all programs: the loop itself, the kernel and its policy need no engine.
        ambient::enter(self, || {
            while let Some(task) = self.next.take().or_else(|| self.ask_kernel()) {
                self.resume(task);
            }
        });
    }

    /// The next program to continue; none if the run is over.
    fn ask_kernel(&self) -> Option<Task> {
        if self.stop.get().is_some() {
            return None;
        }
        let mut kernel = self.kernel.borrow_mut();
        let next = kernel.next();
        // Relaxed: a number, nothing is published with it.
        self.shared.reached.store(kernel.now.0, Ordering::Relaxed);
        let stop = match next {
            Next::Resume(task) => return Some(task),
            Next::AllEnded => Stop::AllEnded,
            Next::Deadlock => Stop::Deadlock,
            Next::TimeUp => Stop::TimeUp,
        };
        self.stop.set(Some(stop));
        None
    }

    #[inline]
    fn resume(&self, task: Task) {
        self.current.set(task);
        let fiber: *mut Fiber = {
            let stack = &mut self.stacks.borrow_mut()[task.index()];
            self.suspender.set(stack.suspender);
            let fiber = stack.fiber.as_mut();
            &mut **fiber.expect("a resumed program has not ended")
        };
        // SAFETY: the fiber is in a box, which stays in `stacks` until the lines below take it out; so it
        // does not move when programs that run add others. No other code looks into it: it has not ended.
        if unsafe { (*fiber).resume() } == FiberState::Ended {
            let fiber = self.stacks.borrow_mut()[task.index()].fiber.take();
            fiber.expect("it was there").give_back();
        }
    }

    /// One step of the running program: others may go first, and it takes as long as `cost` says.
    #[inline]
    pub(crate) fn step(&self, op: Op, tag: Option<&Tag>, cost: impl Fn(&mut Kernel) -> bool) {
        if self.begin_step(op, tag, cost) {
            self.suspend();
        }
    }

    /// Begins a step. Whether the program has to leave its stack until the step has ended.
    #[inline(always)]
    fn begin_step(&self, op: Op, tag: Option<&Tag>, cost: impl Fn(&mut Kernel) -> bool) -> bool {
        if panicking() {
            self.step_panicking();
            return false;
        }
        let mut kernel = self.kernel.borrow_mut();
        if kernel.steps >= self.config.steps_max {
            self.stop.set(Some(Stop::StepLimit));
            self.suspend_for_ever(kernel);
        }
        kernel.steps += 1;
        if self.is_disturbed {
            kernel = self.disturb(kernel, op, tag);
        }
        !cost(&mut kernel) && self.finds_next(&mut kernel)
    }

    /// The running program waits: for the end of its step, or for something else. Whether another program
    /// continues before.
    #[inline]
    fn finds_next(&self, kernel: &mut Kernel) -> bool {
        let next = kernel.next_at_once();
        if next == Some(self.current.get()) {
            return false;
        }
        self.next.set(next);
        true
    }

    /// The same, and leaves the program's stack meanwhile.
    pub(super) fn hand_over(&self, mut kernel: RefMut<'_, Kernel>) {
        let must_leave = self.finds_next(&mut kernel);
        drop(kernel);
        if must_leave {
            self.suspend();
        }
    }

    /// Disturbances before a step, where errors are looked for.
    #[inline(never)]
    fn disturb<'a>(
        &'a self,
        mut kernel: RefMut<'a, Kernel>,
        op: Op,
        tag: Option<&Tag>,
    ) -> RefMut<'a, Kernel> {
        if self.asks_at_steps {
            kernel = self.ask_at_step(kernel, op, tag);
        }
        if self.config.perturb.is_on() {
            self.delay(kernel)
        } else {
            kernel
        }
    }

    /// The policy may let another program go before this step.
    #[inline]
    fn ask_at_step<'a>(
        &'a self,
        mut kernel: RefMut<'a, Kernel>,
        op: Op,
        tag: Option<&Tag>,
    ) -> RefMut<'a, Kernel> {
        let id = self.id_in(&mut kernel, tag);
        let (cpu, me) = (kernel.here(), kernel.me());
        self.programs.borrow_mut()[me.index()].steps += 1;
        if kernel.class.step(cpu, me) {
            kernel.preempt();
            drop(kernel);
            self.suspend();
            kernel = self.kernel.borrow_mut();
        }
        self.record(me, op, id);
        kernel
    }

    fn delay<'a>(&'a self, mut kernel: RefMut<'a, Kernel>) -> RefMut<'a, Kernel> {
        let delay = self.config.perturb.delay(&mut self.perturb.borrow_mut());
        if delay > Nanos::ZERO && !kernel.spend(delay) {
            self.hand_over(kernel);
            kernel = self.kernel.borrow_mut();
        }
        kernel
    }

    #[cold]
    fn step_panicking(&self) {
        self.steps_panicking.set(self.steps_panicking.get() + 1);
        if self.steps_panicking.get() > self.config.steps_max {
            die(
                "a thread loops while it panics: no other thread can run until its panic is caught",
            );
        }
    }

    /// Adds a step to the schedule's hash.
    #[inline]
    pub(super) fn record(&self, me: Task, op: Op, id: u32) {
        let step = u64::from(me.0) << 40 | (op as u64) << 32 | u64::from(id);
        self.schedule_hash.set(stir(self.schedule_hash.get(), step));
    }

    /// Leaves the running program's stack; the loop continues with the program that the kernel names.
    ///
    /// Inlined, and so is its most frequent caller ([`access`](Engine::access)). This function is left by a
    /// return, which goes back to the loop. A processor predicts returns by the calls it has seen. A call
    /// between a program's code and this one would make the prediction wrong twice: here, and when the next
    /// program returns from that call. More than a third of a step's time was that (`paceline-bench sim`).
    #[inline(always)]
    pub(super) fn suspend(&self) {
        // SAFETY: `begin` stored the suspender of the calling program's own fiber, which lives at the
        // bottom of the stack this call is on; `resume` makes it the current one again.
        unsafe { (*self.suspender.get()).suspend(()) };
        assert!(self.stop.get().is_none(), "a stopped run went on");
    }

    /// Stops a run in the middle of the running program.
    #[cold]
    fn suspend_for_ever(&self, kernel: RefMut<'_, Kernel>) -> ! {
        drop(kernel);
        // SAFETY: as in `suspend`.
        unsafe { (*self.suspender.get()).suspend(()) };
        die("a thread of a stopped run was resumed")
    }

    /// New words lie on lines of their own from now on. Returns the line that was open before.
    pub(crate) fn open_lines(&self) -> Option<OpenLine> {
        let fresh = OpenLine { line: 0, left: 0 };
        self.open_line.replace(Some(fresh))
    }

    /// New words lie on these lines again.
    pub(crate) fn close_lines(&self, outer: Option<OpenLine>) {
        self.open_line.set(outer);
    }

    /// The run and the line of a new word of this many bytes, if lines are open.
    pub(crate) fn place(&self, bytes: u32) -> Option<(u32, u32)> {
        let mut open = self.open_line.get()?;
        if open.left < bytes {
            open.line = self.kernel.borrow_mut().lines.open();
            open.left = LINE_BYTES;
        }
        open.left -= bytes;
        self.open_line.set(Some(open));
        Some((self.run, open.line))
    }

    /// An access to the memory that this tag names.
    #[inline(always)]
    pub(crate) fn access(&self, op: Op, tag: &Tag, access: Access) {
        if self.begin_access(op, tag, access) {
            self.suspend();
        }
    }

    /// Begins an access, as [`begin_step`](Engine::begin_step) does. Not inlined into every access of a
    /// program: it is long.
    #[inline(never)]
    fn begin_access(&self, op: Op, tag: &Tag, access: Access) -> bool {
        self.begin_step(op, Some(tag), |kernel| {
            let line = tag.id(self.run, || kernel.lines.open());
            kernel.access(line, access)
        })
    }

    /// A call of the kernel that does nothing but take time.
    pub(crate) fn call(&self, op: Op, tag: Option<&Tag>) {
        self.step(op, tag, |kernel| {
            let cost = kernel.machine.kernel.syscall;
            kernel.spend(cost)
        });
    }

    pub(super) fn id_in(&self, kernel: &mut Kernel, tag: Option<&Tag>) -> u32 {
        tag.map_or(0, |tag| tag.id(self.run, || kernel.lines.open()))
    }

    /// The number of the object in this run.
    pub(crate) fn id(&self, tag: &Tag) -> u32 {
        self.id_in(&mut self.kernel.borrow_mut(), Some(tag))
    }

    pub(crate) fn now(&self) -> Nanos {
        self.kernel.borrow().now
    }

    /// Reads something of the kernel. No step.
    pub(crate) fn with_kernel<R>(&self, f: impl FnOnce(&mut Kernel) -> R) -> R {
        f(&mut self.kernel.borrow_mut())
    }

    /// The running task.
    pub(crate) fn me(&self) -> Task {
        self.kernel.borrow().me()
    }

    /// The running program works. Under a policy that looks for errors it needs no CPU for that: others take
    /// their steps meanwhile, and time passes when there is no other step to take.
    pub(crate) fn charge(&self, work: Nanos) {
        let explores = self.asks_at_steps;
        let before = self.with_kernel(Kernel::ran_of_running);
        self.step(Op::Charge, None, |kernel| {
            let me = kernel.me();
            kernel.tasks[me.index()].charged += work;
            explores || kernel.work(work)
        });
        self.with_kernel(|kernel| {
            let worked = kernel.ran_of_running() - before;
            let me = kernel.me();
            kernel.tasks[me.index()].worked += worked;
        });
        if explores && work > Nanos::ZERO && !panicking() {
            self.block(On::Work, None, self.now() + work);
        }
    }

    /// Whether the policy looks for errors.
    pub(crate) fn explores(&self) -> bool {
        self.asks_at_steps
    }

    pub(crate) fn set_attr(&self, task: Task, attr: Attr) {
        self.call(Op::Yield, None);
        self.kernel.borrow_mut().set_attr(task, attr);
        // Another program may have to go first: that is seen at the end of this step.
        self.call(Op::Yield, None);
    }

    pub(crate) fn set_mask(&self, task: Task, mask: Mask) {
        self.call(Op::Mask, None);
        if panicking() {
            return;
        }
        let must_move = self.kernel.borrow_mut().set_mask(task, mask);
        if must_move {
            self.suspend();
        }
    }
}

/// Ends the process: the program under test did something that no simulated thread can survive.
#[cold]
pub(crate) fn die(why: &str) -> ! {
    eprintln!("simulated machine: {why}");
    process::abort()
}
