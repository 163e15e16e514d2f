//! Random programs in which values go from job to job.
//!
//! A program is a graph of sources and successors, each of whose values is known beforehand, or known to be
//! missing. Each value carries a token. A source is a job, an event with a value, or an event of which some
//! job is in charge; a successor takes one to four handles, by `with` or by `then`. Handles are taken, waited
//! for, awaited by a successor, or dropped at any time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use event::Nanos;
use paceline::{Context, Event, Job};
use platform::{Platform, Thread, ThreadSpec};
use sim::{Sim, SimConfig};

use super::*;
use crate::support::programs::run_on_main_and_in_a_job;
use crate::support::{Random, each_seed, fail};

/// A handle, and the number that its value is to have. `None`: its job fails.
type Known = (Job<Small>, Option<u64>);

struct Maker<'m, P: Platform> {
    cx: &'m Context<'m, P>,
    random: &'m mut Random,
    ledger: Arc<Ledger>,
    open: Vec<Known>,
    /// Events that are still to be completed or dropped.
    owed: Vec<(Event<Small>, Option<u64>)>,
}

impl<P: Platform> Maker<'_, P> {
    fn source(&mut self) {
        let number = self.random.next() % 1000;
        let fails = self.random.chance(12);
        let expected = (!fails).then_some(number);
        let value = Value::new(&self.ledger, number);
        let rest = Nanos(self.random.below(3000) as u64);
        let handle = match self.random.below(3) {
            0 => self.cx.job("source").run(move |cx| {
                cx.work(rest);
                if fails { fail("a source") } else { value }
            }),
            1 => {
                let (event, handle) = self.cx.event_with("source");
                self.owed.push((event, expected));
                handle
            }
            _ => {
                let (event, handle) = self.cx.event_with("source");
                let job = self.cx.job("gives");
                let job = if self.random.chance(30) {
                    job.background()
                } else {
                    job
                };
                job.schedule(move |cx| {
                    cx.work(rest);
                    if !fails {
                        event.complete_with(value);
                    }
                });
                handle
            }
        };
        self.open.push((handle, expected));
    }

    /// Takes an open handle.
    fn pick(&mut self) -> Option<Known> {
        let count = self.open.len();
        (count > 0).then(|| self.open.swap_remove(self.random.below(count)))
    }

    fn successor(&mut self) {
        let Some((first, one)) = self.pick() else {
            return;
        };
        let (ledger, fails) = (self.ledger.clone(), self.random.chance(6));
        let make = move |number| {
            if fails {
                fail("a successor")
            } else {
                Value::new(&ledger, number)
            }
        };
        let job = self.cx.job("successor");
        let (handle, sum) = match (self.random.below(4), self.pick()) {
            (0, Some((second, two))) => {
                let job = job.with((first, second));
                let next = job.run(move |_, (a, b)| make(a.number + b.number));
                (next, one.zip(two).map(|(a, b)| a + b))
            }
            (1, Some((second, two))) => {
                let job = job.with(vec![first, second]);
                let next = job.run(move |_, all| make(all.iter().map(|value| value.number).sum()));
                (next, one.zip(two).map(|(a, b)| a + b))
            }
            (_, back) => {
                self.open.extend(back);
                let next = if self.random.chance(50) {
                    first.then(move |value| make(value.number))
                } else {
                    job.with(first).run(move |_, value| make(value.number))
                };
                (next, one)
            }
        };
        self.open.push((handle, sum.filter(|_| !fails)));
    }

    /// Completes one of the events, or drops it.
    fn give(&mut self) {
        if self.owed.is_empty() {
            return;
        }
        let at = self.random.below(self.owed.len());
        let (event, number) = self.owed.swap_remove(at);
        match number {
            Some(number) => event.complete_with(Value::new(&self.ledger, number)),
            None => drop(event),
        }
    }

    /// Does something with a handle whose value is there sooner or later.
    fn take(&mut self) {
        let Some((handle, expected)) = self.pick() else {
            return;
        };
        match self.random.below(5) {
            0 => drop(handle),
            1 => _ = self.cx.job("drops").schedule(move |_| drop(handle)),
            2 => {
                let id = handle.id();
                self.cx.job("after").after(id).schedule(|_| ());
                self.open.push((handle, expected));
            }
            3 => match handle.wait_timeout(std::time::Duration::from_micros(2)) {
                Ok(Err(handle)) => self.open.push((handle, expected)),
                Ok(Ok(value)) => assert_eq!(Some(value.number), expected),
                Err(error) => assert!(expected.is_none(), "{error}"),
            },
            // All that it depends on is given by now.
            _ if self.owed.is_empty() => check(handle, expected),
            _ => self.open.push((handle, expected)),
        }
    }
}

#[track_caller]
fn check(handle: Job<Small>, expected: Option<u64>) {
    let number = handle.try_wait().map(|value| value.number);
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
    for _ in 0..maker.random.below(40) {
        match maker.random.below(8) {
            0..3 => maker.source(),
            3..6 => maker.successor(),
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

/// Goal: every value arrives, or is dropped, once; and no wake-up is lost. Method: the programs above on the
/// main thread and in a job, with no workers to three; sometimes the job system ends while events are open
/// and handles are there.
#[test]
fn values_arrive_or_are_dropped() {
    run_on_main_and_in_a_job("values::programs::values_arrive_or_are_dropped", program);
}

/// Goal: a successor that a handle makes while the job system ends runs before the end, or is refused; it is
/// never left there. Method: a thread makes one from a handle that is over or not, and lets it go, while main
/// drops the job system, under random orders of steps.
#[test]
fn a_successor_at_the_end_is_run_or_refused() {
    let test = "values::programs::a_successor_at_the_end_is_run_or_refused";
    each_seed(test, 1_500, |seed| {
        let mut random = Random::new(seed ^ 0xe4d);
        let ran = Arc::new(AtomicU32::new(0));
        let (theirs, refused) = (ran.clone(), Arc::new(AtomicU32::new(0)));
        let says = refused.clone();
        let report = Sim::run(SimConfig::new(seed), |sim| {
            let js = Builder::with_platform(sim.clone()).max_threads(8);
            let js = js
                .workers(random.below(2))
                .build()
                .expect("the settings are in range");
            let input = js.job("input").run(|_| 20);
            let steps = random.below(1_500);
            let maker = move || {
                (0..steps).for_each(|_| _ = input.is_done());
                let made = input.try_then(move |_| _ = theirs.fetch_add(1, Relaxed));
                says.store(u32::from(made.is_err()), Relaxed);
            };
            let maker = sim.spawn(ThreadSpec::default(), Box::new(maker));
            let maker = maker.expect("there is room");
            drop(js);
            maker.join().expect("it does not panic");
        });
        report.expect_finished();
        let (ran, refused) = (ran.load(Relaxed), refused.load(Relaxed));
        assert_eq!(ran + refused, 1, "{ran} ran, {refused} were refused");
    });
}
