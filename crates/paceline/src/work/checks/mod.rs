//! Checks of what jobs declare, at the calls that schedule them, behind one door: `Checks`.
//!
//! With feature `checks` the door leads to the ledger (`access::ledger`), under one lock, which is taken once
//! for each job that is scheduled, if the builder asked for checks. Without, there is nothing behind it. The
//! two are chosen here and nowhere else.
//!
//! Invariant: nothing that is sound depends on this part. What keeps bodies apart is with the data
//! (`access::Holders`).

#[cfg(feature = "checks")]
mod locked;
#[cfg(not(feature = "checks"))]
mod unchecked;

use crate::access::Declared;
use crate::store::{Label, Ticket};

#[cfg(feature = "checks")]
pub(crate) use locked::LockedChecks as Checks;
#[cfg(not(feature = "checks"))]
pub(crate) use unchecked::NoChecks as Checks;

/// A job that was made and is not published yet.
pub(crate) struct NewcomerJob<'a> {
    pub(crate) job: Ticket,
    pub(crate) label: Label,
    pub(crate) after: &'a [Ticket],
    pub(crate) scope: Option<Ticket>,
    pub(crate) accesses: &'a [Declared],
    pub(crate) is_auto: bool,
}
