//! Making a [`Report`]: reading what all threads do, while they do it.
//!
//! No thread is stopped, woken or waited for, and nothing is written that threads at work read. Each fact is
//! read between two looks at the word that says to which job or thread it belongs ([`Slot::look_at`],
//! [`ThreadWords::read`], [`Links::read`]). If the looks differ, it is read again, and in the end left out.
//!
//! Two locks are taken for a moment: that of the names of jobs, once or twice, and that of the name of each
//! thread. No thread holds one of them while it runs code of the program's or waits. A thread that was forked
//! off may have held any lock, so nothing is read in a fork's child.
//!
//! [`Slot::look_at`]: crate::store::Slot::look_at
//! [`ThreadWords::read`]: crate::work::posted::ThreadWords::read
//! [`Links::read`]: crate::store::Links::read

mod jobs;
#[cfg(feature = "report")]
mod tell;
#[cfg(not(feature = "report"))]
#[path = "untold.rs"]
mod tell;
mod threads;

use platform::Platform;

use super::shared::Shared;
use crate::report::{NamedJob, Report};
use crate::store::{JobId, Label, Ticket};
use jobs::JobReader;
pub(crate) use tell::{LongWaits, StuckSetting, Telling};

/// How often something is read that changes meanwhile.
const TRIES: usize = 3;

/// The names of jobs, as far as they were read.
struct LabelTable<'s, P: Platform> {
    shared: &'s Shared<P>,
    labels: Vec<Label>,
}

impl<P: Platform> LabelTable<'_, P> {
    /// The job with its name. `None` if it is over.
    fn named(&mut self, job: Ticket) -> Option<NamedJob> {
        let slots = &self.shared.graph.slots;
        let number = slots.exists(job.index()).then(|| self.shared.slot(job))?;
        self.with_number(job, number.label_of(job)?)
    }

    fn with_number(&mut self, job: Ticket, number: u32) -> Option<NamedJob> {
        if number as usize >= self.labels.len() {
            // It was registered after the others were read.
            self.labels = self.shared.graph.labels.all();
        }
        Some(NamedJob {
            id: JobId::new(self.shared.id, job),
            label: *self.labels.get(number as usize)?,
        })
    }
}

impl<P: Platform> Shared<P> {
    /// What the job system is doing at this moment.
    #[cold]
    pub(crate) fn report(&self) -> Report {
        if self.is_forked() {
            return Report::of_fork();
        }
        let mut names = LabelTable {
            shared: self,
            labels: self.graph.labels.all(),
        };
        let mut report = Report::empty();
        report.workers = self.workers.target();
        report.injector = self.injector.len();
        report.front = self.lanes.front.len();
        if let Some(extra) = self.extra_lanes() {
            report.front += extra.len();
            report.beside = extra.len_beside();
        }
        report.backlog = self.lanes.backlog.len();
        let participants = self.read_threads(&mut names, &mut report);
        let mut jobs = JobReader {
            names,
            participants,
        };
        jobs.read_all(&mut report);
        let jobs = std::cell::RefCell::new(jobs);
        report.conclude(|job, awaited| jobs.borrow_mut().still_waits_for(job, awaited));
        report
    }
}
