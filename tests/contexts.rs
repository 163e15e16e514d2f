//! Goal: inside a job a program does what it does outside, without carrying the job system along; and a call
//! that panics names its place in the program.
//!
//! Method: random programs inside of jobs, on simulated threads under random orders of steps, where a lost
//! job or wake-up is a deadlock; and calls that must panic, with a hook that notes the place.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, Context, Grain, JobSystem};
use platform::Platform;
use sim::{Sim, SimConfig};

use crate::support::{Random, each_seed};

/// Makes jobs that depend on each other and on an event, waits for them, and returns how many it made.
fn program<P: Platform>(
    cx: &Context<'_, P>,
    random: &mut Random,
    ran: &Arc<AtomicU64>,
    depth: u32,
) -> u64 {
    let frame = cx.frame("inner", Duration::from_millis(1));
    let gate = cx.event("gate");
    let (mut ids, mut made) = (Vec::new(), 0);
    for _ in 0..1 + random.below(5) {
        let mut job = frame.job("job");
        if random.chance(40) {
            job = job.after(&gate);
        }
        if let Some(&id) = ids.last().filter(|_| random.chance(40)) {
            job = job.after(id);
        }
        let (ran, seed) = (ran.clone(), random.next());
        ids.push(job.schedule(move |cx| {
            cx.work(Nanos::from_micros(3));
            let below = match depth {
                0 => 0,
                _ => program(cx, &mut Random::new(seed), &ran, depth - 1),
            };
            ran.fetch_add(1 + below, Relaxed);
        }));
        made += 1;
    }
    assert!(!cx.wait_timeout(&gate, Duration::ZERO).unwrap());
    gate.complete();
    cx.flush();
    match random.below(3) {
        0 => cx.wait(cx.combine(&ids)),
        1 => ids
            .iter()
            .for_each(|id| cx.try_wait(id).expect("it ends well")),
        _ => {
            while !cx
                .wait_timeout(cx.combine(&ids), Duration::from_micros(5))
                .unwrap()
            {}
        }
    }
    assert!(ids.iter().all(|id| cx.is_done(id)));
    made
}

/// Goal: as above. Method: such programs inside of jobs inside of jobs, with no workers to two.
#[test]
fn jobs_do_what_threads_do() {
    each_seed("contexts::jobs_do_what_threads_do", 150, |seed| {
        let report = Sim::run(SimConfig::new(seed), |sim| {
            let workers = seed as usize % 3;
            let js = Builder::with_platform(sim)
                .workers(workers)
                .build()
                .unwrap();
            let ran = Arc::new(AtomicU64::new(0));
            let inside = ran.clone();
            let root = js.job("root");
            let made = root.run(move |cx| program(cx, &mut Random::new(seed), &inside, 2));
            // Each job has counted itself and the jobs that it made, which counted themselves, too.
            assert!(made.wait() <= ran.load(Relaxed));
        });
        report.expect_finished();
    });
}

thread_local! {
    static PLACE: Cell<Option<(String, u32)>> = const { Cell::new(None) };
}

/// The place that a panic of `call` names.
fn place_of(call: impl FnOnce()) -> (String, u32) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info
                .location()
                .map(|place| (place.file().to_owned(), place.line()));
            PLACE.set(place);
            before(info);
        }));
    });
    catch_unwind(AssertUnwindSafe(call)).expect_err("the call must panic");
    PLACE.take().expect("a panic has a place")
}

/// Goal: a mistake is reported at the call in the program, and not inside of the crate. Method: each call
/// that can panic by itself, with an id of another job system, too many items, a full table, data that does
/// not fit.
#[test]
fn a_panic_is_reported_in_the_program() {
    let small = || Builder::new().workers(0).max_jobs(1).build().unwrap();
    let (js, other) = (JobSystem::new(), small());
    let foreign = other.schedule(|_| ());
    let full = small();
    while full.job("one more").try_schedule(|_| ()).is_ok() {}
    let too_long = 0..usize::MAX;
    /// Calls each of these, and checks that the panic names this file.
    macro_rules! check {
        ($($call:expr;)*) => {$(
            let (file, found) = place_of(|| _ = $call);
            assert!(file.ends_with("contexts.rs"), "{}: {file}:{found}", stringify!($call));
        )*};
    }
    check! {
        js.wait(foreign);
        js.is_done(foreign);
        js.job("after").after(foreign).schedule(|_| ());
        js.job("after").after(foreign).run(|_| ());
        js.job("long").schedule_for(too_long.clone(), Grain::Auto, |_, _| ());
        js.parallel_for(too_long.clone(), Grain::Auto, |_, _| ());
        js.combine([foreign]);
        js.over((0..3, 0..4)).for_each(|_| ());
        js.over(too_long.clone()).for_each(|_| ());
        js.over(0..4).chunks(0);
        js.enter(|cx| cx.wait(foreign));
        js.enter(|cx| cx.is_done(foreign));
        js.enter(|cx| cx.combine([foreign]));
        full.schedule(|_| ());
        full.event("event");
        full.scope(|_| ());
        full.scope(|scope| scope.spawn(|_| ()));
    }
}
