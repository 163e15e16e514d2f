//! Waits nest as deep as the stack allows, and not deeper.
//!
//! Once a wait began the next job however little of its thread's stack was left, and the process ended at
//! the guard page.

use super::*;

use std::sync::Mutex;
use std::time::Duration;

use paceline::{Context, ThreadPin, WaitError};

use crate::process::{child, is_child};

const STACK: usize = 512 << 10;
/// Far more than fit such a stack: each level takes more than a kilobyte.
const LEVELS: usize = 4_000;

/// Jobs of which each waits for the next one. All but the first are ready when the event is completed.
fn nested(js: &Arc<JobSystem>, begun: &Count) -> (Vec<JobId>, paceline::Event) {
    let ids = Arc::new(Mutex::new(Vec::<JobId>::new()));
    let (start, gate) = (js.event("start"), js.event("gate"));
    for level in 0..LEVELS {
        let (theirs, begins, ids_too) = (Arc::clone(js), begun.clone(), ids.clone());
        let job = match level {
            0 => js.job("first level").after(start.id()),
            _ => js.job("level").after(gate.id()),
        };
        let job = job.schedule(move |_| {
            begins.up();
            let next = ids_too.lock().expect("no panics").get(level + 1).copied();
            if let Some(next) = next {
                // Main finds out the failures.
                _ = theirs.try_wait(next);
            }
        });
        ids.lock().expect("no panics").push(job);
    }
    start.complete();
    let ids = ids.lock().expect("no panics");
    (ids.clone(), gate)
}

/// Runs an ignored test in a process of its own, because the stack of a thread is used up there.
fn in_a_child(test: &str) {
    let said = child(test, &[]);
    assert!(said.is_success(), "{said}");
    assert_eq!(said.line("nested: ").as_deref(), Some("well"), "{said}");
}

/// Goal: a worker that waits with little stack left begins nothing more on it; a spare worker goes on.
/// Method: thousands of nested waits on workers with small stacks. All jobs run.
#[test]
fn nested_waits_on_workers() {
    in_a_child("defects::stack::workers_nest");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn workers_nest() {
    if !is_child() {
        return;
    }
    watched("nested waits on workers", || {
        let js = Builder::new().workers(1).stack_bytes(STACK).build();
        let js = Arc::new(js.expect("threads can be started"));
        let begun = Count::default();
        let (ids, gate) = nested(&js, &begun);
        js.flush();
        until(|| begun.get() == 1);
        gate.complete();
        let_run(&js, &ids);
        assert_eq!(begun.get(), LEVELS);
        for id in ids {
            js.try_wait(id).expect("it ended well");
        }
        println!("nested: well");
    });
}

/// Goal: without workers such a wait panics before the stack is used up, and says why; the job system goes
/// on. Method: as above, on a thread with a small stack. The panic is that of the deepest job that began;
/// the levels above it end, and the others can run afterwards.
#[test]
fn nested_waits_without_workers() {
    in_a_child("defects::stack::an_outside_thread_nests");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn an_outside_thread_nests() {
    if !is_child() {
        return;
    }
    watched("nested waits without workers", || {
        let js = Builder::new().workers(0).build();
        let js = Arc::new(js.expect("it needs no threads"));
        let begun = Count::default();
        let (ids, gate) = nested(&js, &begun);
        gate.complete();
        let (first, theirs) = (ids[0], Arc::clone(&js));
        let waits = thread::Builder::new().stack_size(STACK);
        let waits = waits.spawn(move || theirs.try_wait(first).is_ok());
        let waited = waits.expect("a thread with a small stack").join();
        assert!(matches!(waited, Ok(true)), "the first level ends well");
        let depth = begun.get();
        assert!((10..LEVELS).contains(&depth), "{depth} levels");
        match js.try_wait(ids[depth - 1]) {
            Err(WaitError::Panicked { message, .. }) => {
                assert!(message.contains("stack"), "{message}");
            }
            other => panic!("the deepest level: {other:?}"),
        }
        js.flush();
        println!("nested: well");
    });
}

/// Scopes in jobs of scopes. Counts the levels that began.
fn nested_scopes(cx: &Context<'_>, levels: usize, begun: &Count) {
    begun.up();
    if levels > 1 {
        cx.scope(|scope| scope.spawn(move |cx| nested_scopes(cx, levels - 1, begun)));
    }
}

/// Goal: when all workers wait with little stack left, and there is no further spare, the wait that begins
/// next panics, and those around it end: none of them would ever go on. Where workers are free the same waits
/// are left to them, also afterwards. Method: nested scopes, more than fit the stacks of two workers and a
/// spare, and then half as many as began, which fit those of two.
#[test]
fn nested_waits_with_all_workers() {
    in_a_child("defects::stack::all_workers_nest");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn all_workers_nest() {
    if !is_child() {
        return;
    }
    watched("nested waits with all workers", || {
        let (stuck, told) = (Count::default(), Count::default());
        let tell = stuck.clone();
        let builder = Builder::new().workers(2).max_spares(1).stack_bytes(STACK);
        let js = builder.on_stuck(move |_| _ = tell.up()).build();
        let js = js.expect("threads can be started");
        let nest = |levels| {
            let begun = Count::default();
            let begins = begun.clone();
            let job = js
                .job("nested")
                .run(move |cx| nested_scopes(cx, levels, &begins));
            js.flush();
            let_run(&js, &[job.id()]);
            (begun.get(), job.try_wait())
        };
        for _ in 0..2 {
            let (depth, ended) = nest(LEVELS);
            assert!((10..LEVELS).contains(&depth), "{depth} levels");
            match ended {
                Err(WaitError::Panicked { message, .. }) => {
                    assert!(message.contains("stack"), "{message}");
                }
                other => panic!("the outermost level: {other:?}"),
            }
            let (begun, ended) = nest(depth / 2);
            assert!(ended.is_ok(), "{ended:?}");
            assert_eq!(begun, depth / 2);
            told.up();
        }
        assert!(
            (1..=told.get()).contains(&stuck.get()),
            "{} reports",
            stuck.get()
        );
        println!("nested: well");
    });
}

/// Waits nested until less than this is left of a stack of [`STACK`] bytes, then a body that takes 100 KiB.
const BEFORE_LARGE: usize = 150 << 10;

/// Nests waits on the stack that began at `base`; calls `end` below a large frame.
fn nest_until_low(cx: &Context<'_>, base: usize, end: &Arc<dyn Fn(&Context<'_>) + Send + Sync>) {
    let here = 0_u8;
    if base - (&raw const here as usize) + BEFORE_LARGE > STACK {
        return in_large_frame(|| end(cx));
    }
    let end = Arc::clone(end);
    let next = cx
        .job("level")
        .schedule(move |cx| nest_until_low(cx, base, &end));
    cx.wait(next);
}

#[inline(never)]
fn in_large_frame(call: impl FnOnce()) {
    let large = [1_u8; 100 << 10];
    std::hint::black_box(&large);
    call();
    std::hint::black_box(&large);
}

/// Goal: a wait that begins in the second half of the reserve, which could not go on if all came to rest,
/// says so at once, and the waits of others end. Method: of two workers without spares one waits below a
/// large frame for a job that would end the other one's wait.
#[test]
fn waits_below_large_frames() {
    in_a_child("defects::stack::a_large_frame_waits");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn a_large_frame_waits() {
    if !is_child() {
        return;
    }
    watched("a wait below a large frame", || {
        let builder = Builder::new().workers(2).max_spares(0).stack_bytes(STACK);
        let js = builder.on_stuck(|_| ()).build();
        let js = js.expect("threads can be started");
        let gate = js.event("gate");
        let gate_id = gate.id();
        let (deep, said) = (Count::default(), Arc::new(Mutex::new(String::new())));
        let (is_deep, saying) = (deep.clone(), Arc::clone(&said));
        let gate = Mutex::new(Some(gate));
        let end = move |cx: &Context<'_>| {
            let gate = gate.lock().expect("no panics").take();
            let needed = cx
                .job("needed")
                .schedule(move |_| gate.into_iter().for_each(paceline::Event::complete));
            is_deep.up();
            let wait = std::panic::AssertUnwindSafe(|| cx.wait(needed));
            if let Err(payload) = std::panic::catch_unwind(wait) {
                let text = payload.downcast_ref::<String>().cloned();
                *saying.lock().expect("no panics") = text.unwrap_or_default();
            }
        };
        let end: Arc<dyn Fn(&Context<'_>) + Send + Sync> = Arc::new(end);
        // The other worker is kept from the levels.
        let (holds, may_wait) = (Count::default(), deep.clone());
        let holding = holds.clone();
        let other = js.job("other").schedule(move |cx| {
            holding.up();
            until(|| may_wait.get() == 1);
            cx.wait(gate_id);
        });
        js.flush();
        until(|| holds.get() == 1);
        let waits = js.job("deep").schedule(move |cx| {
            let base = 0_u8;
            nest_until_low(cx, &raw const base as usize, &end);
        });
        js.flush();
        let_run(&js, &[waits, other]);
        let said = said.lock().expect("no panics");
        assert!(said.contains("stack"), "{said}");
        println!("nested: well");
    });
}

/// Goal: a wait with a deadline ends with it, however little stack is left, where there is a worker to run
/// what it waits for. Method: the same large frame on the only worker, after all have been stuck once.
#[test]
fn timed_waits_below_large_frames() {
    in_a_child("defects::stack::a_timed_wait_ends");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn a_timed_wait_ends() {
    if !is_child() {
        return;
    }
    watched("a timed wait below a large frame", || {
        let stuck = Count::default();
        let tell = stuck.clone();
        let builder = Builder::new().workers(1).max_spares(0).stack_bytes(STACK);
        let js = builder.on_stuck(move |_| _ = tell.up()).build();
        let js = js.expect("threads can be started");
        let gate = js.event("gate");
        let gate_id = gate.id();
        let waits = js.job("waits").schedule(move |cx| cx.wait(gate_id));
        js.flush();
        let ready = js.job("ready").schedule(|_| ());
        js.flush();
        until(|| stuck.get() == 1);
        gate.complete();
        let_run(&js, &[waits, ready]);
        let never = js.event("never");
        let never_id = never.id();
        let ended = Arc::new(Mutex::new(None));
        let tell = Arc::clone(&ended);
        let end = move |cx: &Context<'_>| {
            let over = cx.wait_timeout(never_id, Duration::from_millis(1));
            *tell.lock().expect("no panics") = Some(over);
        };
        let end: Arc<dyn Fn(&Context<'_>) + Send + Sync> = Arc::new(end);
        let deep = js.job("deep").schedule(move |cx| {
            let base = 0_u8;
            nest_until_low(cx, &raw const base as usize, &end);
        });
        js.flush();
        let_run(&js, &[deep]);
        js.try_wait(deep).expect("it ended well");
        let ended = ended.lock().expect("no panics").take();
        assert!(matches!(ended, Some(Ok(false))), "{ended:?}");
        println!("nested: well");
    });
}

/// Jobs that are pinned to this thread, each of which waits for the next one. Counts the levels that began.
fn nested_pinned(js: &Arc<JobSystem>, pin: ThreadPin, levels: usize, begun: &Count) {
    begun.up();
    if levels > 1 {
        let (theirs, begins) = (Arc::clone(js), begun.clone());
        let next = js.job("level").pinned_to(pin);
        let next = next.schedule(move |_| nested_pinned(&theirs, pin, levels - 1, &begins));
        js.wait(next);
    }
}

/// Goal: jobs of one thread that wait for jobs of that thread run out of stack with a panic, although there
/// are workers: none of these can run them. Method: more levels than fit its stack.
#[test]
fn nested_waits_for_pinned_jobs() {
    in_a_child("defects::stack::a_pinned_thread_nests");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn a_pinned_thread_nests() {
    if !is_child() {
        return;
    }
    watched("nested waits for pinned jobs", || {
        let js = Arc::new(Builder::new().workers(1).build().expect("a thread"));
        let begun = Count::default();
        let (theirs, begins) = (Arc::clone(&js), begun.clone());
        let nests = thread::Builder::new().stack_size(STACK).spawn(move || {
            let here = theirs.pinned_thread();
            let pin = here.pin();
            let nest = || nested_pinned(&theirs, pin, LEVELS, &begins);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(nest)).is_err()
        });
        let has_panicked = nests.expect("a thread with a small stack").join();
        assert!(matches!(has_panicked, Ok(true)));
        assert!(
            (10..LEVELS).contains(&begun.get()),
            "{} levels",
            begun.get()
        );
        println!("nested: well");
    });
}

/// Graphs that are started and waited for in jobs of graphs. Counts the levels that began.
fn nested_graphs(js: &Arc<JobSystem>, levels: usize, begun: &Count) {
    begun.up();
    if levels > 1 {
        let (theirs, begins) = (Arc::clone(js), begun.clone());
        let mut graph = js.graph("level");
        let body = move |_: &Context<'_>| nested_graphs(&theirs, levels - 1, &begins);
        graph.job("level").run(body);
        js.start(graph.build(), Box::new(())).wait();
    }
}

/// Goal: a run of a graph is not started where there is no stack left to wait for it, and that is said.
/// Method: nested graphs, more than fit the stack, without workers and with one that has no spare.
#[test]
fn nested_runs_of_graphs() {
    in_a_child("defects::stack::graphs_nest");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn graphs_nest() {
    if !is_child() {
        return;
    }
    watched("nested runs of graphs", || {
        for workers in 0..2 {
            let builder = Builder::new()
                .workers(workers)
                .max_spares(0)
                .stack_bytes(STACK);
            let js = Arc::new(builder.on_stuck(|_| ()).build().expect("a thread"));
            let begun = Count::default();
            let (theirs, begins) = (Arc::clone(&js), begun.clone());
            let nests = thread::Builder::new().stack_size(STACK).spawn(move || {
                let first = Arc::clone(&theirs);
                let job = theirs.job("first");
                let job = job.schedule(move |_| nested_graphs(&first, LEVELS, &begins));
                theirs.try_wait(job)
            });
            let ended = nests.expect("a thread with a small stack").join();
            match ended.expect("the wait has a result") {
                Err(WaitError::Panicked { message, .. }) => {
                    assert!(message.contains("stack"), "{message}");
                }
                other => panic!("{workers} workers: {other:?}"),
            }
            assert!(
                (10..LEVELS).contains(&begun.get()),
                "{} levels",
                begun.get()
            );
        }
        println!("nested: well");
    });
}
