//! What jobs say that they read and write, as types and as data.
//!
//! A declaration adds one [`Access`] to the tuple of those that a job has ([`Accesses`]). The job's body gets
//! a reference for each, in that order, and has no other way to the data. So what is not declared does not
//! compile.

mod conflict;
mod missing;
mod tuples;

use std::ops::Range;
use std::ptr::NonNull;

pub use conflict::{Conflict, Conflicting};
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
}

/// [`Declared`], for the signature of [`Access`]. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct DeclaredAccess(pub(crate) Declared);
