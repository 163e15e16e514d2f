//! What can happen to a job, a worker or a wait.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal;)*) => {
        /// What happened. The comment of each kind says what [`Event::job`](crate::Event::job) and
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
    /// Nothing holds `job` back any more; a ticket for it is in a queue.
    Ready = 3, "ready";
    /// This thread won the right to run `job`.
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
    /// This thread took tickets from another's queue. `arg`: the other's seat.
    Steal = 9, "steal";
    /// This thread found nothing to do and goes to sleep.
    Park = 10, "park";
    /// This thread is awake again.
    Unpark = 11, "unpark";
    /// This thread woke another one. `arg`: the other's seat.
    Wake = 12, "wake";
    /// This thread waits for `job`.
    WaitBegin = 13, "wait-begin";
    /// The wait for `job` is over. `arg`: 0 done, 1 panicked, 2 cancelled, 3 timed out, 4 deadlock.
    WaitEnd = 14, "wait-end";
    /// A frame begins. `job`: the frame's number; `arg`: its deadline.
    FrameBegin = 15, "frame-begin";
    /// The frame ended. `job`: the frame's number; `arg`: 1 if it missed its deadline.
    FrameEnd = 16, "frame-end";
    /// A private fork became a job that others can take.
    Promoted = 17, "promoted";
    /// Every worker was blocked in a wait while other work was ready: a spare worker starts.
    /// `arg`: its seat.
    Spare = 18, "spare";
    /// The number of workers was changed. `arg`: the new number.
    Resized = 19, "resized";
}
