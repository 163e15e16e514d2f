//! Ids that are made of bytes and bits, also of random ones.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use paceline::{Grain, GraphError, JobId, WaitError};

use super::*;
use crate::support::{Random, fail};

/// Goal: an id survives the way through bytes and through 64 bits, in every state of its job.
#[test]
fn ids_survive() {
    each_system("ids survive", |js| {
        let gate = js.event("gate");
        let held = js.job("held").after(&gate).run(|_| 7);
        let over = js.schedule(|_| ());
        js.wait(over);
        let latch = js.latch("latch", 1);
        for id in [gate.id(), held.id(), over, latch.id()] {
            assert_eq!(JobId::from_bytes(id.to_bytes()), Some(id));
            let bits = js.id_to_bits(id);
            assert_ne!(bits, 0);
            assert_eq!(js.id_from_bits(bits), Some(id));
            js.enter(|cx| assert_eq!(cx.id_from_bits(cx.id_to_bits(id)), Some(id)));
        }
        let back = JobId::from_bytes(held.id().to_bytes()).expect("an id");
        gate.complete();
        js.wait(back);
        assert_eq!(held.wait(), 7);
        latch.complete_one();
    });
}

/// An id of random bytes: of nothing, of the near future, or of a job that there is.
fn forged(js: &JobSystem, random: &mut Random) -> Option<JobId> {
    let real = js.schedule(|_| ()).to_bytes();
    let mut bytes = real;
    match random.below(4) {
        0 => bytes.fill_with_random(random),
        1 => bytes[4..].fill_with_random(random),
        // A slot that may be there, and a generation near the present one.
        2 => {
            bytes[4..7].copy_from_slice(&[random.next() as u8, 0, 0]);
            bytes[8] = bytes[8].wrapping_add(random.below(5) as u8);
            bytes[9] = random.below(2) as u8;
        }
        _ => {
            let bits = match random.below(3) {
                0 => random.next(),
                1 => random.next() & 0xffff_0000_ffff,
                _ => js.id_to_bits(JobId::from_bytes(real)?) ^ 1 << random.below(64),
            };
            return js.id_from_bits(bits);
        }
    }
    JobId::from_bytes(bytes)
}

trait FillWithRandom {
    fn fill_with_random(&mut self, random: &mut Random);
}

impl FillWithRandom for [u8] {
    fn fill_with_random(&mut self, random: &mut Random) {
        self.fill_with(|| random.next() as u8);
    }
}

/// The call may refuse the id, or say that its job failed.
#[track_caller]
fn allow<T>(outcome: Result<T, WaitError>) {
    if let Err(error) = outcome {
        assert!(
            matches!(
                error,
                WaitError::Foreign { .. }
                    | WaitError::Cancelled { .. }
                    | WaitError::Panicked { .. }
            ),
            "{error}"
        );
    }
}

/// Goal: no bit pattern does harm: every public call that takes an id refuses it, or takes it for that of
/// some job, or for one that is over. Method: ids of random bytes and bits for all of these calls, while jobs
/// of all kinds run, also those that have no ids. The jobs that were made with such ids run in the end.
#[test]
fn forged_ids_do_no_harm() {
    each_system("forged ids", |js| {
        let mut random = Random::new(js.workers() as u64);
        let mut made = Vec::new();
        for round in 0..if cfg!(miri) { 30 } else { 4_000 } {
            if round % 16 == 0 {
                run_a_little_of_everything(js);
                js.pump(Duration::from_secs(1));
            }
            let Some(id) = forged(js, &mut random) else {
                continue;
            };
            match random.below(2) {
                0 => made.extend(depend_on(js, id, &mut random)),
                _ => ask_for(js, id, &mut random),
            }
            if made.len() > 100 {
                made.drain(..).for_each(|id| allow(js.try_wait(id)));
            }
        }
        for id in made {
            allow(js.try_wait(id));
        }
        js.wait(js.schedule(|_| ()));
    });
}

/// Makes something that comes after the id, or has it come after something.
fn depend_on(js: &JobSystem, id: JobId, random: &mut Random) -> Option<JobId> {
    let job = js.job("after").after(id);
    match random.below(7) {
        0 => job.try_schedule(|_| ()).ok(),
        1 => job.after_all([id, id]).try_combine().ok(),
        2 => job.try_run(|_| 1).ok().map(|job| job.id()),
        3 => job.try_schedule_for(0..4, Grain::Auto, |_, _| ()).ok(),
        4 => {
            if let Ok((event, _handle)) = job.try_event_with::<u8>() {
                event.complete_with(1);
            }
            let latch = js.job("latch").after(id).try_latch(1).ok()?;
            latch.complete_one();
            Some(latch.id())
        }
        5 => {
            let gate = js.event("gate");
            let gated = js.job("gated").after(&gate).schedule(|_| ());
            let added = js.add_dependency(gated, id);
            let is_refused = matches!(
                added,
                Err(GraphError::Foreign { .. } | GraphError::Cycle { .. })
            );
            assert!(added.is_ok() || is_refused, "{added:?}");
            gate.complete();
            Some(gated)
        }
        _ => {
            let before = js.schedule(|_| ());
            let added = js.add_dependency(id, before);
            let has_room = !matches!(added, Err(GraphError::TooManyEdges));
            assert!(has_room, "{added:?}");
            None
        }
    }
}

/// Waits for the id, or asks for what is known of it.
fn ask_for(js: &JobSystem, id: JobId, random: &mut Random) {
    let is_own = js.job("probe").after(id).try_combine().is_ok();
    match random.below(5) {
        0 => allow(js.try_wait(id)),
        1 => allow(js.wait_timeout(id, Duration::from_micros(1))),
        2 if is_own => _ = js.is_done(id),
        3 if is_own => assert_ne!(js.id_to_bits(id), 0),
        _ => js.enter(|cx| {
            allow(cx.try_wait(id));
            let mut end = cx.when_done(id);
            let mut task = Task::from_waker(Waker::noop());
            if let Poll::Ready(end) = Pin::new(&mut end).poll(&mut task) {
                allow(end);
            }
        }),
    }
}

/// Jobs with and without names, that go on running.
fn run_a_little_of_everything(js: &JobSystem) {
    js.schedule(|cx| {
        cx.scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|cx| _ = cx.join(|_| (), |_| ()));
            }
            scope.job("named").schedule(|_| ());
        });
        cx.parallel_for(0..200, Grain::Items(1), |_, _| ());
    });
    js.job("loop")
        .schedule_for(0..200, Grain::Items(1), |_, _| ());
    let held = js.job("fails").run(|_| fail("on purpose"));
    js.job("cancelled")
        .after(&held)
        .schedule(|_: &paceline::Context<'_>| ());
    js.flush();
}
