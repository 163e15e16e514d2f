//! What a scheduler in user space is told about this job system's threads, behind one door: `Hints`.
//!
//! With feature `hints` the door leads to a page of crate `hint`, if the builder asked for one and a
//! scheduler listens. Without, there is nothing behind it. The two are chosen here and nowhere else.
//!
//! Each thread says which lane the job is of that it runs, and until when it has to be done: the deadline of
//! the job's frame. A thread in a wait that is about to rest says which threads run jobs that it needs: those
//! whose present job is the target, was marked by the walk of this wait, or descends from one of these. What
//! these threads wait for in turn they say themselves.
//!
//! ```text
//! a job begins or ends        Context::tell_body     the lane, or that of the job underneath
//! a wait rests, and wakes     Waiter::rest_now       the threads, or none
//! a thread gets a slot        begin_with_slot        its number
//! ```
//!
//! Neither side of the door knows contexts: the caller passes its own part, `HintLocal`.
//!
//! Invariant: nothing depends on what is said, or on whether it is heard. Where hints are off no job costs an
//! instruction more: bodies are told by the branch that is there for the program's hook.

#[cfg(not(feature = "hints"))]
mod silent;
#[cfg(feature = "hints")]
mod told;

#[cfg(not(feature = "hints"))]
pub(crate) use silent::{NoHintSetting as HintSetting, NoHints as Hints, NothingSaid as HintLocal};
#[cfg(feature = "hints")]
pub(crate) use told::{HintLocal, HintSetting, ToldHints as Hints};
