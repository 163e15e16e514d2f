//! Runs a [`Plan`] on any platform and notes what happened in a [`World`].
//!
//! The program's calls of the job system are made here; the expected outcome is judged in `oracle`.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{self, Poll, Wake, Waker};
use std::time::Duration;

use event::Nanos;
use paceline::{Context, Event, Grain, Job, JobId, JobSystem, Lane, NewJob, ScheduleError};
use platform::{Parker, Platform, Thread, ThreadSpec};

use super::left;
use super::oracle;
use super::plan::{Action, Kind};
use super::world::{Count, Luggage, NodeNotes, Prize, World, name};

/// From where actions are done.
struct Place<'a, P: Platform> {
    world: &'a Arc<World<P>>,
    context: &'a Context<'a, P>,
    /// Outside any job: the job system's own methods are used.
    outside: Option<&'a JobSystem<P>>,
}

/// How a run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Everything is waited for, then the job system is dropped.
    Settled,
    /// The workers are left alone until everything has run; then as [`Settled`](Ending::Settled).
    Left,
    /// The job system is dropped at once.
    Abrupt,
}

/// The whole program, from the main thread.
pub(crate) fn run<P: Platform>(world: &Arc<World<P>>, js: JobSystem<P>, ending: Ending) {
    run_beside(world, js, ending, |_| None);
}

/// The same beside a thread that is started first, and that ends when `world.is_over`.
pub(crate) fn run_beside<P: Platform>(
    world: &Arc<World<P>>,
    js: JobSystem<P>,
    ending: Ending,
    start: impl FnOnce(Arc<JobSystem<P>>) -> Option<P::Thread>,
) {
    let js = Arc::new(js);
    let beside = start(js.clone());
    if ending != Ending::Abrupt {
        *world.js.lock().unwrap() = Some(js.clone());
    }
    let threads: Vec<P::Thread> = (1..world.plan.threads.len())
        .map(|thread| {
            let spec = ThreadSpec {
                name: format!("thread {thread}"),
                ..ThreadSpec::default()
            };
            let (world, theirs) = (world.clone(), js.clone());
            let body = Box::new(move || run_thread(&world, &theirs, thread));
            js.platform()
                .spawn(spec, body)
                .expect("there is room for a few threads")
        })
        .collect();
    run_thread(world, &js, 0);
    for thread in threads {
        thread
            .join()
            .unwrap_or_else(|payload| resume_unwind(payload));
    }
    if ending == Ending::Left {
        left::leave_to_the_workers(world, js.platform());
    }
    if ending != Ending::Abrupt {
        settle(world, &js);
        world.is_over.store(true, Relaxed);
        if let Some(thread) = beside {
            thread
                .join()
                .unwrap_or_else(|payload| resume_unwind(payload));
        }
        *world.stats.lock().unwrap() = Some(js.stats());
        *world.labels.lock().unwrap() = js.labels();
        *world.js.lock().unwrap() = None;
    }
    drop(Arc::into_inner(js).expect("no body that is over keeps the job system"));
    take_what_is_left(world);
}

fn run_thread<P: Platform>(world: &Arc<World<P>>, js: &JobSystem<P>, thread: usize) {
    js.enter(|context| {
        Place {
            world,
            context,
            outside: Some(js),
        }
        .act(&world.plan.threads[thread]);
    });
}

/// Waits for every node, also for those that are made meanwhile.
fn settle<P: Platform>(world: &Arc<World<P>>, js: &JobSystem<P>) {
    let mut waited = vec![false; world.nodes.len()];
    loop {
        let known = |node: &usize| !waited[*node] && world.nodes[*node].id.get().is_some();
        let Some(node) = (0..waited.len()).find(known) else {
            break;
        };
        waited[node] = true;
        let id = *world.nodes[node].id.get().expect("just looked at");
        oracle::waited(world, node, js.try_wait(id));
        world.expect(js.is_done(id), || {
            format!("n{node} is not done after a wait")
        });
    }
}

/// Handles outlive the job system.
fn take_what_is_left<P: Platform>(world: &Arc<World<P>>) {
    for node in 0..world.nodes.len() {
        let handle = world.nodes[node].handle.lock().unwrap().take();
        if let Some(handle) = handle {
            take(world, node, handle);
        }
    }
}

fn take<P: Platform>(world: &World<P>, node: usize, handle: Job<Prize>) {
    let result = handle.try_wait().map(|prize| accept(world, node, prize));
    oracle::waited(world, node, result);
}

fn accept<P: Platform>(world: &World<P>, node: usize, prize: Prize) {
    world.expect(prize.node == node, || {
        format!("n{node} gave the result of n{}", prize.node)
    });
}

/// Wakes the thread that parks here.
struct Unparker<P: Platform>(P::Parker);

impl<P: Platform> Wake for Unparker<P> {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<P: Platform> Place<'_, P> {
    fn act(&self, actions: &[Action]) {
        for action in actions {
            self.do_one(action);
        }
    }

    fn do_one(&self, action: &Action) {
        let nodes = &self.world.nodes;
        match action {
            Action::Work(time) => self.context.work(Nanos(*time)),
            Action::Create(node) => self.create(*node, None),
            Action::CreatePair { event, owner } => {
                self.create(*event, None);
                let handle = nodes[*event].event.lock().unwrap().take();
                self.create(*owner, handle.map(|handle| (*event, handle)));
            }
            Action::Wait(node) => self.wait(*node, None),
            Action::WaitFor(node, time) => self.wait(*node, Some(Duration::from_nanos(*time))),
            Action::Take(node) => {
                let handle = nodes[*node].handle.lock().unwrap().take();
                if let Some(handle) = handle {
                    take(self.world, *node, handle);
                }
            }
            Action::TakeFor(node, time) => {
                let handle = nodes[*node].handle.lock().unwrap().take();
                if let Some(handle) = handle {
                    self.take_for(*node, handle, Duration::from_nanos(*time));
                }
            }
            Action::Await(node) => {
                let handle = nodes[*node].handle.lock().unwrap().take();
                if let Some(handle) = handle {
                    self.await_result(*node, handle);
                }
            }
            Action::Resize(workers) => self.js(|js| {
                let resized = js.resize(*workers);
                self.world
                    .expect(resized.is_ok(), || format!("{resized:?}"));
            }),
            Action::Forget(node) => {
                // Out of the lock first: dropping a handle is a step of the simulation.
                let handle = nodes[*node].handle.lock().unwrap().take();
                drop(handle);
            }
            Action::LateEdge { job, after } => self.add_late_edge(*job, *after),
            Action::Complete(event) => self.end_event(*event, Event::complete, |notes| {
                notes.completed.store(true, Relaxed);
            }),
            Action::Abandon(event) => abandon(self.world, *event),
            Action::Scope(children) => self.scope(children),
            Action::Join(a, b) => self.join(a, b),
            Action::Loop(items) => self.parallel_loop(*items),
            Action::Panic => fail(),
            Action::Flush => self.js(JobSystem::flush),
            Action::Poll => self.js(|js| _ = js.poll()),
            Action::Pump => self.js(|js| _ = js.pump(Duration::from_nanos(700))),
        }
    }

    /// Calls the job system itself, if it is at hand.
    fn js(&self, f: impl FnOnce(&JobSystem<P>)) {
        match (self.outside, self.world.js()) {
            (Some(js), _) => f(js),
            (None, Some(js)) => f(&js),
            (None, None) => {}
        }
    }

    fn job(&self, node: usize) -> NewJob<'_, 'static, P> {
        match self.outside {
            Some(js) if node.is_multiple_of(2) => js.job(name(node)),
            _ => self.context.job(name(node)),
        }
    }

    fn create(&self, node: usize, event: Option<(usize, Event)>) {
        let (world, notes) = (self.world, &self.world.nodes[node]);
        let planned = &world.plan.nodes[node];
        let id_of = |&before: &usize| Some((before, *world.nodes[before].id.get()?));
        let (after, ids): (Vec<usize>, Vec<JobId>) = planned.after.iter().filter_map(id_of).unzip();
        // Before the job is made: its body looks at them.
        *notes.after.lock().unwrap() = after;
        let mut job = self.job(node).after_all(&ids);
        if planned.lane != Lane::Normal {
            job = job.lane(planned.lane);
        }
        let made = match planned.kind {
            Kind::Single => {
                let luggage = world.luggage(node, event);
                job.try_schedule(move |context| run_body(luggage, context))
            }
            Kind::Typed => {
                let luggage = world.luggage(node, event);
                let body = move |context: &Context<'_, P>| {
                    let world = luggage.world.clone();
                    run_body(luggage, context);
                    world.prize(node)
                };
                job.try_run(body).map(|handle| {
                    let id = handle.id();
                    *notes.handle.lock().unwrap() = Some(handle);
                    id
                })
            }
            Kind::Range { items, panics_at } => {
                let luggage = world.luggage(node, event);
                let (start, grain) = (node * 1000, oracle::grain(node));
                job.try_schedule_for(start..start + items, grain, move |part, context| {
                    run_part(
                        &luggage,
                        context,
                        part.start - start..part.end - start,
                        panics_at,
                    );
                })
            }
            Kind::Combine => job.try_combine(),
            Kind::Event => job.try_event().map(|event| {
                let id = event.id();
                *notes.event.lock().unwrap() = Some(event);
                id
            }),
        };
        match made {
            Ok(id) => notes.id.set(id).expect("a node is made once"),
            Err(error) => world.is_wrong(format!("n{node} cannot be scheduled: {error}")),
        }
    }

    fn wait(&self, node: usize, timeout: Option<Duration>) {
        let Some(&id) = self.world.nodes[node].id.get() else {
            return;
        };
        self.js(|js| match timeout {
            None => oracle::waited(self.world, node, js.try_wait(id)),
            Some(time) => match js.wait_timeout(id, time) {
                Ok(false) => {}
                Ok(true) => oracle::waited(self.world, node, Ok(())),
                Err(error) => oracle::waited(self.world, node, Err(error)),
            },
        });
    }

    fn take_for(&self, node: usize, handle: Job<Prize>, time: Duration) {
        match handle.wait_timeout(time) {
            Ok(Ok(prize)) => {
                accept(self.world, node, prize);
                oracle::waited(self.world, node, Ok(()));
            }
            Ok(Err(handle)) => *self.world.nodes[node].handle.lock().unwrap() = Some(handle),
            Err(error) => oracle::waited(self.world, node, Err(error)),
        }
    }

    /// As an executor would: the thread runs nothing, and parks until it is woken.
    fn await_result(&self, node: usize, mut handle: Job<Prize>) {
        let parker = Arc::new(Unparker::<P>(self.context.platform().parker()));
        let waker = Waker::from(parker.clone());
        let mut task = task::Context::from_waker(&waker);
        loop {
            // A failed job panics here, with the panic's text or the reason.
            let poll = AssertUnwindSafe(|| Pin::new(&mut handle).poll(&mut task));
            let polled = sim::quiet::quietly(|| catch_unwind(poll));
            match polled {
                Ok(Poll::Pending) => parker.0.park(Nanos::MAX),
                Ok(Poll::Ready(prize)) => {
                    accept(self.world, node, prize);
                    return oracle::waited(self.world, node, Ok(()));
                }
                Err(_) => return oracle::failed_for_a_reason(self.world, node),
            }
        }
    }

    fn add_late_edge(&self, job: usize, after: usize) {
        let nodes = &self.world.nodes;
        let (Some(&to), Some(&from)) = (nodes[job].id.get(), nodes[after].id.get()) else {
            return;
        };
        let notes = &nodes[job];
        notes.joining.lock().unwrap().push(after);
        let added = self.context.add_dependency(to, from);
        if added.is_ok() {
            notes.after.lock().unwrap().push(after);
        }
        let mut joining = notes.joining.lock().unwrap();
        let mine = joining.iter().position(|&before| before == after);
        joining.swap_remove(mine.expect("it was put there"));
        drop(joining);
        match added {
            Ok(()) | Err(paceline::GraphError::TooLate { .. }) => {}
            Err(error) => self
                .world
                .is_wrong(format!("n{job} after n{after}: {error}")),
        }
    }

    fn end_event(&self, event: usize, end: fn(Event), note: fn(&NodeNotes)) {
        let notes = &self.world.nodes[event];
        let handle = notes.event.lock().unwrap().take();
        if let Some(handle) = handle {
            note(notes);
            end(handle);
        }
    }

    fn scope(&self, children: &[Vec<Action>]) {
        let begun = Count::default();
        let world = self.world;
        // Every second child is spawned by the one before it.
        let scoped = catch_unwind(AssertUnwindSafe(|| {
            self.context.scope(|s| {
                let begun = &begun;
                for pair in children.chunks(2) {
                    let spawned = s.try_spawn("child", move |context| {
                        begun.up();
                        if let Some(second) = pair.get(1) {
                            let spawned = s.try_spawn("grandchild", move |context| {
                                begun.up();
                                Place {
                                    world,
                                    context,
                                    outside: None,
                                }
                                .act(second);
                            });
                            is_spawned(world, spawned);
                        }
                        Place {
                            world,
                            context,
                            outside: None,
                        }
                        .act(&pair[0]);
                    });
                    is_spawned(world, spawned);
                }
            });
        }));
        let all = begun.get() == children.len();
        match scoped {
            Err(payload) => {
                world.expect(all, || "a scope that panicked lost a child".into());
                resume_unwind(payload)
            }
            Ok(()) => world.expect(all, || "a scope lost a child".into()),
        }
    }

    fn join(&self, a: &[Action], b: &[Action]) {
        let world = self.world;
        let first = |context: &Context<'_, P>| {
            Place {
                world,
                context,
                outside: None,
            }
            .act(a);
            1
        };
        let second = |context: &Context<'_, P>| {
            Place {
                world,
                context,
                outside: None,
            }
            .act(b);
            2
        };
        let results = match self.outside {
            Some(js) => js.join(first, second),
            None => self.context.join(first, second),
        };
        world.expect(results == (1, 2), || format!("a join gave {results:?}"));
    }

    fn parallel_loop(&self, items: usize) {
        let counts: Vec<AtomicU32> = (0..items).map(|_| AtomicU32::new(0)).collect();
        let body = |part: std::ops::Range<usize>, context: &Context<'_, P>| {
            context.work(Nanos(part.len() as u64 * 300));
            part.for_each(|item| _ = counts[item - 5].fetch_add(1, Relaxed));
        };
        match self.outside {
            Some(js) => js.parallel_for(5..5 + items, Grain::Auto, body),
            None => self.context.parallel_for(5..5 + items, Grain::Auto, body),
        }
        let once = counts.iter().all(|count| count.load(Relaxed) == 1);
        self.world
            .expect(once, || format!("a loop ran its items {counts:?} times"));
    }
}

fn abandon<P: Platform>(world: &World<P>, event: usize) {
    let handle = world.nodes[event].event.lock().unwrap().take();
    if let Some(handle) = handle {
        world.nodes[event].abandoned.store(true, Relaxed);
        drop(handle);
    }
}

/// There is room for every job of a plan.
fn is_spawned<P: Platform>(world: &World<P>, spawned: Result<(), ScheduleError>) {
    if let Err(error) = spawned {
        world.is_wrong(format!("a child cannot be spawned: {error}"));
    }
}

/// Unwinds, without a message on the terminal.
fn fail() -> ! {
    resume_unwind(Box::new("planned"))
}

/// The body of a job. Nothing of ours is dropped while it unwinds: a simulated thread that panics
/// cannot be switched out, so it must not call the job system then.
fn run_body<P: Platform>(mut luggage: Luggage<P>, context: &Context<'_, P>) {
    let (world, node) = (luggage.world.clone(), luggage.node);
    let owned = luggage.event.take().map(|(event, handle)| {
        *world.nodes[event].event.lock().unwrap() = Some(handle);
        event
    });
    oracle::starts(&world, node);
    let done = catch_unwind(AssertUnwindSafe(|| {
        Place {
            world: &world,
            context,
            outside: None,
        }
        .act(&world.plan.nodes[node].body);
    }));
    if let Some(event) = owned {
        abandon(&world, event);
    }
    if done.is_ok() {
        world.nodes[node].ended.fetch_add(1, Relaxed);
    }
    drop((luggage, world));
    done.unwrap_or_else(|payload| resume_unwind(payload));
}

/// Part of the body of a range.
fn run_part<P: Platform>(
    luggage: &Luggage<P>,
    context: &Context<'_, P>,
    part: std::ops::Range<usize>,
    panics_at: Option<usize>,
) {
    let (world, node) = (&luggage.world, luggage.node);
    oracle::part_starts(world, node);
    if !node.is_multiple_of(3) {
        context.work(Nanos(part.len() as u64 * 500));
    }
    for item in part {
        if panics_at == Some(item) {
            fail();
        }
        world.nodes[node].items[item].fetch_add(1, Relaxed);
    }
}
