//! The parts of a job and the memory they lie in: its names, its slot with the words that say how far the job
//! is, its closure, its links to other jobs, and the slabs that all of these come from. Nothing here knows
//! about threads.

mod body;
mod holders;
mod id;
mod label;
mod lane;
mod links;
mod maps;
mod name;
mod pin;
mod rank;
pub(crate) mod slab;
mod slot;
mod token;

pub(crate) use body::{Body, BodyTable, Erased};
pub(crate) use holders::SlotValue;
pub use id::JobId;
pub(crate) use id::Ticket;
pub use label::Label;
pub(crate) use label::{CallSite, LabelCache, LabelId, Labels};
pub(crate) use lane::LaneFlags;
pub(crate) use links::{LINK_BLOCKS_MAX, Link, Links, PLACES, PLACES_IN_SLOT, Preds};
pub(crate) use maps::{Key, Map, Set, digest_of_text};
pub use name::Name;
pub use pin::ThreadPin;
pub(crate) use rank::{JobRanks, Rank};
pub(crate) use slab::{Cache, Chunks, NIL, Slab};
pub(crate) use slot::{JobPhase, LinksWord, Slot, StateWord};
pub use token::CancelToken;
