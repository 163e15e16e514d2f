//! The notes of one run: the record of each node, and the errors.
//!
//! They are std's atomics and locks, which are no steps of a simulated machine: no lock is held
//! while the job system is called.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};

use paceline::{Event, Job, JobId, JobSystem, Label, Stats};
use platform::Platform;

use super::left::Bell;
use super::plan::{Kind, Plan};
use crate::support::log::Part;

/// A number that is counted up from anywhere.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn up(&self) {
        // Release, partner: the load in `get`: what was counted before this.
        self.0.fetch_add(1, Release);
    }
    pub(crate) fn get(&self) -> usize {
        // Acquire, partner: the addition in `up`.
        self.0.load(Acquire)
    }
}

/// The record of a node.
#[derive(Default)]
pub(crate) struct NodeNotes {
    pub(crate) id: OnceLock<JobId>,
    pub(crate) started: AtomicU32,
    pub(crate) ended: AtomicU32,
    pub(crate) items: Vec<AtomicU32>,
    /// Events: which thread or job ended them, and how.
    pub(crate) completed: AtomicBool,
    pub(crate) abandoned: AtomicBool,
    /// The edges that were asked for and accepted.
    pub(crate) after: Mutex<Vec<usize>>,
    /// Those that are being asked for: the job system may act on one before it is noted in `after`.
    pub(crate) joining: Mutex<Vec<usize>>,
    pub(super) handle: Mutex<Option<Job<Prize>>>,
    pub(super) event: Mutex<Option<Event>>,
}

/// A run's notes.
pub(crate) struct World<P: Platform> {
    pub(crate) plan: Plan,
    pub(crate) nodes: Vec<NodeNotes>,
    pub(crate) wrong: Mutex<Vec<String>>,
    pub(crate) bodies_made: Count,
    pub(crate) bodies_dropped: Count,
    pub(crate) prizes_made: Count,
    pub(crate) prizes_dropped: Count,
    /// Calls of the hook.
    pub(crate) unwaited_panics: Count,
    /// Tells the main thread that bodies are gone, if it wants to know.
    pub(super) bell: Bell<P>,
    /// For waits inside bodies; nothing if the plan has none.
    pub(super) js: Mutex<Option<Arc<JobSystem<P>>>>,
    /// All has been waited for.
    pub(crate) is_over: AtomicBool,
    pub(crate) stats: Mutex<Option<Stats>>,
    pub(crate) labels: Mutex<Vec<Label>>,
}

/// The result of a typed job; knows where it came from and counts its end.
pub(crate) struct Prize {
    pub(crate) node: usize,
    drops: Arc<dyn Fn() + Send + Sync>,
}

impl Drop for Prize {
    fn drop(&mut self) {
        (self.drops)();
    }
}

/// A value that a body owns: dropped exactly once, whether the body runs or not.
pub(super) struct Luggage<P: Platform> {
    pub(super) world: Arc<World<P>>,
    pub(super) node: usize,
    pub(super) event: Option<(usize, Event)>,
}

impl<P: Platform> Drop for Luggage<P> {
    fn drop(&mut self) {
        if let Some((event, handle)) = self.event.take() {
            self.world.nodes[event].abandoned.store(true, Relaxed);
            drop(handle);
        }
        self.world.bodies_dropped.up();
        self.world.bell.body_is_gone();
    }
}

/// Names of nodes: labels are static texts.
pub(crate) fn name(node: usize) -> &'static str {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    &NAMES.get_or_init(|| (0..256).map(|node| format!("n{node}")).collect())[node]
}

impl<P: Platform> World<P> {
    pub(crate) fn new(plan: Plan) -> Arc<World<P>> {
        let notes = |node: &super::plan::Node| NodeNotes {
            items: match node.kind {
                Kind::Range { items, .. } => (0..items).map(|_| AtomicU32::new(0)).collect(),
                _ => Vec::new(),
            },
            ..NodeNotes::default()
        };
        Arc::new(World {
            nodes: plan.nodes.iter().map(notes).collect(),
            plan,
            wrong: Mutex::new(Vec::new()),
            bodies_made: Count::default(),
            bodies_dropped: Count::default(),
            prizes_made: Count::default(),
            prizes_dropped: Count::default(),
            unwaited_panics: Count::default(),
            bell: Bell::default(),
            js: Mutex::new(None),
            is_over: AtomicBool::new(false),
            stats: Mutex::new(None),
            labels: Mutex::new(Vec::new()),
        })
    }

    /// Notes a violation.
    pub(crate) fn is_wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }

    pub(crate) fn expect(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.is_wrong(what());
        }
    }

    pub(super) fn js(&self) -> Option<Arc<JobSystem<P>>> {
        self.js.lock().unwrap().clone()
    }

    /// The meaning of a label's number for its jobs.
    pub(crate) fn part(&self, label: u64) -> Part {
        match self.labels.lock().unwrap()[label as usize].name {
            "join" => Part::OfAny,
            "scope" | "child" | "grandchild" | "parallel_for" => Part::OfInnermost,
            _ => Part::No,
        }
    }

    pub(super) fn luggage(
        self: &Arc<Self>,
        node: usize,
        event: Option<(usize, Event)>,
    ) -> Luggage<P> {
        self.bodies_made.up();
        Luggage {
            world: self.clone(),
            node,
            event,
        }
    }

    pub(super) fn prize(self: &Arc<Self>, node: usize) -> Prize {
        self.prizes_made.up();
        let world = self.clone();
        Prize {
            node,
            drops: Arc::new(move || world.prizes_dropped.up()),
        }
    }
}
