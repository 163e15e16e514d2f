//! Goal: what is called off before it begins does not begin, its body is dropped once, what depends on it is
//! cancelled and says why, and nothing else is touched. A scope does not raise it.
//!
//! Method: random programs of jobs of all kinds on simulated threads under random orders of steps. Tokens are
//! cancelled by jobs in the middle. Each body notes that it ran; whether it may have, and what a wait for it
//! reports, follows from the tokens and the edges. And the texts, word for word.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use event::Nanos;
use paceline::{Builder, CancelToken, Context, Grain, Job, JobId, JobSystem, NewJob, WaitError};
use sim::Sim;

use crate::support::{Random, delays, each_seed};

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A job of a random program.
struct Planned {
    after: Vec<usize>,
    /// Its token, and whether that was cancelled before the job was scheduled.
    token: Option<(usize, bool)>,
    /// The token that it cancels.
    cancels: Option<usize>,
    kind: usize,
}

const TOKENS: usize = 4;

/// The kind of a job that is a future.
const FUTURE: usize = 3;

fn plan(random: &mut Random) -> Vec<Planned> {
    let mut is_cancelled = [false; TOKENS];
    let mut jobs = Vec::new();
    for number in 0..4 + random.below(24) {
        if random.chance(6) {
            is_cancelled[random.below(TOKENS)] = true;
        }
        let token = random.chance(60).then(|| random.below(TOKENS));
        jobs.push(Planned {
            after: (0..random.below(3).min(number))
                .map(|_| random.below(number))
                .collect(),
            token: token.map(|token| (token, is_cancelled[token])),
            cancels: random.chance(15).then(|| random.below(TOKENS)),
            kind: random.below(4),
        });
    }
    jobs
}

/// What is left of a scheduled job.
enum Made {
    Id(JobId),
    Handle(Job<Counted>),
}

fn is_expected(planned: &[Planned], ended: &[bool], number: usize, is_ok: bool) -> bool {
    let job = &planned[number];
    let called_off = job.token.is_some_and(|(_, before)| before);
    let must_fail = called_off || job.after.iter().any(|&pred| !ended[pred]);
    let may_fail = must_fail || job.token.is_some();
    if is_ok { !must_fail } else { may_fail }
}

#[test]
fn what_is_called_off_does_not_begin() {
    each_seed(
        "cancelled::what_is_called_off_does_not_begin",
        1500,
        |seed| {
            let mut random = Random::new(seed ^ 0xca9c_0000);
            let workers = random.below(4);
            let planned = plan(&mut random);
            let report = Sim::run(delays(seed), move |sim| {
                let js = Builder::with_platform(sim.clone())
                    .workers(workers)
                    .build()
                    .unwrap();
                run_and_check(&js, &planned);
            });
            report.expect_finished();
        },
    );
}

/// What bodies do to the world.
#[derive(Clone, Default)]
struct Effects {
    drops: Arc<AtomicUsize>,
    runs: Arc<AtomicUsize>,
}

impl Effects {
    fn run(&self, cancels: Option<&CancelToken>) {
        self.runs.fetch_add(1, Relaxed);
        cancels.inspect(|token| token.cancel());
    }
}

/// Schedules a job of this kind.
fn make(
    new: NewJob<'_, 'static, Sim>,
    kind: usize,
    effects: &Effects,
    cancels: Option<CancelToken>,
) -> Made {
    let (counted, effects) = (Counted(effects.drops.clone()), effects.clone());
    if kind == FUTURE {
        return Made::Handle(new.run_future(async move {
            effects.run(cancels.as_ref());
            counted
        }));
    }
    let work = move |cx: &Context<'_, Sim>| {
        cx.work(Nanos::from_micros(10));
        effects.run(cancels.as_ref());
    };
    match kind {
        0 => Made::Id(new.schedule(move |cx| {
            work(cx);
            drop(counted);
        })),
        1 => Made::Handle(new.run(move |cx| {
            work(cx);
            counted
        })),
        _ => Made::Id(new.schedule_for(0..1, Grain::Items(1), move |_, cx| {
            work(cx);
            let _owned = &counted;
        })),
    }
}

fn run_and_check(js: &JobSystem<Sim>, planned: &[Planned]) {
    let parent = CancelToken::new();
    let tokens: [CancelToken; TOKENS] = std::array::from_fn(|_| parent.child());
    let effects = Effects::default();
    let mut ids: Vec<JobId> = Vec::new();
    let mut all = Vec::new();
    for job in planned {
        let after: Vec<JobId> = job.after.iter().map(|&pred| ids[pred]).collect();
        let mut new = js.job("job").after_all(&after);
        if let Some((token, is_cancelled)) = job.token {
            if is_cancelled {
                tokens[token].cancel();
            }
            new = new.cancelled_by(&tokens[token]);
        }
        let cancels = job.cancels.map(|token| tokens[token].clone());
        let made = make(new, job.kind, &effects, cancels);
        ids.push(match &made {
            Made::Id(id) => *id,
            Made::Handle(handle) => handle.id(),
        });
        all.push(made);
    }
    let mut ended = Vec::new();
    for (number, made) in all.into_iter().enumerate() {
        let error = match made {
            Made::Id(id) => js.try_wait(id).err(),
            Made::Handle(handle) => handle.try_wait().err(),
        };
        let is_ok = error.is_none();
        let is_known = error.is_none_or(|error| match error {
            WaitError::CalledOff { .. } => true,
            WaitError::Cancelled {
                is_called_off,
                message,
                ..
            } => is_called_off && message.is_none(),
            _ => false,
        });
        assert!(is_known, "job {number} failed otherwise");
        assert!(
            is_expected(planned, &ended, number, is_ok),
            "job {number} ran: {is_ok}"
        );
        ended.push(is_ok);
    }
    let ran = ended.iter().filter(|&&ended| ended).count();
    assert_eq!(effects.runs.load(Relaxed), ran, "bodies run");
    assert_eq!(
        effects.drops.load(Relaxed),
        planned.len(),
        "bodies and results dropped"
    );
    assert_eq!(js.stats().cancelled as usize, planned.len() - ran);
    assert_eq!(js.stats().panicked, 0);
}

/// Goal: errors say what was called off. Method: a chain, word for word.
#[test]
fn errors_say_what_was_called_off() {
    let js = JobSystem::new();
    let closing = CancelToken::new();
    closing.cancel();
    let load = js.job("load").cancelled_by(&closing).schedule(|_| ());
    let draw = js.job("draw").after(load).schedule(|_| ());
    let plain = |error: WaitError| {
        let text = error.to_string();
        let mut words = text
            .split_whitespace()
            .filter(|word| !word.contains(".rs:"));
        let first = words.next().unwrap().to_owned();
        words
            .fold(first, |text, word| format!("{text} {word}"))
            .replace("at ", "")
    };
    let errors = [load, draw].map(|job| plain(js.try_wait(job).unwrap_err()));
    assert_eq!(errors[0], "job 'load' was called off");
    assert_eq!(
        errors[1],
        "job 'draw' was cancelled, because job 'load' was called off"
    );
}

/// Goal: a scope ends without a panic if the program has called off some of its jobs, and raises all else.
/// Method: a job that is called off and one that depends on it; the same with one that panics.
#[test]
fn a_scope_does_not_raise_what_was_called_off() {
    let js = JobSystem::new();
    let closing = CancelToken::new();
    closing.cancel();
    let mut ran = 0;
    js.scope(|scope| {
        let load = scope
            .job("load")
            .cancelled_by(&closing)
            .schedule(|_| unreachable!());
        scope.job("draw").after(load).schedule(|_| unreachable!());
        scope.job("other").schedule(|_| ran += 1);
    });
    assert_eq!(ran, 1);
    let raised = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        js.scope(|scope| {
            scope
                .job("load")
                .cancelled_by(&closing)
                .schedule(|_| unreachable!());
            scope
                .job("fails")
                .schedule(|_| crate::support::fail("on purpose"));
        });
    }));
    assert_eq!(raised.unwrap_err().downcast_ref(), Some(&"on purpose"));
}
