//! A random program, as data: jobs, what makes them, and what their bodies do.
//!
//! Every node and every thread has a *rank*, a random order in which the program needs things: a node depends
//! only on, and bodies wait only for, nodes with a lower rank; an event has a higher rank than the body or
//! thread that completes it. So no program made here can wait in a circle, in whatever order it runs, and a
//! run that does not end is the runtime's fault.

use paceline::Lane;

use super::theme::Theme;
use crate::support::Random;

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A job.
    Single,
    /// A job with a result.
    Typed,
    /// A job over this many items; the one given panics.
    Range {
        items: usize,
        panics_at: Option<usize>,
    },
    Combine,
    Event,
}

/// An action of a body or a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// This many nanoseconds of work.
    Work(u64),
    Create(usize),
    /// An event and the job that owns it from then on.
    CreatePair {
        event: usize,
        owner: usize,
    },
    Wait(usize),
    WaitFor(usize, u64),
    /// Takes the result of a typed job.
    Take(usize),
    /// The same, if it is there in this many nanoseconds.
    TakeFor(usize, u64),
    /// Threads only, if there are workers: awaits the result, which runs nothing meanwhile.
    Await(usize),
    /// Threads only, if there are workers: changes their number.
    Resize(usize),
    /// Drops the handle of a typed job.
    Forget(usize),
    LateEdge {
        job: usize,
        after: usize,
    },
    Complete(usize),
    Abandon(usize),
    Scope(Vec<Vec<Action>>),
    Join(Vec<Action>, Vec<Action>),
    /// A parallel loop over this many items.
    Loop(usize),
    Panic,
    /// Threads only.
    Flush,
    Poll,
    Pump,
}

impl Action {
    /// Whether a plan without it would have fewer nodes, or events that nothing ends.
    pub(super) fn makes_or_ends(&self) -> bool {
        matches!(
            self,
            Action::Create(_)
                | Action::CreatePair { .. }
                | Action::Complete(_)
                | Action::Abandon(_)
        )
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) after: Vec<usize>,
    pub(crate) body: Vec<Action>,
    pub(crate) lane: Lane,
}

/// The programs that a test wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taste {
    /// Most nodes.
    pub(crate) nodes: usize,
    /// Whether workers exist: only they run jobs without a waiter.
    pub(crate) has_workers: bool,
    /// Whether bodies wait for ids (with handles alone the job system may go while they run).
    pub(crate) waits_by_id: bool,
    /// Whether events are made, and owned by bodies.
    pub(crate) events: bool,
    /// Whether there are ranges.
    pub(crate) ranges: bool,
    /// Whether jobs have results.
    pub(crate) results: bool,
    /// Whether there are scopes, joins and loops, whose jobs borrow from the stack.
    pub(crate) borrowing: bool,
    /// Percentage of bodies that panic.
    pub(crate) panics: usize,
    /// Percentage of nodes that are in another lane than the normal one.
    pub(crate) lanes: usize,
    /// The kind of the first nodes.
    pub(crate) theme: Theme,
    /// Fewer items than this are in each range.
    pub(crate) items: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<Node>,
    /// The actions of the threads; the first one is the main thread.
    pub(crate) threads: Vec<Vec<Action>>,
}

/// The maker of a node, which runs actions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Thread(usize),
    Node(usize),
}

pub(super) struct Generator<'a> {
    pub(super) random: &'a mut Random,
    taste: Taste,
    pub(super) plan: Plan,
    pub(super) node_ranks: Vec<usize>,
    pub(super) thread_ranks: Vec<usize>,
}

impl Plan {
    pub(crate) fn generate(random: &mut Random, taste: Taste) -> Plan {
        let nodes = (1 + random.below(taste.nodes)).max(taste.theme.nodes());
        let threads = 1 + random.below(3);
        let mut ranks: Vec<usize> = (0..nodes + threads).collect();
        random.shuffle(&mut ranks);
        let thread_ranks = ranks.split_off(nodes);
        let plan = Plan {
            nodes: Vec::new(),
            threads: vec![Vec::new(); threads],
        };
        let mut generator = Generator {
            random,
            taste,
            plan,
            node_ranks: ranks,
            thread_ranks,
        };
        let theme = taste.theme;
        generator.begin(theme);
        while generator.plan.nodes.len() < nodes {
            generator.add_node(nodes);
        }
        generator.add_predecessors();
        generator.add_actions();
        generator.follow(theme);
        generator.fold_bodies();
        generator.choose_lanes();
        generator.plan
    }

    /// Prints the program.
    pub(crate) fn show(&self) {
        for (thread, list) in self.threads.iter().enumerate() {
            eprintln!("thread {thread}: {list:?}");
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let lane = if node.lane != Lane::Normal {
                &format!(" in lane {}", node.lane)
            } else {
                ""
            };
            eprintln!(
                "n{number} {:?}{lane} after {:?}: {:?}",
                node.kind, node.after, node.body
            );
        }
    }

    /// Whether a result can be taken.
    fn is_typed(&self, node: usize) -> bool {
        self.nodes[node].kind == Kind::Typed
    }
}

impl Generator<'_> {
    fn rank(&self, owner: Owner) -> usize {
        match owner {
            Owner::Thread(thread) => self.thread_ranks[thread],
            Owner::Node(node) => self.node_ranks[node],
        }
    }

    pub(super) fn list(&mut self, owner: Owner) -> &mut Vec<Action> {
        match owner {
            Owner::Thread(thread) => &mut self.plan.threads[thread],
            Owner::Node(node) => &mut self.plan.nodes[node].body,
        }
    }

    pub(super) fn has_body(&self, node: usize) -> bool {
        matches!(self.plan.nodes[node].kind, Kind::Single | Kind::Typed)
    }

    pub(super) fn thread(&mut self) -> Owner {
        Owner::Thread(self.random.below(self.plan.threads.len()))
    }

    fn creator(&mut self) -> Owner {
        let made = self.plan.nodes.len();
        if made > 0 && self.random.chance(50) {
            let node = self.random.below(made);
            if self.has_body(node) {
                return Owner::Node(node);
            }
        }
        self.thread()
    }

    pub(super) fn push_node(&mut self, kind: Kind) -> usize {
        self.plan.nodes.push(Node {
            kind,
            after: Vec::new(),
            body: Vec::new(),
            lane: Lane::Normal,
        });
        self.plan.nodes.len() - 1
    }

    fn add_node(&mut self, nodes: usize) {
        let left = nodes - self.plan.nodes.len();
        match self.random.below(100) {
            0..15 if self.taste.events => {
                let in_a_body = left > 1 && self.taste.has_workers && self.random.chance(60);
                if in_a_body {
                    self.add_event_of_a_body()
                } else {
                    self.add_event_of_a_thread()
                }
            }
            0..25 => self.create(Kind::Combine),
            25..40 if self.taste.ranges => self.add_range(),
            40..60 if self.taste.results => self.create(Kind::Typed),
            _ => self.create(Kind::Single),
        }
    }

    pub(super) fn add_range(&mut self) {
        let items = self.random.below(self.taste.items);
        let panics = items > 0 && self.random.chance(self.taste.panics);
        let panics_at = panics.then(|| self.random.below(items));
        self.create(Kind::Range { items, panics_at });
    }

    fn create(&mut self, kind: Kind) {
        let creator = self.creator();
        let node = self.push_node(kind);
        self.list(creator).push(Action::Create(node));
    }

    fn add_event_of_a_thread(&mut self) {
        let owner = self.thread();
        let event = self.push_node(Kind::Event);
        self.raise(event, owner);
        self.list(owner).push(Action::Create(event));
        let end = if self.random.chance(90) {
            Action::Complete
        } else {
            Action::Abandon
        };
        self.list(owner).push(end(event));
    }

    fn add_event_of_a_body(&mut self) {
        let creator = self.creator();
        let event = self.push_node(Kind::Event);
        let owner = self.push_node(Kind::Single);
        self.raise(event, Owner::Node(owner));
        self.list(creator).push(Action::CreatePair { event, owner });
        // Without an action it is abandoned when the body ends.
        if self.random.chance(90) {
            self.list(Owner::Node(owner)).push(Action::Complete(event));
        }
    }

    /// Makes the event's rank the higher one.
    fn raise(&mut self, event: usize, owner: Owner) {
        if self.node_ranks[event] > self.rank(owner) {
            return;
        }
        let place = match owner {
            Owner::Thread(thread) => &mut self.thread_ranks[thread],
            Owner::Node(node) => {
                let (a, b) = (event.min(node), event.max(node));
                let (low, high) = self.node_ranks.split_at_mut(b);
                std::mem::swap(&mut low[a], &mut high[0]);
                return;
            }
        };
        // The thread may own other events, which must stay above it: it only ever falls.
        std::mem::swap(place, &mut self.node_ranks[event]);
    }

    fn lower_than(&mut self, rank: usize) -> Option<usize> {
        let lower: Vec<usize> = (0..self.plan.nodes.len())
            .filter(|&node| self.node_ranks[node] < rank)
            .collect();
        (!lower.is_empty()).then(|| *self.random.pick(&lower))
    }

    fn add_predecessors(&mut self) {
        for node in 0..self.plan.nodes.len() {
            let tries = match self.random.below(10) {
                0..3 => 0,
                3..9 => self.random.below(4),
                _ => self.random.below(14),
            };
            for _ in 0..tries {
                if let Some(before) = self.lower_than(self.node_ranks[node]) {
                    self.plan.nodes[node].after.push(before);
                }
            }
        }
    }

    fn add_actions(&mut self) {
        let threads = (0..self.plan.threads.len()).map(Owner::Thread);
        let owners = threads.chain((0..self.plan.nodes.len()).map(Owner::Node));
        for owner in owners.collect::<Vec<_>>() {
            if matches!(owner, Owner::Node(node) if !self.has_body(node)) {
                continue;
            }
            for _ in 0..self.random.below(5) {
                let Some(action) = self.action(owner) else {
                    continue;
                };
                let len = self.list(owner).len();
                let at = self.random.below(len + 1);
                self.list(owner).insert(at, action);
            }
            if matches!(owner, Owner::Node(_)) && self.random.chance(self.taste.panics) {
                self.list(owner).push(Action::Panic);
            }
        }
    }

    fn action(&mut self, owner: Owner) -> Option<Action> {
        // Flush, poll and pump run anything, also what waits for the thread's own events.
        let owns_events = self
            .list(owner)
            .iter()
            .any(|action| matches!(action, Action::Complete(_) | Action::Abandon(_)));
        let runs_anything = matches!(owner, Owner::Thread(_)) && !owns_events;
        let rank = self.rank(owner);
        let asks_workers = matches!(owner, Owner::Thread(_)) && self.taste.has_workers;
        let action = match self.random.below(17) {
            0..4 => Action::Work(*self.random.pick(&[0, 1, 500, 3_000, 40_000])),
            4..8 => {
                let target = self.lower_than(rank)?;
                self.wait(target, asks_workers)?
            }
            8 | 9 => {
                let job = self.random.below(self.plan.nodes.len());
                let after = self.lower_than(self.node_ranks[job])?;
                Action::LateEdge { job, after }
            }
            10 if self.taste.borrowing => Action::Loop(*self.random.pick(&[0, 1, 7, 60])),
            11 | 12 if self.taste.borrowing => {
                let children = 1 + self.random.below(4);
                let work = |random: &mut Random| vec![Action::Work(random.below(3) as u64 * 400)];
                Action::Scope((0..children).map(|_| work(self.random)).collect())
            }
            13 if self.taste.borrowing => {
                let a = vec![Action::Work(self.random.below(3) as u64 * 700)];
                Action::Join(a, vec![Action::Loop(2)])
            }
            16 if asks_workers => Action::Resize(1 + self.random.below(4)),
            14 if runs_anything => Action::Flush,
            15 if runs_anything => {
                if self.random.chance(50) {
                    Action::Poll
                } else {
                    Action::Pump
                }
            }
            _ => Action::Forget(self.lower_than(usize::MAX)?),
        };
        Some(action)
    }

    fn wait(&mut self, target: usize, can_await: bool) -> Option<Action> {
        if self.plan.is_typed(target) {
            match self.random.below(10) {
                0..3 => return Some(Action::Take(target)),
                3 => return Some(Action::TakeFor(target, *self.random.pick(&[0, 1, 20_000]))),
                4..6 if can_await => return Some(Action::Await(target)),
                _ => {}
            }
        }
        if !self.taste.waits_by_id {
            return None;
        }
        Some(if self.random.chance(20) {
            Action::WaitFor(target, *self.random.pick(&[0, 1_000, 100_000]))
        } else {
            Action::Wait(target)
        })
    }

    /// Puts parts of bodies into scopes and joins, so that actions in sequence become simultaneous ones.
    fn fold_bodies(&mut self) {
        for node in 0..self.plan.nodes.len() {
            let mut body = std::mem::take(&mut self.plan.nodes[node].body);
            for _ in 0..2 {
                if self.taste.borrowing && body.len() >= 2 && self.random.chance(30) {
                    self.fold(&mut body);
                }
            }
            self.plan.nodes[node].body = body;
        }
    }

    fn choose_lanes(&mut self) {
        if self.taste.lanes == 0 {
            return;
        }
        for node in &mut self.plan.nodes {
            if self.random.chance(self.taste.lanes) {
                let lanes = [Lane::Background, Lane::Frame, Lane::Share1, Lane::Share5];
                node.lane = *self.random.pick(&lanes);
            }
        }
    }

    fn fold(&mut self, body: &mut Vec<Action>) {
        let first = self.random.below(body.len() - 1);
        let cut = first + 1 + self.random.below(body.len() - first - 1);
        let tail = body.split_off(cut);
        let head = body.split_off(first);
        let folded = if self.random.chance(60) {
            Action::Scope(vec![head, tail])
        } else {
            Action::Join(head, tail)
        };
        body.push(folded);
    }
}

/// Whether a body that does all of this unwinds.
pub(crate) fn panics(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Panic => true,
        Action::Scope(children) => children.iter().any(|child| panics(child)),
        Action::Join(a, b) => panics(a) || panics(b),
        _ => false,
    })
}
