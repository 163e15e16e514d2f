//! The name of a thread that jobs are pinned to.

use std::num::NonZeroU32;

/// Names the thread that a job is pinned to; from [`PinnedThread::pin`](crate::PinnedThread::pin). A plain
/// copy.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let main = js.pinned_thread();
/// let pin: paceline::ThreadPin = main.pin();
/// js.wait(js.job("present").pinned_to(pin).schedule(|_| ()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ThreadPin {
    pool: NonZeroU32,
    number: u32,
}

impl ThreadPin {
    pub(crate) fn new(pool: NonZeroU32, number: u32) -> ThreadPin {
        ThreadPin { pool, number }
    }

    /// The pin as 64 bits, for a word that another library keeps. They are never zero, and mean something to
    /// this process alone.
    ///
    /// ```
    /// use paceline::ThreadPin;
    /// let js = paceline::JobSystem::new();
    /// let main = js.pinned_thread();
    /// assert_eq!(ThreadPin::from_bits(main.pin().to_bits()), Some(main.pin()));
    /// ```
    pub fn to_bits(self) -> u64 {
        u64::from(self.pool.get()) << 32 | u64::from(self.number)
    }

    /// The pin that [`to_bits`](ThreadPin::to_bits) made these bits of. `None` if no pin has such bits. Other
    /// bits do no harm: a job that is pinned to what no thread is named is refused.
    ///
    /// ```
    /// assert_eq!(paceline::ThreadPin::from_bits(0), None);
    /// ```
    pub fn from_bits(bits: u64) -> Option<ThreadPin> {
        let pool = NonZeroU32::new((bits >> 32) as u32)?;
        let number = bits as u32;
        Some(ThreadPin { pool, number })
    }

    /// Its number in this job system. In others it is none's.
    pub(crate) fn number_in(self, pool: NonZeroU32) -> u32 {
        if self.pool == pool { self.number } else { 0 }
    }
}
