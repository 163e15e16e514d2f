//! Nodes that borrow from their caller's stack: joins, scopes, loops.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline::{Context, Grain, JobId, Scope};
use platform::Os;

use super::eval::{Given, eval};
use super::node::Node;
use super::world::World;

pub(super) fn join(world: &Arc<World>, cx: Given<'_, '_>, node: &Node) -> u64 {
    let [left, right] = &node.children[..] else {
        unreachable!("a join has two halves")
    };
    let (a, b) = match cx {
        Some(cx) => cx.join(
            |cx| eval(world, Some(cx), left),
            |cx| eval(world, Some(cx), right),
        ),
        None => world.js.join(
            |cx| eval(world, Some(cx), left),
            |_| eval(world, None, right),
        ),
    };
    a.wrapping_add(b)
}

/// The second half completes an event that is waited for after the join.
pub(super) fn halves(world: &Arc<World>, node: &Node) -> u64 {
    let event = world.js.event("half");
    let id = event.id();
    let (a, b) = world.js.join(
        |_| eval(world, None, &node.children[0]),
        |cx| {
            let value = || eval(world, Some(cx), &node.children[1]);
            let value = catch_unwind(AssertUnwindSafe(value));
            event.complete();
            value.unwrap_or_else(|payload| resume_unwind(payload))
        },
    );
    world.settle(world.js.try_wait(id));
    a.wrapping_add(b)
}

pub(super) fn scope(world: &Arc<World>, cx: Given<'_, '_>, node: &Node) -> u64 {
    let mut values = vec![0; node.children.len()];
    let places = values.iter_mut().zip(&node.children);
    match cx {
        Some(cx) => cx.scope(|scope| places.for_each(|place| spawn(scope, world, place))),
        None => world.js.scope(|scope| {
            for place in places {
                if node.choice(1, 5) == 0 {
                    world.js.poll();
                }
                spawn(scope, world, place);
            }
        }),
    }
    values.into_iter().fold(0, u64::wrapping_add)
}

/// One job of a scope: it writes to its caller's stack.
fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_, Os>,
    world: &'scope Arc<World>,
    (value, child): (&'scope mut u64, &'scope Arc<Node>),
) {
    scope.spawn(move |cx| *value = eval(world, Some(cx), child));
}

pub(super) fn nested_scope(world: &Arc<World>, node: &Node) -> u64 {
    let mut values = vec![0; node.children.len()];
    let places = values.iter_mut().zip(&node.children);
    world.js.scope(|scope| {
        for place in places {
            scope.spawn(move |_| spawn(scope, world, place));
        }
    });
    values.into_iter().fold(0, u64::wrapping_add)
}

/// A scope of jobs with names, which depend on each other, on a job outside, and on an event that a foreign
/// thread completes.
pub(super) fn named_scope(world: &Arc<World>, cx: Given<'_, '_>, node: &Node) -> u64 {
    let mut values = vec![0; node.children.len()];
    let places = values.iter_mut().zip(&node.children);
    let open = |cx: &Context<'_, Os>| cx.scope(|scope| make_named(world, cx, scope, node, places));
    match cx {
        Some(cx) => open(cx),
        None => world.js.enter(open),
    }
    values.into_iter().fold(0, u64::wrapping_add)
}

fn make_named<'scope>(
    world: &'scope Arc<World>,
    cx: &Context<'_, Os>,
    scope: &'scope Scope<'scope, '_, Os>,
    node: &Node,
    places: impl Iterator<Item = (&'scope mut u64, &'scope Arc<Node>)>,
) {
    let outside = cx.schedule(|_| ());
    let gate = scope.event("gate");
    let gate_id = gate.id();
    world.complete_elsewhere(gate, node.seed);
    let mut last: Option<JobId> = None;
    for (number, (value, child)) in places.enumerate() {
        let choice = |which, bound| node.choice(8 * number as u64 + which, bound);
        let mut job = scope.job("named");
        match choice(10, 6) {
            0 => job = job.after(outside),
            1 => job = job.after(gate_id),
            2 => job = job.background(),
            _ => {}
        }
        if let Some(last) = last.filter(|_| choice(11, 3) == 0) {
            job = job.after(last);
        }
        let evaluate = move |cx: &Context<'_, Os>| *value = eval(world, Some(cx), child);
        let made = match choice(12, 8) {
            0 | 1 => job.run(evaluate).id(),
            2 => {
                // The wait reports a failure, so the scope's end does not.
                let handle = job.run(evaluate);
                let id = handle.id();
                world.settle(handle.try_wait());
                id
            }
            _ => job.schedule(evaluate),
        };
        if choice(13, 8) == 0 {
            // Perhaps refused: it may have started.
            _ = cx.add_dependency(made, outside);
        }
        if choice(14, 8) == 0 {
            scope.job("after").after(made).schedule(|_| ());
        }
        last = Some(made);
    }
}

pub(super) fn parallel_for(world: &Arc<World>, cx: Given<'_, '_>, node: &Node) -> u64 {
    /// The range need not begin at zero.
    const BEGIN: usize = 3;
    let total = AtomicU64::new(0);
    let body = |part: std::ops::Range<usize>, cx: &Context<'_, Os>| {
        for at in part {
            let value = eval(world, Some(cx), &node.children[at - BEGIN]);
            total.fetch_add(value, Ordering::Relaxed);
        }
    };
    let range = BEGIN..BEGIN + node.children.len();
    match cx {
        Some(cx) => cx.parallel_for(range, grain(node), body),
        None => world.js.parallel_for(range, grain(node), body),
    }
    total.into_inner()
}

pub(super) fn grain(node: &Node) -> Grain {
    match node.choice(4, 3) {
        0 => Grain::Auto,
        items => Grain::Items(items as u32 * 3),
    }
}

pub(super) fn unwind(world: &Arc<World>, cx: Given<'_, '_>, node: &Node) -> u64 {
    let _late = Late(world);
    eval(world, cx, &node.children[0])
}

/// Runs a loop, a scope and a join when it is dropped, most likely while a panic unwinds.
struct Late<'a>(&'a World);

impl Drop for Late<'_> {
    fn drop(&mut self) {
        let js = &self.0.js;
        let count = AtomicU64::new(0);
        js.parallel_for(0..50, Grain::Items(3), |part, _| {
            count.fetch_add(part.len() as u64, Ordering::Relaxed);
        });
        js.scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
            }
        });
        let (a, b) = js.join(|_| 1, |_| 2);
        let found = (count.into_inner(), a, b);
        if found != (53, 1, 2) {
            self.0
                .wrong(format!("a drop while unwinding counted {found:?}"));
        }
    }
}
