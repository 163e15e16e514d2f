//! The links between jobs: "tell `to` when `from` is over".
//!
//! A link is in two lists. One is its predecessor's: those to tell, from [`Slot::links`] on by
//! [`Links::next`], until that job is over. The other is its successor's: what holds it back, from
//! [`Slot::preds`] on, until *that* job is over and gives the links back. The first always ends
//! before the second, because the successor cannot start earlier.
//!
//! Successors are scheduled with all they wait for, so the links of one successor lie together,
//! [`PLACES`] to a cache line: who they tell is written once for all of them, and giving them back
//! costs nothing if they fit a block ([`Preds`]), and else a look at each. A waiting thread
//! or a pending future takes a block for itself; it is given back by the finisher of `from`.
//!
//! A link's number is that of its block and its place in it.
//!
//! [`Slot::links`]: super::Slot::links
//! [`Slot::preds`]: super::Slot::preds

use platform::{Atomic, Memory, Ordering};

use super::Ticket;
use crate::slab::NIL;

/// Links in a block.
pub(crate) const PLACES: usize = 4;

const PLACE_BITS: u32 = PLACES.trailing_zeros();

/// Blocks whose links can be numbered: numbers have 28 bits, and the two largest mean something
/// else.
pub(crate) const LINK_BLOCKS_MAX: u32 = (1 << (28 - PLACE_BITS)) - 1;

/// The links of one successor, or some of them.
#[repr(align(64))]
pub(crate) struct Links<M: Memory> {
    /// Whom to tell: the successor's ticket; or, with generation 0, a
    /// [`Listener`](crate::listen::Listener). 0 while the block is being filled. A free block keeps what it
    /// was: who gives it back would have to fetch the line for it, and who fills it next does that anyhow.
    pub(crate) to: M::AtomicU64,
    /// The predecessors' tickets; 0 where there is no link.
    pub(crate) from: [M::AtomicU64; PLACES],
    /// For each link the number of the next one in its predecessor's list.
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

/// The number of a link.
#[inline]
pub(crate) fn link_number(block: u32, place: usize) -> u32 {
    block << PLACE_BITS | place as u32
}

/// The block of a link.
#[inline]
pub(crate) fn link_block(link: u32) -> u32 {
    link >> PLACE_BITS
}

/// The place of a link in its block.
#[inline]
pub(crate) fn link_place(link: u32) -> usize {
    link as usize & (PLACES - 1)
}

const _: () = assert!(size_of::<Links<platform::Os>>() == 64);
const _: () = assert!(PLACES.is_power_of_two());
