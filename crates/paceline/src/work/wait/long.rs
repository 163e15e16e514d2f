//! A wait that has nothing to run: it is posted for reports ([`posted`](crate::work::posted)), and reported
//! when it lasts long, if the program or its user asks for that.
//!
//! No other thread watches the time. The waiting thread itself wakes when the report is due. After a report
//! the next one is due when the wait has lasted twice as long. Waits that become long at about the same time
//! share a report, which shows all of them.

use event::Nanos;
use platform::Platform;

use super::waiter::Waiter;
use crate::work::posted::PostedWait;

/// A wait that rests from time to time.
pub(super) struct Resting {
    /// Since when it has had nothing to run.
    since: Nanos,
    /// The version with which it was posted last.
    posted: u64,
    /// When it is to be reported; [`Nanos::MAX`]: never.
    report_at: Nanos,
}

impl<P: Platform> Waiter<'_, '_, P> {
    /// The wait has found nothing to run, for the first time.
    pub(super) fn begin_rest(&self, now: Nanos) -> Resting {
        // A wait with a deadline ends by itself.
        let after = if self.is_timed() {
            Nanos::MAX
        } else {
            self.cx.shared.long_waits.after()
        };
        Resting {
            since: now,
            posted: 0,
            report_at: now + after,
        }
    }

    /// The wait is about to rest: posts it, unless it is posted. Returns when it has to be reported.
    pub(super) fn post(&self, resting: &mut Resting) -> Nanos {
        let posted = &self.cx.thread.posted;
        // A wait inside a job that this one ran may have been posted meanwhile.
        if !posted.is_posted(resting.posted) {
            resting.posted = posted.post(PostedWait {
                target: self.target,
                since: resting.since,
                until: self.deadline,
                site: self.site,
            });
        }
        resting.report_at
    }

    /// The wait, which has rested if there is something to end, is over.
    pub(super) fn end_rest(&self, resting: Option<Resting>) {
        let posted = &self.cx.thread.posted;
        if resting.is_some_and(|resting| posted.is_posted(resting.posted)) {
            posted.take_back();
        }
    }

    /// Reports the wait if it has lasted long. True if code of the program's was called for that. The wait
    /// has to look again then: this thread may have missed what it was told meanwhile.
    pub(super) fn report_if_long(&self, resting: &mut Resting, now: Nanos) -> bool {
        now >= resting.report_at && self.report_long(resting, now)
    }

    #[cold]
    fn report_long(&self, resting: &mut Resting, now: Nanos) -> bool {
        let lasted = now - resting.since;
        resting.report_at = now + lasted;
        let (cx, shared) = (self.cx, self.cx.shared);
        let is_first = shared.long_waits.may_report(now);
        if is_first {
            shared.report_long_wait(cx, lasted);
        }
        is_first
    }
}
