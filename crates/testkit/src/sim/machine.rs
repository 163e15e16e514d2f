//! One run: threads, the order they go in, virtual time, and how it ends.
//!
//! Every decision is taken by the thread that gives up the turn, inside [`Machine::step`],
//! [`Machine::block`] or [`Machine::end`]; the loop in [`Machine::run`] only resumes whoever is
//! `current`. A step is: maybe let others go first, then do the operation. What lies between two
//! steps of a thread is atomic.
//!
//! Time stands still while anybody is runnable; when nobody is, it jumps to the earliest moment
//! somebody waits for. So a deadline is never missed by a thread that could run (spurious returns
//! stand in for that), and a loop that only reads the clock never ends (the step limit reports it).
//!
//! Invariants:
//! - No borrow of `state` is alive across a suspension.
//! - A stopped machine resumes nobody: what was suspended then stays so for ever.

use std::any::Any;
use std::cell::{RefCell, RefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::panicking;

use event::Nanos;
use platform::{SpawnError, ThreadSpec};

use super::fiber::{Fiber, STACK_BYTES, Suspender};
use super::report::{Blocked, On, Outcome, SimReport, ThreadReport, ThreadState};
use super::state::{Control, Local, Op, Phase, State, Stop};
use super::tag::Tag;
use super::thread::{Joint, SimThread};
use super::{Shared, SimConfig, ambient};
use crate::quiet::text_and_place_of;

/// Once in how many waits that would block a spurious return happens, if they are asked for.
const SPURIOUS_ONE_IN: u64 = 8;

/// A machine in the middle of a run.
pub(super) struct Machine {
    pub(super) shared: Arc<Shared>,
    /// Tells runs apart in tags; never visible in an output.
    pub(super) run: u32,
    config: SimConfig,
    state: RefCell<State>,
}

impl Machine {
    pub(super) fn new(config: SimConfig, shared: Arc<Shared>) -> Machine {
        // Relaxed: only the uniqueness of the number matters.
        static RUNS: AtomicU32 = AtomicU32::new(1);
        let state = State::new(&config);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        Machine {
            shared,
            run,
            config,
            state: RefCell::new(state),
        }
    }

    /// Runs the threads until all have ended or none can go on. Called outside the machine.
    pub(super) fn run(&self) {
        loop {
            let (thread, fiber) = {
                let mut state = self.state.borrow_mut();
                if state.stop.is_some() {
                    return;
                }
                let thread = state.current as usize;
                (
                    thread,
                    state.fibers[thread]
                        .take()
                        .expect("who is chosen has not ended"),
                )
            };
            let suspended = ambient::enter(self, || fiber.resume());
            self.state.borrow_mut().fibers[thread] = suspended;
        }
    }

    pub(super) fn report(self) -> SimReport {
        let mut state = self.state.into_inner();
        let stop = state.stop.expect("the run is over");
        let blocked = |(thread, control): (usize, &Control)| match control.phase {
            Phase::Waiting(on) => Some(Blocked {
                thread,
                name: control.name.clone(),
                on,
            }),
            _ => None,
        };
        let outcome = match (state.first_panic.take(), stop) {
            (Some((thread, message)), _) => Outcome::Panicked { thread, message },
            (None, Stop::AllEnded) => Outcome::Finished,
            (None, Stop::StepLimit) => Outcome::StepLimit,
            (None, Stop::Deadlock) => Outcome::Deadlock(
                state
                    .threads
                    .iter()
                    .enumerate()
                    .filter_map(blocked)
                    .collect(),
            ),
        };
        let thread = |control: Control| ThreadReport {
            name: control.name,
            steps: control.steps,
            charged: control.charged,
            state: match (control.phase, control.panic) {
                (Phase::Ended, Some(message)) => ThreadState::Panicked(message),
                (Phase::Ended, None) => ThreadState::Ended,
                (Phase::Runnable, _) => ThreadState::Runnable,
                (Phase::Waiting(on), _) => ThreadState::Blocked(on),
            },
        };
        SimReport {
            outcome,
            steps: state.steps,
            schedule_hash: state.hash,
            now: self.shared.now(),
            threads: state.threads.drain(..).map(thread).collect(),
            config: self.config,
        }
    }

    /// One step of the calling thread: others may go first. While the thread panics nobody does,
    /// because std counts panics by OS thread and another simulated thread would take it for its
    /// own.
    #[inline]
    pub(super) fn step(&self, op: Op, tag: Option<&Tag>) {
        if panicking() {
            return self.step_panicking();
        }
        let mut state = self.state.borrow_mut();
        let id = state.id(self.run, tag);
        if !state.count_step(self.config.steps_max) {
            self.suspend_for_ever(state);
        }
        let steps = state.steps;
        let State {
            chooser, runnable, ..
        } = &mut *state;
        let next = chooser.pick(runnable, steps);
        if next != state.current {
            state = self.switch(state, next);
        }
        state.record(op, id);
    }

    #[cold]
    fn step_panicking(&self) {
        let mut state = self.state.borrow_mut();
        state.steps_panicking += 1;
        if state.steps_panicking > self.config.steps_max {
            die("a thread loops while it panics: nobody else can run until its panic is caught");
        }
    }

    /// Waits until somebody wakes the calling thread or until `until`. Not while it panics.
    pub(super) fn block(&self, on: On, tag: Option<&Tag>, until: Nanos) {
        assert!(!panicking(), "a panicking thread cannot block");
        if let Some(tag) = tag {
            tag.add_waiter();
        }
        let mut state = self.state.borrow_mut();
        let me = state.current;
        state.threads[me as usize].until = until;
        state.remove_runnable(me, Phase::Waiting(on));
        let Some(next) = state.next(&self.shared) else {
            state.stop = Some(Stop::Deadlock);
            self.suspend_for_ever(state)
        };
        state = self.switch(state, next);
        if let Some(tag) = tag {
            tag.remove_waiter();
        }
        if !state.count_step(self.config.steps_max) {
            self.suspend_for_ever(state);
        }
        let id = state.id(self.run, tag);
        state.record(Op::Wake, id);
    }

    /// Lets `next` run; returns when somebody lets the calling thread run.
    fn switch<'a>(&'a self, mut state: RefMut<'a, State>, next: u32) -> RefMut<'a, State> {
        let me = state.current;
        if next != me {
            state.current = next;
            let suspender = state.threads[me as usize].suspender;
            drop(state);
            // SAFETY: `begin` stored the suspender of the calling thread's own fiber, which lives
            // at the bottom of the stack this call is on.
            unsafe { (*suspender).suspend(()) };
            state = self.state.borrow_mut();
        }
        assert!(
            state.current == me && state.stop.is_none(),
            "the wrong thread was resumed"
        );
        state
    }

    /// The run is over in the middle of the calling thread.
    #[cold]
    fn suspend_for_ever(&self, state: RefMut<'_, State>) -> ! {
        let suspender = state.threads[state.current as usize].suspender;
        drop(state);
        // SAFETY: as in `switch`.
        unsafe { (*suspender).suspend(()) };
        die("a thread of a stopped run was resumed")
    }

    /// Whether the wait that is about to block should return spuriously instead.
    pub(super) fn returns_spuriously(&self) -> bool {
        self.config.spurious && self.state.borrow_mut().chooser.one_in(SPURIOUS_ONE_IN)
    }

    /// The calling thread waited without effect; it must not starve those it waits for.
    pub(super) fn yielded(&self) {
        let mut state = self.state.borrow_mut();
        let me = state.current;
        state.chooser.yielded(me);
    }

    /// Makes runnable who waits for this object.
    pub(super) fn wake_waiters(&self, tag: &Tag) {
        let mut state = self.state.borrow_mut();
        let id = state.id(self.run, Some(tag));
        state.wake_all(|control| match control.phase {
            Phase::Waiting(On::Word { id: its, .. } | On::Lock { id: its, .. }) => its == id,
            _ => false,
        });
    }

    /// Makes one thread runnable if it waits for a token.
    pub(super) fn wake_parked(&self, thread: u32) {
        let mut state = self.state.borrow_mut();
        if let Phase::Waiting(On::Parker { .. }) = state.threads[thread as usize].phase {
            state.add_runnable(thread);
        }
    }

    /// The number of the object in this run.
    pub(super) fn id(&self, tag: &Tag) -> u32 {
        self.state.borrow_mut().id(self.run, Some(tag))
    }

    /// The number of the calling thread.
    pub(super) fn me(&self) -> u32 {
        self.state.borrow().current
    }

    pub(super) fn charge(&self, work: Nanos) {
        self.step(Op::Charge, None);
        self.state.borrow_mut().me().charged += work;
        if work > Nanos::ZERO && !panicking() {
            self.block(On::Work, None, self.shared.now() + work);
        }
    }

    pub(super) fn charged(&self) -> Nanos {
        self.state.borrow_mut().me().charged
    }

    pub(super) fn local(&self) -> *const () {
        let mut state = self.state.borrow_mut();
        let local = state.me().local.as_ref();
        local.map_or(ptr::null(), |local| local.word)
    }

    pub(super) fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) {
        let local = Local { word, at_exit };
        self.state.borrow_mut().me().local = (!word.is_null()).then_some(local);
    }

    pub(super) fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<SimThread, SpawnError> {
        self.step(Op::Spawn, None);
        // SAFETY: the body owns all it uses.
        unsafe { self.add_thread(spec, body) }
    }

    /// Adds a runnable thread.
    ///
    /// # Safety
    /// What the body borrows outlives [`Machine::run`].
    pub(super) unsafe fn add_thread<'a>(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + 'a>,
    ) -> Result<SimThread, SpawnError> {
        let mut state = self.state.borrow_mut();
        let thread = state.threads.len();
        if thread >= self.config.threads_max {
            return Err(SpawnError(format!(
                "the limit is {thread} threads (threads_max)"
            )));
        }
        let entry = move |suspender: &Suspender| entry(thread, suspender, body);
        // SAFETY: `entry` catches what the body throws; the borrows are the caller's promise.
        let fiber = unsafe { Fiber::new(spec.stack_bytes.unwrap_or(STACK_BYTES), entry) };
        let fiber = fiber.map_err(|error| SpawnError(error.to_string()))?;
        let joint = Arc::new(Joint::default());
        state.add_thread(spec, fiber, joint.clone());
        Ok(SimThread::new(thread, self.run, joint))
    }

    fn begin(&self, thread: usize, suspender: *const Suspender) {
        self.state.borrow_mut().threads[thread].suspender = suspender;
    }

    /// The calling thread's word and what to call with it, taken out.
    fn take_local(&self) -> Option<Local> {
        self.state.borrow_mut().me().local.take()
    }

    /// The calling thread's last step.
    fn end(&self, result: Result<(), Box<dyn Any + Send>>) {
        let mut state = self.state.borrow_mut();
        let me = state.current;
        if let Err(payload) = &result {
            let message = text_and_place_of(&**payload);
            state
                .first_panic
                .get_or_insert((me as usize, message.clone()));
            state.me().panic = Some(message);
        }
        state.me().joint.end(result);
        state.remove_runnable(me, Phase::Ended);
        let me_ended = Phase::Waiting(On::Join {
            thread: me as usize,
        });
        state.wake_all(|control| control.phase == me_ended);
        state.alive -= 1;
        if !state.count_step(self.config.steps_max) {
            return;
        }
        state.record(Op::End, 0);
        match state.next(&self.shared) {
            Some(next) => state.current = next,
            None if state.alive == 0 => state.stop = Some(Stop::AllEnded),
            None => state.stop = Some(Stop::Deadlock),
        }
    }
}

/// The life of a simulated thread. Does not unwind.
fn entry(thread: usize, suspender: &Suspender, body: Box<dyn FnOnce() + '_>) {
    const INSIDE: &str = "a fiber runs inside its machine";
    ambient::with(|machine| machine.begin(thread, suspender)).expect(INSIDE);
    let ran = catch_unwind(AssertUnwindSafe(body));
    let left = catch_unwind(|| {
        if let Some(local) = ambient::with(Machine::take_local).expect(INSIDE) {
            // SAFETY: whoever set the word promised with it that `at_exit` may be called with it on
            // this thread; it was taken out, so this happens once.
            unsafe { (local.at_exit)(local.word) };
        }
    });
    ambient::with(|machine| machine.end(ran.and(left))).expect(INSIDE);
}

/// Ends the process: the program under test did what no simulated thread can survive.
#[cold]
pub(super) fn die(why: &str) -> ! {
    eprintln!("simulated platform: {why}");
    process::abort()
}
