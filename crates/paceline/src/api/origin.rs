//! Where a job is described: outside of jobs or inside of one, in a scope, in a group.

use platform::Platform;

use crate::error::ScheduleError;
use crate::store::Ticket;
use crate::work::{Context, ScopeJobs, Shared};

/// The place where a job is described. A description outlives any particular call (it may be kept in a
/// thread-local, by a thread that is ending), so it holds no context of its own: only [`Context::job`] has
/// one to lend.
pub(super) enum Origin<'a, P: Platform> {
    Outside(&'a Shared<P>),
    Inside(&'a Context<'a, P>),
    InScope(&'a Shared<P>, &'a ScopeJobs<P>),
    /// The group that the job is one of.
    OutsideInGroup(&'a Shared<P>, Ticket),
    InsideInGroup(&'a Context<'a, P>, Ticket),
}

impl<'a, P: Platform> Origin<'a, P> {
    #[inline]
    pub(super) fn shared(&self) -> &'a Shared<P> {
        match self {
            Origin::Outside(shared)
            | Origin::InScope(shared, _)
            | Origin::OutsideInGroup(shared, _) => shared,
            Origin::Inside(context) | Origin::InsideInGroup(context, _) => context.shared,
        }
    }

    /// The scope that the job belongs to.
    #[inline]
    pub(super) fn scope(&self) -> Option<&'a ScopeJobs<P>> {
        match self {
            Origin::InScope(_, scope) => Some(scope),
            _ => None,
        }
    }

    /// Whether the job has a parent: the scope or the group that it belongs to.
    #[inline]
    pub(super) fn has_parent(&self) -> bool {
        !matches!(self, Origin::Outside(_) | Origin::Inside(_))
    }

    /// The same place, for a job of this group, and of no scope.
    pub(super) fn in_group(&self, group: Ticket) -> Origin<'a, P> {
        match self {
            Origin::Inside(context) | Origin::InsideInGroup(context, _) => {
                Origin::InsideInGroup(context, group)
            }
            _ => Origin::OutsideInGroup(self.shared(), group),
        }
    }

    /// The same place.
    pub(super) fn copy(&self) -> Origin<'a, P> {
        match *self {
            Origin::Outside(shared) => Origin::Outside(shared),
            Origin::Inside(context) => Origin::Inside(context),
            Origin::InScope(shared, scope) => Origin::InScope(shared, scope),
            Origin::OutsideInGroup(shared, group) => Origin::OutsideInGroup(shared, group),
            Origin::InsideInGroup(context, group) => Origin::InsideInGroup(context, group),
        }
    }

    /// The calling thread's context, for the length of a call.
    ///
    /// # Errors
    /// As [`Shared::context`].
    #[inline]
    pub(super) fn context(&self) -> Result<Context<'_, P>, ScheduleError> {
        match self {
            Origin::Outside(shared)
            | Origin::InScope(shared, _)
            | Origin::OutsideInGroup(shared, _) => shared.context(),
            Origin::Inside(context) | Origin::InsideInGroup(context, _) => {
                // SAFETY: the context was lent to this thread, which it does not leave, and this copy of it
                // lives no longer than the borrow of the original.
                Ok(unsafe { Context::new(context.shared, context.thread) })
            }
        }
    }
}
