//! Nodes whose values panic where no body of a job runs: in drops of captures, results, closures and
//! payloads, and in wakers. The job ends as it would have, the jobs after it run, and the panic is only
//! counted.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use paceline::Grain;

use super::eval::{body, eval};
use super::graphs::check_cancelled;
use super::node::Node;
use super::world::{Bomb, World, fail, spin};

/// A job that is cancelled, with a bomb among its captures.
pub(super) fn capture(world: &Arc<World>, node: &Node) -> u64 {
    let js = &world.js;
    let event = js.event("abandoned");
    let (bomb, theirs) = (world.bomb(), Arc::clone(world));
    let held = js.job("held").after(event.id()).schedule(move |_| {
        bomb.defuse();
        theirs.wrong("a cancelled job was run");
    });
    let next = js.job("next").after(held).schedule(|_| ());
    drop(event);
    check_cancelled(world, js.try_wait(next));
    check_cancelled(world, js.try_wait(held));
    node.caught()
}

/// A result with a bomb in it that no handle takes.
pub(super) fn result(world: &Arc<World>, node: &Node) -> u64 {
    let js = &world.js;
    let gate = js.event("gate");
    let value = Arc::new(AtomicU64::new(0));
    let (child, bomb, theirs) = (
        body(world, &node.children[0]),
        world.bomb(),
        Arc::clone(&value),
    );
    let job = js.job("unwanted").after(gate.id()).run(move |cx| {
        let armed = Armed(Some(bomb));
        theirs.store(child(cx), Ordering::Relaxed);
        armed.disarm()
    });
    let id = job.id();
    let next = js.job("next").after(id).schedule(|_| ());
    drop(job);
    gate.complete();
    world.settle(js.try_wait(next));
    world.settle(js.try_wait(id));
    value.load(Ordering::Relaxed)
}

/// Keeps a bomb from going off while a body unwinds in the ordinary way.
struct Armed(Option<Bomb>);

impl Armed {
    fn disarm(mut self) -> Bomb {
        self.0.take().expect("taken once")
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        if let Some(bomb) = self.0.take() {
            bomb.defuse();
        }
    }
}

/// A range whose closure holds a bomb.
pub(super) fn range(world: &Arc<World>, node: &Arc<Node>) -> u64 {
    let total = Arc::new(AtomicU64::new(0));
    let (bomb, sum, theirs, program) = (
        world.bomb(),
        Arc::clone(&total),
        Arc::clone(world),
        Arc::clone(node),
    );
    let items = 0..node.children.len();
    let range = world
        .js
        .job("range")
        .schedule_for(items, Grain::Items(1), move |part, cx| {
            let _held = &bomb;
            for at in part {
                let value = eval(&theirs, Some(cx), &program.children[at]);
                sum.fetch_add(value, Ordering::Relaxed);
            }
        });
    let next = world.js.job("next").after(range).schedule(|_| ());
    world.settle(world.js.try_wait(next));
    world.settle(world.js.try_wait(range));
    total.load(Ordering::Relaxed)
}

/// Two jobs of a scope panic, and their payloads are bombs: the first one is raised by the scope, the other
/// one is dropped by the job system. A third job borrows meanwhile.
pub(super) fn payload(world: &Arc<World>, node: &Node) -> u64 {
    let is_through = AtomicBool::new(false);
    let raised = catch_unwind(AssertUnwindSafe(|| {
        world.js.scope(|scope| {
            scope.spawn(|_| {
                spin(node.choice(1, 2_000));
                is_through.store(true, Ordering::SeqCst);
            });
            for _ in 0..2 {
                scope.spawn(|_| resume_unwind(Box::new(world.bomb())));
            }
        });
    }));
    match raised.map_err(|payload| payload.downcast::<Bomb>()) {
        Err(Ok(bomb)) => bomb.defuse(),
        Err(Err(other)) => {
            std::mem::forget(other);
            world.wrong("a scope raised what none of its jobs panicked with");
        }
        Ok(()) => world.wrong("a scope did not raise the panic of its jobs"),
    }
    if !is_through.load(Ordering::SeqCst) {
        world.wrong("a scope was left while one of its jobs borrowed from it");
        // It writes to this frame, which has to be there until then.
        while !is_through.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_micros(100));
        }
    }
    node.caught()
}

struct PanickingWaker(Arc<AtomicU64>);

impl Wake for PanickingWaker {
    fn wake(self: Arc<PanickingWaker>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        fail();
    }
}

/// A job that is polled once, with a waker that panics, and then waited for.
pub(super) fn waker(world: &Arc<World>, node: &Node) -> u64 {
    let gate = world.js.event("gate");
    let job = world.js.job("polled").after(gate.id());
    let mut job = job.run(body(world, &node.children[0]));
    let id = job.id();
    let waker = Waker::from(Arc::new(PanickingWaker(Arc::clone(&world.wakers))));
    let mut task = std::task::Context::from_waker(&waker);
    if Pin::new(&mut job).poll(&mut task).is_ready() {
        world.wrong("a job that an event holds back was ready");
        fail();
    }
    gate.complete();
    let next = world.js.job("next").after(id).schedule(|_| ());
    world.settle(world.js.try_wait(next));
    world.settle(job.try_wait())
}
