//! A waiter that has found nothing to run: it becomes a listener, spins for a while, and parks.

use event::{EventKind, Nanos};
use platform::{Ordering, Parker, Platform};

use super::long::Resting;
use super::waiter::Waiter;
use crate::adapt::Vigil;
use crate::error::WaitError;
use crate::policy::{Tuning, WaitPolicy};
use crate::queues::Fenced;
use crate::work::context::Context;
use crate::work::thread_slot::ThreadKind;

/// How long a waiter with nothing to run stays in each state.
#[derive(Clone, Copy)]
struct Patience {
    /// Until then it spins and no other thread is notified: a worker that is back soon is not replaced.
    quiet_until: Nanos,
    /// Until then it goes on spinning, but counts as blocked.
    spin_until: Nanos,
}

/// The outcome of a rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RestOutcome {
    /// The last look found something.
    None,
    Spun,
    Parked,
}

/// A deadlock is reported when it has been seen for this long. A real one lasts. A false one, which the walk
/// may see while a thread changes its state, does not.
const DEADLOCK_CONFIRM: Nanos = Nanos::from_millis(1);

/// The same for a thread that is in the middle of no job, and so no part of the cycle. It leaves the report
/// to a thread that is: the failure of that one's wait may end what this thread waits for. (A cycle of edges
/// alone has no such thread.)
const DEADLOCK_CONFIRM_BESIDE: Nanos = Nanos::from_millis(200);

/// How long a thread waits for another thread to come, if it is in the middle of a job, there are no workers,
/// and there is work that it does not need; see the module above.
pub(super) const LAST_RESORT: Nanos = Nanos::from_millis(250);

/// After a search for a deadlock there is no further one for this many times as long as the search took. So
/// searches take a bounded part of the time, even where waiters are woken often and wait for many jobs.
const DEADLOCK_REST: u64 = 16;

/// The facts that a waiter has about a possible deadlock.
#[derive(Clone, Copy)]
struct Suspicion {
    /// The time since which one has been seen.
    since: Option<Nanos>,
    /// When to look again.
    next: Nanos,
}

impl<P: Platform> Waiter<'_, '_, P> {
    /// There is nothing to run: becomes a listener, spins, parks.
    pub(super) fn watch(&mut self) -> Result<bool, WaitError> {
        let (cx, deadline) = (self.cx, self.deadline);
        let shared = cx.shared;
        let listening = match cx.graph().listen(self.target) {
            Ok(Some(listening)) => listening,
            Ok(None) => return Ok(true),
            // There is no free link (all are in use): look once a millisecond.
            Err(_) => return self.look_now_and_then(),
        };
        end_watch(cx); // That of a wait underneath, which begins another one.
        if let Some(pinned) = shared.pinned.get() {
            pinned.waits_have_changed(cx);
        }
        let mut patience = self.patience();
        let mut vigil = shared.adapt.watch();
        let mut suspicion = Suspicion {
            since: None,
            next: Nanos::ZERO,
        };
        let mut resting = None;
        let mut spun = false;
        let result = loop {
            let epoch = begin_watch(cx);
            if self.help_until_stuck() {
                if spun {
                    cx.own(|own| own.wait.habit.paid());
                }
                break Ok(true);
            }
            let now = shared.platform.now();
            vigil.passes(cx, now);
            if now >= deadline {
                break Ok(self.is_over());
            }
            let resting = resting.get_or_insert_with(|| self.begin_rest(now));
            // If bodies have run here, publishers have not notified this thread of anything since.
            if !is_watching(cx) || self.report_if_long(resting, now) {
                continue;
            }
            let Some(look_at) = self.help_with_late_pieces() else {
                continue;
            };
            let quiet_until = Some(patience.quiet_until).filter(|&until| now < until);
            if let Some(until) = quiet_until.or_else(|| vigil.spins_until(cx, now)) {
                cx.spin(epoch, until.min(deadline).min(look_at));
                spun = true;
                continue;
            }
            let look_at = look_at.min(self.last_resort(now));
            let until = match self.look_for_deadlock(now, &mut suspicion) {
                Ok(next_look) => deadline.min(next_look).min(look_at),
                Err(error) => break Err(error),
            };
            match self.rest(&vigil, resting, (patience.spin_until, until)) {
                RestOutcome::None => {}
                RestOutcome::Spun => spun = true,
                RestOutcome::Parked => {
                    self.note_parked_since(now);
                    patience = self.patience();
                    vigil.has_slept();
                    spun = false;
                }
            }
        };
        end_watch(cx);
        self.end_rest(resting);
        let is_over = matches!(result, Ok(true));
        cx.graph().end_listening(listening, is_over);
        result
    }

    /// Looks for a deadlock that this wait is a part of, if it is time for that. Returns when to look again,
    /// should this thread be woken before; or the error to report.
    fn look_for_deadlock(&self, now: Nanos, suspicion: &mut Suspicion) -> Result<Nanos, WaitError> {
        // A wait with a deadline ends by itself.
        if self.is_timed() || !self.may_be_in_cycle() {
            return Ok(Nanos::MAX);
        }
        if now < suspicion.next {
            return Ok(suspicion.next);
        }
        let Some(error) = self.find_cycle() else {
            let then = self.cx.shared.platform.now();
            suspicion.since = None;
            suspicion.next = then + Nanos(DEADLOCK_REST * (then - now).0);
            // A thread that closes a cycle later looks for it, too.
            return Ok(Nanos::MAX);
        };
        let since = *suspicion.since.get_or_insert(now);
        let confirm = if self.cx.current_job().is_none() {
            DEADLOCK_CONFIRM_BESIDE
        } else {
            DEADLOCK_CONFIRM
        };
        suspicion.next = since + confirm;
        if now - since >= confirm {
            Err(error)
        } else {
            Ok(suspicion.next)
        }
    }

    fn patience(&self) -> Patience {
        let (cx, deadline) = (self.cx, self.deadline);
        let full = cx.shared.spin_time();
        // A worker that waits inside a job goes on as the policy says. It is replaced when it parks.
        let learns =
            cx.shared.spin.policy == WaitPolicy::Adaptive && cx.thread.kind == ThreadKind::Guest;
        let time = if learns {
            cx.own(|own| own.wait.habit.time(full))
        } else {
            full
        };
        let spin_until = cx.deadline_in(time, None).min(deadline);
        let quiet_until = match spin_until {
            Nanos::ZERO => Nanos::ZERO,
            later => later.min(cx.shared.platform.now() + Tuning::SPIN_MAX),
        };
        Patience {
            quiet_until,
            spin_until,
        }
    }

    fn note_parked_since(&self, then: Nanos) {
        let cx = self.cx;
        let away = cx.shared.platform.now() - then;
        let (full, cost) = (cx.shared.spin_time(), cx.shared.wake_cost.get());
        cx.own(|own| own.wait.habit.parked(away, full, cost));
    }

    /// Looks around for the last time, then rests until `until`: parked, or spinning as long as the policy
    /// says so. Meanwhile this thread counts as blocked, and all work that other threads could run is left to
    /// them.
    fn rest(
        &mut self,
        vigil: &Vigil<'_, P>,
        resting: &mut Resting,
        (spin_until, until): (Nanos, Nanos),
    ) -> RestOutcome {
        self.cx
            .rest_without_place(|| self.rest_now(vigil, resting, (spin_until, until)))
    }

    fn rest_now(
        &mut self,
        vigil: &Vigil<'_, P>,
        resting: &mut Resting,
        (spin_until, until): (Nanos, Nanos),
    ) -> RestOutcome {
        let cx = self.cx;
        let shared = cx.shared;
        cx.promote_all();
        cx.forget_stamp();
        let epoch = shared.idle.epoch();
        shared.begin_block(cx);
        // SeqCst, partner: the publisher's fence (F in `idle`): the publisher sees the marks, or this thread
        // sees its ticket.
        P::fence(Ordering::SeqCst);
        let found = if self.may_help() {
            self.find_one()
        } else {
            self.find_in_reserve()
        };
        let pinned = match found {
            None => self.needed_pinned(),
            Some(_) => None,
        };
        let has_found = found.is_some() || pinned.is_some() || self.has_pinned();
        let mut rest = RestOutcome::None;
        if !has_found && !self.is_over() && !self.must_run_anything() {
            if let Some(stuck) = shared.replace_blocked(cx) {
                shared.end_block(cx);
                shared.report_stuck(cx, &stuck);
                return RestOutcome::None;
            }
            if self.is_timed() {
                // It may not run what it waits for, which may be a quiet job.
                cx.wake_for_quiet_jobs();
            }
            let until = until.min(self.post(resting));
            let said = self.tell_rest();
            if shared.platform.now() < spin_until {
                cx.spin(epoch, spin_until.min(until));
                rest = RestOutcome::Spun;
            } else {
                vigil.sleeps(cx);
                cx.thread.counters.parks.add(1);
                cx.record(EventKind::Park, self.target, 0);
                cx.thread.parker.park(until.min(vigil.sleeps_until()));
                cx.record_unpark(self.target);
                rest = RestOutcome::Parked;
            }
            if said {
                cx.own(|own| own.hints.end_wait());
            }
        }
        shared.end_block(cx);
        if let Some(job) = found {
            self.help(job, shared.slot(job));
        } else if pinned.is_some() {
            self.help_with_pinned(pinned);
        }
        rest
    }

    /// Tells a scheduler which threads run what this wait needs. Whether there are any.
    fn tell_rest(&self) -> bool {
        let (cx, hints) = (self.cx, &self.cx.shared.hints);
        let running = hints.running(cx.thread.index, &|job| self.is_wanted(job));
        let Some(running) = running else { return false };
        cx.own(|own| own.hints.begin_wait(running));
        true
    }

    /// Whether there are no workers, so that this thread has to run any job that is ready, and there is one.
    fn must_run_anything(&self) -> bool {
        self.may_run_anything() && self.may_help() && self.cx.shared.has_work()
    }

    /// When this thread has to check again whether it is on its own, if there is work that it could run then.
    fn last_resort(&mut self, now: Nanos) -> Nanos {
        let shared = self.cx.shared;
        if shared.workers.active() == 0 && self.cx.is_called_back() && shared.has_work() {
            let time = if shared.platform.is_alone() {
                Nanos::ZERO
            } else {
                LAST_RESORT
            };
            self.walk.last_resort = self.walk.last_resort.min(now + time);
        }
        self.walk.last_resort
    }

    /// The rest of a wait that could not become a listener.
    #[cold]
    fn look_now_and_then(&mut self) -> Result<bool, WaitError> {
        const PERIOD: Nanos = Nanos::from_millis(1);
        let shared = self.cx.shared;
        let vigil = shared.adapt.watch();
        let mut resting = None;
        loop {
            let now = shared.platform.now();
            if self.help_until_stuck() || now >= self.deadline {
                self.end_rest(resting);
                return Ok(self.is_over());
            }
            let resting = resting.get_or_insert_with(|| self.begin_rest(now));
            self.report_if_long(resting, now);
            let until = self.deadline.min(now + PERIOD);
            self.rest(&vigil, resting, (Nanos::ZERO, until));
        }
    }
}

/// From now on publishers notify this thread of new work, if they do not do so yet. Returns the epoch to spin
/// on; the caller looks around now.
fn begin_watch<P: Platform>(cx: &Context<'_, P>) -> u16 {
    cx.own(|own| own.wait.has_helped = false);
    if is_watching(cx) {
        return cx.shared.idle.epoch();
    }
    cx.own(|own| own.wait.is_watching = true);
    cx.shared.idle.begin_watch::<Fenced>()
}

/// This thread is about to run a body in a wait. At the second one in a row it is as busy as the others, and
/// publishers need not notify it any more. (After the first one it is likely to have nothing to run again,
/// and all threads would wait for the word that counts it.)
#[inline(never)]
pub(super) fn leave_watch_if_busy<P: Platform>(cx: &Context<'_, P>) {
    if is_watching(cx) && cx.own(|own| std::mem::replace(&mut own.wait.has_helped, true)) {
        end_watch(cx);
    }
}

/// Publishers need not notify this thread any more.
fn end_watch<P: Platform>(cx: &Context<'_, P>) {
    if cx.own(|own| std::mem::take(&mut own.wait.is_watching)) {
        cx.shared.idle.end_watch();
    }
}

fn is_watching<P: Platform>(cx: &Context<'_, P>) -> bool {
    cx.own(|own| own.wait.is_watching)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use platform::{Atomic, Memory, Ordering, Os, Platform};

    use crate::Builder;

    /// A word of the test below.
    type Word = <Os as Memory>::AtomicU64;

    fn until(wanted: &dyn Fn() -> bool) {
        let never = Word::new(0);
        while !wanted() {
            Os::spin_until(&never, |word| word != 0, Os.now());
        }
    }

    /// Goal: a thread that runs jobs in a wait is busy, and does not count as one that wants work. Method: a
    /// job that is awaited makes others in a scope, which only the waiting thread can run, since the worker
    /// is in the first one until they are over. They look at the count. (It may have nothing to run between
    /// two of them for a moment, and then the next one still sees it.)
    #[test]
    fn a_waiter_that_runs_jobs_is_not_watching() {
        const JOBS: u64 = 16;
        let js = Builder::small().workers(1).build().unwrap();
        let [begun, made, over, unwatched] = [(); 4].map(|()| Arc::new(Word::new(0)));
        let (here, seen) = (begun.clone(), unwatched.clone());
        let outer = js.schedule(move |cx| {
            here.store(1, Ordering::Relaxed);
            until(&|| cx.shared.idle.load().watching == 1);
            cx.scope(|scope| {
                for _ in 0..JOBS {
                    let (made, over, seen) = (made.clone(), over.clone(), seen.clone());
                    scope.spawn(move |cx| {
                        until(&|| made.load(Ordering::Relaxed) == 1);
                        if cx.shared.idle.load().watching == 0 {
                            seen.fetch_add(1, Ordering::Relaxed);
                        }
                        over.fetch_add(1, Ordering::Relaxed);
                    });
                }
                made.store(1, Ordering::Relaxed);
                until(&|| over.load(Ordering::Relaxed) == JOBS);
            });
        });
        until(&|| begun.load(Ordering::Relaxed) == 1);
        js.wait(outer);
        assert!(unwatched.load(Ordering::Relaxed) > 0);
    }
}
