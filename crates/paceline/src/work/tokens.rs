//! The tokens of jobs that can be called off, and what becomes of such a job.
//!
//! A job with a token says so in its flags. Its token is kept here, under its ticket, from before the job is
//! published until it is claimed, or until its body is dropped because it will not run. The thread that
//! claims the job asks the token. All other jobs pay nothing.
//!
//! Every program runs the claim, and few have tokens. So the table is made with the first token, behind a
//! trait object, and the linker leaves out what is behind it.

use platform::{Lock, Platform};

use super::context::Context;
use super::shared::TokenTable;
use crate::graph::{Ending, Failure};
use crate::queues::Queue;
use crate::store::{CancelToken, Map, Slot, Ticket};

/// Notes the token of a new job, which is not published yet.
pub(crate) type KeepToken<P> = for<'c, 'a> fn(&'c Context<'a, P>, Ticket, &CancelToken);

/// The tokens of jobs that have not begun.
struct Tokens<P: Platform> {
    by_job: P::Lock<Map<Ticket, CancelToken>>,
}

impl<P: Platform> TokenTable<P> for Tokens<P> {
    fn add(&self, job: Ticket, token: CancelToken) {
        self.by_job.with(|tokens| tokens.insert(job, token));
    }

    fn forget(&self, job: Ticket) {
        drop(self.take(job));
    }

    fn ends(&self, cx: &Context<'_, P>, job: Ticket, slot: &Slot<P>, flags: u32) -> bool {
        let token = self.take(job);
        let is_cancelled = token.is_some_and(|token| token.is_cancelled());
        if is_cancelled {
            cx.end_called_off(job, slot, flags);
        }
        is_cancelled
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.by_job.with(|tokens| tokens.len())
    }
}

impl<P: Platform> Tokens<P> {
    fn take(&self, job: Ticket) -> Option<CancelToken> {
        self.by_job.with(|tokens| tokens.remove(&job))
    }
}

impl<P: Platform> Context<'_, P> {
    /// Notes the token of a new job, which is not published yet.
    pub(crate) fn keep_token(&self, job: Ticket, token: &CancelToken) {
        let place = &self.shared.tokens;
        if place.get().is_none() {
            let by_job = P::Lock::new(Map::default());
            // Refused: another thread was faster.
            _ = place.set(Box::new(Tokens { by_job }));
        }
        if let Some(tokens) = place.get() {
            tokens.add(job, token.clone());
        }
    }

    fn end_called_off(&self, job: Ticket, slot: &Slot<P>, flags: u32) {
        let graph = self.graph();
        let label = graph.label_of(slot);
        graph.note_failure(job, slot, flags, Failure::CalledOff { label });
        graph.discard_body(job, slot);
        self.thread.counters.cancelled.add(1);
        graph.finish(job, slot, flags, Ending::Cancelled, Queue::Own);
        self.after_job();
    }
}

#[cfg(test)]
impl<P: Platform> Context<'_, P> {
    fn tokens(&self) -> usize {
        self.shared.tokens.get().map_or(0, |tokens| tokens.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{Builder, CancelToken, Grain, JobSystem};

    /// Goal: no token is kept for longer than its job needs it, and each body is dropped once. Method: jobs
    /// of each kind, with a token that was cancelled and with one that was not; jobs that are cancelled
    /// because of a failure, and that are left when the job system ends. Their bodies own a value whose
    /// owners are counted.
    #[test]
    fn no_token_outlives_its_job() {
        for is_cancelled in [false, true] {
            let owned = Arc::new(());
            let token = CancelToken::new();
            if is_cancelled {
                token.cancel();
            }
            let js = Builder::small().workers(0).build().unwrap();
            let job = |name: &'static str, js: &JobSystem| {
                let failed = js.job("fails").schedule(|_| panic!("on purpose"));
                let after = if name == "cancelled" {
                    failed
                } else {
                    js.schedule(|_| ())
                };
                assert!(js.try_wait(failed).is_err());
                after
            };
            for name in ["normal", "cancelled"] {
                let [a, b, c, d] = [0; 4].map(|_| owned.clone());
                let new = || js.job(name).cancelled_by(&token).after(job(name, &js));
                let runs = !is_cancelled && name == "normal";
                let body = move |_: &crate::Context<'_>| drop(a);
                assert_eq!(js.try_wait(new().schedule(body)).is_ok(), runs);
                assert_eq!(new().run(move |_| b).try_wait().is_ok(), runs);
                let body = move |_, _: &crate::Context<'_>| _ = &c;
                let range = new().schedule_for(0..10, Grain::Items(1), body);
                assert_eq!(js.try_wait(range).is_ok(), runs);
                let future = new().run_future(async move { drop(d) });
                assert_eq!(future.try_wait().is_ok(), runs);
            }
            assert_eq!(js.enter(|cx| cx.tokens()), 0);
            let kept = owned.clone();
            let left = js
                .job("left")
                .cancelled_by(&token)
                .after(js.event("never").id());
            left.schedule(move |_| drop(kept));
            assert_eq!(js.enter(|cx| cx.tokens()), 0, "its event is gone");
            drop(js);
            assert_eq!(Arc::strong_count(&owned), 1);
        }
    }

    /// Goal: a job that is refused leaves no token and no body. Method: one that collides with a live one.
    #[cfg(feature = "checks")]
    #[test]
    fn a_refused_job_leaves_no_token() {
        let (owned, token) = (Arc::new(()), CancelToken::new());
        let js = Builder::small().workers(0).checks(true).build().unwrap();
        let data = js.share("data", 0);
        let gate = js.event("gate");
        let first = js
            .job("first")
            .after(&gate)
            .writes(&data)
            .schedule(|_, _| ());
        let kept = owned.clone();
        let collides = js.job("collides").writes(&data).cancelled_by(&token);
        assert!(collides.try_schedule(move |_, _| drop(kept)).is_err());
        assert_eq!(js.enter(|cx| cx.tokens()), 0);
        assert_eq!(Arc::strong_count(&owned), 1);
        gate.complete();
        js.wait(first);
    }
}
