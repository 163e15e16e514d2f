//! Searches among the jobs that the ledger remembers: which of them come before which.

use smallvec::SmallVec;

use super::{JobRef, Jobs, is_of};
use crate::store::Map;

impl Jobs {
    /// Begins a search. Nothing is found yet.
    pub(in super::super) fn begin_search(&mut self) {
        self.standing.rest();
        self.last_search = self.last_search.wrapping_add(1);
        if self.last_search == 0 {
            for record in &mut self.records {
                record.seen = 0;
            }
            self.last_search = 1;
        }
    }

    /// Marks one job as found. Returns whether it was not, and is remembered.
    pub(in super::super) fn find_one(&mut self, job: JobRef) -> bool {
        let search = self.last_search;
        let record = &mut self.records[job.index as usize];
        let is_new = is_of(record, job) && record.seen != search;
        if is_new {
            record.seen = search;
        }
        is_new
    }

    /// Marks at least those of `wanted` that come before one of `from`. None of `wanted` was scheduled before
    /// the job with serial number `down_to`, and `from` were found before.
    pub(in super::super) fn find_among(
        &mut self,
        from: &[JobRef],
        wanted: impl Iterator<Item = JobRef> + Clone,
        down_to: u64,
    ) {
        if self.records.len() > self.limits.records {
            self.drop_rows();
            if !self.stand_instead(from) {
                self.find_ancestors(from, down_to, usize::MAX);
            }
            return;
        }
        if self.standing.repeats(from) && self.stand_instead(from) {
            return;
        }
        if self.rows.is_empty() && self.find_ancestors(from, down_to, self.limits.looked_at) {
            return;
        }
        if self.stand_instead(from) {
            return;
        }
        self.rows.make_room(self.records.len());
        for &job in from {
            self.make_row(job.index);
            for before in wanted.clone() {
                if self.record(before).is_some() && self.rows.follows(job.index, before.index) {
                    self.find_one(before);
                }
            }
        }
    }

    /// Marks all jobs that come before one of `from`, as far as they were scheduled when the job with serial
    /// number `down_to` was, or later. False: `most` jobs were looked at, and there are more.
    fn find_ancestors(&mut self, from: &[JobRef], down_to: u64, most: usize) -> bool {
        let down_to = self.reachable_from(down_to);
        let mut stack = std::mem::take(&mut self.stack);
        let mut left = most;
        for &job in from {
            self.put(&mut stack, job, left);
        }
        while let Some(job) = stack.pop() {
            if left <= stack.len() {
                stack.clear();
                self.stack = stack;
                return false;
            }
            left -= 1;
            let is_late = self.records[job.index as usize].serial >= down_to;
            if is_late && self.find_one(job) {
                self.put(&mut stack, job, left);
            }
        }
        self.stack = stack;
        true
    }

    /// Puts what ends directly before a job on the stack: enough of it to see that it is more than `most`.
    #[inline]
    pub(super) fn put(&self, stack: &mut Vec<JobRef>, job: JobRef, most: usize) {
        let record = &self.records[job.index as usize];
        if is_of(record, job) && !record.has_more && !record.has_inner {
            stack.extend_from_slice(record.inline_preds());
        } else {
            let room = most.saturating_sub(stack.len()).saturating_add(1);
            stack.extend(self.ends_after(job).take(room));
        }
    }

    /// A search for jobs from this serial number on may leave out those below the returned one: from there no
    /// edge leads up again.
    fn reachable_from(&self, down_to: u64) -> u64 {
        match (self.has_backward_edges, self.inner_from) {
            (true, _) => 0,
            (false, 0) => down_to,
            (false, from) => down_to.min(from),
        }
    }

    /// Whether `job` begins after the end of `other`. Nothing is marked: it may be asked amid a search.
    #[cold]
    pub(in super::super) fn follows(&self, job: JobRef, other: JobRef) -> bool {
        self.leads_to(self.preds(job), other)
    }

    /// Whether `job` ends after the end of `other`, as above.
    #[cold]
    pub(in super::super) fn outlasts(&self, job: JobRef, other: JobRef) -> bool {
        self.leads_to(self.ends_after(job), other)
    }

    fn leads_to(&self, from: impl Iterator<Item = JobRef>, other: JobRef) -> bool {
        let Some(serial) = self.serial(other) else {
            return false;
        };
        let down_to = self.reachable_from(serial);
        let (mut seen, mut stack) = (Map::default(), SmallVec::<[JobRef; 16]>::new());
        stack.extend(from);
        while let Some(before) = stack.pop() {
            if before == other {
                return true;
            }
            let serial = self.serial(before);
            if serial.is_some_and(|serial| serial >= down_to) && seen.insert(before.index, ()) {
                stack.extend(self.ends_after(before));
            }
        }
        false
    }

    /// Makes the row of a record, and of all before it that have none. In a circle, which only a program has
    /// that can never end, rows lack what comes around.
    fn make_row(&mut self, index: u32) {
        let mut stack = vec![(index, false)];
        while let Some((index, is_begun)) = stack.pop() {
            if is_begun {
                let mut rows = std::mem::take(&mut self.rows);
                rows.fill(index, self.known_preds(index));
                self.rows = rows;
            } else if !self.rows.has(index) {
                self.rows.begin(index);
                stack.push((index, true));
                let preds = self.known_preds(index);
                let new = preds.filter(|&pred| !self.rows.has(pred));
                stack.extend(new.map(|pred| (pred, false)));
            }
        }
    }

    /// The records of those that end directly before this one, as far as they are remembered.
    fn known_preds(&self, index: u32) -> impl Iterator<Item = u32> {
        let preds = self.ends_after(self.reference(index));
        let known = preds.filter(|&pred| self.record(pred).is_some());
        known.map(|pred| pred.index)
    }

    /// Whether the last search has found this job.
    #[inline]
    pub(in super::super) fn was_found(&self, job: JobRef) -> bool {
        let record = self.record(job);
        record.is_some_and(|record| {
            record.seen == self.last_search || self.standing.has_found(record.stood)
        })
    }
}
