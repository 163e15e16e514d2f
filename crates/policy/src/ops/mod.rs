//! Schedulers in user space: the interface, and those there are.
//!
//! A [`sched_ext`](https://docs.kernel.org/scheduler/sched-ext.html) scheduler is a program that the kernel
//! loads and asks. The library `scx_rustland_core` carries the questions further, to a process: it writes a
//! message for each task that becomes ready, and reads from the process which tasks may run, where and for
//! how long. An [`Ops`] has the decisions of such a process, and [`Kernel`] is its whole view of the kernel:
//! what `scx_rustland_core` 2.4.15 can deliver and nothing else. So the same code can run under a real
//! kernel, and under a simulated one through [`Ext`].
//!
//! | here | in `scx_rustland_core` |
//! |---|---|
//! | [`Ops::round`] | one turn of the loop until `exited()` |
//! | [`Kernel::dequeue`], [`Queued`] | `dequeue_task`, `QueuedTask` |
//! | [`Kernel::dispatch`], [`Dispatch`] | `dispatch_task`, `DispatchedTask` |
//! | [`Kernel::select_cpu`] | `select_cpu` |
//! | what `round` returns | `notify_complete` |
//! | [`Kernel::online`], [`Kernel::running`] | `nr_online_cpus_mut`, `nr_running_mut` |
//! | [`Kernel::waiting`] | nothing: it counts the tasks that wait for a decision, and no others |
//! | [`Kernel::wanted`] | nothing: a BPF part of its own can count them ([`Model::kicking`]) |
//! | [`Kernel::cpus`], [`Kernel::capacity`] | nothing: the process reads them from sysfs when it starts |
//! | [`Ops::forget`] | nothing: the process looks whether threads are still there |
//! | [`Kernel::waits`], [`Ops::hint`] | nothing: memory that applications share with the scheduler |
//!
//! What it cannot know: a task's waker, what a task waits for unless its program says so, its mask (only how
//! many CPUs are in it), when it sleeps or ends. And it has only one lever: it gives the next slice.
//! [`Dispatch::preempt`] is there for policies of June 2024, whose core had it; the core of today has no
//! preemption.

mod bursts;
mod desk;
pub mod ext;
mod paper;
pub mod recorded;
pub mod rustland;
mod uniform_slice;
mod virtual_slice;
pub mod waitfor;

pub use bursts::{Bursts, Promises};
pub use ext::{Ext, Model};
pub use paper::{PaperTask, run_on_paper};
pub use recorded::Recorded;
pub use uniform_slice::{uniform_slice, uniform_slice_least};
pub use virtual_slice::virtual_slice;
pub use waitfor::WaitFor;

use std::fmt::Debug;

use event::{Cpu, Nanos, Task};

use crate::Attr;

/// A scheduler in user space.
pub trait Ops: Debug {
    /// The name it is chosen by.
    fn name(&self) -> &'static str;

    /// An application's hint about its task, beside the kernel; before the task's first message, and whenever
    /// it changes. No kernel delivers that. Default: it is ignored.
    fn hint(&mut self, task: Task, attr: &Attr) {
        let _ = (task, attr);
    }

    /// Whether it asks for [`Kernel::waits`]. Default: it does not.
    fn listens(&self) -> bool {
        false
    }

    /// The task has ended, and its number may be given to another one, of which nothing is known. No kernel
    /// delivers that; who numbers the tasks finds it out. Default: nothing was kept.
    fn forget(&mut self, task: Task) {
        let _ = task;
    }

    /// Takes the messages it wants and dispatches the tasks it wants. How many tasks it has taken and not
    /// dispatched. Called whenever it has the CPU: when messages have come, and when some were left.
    ///
    /// A round that dispatches nothing although tasks wait and CPUs have nothing to run is followed by the
    /// next one only when a message comes, or at the heartbeat of 100 ms.
    fn round(&mut self, kernel: &mut dyn Kernel) -> usize;
}

/// A user-space scheduler's view of the kernel.
pub trait Kernel {
    /// The time.
    fn now(&self) -> Nanos;

    /// The oldest message: a task that became ready and waits for a decision.
    fn dequeue(&mut self) -> Option<Queued>;

    /// Lets a task run. Without effect if the task is not the one of the message any more, because it has
    /// slept or ended since.
    fn dispatch(&mut self, dispatch: Dispatch);

    /// An idle CPU for the task, near this one, which goes first. The process's own is one if the BPF part
    /// says so ([`Model::kicks`]).
    fn select_cpu(&mut self, task: Task, cpu: Cpu) -> Option<Cpu>;

    /// How many CPUs are online.
    fn online(&self) -> usize;

    /// On how many CPUs a task runs, this process included.
    fn running(&self) -> usize;

    /// How many tasks are ready and have no CPU, wherever they wait; the process's own are among them.
    /// Nothing if the kernel does not say: real ones count only the tasks that wait for a decision.
    fn waiting(&self) -> Option<usize> {
        None
    }

    /// Whether the CPU is an idle one in that sense, for some task.
    fn is_idle(&self, cpu: Cpu) -> bool;

    /// How many CPUs have nothing to run, no task either that was dispatched and may run there.
    fn wanted(&self) -> usize;

    /// How many CPUs the machine has; they are numbered from 0.
    fn cpus(&self) -> usize;

    /// How fast the CPU can be, as a share of the fastest, which has 1024.
    fn capacity(&self, cpu: Cpu) -> u32;

    /// What programs say about their waits at this moment: each waiting task, with the tasks that it waits
    /// for. Statements, not facts: the task may not sleep, and the others may know nothing of it.
    fn waits(&self, visit: &mut dyn FnMut(Task, &[Task]));
}

/// A message: a task became ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued {
    /// The task. The kernel's thread id there, which is used again after the thread has ended.
    pub task: Task,
    /// Where it was queued.
    pub cpu: Cpu,
    /// On how many CPUs it may run.
    pub allowed: usize,
    /// Whether it slept, and did not just come to the end of its slice. One of the `flags`.
    pub woken: bool,
    /// When it had a CPU last, from here …
    pub start: Nanos,
    /// … to here. Both zero if it never had one.
    pub stop: Nanos,
    /// How long it has run since it slept last.
    pub exec_runtime: Nanos,
    /// Its weight: 1 to 10 000, 100 for nice 0.
    pub weight: u64,
    /// The scheduler's last [`Dispatch::vtime`] for it.
    pub vtime: u64,
    /// How often it has been queued; tells this message from older ones.
    pub enq_cnt: u64,
}

/// An answer: this task may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// The task.
    pub task: Task,
    /// Where; `None`: on the first CPU that has nothing else.
    pub cpu: Option<Cpu>,
    /// For how long. There is no default.
    pub slice: Nanos,
    /// Its place among those that wait for the same CPU, or for any: the least goes first, the older one
    /// among equals. Zero: the front.
    pub vtime: u64,
    /// The task that runs on `cpu` stops for it; with any CPU, the one that runs where the task was queued.
    pub preempt: bool,
    /// That of the message.
    pub enq_cnt: u64,
}

impl Dispatch {
    /// The answer to this message: on any CPU, for `slice`, in the order of the answers that give the same or
    /// an increasing `vtime`.
    pub fn of(queued: &Queued, slice: Nanos, vtime: u64) -> Dispatch {
        Dispatch {
            task: queued.task,
            cpu: None,
            slice,
            vtime,
            preempt: false,
            enq_cnt: queued.enq_cnt,
        }
    }
}

impl<O: Ops + ?Sized> Ops for Box<O> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn hint(&mut self, task: Task, attr: &Attr) {
        (**self).hint(task, attr);
    }

    fn listens(&self) -> bool {
        (**self).listens()
    }

    fn forget(&mut self, task: Task) {
        (**self).forget(task);
    }

    fn round(&mut self, kernel: &mut dyn Kernel) -> usize {
        (**self).round(kernel)
    }
}
