//! The counters of a job system. Each event is counted by the thread where it happens.

use platform::{Atomic, Memory, Ordering};

macro_rules! counters {
    (
        threads: { $($(#[$doc:meta])* $name:ident,)* }
        elsewhere: { $($(#[$there_doc:meta])* $there:ident,)* }
    ) => {
        /// Totals since the job system was made, from [`JobSystem::stats`](crate::JobSystem::stats). Each is
        /// exact; together they are a snapshot of no single instant. Times are in ns, all others are numbers
        /// of events.
        ///
        /// ```
        /// let js = paceline::JobSystem::new();
        /// let before = js.stats();
        /// js.wait(js.schedule(|_| ()));
        /// assert_eq!(js.stats().since(&before).jobs, 1);
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats { $($(#[$doc])* pub $name: u64,)* $($(#[$there_doc])* pub $there: u64,)* }

        /// The share of one thread slot. Only the thread that has the slot writes: a load and a store, no
        /// read-modify-write.
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
            /// The counters by name, in a fixed order, for listings and `--json`. Allocates.
            ///
            /// ```
            /// let js = paceline::JobSystem::new();
            /// for (name, count) in js.stats().named() {
            ///     println!("{name}: {count}");
            /// }
            /// ```
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![
                    $((stringify!($name), self.$name),)*
                    $((stringify!($there), self.$there),)*
                ]
            }

            /// The differences to `earlier`, each at least 0.
            ///
            /// ```
            /// let js = paceline::JobSystem::new();
            /// let stats = js.stats();
            /// assert_eq!(stats.since(&stats).jobs, 0);
            /// ```
            pub fn since(&self, earlier: &Stats) -> Stats {
                Stats {
                    $($name: self.$name.saturating_sub(earlier.$name),)*
                    $($there: self.$there.saturating_sub(earlier.$there),)*
                }
            }
        }
    };
}

counters! {
    threads: {
        /// Bodies run. A range counts once for each thread that took part, a future once for each poll.
        jobs,
        /// Blocks of ranges run.
        blocks,
        /// Jobs dropped unrun because a predecessor failed.
        cancelled,
        /// Bodies that panicked.
        panicked,
        /// Captures of bodies, results and payloads of panics that panicked when the job system dropped them.
        /// The job ended as it would have without.
        drop_panics,
        /// Hooks, sinks and wakers that panicked.
        hook_panics,
        /// Tickets taken from another thread slot's queue.
        steals,
        /// Halves cut off another thread's range.
        splits,
        /// Pieces of ranges that slow workers ran.
        slow_pieces,
        /// Private forks that became jobs.
        promotions,
        /// Threads woken (a system call each).
        wakes_sent,
        /// Wake-ups of workers that found nothing to do.
        wakes_useless,
        /// Times that a thread went to sleep for want of work or inside a wait.
        parks,
        /// Jobs run from inside a wait.
        helps,
        /// Times that a spare worker was put to work because all others were blocked in waits, or one had
        /// made way.
        spares,
        /// Times that a worker made way for more urgent jobs in the middle of a background job.
        yields,
        /// Times that no spare worker could be put to work: there are as many as may be, or the system
        /// refused a thread.
        spares_refused,
        /// Tickets that did not fit a queue and went to the injector.
        overflow,
        /// Workers that woke up on the CPU of the thread that had woken them.
        colocated,
        /// Workers kept off their waker's CPU that did not start in time and were given all CPUs back.
        masks_restored,
        /// Times that the kernel was asked to look again which thread should run on a CPU, because a woken
        /// worker had not started there in time.
        nudges,
        /// Looks at the machine, to find how much of it may be used.
        looks,
        /// Times that the number of workers followed the machine.
        resizes,
        /// Time on a CPU, in ns, of all threads of the job system. A thread adds its time once a frame if it
        /// was preempted, else every 16 frames.
        ran_ns,
        /// Time, in ns, that these threads were ready to run and did not; added together with `ran_ns`.
        waited_ns,
        /// Switches away from these threads that they did not ask for.
        preempted,
        /// Times that one of these threads waited longer for a CPU, in a frame, than a wake-up takes.
        delayed,
        /// Frames ended.
        frames,
        /// Frames that ended after their deadline.
        frames_missed,
    }

    // Counted by the part of the job system that sees it.
    elsewhere: {
        /// Pieces of idempotent jobs that a wait ran a second time.
        repeats,
        /// Those of them whose second run ended first.
        repeats_won,
    }
}

/// A counter that one thread adds to and any thread reads.
pub(crate) struct Counter<M: Memory>(M::AtomicU64);

impl<M: Memory> Counter<M> {
    fn new() -> Self {
        Counter(M::AtomicU64::new(0))
    }

    /// Called by the owner only. Relaxed: a statistic publishes nothing.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now + n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
