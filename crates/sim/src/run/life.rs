//! The life of a thread: how it begins, its one word, and how it ends.
//!
//! Invariant: a body is called at most once, on the stack that was made for it; its panics are caught there.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use event::Task;
use platform::{Quota, RefusalKind, SpawnError, ThreadSpec};
use policy::{Attr, Mask};

use super::ambient;
use super::engine::{Engine, Op};
use super::fiber::{Fiber, STACK_BYTES, Suspender};
use super::thread::{Joint, SimThread};
use crate::kernel::TaskPhase;
use crate::quiet::text_and_place_of;
use crate::report::On;

/// A task's program.
pub(super) struct Program {
    local: Option<Local>,
    pub(super) panic: Option<String>,
    joint: Arc<Joint>,
    pub(super) steps: u64,
}

/// The stack of a task's program. Apart from the rest: it is looked at at each switch of programs.
pub(super) struct Stack {
    /// `None` after its end.
    pub(super) fiber: Option<Box<Fiber>>,
    pub(super) suspender: *const Suspender,
}

/// A thread's word, which is not null, and its destructor.
pub(super) struct Local {
    word: *const (),
    at_exit: unsafe fn(*const ()),
}

impl Engine {
    pub(crate) fn local(&self) -> *const () {
        let programs = self.programs.borrow();
        let local = programs[self.current.get().index()].local.as_ref();
        local.map_or(ptr::null(), |local| local.word)
    }

    /// Sets the calling thread's word. True: the word is destroyed whenever the thread ends.
    pub(crate) fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) -> bool {
        let local = Local { word, at_exit };
        let me = self.current.get();
        self.programs.borrow_mut()[me.index()].local = (!word.is_null()).then_some(local);
        true
    }

    /// Whether the calling thread has this number.
    pub(super) fn me_is(&self, number: usize) -> bool {
        self.me().index() == number
    }

    /// The quota that the calling thread shares with others, if there is one.
    pub(crate) fn quota_of_me(&self) -> Option<Quota> {
        let kernel = self.kernel.borrow();
        let quota = self.config.quota.as_ref()?;
        quota
            .as_told()
            .filter(|_| kernel.tasks[kernel.me().index()].rationed)
    }

    /// Starts a thread with the attributes of the calling one, except for those in the specification.
    pub(crate) fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<SimThread, SpawnError> {
        let (attr, mask) = {
            let kernel = self.kernel.borrow();
            let parent = &kernel.tasks[kernel.me().index()];
            let mask = spec
                .mask
                .as_ref()
                .map(|cpus| Mask::of(cpus.iter().map(event::Cpu)));
            let attr = Attr {
                slice: spec.slice.or(parent.attr.slice),
                ..parent.attr.clone()
            };
            (attr, mask.unwrap_or_else(|| parent.mask.clone()))
        };
        self.spawn_with(spec, attr, mask, body)
    }

    /// Starts a thread with these attributes.
    pub(crate) fn spawn_with(
        &self,
        spec: ThreadSpec,
        attr: Attr,
        mask: Mask,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<SimThread, SpawnError> {
        self.step(Op::Spawn, None, |kernel| {
            let costs = kernel.machine.kernel;
            kernel.spend(costs.syscall + costs.wake)
        });
        // SAFETY: the body owns all it uses.
        unsafe { self.add_thread(spec, attr, mask, body) }
    }

    /// Adds a thread that is ready to run.
    ///
    /// # Errors
    /// If there are too many threads, the policy refuses this one, or there is no memory for its stack.
    ///
    /// # Safety
    /// What the body borrows outlives [`Engine::run`].
    pub(crate) unsafe fn add_thread<'a>(
        &self,
        spec: ThreadSpec,
        attr: Attr,
        mask: Mask,
        body: Box<dyn FnOnce() + 'a>,
    ) -> Result<SimThread, SpawnError> {
        let number = self.programs.borrow().len();
        if number >= self.config.threads_max {
            let text = format!("the limit is {number} threads (threads_max)");
            return Err(SpawnError::new(RefusalKind::Exhausted, text));
        }
        // Before there is a stack, which would never be given back.
        let admitted = self.kernel.borrow().admits(&spec.name, &attr);
        if let Err(refusal) = admitted {
            self.refused.borrow_mut().get_or_insert(refusal.clone());
            return Err(SpawnError::new(RefusalKind::Invalid, refusal));
        }
        let entry = move |suspender: &Suspender| entry(suspender, body);
        let stack_bytes = spec.stack_bytes.unwrap_or(STACK_BYTES);
        // SAFETY: `entry` catches the panics of the body; the borrows are the caller's promise.
        let fiber = unsafe { Fiber::new(number, stack_bytes, entry) };
        let fiber = fiber.map_err(|error| SpawnError::from_system(&error))?;
        let joint = Arc::new(Joint::default());
        self.stacks.borrow_mut().push(Stack {
            fiber: Some(Box::new(fiber)),
            suspender: ptr::null(),
        });
        self.programs.borrow_mut().push(Program {
            local: None,
            panic: None,
            joint: joint.clone(),
            steps: 0,
        });
        let mut kernel = self.kernel.borrow_mut();
        let by = kernel.running();
        kernel.begin(spec.name, attr, mask, by);
        Ok(SimThread::new(number, self.run, joint))
    }

    fn begin(&self, suspender: *const Suspender) {
        let me = self.me();
        self.stacks.borrow_mut()[me.index()].suspender = suspender;
        self.suspender.set(suspender);
    }

    /// Takes out the calling thread's word and its destructor.
    fn take_local(&self) -> Option<Local> {
        self.programs.borrow_mut()[self.me().index()].local.take()
    }

    /// The calling thread's last step.
    fn end(&self, result: Result<(), Box<dyn Any + Send>>) {
        let mut kernel = self.kernel.borrow_mut();
        let me = kernel.me();
        let joint = {
            let program = &mut self.programs.borrow_mut()[me.index()];
            if let Err(payload) = &result {
                let message = text_and_place_of(&**payload);
                let mut first = self.first_panic.borrow_mut();
                first.get_or_insert((me.index(), message.clone()));
                program.panic = Some(message);
            }
            program.joint.clone()
        };
        joint.end(result);
        for index in 0..kernel.tasks.len() {
            if kernel.tasks[index].phase == TaskPhase::Blocked(On::Join { thread: me.index() }) {
                kernel.wake(Task(index as u32), Some(me));
            }
        }
        kernel.steps += 1;
        self.record(me, Op::End, 0);
        kernel.end();
    }
}

/// The life of a simulated thread. Does not unwind.
fn entry(suspender: &Suspender, body: Box<dyn FnOnce() + '_>) {
    const INSIDE: &str = "a fiber runs inside its run";
    ambient::with(|engine| engine.begin(suspender)).expect(INSIDE);
    let ran = catch_unwind(AssertUnwindSafe(body));
    let left = catch_unwind(|| {
        if let Some(local) = ambient::with(Engine::take_local).expect(INSIDE) {
            // SAFETY: the caller that set the word promised with it that `at_exit` may be called with it on
            // this thread; it was taken out, so this happens once.
            unsafe { (local.at_exit)(local.word) };
        }
    });
    ambient::with(|engine| engine.end(ran.and(left))).expect(INSIDE);
}
