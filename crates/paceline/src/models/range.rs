//! Goal: every item of a range is handed out exactly once.
//! Method: the owner of a word takes from its front while one or two thieves cut its back off. Of the items
//! that it has cut off a thief keeps the first one to itself. The rest becomes its word, which another
//! thief may cut again.
//! Bounds: three or four items, one thief with three preemptions or two with two.
//! Planted bug: a word is changed by a load and a store instead of a compare-exchange, so that an item is
//! taken at the front and cut off at the back. (A word's orderings are Relaxed already.)

use std::sync::Arc;

use platform::{Atomic, Memory, Ordering};
use testkit::Loom;

use super::{Notes, Part, Spoil, Spoiled, check, must_find, spoiled, together};
use crate::work::range::words::{cut_half, take_front};

/// A range word.
fn word(lo: u32, hi: u32) -> u64 {
    u64::from(hi) << 32 | u64::from(lo)
}

struct Loop<M: Memory> {
    items: u32,
    words: [M::AtomicU64; 3],
    out: Notes<u32>,
}

impl<M: Memory> Loop<M> {
    /// All items are in the first word.
    fn new(items: u32) -> Arc<Self> {
        Arc::new(Loop {
            items,
            words: [word(0, items), 0, 0].map(M::AtomicU64::new),
            out: Notes::new(),
        })
    }

    /// Takes everything from a word, `most` at a time.
    fn use_up(&self, number: usize, most: u32) {
        while let Some(items) = take_front::<M>(&self.words[number], most, 1) {
            (items.lo..items.hi).for_each(|item| self.out.add(item));
        }
    }

    fn owner(self: &Arc<Self>, most: u32) -> Part {
        let it = self.clone();
        Box::new(move || it.use_up(0, most))
    }

    /// Cuts once: from the owner's word, or else from the other thief's.
    fn thief(self: &Arc<Self>, me: usize) -> Part {
        let it = self.clone();
        Box::new(move || {
            let cut = [0, 3 - me]
                .into_iter()
                .find_map(|other| cut_half::<M>(&it.words[other], 1));
            if let Some(items) = cut {
                // As `Participant::steal`.
                it.out.add(items.lo);
                if items.len() > 1 {
                    it.words[me].store(word(items.lo + 1, items.hi), Ordering::Relaxed);
                    it.use_up(me, 1);
                }
            }
        })
    }

    fn settle(&self) {
        let all: Vec<u32> = (0..self.items).collect();
        assert_eq!(self.out.take(), all, "{SYMPTOM}");
    }
}

const SYMPTOM: &str = "items handed out";

fn one_thief<M: Memory>(first: usize, items: u32, most: u32) {
    let it = Loop::<M>::new(items);
    together(first, [it.owner(most), it.thief(1)]);
    it.settle();
}

fn two_thieves<M: Memory>(first: usize, items: u32) {
    let it = Loop::<M>::new(items);
    together(first, [it.owner(1), it.thief(1), it.thief(2)]);
    it.settle();
}

#[test]
fn every_item_is_handed_out_once() {
    check(3, 2, |first| one_thief::<Loom>(first, 3, 1));
    check(3, 2, |first| one_thief::<Loom>(first, 4, 2));
    check(2, 3, |first| two_thieves::<Loom>(first, 3));
}

/// Words are changed by a load and a store.
#[derive(Clone, Copy)]
struct Torn;

impl Spoil for Torn {
    const TORN: bool = true;
}

#[test]
fn a_word_that_is_not_exchanged_at_once_hands_out_items_twice() {
    must_find(SYMPTOM, 3, || {
        spoiled::<Torn>(|| one_thief::<Spoiled>(0, 3, 1))
    });
}
