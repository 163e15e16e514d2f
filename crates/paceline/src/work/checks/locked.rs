//! The ledger of a job system, under its lock.

use platform::{Atomic, Lock, Ordering, Platform};
use smallvec::SmallVec;

use super::NewcomerJob;
use crate::access::ledger::{Ledger, Planned};
use crate::access::{AccessError, Conflicting, Declared};
use crate::store::{CallSite, Slot, Ticket};
use crate::work::Context;

pub(crate) struct LockedChecks<P: Platform> {
    is_on: bool,
    ledger: P::Lock<Ledger>,
}

impl<P: Platform> LockedChecks<P> {
    pub(crate) fn new(is_on: bool) -> Self {
        LockedChecks {
            is_on,
            ledger: P::Lock::new(Ledger::default()),
        }
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Checks a job that the calling thread schedules, and notes it. Returns the jobs that it has to come
    /// after besides those that it was told to.
    ///
    /// # Errors
    /// The first access that collides.
    #[inline(never)]
    pub(crate) fn schedule(
        &self,
        cx: &Context<'_, P>,
        newcomer: &NewcomerJob<'_>,
    ) -> Result<SmallVec<[Ticket; 4]>, AccessError> {
        let inside = inside(Some(cx));
        let openers = newcomer.scope.map(|scope| openers(cx, scope));
        let planned = Planned {
            label: newcomer.label,
            after: newcomer.after,
            inside: &inside,
            scope: newcomer.scope,
            openers: openers.as_deref().unwrap_or_default(),
            accesses: newcomer.accesses,
            is_auto: newcomer.is_auto,
        };
        self.ledger.with(|ledger| {
            let mut passed = ledger.check(&planned)?;
            let added = std::mem::take(&mut passed.added);
            ledger.note(&planned, passed, newcomer.job, |job| {
                cx.shared.slot(job).is_over(job)
            });
            Ok(added)
        })
    }

    /// A thread has waited for the job, which is over.
    #[inline]
    pub(crate) fn waited_for(&self, job: Ticket) {
        if self.is_on {
            self.ledger.with(|ledger| ledger.waited_for(job));
        }
    }

    /// All jobs of the scope are over, and the thread that opened it has waited for that.
    #[inline]
    pub(crate) fn scope_ended(&self, scope: Ticket) {
        if self.is_on {
            self.ledger.with(|ledger| ledger.scope_ended(scope));
        }
    }

    /// A job that was scheduled before comes after `pred`, too.
    #[inline]
    pub(crate) fn add_late(&self, job: Ticket, pred: Ticket) {
        if self.is_on {
            self.ledger.with(|ledger| ledger.add_late(job, pred));
        }
    }

    /// The number of a new resource, if there are checks.
    pub(crate) fn add_resource(&self, name: &'static str) -> Option<u64> {
        let add = || self.ledger.with(|ledger| ledger.add_resource(name));
        self.is_on.then(add)
    }

    pub(crate) fn remove_resource(&self, resource: u64) {
        if self.is_on {
            self.ledger.with(|ledger| ledger.remove_resource(resource));
        }
    }

    /// The program touches a resource from now on, by a call at this place. Returns the guard's number.
    ///
    /// # Errors
    /// If a job may be touching it.
    pub(crate) fn take(
        &self,
        cx: Option<&Context<'_, P>>,
        access: &Declared,
        site: CallSite,
    ) -> Result<u64, AccessError> {
        if !self.is_on {
            return Ok(0);
        }
        let inside = inside(cx);
        self.ledger
            .with(|ledger| ledger.take(access, &inside, site))
    }

    pub(crate) fn give_back(&self, resource: u64, guard: u64) {
        if self.is_on {
            self.ledger.with(|ledger| ledger.give_back(resource, guard));
        }
    }

    /// A job that the access collides with, and that neither comes before the caller nor was waited for.
    pub(crate) fn unordered(
        &self,
        cx: Option<&Context<'_, P>>,
        access: &Declared,
    ) -> Option<Conflicting> {
        if !self.is_on {
            return None;
        }
        let inside = inside(cx);
        self.ledger.with(|ledger| ledger.unordered(access, &inside))
    }
}

/// The job that runs on this thread, and those that made it, innermost first.
fn inside<P: Platform>(cx: Option<&Context<'_, P>>) -> SmallVec<[Ticket; 4]> {
    let mut inside = SmallVec::new();
    let Some(cx) = cx else {
        return inside;
    };
    let mut above = Some(cx.current_job()).filter(|job| !job.is_none());
    while let Some(job) = above {
        inside.push(job);
        above = cx.graph().parent_of(job);
    }
    inside
}

/// The job that opened this scope, the one that opened the scope around it, and so on: it ends before any of
/// them does.
fn openers<P: Platform>(cx: &Context<'_, P>, scope: Ticket) -> SmallVec<[Ticket; 2]> {
    let (graph, mut openers) = (cx.graph(), SmallVec::new());
    let mut above = Some(scope);
    while let Some(opener) = above.and_then(|scope| graph.parent_of(scope)) {
        if opener.is_none() {
            break;
        }
        openers.push(opener);
        above = graph.parent_of(opener).filter(|&parent| {
            // Relaxed: the flag is there from the beginning, and the scope lasts as long as its job.
            let flags = graph.slot(parent).flags.load(Ordering::Relaxed);
            flags & Slot::<P>::IS_SCOPE != 0
        });
    }
    openers
}
