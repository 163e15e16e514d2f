//! What jobs say that they read and write, as types and as data.
//!
//! A declaration adds one [`Access`] to the tuple of those that a job has ([`Accesses`]). The job's body gets
//! a reference for each, in that order, and has no other way to the data. So what is not declared does not
//! compile.

mod conflict;
mod fault;
mod holders;
#[cfg(feature = "checks")]
pub(crate) mod ledger;
mod missing;
mod tuples;

use std::ops::Range;
use std::ptr::NonNull;

pub use conflict::{Conflict, Conflicting};
pub use fault::{AccessError, AccessFault, Outside, Toucher};
pub(crate) use holders::{Holder, Holders, Who};
pub use missing::MissingItems;
pub(crate) use missing::NeededItems;
pub(crate) use tuples::{Accesses, And, declared};

/// Whether a job only reads a resource, or changes it. It has no example, because that of
/// [`Conflict`] shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessKind {
    /// Together with any others that read.
    Reads,
    /// Alone.
    Writes,
}

impl AccessKind {
    /// What a job does, for texts.
    #[inline]
    fn verb(self) -> &'static str {
        match self {
            AccessKind::Reads => "reads",
            AccessKind::Writes => "writes",
        }
    }
}

/// One declared access, as data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Declared {
    /// The resource: its number among those of its job system, or of its graph.
    pub(crate) resource: u64,
    pub(crate) kind: AccessKind,
    /// The part of the resource, in items.
    pub(crate) part: Range<usize>,
}

impl Declared {
    /// The part that is all of a resource.
    pub(crate) const WHOLE: Range<usize> = 0..usize::MAX;

    /// Whether two accesses touch the same data, and one of them changes it. All checks ask this function.
    #[inline]
    pub(crate) fn collides(&self, other: &Declared) -> bool {
        self.resource == other.resource && self.meets(other.kind, &other.part)
    }

    /// The same for an access to the same resource.
    #[inline]
    pub(crate) fn meets(&self, kind: AccessKind, part: &Range<usize>) -> bool {
        let writes = self.kind == AccessKind::Writes || kind == AccessKind::Writes;
        writes && self.part.start.max(part.start) < self.part.end.min(part.end)
    }
}

/// Where the data of one resource lies. It has no example, because programs do not name it.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Place {
    pub(crate) at: NonNull<()>,
    /// How many items it has, if it is a slice.
    pub(crate) len: usize,
}

/// Where the data of a run lies: a place for each resource of a graph, by its number. Empty for resources
/// that know their data themselves. It has no example, because programs do not name it.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Places<'a>(pub(crate) &'a [Place]);

/// One access that a job declares. Programs need no implementation of their own. It has no example, because
/// programs do not name it.
///
/// # Safety
/// The reference of `item` leads to what `each` names, and changes it only if that says so.
#[doc(hidden)]
pub unsafe trait Access {
    /// The reference that the body gets.
    type Item<'a>
    where
        Self: 'a;

    /// Calls `visit` with all that it touches.
    fn each(&self, visit: &mut dyn FnMut(DeclaredAccess));

    /// # Safety
    /// The places are those of the run. For `'a` no other thread touches what is declared, unless both read.
    unsafe fn item<'a>(&'a self, places: Places<'a>) -> Self::Item<'a>;

    /// What keeps others from the data while the body runs. The data of a graph needs nothing: what runs
    /// when, is settled when the graph is built.
    fn keeper(&self) -> Option<&dyn Keeper> {
        None
    }
}

/// Keeps others from data that jobs share, while a body runs. It has no example, because programs do not name
/// it.
#[doc(hidden)]
pub trait Keeper {
    /// The name of the data.
    #[doc(hidden)]
    fn name(&self) -> &'static str;

    #[doc(hidden)]
    fn take(&self, by: u64) -> Result<(), Taken>;

    #[doc(hidden)]
    fn give_back(&self, by: u64);
}

/// The one that has the data. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct Taken {
    pub(crate) resource: &'static str,
    pub(crate) holder: Holder,
    pub(crate) refused: Declared,
}

/// [`Declared`], for the signature of [`Access`]. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct DeclaredAccess(pub(crate) Declared);
