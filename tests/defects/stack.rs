//! Waits nest as deep as the stack allows, and not deeper.
//!
//! Once a wait began the next job however little of its thread's stack was left, and the process ended at
//! the guard page.

use super::*;

use std::sync::Mutex;

use paceline::{Context, WaitError};

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
