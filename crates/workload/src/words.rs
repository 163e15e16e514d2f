//! The words that workloads keep their results in.
//!
//! They are the machine's own atomics on every platform, simulated ones included. Results are the measuring
//! instrument and not the thing measured: on a simulated machine the cost of a body is its charge, the
//! movement of its data is not modelled, and a result that opened a simulated cache line would be both.
//!
//! All accesses are Relaxed: that a job sees what its dependencies wrote is the job system's
//! promise, and a test of it must not keep the promise on its own.

use std::ops::Range;

use platform::{Atomic, Memory, Ordering, Os};

/// Words written by jobs and read by later ones; each by one job at a time.
pub(crate) struct Words<A>(Vec<A>);

pub(crate) type Words32 = Words<<Os as Memory>::AtomicU32>;
pub(crate) type Words64 = Words<<Os as Memory>::AtomicU64>;

impl<A> Words<A> {
    pub(crate) fn zeros<T: Copy + Default>(count: usize) -> Words<A>
    where
        A: Atomic<T>,
    {
        Words((0..count).map(|_| A::new(T::default())).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get<T: Copy>(&self, index: usize) -> T
    where
        A: Atomic<T>,
    {
        self.0[index].load(Ordering::Relaxed)
    }

    pub(crate) fn set<T: Copy>(&self, index: usize, value: T)
    where
        A: Atomic<T>,
    {
        self.0[index].store(value, Ordering::Relaxed);
    }
}

impl Words64 {
    /// The wrapping sum of a range. Four sums side by side, because one would wait for its own last
    /// addition at every step.
    pub(crate) fn sum(&self, range: Range<usize>) -> u64 {
        let words = self.0[range].chunks_exact(4);
        let rest = words.remainder().iter();
        let rest = rest.fold(0u64, |sum, word| {
            sum.wrapping_add(word.load(Ordering::Relaxed))
        });
        let sums = words.fold([0u64; 4], |sums, four| {
            std::array::from_fn(|i| sums[i].wrapping_add(four[i].load(Ordering::Relaxed)))
        });
        sums.into_iter().fold(rest, u64::wrapping_add)
    }
}
