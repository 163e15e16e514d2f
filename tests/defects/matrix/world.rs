//! The parts of a cell's program: the code that acts, the bystanders, and the oracle.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use event::{Event, Nanos, Sink};
use paceline::{Builder, Context, Grain, Job, JobSystem, WaitError};
use platform::{Parker, Platform};

use super::super::{Count, Flag};
use super::{Act, Cell, Kind, Place};
use crate::support::fail;
use crate::support::ledger::{Ledger, Token};

/// The state that all of a cell's program knows.
pub(super) struct World<P: Platform> {
    pub(super) cell: Cell,
    pub(super) platform: P,
    home: OnceLock<Weak<JobSystem<P>>>,
    /// The thread slot of the thread that runs the program.
    main: OnceLock<u32>,
    /// For the code that drops it as the last one, when the flag says that it is.
    pub(super) owner: Mutex<Option<Arc<JobSystem<P>>>>,
    pub(super) is_last: Flag,
    /// Waits for a job that can run.
    pub(super) spare: Mutex<Option<Job<()>>>,
    /// From here on the code acts, once.
    pub(super) armed: Flag,
    pub(super) acted: Count,
    /// The workers are kept busy until then.
    pub(super) released: Flag,
    pub(super) ledger: Arc<Ledger>,
    /// How many jobs have run, and how many were to.
    pub(super) ran: Count,
    pub(super) to_run: Count,
    /// Threads whose first hook was called and whose last one was not.
    pub(super) working: Count,
    pub(super) wrong: Mutex<Vec<String>>,
}

/// Acts when it is dropped, but not during a panic.
pub(super) struct Luggage<P: Platform> {
    pub(super) world: Arc<World<P>>,
    _token: Token,
}

impl<P: Platform> Drop for Luggage<P> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.world.act(None);
        }
    }
}

/// Rests on a platform, away from the job system, until the flag is up.
pub(super) fn rest_until<P: Platform>(platform: &P, flag: impl Fn() -> bool) {
    const PERIOD_MAX: Nanos = Nanos::from_millis(1);
    let (parker, mut period) = (platform.parker(), Nanos(1_000));
    while !flag() {
        parker.park(platform.now() + period);
        period = (period + period).min(PERIOD_MAX);
    }
}

impl<P: Platform> World<P> {
    pub(super) fn new(cell: Cell, platform: P) -> Arc<World<P>> {
        Arc::new(World {
            cell,
            platform,
            home: OnceLock::new(),
            main: OnceLock::new(),
            owner: Mutex::new(None),
            is_last: Flag::default(),
            spare: Mutex::new(None),
            armed: Flag::default(),
            acted: Count::default(),
            released: Flag::default(),
            ledger: Arc::new(Ledger::default()),
            ran: Count::default(),
            to_run: Count::default(),
            working: Count::default(),
            wrong: Mutex::new(Vec::new()),
        })
    }

    fn js(&self) -> Option<Arc<JobSystem<P>>> {
        self.home.get()?.upgrade()
    }

    pub(super) fn has_acted(&self) -> bool {
        self.acted.get() > 0
    }

    pub(super) fn token(&self) -> Token {
        self.ledger.token()
    }

    pub(super) fn luggage(self: &Arc<Self>) -> Luggage<P> {
        Luggage {
            world: Arc::clone(self),
            _token: self.token(),
        }
    }

    /// A body that is to run, and is counted.
    pub(super) fn bystander(&self) -> impl FnOnce(&Context<'_, P>) + Send + 'static {
        let (token, ran) = (self.token(), self.ran.clone());
        self.to_run.up();
        move |_: &Context<'_, P>| {
            drop(token);
            ran.up();
        }
    }

    /// A body that runs if it may: if the job before it ends well.
    pub(super) fn successor(&self) -> impl FnOnce(&Context<'_, P>) + Send + 'static {
        let body = self.bystander();
        let Cell { kind, act, place } = self.cell;
        let fails = match kind {
            Kind::CancelledDrop | Kind::PendingDrop => true,
            Kind::PayloadDrop => place == Place::End,
            _ => act == Act::Panics && kind.fails_its_job(),
        };
        if fails || self.cell.keeps_gate() {
            self.to_run.down();
        }
        body
    }

    fn is_wrong(&self, what: String) {
        self.wrong.lock().expect("no panics inside").push(what);
    }

    /// The action of the code, the first time that it is called after it was armed.
    pub(super) fn act(&self, cx: Option<&Context<'_, P>>) {
        if !self.armed.is_up() || self.acted.up() > 0 {
            return;
        }
        match self.cell.act {
            Act::Panics => fail("the matrix"),
            Act::Waits => self.wait(cx),
            Act::Schedules => self.schedule(cx),
            Act::Joins => self.join(cx),
            Act::Ends => self.end(),
        }
    }

    /// Whether the job system refuses everything here.
    fn may_be_refused(&self) -> bool {
        self.cell.kind == Kind::Sink
    }

    fn wait(&self, cx: Option<&Context<'_, P>>) {
        let js = self.js();
        let job = match (cx, &js) {
            (Some(cx), _) => cx.job("awaited").try_run(self.bystander()),
            (None, Some(js)) => js.job("awaited").try_run(self.bystander()),
            (None, None) => match self.spare.lock().expect("no panics inside").take() {
                Some(job) => Ok(job),
                None => return,
            },
        };
        let waited = match job {
            Ok(job) => job.try_wait(),
            Err(error) => {
                self.to_run.down();
                Err(error.into())
            }
        };
        match waited {
            Ok(()) => {}
            Err(WaitError::ShutDown) if self.cell.place == Place::End => {}
            Err(_) if self.may_be_refused() => {}
            Err(error) => self.is_wrong(format!("a wait: {error}")),
        }
    }

    fn schedule(&self, cx: Option<&Context<'_, P>>) {
        let js = self.js();
        let made = match (cx, &js) {
            (Some(cx), _) => cx.job("made").try_schedule(self.bystander()),
            (None, Some(js)) => js.job("made").try_schedule(self.bystander()),
            (None, None) => return,
        };
        if let Err(error) = made {
            self.to_run.down();
            if !self.may_be_refused() {
                self.is_wrong(format!("a job: {error}"));
            }
        }
    }

    fn join(&self, cx: Option<&Context<'_, P>>) {
        let ran = Count::default();
        let both = |cx: &Context<'_, P>| {
            cx.join(|_| ran.up(), |_| ran.up());
            cx.scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|_| _ = ran.up());
                }
            });
            cx.parallel_for(0..8, Grain::Items(1), |part, _| {
                part.for_each(|_| _ = ran.up());
            });
        };
        match (cx, self.js()) {
            (Some(cx), _) => both(cx),
            (None, Some(js)) => js.enter(both),
            (None, None) => return,
        }
        if ran.get() != 13 {
            self.is_wrong(format!("{} of 13 parts", ran.get()));
        }
    }

    fn end(&self) {
        let owner = self.owner.lock().expect("no panics inside").take();
        let owner = owner.expect("it was left here");
        rest_until(&self.platform, || self.is_last.is_up());
        self.released.raise();
        drop(owner);
    }

    /// Main's thread slot is known, and this is not main's.
    fn is_elsewhere(&self, slot: u32) -> bool {
        self.main.get().is_some_and(|&main| main != slot)
    }
}

/// A sink that acts at the first event of the thread in question.
struct Listener<P: Platform>(Arc<World<P>>);

impl<P: Platform> Sink for Listener<P> {
    fn record(&self, event: &Event) {
        let world = &self.0;
        if world.is_elsewhere(event.slot) == (world.cell.place == Place::Worker) {
            world.act(None);
        }
    }
}

/// The job system of a cell, with its hooks.
pub(super) fn build<P: Platform>(world: &Arc<World<P>>, workers: usize) -> Arc<JobSystem<P>> {
    let kind = world.cell.kind;
    let (starting, stopping, own) = (world.clone(), world.clone(), world.clone());
    let builder = Builder::with_platform(world.platform.clone())
        .workers(workers)
        .max_jobs(256)
        .max_threads(8)
        .on_thread_start(move |_| {
            starting.working.up();
            if kind == Kind::StartHook && !starting.has_acted() {
                rest_until(&starting.platform, || starting.armed.is_up());
                starting.act(None);
            }
        })
        .on_thread_stop(move |_| {
            stopping.working.down();
            if kind == Kind::StopHook {
                stopping.act(None);
            }
        });
    let builder = match kind {
        Kind::NameHook => builder.thread_name(move |slot| {
            own.act(None);
            format!("matrix {slot}")
        }),
        Kind::PanicHook => builder.on_unwaited_panic(move |_| own.act(None)),
        Kind::Sink => builder.sink(Arc::new(Listener(own))),
        _ => builder,
    };
    let js = Arc::new(builder.build().expect("threads can be started"));
    assert!(world.home.set(Arc::downgrade(&js)).is_ok(), "built once");
    js.enter(|cx| world.main.set(cx.worker() as u32).expect("set once"));
    js
}
