//! Random programs of futures that await each other, jobs and events.

use event::Nanos;
use paceline::{Context, Event, Job, WaitError};
use platform::Platform;

use super::*;
use crate::support::ledger::Ledger;
use crate::support::programs::run_on_main_and_in_a_job;
use crate::support::{Random, fail};

/// A handle, and its value. `None`: its job fails.
type Known = (Job<u64>, Option<u64>);

struct Maker<'m, P: Platform> {
    cx: &'m Context<'m, P>,
    random: &'m mut Random,
    ledger: Arc<Ledger>,
    open: Vec<Known>,
    owed: Vec<(Event<u64>, u64)>,
}

impl<P: Platform> Maker<'_, P> {
    fn pick(&mut self) -> Option<Known> {
        let count = self.open.len();
        (count > 0).then(|| self.open.swap_remove(self.random.below(count)))
    }

    fn source(&mut self) {
        let number = self.random.next() % 1000;
        let rest = Nanos(self.random.below(3000) as u64);
        let handle = match self.random.below(3) {
            0 => self.cx.job("source").run(move |cx| {
                cx.work(rest);
                number
            }),
            1 => {
                let (event, handle) = self.cx.event_with("source");
                self.owed.push((event, number));
                handle
            }
            _ => {
                // A wake-up that comes from a job, before the first poll or later.
                let (signal, token) = (Signal::new(), self.ledger.token());
                let giver = signal.clone();
                self.cx.schedule(move |cx| {
                    cx.work(rest);
                    giver.give(number);
                });
                self.cx.spawn_future("signalled", async move {
                    let _token = token;
                    signal.taken().await
                })
            }
        };
        self.open.push((handle, Some(number)));
    }

    /// A future that awaits one or two handles, and yields in between.
    fn future(&mut self) {
        let Some((first, one)) = self.pick() else {
            return;
        };
        let second = self.pick();
        let (yielded, fails) = (self.random.below(3) as u32, self.random.chance(8));
        let token = self.ledger.token();
        let by_end = self.random.chance(30);
        let end = self.cx.when_done(&first);
        let (second, two) = second.map_or((None, Some(0)), |(job, two)| (Some(job), two));
        let future = async move {
            let _token = token;
            if by_end && end.await.is_err() {
                fail("its first handle has failed");
            }
            let mut sum = match first.outcome().await {
                Ok(number) => number,
                Err(WaitError::Panicked { .. } | WaitError::Cancelled { .. }) => {
                    fail("its handle has failed")
                }
                Err(error) => panic!("{error}"),
            };
            yields(yielded).await;
            if let Some(second) = second {
                sum += second.await;
            }
            if fails {
                fail("a future");
            }
            sum
        };
        let mut job = self.cx.job("future");
        if self.random.chance(20) {
            job = job.background();
        }
        let handle = job.run_future(future);
        let sum = one.zip(two).map(|(a, b)| a + b).filter(|_| !fails);
        self.open.push((handle, sum));
    }

    fn give(&mut self) {
        if !self.owed.is_empty() {
            let at = self.random.below(self.owed.len());
            let (event, number) = self.owed.swap_remove(at);
            event.complete_with(number);
        }
    }

    fn take(&mut self) {
        let Some((handle, expected)) = self.pick() else {
            return;
        };
        match self.random.below(4) {
            0 => drop(handle),
            1 if self.owed.is_empty() => check(handle, expected),
            2 => {
                let next = handle.then(|number| number + 1);
                self.open.push((next, expected.map(|number| number + 1)));
            }
            _ => match handle.wait_timeout(std::time::Duration::from_micros(2)) {
                Ok(Err(handle)) => self.open.push((handle, expected)),
                Ok(Ok(number)) => assert_eq!(Some(number), expected),
                Err(error) => assert!(expected.is_none(), "{error}"),
            },
        }
    }
}

#[track_caller]
fn check(handle: Job<u64>, expected: Option<u64>) {
    let number = handle.try_wait();
    assert_eq!(number.as_ref().ok(), expected.as_ref(), "{number:?}");
}

fn program<P: Platform>(cx: &Context<'_, P>, random: &mut Random, ledger: &Arc<Ledger>) {
    let mut maker = Maker {
        cx,
        random,
        ledger: ledger.clone(),
        open: Vec::new(),
        owed: Vec::new(),
    };
    for _ in 0..maker.random.below(30) {
        match maker.random.below(8) {
            0..3 => maker.source(),
            3..6 => maker.future(),
            6 => maker.give(),
            _ => maker.take(),
        }
    }
    let leaves_the_rest = maker.random.chance(20);
    while !leaves_the_rest && !maker.owed.is_empty() {
        maker.give();
    }
    if !leaves_the_rest {
        for (handle, expected) in maker.open {
            check(handle, expected);
        }
    }
}

/// Goal: every future ends with its value, or is dropped with the job system, once; no wake-up is lost.
/// Method: the programs above on the main thread and in a job, with no workers to three; sometimes the job
/// system ends while events are open.
#[test]
fn futures_end() {
    run_on_main_and_in_a_job("futures::programs::futures_end", program);
}
