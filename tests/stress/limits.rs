//! Full tables, stale and foreign ids.

use super::*;

/// An id of long ago: its slot has had a thousand jobs since.
#[test]
fn stale_ids_are_over() {
    with_all("stale ids", |js| {
        let js = &Builder::new()
            .workers(js.workers())
            .max_jobs(4096)
            .build()
            .unwrap();
        let old = js.schedule(|_| ());
        js.wait(old);
        let typed = js.job("typed").run(|_| ());
        let old_typed = typed.id();
        typed.wait();
        let old_scope = js.event("old");
        let old_event = old_scope.id();
        old_scope.complete();
        for _ in 0..1000 {
            js.wait(js.schedule(|_| ()));
            js.job("typed").run(|_| ()).wait();
        }
        // Alive, perhaps in the very slots.
        let gate = js.event("gate");
        let held: Vec<_> = (0..500)
            .map(|_| js.job("held").after(gate.id()).schedule(|_| ()))
            .collect();
        for id in [old, old_typed, old_event] {
            assert!(js.is_done(id));
            js.try_wait(id).unwrap();
            assert!(js.wait_timeout(id, Duration::ZERO).unwrap());
            assert_eq!(js.job("heir").after(id).run(|_| 1).wait(), 1);
            assert!(matches!(
                js.add_dependency(id, held[0]),
                Err(GraphError::TooLate { .. })
            ));
            js.add_dependency(held[0], id).unwrap();
        }
        assert!(held.iter().all(|&id| !js.is_done(id)));
        gate.complete();
        js.wait(js.combine(&held));
    });
}

/// The smallest table: every job has the slot of the last.
#[test]
fn one_slot_is_enough_for_jobs_one_after_the_other() {
    for workers in [0, 1, 2, 8] {
        watched(&format!("one slot, {workers} workers"), || {
            let js = Builder::new().workers(workers).max_jobs(1).build().unwrap();
            let first = js.schedule(|_| ());
            js.wait(first);
            for round in 0..1000 {
                // That a job is over is seen before its slot is free.
                let id = retry(|| js.job("next").try_schedule(|_| ()));
                js.try_wait(id).unwrap();
                assert!(js.is_done(first), "round {round}");
                js.try_wait(first).unwrap();
            }
        });
    }
}

/// Schedules when there is room.
fn retry<T>(mut schedule: impl FnMut() -> Result<T, ScheduleError>) -> T {
    loop {
        match schedule() {
            Ok(value) => return value,
            Err(ScheduleError::Full { .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A table holds as many jobs as it is told to, and a few more (threads keep free slots at hand).
#[test]
fn a_full_table_is_an_error_and_passes() {
    const MAX: u32 = 64;
    for workers in WORKERS {
        watched(&format!("full, {workers} workers"), || {
            let js = Builder::new()
                .workers(workers)
                .max_jobs(MAX)
                .build()
                .unwrap();
            let ledger = &Arc::new(Ledger::default());
            for _ in 0..20 {
                let gate = js.event("gate");
                let mut held = Vec::new();
                let full = loop {
                    let token = ledger.token();
                    match js
                        .job("held")
                        .after(gate.id())
                        .try_schedule(move |_| drop(token))
                    {
                        Ok(id) => held.push(id),
                        Err(error) => break error,
                    }
                    assert!(held.len() < 1 << 16, "it never fills");
                };
                assert_eq!(full, ScheduleError::Full { max_jobs: MAX });
                // With the event.
                assert!(
                    held.len() + 1 >= MAX as usize,
                    "full with {} jobs",
                    held.len()
                );
                assert!(js.job("typed").try_run(|_| ()).is_err());
                assert!(js.job("event").try_event().is_err());
                assert!(js.job("combine").try_combine().is_err());
                assert!(
                    js.job("loop")
                        .try_schedule_for(0..10, Grain::Auto, |_, _| ())
                        .is_err()
                );
                gate.complete();
                for &id in &held {
                    js.wait(id);
                }
            }
            let id = retry(|| js.job("again").try_schedule(|_| ()));
            js.wait(id);
            drop(js);
            ledger.check_each_dropped_once(20);
        });
    }
}

/// All slots can be used, wherever they were freed.
#[test]
fn slots_come_back_from_everywhere() {
    const MAX: usize = 1024;
    for workers in [0, 1, 2, 8] {
        watched(&format!("slots, {workers} workers"), || {
            let js = Builder::new()
                .workers(workers)
                .max_jobs(MAX as u32)
                .build()
                .unwrap();
            for _ in 0..20 {
                let gate = js.event("gate");
                let held: Vec<_> = (1..MAX / 2)
                    .map(|_| retry(|| js.job("held").after(gate.id()).try_schedule(|_| ())))
                    .collect();
                gate.complete();
                for &id in &held {
                    js.wait(id);
                }
            }
        });
    }
}

#[test]
fn foreign_ids_are_refused_everywhere() {
    with_all("foreign", |js| {
        let other = system(1);
        let foreign = other.schedule(|_| ());
        let own = js.event("own");
        assert!(matches!(js.try_wait(foreign), Err(WaitError::Foreign { id }) if id == foreign));
        assert!(matches!(
            js.wait_timeout(foreign, MOMENT),
            Err(WaitError::Foreign { .. })
        ));
        let refused = Err(ScheduleError::Foreign { id: foreign });
        assert_eq!(js.job("job").after(foreign).try_schedule(|_| ()), refused);
        assert_eq!(
            js.job("job").after_all([own.id(), foreign]).try_combine(),
            refused
        );
        assert_eq!(
            js.job("job")
                .after(foreign)
                .try_schedule_for(0..9, Grain::Auto, |_, _| ()),
            refused
        );
        let ledger = Arc::new(Ledger::default());
        let token = ledger.token();
        let typed = js.job("job").after(foreign).try_run(move |_| token);
        assert!(matches!(typed, Err(ScheduleError::Foreign { .. })));
        ledger.check_each_dropped_once(1);
        assert!(matches!(
            js.job("job").after(foreign).try_event(),
            Err(ScheduleError::Foreign { .. })
        ));
        let refused = Err(GraphError::Foreign { id: foreign });
        assert_eq!(js.add_dependency(own.id(), foreign), refused);
        assert_eq!(js.add_dependency(foreign, own.id()), refused);
        assert!(panic_of(|| js.wait(foreign)).contains("another job system"));
        assert!(panic_of(|| _ = js.is_done(foreign)).contains("another job system"));
        assert!(panic_of(|| _ = js.combine([foreign])).contains("another job system"));
        other.wait(foreign);
        own.complete();
    });
}
