//! The links between jobs: "notify `to` when `from` is over".
//!
//! A link is in two lists. One is its predecessor's list: the successors and listeners to notify, from
//! [`Slot::links`] on. Each link there knows the next one, until the predecessor is over. The other is its
//! successor's list: the links of what holds it back, from [`Slot::preds`] on, until the *successor* is over
//! and gives the links back. The first list always ends before the second, because the successor cannot start
//! earlier.
//!
//! A successor is scheduled with all jobs it waits for, so the links of one successor lie together,
//! [`PLACES`] to a cache line. The successor is written once for all of them. To give the links back costs
//! nothing if they fit a block ([`Preds`]), and a look at each block otherwise. A waiting thread or a pending
//! future takes a block for itself. The finisher of `from` gives it back.
//!
//! The number of the next link is in one of two places ([`Link`]). For the first [`PLACES_IN_SLOT`] links of
//! a successor that is its slot ([`Slot::next`]). The finisher needs the line of that slot anyhow, to count
//! down what holds the successor back. The slot also says which job it is, because it cannot move on to
//! another job before that job was notified. So the finisher does not touch the block, which stays in the
//! cache of the thread that fills blocks. Further links, links that were added late, and listeners have their
//! `next` in the block ([`Links::next`]).
//!
//! [`Slot::links`]: super::Slot::links
//! [`Slot::next`]: super::Slot::next
//! [`Slot::preds`]: super::Slot::preds

use platform::{Atomic, Memory, Ordering};

use super::id::Ticket;
use super::slab::NIL;

/// Links in a block.
pub(crate) const PLACES: usize = 4;

const PLACE_BITS: u32 = PLACES.trailing_zeros();

/// Links whose `next` is in the slot of their successor.
pub(crate) const PLACES_IN_SLOT: usize = 2;

/// The number of the first link in a slot. Numbers have 28 bits. The upper quarter of them is for links in
/// slots, as many as there can be slots. The two largest numbers belong to no slot and mean something else.
const FIRST_IN_SLOT: u32 = 3 << 26;

/// Blocks whose links can be numbered.
pub(crate) const LINK_BLOCKS_MAX: u32 = FIRST_IN_SLOT >> PLACE_BITS;

/// The links of one successor, or some of them.
#[repr(align(64))]
pub(crate) struct Links<M: Memory> {
    /// The ticket of the successor to notify; or, with generation 0, a [`Listener`](crate::graph::Listener).
    /// 0 while the block is being filled. A free block keeps its last value: the thread that gives it back
    /// would have to fetch the line to clear it, and the thread that fills it next fetches the line anyhow.
    pub(crate) to: M::AtomicU64,
    /// The tickets of the predecessors; 0 where there is no link.
    pub(crate) from: [M::AtomicU64; PLACES],
    /// For each link the number of the next one in its predecessor's list, unless that number is in the slot.
    pub(crate) next: [M::AtomicU32; PLACES],
    /// The successor's next block.
    pub(crate) more: M::AtomicU32,
}

impl<M: Memory> Links<M> {
    /// A block without links.
    pub(crate) fn empty() -> Links<M> {
        Links {
            to: M::AtomicU64::new(0),
            from: std::array::from_fn(|_| M::AtomicU64::new(0)),
            next: std::array::from_fn(|_| M::AtomicU32::new(NIL)),
            more: M::AtomicU32::new(NIL),
        }
    }

    /// Makes these the links from up to [`PLACES`] jobs to `to`, in front of the block `more`.
    #[inline]
    pub(crate) fn fill(&self, from: &[Ticket], to: u64, more: u32) {
        // Relaxed: ordered by the Release stores that follow.
        self.to.store(0, Ordering::Relaxed);
        // Release, partner: the fence in `read`: a walker that sees any of this also sees the 0, and does not
        // take it for the block's content of before.
        for (place, word) in self.from.iter().enumerate() {
            let ticket = from.get(place).copied().unwrap_or(Ticket::NONE);
            word.store(ticket.0, Ordering::Release);
        }
        self.more.store(more, Ordering::Release);
        // Release, partner: the Acquire load in `read`: a walker that sees that the block belongs to `to`
        // also sees where its links come from.
        self.to.store(to, Ordering::Release);
    }

    /// The predecessors from which links lead to `to`, and the next block. `None` if the block belongs to
    /// another successor, or comes to belong to one during the call.
    pub(crate) fn read(&self, to: u64) -> Option<([Ticket; PLACES], u32)> {
        // Acquire, partner: the last Release store in `fill`: the block's other fields.
        if self.to.load(Ordering::Acquire) != to {
            return None;
        }
        let from = std::array::from_fn(|place| Ticket(self.from[place].load(Ordering::Relaxed)));
        let more = self.more.load(Ordering::Relaxed);
        // Acquire, partner: the other Release stores in `fill`, by the block's next user.
        M::fence(Ordering::Acquire);
        // Checked again after the fields were read: they belonged to these links. Relaxed: it is behind the
        // fence.
        (self.to.load(Ordering::Relaxed) == to).then_some((from, more))
    }
}

/// The word that says where the blocks of the links to a job's predecessors begin. It holds the number of the
/// first block, from which [`Links::more`] leads on, and whether that block is the only one. Mostly it is the
/// only one; then it need not be read to be given back.
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

/// The place of a link that hangs in a predecessor's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// One of a successor's first links: its place in the slot with this index.
    InSlot { index: u32, place: usize },
    /// Another link: its place in the block with this number.
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
