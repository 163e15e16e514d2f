//! A description becomes a job: it gets a slot and its body, is checked, if there are checks, and published.

use std::sync::Arc;

use platform::Platform;

use super::origin::Origin;
use super::schedule::NewJob;
use crate::access::{AccessError, AccessFault, Declared};
use crate::error::ScheduleError;
use crate::store::{BodyTable, JobId, Label, Slot, SlotValue, Ticket};
use crate::work::checks::NewcomerJob;
use crate::work::{Context, Shared};

/// What a job declares.
pub(super) struct Declares<'d> {
    pub(super) accesses: &'d [Declared],
    pub(super) is_auto: bool,
}

impl Declares<'_> {
    pub(super) const NOTHING: Declares<'static> = Declares {
        accesses: &[],
        is_auto: false,
    };
}

impl<P: Platform> NewJob<'_, '_, P> {
    /// Makes the job and publishes it.
    ///
    /// # Safety
    /// `table` belongs to `F`, and all that `body` borrows lives until the job has ended.
    #[inline(always)] // Or the body is copied.
    pub(super) unsafe fn submit_body<F>(
        &self,
        flags: u32,
        body: F,
        table: &'static BodyTable,
        declares: &Declares<'_>,
    ) -> Result<JobId, ScheduleError> {
        let mut body = Some(body);
        let put = &mut |_, slot: &Slot<P>| {
            if let Some(body) = body.take() {
                // SAFETY: the caller's promise; the job is new.
                unsafe { slot.put_body(body, table) }
            }
        };
        self.submit(flags, put, declares)
    }

    /// The same. `put` is called once, and puts the body into the slot of the job. It knows the type of the
    /// body, so that this function need not, and is compiled once for all of them.
    pub(super) fn submit(
        &self,
        flags: u32,
        put: &mut dyn FnMut(Ticket, &Slot<P>),
        declares: &Declares<'_>,
    ) -> Result<JobId, ScheduleError> {
        let cx = self.from.context()?;
        let after = self.predecessors()?;
        let graph = cx.graph();
        let lane = cx.own(|own| own.lane.0) & self.inherits;
        let flags = flags | Slot::<P>::HAS_BODY | self.flags | lane;
        let has_parent = self.from.has_parent();
        let made = if has_parent {
            self.make_child(&cx, flags)
        } else {
            graph.make_here(&self.label, flags, Ticket::NONE)
        };
        let (job, slot) = made.ok_or_else(|| graph.full())?;
        put(job, slot);
        if flags & Slot::<P>::HAS_EXTRAS != 0 {
            self.keep_extras(&cx, job, slot, flags)?;
        }
        let queue = cx.queue();
        if cx.shared.checks.is_on() {
            self.wire_checked(&cx, job, slot, declares)?;
        } else if after.is_empty() {
            graph.make_runnable(job, slot, flags, queue);
        } else {
            graph.wire(job, slot, after, queue, has_parent)?;
        }
        if self.is_quiet {
            cx.tell_spinners();
        } else {
            cx.publish(queue, false);
        }
        Ok(JobId::new(cx.shared.id, job))
    }

    /// Makes a job of the scope or the group that this one belongs to. `None` if all slots are taken.
    #[inline(never)]
    fn make_child<'c>(&self, cx: &'c Context<'_, P>, flags: u32) -> Option<(Ticket, &'c Slot<P>)> {
        let graph = cx.graph();
        match self.from {
            Origin::InScope(_, scope) => {
                let flags = flags | Slot::<P>::IN_SCOPE;
                let made = graph.make(&self.label, flags, scope.parent());
                made.inspect(|_| scope.count(cx))
            }
            Origin::OutsideInGroup(_, group) | Origin::InsideInGroup(_, group) => {
                graph.make(&self.label, flags, group)
            }
            Origin::Outside(_) | Origin::Inside(_) => None,
        }
    }

    /// Notes the place of a new job, which is not published yet, in the order of its frame.
    pub(super) fn note_order(&self, cx: &Context<'_, P>, job: Ticket) {
        if self.flags & Slot::<P>::IS_RANKED != 0
            && let Some(order) = cx.shared.order.get()
        {
            order.note(cx, self.frame_number, job, &self.after.tickets);
        }
    }

    /// Notes the token, the thread and the rank of a job that was made, and that is not published yet.
    #[cold]
    fn keep_extras(
        &self,
        cx: &Context<'_, P>,
        job: Ticket,
        slot: &Slot<P>,
        flags: u32,
    ) -> Result<(), ScheduleError> {
        if let Some((token, keep)) = self.token {
            keep(cx, job, token);
        }
        self.note_order(cx, job);
        if flags & Slot::<P>::IS_PINNED == 0 {
            return Ok(());
        }
        let error = if flags & Slot::<P>::IS_RANGE != 0 {
            ScheduleError::PinnedLoop
        } else if let Some(pinned) = cx.shared.pinned.get()
            && pinned.add(job, self.pin)
        {
            return Ok(());
        } else {
            ScheduleError::NoSuchThread
        };
        cx.graph().refuse(job, slot, cx.queue());
        Err(error)
    }

    /// Checks a job that was made, and adds its edges, with those that it asks for by itself.
    #[cold]
    fn wire_checked(
        &self,
        cx: &Context<'_, P>,
        job: Ticket,
        slot: &Slot<P>,
        declares: &Declares<'_>,
    ) -> Result<(), ScheduleError> {
        let (graph, queue) = (cx.graph(), cx.queue());
        let has_parent = self.from.has_parent();
        let added = cx.shared.checks.schedule(cx, &self.newcomer(job, declares));
        let added = added.map_err(|error| {
            graph.refuse(job, slot, queue);
            ScheduleError::Access(error)
        })?;
        if added.is_empty() {
            return graph.wire(job, slot, &self.after.tickets, queue, has_parent);
        }
        let mut after = self.after.tickets.clone();
        after.extend(added);
        graph.wire(job, slot, &after, queue, has_parent)
    }

    fn newcomer<'n>(&'n self, job: Ticket, declares: &Declares<'n>) -> NewcomerJob<'n> {
        NewcomerJob {
            job,
            label: self.label,
            after: &self.after.tickets,
            scope: self.from.scope().map(|scope| scope.parent()),
            accesses: declares.accesses,
            is_auto: declares.is_auto,
        }
    }

    /// A job without a body was made. What comes before it, comes before those that come after it.
    #[inline]
    pub(super) fn note_for_checks(&self, cx: &Context<'_, P>, job: Ticket) {
        if cx.shared.checks.is_on() {
            let newcomer = self.newcomer(job, &Declares::NOTHING);
            let noted = cx.shared.checks.schedule(cx, &newcomer);
            debug_assert!(noted.is_ok(), "it touches nothing");
        }
    }
}

/// The error of a job that was refused.
#[cold]
#[inline]
pub(super) fn refused(fault: AccessFault) -> ScheduleError {
    ScheduleError::Access(AccessError::new(fault))
}

/// Schedules a job with a result, after `after`.
///
/// # Safety
/// `table` is that of the body's type. The body borrows nothing.
pub(super) unsafe fn successor<P: Platform>(
    cx: &Context<'_, P>,
    label: Label,
    after: Ticket,
    body: &mut dyn SlotValue,
    table: &'static BodyTable,
) -> Result<Ticket, ScheduleError> {
    let mut job = NewJob::labelled(Origin::Inside(cx), label);
    job.after.tickets.push(after);
    // SAFETY: the caller's promise; the job is new.
    let put = &mut |_, slot: &Slot<P>| unsafe { slot.put_value(body, table) };
    let made = job.submit(Slot::<P>::IS_HELD, put, &Declares::NOTHING);
    made.map(JobId::ticket)
}

/// The same job system, for a handle that keeps it.
pub(super) fn owner<P: Platform>(shared: &Shared<P>) -> Arc<Shared<P>> {
    let owner = shared.this.upgrade();
    owner.expect("the caller's borrow keeps the job system alive")
}
