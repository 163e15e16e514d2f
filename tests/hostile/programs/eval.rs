//! Evaluates programs on a job system: one function for each kind of node. The other nodes, beside waits and
//! limits of the public API, are in `borrow.rs` (those that borrow), `graphs.rs` (jobs, events, handles) and
//! `bombs.rs` (those that panic where no body runs), `values.rs` (values that go from job to job).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use event::mix;
use paceline::{Builder, Context};
use platform::Os;

use super::node::{Kind, Node};
use super::world::{World, fail, spin};
use super::{bombs, borrow, graphs, values};
use crate::watchdog;

/// The context of a body, if the node runs in one that hands it on.
pub(super) type Given<'a, 'b> = Option<&'a Context<'b, Os>>;

/// The value of a node; it panics if the node fails.
pub(super) fn eval(world: &Arc<World>, cx: Given<'_, '_>, node: &Arc<Node>) -> u64 {
    watchdog::progress();
    spin(node.seed % 50);
    let sum = match node.kind {
        Kind::Leaf => return mix(node.seed) ^ planted(world, node),
        Kind::Panic if node.panics() => fail(),
        Kind::Panic => return mix(node.seed),
        Kind::Join => borrow::join(world, cx, node),
        Kind::Halves => borrow::halves(world, node),
        Kind::Scope => borrow::scope(world, cx, node),
        Kind::NestedScope => borrow::nested_scope(world, node),
        Kind::NamedScope => borrow::named_scope(world, cx, node),
        Kind::Loop => borrow::parallel_for(world, cx, node),
        Kind::Unwind => borrow::unwind(world, cx, node),
        Kind::Range => graphs::range(world, node),
        Kind::Typed => graphs::typed(world, node),
        Kind::Combine => graphs::combine(world, node),
        Kind::Chain => graphs::chain(world, node),
        Kind::Future => graphs::future(world, node),
        Kind::Background => graphs::background(world, node),
        Kind::Known => graphs::known(world, cx, node),
        Kind::Frame => graphs::frame(world, node),
        Kind::Handle => graphs::handle(world, node),
        Kind::Abandon => return graphs::abandon(world, node),
        Kind::Given => values::given(world, node),
        Kind::Inputs => values::inputs(world, node),
        Kind::Latched => values::latched(world, node),
        Kind::Spawned => values::spawned(world, node),
        Kind::Thread => in_a_thread(world, node),
        Kind::Catch => caught(world, cx, node),
        Kind::Enter => world
            .js
            .enter(|cx| eval(world, Some(cx), &node.children[0])),
        Kind::System => in_a_system_of_its_own(world, node),
        Kind::CaptureBomb => return bombs::capture(world, node),
        Kind::ResultBomb => bombs::result(world, node),
        Kind::RangeBomb => bombs::range(world, node),
        Kind::PayloadBomb => return bombs::payload(world, node),
        Kind::WakerBomb => bombs::waker(world, node),
    };
    node.fold(sum)
}

/// A job's body that evaluates a child. Half of them hand their context on, half do not.
pub(super) fn body(
    world: &Arc<World>,
    node: &Arc<Node>,
) -> impl FnOnce(&Context<'_, Os>) -> u64 + Send + use<> {
    let (world, node) = (Arc::clone(world), Arc::clone(node));
    move |cx| eval(&world, (node.seed % 2 == 0).then_some(cx), &node)
}

/// A defect for tests: some leaves are one bit wrong.
fn planted(world: &World, node: &Node) -> u64 {
    u64::from(world.is_planted && node.seed.is_multiple_of(16))
}

fn in_a_thread(world: &Arc<World>, node: &Node) -> u64 {
    thread::scope(|threads| {
        let thread = threads.spawn(|| eval(world, None, &node.children[0]));
        thread
            .join()
            .unwrap_or_else(|payload| resume_unwind(payload))
    })
}

fn caught(world: &Arc<World>, cx: Given<'_, '_>, node: &Node) -> u64 {
    let child = || eval(world, cx, &node.children[0]);
    catch_unwind(AssertUnwindSafe(child)).unwrap_or(Node::failure())
}

/// The child runs on a job system that comes and goes, while a job of the other one waits for it.
fn in_a_system_of_its_own(world: &Arc<World>, node: &Arc<Node>) -> u64 {
    let inner = Builder::new().workers(1);
    let inner = match inner.build() {
        Ok(inner) => inner,
        Err(error) => {
            world.wrong(format!("a job system inside a job: {error}"));
            fail()
        }
    };
    let job = inner.job("inner").run(body(world, &node.children[0]));
    if node.choice(1, 2) == 0 {
        _ = inner.wait_timeout(job.id(), Duration::from_micros(node.choice(2, 50)));
    }
    if node.choice(3, 2) == 0 {
        // The handle outlives the job system, which runs what can run.
        drop(inner);
    }
    world.settle(job.try_wait())
}
