//! What waits may run.

use platform::Platform;

use super::Builder;
use crate::policy::WaitRule;

impl<P: Platform> Builder<P> {
    /// What workers may run while they wait in the middle of a job: [`WaitRule::Needed`] by default. Threads
    /// of the program run what they wait for, whatever this says.
    ///
    /// ```
    /// use paceline::{Builder, WaitRule};
    /// use std::sync::mpsc::channel;
    /// let js = Builder::new().workers(1).wait_rule(WaitRule::Anything).build().unwrap();
    /// let (send, receive) = channel();
    /// js.schedule(move |cx| {
    ///     let answer = cx.event("answer");
    ///     let id = answer.id();
    ///     cx.schedule(|_| answer.complete()); // Nothing says that this job completes it.
    ///     cx.wait(id);
    ///     send.send(42).unwrap();
    /// });
    /// assert_eq!(receive.recv(), Ok(42));
    /// ```
    pub fn wait_rule(mut self, rule: WaitRule) -> Self {
        self.wait_rule = rule;
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use crate::{Builder, Context, WaitRule};

    fn pool(workers: usize, rule: WaitRule) -> crate::JobSystem {
        let builder = Builder::small().workers(workers).max_spares(0);
        builder
            .follow_machine(false)
            .wait_rule(rule)
            .build()
            .unwrap()
    }

    /// Goal: a wait that runs anything takes the newest first and stops when it is over; one that runs
    /// it needs leaves the rest. Method: the order in which one worker runs jobs of a scope inside of a
    /// scope.
    #[test]
    fn the_newest_goes_first() {
        for (rule, expected) in [
            (WaitRule::Needed, [-2, -1, 2, 1, 0]),
            (WaitRule::Anything, [-2, 1, -1, 2, 0]),
        ] {
            let js = pool(1, rule);
            let (send, receive) = channel();
            js.schedule(move |cx| {
                let push = |n| {
                    let send = send.clone();
                    move |_: &Context<'_>| send.send(n).unwrap()
                };
                cx.scope(|outer| {
                    outer.spawn(push(0));
                    cx.scope(|inner| {
                        inner.spawn(push(-1));
                        outer.spawn(push(1));
                        inner.spawn(push(-2));
                    });
                    outer.spawn(push(2));
                });
            });
            // This thread runs none of it.
            let ran: Vec<i32> = receive.iter().collect();
            assert_eq!(ran, expected, "{rule:?}");
        }
    }

    /// Goal: a wait for what no job of the system completes runs a job that comes while it rests. Method: one
    /// worker waits; another thread schedules a job, and completes the event when that has run.
    #[test]
    fn a_resting_wait_is_woken_for_anything() {
        let rounds = if cfg!(miri) { 2 } else { 300 };
        let js = pool(1, WaitRule::Anything);
        for _ in 0..rounds {
            let event = js.event("answer");
            let id = event.id();
            let (send, receive) = channel();
            let begins = send.clone();
            let waits = js.job("waits").run(move |cx| {
                begins.send(()).unwrap();
                cx.wait(id);
            });
            receive.recv().unwrap();
            js.schedule(move |_| send.send(()).unwrap());
            receive.recv().unwrap();
            event.complete();
            waits.wait();
        }
    }

    /// Goal: both halves of a join run at the same time where pools promise it. Method: each waits for the
    /// other, in job systems whose second worker may begin late.
    #[test]
    fn both_halves_of_a_join_meet() {
        let rounds = if cfg!(miri) { 2 } else { 100 };
        for _ in 0..rounds {
            let js = pool(2, WaitRule::Anything);
            let (to_b, from_a) = channel();
            let (to_a, from_b) = channel();
            let (send, receive) = channel();
            js.schedule(move |cx| {
                let a = move |_: &Context<'_>| {
                    to_b.send(1).unwrap();
                    from_b.recv().unwrap()
                };
                let b = move |_: &Context<'_>| {
                    to_a.send(2).unwrap();
                    from_a.recv().unwrap()
                };
                send.send(cx.join(a, b)).unwrap();
            });
            // This thread takes no half.
            assert_eq!(receive.recv(), Ok((2, 1)));
        }
    }
}
