//! The events of a job, a worker or a wait.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal;)*) => {
        /// The kind of an event. The comment of each kind says what [`Event::job`](crate::Event::job) and
        /// [`Event::arg`](crate::Event::arg) hold; both are 0 where nothing is said.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum EventKind { $($(#[$doc])* $name = $code,)* }

        impl EventKind {
            /// Every kind, in the order of the codes.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name,)*];

            /// The kind with this code, if there is one.
            pub fn from_code(code: u8) -> Option<EventKind> {
                match code { $($code => Some(EventKind::$name),)* _ => None }
            }

            /// The word used in listings.
            pub fn word(self) -> &'static str {
                match self { $(EventKind::$name => $word,)* }
            }
        }
    };
}

kinds! {
    /// A job came into being. `arg`: its label's number.
    Created = 1, "created";
    /// `job` will not start before the job in `arg` has ended.
    Edge = 2, "edge";
    /// Nothing holds `job` back any more; a ticket for it is in a queue. For a job that is a future: once for
    /// each time that it is to be polled.
    Ready = 3, "ready";
    /// This thread won the right to run `job`. `arg`: why it took this one, see [`Why`].
    Claimed = 4, "claimed";
    /// The body of `job` (or this thread's part of its range) begins.
    Begin = 5, "begin";
    /// The body of `job` (or this thread's part of its range) ended.
    End = 6, "end";
    /// `job` is over and its successors were told. `arg`: 0 done, 1 panicked, 2 cancelled.
    Completed = 7, "completed";
    /// This thread cut the remaining range of `job` in half. `arg`: first item taken, number of
    /// items taken (32 bits each).
    Split = 8, "split";
    /// This thread took tickets from another's queue. `arg`: the other's thread slot.
    Steal = 9, "steal";
    /// This thread found nothing to do and goes to sleep. `job`: the job it waits for; 0 if it would run
    /// anything.
    Park = 10, "park";
    /// This thread is awake again. `job`: as in [`Park`](EventKind::Park). `arg`: the thread slot of its
    /// waker, plus 1; 0 if no thread of this job system woke it: the time was up, or it did not sleep after
    /// all.
    Unpark = 11, "unpark";
    /// This thread wakes another one. `arg`: the other's thread slot.
    Wake = 12, "wake";
    /// This thread waits for `job`.
    WaitBegin = 13, "wait-begin";
    /// The wait for `job` is over. `arg`: 0 because the job is (its [`Completed`](EventKind::Completed)
    /// says how), 3 timed out, 4 deadlock.
    WaitEnd = 14, "wait-end";
    /// A frame begins. `job`: the frame's number; `arg`: its deadline.
    FrameBegin = 15, "frame-begin";
    /// The frame ended. `job`: the frame's number. `arg`: its label's number plus 1 (32 bits; 0: not known),
    /// and 1 if it missed its deadline (32 bits).
    FrameEnd = 16, "frame-end";
    /// A private fork became a job that others can take.
    Promoted = 17, "promoted";
    /// Every worker was blocked in a wait while other work was ready, or one made way: a spare worker starts.
    /// `arg`: its thread slot.
    Spare = 18, "spare";
    /// The number of workers was changed. `arg`: why (32 bits, see [`Resized`]), and the new number (32
    /// bits).
    Resized = 19, "resized";
    /// This thread waits for the job in `arg` and has found that `job` must be over before: a thread that
    /// makes `job` ready, or has work for it to share, tells this thread. Once a wait and job.
    Raised = 20, "raised";
    /// This thread has put tickets into a queue and woke no worker for them. `arg`: why (32 bits, see
    /// [`Withheld`]), and for how many tickets (32 bits). If no worker is idle there is nothing to decide,
    /// and nothing is recorded.
    WakeWithheld = 21, "wake-withheld";
    /// This worker changed the CPUs it may run on. `arg`: why (32 bits, see [`Steered`]), and the CPU it
    /// leaves out, plus 1 (32 bits; 0: none).
    Steered = 22, "steered";
    /// A woken worker had not started in time, so this thread gave it all CPUs back. `arg`: its thread slot.
    MaskRestored = 23, "mask-restored";
    /// A thread gets this slot. `arg`: the kernel's number for it; 0 if it has none.
    SlotTaken = 24, "slot-taken";
    /// Recording was switched. `arg`: 1 on, 0 off. In between nothing is known.
    Recording = 25, "recording";
    /// Threads of the job system are kept from running by others, or are not any more, and the job system
    /// decided something. `job`: how long they waited for a CPU, in thousandths of the time that they ran or
    /// waited (32 bits), and how often they lost theirs, per 1000 frames (32 bits). `arg`: the decision (32
    /// bits, see [`Interfered`]), and the number of workers from now on (32 bits).
    Interference = 26, "interference";
    /// A woken worker had not started in time, so this thread had the kernel look again at the CPU that it
    /// waits for, and at the thread that runs there. `arg`: its thread slot.
    Nudged = 27, "nudged";
    /// A span of the program's own begins. `arg`: its label's number.
    SpanBegin = 28, "span-begin";
    /// A span of the program's own ended. `arg`: its label's number.
    SpanEnd = 29, "span-end";
    /// A value that the program counts. `job`: its label's number; `arg`: the value, as the bits of an `i64`.
    Counter = 30, "counter";
    /// This worker rests in the middle of a background job, while another one works in its place.
    MakesWay = 31, "makes-way";
    /// This worker goes on with its background job.
    GoesOn = 32, "goes-on";
}

/// Why a thread ran this job and no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Why {
    /// It runs anything, and this was next.
    Next = 0,
    /// It waits for this job.
    Awaited = 1,
    /// It waits for a job that cannot begin before this one is over.
    Needed = 2,
    /// It waits for the job that made this one, or for one that cannot begin before that is over.
    Part = 3,
}

/// Why no worker was woken for new work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Withheld {
    /// Another thread is awake and looks for work.
    Searched = 1,
    /// No worker sleeps that could run it.
    NobodySleeps = 2,
    /// One was woken for the first ticket; for the others when the batch is complete.
    Batch = 3,
}

/// Why a worker changed the CPUs it may run on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Steered {
    /// It and the thread that wakes it were in each other's way, and another CPU idled.
    InTheWay = 1,
    /// That has not happened for a while.
    Over = 2,
    /// Without that CPU it started late several times in a row.
    Late = 3,
}

/// Why the number of workers was changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Resized {
    /// The program asked for it.
    Asked = 0,
    /// Fewer threads can run at the same time than before: CPUs are offline, or forbidden, or rationed.
    Narrower = 1,
    /// More can.
    Wider = 2,
    /// Other threads of the machine want its CPUs, or do not any more: see
    /// [`Interference`](EventKind::Interference).
    Interference = 3,
}

/// The decision about threads that others keep from running.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Interfered {
    /// In most frames a thread waited for a CPU.
    Noticed = 1,
    /// They are more threads than they get CPUs: fewer workers, for a try, none of which spins.
    Fewer = 2,
    /// The fewer are left alone and get as much CPU time as all did: they stay as few for a while.
    Kept = 3,
    /// The fewer wait for CPUs as well, or get less CPU time than all did: all are back.
    Restored = 4,
    /// The while is over: all are back, to see whether the CPUs are free again.
    Probed = 5,
    /// Threads hardly wait for a CPU any more.
    Over = 6,
}

macro_rules! reasons {
    ($($reason:ident: $($name:ident)*;)*) => { $(
        impl $reason {
            /// The reason with this number, if there is one.
            pub fn from_code(code: u64) -> Option<$reason> {
                [$($reason::$name),*].into_iter().find(|reason| *reason as u64 == code)
            }
        }
    )* };
}

reasons! {
    Why: Next Awaited Needed Part;
    Withheld: Searched NobodySleeps Batch;
    Steered: InTheWay Over Late;
    Resized: Asked Narrower Wider Interference;
    Interfered: Noticed Fewer Kept Restored Probed Over;
}
