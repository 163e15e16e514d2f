//! The programs of the cells.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context as Task, Poll};

use paceline::{Event, Grain, Job, JobId, JobSystem, NewJob, WaitError};
use platform::Platform;

use super::super::{Count, Flag};
use super::world::{World, build, rest_until};
use super::{Act, Cell, Kind, Place, wakers};
use crate::support::fail;

/// Runs a cell once.
pub(super) fn run<P: Platform>(cell: Cell, workers: usize, platform: P) {
    let world = World::new(cell, platform);
    let js = build(&world, workers);
    let never = js.event("never");
    let token = world.token();
    let held = js.job("held").after(never.id()).run(|_| drop(token));
    if matches!(cell.place, Place::Wait | Place::Call) && !cell.kind.is_of_threads() {
        keep_busy(&world, &js);
    }
    for _ in 0..4 {
        js.job("bystander").schedule(world.bystander());
    }
    let spare = js.job("spare").run(world.bystander());
    *world.spare.lock().expect("no panics") = Some(spare);
    let gate = js.event("gate");
    let held_back = wakers::is_of_futures(cell.kind)
        .then(|| js.job("target").after(gate.id()).run(world.successor()));
    let target = match &held_back {
        Some(target) => target.id(),
        None => target(&world, &js, gate.id(), never.id()),
    };
    let last =
        (cell.kind != Kind::PanicHook).then(|| js.job("last").after(target).run(world.successor()));
    let program = Program {
        world: world.clone(),
        js: Some(js),
        target,
        gate: Some(gate),
        last,
    };
    let kept = program.run(held_back);
    check(&world, held, never, kept);
}

/// A job that keeps the only worker busy.
fn keep_busy<P: Platform>(world: &Arc<World<P>>, js: &JobSystem<P>) {
    let (busy, theirs) = (Flag::default(), world.clone());
    let begins = busy.clone();
    js.job("busy").schedule(move |_| {
        begins.raise();
        rest_until(&theirs.platform, || theirs.released.is_up());
    });
    js.flush();
    rest_until(&world.platform, || busy.is_up());
}

/// The job behind the gate that leads to the code of a cell.
fn target<P: Platform>(
    world: &Arc<World<P>>,
    js: &JobSystem<P>,
    gate: JobId,
    never: JobId,
) -> JobId {
    let (own, token, luggage) = (world.clone(), world.token(), world.luggage());
    let job = js.job("target").after(gate);
    match world.cell.kind {
        Kind::Body => job.schedule(move |cx| {
            let _token = &token;
            own.act(Some(cx));
        }),
        Kind::ResultDrop => job.run(move |_| luggage).id(),
        Kind::CaptureDrop => job.schedule(move |_| _ = &luggage),
        Kind::CancelledDrop => {
            let before = if world.cell.keeps_gate() {
                never
            } else {
                job.schedule(|_| fail("the one before"))
            };
            js.job("cancelled")
                .after(before)
                .schedule(move |_| _ = &luggage)
        }
        Kind::RangeDrop => job.schedule_for(0..4, Grain::Items(1), move |_, _| _ = &luggage),
        Kind::RangeBody => job.schedule_for(0..4, Grain::Items(1), move |part, cx| {
            let _token = &token;
            if part.contains(&2) {
                own.act(Some(cx));
            }
        }),
        Kind::PayloadDrop if world.cell.place == Place::End => {
            job.schedule(move |_| resume_unwind(Box::new(luggage)))
        }
        Kind::PayloadDrop => job.schedule(move |cx| {
            let more = [own.luggage(), own.luggage(), luggage];
            let thrown = || {
                cx.scope(|scope| {
                    for luggage in more {
                        scope.spawn(move |_| resume_unwind(Box::new(luggage)));
                    }
                });
            };
            // All but the first have been dropped by then.
            drop(catch_unwind(AssertUnwindSafe(thrown)));
        }),
        Kind::ScopeJob => job.schedule(move |cx| {
            let _token = &token;
            cx.scope(|scope| {
                scope.spawn(|cx| own.act(Some(cx)));
                scope.spawn(|_| ());
            });
        }),
        Kind::JoinHalf => job.schedule(move |cx| {
            let _token = &token;
            cx.join(|_| (), |cx| own.act(Some(cx)));
        }),
        Kind::FuturePoll | Kind::FutureDrop | Kind::PendingDrop => future(world, js, job),
        Kind::PanicHook => job.schedule(|_| fail("nothing waits for this")),
        _ => job.schedule(|_| ()),
    }
}

/// The same for the code of futures.
fn future<P: Platform>(
    world: &Arc<World<P>>,
    js: &JobSystem<P>,
    job: NewJob<'_, 'static, P>,
) -> JobId {
    let (own, token, luggage) = (world.clone(), world.token(), world.luggage());
    match world.cell.kind {
        Kind::FuturePoll => {
            let mut has_waited = false;
            let poll = move |task: &mut Task<'_>| {
                let _token = &token;
                if !std::mem::replace(&mut has_waited, true) {
                    task.waker().wake_by_ref();
                    return Poll::Pending;
                }
                own.act(None);
                Poll::Ready(())
            };
            job.run_future(poll_fn(poll)).id()
        }
        Kind::FutureDrop => {
            let ready = move |_: &mut Task<'_>| {
                _ = &luggage;
                Poll::Ready(())
            };
            job.run_future(poll_fn(ready)).id()
        }
        _ => {
            let pending = poll_fn(move |_: &mut Task<'_>| -> Poll<()> {
                _ = &luggage;
                Poll::Pending
            });
            if world.cell.keeps_gate() {
                // It is polled before the end, and not woken.
                return js.job("pending").run_future(pending).id();
            }
            let before = job.schedule(|_| fail("the one before"));
            let cancelled = js.job("cancelled").after(before);
            cancelled.run_future(pending).id()
        }
    }
}

struct Program<P: Platform> {
    world: Arc<World<P>>,
    /// None from the moment on at which the code of the cell has the last owner.
    js: Option<Arc<JobSystem<P>>>,
    target: JobId,
    gate: Option<Event>,
    /// Comes after the target.
    last: Option<Job<()>>,
}

impl<P: Platform> Program<P> {
    /// From the first moment at which the code may act until the job system has gone. Returns the values that
    /// are kept beyond that.
    fn run(mut self, mut future: Option<Job<()>>) -> Option<Event> {
        let (world, cell) = (self.world.clone(), self.world.cell);
        if cell.act == Act::Ends {
            *world.owner.lock().expect("no panics") = self.js.clone();
        }
        if let (Some(future), true) = (&mut future, wakers::is_polled_before(cell.kind)) {
            assert!(wakers::poll(&world, future).is_ok_and(|pending| pending));
        }
        let arms_late = cell.kind == Kind::Sink && cell.place != Place::Worker;
        if !arms_late {
            world.armed.raise();
        }
        self.provoke();
        let is_used = future.is_some() && cell.kind != Kind::WakerWake;
        if is_used && cell.place == Place::Worker {
            wakers::use_on_a_worker(&world, self.js(), &mut future);
            rest_until(&world.platform, || world.has_acted());
        }
        if cell.act == Act::Ends {
            // Before the end, which drops the jobs behind the gate: it may come on another thread.
            self.open_gate();
            self.js = None;
            world.is_last.raise();
        }
        if let (Some(future), true) = (&mut future, is_used) {
            wakers::use_here(&world, future);
        }
        self.open_gate();
        if arms_late {
            world.armed.raise();
        }
        self.drive();
        world.released.raise();
        self.end();
        drop(future);
        self.gate
    }

    /// Completes the gate, unless the cell keeps it.
    fn open_gate(&mut self) {
        if !self.world.cell.keeps_gate() {
            self.gate.take().into_iter().for_each(Event::complete);
        }
    }

    /// The path to code that is no part of a job.
    fn provoke(&self) {
        let Cell { kind, place, .. } = self.world.cell;
        let js = self.js.as_ref().expect("nothing has ended");
        let acted = || self.world.has_acted();
        match (kind, place) {
            (Kind::StopHook, Place::Worker) => {
                let workers = js.workers();
                js.resize(0).expect("fewer is always possible");
                rest_until(&self.world.platform, acted);
                if self.world.cell.act != Act::Ends {
                    js.resize(workers).expect("as many as before");
                }
            }
            (Kind::NameHook, Place::Call | Place::NoWorkers) => {
                js.resize(js.workers() + 1).expect("one more is possible");
            }
            (Kind::NameHook, Place::Worker) => {
                self.need_a_spare(js);
                js.flush();
                rest_until(&self.world.platform, acted);
            }
            _ => {}
        }
    }

    /// Jobs that keep all workers in waits until a spare has run something. It is made when each worker is in
    /// the middle of one of these jobs, so that no worker can run it.
    fn need_a_spare(&self, js: &JobSystem<P>) {
        let event = js.event("event");
        let (id, workers) = (event.id(), js.workers());
        let (event, begun) = (Arc::new(Mutex::new(Some(event))), Count::default());
        for _ in 0..workers {
            let (event, begun) = (event.clone(), begun.clone());
            js.job("needs a spare").schedule(move |cx| {
                let after = cx.job("after").after(id).run(|_| ());
                if begun.up() + 1 == workers {
                    cx.job("completes").schedule(move |_| {
                        let event = event.lock().unwrap().take();
                        event.expect("this runs once").complete();
                    });
                }
                after.try_wait().expect("it is completed");
            });
        }
    }

    /// Has the code called in its place.
    fn drive(&mut self) {
        let world = self.world.clone();
        let last = self.last.take();
        match world.cell.place {
            Place::End => {
                self.end();
                // Run or dropped; never a hang.
                _ = last.map(Job::try_wait);
            }
            Place::Wait | Place::NoWorkers if last.is_some() => {
                _ = last.map(Job::try_wait);
            }
            Place::NoWorkers => self.js().flush(),
            Place::Call if self.js.is_some() => {
                let js = self.js().clone();
                let over = || match &last {
                    Some(last) => last.is_done(),
                    None => js.is_done(self.target),
                };
                while !over() {
                    if !js.poll() {
                        let now = world.platform.now();
                        platform::Parker::park(&world.platform.parker(), now + event::Nanos(1_000));
                    }
                }
            }
            _ => {
                rest_until(&world.platform, || match (&last, &self.js) {
                    (Some(last), _) => last.is_done(),
                    (None, Some(js)) => js.is_done(self.target) && world.has_acted(),
                    (None, None) => world.has_acted(),
                });
            }
        }
    }

    fn js(&self) -> &Arc<JobSystem<P>> {
        self.js.as_ref().expect("the program still owns it")
    }

    /// The workers work, and the job system ends.
    fn end(&mut self) {
        let world = &self.world;
        if let Some(js) = self.js.take() {
            if world.cell.place != Place::End {
                all_work(&js);
                rest_until(&world.platform, || Arc::strong_count(&js) == 1);
            }
            let ended = catch_unwind(AssertUnwindSafe(|| drop(js)));
            assert!(ended.is_ok(), "the end of the job system panicked");
        }
    }
}

/// One job per worker: all must run at the same time, and nothing else helps.
fn all_work<P: Platform>(js: &JobSystem<P>) {
    let (workers, met) = (js.workers(), Count::default());
    for _ in 0..workers.max(1) {
        let met = met.clone();
        js.job("meets the others").schedule(move |cx| {
            met.up();
            rest_until(cx.platform(), || met.get() >= workers);
        });
    }
    js.flush();
    rest_until(js.platform(), || met.get() >= workers.max(1));
}

/// The oracle, when all is over.
fn check<P: Platform>(world: &Arc<World<P>>, held: Job<()>, never: Event, kept: Option<Event>) {
    rest_until(&world.platform, || world.working.get() == 0);
    let verdict = held.try_wait();
    assert!(
        matches!(verdict, Err(WaitError::ShutDown)),
        "what can never run: {verdict:?}"
    );
    let spare = world.spare.lock().expect("no panics").take();
    let dropped = catch_unwind(AssertUnwindSafe(|| drop((spare, never, kept))));
    assert!(dropped.is_ok(), "the last handle panicked");
    rest_until(&world.platform, || world.ledger.kept() == 0);
    world.ledger.check_each_dropped_once(6);
    let wrong = world.wrong.lock().expect("no panics");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(world.has_acted(), "the code was never called");
    let (ran, to_run) = (world.ran.get(), world.to_run.get());
    assert_eq!(ran, to_run, "{}: jobs that ran", world.cell);
}
