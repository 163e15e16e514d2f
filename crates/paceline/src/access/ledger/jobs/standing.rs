//! A search that stands: all that comes before some jobs, kept for the next job that comes after the same.
//!
//! The jobs of a frame often come after one that combines the frame before. The first of them that asks for
//! more than its direct predecessors pays for a search of all that comes before that one. For the others the
//! answer is a look at a mark.
//!
//! Such a search is paid for in advance: each job that is noted adds some steps to a credit, and a search
//! begins if there is enough for all jobs. So no job costs more than a few steps more in the mean, whatever
//! jobs come after.

use super::{JobRef, Jobs, is_of};

#[derive(Default)]
pub(super) struct Standing {
    /// What comes directly before the jobs that it answers for. None: no search stands.
    after: Vec<JobRef>,
    /// What came directly before the last job that was searched for.
    searched: Vec<JobRef>,
    /// What it found is marked with this number.
    number: u32,
    /// It answers for the job that is checked now.
    answers: bool,
    /// The steps that a search may take.
    credit: usize,
}

impl Standing {
    /// The steps that each job adds. A frame's jobs and their edges to the one that combines them are two for
    /// each job, and two or three frames are remembered at a time.
    const STEPS_PER_JOB: usize = 8;

    /// More than this is not saved up.
    const MOST: usize = 1 << 20;

    pub(super) fn earn(&mut self) {
        self.credit = (self.credit + Standing::STEPS_PER_JOB).min(Standing::MOST);
    }

    /// Another search begins.
    pub(super) fn rest(&mut self) {
        self.answers = false;
    }

    /// Edges were added to jobs that it may have found.
    pub(super) fn end(&mut self) {
        self.after.clear();
        self.answers = false;
    }

    /// Notes a search for a job that comes directly after these. Whether the one before was for such a job,
    /// too: then there may be more of them.
    pub(super) fn repeats(&mut self, after: &[JobRef]) -> bool {
        if self.searched == after {
            return true;
        }
        self.searched.clear();
        self.searched.extend_from_slice(after);
        false
    }

    /// Whether it has found a job with this mark, and answers for the job that is checked.
    #[inline]
    pub(super) fn has_found(&self, mark: u32) -> bool {
        self.answers && mark == self.number
    }
}

impl Jobs {
    /// The job that is checked comes directly after these. If that is so for the last standing search, all
    /// that it found is found.
    #[inline]
    pub(in super::super) fn stand_on(&mut self, after: &[JobRef]) {
        self.standing.answers = !after.is_empty() && self.standing.after == after;
    }

    /// Whether all jobs are found that come before the one that is checked.
    pub(in super::super) fn stands(&self) -> bool {
        self.standing.answers
    }

    /// How many standing searches there were.
    #[cfg(test)]
    pub(in super::super) fn standing_searches(&self) -> u32 {
        self.standing.number
    }

    /// Finds all jobs that come before one of `after`, for this search and for later ones. False if another
    /// standing search answers for this one already, or if it is not paid for.
    pub(super) fn stand_instead(&mut self, after: &[JobRef]) -> bool {
        if self.standing.answers || self.standing.credit < 2 * self.live {
            return false;
        }
        self.standing.end();
        self.standing.number = match self.standing.number.wrapping_add(1) {
            0 => self.forget_standing_marks(),
            number => number,
        };
        let mut stack = std::mem::take(&mut self.stack);
        stack.extend_from_slice(after);
        let is_complete = self.stand_on_stack(&mut stack);
        stack.clear();
        self.stack = stack;
        if is_complete {
            self.standing.after.extend_from_slice(after);
            self.standing.answers = true;
        }
        is_complete
    }

    fn stand_on_stack(&mut self, stack: &mut Vec<JobRef>) -> bool {
        let number = self.standing.number;
        while let Some(job) = stack.pop() {
            let Some(credit) = self.standing.credit.checked_sub(1) else {
                return false;
            };
            self.standing.credit = credit;
            let record = &mut self.records[job.index as usize];
            if record.stood != number && is_of(record, job) {
                record.stood = number;
                self.put(stack, job, credit);
            }
        }
        true
    }

    /// The numbers have begun anew. Returns the first.
    #[cold]
    fn forget_standing_marks(&mut self) -> u32 {
        for record in &mut self.records {
            record.stood = 0;
        }
        1
    }
}
