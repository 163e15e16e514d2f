//! All thread slots of a job system: making them, and giving them to threads.

use platform::{Atomic, Lock, Ordering, Platform, SharedCell};

use super::thread_slot::{ThreadKind, ThreadSlot, ThreadSlotSpec};
use crate::limits::VISITORS_MAX;

/// All thread slots. The array is made for the maximum; thread slots are added as threads need them.
pub(crate) struct ThreadSlots<P: Platform> {
    slots: Box<[P::Cell<*const ThreadSlot<P>>]>,
    count: P::AtomicU32,
    growth: P::Lock<()>,
    /// The capacity of each queue.
    queue: usize,
    guests_max: usize,
}

// SAFETY: thread slots are owned by the table, written once under the lock before `count` covers them, and
// reached by shared reference. The content of a thread slot is either atomic or guarded by the rule that only
// its owner touches `own`.
unsafe impl<P: Platform> Sync for ThreadSlots<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Send for ThreadSlots<P> {}

impl<P: Platform> ThreadSlots<P> {
    /// Room for `limit` thread slots, at most `guests_max` of them for outside threads, with queues of
    /// `queue` tickets.
    pub(crate) fn new(limit: usize, guests_max: usize, queue: usize) -> ThreadSlots<P> {
        ThreadSlots {
            slots: (0..limit).map(|_| P::Cell::new(std::ptr::null())).collect(),
            count: P::AtomicU32::new(0),
            growth: P::Lock::new(()),
            queue,
            guests_max,
        }
    }

    /// How many outside threads can have a slot at the same time.
    pub(crate) fn guests_max(&self) -> usize {
        self.guests_max
    }

    /// How many thread slots there can ever be.
    pub(crate) fn limit(&self) -> usize {
        self.slots.len()
    }

    /// How many thread slots exist.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // Acquire, partner: the Release store in `add`.
        self.count.load(Ordering::Acquire) as usize
    }

    /// The thread slot with this index. The caller has the index from something that happened after the
    /// thread slot was made: from `len`, from `add`, from something that its thread published. (For other
    /// callers: [`find`](ThreadSlots::find).)
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &ThreadSlot<P> {
        // SAFETY: the pointer was written before the thread slot's index got to any other thread (see above),
        // and it never changes.
        unsafe { self.slots[index].with(|slot| &**slot) }
    }

    /// The thread slot with an index that was read from a word that orders nothing, such as a mark. `None` if
    /// the making of the thread slot is not visible here.
    #[inline]
    pub(crate) fn find(&self, index: usize) -> Option<&ThreadSlot<P>> {
        (index < self.len()).then(|| self.get(index))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ThreadSlot<P>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// A new thread slot for a worker or a guest, or `None` if all exist already.
    pub(crate) fn add(&self, platform: &P, kind: ThreadKind) -> Option<&ThreadSlot<P>> {
        let is_for_visitors = false;
        self.add_as(
            platform,
            ThreadSlotSpec {
                kind,
                is_for_visitors,
            },
        )
    }

    fn add_as(&self, platform: &P, spec: ThreadSlotSpec) -> Option<&ThreadSlot<P>> {
        self.growth.with(|()| {
            let alike = |slot: &&ThreadSlot<P>| {
                slot.kind == spec.kind && slot.is_for_visitors == spec.is_for_visitors
            };
            let most = match (spec.kind, spec.is_for_visitors) {
                (ThreadKind::Guest, false) => self.guests_max,
                (ThreadKind::Guest, true) => VISITORS_MAX,
                _ => usize::MAX,
            };
            if most < usize::MAX && self.iter().filter(alike).count() >= most {
                return None; // The rest is for others that may still come.
            }
            let index = self.count.load(Ordering::Relaxed);
            let place = self.slots.get(index as usize)?;
            let make = || ThreadSlot::new(platform, index, spec, self.queue);
            let slot = Box::into_raw(Box::new(P::on_own_lines(make)));
            // SAFETY: `count` does not cover this place yet, and the lock keeps other writers out.
            unsafe { place.with_mut(|pointer| *pointer = slot) };
            // Release, partner: the Acquire load in `len`.
            self.count.store(index + 1, Ordering::Release);
            Some(self.get(index as usize))
        })
    }

    /// A guest's thread slot: one that was left, or a new one. It belongs to the caller from now on. A
    /// visitor gets one even if guests have taken all that they may have, as long as there are not too many
    /// visitors.
    pub(crate) fn take_guest(&self, platform: &P, visits: bool) -> Option<&ThreadSlot<P>> {
        let guest = |is_for_visitors| ThreadSlotSpec {
            kind: ThreadKind::Guest,
            is_for_visitors,
        };
        let usual = self.take_as(platform, guest(false));
        usual.or_else(|| {
            visits
                .then(|| self.take_as(platform, guest(true)))
                .flatten()
        })
    }

    fn take_as(&self, platform: &P, spec: ThreadSlotSpec) -> Option<&ThreadSlot<P>> {
        // Acquire, partner: the Release store in `leave`: what the last guest did to `own`.
        let take = |slot: &&ThreadSlot<P>| {
            slot.flag
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        };
        let fits = |slot: &&ThreadSlot<P>| {
            slot.kind == spec.kind && slot.is_for_visitors == spec.is_for_visitors
        };
        let left = self.iter().filter(fits).find(take);
        left.or_else(|| {
            let slot = self.add_as(platform, spec)?;
            // Another guest may take the new thread slot first. Then ask again.
            if take(&slot) {
                Some(slot)
            } else {
                self.take_as(platform, spec)
            }
        })
    }

    /// The guest on this thread slot has ended.
    pub(crate) fn leave(&self, index: u32) {
        // Release, partner: the Acquire in `take_guest`.
        self.get(index as usize).flag.store(0, Ordering::Release);
    }
}

impl<P: Platform> Drop for ThreadSlots<P> {
    fn drop(&mut self) {
        for index in 0..self.len() {
            // SAFETY: `&mut self`: no thread uses the thread slot. The pointer is from `Box::into_raw` and
            // dropped once.
            unsafe {
                self.slots[index].with(|slot| drop(Box::from_raw((*slot).cast_mut())));
            }
        }
    }
}
