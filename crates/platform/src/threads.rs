//! What the scheduler may ask of the world: threads, parking, time and facts about the machine.

use std::any::Any;
use std::fmt;

use event::Nanos;

use crate::{CpuSet, Limits, Memory, Topology, Treatment, TreatmentError};

/// Threads, parking, clocks and machine facts; a cheap value that is cloned freely.
///
/// # Safety
/// As for [`Memory`]; in addition [`spawn`](Platform::spawn) runs the body at most once, on a thread
/// whose [`local`](Platform::local) word starts as null, and the word's destructor runs on the
/// thread it belongs to, after the body.
pub unsafe trait Platform: Memory + Clone + Send + Sync {
    /// The only way to block.
    type Parker: Parker;
    /// A started thread.
    type Thread: Thread;

    /// The time since the platform's origin; never goes backwards on one thread.
    fn now(&self) -> Nanos;

    /// A new parker. Any thread may unpark it; one at a time may park on it.
    fn parker(&self) -> Self::Parker;

    /// Starts a thread. It inherits the floating-point environment (rounding, FTZ, DAZ) of the
    /// caller.
    ///
    /// # Errors
    /// If the system refuses another thread.
    fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Self::Thread, SpawnError>;

    /// The calling thread's one word; null until [`set_local`](Platform::set_local).
    fn local(&self) -> *const ();

    /// Sets the calling thread's word. `at_exit` is called with the word that is set when the
    /// thread ends, unless that is null. False if it will not be called any more: the thread is ending, and
    /// only destructors of its own thread-locals still run. The word is set all the same.
    fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) -> bool;

    /// The lowest address of the calling thread's stack that may be used; `None` if the platform cannot say.
    /// Stacks grow down. May cost some file accesses: for once a thread.
    fn stack_end(&self) -> Option<usize> {
        None
    }

    /// What the machine is.
    fn topology(&self) -> &Topology;

    /// What the machine is, read anew: after CPUs came that were not there before. Costs a thousand file
    /// accesses on a real machine with many CPUs.
    fn detect(&self) -> Topology {
        self.topology().clone()
    }

    /// What the process may use at this moment: what of [`topology`](Platform::topology) can change while it
    /// runs, read anew. Costs some file accesses on a real machine: for once a second, not for once a frame.
    fn limits(&self) -> Limits {
        self.topology().limits().clone()
    }

    /// The CPUs on which at least one of these threads may run at this moment; `None` if the platform cannot
    /// say, or if none of them lives any more. Costs a system call a thread.
    fn allowed(&self, threads: &[u64]) -> Option<CpuSet> {
        let _ = threads;
        None
    }

    /// The CPU the caller runs on at this moment, if the platform can say.
    fn current_cpu(&self) -> Option<u32>;

    /// The name by which others can speak of the calling thread as long as it lives; 0 if the
    /// platform has none.
    fn thread_id(&self) -> u64;

    /// Restricts a thread to these CPUs. The caller makes sure that the thread still lives: the
    /// system may give its name to another one.
    ///
    /// # Errors
    /// If the system refuses, or cannot do this at all.
    fn set_mask(&self, thread: u64, cpus: &CpuSet) -> Result<(), MaskError>;

    /// Has a thread treated like this by the system from now on, and returns what undoes it. Asked for
    /// nothing, it says how the thread is treated. The caller makes sure that the thread still lives, as for
    /// [`set_mask`](Platform::set_mask).
    ///
    /// # Errors
    /// If the system refuses, or cannot do this; nothing has changed then.
    fn treat(&self, thread: u64, how: &Treatment) -> Result<Treatment, TreatmentError> {
        let _ = (thread, how);
        Err(TreatmentError(
            "this platform treats all threads alike".into(),
        ))
    }

    /// Whether this thread has a CPU at this moment; `None` if the platform cannot say. One that is neither
    /// on a CPU nor asleep is ready and waits for one. The caller makes sure that the thread still lives.
    /// Costs some thirty microseconds on a real machine.
    fn is_on_cpu(&self, thread: u64) -> Option<bool>;

    /// What the calling thread has used so far. Costs some ten microseconds on a real machine.
    fn usage(&self) -> Usage;

    /// The same up to when the system last looked, which it does now and then by itself (Linux: at ticks and
    /// switches). Unlike [`usage`](Platform::usage) it never makes the system look, and so never costs the
    /// caller its CPU.
    fn usage_so_far(&self) -> Usage {
        self.usage()
    }

    /// [`Usage::involuntary`] alone, for half a microsecond: what to ask often.
    fn involuntary(&self) -> Option<u64> {
        self.usage().involuntary
    }

    /// The caller has done work worth this much time: nothing on a real machine, where work takes
    /// its time by itself; virtual time passes on a simulated one.
    fn charge(&self, work: Nanos);

    /// One turn of a naive loop that looks at `word` again and again: what it does between two looks.
    /// The caller looks, before and after.
    ///
    /// For experiments with the ways in which programs wait, and for nothing else: the job system never
    /// calls it (`cargo xtask tidy` looks), since it spins by [`Memory::spin_until`] and blocks by
    /// [`Parker`]. A simulated machine needs to be told of the turn, or a loop that only looks would
    /// never let its time pass.
    fn poll(&self, kind: Poll, word: &Self::AtomicU64);

    /// A seed for choices that need no secrecy (which victim first). Fixed where runs must repeat.
    fn seed(&self) -> u64;

    /// How many times this process image has been through the child side of `fork`. A job system
    /// compares it with the number at its creation: a child has no worker threads.
    fn fork_epoch(&self) -> u32;
}

/// What a naive loop does between two looks at a word; see [`Platform::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Poll {
    /// Nothing: it looks again at once.
    Spin,
    /// The CPU's hint that this is a loop that waits (x86 `pause`, Arm `yield`). The thread keeps its CPU.
    Pause,
    /// It offers its CPU to other threads (`sched_yield`). What the kernel makes of the offer differs from
    /// one scheduler to the next.
    Yield,
}

/// Blocks one thread until another says to go on.
///
/// A parker holds at most one token. `unpark` makes the token available, `park` consumes it,
/// waiting for it if there is none. `park` may return without a token; callers test again.
pub trait Parker: Send + Sync + 'static {
    /// Waits for the token or until `deadline`; [`Nanos::MAX`] waits for ever.
    fn park(&self, deadline: Nanos);
    /// Makes the token available. True if a parked thread had to be woken for it, which is the
    /// expensive case.
    fn unpark(&self) -> bool;
}

/// What a new thread should be.
#[derive(Clone, Debug, Default)]
pub struct ThreadSpec {
    /// Its name; systems cut it (Linux: 15 bytes).
    pub name: String,
    /// Stack size in bytes; the system's default if not given.
    pub stack_bytes: Option<usize>,
    /// The CPUs it may run on; those of the creator if not given.
    pub mask: Option<CpuSet>,
    /// How long it would like to run at a time. A kernel that schedules by deadlines (Linux from 6.12
    /// on, 100 us to 100 ms) lets a thread with a short slice start sooner after a wake-up; its share
    /// of the CPU stays the same. Other systems do not know the notion and ignore it.
    pub slice: Option<Nanos>,
}

/// A started thread that can be waited for.
pub trait Thread: Send + 'static {
    /// Waits for the thread to end.
    ///
    /// # Errors
    /// The payload of the panic that ended the thread.
    fn join(self) -> Result<(), Box<dyn Any + Send>>;

    /// Whether this is the calling thread, which cannot join itself.
    fn is_current(&self) -> bool;
}

/// What a thread has used of the machine; `None` where the system does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on a CPU.
    pub cpu: Option<Nanos>,
    /// Time it was ready to run and did not.
    pub runnable: Option<Nanos>,
    /// Switches away from it that it did not ask for: another thread was to run. Linux counts yields here.
    pub involuntary: Option<u64>,
    /// Switches away from it because it blocked.
    pub voluntary: Option<u64>,
}

/// The system refused a thread.
#[derive(Debug)]
pub struct SpawnError(pub String);

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start a thread: {}", self.0)
    }
}

impl std::error::Error for SpawnError {}

/// The system refused a CPU mask.
#[derive(Debug)]
pub struct MaskError(pub String);

impl fmt::Display for MaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot set the CPU mask: {}", self.0)
    }
}

impl std::error::Error for MaskError {}
