//! The queues in which tickets lie until a thread takes them, and the protocol that tells idle threads of new
//! tickets.

pub(crate) mod deque;
pub(crate) mod idle;
mod injector;
mod ranked;

pub(crate) use deque::{Deque, STEAL_MAX};
pub(crate) use idle::{Fenced, Fences, Idle, IdleWord, THREAD_SLOTS_MAX};
pub(crate) use injector::Injector;
pub(crate) use ranked::{RankedQueue, key_of_deadline};

/// The queue of a thread into which new tickets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// The deque: tickets made by jobs.
    Own,
    /// The inbox: tickets made outside any job, started in the order they came.
    Inbox,
}
