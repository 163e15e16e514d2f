//! The two names of a job: a [`JobId`] for users, a [`Ticket`] inside.
//!
//! Both hold a slot's index and the generation that the slot had when the job was made. The slot of a
//! finished job moves on to the next generation. So an old name never reaches a new job: it is recognised,
//! and the answer is that its job has finished.

use std::fmt;
use std::num::NonZeroU32;

use super::maps::Key;

/// Names one job of one job system, in 16 bytes.
///
/// An id is a plain copy: it owns nothing and keeps nothing alive. There is no duty to wait for its job or to
/// give the id back. It stays valid for ever: once the job has finished, the id is the name of a finished
/// job. Calls that are given an id of another job system refuse it, each as it says itself.
///
/// An id can be stored as bytes ([`to_bytes`](JobId::to_bytes)), or as 64 bits
/// ([`JobSystem::id_to_bits`](crate::JobSystem::id_to_bits)).
///
/// Ids are equal if they name the same job. To copy, compare or hash one neither allocates nor blocks, and
/// wakes no thread.
///
/// ```
/// use paceline::{Builder, JobId};
///
/// let js = Builder::new().workers(1).build().unwrap();
/// let load: JobId = js.job("load").schedule(|_| ());
/// let copy = load;
/// js.wait(load);
/// js.wait(copy); // The job has finished, so this returns at once.
/// assert_eq!(load, copy);
/// assert_ne!(load, js.job("load").schedule(|_| ()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct JobId {
    pub(crate) pool: NonZeroU32,
    index: u32,
    generation: u64,
}

impl JobId {
    pub(crate) fn new(pool: NonZeroU32, ticket: Ticket) -> JobId {
        JobId {
            pool,
            index: ticket.index(),
            generation: ticket.generation(),
        }
    }

    pub(crate) fn ticket(self) -> Ticket {
        Ticket::new(self.index, self.generation)
    }

    /// The id as bytes, for stores of plain data. They mean something to this process alone. Neither this nor
    /// [`from_bytes`](JobId::from_bytes) allocates, blocks or wakes.
    ///
    /// ```
    /// use paceline::{JobId, JobSystem};
    /// let js = JobSystem::new();
    /// let id = js.schedule(|_| ());
    /// assert_eq!(JobId::from_bytes(id.to_bytes()), Some(id));
    /// ```
    pub fn to_bytes(self) -> [u8; 16] {
        let halves = u128::from(self.generation) << 64
            | u128::from(self.index) << 32
            | u128::from(self.pool.get());
        halves.to_le_bytes()
    }

    /// The id that [`to_bytes`](JobId::to_bytes) made these bytes of. `None` if no id has such bytes.
    ///
    /// Other bytes do no harm. They may make the id of another job, or one that no job has ever had. Such an
    /// id counts as that of a job that is over, or of one of another job system.
    ///
    /// ```
    /// use paceline::{JobId, JobSystem};
    /// let js = JobSystem::new();
    /// assert_eq!(JobId::from_bytes([0; 16]), None);
    /// let mut bytes = js.schedule(|_| ()).to_bytes();
    /// bytes[4..7].fill(0xff); // No job system has so many jobs.
    /// assert!(js.is_done(JobId::from_bytes(bytes).unwrap()));
    /// ```
    pub fn from_bytes(bytes: [u8; 16]) -> Option<JobId> {
        let halves = u128::from_le_bytes(bytes);
        let (index, generation) = ((halves >> 32) as u32, (halves >> 64) as u64);
        let pool = NonZeroU32::new(halves as u32)?;
        let is_possible =
            index < Ticket::INDEX_END && (1..=Ticket::GENERATION_LAST).contains(&generation);
        is_possible.then_some(JobId {
            pool,
            index,
            generation,
        })
    }
}

impl From<&JobId> for JobId {
    fn from(id: &JobId) -> JobId {
        *id
    }
}

impl Key for JobId {
    fn digest(&self) -> u64 {
        self.ticket().digest()
    }
}

impl Key for Ticket {
    fn digest(&self) -> u64 {
        self.0
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({}:{}.{})", self.pool, self.index, self.generation)
    }
}

/// A job's name in queues: the slot's index in the low 24 bits, the generation in the high 40. It is never
/// zero, because generations start at 1. Zero means "no job".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

impl Ticket {
    /// No job.
    pub(crate) const NONE: Ticket = Ticket(0);
    pub(crate) const INDEX_BITS: u32 = 24;
    /// One past the largest slot index.
    pub(crate) const INDEX_END: u32 = 1 << Ticket::INDEX_BITS;
    /// The last generation: a slot that reaches it is retired, never reused.
    pub(crate) const GENERATION_LAST: u64 = (1 << (64 - Ticket::INDEX_BITS)) - 1;

    #[inline]
    pub(crate) fn new(index: u32, generation: u64) -> Ticket {
        debug_assert!(index < Ticket::INDEX_END && generation <= Ticket::GENERATION_LAST);
        Ticket(generation << Ticket::INDEX_BITS | u64::from(index))
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0 as u32 & (Ticket::INDEX_END - 1)
    }

    #[inline]
    pub(crate) fn generation(self) -> u64 {
        self.0 >> Ticket::INDEX_BITS
    }

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index(), self.generation())
    }
}

const _: () = assert!(size_of::<JobId>() == 16 && size_of::<Option<JobId>>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every id survives the way to bytes and back, and bytes that no id has are refused. Method: ids
    /// at the edges of their fields; then every single bit that may not be set.
    #[test]
    fn bytes_are_ids_or_nothing() {
        let indices = [0, 1, Ticket::INDEX_END - 1];
        for (pool, generation) in [(1, 1), (u32::MAX, Ticket::GENERATION_LAST), (7, 1 << 39)] {
            for index in indices {
                let pool = NonZeroU32::new(pool).unwrap();
                let id = JobId::new(pool, Ticket::new(index, generation));
                assert_eq!(JobId::from_bytes(id.to_bytes()), Some(id));
                for bit in (56..64).chain(104..128) {
                    let mut bytes = id.to_bytes();
                    bytes[bit / 8] |= 1 << (bit % 8);
                    assert_eq!(JobId::from_bytes(bytes), None, "bit {bit}");
                }
                for field in [0..4, 8..16] {
                    let mut bytes = id.to_bytes();
                    bytes[field].fill(0);
                    assert_eq!(JobId::from_bytes(bytes), None);
                }
            }
        }
    }
}
