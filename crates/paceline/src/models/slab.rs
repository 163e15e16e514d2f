//! Goal: an entry of a table is never handed out twice, and the thread that has it sees the writes of its
//! last user.
//! Method: two threads allocate from a stack of magazines while one of them gives entries back.
//! Bounds: two entries, each in a magazine of its own, two allocations a thread, three preemptions.
//! Planted bugs: the stack's head carries no tag, so that a pop that was overtaken by two pops and a push
//! succeeds (ABA) and two jobs share a slot; the stack publishes nothing.

use std::sync::Arc;

use platform::{Memory, Ordering, SharedCell};
use testkit::Loom;

use super::{Notes, Part, RACE, Spoil, Spoiled, check, must_find, spoiled, together};
use crate::store::{Cache, Slab};

/// An entry, which the thread that has it writes to.
struct Locker<M: Memory>(M::Cell<u32>);
// SAFETY: only a thread that has the entry touches it. The checker is asked whether that is one thread at a
// time.
unsafe impl<M: Memory> Sync for Locker<M> {}
// SAFETY: as above.
unsafe impl<M: Memory> Send for Locker<M> {}

/// A slab whose first two entries lie on the stack, each in a magazine of its own.
struct Lockers<M: Memory> {
    slab: Slab<M, Locker<M>>,
    held: Notes<u32>,
}

impl<M: Memory> Lockers<M> {
    fn new() -> Arc<Self> {
        let slab = Slab::new(2, 3, || Locker(SharedCell::new(0)));
        slab.make_room_for_cache(2);
        let mut cache = Cache::new();
        let two = [0, 1].map(|_| slab.allocate(&mut cache).expect("there is room").0);
        for index in two {
            slab.free_from_afar(index);
        }
        Arc::new(Lockers {
            slab,
            held: Notes::new(),
        })
    }

    fn take(&self, cache: &mut Cache) -> u32 {
        let (index, locker) = self.slab.allocate(cache).expect("there is room");
        self.held.add(index);
        // SAFETY: the entry is this thread's; see above.
        unsafe { locker.0.with_mut(|users| *users += 1) };
        index
    }

    /// Takes two entries.
    fn taker(self: &Arc<Self>) -> Part {
        let lockers = self.clone();
        Box::new(move || {
            let mut cache = Cache::new();
            lockers.take(&mut cache);
            lockers.take(&mut cache);
        })
    }

    /// Takes two entries and gives the first one back.
    fn exchanger(self: &Arc<Self>) -> Part {
        let lockers = self.clone();
        Box::new(move || {
            let mut cache = Cache::new();
            let one = lockers.take(&mut cache);
            lockers.take(&mut cache);
            lockers.held.remove(&one);
            lockers.slab.free_from_afar(one);
        })
    }
}

const TWICE: &str = "an entry is held twice";

fn share_lockers<M: Memory>(first: usize) {
    let lockers = Lockers::<M>::new();
    together(first, [lockers.taker(), lockers.exchanger()]);
    let held = lockers.held.take();
    assert!(
        held.is_sorted_by(|one, next| one < next),
        "{TWICE}: {held:?}"
    );
}

#[test]
fn an_entry_is_handed_out_once() {
    check(3, 2, share_lockers::<Loom>);
}

/// The stacks carry no tag.
#[derive(Clone, Copy)]
struct NoTag;

impl Spoil for NoTag {
    const FILES: &'static [&'static str] = &["slab/depot.rs"];
    fn written(value: u64) -> u64 {
        value & u64::from(u32::MAX)
    }
}

#[test]
fn a_stack_without_a_tag_hands_out_an_entry_twice() {
    must_find(TWICE, 3, || {
        spoiled::<NoTag>(|| share_lockers::<Spoiled>(0))
    });
}

/// The stacks publish nothing.
#[derive(Clone, Copy)]
struct NotExchanged;

impl Spoil for NotExchanged {
    const FILES: &'static [&'static str] = &["slab/depot.rs"];
    fn exchange(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn a_stack_that_publishes_nothing_hands_out_entries_in_use() {
    must_find(RACE, 3, || {
        spoiled::<NotExchanged>(|| share_lockers::<Spoiled>(0))
    });
}
