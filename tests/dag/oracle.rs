//! Conditions that hold for every run of a plan, in whatever order it went.
//!
//! - Each body runs exactly once, unless a predecessor failed; then never.
//! - A body sees what all of its predecessors did.
//! - Exactly the descendants of what panicked or was abandoned are cancelled, and an error names
//!   one of those that failed first.
//! - A wait returns when the job is over, with its true fate, and never reports a deadlock: plans
//!   cannot wait in a circle.
//! - Every body and every result is dropped exactly once.
//! - The hook for panics without a waiter is called at most once for each.
//! - No slot is left behind: each job in the log is completed.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use paceline::{Grain, Label, WaitError};
use platform::Platform;

use super::plan::{Kind, panics};
use super::run::Ending;
use super::world::{World, name};
use crate::support::log::Lives;

/// Some ranges are cut finely, others not.
pub(crate) fn grain(node: usize) -> Grain {
    if node.is_multiple_of(2) {
        Grain::Auto
    } else {
        Grain::Items(node as u32 % 7)
    }
}

/// A body begins.
pub(crate) fn starts<P: Platform>(world: &World<P>, node: usize) {
    let times = world.nodes[node].started.fetch_add(1, Relaxed) + 1;
    world.expect(times == 1, || format!("n{node} runs {times} times"));
    sees_predecessors(world, node);
}

/// A part of a range begins.
pub(crate) fn part_starts<P: Platform>(world: &World<P>, node: usize) {
    world.nodes[node].started.fetch_add(1, Relaxed);
    sees_predecessors(world, node);
}

fn sees_predecessors<P: Platform>(world: &World<P>, node: usize) {
    for before in predecessors(world, node) {
        world.expect(is_done(world, before), || {
            format!("n{node} began before n{before} was done")
        });
    }
}

fn predecessors<P: Platform>(world: &World<P>, node: usize) -> Vec<usize> {
    world.nodes[node].after.lock().unwrap().clone()
}

/// Predecessors, and those that may be about to become some.
///
/// For judging while the program runs: a node may be told of a failure through an edge before the edge is
/// noted.
fn possible_predecessors<P: Platform>(world: &World<P>, node: usize) -> Vec<usize> {
    // First: an edge goes from here to `after`.
    let mut all = world.nodes[node].joining.lock().unwrap().clone();
    all.extend(predecessors(world, node));
    all
}

/// Whether a node has done its work.
fn is_done<P: Platform>(world: &World<P>, node: usize) -> bool {
    let notes = &world.nodes[node];
    match world.plan.nodes[node].kind {
        Kind::Single | Kind::Typed => notes.ended.load(Relaxed) == 1,
        Kind::Range { .. } => notes.items.iter().all(|item| item.load(Relaxed) == 1),
        Kind::Combine => predecessors(world, node)
            .iter()
            .all(|&before| is_done(world, before)),
        Kind::Event => {
            notes.completed.load(Relaxed)
                && predecessors(world, node)
                    .iter()
                    .all(|&before| is_done(world, before))
        }
    }
}

/// Whether a node fails by itself if it gets to run.
fn breaks<P: Platform>(world: &World<P>, node: usize) -> bool {
    let planned = &world.plan.nodes[node];
    match planned.kind {
        Kind::Single | Kind::Typed => panics(&planned.body),
        Kind::Range { panics_at, .. } => panics_at.is_some(),
        Kind::Combine => false,
        Kind::Event => world.nodes[node].abandoned.load(Relaxed),
    }
}

/// A wait has ended; called when it has.
pub(crate) fn waited<P: Platform>(world: &World<P>, node: usize, result: Result<(), WaitError>) {
    match result {
        Ok(()) => world.expect(is_done(world, node), || {
            format!("a wait for n{node} was early")
        }),
        Err(WaitError::Panicked { label, message, .. }) => {
            let is_it = breaks(world, node) && label.name == name(node);
            world.expect(is_it && &*message == "planned", || {
                format!("n{node} is said to have panicked: {label}, {message}")
            });
        }
        Err(WaitError::Abandoned { label }) => {
            let is_it = breaks(world, node) && label.name == name(node);
            world.expect(is_it, || {
                format!("n{node} is said to be abandoned: {label}")
            });
        }
        Err(WaitError::Cancelled { label, cause, .. }) => {
            world.expect(label.name == name(node), || {
                format!("n{node} is called {label}")
            });
            world.expect(is_to_blame(world, node, cause), || {
                format!("n{node} was cancelled because of {cause}, which is not to blame")
            });
        }
        Err(error) => world.is_wrong(format!("a wait for n{node} ended with {error}")),
    }
}

/// A result could not be had.
pub(crate) fn failed_for_a_reason<P: Platform>(world: &World<P>, node: usize) {
    world.expect(is_doomed(world, node), || {
        format!("n{node} is said to have failed")
    });
}

/// Whether the node or an ancestor fails by itself.
fn is_doomed<P: Platform>(world: &World<P>, node: usize) -> bool {
    let before = possible_predecessors(world, node);
    breaks(world, node) || before.iter().any(|&before| is_doomed(world, before))
}

/// Whether this label is that of an ancestor that fails by itself.
fn is_to_blame<P: Platform>(world: &World<P>, node: usize, label: Label) -> bool {
    possible_predecessors(world, node).iter().any(|&before| {
        let itself = breaks(world, before) && label.name == name(before);
        itself || is_to_blame(world, before, label)
    })
}

/// How a node must have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Done,
    Failed,
    Cancelled,
}

struct Fates(BTreeMap<usize, Fate>);

impl Fates {
    fn of<P: Platform>(&mut self, world: &World<P>, node: usize) -> Fate {
        if let Some(&fate) = self.0.get(&node) {
            return fate;
        }
        let failed = |before: usize| self.of(world, before) != Fate::Done;
        let fate = if predecessors(world, node).into_iter().any(failed) {
            Fate::Cancelled
        } else if breaks(world, node) {
            Fate::Failed
        } else {
            Fate::Done
        };
        self.0.insert(node, fate);
        fate
    }
}

/// The whole run, when everything is over. The log is there if the run was recorded.
pub(crate) fn judge<P: Platform>(world: &World<P>, ending: Ending, log: Option<&Lives>) {
    let mut fates = Fates(BTreeMap::new());
    for node in 0..world.nodes.len() {
        if world.nodes[node].id.get().is_some() {
            let fate = fates.of(world, node);
            judge_node(world, node, fate);
            if let Some(log) = log {
                judge_life(world, node, fate, log);
            }
        }
    }
    let pairs = [
        ("bodies", &world.bodies_made, &world.bodies_dropped),
        ("results", &world.prizes_made, &world.prizes_dropped),
    ];
    for (what, made, dropped) in pairs {
        world.expect(made.get() == dropped.get(), || {
            format!("{} {what} were made, {} dropped", made.get(), dropped.get())
        });
    }
    judge_hook(world, &mut fates);
    if let Some(log) = log {
        world.expect(log.unfinished() == 0, || {
            format!("{} jobs never ended", log.unfinished())
        });
    }
    if ending != Ending::Abrupt {
        judge_stats(world, &mut fates, log);
    }
}

/// Each panic of a body reaches the hook at most once, and nothing else does.
fn judge_hook<P: Platform>(world: &World<P>, fates: &mut Fates) {
    let panicked = |node: &usize| {
        let event = world.plan.nodes[*node].kind == Kind::Event;
        let made = world.nodes[*node].id.get().is_some();
        made && !event && fates.of(world, *node) == Fate::Failed
    };
    let (calls, panics) = (
        world.unwaited_panics.get(),
        (0..world.nodes.len()).filter(panicked).count(),
    );
    world.expect(calls <= panics, || {
        format!("the hook was called {calls} times for {panics} panics")
    });
}

fn judge_node<P: Platform>(world: &World<P>, node: usize, fate: Fate) {
    let notes = &world.nodes[node];
    let (started, ended) = (notes.started.load(Relaxed), notes.ended.load(Relaxed));
    let items: Vec<u32> = notes.items.iter().map(|item| item.load(Relaxed)).collect();
    let right = match (world.plan.nodes[node].kind, fate) {
        (Kind::Single | Kind::Typed, Fate::Done) => (started, ended) == (1, 1),
        (Kind::Single | Kind::Typed, Fate::Failed) => (started, ended) == (1, 0),
        (Kind::Range { .. }, Fate::Done) => items.iter().all(|&times| times == 1),
        (Kind::Range { panics_at, .. }, Fate::Failed) => {
            started >= 1
                && items.iter().all(|&times| times <= 1)
                && panics_at.is_none_or(|item| items[item] == 0)
        }
        (_, Fate::Cancelled) => started == 0 && items.iter().all(|&times| times == 0),
        (Kind::Combine | Kind::Event, _) => true,
    };
    world.expect(right, || {
        let after = predecessors(world, node);
        format!(
            "n{node} is {fate:?} but began {started}, ended {ended}, {items:?}; after {after:?}"
        )
    });
}

/// A node's ticket, from what its id shows.
fn ticket<P: Platform>(world: &World<P>, node: usize) -> u64 {
    let shown = format!(
        "{:?}",
        world.nodes[node].id.get().expect("the node was made")
    );
    let inner = shown.trim_start_matches("JobId(").trim_end_matches(')');
    let mut numbers = inner
        .split([':', '.'])
        .map(|number| number.parse::<u64>().unwrap());
    let (_pool, index, generation) = (
        numbers.next().unwrap(),
        numbers.next().unwrap(),
        numbers.next().unwrap(),
    );
    generation << 24 | index
}

fn judge_life<P: Platform>(world: &World<P>, node: usize, fate: Fate, log: &Lives) {
    let Some(life) = log.0.get(&ticket(world, node)) else {
        return world.is_wrong(format!("n{node} is not in the log"));
    };
    let code = match fate {
        Fate::Done => 0,
        // An abandoned event had no body that could panic.
        Fate::Failed if world.plan.nodes[node].kind == Kind::Event => 2,
        Fate::Failed => 1,
        Fate::Cancelled => 2,
    };
    let shown = life.completed.map(|(_, code)| code);
    world.expect(shown == Some(code), || {
        format!("n{node} is {fate:?}, logged as {shown:?}")
    });
    let bodies = match world.plan.nodes[node].kind {
        Kind::Single | Kind::Typed if fate != Fate::Cancelled => 1..=1,
        Kind::Range { .. } if fate != Fate::Cancelled => 1..=32,
        _ => 0..=0,
    };
    world.expect(bodies.contains(&life.begins), || {
        format!(
            "n{node} is {fate:?} and has {} bodies in the log",
            life.begins
        )
    });
}

fn judge_stats<P: Platform>(world: &World<P>, fates: &mut Fates, log: Option<&Lives>) {
    let stats = world.stats.lock().unwrap().expect("read before the end");
    let has_body = |node: &usize| {
        let kind = world.plan.nodes[*node].kind;
        world.nodes[*node].id.get().is_some() && !matches!(kind, Kind::Combine | Kind::Event)
    };
    let with_body: Vec<usize> = (0..world.nodes.len()).filter(has_body).collect();
    let cancelled = with_body
        .iter()
        .filter(|&&node| fates.of(world, node) == Fate::Cancelled);
    let cancelled = cancelled.count() as u64;
    world.expect(stats.cancelled == cancelled, || {
        format!("{cancelled} were cancelled: {stats:?}")
    });
    if let Some(log) = log {
        let begins = log.begins() as u64;
        world.expect(stats.jobs == begins, || {
            format!("{begins} bodies began: {stats:?}")
        });
    }
}
