//! The answer of an explanation: waits, their causes, inversions.

use event::{Cpu, Nanos, Task};

use super::groups::Group;
use crate::Name;
use crate::timeline::Who;

/// The explanation of the selected waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The waits, the worst first: frames that were late, by how much; then other frames and waits, the
    /// longest first; then those of the display's server; then those of drivers and of the kernel's own
    /// threads. Turns, of which apps' come first, are compared by how long their thread did not run. Of equal
    /// ones the earlier one, then the thread with the lower number.
    pub waits: Vec<Wait>,
    /// The number of selected waits that come behind those and are left out, because of
    /// [`Selection::limit`](super::Selection::limit), or because the accounts would take too much memory.
    pub omitted: usize,
    /// What kept an awaited thread from running although it could, in the order of the waits.
    pub inversions: Vec<Inversion>,
    /// The selected waits by name, where there are many of one: also those that are left out of
    /// [`waits`](Explanation::waits). In the order of their worst ones.
    pub groups: Vec<Group>,
}

/// The kind of a wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitKind {
    /// A thread waited for a job of our job system.
    Job,
    /// A frame of our job system, from its beginning to its end.
    Frame,
    /// A slice that the program marked.
    Slice,
    /// What a thread did from its wake-up until it had nothing to do, answers that it waited for included.
    Turn,
    /// A thread slept: from when it left its CPU until it ran again for more than a moment.
    Sleep,
}

impl WaitKind {
    /// Whether a program gave it its name.
    pub fn is_named(self) -> bool {
        !matches!(self, WaitKind::Turn | WaitKind::Sleep)
    }
}

/// A stretch of one thread's time, divided by causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread that waited.
    pub thread: Task,
    /// The kind of the wait.
    pub kind: WaitKind,
    /// The slice's name, the awaited job's label, the frame's number, "turn" or "sleep".
    pub name: String,
    /// Its beginning.
    pub begin: Nanos,
    /// Its end: the first instant that does not belong to it.
    pub end: Nanos,
    /// Of a frame that was late: how much later than its deadline it ended, or how much longer than a period
    /// of the display it was. None: it was not, or that is not known.
    pub late: Option<Nanos>,
    /// How many times its thread lost its CPU in it, or gave it away, although it could have continued. None:
    /// the recording does not say which threads ran.
    pub preemptions: Option<usize>,
    /// The thread that it waited for longest, if there is one.
    pub awaited: Option<Awaited>,
    /// Its segments, in the order of time: without gaps, without overlaps, from [`begin`](Wait::begin) to
    /// [`end`](Wait::end).
    pub segments: Vec<Segment>,
    /// The segments summed up by kind, thread and job in the way, the longest first. Their sum is the wait's
    /// length.
    pub causes: Vec<Cause>,
}

impl Wait {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.end - self.begin
    }

    /// The sum of the causes, which is its length.
    pub fn sum(&self) -> Nanos {
        self.causes
            .iter()
            .fold(Nanos::ZERO, |sum, cause| sum + cause.ns)
    }
}

/// The thread that another one waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The awaited thread.
    pub thread: Task,
    /// How sure that is.
    pub confidence: Confidence,
}

/// A stretch of a wait during which one thing held it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its beginning.
    pub begin: Nanos,
    /// Its end.
    pub end: Nanos,
    /// The thread on the path: the one that would have had to continue. None: no thread is known.
    pub thread: Option<Task>,
    /// What that thread did, or what was done to it.
    pub kind: CauseKind,
    /// What ran on the CPU in whose queue the thread was: on the one that was taken from it, or for which it
    /// was woken. Where that CPU is not known, and of [`CauseKind::BusyWaitStolen`], what ran on all CPUs
    /// that the thread was allowed on: each instant is split equally over those of them that were online, and
    /// the nanoseconds that do not divide go to the largest remainders. Of [`CauseKind::SmallCore`], what ran
    /// on the faster ones. These sum to the segment's length. Else empty.
    pub by: Vec<Share>,
    /// Whether the thread could have run on another CPU, which was idle. It is as sure as it is that the
    /// thread was allowed there: where no recording says that, it is inferred.
    pub beside_idle: bool,
    /// The CPU that had to leave its idle state, of [`CauseKind::IdleExit`].
    pub exit: Option<IdleExit>,
    /// The kernel's function in which the thread slept, if the recording names it.
    pub function: Option<Name>,
    /// The job: of a thread that ran or was awake, the one whose body it was in; of
    /// [`CauseKind::QueuedBehind`], the one in the way.
    pub job: Option<u64>,
    /// How sure this is.
    pub confidence: Confidence,
    /// The inversion it is a part of, if it is one.
    pub inversion: Option<InversionKind>,
}

impl Segment {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.end - self.begin
    }
}

/// Segments of a wait with the same cause, summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The kind of the cause.
    pub kind: CauseKind,
    /// The thread on the path.
    pub thread: Option<Task>,
    /// Of [`CauseKind::QueuedBehind`], the job in the way.
    pub job: Option<u64>,
    /// Its time.
    pub ns: Nanos,
    /// The sum of the segments' [`by`](Segment::by), the longest first; of equal ones as [`Who`] is ordered.
    pub by: Vec<Share>,
    /// The part of the time in which another CPU that the thread may use was idle.
    pub beside_idle: Nanos,
    /// The CPU that had to leave its idle state, of [`CauseKind::IdleExit`].
    pub exit: Option<IdleExit>,
    /// The kernel's function in which the thread slept, if the recording names it.
    pub function: Option<Name>,
    /// The confidence of the least sure segment.
    pub confidence: Confidence,
}

/// A CPU that was idle when a thread was put into its queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IdleExit {
    /// The CPU.
    pub cpu: Cpu,
    /// The idle state it was in, as its kernel counts them, the lightest first; none: it is not known.
    pub state: Option<u8>,
}

/// A part of a time that belongs to one thread, or to none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Share {
    /// What had the CPU.
    pub who: Who,
    /// Its time.
    pub ns: Nanos,
}

impl CauseKind {
    /// Whether the thread ran, however slowly, or may have.
    pub fn is_run(self) -> bool {
        matches!(
            self,
            CauseKind::Running
                | CauseKind::Awake
                | CauseKind::SmallCore
                | CauseKind::LowFrequency
                | CauseKind::FrequencyLimit
                | CauseKind::Interrupted
        )
    }
}

macro_rules! words {
    ($(#[$about:meta])* $kind:ident { $($(#[doc = $doc:literal])* $name:ident = $word:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum $kind { $($(#[doc = $doc])* $name,)* }

        impl $kind {
            /// All of them.
            pub const ALL: &'static [$kind] = &[$($kind::$name,)*];

            /// The word for it in JSON and in lists.
            pub fn word(self) -> &'static str {
                match self { $($kind::$name => $word,)* }
            }

            /// Its meaning, in a sentence or two.
            pub fn about(self) -> &'static str {
                match self { $($kind::$name => concat!($($doc),*).trim(),)* }
            }
        }
    };
}

words! {
    /// The cause of a part of a wait.
    CauseKind {
        /// The thread ran.
        Running = "running";
        /// It ran, was kept from running, or slept in code of the program's: without scheduler events nothing
        /// tells which.
        Awake = "awake";
        /// It ran on a smaller CPU than the largest of the machine: the extra time.
        SmallCore = "small_core";
        /// It ran at a lower frequency than its CPU may have: the extra time.
        LowFrequency = "low_frequency";
        /// It ran on a CPU whose frequency was limited, by heat or by a program: the extra time.
        FrequencyLimit = "frequency_limit";
        /// It had run and could have continued, and something else ran.
        Preempted = "preempted";
        /// It had been woken and did not run yet.
        WakeLatency = "wake_latency";
        /// It could have run, and the CPU in whose queue it was had nothing else to do: that CPU left its
        /// idle state.
        IdleExit = "idle_exit";
        /// It could have run, and was put aside: the CPU time of its group was used up.
        Throttled = "throttled";
        /// It could have run, and no CPU that it was allowed on was online.
        NoCore = "no_core";
        /// A job could have begun, and the thread that ran it in the end was busy with another one.
        QueuedBehind = "queued_behind";
        /// A job could not begin yet, and nothing tells what it waited for.
        NotReady = "not_ready";
        /// The thread could have run, and another one that waited for it burnt a CPU that it was allowed on.
        BusyWaitStolen = "busy_wait_stolen";
        /// It slept because of a lock, and nothing tells which thread held it.
        Lock = "lock";
        /// It slept because of a device, as the kernel says.
        Io = "io";
        /// It slept in the kernel, and no thread or device that it waited for is known. The recording may
        /// name the kernel's function.
        Blocked = "blocked";
        /// It slept until an interrupt woke it: a timer, or a device.
        Interrupt = "interrupt";
        /// Its CPU was busy with an interrupt.
        Interrupted = "interrupted";
        /// The recording does not say.
        Unknown = "unknown";
    }
}

words! {
    /// Why an awaited thread did not run although it could. The first that fits.
    InversionKind {
        /// It was put aside: the CPU time of its group was used up.
        Throttled = "throttled";
        /// It held a lock that a thread on the path was blocked on.
        Lock = "lock";
        /// A thread that waited for it ran on a CPU that it was allowed on.
        BusyWait = "busy_wait";
        /// The CPU in whose queue it was left its idle state.
        IdleExit = "idle_exit";
        /// A CPU that it was allowed on was idle, and in whose queue it was is not known; or it ran on a
        /// small one while one that was faster at that time was idle, or ran something else.
        Placement = "placement";
        /// It ran at a lower frequency than its CPU may have.
        LowFrequency = "low_frequency";
        /// It ran on a CPU whose frequency was limited.
        FrequencyLimit = "frequency_limit";
        /// No CPU that it was allowed on was online.
        NoCore = "no_core";
        /// Something else ran.
        Preemption = "preemption";
    }
}

words! {
    /// How sure an answer is, the surest first.
    Confidence {
        /// The recording says so.
        Known = "known";
        /// It follows from the recording: from where a thread ever ran, or from a marker.
        Inferred = "inferred";
        /// It is the likeliest reading, and nothing in the recording shows it.
        Assumed = "assumed";
    }
}

words! {
    /// A change that would remove an inversion.
    Remedy {
        /// Waiters that sleep instead of spinning.
        Park = "park";
        /// A lock that is held for less time.
        ShorterLock = "shorter_lock";
        /// Threads with deadlines that stay off the slow CPUs.
        LeaveOutSlowCores = "leave_out_slow_cores";
        /// A higher frequency while the thread runs: a utilisation clamp, a performance hint, another
        /// governor.
        RaiseFrequency = "raise_frequency";
        /// Less heat, or a higher limit: the frequency is limited for the heat, or by a program.
        RaiseLimit = "raise_limit";
        /// A lock that lends its owner the waiter's priority.
        PriorityInheritance = "priority_inheritance";
        /// Fewer threads than CPUs.
        FewerThreads = "fewer_threads";
        /// The same priority for threads that wait for each other.
        SamePriority = "same_priority";
        /// A real-time class: the thread has the better priority already, and of ordinary threads that one
        /// only has a larger part of the CPU.
        RealtimeClass = "realtime_class";
        /// More CPUs to choose from.
        WiderAffinity = "wider_affinity";
        /// A mask that leaves out, for a while, the busy CPU of the thread's queue.
        MoveAway = "move_away";
        /// CPUs that sleep less deeply, and so wake up sooner.
        LighterSleep = "lighter_sleep";
        /// A larger quota of CPU time for the group, or none.
        RaiseQuota = "raise_quota";
        /// Threads that fit the quota: no more of them busy than it has CPUs, and none that spins.
        FitQuota = "fit_quota";
    }
}

words! {
    /// What a difference between two recordings means.
    Verdict {
        /// There is more of it here than there, beyond the spread within each.
        Grew = "grew";
        /// There is less of it.
        Shrank = "shrank";
        /// The difference may be chance.
        Same = "same";
    }
}

/// A thread could have run, another one waited for that, and something else had the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inversion {
    /// The reason.
    pub kind: InversionKind,
    /// The position of the wait in [`Explanation::waits`].
    pub wait: usize,
    /// The thread that waited.
    pub waiter: Task,
    /// The thread on the path, which could have run or ran too slowly. It is the waiter itself if the waiter
    /// could have run.
    pub holder: Task,
    /// What ran instead, most of the time.
    pub runner: Who,
    /// All that ran instead, the longest first. They sum to [`ns`](Inversion::ns).
    pub by: Vec<Share>,
    /// The part of the time in which another CPU that the holder may use was idle.
    pub beside_idle: Nanos,
    /// Its first beginning.
    pub begin: Nanos,
    /// Its time, all in all.
    pub ns: Nanos,
    /// The CPU in whose queue the holder was at the beginning, if it was in one that is known.
    pub queue: Option<Cpu>,
    /// Priorities of waiter, holder and runner at the beginning, as the kernel counts them, the lowest first;
    /// none: it is not known, or the runner is no thread.
    pub priorities: [Option<i16>; 3],
    /// How sure this is.
    pub confidence: Confidence,
    /// Changes that would remove it, the best first.
    pub remedies: Vec<Remedy>,
}
