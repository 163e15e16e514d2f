//! The jobs that the ledger remembers, and which of them come before which.
//!
//! A job is remembered until somebody waits for it, or for a job that comes after it. If nobody does, then
//! until it is over and cannot matter any more: neither it nor a job that comes before it is in some
//! resource's list of those that touched it last. A reference to a job that was forgotten leads nowhere, and
//! that means: nothing that it touched, and nothing before it, matters any more.

mod reach;
mod search;
mod standing;

use crate::store::{Label, Map, Ticket};
use reach::Rows;
use standing::Standing;

/// The place of a record, and which of the jobs that had this place it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct JobRef {
    index: u32,
    /// The low half of its serial number.
    serial: u32,
}

/// No record.
const NONE: u32 = u32::MAX;

/// How many direct predecessors lie in the record itself.
const INLINE: usize = 4;

/// What is looked at often: one cache line.
struct JobRecord {
    ticket: Ticket,
    /// Jobs are numbered in the order of the calls that scheduled them, from 1 on. Zero: this place is free.
    serial: u64,
    /// The direct predecessors. With more than fit, the last one's index is that of the rest in `Jobs::more`.
    preds: [JobRef; INLINE],
    /// The next record of a job that had the same slot.
    next: u32,
    /// The search that has come by.
    seen: u32,
    /// The standing search that has.
    stood: u32,
    preds_count: u8,
    has_more: bool,
    /// There are jobs in `Jobs::inner`.
    has_inner: bool,
}

const _: () = assert!(size_of::<JobRecord>() <= 64);

impl JobRecord {
    /// The direct predecessors that lie in the record.
    #[inline]
    fn inline_preds(&self) -> &[JobRef] {
        &self.preds[..usize::from(self.preds_count)]
    }
}

/// Whether this is the record of the job, and not that of one that had the place before or has it now.
#[inline]
fn is_of(record: &JobRecord, job: JobRef) -> bool {
    record.serial as u32 == job.serial && record.serial != 0
}

/// When rows are made and dropped. Tests have smaller ones.
pub(super) struct Limits {
    /// So many jobs are looked at before.
    pub(super) looked_at: usize,
    /// With more records there are no rows, which would take more than 8 MB.
    pub(super) records: usize,
    /// They are dropped when so many places could be used again, or half as many as there are jobs. So not
    /// many more than one is made for each job.
    pub(super) left: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            looked_at: 64,
            records: 8192,
            left: 256,
        }
    }
}

#[derive(Default)]
pub(super) struct Jobs {
    pub(super) limits: Limits,
    records: Vec<JobRecord>,
    /// Beside the records, what only errors need.
    labels: Vec<Label>,
    free: Vec<u32>,
    rows: Rows,
    standing: Standing,
    /// Places that are not used again while there are rows.
    left: Vec<u32>,
    /// The newest record of each slot's jobs, by the slot's index.
    of_slot: Vec<u32>,
    /// Predecessors beyond those that fit a record.
    more: Vec<Vec<JobRef>>,
    free_more: Vec<u32>,
    /// The jobs of the scopes that a job has opened, by the index of its record. They end before it does.
    inner: Map<u32, Vec<JobRef>>,
    /// None of the jobs with inner ones has a smaller serial number. Zero: there are none.
    inner_from: u64,
    last_serial: u64,
    last_search: u32,
    /// A job was made to come after one that was scheduled later.
    has_backward_edges: bool,
    live: usize,
    stack: Vec<JobRef>,
}

impl Jobs {
    pub(super) fn live(&self) -> usize {
        self.live
    }

    fn record(&self, job: JobRef) -> Option<&JobRecord> {
        let record = &self.records[job.index as usize];
        is_of(record, job).then_some(record)
    }

    /// The serial number, unless the job is forgotten.
    pub(super) fn serial(&self, job: JobRef) -> Option<u64> {
        self.record(job).map(|record| record.serial)
    }

    pub(super) fn ticket(&self, job: JobRef) -> Option<Ticket> {
        self.record(job).map(|record| record.ticket)
    }

    pub(super) fn label(&self, job: JobRef) -> Label {
        self.labels[job.index as usize]
    }

    pub(super) fn find(&self, ticket: Ticket) -> Option<JobRef> {
        let mut index = *self.of_slot.get(ticket.index() as usize)?;
        while index != NONE {
            let record = &self.records[index as usize];
            if record.ticket == ticket {
                return Some(self.reference(index));
            }
            index = record.next;
        }
        None
    }

    fn reference(&self, index: u32) -> JobRef {
        JobRef {
            index,
            serial: self.records[index as usize].serial as u32,
        }
    }

    /// The direct predecessors of a job: all that is over when it begins.
    pub(super) fn preds(&self, job: JobRef) -> impl Iterator<Item = JobRef> {
        let record = self.record(job);
        let inline = record.map_or(&[][..], JobRecord::inline_preds);
        let more = record.filter(|record| record.has_more);
        let more = more.map_or(&[][..], |record| {
            &self.more[record.preds[INLINE - 1].index as usize]
        });
        inline.iter().chain(more).copied()
    }

    /// The same with the jobs of its scopes: all that is over when it ends.
    fn ends_after(&self, job: JobRef) -> impl Iterator<Item = JobRef> {
        let record = self.record(job).filter(|record| record.has_inner);
        let inner = record.and_then(|_| self.inner.get(&job.index));
        let inner = inner.map_or(&[][..], |inner| inner);
        self.preds(job).chain(inner.iter().copied())
    }

    /// The job is of a scope that `outer` has opened.
    pub(super) fn add_inner(&mut self, outer: JobRef, job: JobRef) {
        let Some(serial) = self.serial(outer) else {
            return;
        };
        self.standing.end();
        // Rows of what comes after it would lack this one, and each of them needs the row of `outer`.
        if !self.rows.is_empty() && self.rows.has(outer.index) {
            self.drop_rows();
        }
        self.inner_from = match self.inner_from {
            0 => serial,
            from => from.min(serial),
        };
        self.records[outer.index as usize].has_inner = true;
        self.inner.get_or_insert(outer.index, Vec::new()).push(job);
    }

    /// A scope of this job has ended: its jobs are forgotten.
    pub(super) fn scope_ended(&mut self, outer: JobRef) {
        if self.record(outer).is_none() {
            return;
        }
        let inner = self.inner.remove(&outer.index).unwrap_or_default();
        let left = inner.into_iter().filter(|&job| self.record(job).is_some());
        let left: Vec<JobRef> = left.collect();
        if left.is_empty() {
            self.forget_inner(outer.index);
        } else {
            self.inner.insert(outer.index, left);
        }
    }

    fn forget_inner(&mut self, outer: u32) {
        self.records[outer as usize].has_inner = false;
        self.inner.remove(&outer);
        if self.inner.is_empty() {
            self.inner_from = 0;
        }
    }

    /// Remembers a job that comes after these.
    pub(super) fn add(&mut self, ticket: Ticket, label: Label, preds: &[JobRef]) -> JobRef {
        self.last_serial += 1;
        self.live += 1;
        self.standing.earn();
        let slot = ticket.index() as usize;
        if self.of_slot.len() <= slot {
            self.of_slot.resize(slot + 1, NONE);
        }
        let empty = JobRef {
            index: NONE,
            serial: 0,
        };
        let record = JobRecord {
            ticket,
            serial: self.last_serial,
            preds: [empty; INLINE],
            next: self.of_slot[slot],
            seen: 0,
            stood: 0,
            preds_count: 0,
            has_more: false,
            has_inner: false,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.records[index as usize] = record;
                self.labels[index as usize] = label;
                index
            }
            None => {
                self.records.push(record);
                self.labels.push(label);
                self.records.len() as u32 - 1
            }
        };
        self.of_slot[slot] = index;
        for &pred in preds {
            self.add_pred(index, pred);
        }
        self.reference(index)
    }

    fn add_pred(&mut self, index: u32, pred: JobRef) {
        let record = &mut self.records[index as usize];
        let count = usize::from(record.preds_count);
        if count < INLINE && !record.has_more {
            record.preds[count] = pred;
            record.preds_count += 1;
            return;
        }
        if !record.has_more {
            let last = record.preds[INLINE - 1];
            let place = self.free_more.pop().unwrap_or_else(|| {
                self.more.push(Vec::new());
                self.more.len() as u32 - 1
            });
            self.more[place as usize].push(last);
            record.preds[INLINE - 1].index = place;
            record.preds_count = INLINE as u8 - 1;
            record.has_more = true;
        }
        self.more[record.preds[INLINE - 1].index as usize].push(pred);
    }

    /// A job that was scheduled before comes after `pred`, too.
    pub(super) fn add_late(&mut self, job: JobRef, pred: JobRef) {
        let (Some(own), Some(other)) = (self.serial(job), self.serial(pred)) else {
            return;
        };
        self.has_backward_edges |= other > own;
        self.standing.end();
        self.drop_rows();
        self.add_pred(job.index, pred);
    }

    fn drop_rows(&mut self) {
        self.rows.clear();
        self.free.append(&mut self.left);
    }

    /// Somebody has waited for the job: it is over, and so is all that comes before it.
    pub(super) fn forget_with_ancestors(&mut self, job: JobRef) {
        let mut stack = vec![job];
        while let Some(job) = stack.pop() {
            if self.record(job).is_some() {
                stack.extend(self.ends_after(job));
                self.forget(job.index);
            }
        }
    }

    fn forget(&mut self, index: u32) {
        let record = &mut self.records[index as usize];
        let (slot, next) = (record.ticket.index() as usize, record.next);
        record.serial = 0;
        if record.has_more {
            let place = record.preds[INLINE - 1].index;
            self.more[place as usize].clear();
            self.free_more.push(place);
        }
        if record.has_inner {
            self.forget_inner(index);
        }
        let first = self.of_slot[slot];
        if first == index {
            self.of_slot[slot] = next;
        } else {
            let mut before = first as usize;
            while self.records[before].next != index {
                before = self.records[before].next as usize;
            }
            self.records[before].next = next;
        }
        self.live -= 1;
        if self.rows.is_empty() {
            self.free.push(index);
            return;
        }
        self.left.push(index);
        if self.left.len() > self.limits.left.max(self.live / 2) {
            self.drop_rows();
        }
    }

    /// Forgets the jobs that are over and do not matter: that are not in `used`, and come after none of them.
    pub(super) fn sweep(&mut self, used: &[JobRef], is_over: impl Fn(Ticket) -> bool) {
        self.begin_search();
        for &job in used {
            self.find_one(job);
        }
        let places = 0..self.records.len() as u32;
        let is_taken = |&index: &u32| self.records[index as usize].serial != 0;
        let mut all: Vec<u32> = places.filter(is_taken).collect();
        all.sort_unstable_by_key(|&index| self.records[index as usize].serial);
        // Predecessors come first in this order, except along backward edges, and jobs of scopes.
        let goes_up = self.has_backward_edges || self.inner_from > 0;
        loop {
            let mut has_changed = false;
            for &index in &all {
                let job = self.reference(index);
                let follows = |jobs: &Jobs| jobs.ends_after(job).any(|pred| jobs.was_found(pred));
                if !self.was_found(job) && follows(self) {
                    self.find_one(job);
                    has_changed = true;
                }
            }
            if !has_changed || !goes_up {
                break;
            }
        }
        for index in all {
            let record = &self.records[index as usize];
            if record.seen != self.last_search && is_over(record.ticket) {
                self.forget(index);
            }
        }
    }
}
