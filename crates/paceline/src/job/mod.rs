//! Jobs as data: what identifies one, what it is made of, where it lives.

mod id;
mod label;
mod links;
mod slot;

pub use id::JobId;
pub(crate) use id::Ticket;
pub use label::Label;
pub(crate) use label::{LabelCache, Labels};
pub(crate) use links::{LINK_BLOCKS_MAX, Link, Links, PLACES, PLACES_IN_SLOT, Preds};
pub(crate) use slot::{LinksWord, Phase, Slot, StateWord};
