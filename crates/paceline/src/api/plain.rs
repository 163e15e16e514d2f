//! Jobs of which only a name and a body are said, made in few instructions.
//!
//! A description ([`NewJob`]) is a good deal of memory to fill in and to read. Where it is made and used in
//! one function the compiler leaves out most of it. A function for another language, of which nothing can be
//! inlined, would pay for all. So it makes such jobs, which are most jobs, here.

use std::panic::Location;

use platform::Platform;

use super::origin::Origin;
use super::schedule::NewJob;
use super::submit::Declares;
use super::system::JobSystem;
use crate::error::ScheduleError;
use crate::store::{Label, LabelId, Name, Slot, Ticket};
use crate::work::{Context, Once};

/// The number of a name in a job system, for a caller that remembers it. It has no example, because programs
/// do not name it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct NameNumber {
    /// The job system; zero is none.
    pool: u32,
    number: LabelId,
}

impl NameNumber {
    /// That of no name. It has no example, because programs do not use it.
    pub const NONE: NameNumber = NameNumber { pool: 0, number: 0 };

    /// Whether this is the number of a name in this job system. It has no example, because programs do not
    /// call it.
    #[inline]
    pub fn is_of<P: Platform>(self, js: &JobSystem<P>) -> bool {
        self.pool == js.shared().id.get()
    }
}

impl<P: Platform> JobSystem<P> {
    /// The number of a name; none for a thread that has no slot and cannot get one.
    /// It has no example, because programs do not call it.
    #[doc(hidden)]
    #[track_caller]
    pub fn name_number(&self, name: Name) -> NameNumber {
        let label = label_of(name);
        self.shared()
            .context()
            .map_or(NameNumber::NONE, |cx| NameNumber {
                pool: cx.shared.id.get(),
                number: cx.graph().label_number(&label),
            })
    }

    /// As `js.job(name).try_schedule(body)`, and the result is what [`id_to_bits`](JobSystem::id_to_bits)
    /// makes of the id. `number` is that of the name in this job system: with another one the job is called
    /// by another name. It has no example, because programs do not call it.
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    #[doc(hidden)]
    #[track_caller]
    #[inline(always)] // Or the body is copied.
    pub fn try_schedule_plain<F>(
        &self,
        name: Name,
        number: NameNumber,
        body: F,
    ) -> Result<u64, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) + Send + 'static,
    {
        let shared = self.shared();
        let table = &Once::<P, F>::TABLE;
        if let Some(cx) = shared.known_context()
            && !shared.checks.is_on()
        {
            let (graph, queue) = (cx.graph(), cx.queue());
            let flags = Slot::<P>::HAS_BODY | cx.own(|own| own.lane.0);
            let Some((job, slot)) = graph.make_numbered(|| number.number, flags, Ticket::NONE)
            else {
                return Err(graph.full());
            };
            // SAFETY: the table is that of the body, which borrows nothing; the job is new.
            unsafe { slot.put_body(body, table) };
            graph.make_runnable(job, slot, flags, queue);
            cx.publish(queue, false);
            return Ok(job.0);
        }
        let job = NewJob::labelled(Origin::Outside(shared), label_of(name));
        // SAFETY: as above.
        let id = unsafe { job.submit_body(0, body, table, &Declares::NOTHING) };
        id.map(|id| id.ticket().0)
    }
}

#[track_caller]
fn label_of(name: Name) -> Label {
    Label {
        name: name.as_str(),
        site: Location::caller(),
    }
}
