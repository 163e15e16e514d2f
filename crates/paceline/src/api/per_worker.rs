//! A value for each thread that takes part: [`PerWorker`].
//!
//! Each thread slot has a list of values that only the thread in that slot touches. A value is lent to one
//! call at a time. Mostly the list has one. A call inside of another one, on the same thread, gets the next:
//! a thread that waits for the rest of a loop may run a part of the same loop in between.

use std::cell::{Cell, UnsafeCell};
use std::num::NonZeroU32;

use platform::{Atomic, Ordering, Os, Platform, SharedCell};

use crate::work::{Context, Shared};

/// A value for each thread that takes part in some work: sums, buffers, lists of what was found; from
/// [`JobSystem::per_worker`](crate::JobSystem::per_worker).
///
/// Values are made when a thread first needs one, so there are as many as threads that took part, and not as
/// many as threads there could be. They are kept until the `PerWorker` is dropped, so that a program can use
/// them again in the next frame. The order of the values depends on which thread came when: sums of
/// floating-point numbers that must be the same in each run belong in [`Loop::fold`](crate::Loop::fold).
///
/// ```
/// let js = paceline::JobSystem::new();
/// let mut visible = js.per_worker(|_| Vec::new());
/// for _frame in 0..3 {
///     js.over(0..1000).for_each_with(|cx, object| {
///         if object % 100 == 0 {
///             visible.with(cx, |list| list.push(object));
///         }
///     });
///     let mut all: Vec<usize> = visible.iter_mut().flat_map(|list| list.drain(..)).collect();
///     all.sort();
///     assert_eq!(all, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
/// }
/// ```
pub struct PerWorker<T, P: Platform = Os> {
    owner: NonZeroU32,
    make: Box<dyn Fn(usize) -> T + Send + Sync>,
    /// For each thread slot the first of its values. Only the thread in that slot reads and writes it.
    first: Box<[P::Cell<*mut Node<T>>]>,
    /// The number of values.
    made: P::AtomicU32,
}

/// A value, and the next one on the same thread slot. It lies apart from those of other threads.
#[repr(align(128))]
struct Node<T> {
    value: UnsafeCell<T>,
    number: usize,
    is_lent: Cell<bool>,
    next: Cell<*mut Node<T>>,
}

// SAFETY: a value is touched by the thread in its thread slot alone, one thread after another, each of which
// has acquired what the one before did when it got the slot (`ThreadSlots`); or by the owner of the whole. So
// values are sent, and never shared.
unsafe impl<T: Send, P: Platform> Sync for PerWorker<T, P> {}
// SAFETY: as above.
unsafe impl<T: Send, P: Platform> Send for PerWorker<T, P> {}

impl<T, P: Platform> PerWorker<T, P> {
    pub(super) fn new(
        shared: &Shared<P>,
        make: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> Self {
        let none = |_| P::Cell::new(std::ptr::null_mut());
        PerWorker {
            owner: shared.id,
            make: Box::new(make),
            first: (0..shared.threads.limit()).map(none).collect(),
            made: P::AtomicU32::new(0),
        }
    }

    /// Lends `f` the value of this thread, which is made first if there is none. A call inside of `f`, also
    /// in a job that this thread runs while `f` waits, gets another value. Allocates when a value is made. It
    /// never blocks.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut sums = js.per_worker(|_| 0);
    /// js.parallel_for(0..1000, paceline::Grain::Auto, |part, cx| {
    ///     sums.with(cx, |sum| *sum += part.sum::<usize>());
    /// });
    /// assert_eq!(sums.into_iter().sum::<usize>(), 499_500);
    /// ```
    ///
    /// # Panics
    /// If the context is of another job system. With a panic of `f`: the value stays as `f` left it.
    #[track_caller]
    pub fn with<R>(&self, cx: &Context<'_, P>, f: impl FnOnce(&mut T) -> R) -> R {
        /// Takes the value back, also during an unwind.
        struct TakesBack<'n>(&'n Cell<bool>);
        impl Drop for TakesBack<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        assert!(
            cx.shared.id == self.owner,
            "these values are for the threads of another job system"
        );
        let node = self.free_node(cx.worker());
        // SAFETY: nodes live as long as `self`, and this one is of this thread's list.
        let node = unsafe { &*node };
        node.is_lent.set(true);
        let _takes_back = TakesBack(&node.is_lent);
        // SAFETY: the value is this thread's, and is lent to this call alone.
        f(unsafe { &mut *node.value.get() })
    }

    /// The first value on this thread's list that is not lent.
    fn free_node(&self, thread: usize) -> *mut Node<T> {
        let first = &self.first[thread];
        // SAFETY: the list belongs to the thread in this slot, which the caller's context is for.
        let mut node = unsafe { first.with(|first| *first) };
        // SAFETY: as above; nodes are freed by the owner of `self` alone.
        while let Some(known) = unsafe { node.as_ref() } {
            if !known.is_lent.get() {
                return node;
            }
            node = known.next.get();
        }
        // Relaxed: a number.
        let number = self.made.fetch_add(1, Ordering::Relaxed) as usize;
        // The program's code comes before the end of the list is looked for: it may use this `PerWorker`.
        let new = Box::into_raw(Box::new(Node {
            value: UnsafeCell::new((self.make)(number)),
            number,
            is_lent: Cell::new(false),
            next: Cell::new(std::ptr::null_mut()),
        }));
        // SAFETY: as above.
        let mut last = unsafe { first.with(|first| (*first).as_ref()) };
        // SAFETY: as above.
        while let Some(next) = last.and_then(|last| unsafe { last.next.get().as_ref() }) {
            last = Some(next);
        }
        match last {
            Some(last) => last.next.set(new),
            // SAFETY: as above.
            None => unsafe { first.with_mut(|first| *first = new) },
        }
        new
    }

    /// The values, in the order in which they were made. Allocates the list of them.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut counts = js.per_worker(|_| 0);
    /// js.over(0..100).for_each_with(|cx, _| counts.with(cx, |count| *count += 1));
    /// assert_eq!(counts.iter_mut().map(|count| std::mem::take(count)).sum::<u32>(), 100);
    /// assert!(counts.iter_mut().all(|count| *count == 0));
    /// ```
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        let mut values: Vec<(usize, &mut T)> = Vec::new();
        for first in &mut self.first {
            // SAFETY: no call is in progress (`&mut self`), so the list is this thread's.
            let mut node = unsafe { first.with(|first| *first) };
            while !node.is_null() {
                // SAFETY: as above; each node is visited once.
                let known = unsafe { &mut *node };
                node = known.next.get();
                values.push((known.number, known.value.get_mut()));
            }
        }
        values.sort_unstable_by_key(|(number, _)| *number);
        values.into_iter().map(|(_, value)| value)
    }

    /// Takes all nodes out.
    fn take_nodes(&mut self) -> Vec<Box<Node<T>>> {
        let mut nodes = Vec::new();
        for first in &mut self.first {
            // SAFETY: as in `iter_mut`.
            let mut node = unsafe {
                first.with_mut(|first| std::mem::replace(&mut *first, std::ptr::null_mut()))
            };
            while !node.is_null() {
                // SAFETY: made by `Box::into_raw` in `free_node`, and the list does not lead to it any more.
                let known = unsafe { Box::from_raw(node) };
                node = known.next.get();
                nodes.push(known);
            }
        }
        nodes.sort_unstable_by_key(|node| node.number);
        nodes
    }
}

impl<T, P: Platform> IntoIterator for PerWorker<T, P> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    /// The values, in the order in which they were made.
    fn into_iter(mut self) -> Self::IntoIter {
        let nodes = self.take_nodes();
        let values = nodes.into_iter().map(|node| node.value.into_inner());
        values.collect::<Vec<T>>().into_iter()
    }
}

impl<T, P: Platform> Drop for PerWorker<T, P> {
    fn drop(&mut self) {
        self.take_nodes();
    }
}

impl<T, P: Platform> std::fmt::Debug for PerWorker<T, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a number.
        write!(f, "PerWorker({} values)", self.made.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use crate::border::caught;
    use crate::{Builder, Grain};

    /// Goal: each item is counted once, in the value of the thread that ran it. Method: nested loops on two
    /// workers, whose waits run parts of one another, over and over with the same values.
    #[test]
    fn nested_loops_share_no_value() {
        let js = Builder::small().workers(2).build().unwrap();
        let mut counts = js.per_worker(|_| vec![0_u32; 2]);
        let (rounds, items) = if cfg!(miri) { (1, 6) } else { (50, 40) };
        for _ in 0..rounds {
            js.parallel_for(0..items, Grain::Items(1), |part, cx| {
                for _ in part {
                    counts.with(cx, |count| {
                        cx.parallel_for(0..items, Grain::Items(1), |part, cx| {
                            counts.with(cx, |count| count[1] += part.len() as u32);
                        });
                        count[0] += 1;
                    });
                }
            });
        }
        let [mut outer, mut inner] = [0, 0];
        for count in counts.iter_mut() {
            outer += count[0];
            inner += count[1];
        }
        let items = items as u32;
        assert_eq!((outer, inner), (rounds * items, rounds * items * items));
    }

    /// Goal: values are numbered from zero without gaps, and a panic in a call, or where a value is made,
    /// leaves the rest in order.
    #[test]
    fn values_have_dense_numbers() {
        let js = Builder::small().workers(0).build().unwrap();
        let mut values = js.per_worker(|number| {
            assert!(number != 1, "the second value cannot be made");
            number
        });
        js.enter(|cx| {
            let nested = || {
                values.with(cx, |first| {
                    assert_eq!(*first, 0);
                    values.with(cx, |second| *second)
                })
            };
            assert!(caught(nested).is_err());
            assert_eq!(nested(), 2, "the next value has the next number");
            assert_eq!(nested(), 2, "and is used again");
        });
        assert!(values.iter_mut().map(|value| *value).eq([0, 2]));
        assert!(values.into_iter().eq([0, 2]));
    }

    /// Goal: a context of another job system is refused, whose threads have the same numbers.
    #[test]
    fn other_job_systems_are_refused() {
        let [js, other] = [(); 2].map(|()| Builder::small().workers(0).build().unwrap());
        let values = js.per_worker(|_| 0);
        let foreign = || other.enter(|cx| values.with(cx, |value| *value));
        assert!(caught(foreign).is_err());
    }
}
