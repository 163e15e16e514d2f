//! What an explanation says: waits, their causes, inversions.

use event::{Nanos, Task};

use crate::timeline::Who;

/// What was found out about the waits that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The waits, the longest first; of equal lengths the earlier one, then the thread with the lower number.
    pub waits: Vec<Wait>,
    /// Waits that were asked for and are shorter than those, left out because of
    /// [`Selection::limit`](super::Selection::limit), or because the accounts would take too much memory.
    pub omitted: usize,
    /// What kept a thread that somebody waited for from running though it could, in the order of the waits.
    pub inversions: Vec<Inversion>,
}

/// What a wait is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitKind {
    /// A thread waited for a job of our job system.
    Job,
    /// A frame of our job system, from its beginning to its end.
    Frame,
    /// A slice that the program marked.
    Slice,
    /// A thread slept: from when it left its CPU until it ran again for more than a moment.
    Sleep,
}

/// A stretch of one thread's time, and where it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Whose.
    pub thread: Task,
    /// What it is.
    pub kind: WaitKind,
    /// The slice's name, the awaited job's label, the frame's number, or "sleep".
    pub name: String,
    /// From when.
    pub begin: Nanos,
    /// Until when: the first instant that does not belong to it.
    pub end: Nanos,
    /// How often its thread lost its CPU in it, or gave it away, though it could have gone on. None: the
    /// recording does not say who ran when.
    pub preemptions: Option<usize>,
    /// For whom the thread itself waited longest, if for anybody.
    pub awaited: Option<Awaited>,
    /// What it consists of, in the order of time: without gaps, without overlaps, from
    /// [`begin`](Wait::begin) to [`end`](Wait::end).
    pub segments: Vec<Segment>,
    /// The segments summed up by kind, thread and job in the way, the longest first. They sum to the wait's
    /// length.
    pub causes: Vec<Cause>,
}

impl Wait {
    /// How long it took.
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

/// For whom a thread waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// For whom.
    pub thread: Task,
    /// How sure that is.
    pub confidence: Confidence,
}

/// A stretch of a wait during which one thing held it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// The thread on the path: who would have had to go on. None: nobody is known.
    pub thread: Option<Task>,
    /// What that thread did, or what was done to it.
    pub kind: CauseKind,
    /// Where that thread could have run: who ran on the CPUs that it was allowed on. Each instant is split
    /// equally over those of them that were online, and what does not divide goes to the largest
    /// remainders: they sum to the segment's length. Of [`CauseKind::RunningSlowCore`], who ran on the
    /// faster ones. Else empty.
    pub by: Vec<Share>,
    /// Of a running thread, the job whose body it was in; of [`CauseKind::QueuedBehind`], the job in the way.
    pub job: Option<u64>,
    /// How sure this is.
    pub confidence: Confidence,
    /// The inversion it is a part of, if it is one.
    pub inversion: Option<InversionKind>,
}

impl Segment {
    /// How long it took.
    pub fn length(&self) -> Nanos {
        self.end - self.begin
    }
}

/// Segments of a wait with the same cause, summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What it was.
    pub kind: CauseKind,
    /// The thread on the path.
    pub thread: Option<Task>,
    /// Of [`CauseKind::QueuedBehind`], the job in the way.
    pub job: Option<u64>,
    /// How much.
    pub ns: Nanos,
    /// The sum of the segments' [`by`](Segment::by), the longest first; of equal ones as [`Who`] is ordered.
    pub by: Vec<Share>,
    /// How sure the least sure of the segments is.
    pub confidence: Confidence,
}

/// Somebody's part of a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Share {
    /// Whose.
    pub who: Who,
    /// How much.
    pub ns: Nanos,
}

macro_rules! words {
    ($(#[$about:meta])* $kind:ident { $($(#[doc = $doc:literal])* $name:ident = $word:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum $kind { $($(#[doc = $doc])* $name,)* }

        impl $kind {
            /// Every one.
            pub const ALL: &'static [$kind] = &[$($kind::$name,)*];

            /// The word for it in JSON and in lists.
            pub fn word(self) -> &'static str {
                match self { $($kind::$name => $word,)* }
            }

            /// What it means, in a sentence or two.
            pub fn about(self) -> &'static str {
                match self { $($kind::$name => concat!($($doc),*).trim(),)* }
            }
        }
    };
}

words! {
    /// What held a wait up.
    CauseKind {
        /// The thread ran.
        Running = "running";
        /// It ran on a slower CPU, or at a lower frequency, than the machine has: the time this took longer.
        RunningSlowCore = "running_slow_core";
        /// It had run, could have gone on, and something else ran.
        Preempted = "preempted";
        /// It had been woken and did not run yet.
        WakeLatency = "wake_latency";
        /// It could have run, and was put aside: the CPU time that its group may use was used up.
        Throttled = "throttled";
        /// It could have run, and no CPU that it was allowed on was online.
        NoCore = "no_core";
        /// A job could have begun, and who ran it in the end was busy with another one.
        QueuedBehind = "queued_behind";
        /// A job could not begin yet, and nothing tells what it waited for.
        NotReady = "not_ready";
        /// The thread could have run, and one that waited for it burnt a CPU that it was allowed on.
        BusyWaitStolen = "busy_wait_stolen";
        /// It slept because of a lock, and nothing tells who held it.
        Lock = "lock";
        /// It slept because of a device.
        Io = "io";
        /// It slept until an interrupt woke it (a timer, or a device), or its CPU was busy with one.
        Interrupt = "interrupt";
        /// The recording does not say.
        Unknown = "unknown";
    }
}

words! {
    /// Why a thread that somebody waited for did not run though it could. The first that fits.
    InversionKind {
        /// It was put aside: the CPU time that its group may use was used up.
        Throttled = "throttled";
        /// It held a lock that somebody on the path was blocked on.
        Lock = "lock";
        /// Somebody who waited for it ran on a CPU that it was allowed on.
        BusyWait = "busy_wait";
        /// A CPU that it was allowed on was idle, or it ran on a slow one while a faster one ran something
        /// else.
        Placement = "placement";
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
        /// It follows from what the recording says: from where a thread ever ran, or what a marker says.
        Inferred = "inferred";
        /// It is the likeliest reading, and nothing in the recording shows it.
        Assumed = "assumed";
    }
}

words! {
    /// What would take an inversion away.
    Remedy {
        /// Waiters that sleep instead of spinning.
        Park = "park";
        /// Smaller pieces of work: somebody else can take the rest.
        SmallerGrains = "smaller_grains";
        /// Threads with deadlines that stay off the slow CPUs.
        LeaveOutSlowCores = "leave_out_slow_cores";
        /// A lock that lends its owner the waiter's priority.
        PriorityInheritance = "priority_inheritance";
        /// Fewer threads than CPUs.
        FewerThreads = "fewer_threads";
        /// The same priority for threads that wait for each other.
        SamePriority = "same_priority";
        /// More CPUs to choose from.
        WiderAffinity = "wider_affinity";
        /// A mask that leaves out, for a while, the busy CPU in whose queue the thread was.
        MoveAway = "move_away";
        /// CPUs that sleep less deeply, and so wake up sooner.
        LighterSleep = "lighter_sleep";
        /// A larger quota of CPU time for the group, or none.
        RaiseQuota = "raise_quota";
        /// Threads that fit the quota: no more of them busy than it has CPUs, and none that spins.
        FitQuota = "fit_quota";
    }
}

/// Somebody could have run, somebody waited for that, and something else had the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inversion {
    /// Why.
    pub kind: InversionKind,
    /// The position of the wait in [`Explanation::waits`].
    pub wait: usize,
    /// Who waited.
    pub waiter: Task,
    /// Who could have run, or ran too slowly: the thread on the path. It is the waiter itself where that is
    /// what could have run.
    pub holder: Task,
    /// Who ran instead, most of the time.
    pub runner: Who,
    /// Everybody who did, the longest first. They sum to [`ns`](Inversion::ns).
    pub by: Vec<Share>,
    /// When it began first.
    pub begin: Nanos,
    /// How long it took, all in all.
    pub ns: Nanos,
    /// Priorities of waiter, holder and runner when it began, as the kernel counts them, the lowest first;
    /// none: it is not known, or the runner is no thread.
    pub priorities: [Option<i16>; 3],
    /// How sure this is.
    pub confidence: Confidence,
    /// What would take it away, the best first.
    pub remedies: Vec<Remedy>,
}
