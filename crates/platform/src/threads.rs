//! What the job system cannot do without: threads, parking and time.

use std::any::Any;

use event::Nanos;

use crate::{CpuSet, Machine, Memory, OnSignal, RefusalKind, Signal, SignalError, SpawnError};

/// Threads, parking and clocks; a cheap value that is cloned freely. What only the adaptation to a machine
/// asks is in [`Machine`].
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
    /// What can be asked about the machine; [`Uniform`](crate::Uniform) where nothing is known of it.
    type Machine: Machine;

    /// The time since the platform's origin. It never goes backwards on one thread. Costs ten nanoseconds on
    /// a real machine, fifty where the system has to be asked.
    fn now(&self) -> Nanos;

    /// A new parker. Any thread may unpark it, one at a time may park on it. Free.
    fn parker(&self) -> Self::Parker;

    /// Starts a thread. It inherits the floating-point environment (rounding, FTZ, DAZ) of the
    /// caller. Costs some ten microseconds on a real machine.
    ///
    /// # Errors
    /// If the system refuses another thread.
    fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Self::Thread, SpawnError>;

    /// The calling thread's one word: null until [`set_local`](Platform::set_local). Costs one load.
    fn local(&self) -> *const ();

    /// Sets the calling thread's word. `at_exit` is called with the word that is set when the
    /// thread ends, unless that is null. False if it will not be called any more: the thread is ending, and
    /// only destructors of its own thread-locals still run. The word is set all the same. For once a thread.
    fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) -> bool;

    /// The lowest address of the calling thread's stack that may be used, `None` if the platform cannot say.
    /// Stacks grow down. May cost some file accesses: for once a thread.
    fn stack_end(&self) -> Option<usize> {
        None
    }

    /// The CPU that the caller runs on at this moment, if the platform can say. Costs some nanoseconds.
    fn current_cpu(&self) -> Option<u32>;

    /// The machine that the threads run on. Free, and the same one at each call.
    fn machine(&self) -> &Self::Machine;

    /// The name by which other threads can speak of the calling one as long as it lives, 0 if the platform
    /// has none. Costs a system call.
    fn thread_id(&self) -> u64;

    /// Whether the calling thread is certainly the only one there can ever be. Such a thread waits for no
    /// other. Free, but for the first call.
    fn is_alone(&self) -> bool {
        false
    }

    /// The calling thread's name for people, `None` if it has none. Systems cut it (Linux: 15 bytes), and may
    /// give a thread without a name that of the thread that started it. May cost a system call: for once a
    /// thread.
    fn thread_name(&self) -> Option<String> {
        None
    }

    /// Makes `call` on a thread of the platform's whenever this process gets the signal, until the returned
    /// value is dropped. The first time in a process costs as much as starting a thread.
    ///
    /// # Errors
    /// If the platform has no signals, if the program handles this one itself, or if the system refuses the
    /// thread.
    fn on_signal(
        &self,
        signal: Signal,
        call: Box<dyn Fn() + Send + Sync>,
    ) -> Result<OnSignal, SignalError> {
        drop(call);
        let text = "this platform has no signals";
        Err(SignalError::new(signal, RefusalKind::Unsupported, text))
    }

    /// The caller has done work worth this much time. Nothing happens on a real machine, where work takes its
    /// time by itself. On a simulated one virtual time passes.
    fn charge(&self, work: Nanos);

    /// A seed for choices that need no secrecy (which victim first). Fixed where runs must repeat. For once a
    /// thread.
    fn seed(&self) -> u64;

    /// How many times this process image has been through the child side of `fork`. A job system compares it
    /// with the number at its creation: a child has no worker threads. Costs two loads.
    fn fork_epoch(&self) -> u32;
}

/// Blocks one thread until another says to go on.
///
/// A parker holds at most one token. `unpark` makes the token available, `park` consumes it,
/// waiting for it if there is none. `park` may return without a token; callers test again.
pub trait Parker: Send + Sync + 'static {
    /// Waits for the token or until `deadline`, with [`Nanos::MAX`] for ever. Costs one read-modify-write if
    /// there is a token, else a system call.
    fn park(&self, deadline: Nanos);
    /// Makes the token available. True if a parked thread had to be woken for it, which costs a system call.
    /// Else it costs one read-modify-write.
    fn unpark(&self) -> bool;
}

/// What a new thread should be.
#[derive(Clone, Debug, Default)]
pub struct ThreadSpec {
    /// Its name. Systems cut it (Linux: 15 bytes).
    pub name: String,
    /// Stack size in bytes, the system's default if not given.
    pub stack_bytes: Option<usize>,
    /// The CPUs that it may run on, those of its creator if not given.
    pub mask: Option<CpuSet>,
    /// How long it would like to run at a time. A kernel that schedules by deadlines (Linux from 6.12
    /// on, 100 us to 100 ms) lets a thread with a short slice start sooner after a wake-up. Its share
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

    /// The same for the end of all: no thread will take this one's place. A platform may leave a thread that
    /// has done its work and cannot end at the moment, or that has done none and then never does.
    ///
    /// # Errors
    /// As for [`join`](Thread::join), unless the thread was left.
    fn join_last(self) -> Result<(), Box<dyn Any + Send>>
    where
        Self: Sized,
    {
        self.join()
    }

    /// Whether this is the calling thread, which cannot join itself.
    fn is_current(&self) -> bool;
}
