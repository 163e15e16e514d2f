//! What a job system has done so far, counted where it happens.

use platform::{Atomic, Memory, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Totals since the job system was made. Each is exact; together they are a snapshot of no
        /// single instant.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats { $($(#[$doc])* pub $name: u64,)* }

        /// One seat's share. Only the seat's owner writes: a load and a store, no read-modify-write.
        pub(crate) struct Counters<M: Memory> { $(pub(crate) $name: Counter<M>,)* }

        impl<M: Memory> Counters<M> {
            pub(crate) fn new() -> Self {
                Counters { $($name: Counter::new(),)* }
            }
            pub(crate) fn add_to(&self, total: &mut Stats) {
                $(total.$name += self.$name.get();)*
            }
        }

        impl Stats {
            /// The counters by name, in a fixed order, for listings and `--json`.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            /// What was counted since `earlier`.
            pub fn since(&self, earlier: &Stats) -> Stats {
                Stats { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }
        }
    };
}

counters! {
    /// Bodies run: single jobs, and each thread's part of a range.
    jobs,
    /// Blocks of ranges run.
    blocks,
    /// Jobs dropped unrun because a predecessor failed.
    cancelled,
    /// Bodies that panicked.
    panicked,
    /// Captures of bodies, results and payloads of panics that panicked when the job system dropped them. The
    /// job ended as it would have without.
    drop_panics,
    /// Hooks, sinks and wakers that panicked.
    hook_panics,
    /// Tickets taken from another seat's queue.
    steals,
    /// Halves cut off another thread's range.
    splits,
    /// Pieces of ranges that slow workers ran.
    slow_pieces,
    /// Private forks that became jobs.
    promotions,
    /// Threads woken (a system call each).
    wakes_sent,
    /// Of the workers so woken: those that found nothing to do.
    wakes_useless,
    /// Times a thread went to sleep for want of work or inside a wait.
    parks,
    /// Jobs run from inside a wait.
    helps,
    /// Times a spare worker was put to work because all others were blocked in waits.
    spares,
    /// Times that could not be done: there are as many spares as may be, or the system refused a thread.
    spares_refused,
    /// Tickets that did not fit a queue and went to the injector.
    overflow,
    /// Workers that woke up on the CPU of the thread that had woken them.
    colocated,
    /// Workers kept off their waker's CPU that did not start in time and were given all CPUs back.
    masks_restored,
    /// Times that the kernel was asked to look again at who runs on a CPU, because a woken worker had not
    /// started there in time.
    nudges,
    /// Looks at what of the machine may be used at that moment.
    looks,
    /// Times that the number of workers followed the machine.
    resizes,
    /// Time on a CPU, in ns, of threads of the job system, as far as they have said: once a frame if they
    /// were preempted, else every 16 frames.
    ran_ns,
    /// Time that they were ready to run and did not, in ns; said together with the above.
    waited_ns,
    /// Switches away from them that they did not ask for.
    preempted,
    /// Threads that waited longer for a CPU, in a frame, than a wake-up takes.
    delayed,
    /// Frames ended.
    frames,
    /// Frames that ended after their deadline.
    frames_missed,
}

/// A number that one thread counts and any thread reads.
pub(crate) struct Counter<M: Memory>(M::AtomicU64);

impl<M: Memory> Counter<M> {
    fn new() -> Self {
        Counter(M::AtomicU64::new(0))
    }

    /// By the owner only. Relaxed: a statistic publishes nothing.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now + n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
