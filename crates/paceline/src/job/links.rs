//! The links between jobs: "tell `to` when `from` is over".
//!
//! A link is in two lists. One is its predecessor's: those to tell, from [`Slot::links`] on, each of which
//! knows the next one, until that job is over. The other is its successor's: what holds it back, from
//! [`Slot::preds`] on, until *that* job is over and gives the links back. The first always ends
//! before the second, because the successor cannot start earlier.
//!
//! Successors are scheduled with all they wait for, so the links of one successor lie together,
//! [`PLACES`] to a cache line: who they tell is written once for all of them, and giving them back
//! costs nothing if they fit a block ([`Preds`]), and else a look at each. A waiting thread
//! or a pending future takes a block for itself; it is given back by the finisher of `from`.
//!
//! Which link is next is known in one of two places ([`Link`]). For the first [`PLACES_IN_SLOT`] of a
//! successor that is its slot ([`Slot::next`]), whose line the finisher has to have anyhow, to count down
//! what holds the successor back; and the slot says itself who it is, for it cannot move on to another job
//! before it was told. So the finisher does not touch the block, which stays in the cache of the thread
//! that fills blocks. Further links, those that were added late, and listeners have their `next` in the
//! block ([`Links::next`]).
//!
//! [`Slot::links`]: super::Slot::links
//! [`Slot::next`]: super::Slot::next
//! [`Slot::preds`]: super::Slot::preds

use platform::{Atomic, Memory, Ordering};

use super::Ticket;
use crate::slab::NIL;

/// Links in a block.
pub(crate) const PLACES: usize = 4;

const PLACE_BITS: u32 = PLACES.trailing_zeros();

/// Links whose `next` is in the slot of their successor.
pub(crate) const PLACES_IN_SLOT: usize = 2;

/// The number of the first link in a slot. Numbers have 28 bits: the upper quarter is for those, as many as
/// there can be slots, and the two largest, which belong to no slot, mean something else.
const FIRST_IN_SLOT: u32 = 3 << 26;

/// Blocks whose links can be numbered.
pub(crate) const LINK_BLOCKS_MAX: u32 = FIRST_IN_SLOT >> PLACE_BITS;

/// The links of one successor, or some of them.
#[repr(align(64))]
pub(crate) struct Links<M: Memory> {
    /// Whom to tell: the successor's ticket; or, with generation 0, a
    /// [`Listener`](crate::listen::Listener). 0 while the block is being filled. A free block keeps what it
    /// was: who gives it back would have to fetch the line for it, and who fills it next does that anyhow.
    pub(crate) to: M::AtomicU64,
    /// The predecessors' tickets; 0 where there is no link.
    pub(crate) from: [M::AtomicU64; PLACES],
    /// For each link the number of the next one in its predecessor's list, unless the slot knows it.
    pub(crate) next: [M::AtomicU32; PLACES],
    /// The successor's next block.
    pub(crate) more: M::AtomicU32,
}

impl<M: Memory> Links<M> {
    /// Links of nobody.
    pub(crate) fn empty() -> Links<M> {
        Links {
            to: M::AtomicU64::new(0),
            from: std::array::from_fn(|_| M::AtomicU64::new(0)),
            next: std::array::from_fn(|_| M::AtomicU32::new(NIL)),
            more: M::AtomicU32::new(NIL),
        }
    }

    /// Makes these the links from up to [`PLACES`] jobs to `to`, a block before `more`.
    #[inline]
    pub(crate) fn fill(&self, from: &[Ticket], to: u64, more: u32) {
        // Relaxed: ordered by the Release stores that follow.
        self.to.store(0, Ordering::Relaxed);
        // Release, partner: the fence in `read`: a walker that sees any of this sees the 0 as
        // well, and does not take it for what the block was before.
        for (place, word) in self.from.iter().enumerate() {
            let ticket = from.get(place).copied().unwrap_or(Ticket::NONE);
            word.store(ticket.0, Ordering::Release);
        }
        self.more.store(more, Ordering::Release);
        // Release, partner: the Acquire load in `read`: a walker that sees the block belong to `to` also
        // sees where it leads.
        self.to.store(to, Ordering::Release);
    }

    /// Where the links come from that lead to `to`, and the next block; `None` if the block is somebody
    /// else's, or becomes so meanwhile.
    pub(crate) fn read(&self, to: u64) -> Option<([Ticket; PLACES], u32)> {
        // Acquire, partner: the last Release store in `fill`: the block's other fields.
        if self.to.load(Ordering::Acquire) != to {
            return None;
        }
        let from = std::array::from_fn(|place| Ticket(self.from[place].load(Ordering::Relaxed)));
        let more = self.more.load(Ordering::Relaxed);
        // Acquire, partner: the other Release stores in `fill`, by the block's next user.
        M::fence(Ordering::Acquire);
        // Looked at again after the fields: they were these links'. Relaxed: behind the fence.
        (self.to.load(Ordering::Relaxed) == to).then_some((from, more))
    }
}

/// The word that says where the blocks begin whose links lead to a job's predecessors: the number of the
/// first one, from which [`Links::more`] leads on, and whether it is the only one. Mostly it is; who gives it
/// back then need not read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Preds(pub(crate) u32);

impl Preds {
    /// There are none.
    pub(crate) const NONE: Preds = Preds(NIL);
    const IS_ONLY: u32 = 1 << 31;

    /// The first block; [`NIL`] if there is none.
    #[inline]
    pub(crate) fn block(self) -> u32 {
        self.0 & !Preds::IS_ONLY
    }

    /// Whether that is all.
    #[inline]
    pub(crate) fn is_only(self) -> bool {
        self.0 & Preds::IS_ONLY != 0
    }

    /// With one more block before them.
    #[inline]
    pub(crate) fn and(self, block: u32) -> Preds {
        match self {
            Preds::NONE => Preds(block | Preds::IS_ONLY),
            _ => Preds(block),
        }
    }
}

const _: () = assert!(LINK_BLOCKS_MAX < Preds::IS_ONLY && NIL < Preds::IS_ONLY);

/// Where a link is that hangs in a predecessor's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// One of a successor's first: its place in the slot with this index.
    InSlot { index: u32, place: usize },
    /// Another: its place in the block with this number.
    InBlock { number: u32, place: usize },
}

impl Link {
    #[inline]
    pub(crate) fn pack(self) -> u32 {
        match self {
            Link::InSlot { index, place } => FIRST_IN_SLOT + (index << PLACE_BITS | place as u32),
            Link::InBlock { number, place } => number << PLACE_BITS | place as u32,
        }
    }

    #[inline]
    pub(crate) fn unpack(link: u32) -> Link {
        let place = link as usize & (PLACES - 1);
        match link.checked_sub(FIRST_IN_SLOT) {
            Some(rest) => Link::InSlot {
                index: rest >> PLACE_BITS,
                place,
            },
            None => Link::InBlock {
                number: link >> PLACE_BITS,
                place,
            },
        }
    }
}

const _: () = assert!(FIRST_IN_SLOT + (Ticket::INDEX_END << PLACE_BITS) - 1 == NIL);
const _: () = assert!(
    PLACES_IN_SLOT < PLACES - 1,
    "the two largest numbers are free"
);
const _: () = assert!(size_of::<Links<platform::Os>>() == 64);
const _: () = assert!(PLACES.is_power_of_two());
