//! Reading what threads do.

use std::time::Duration;

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::{LabelTable, TRIES};
use crate::report::{Activity, LiveThread, LiveThreadKind, LiveWait, Report};
use crate::store::Ticket;
use crate::work::posted::{PostedWait, ThreadSeen};
use crate::work::shared::Shared;
use crate::work::thread_slot::{ThreadKind, ThreadSlot};

impl<P: Platform> ThreadSlot<P> {
    /// What the thread on this slot does. `Ok(None)`: there is none. `Err(())`: it changes all the time.
    fn seen(&self) -> Result<Option<ThreadSeen>, ()> {
        let words = self.words_of_thread();
        let mut looks = (0..TRIES).map(|_| words.read(|| self.counters.jobs.get()));
        looks.find_map(Result::ok).ok_or(())
    }

    /// The wait that the thread is in at this moment, if it has rested there.
    pub(super) fn rests_in(&self) -> Option<PostedWait> {
        let seen = self.seen().ok()??;
        seen.wait.filter(|wait| wait.target == seen.waits_for)
    }

    /// The same, if it is in the middle of a part of this loop.
    pub(super) fn rests_in_loop(&self, job: Ticket) -> Option<PostedWait> {
        let seen = self.seen().ok()?.filter(|seen| seen.takes_part == job)?;
        seen.wait.filter(|wait| wait.target == seen.waits_for)
    }
}

impl<P: Platform> Shared<P> {
    /// Reads what all threads do. Returns the loops in which threads take part, with the slots of these.
    pub(super) fn read_threads(
        &self,
        names: &mut LabelTable<'_, P>,
        report: &mut Report,
    ) -> Vec<(Ticket, usize)> {
        let now = self.platform.now();
        let mut participants = Vec::new();
        for slot in self.threads.iter() {
            let seen = match slot.seen() {
                Ok(None) => continue,
                Ok(Some(seen)) => seen,
                Err(()) => {
                    report.changing += 1;
                    continue;
                }
            };
            let takes_part = Some(seen.takes_part).filter(|job| !job.is_none());
            let runs = takes_part.and_then(|job| names.named(job));
            participants.extend(takes_part.map(|job| (job, slot.index as usize)));
            report.threads.push(LiveThread {
                slot: slot.index as usize,
                kind: match slot.kind {
                    ThreadKind::Worker => LiveThreadKind::Worker,
                    ThreadKind::Spare => LiveThreadKind::Spare,
                    ThreadKind::Guest => LiveThreadKind::Outside,
                },
                activity: self.activity(slot, &seen, runs.is_some()),
                wait: wait_of(&seen, names, now),
                name: seen.name,
                runs: runs.into_iter().collect(),
                queue: slot.deque.len(),
                inbox: slot.inbox.as_ref().map_or(0, |inbox| inbox.len()),
            });
        }
        participants
    }

    /// What a thread does, without the jobs that say that this thread runs them.
    fn activity(&self, slot: &ThreadSlot<P>, seen: &ThreadSeen, runs: bool) -> Activity {
        let index = slot.index as usize;
        // Relaxed: a hint.
        let flag = slot.flag.load(Ordering::Relaxed);
        if self.lanes.makes_way(slot.index) {
            Activity::MakesWay
        } else if !seen.waits_for.is_none() {
            Activity::Waits
        } else if runs {
            Activity::Runs
        } else if slot.kind == ThreadKind::Guest {
            Activity::Outside
        } else if slot.kind == ThreadKind::Spare && flag & ThreadSlot::<P>::RESTS != 0 {
            Activity::Rests
        } else if self.idle.is_asleep(index) || self.slow.idle.is_asleep(index) {
            Activity::Sleeps
        } else {
            Activity::Searches
        }
    }
}

/// The innermost wait of a thread. None if the awaited job is over: then the wait is about to end.
fn wait_of<P: Platform>(
    seen: &ThreadSeen,
    names: &mut LabelTable<'_, P>,
    now: Nanos,
) -> Option<LiveWait> {
    let posted = seen.wait.filter(|wait| {
        // While the thread runs something inside of the wait, it waits for nothing else.
        seen.waits_for.is_none() || seen.waits_for == wait.target
    });
    let Some(wait) = posted else {
        let job = Some(seen.waits_for).filter(|job| !job.is_none())?;
        return Some(LiveWait {
            job: names.named(job)?,
            lasted: None,
            time_left: None,
            site: None,
        });
    };
    let is_timed = wait.until != Nanos::MAX;
    // It may have begun since the report did.
    let now = now.max(wait.since);
    Some(LiveWait {
        job: names.named(wait.target)?,
        lasted: Some(Duration::from(now - wait.since)),
        time_left: is_timed.then(|| Duration::from(wait.until - now)),
        site: wait.site,
    })
}
