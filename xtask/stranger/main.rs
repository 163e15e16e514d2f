//! A stranger's first program. Its only dependency is `paceline`, and it names each type that signatures of
//! the crate mention: a game's state, its settings, a sink, a platform in a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use paceline::platform::{
    Class, Machine, MaskError, Memory, Parker, RefusalKind, ThreadSpec, Uclamp,
};
use paceline::record::{Event, EventKind, Interfered, Sink};
use paceline::{
    BuildError, Builder, Context, CpuSet, Frame, Interference, Job, JobId, JobSystem, Limits,
    Nanos, NewJob, Os, Placement, Platform, Role, SchedParams, Scope, SpawnError, Topology,
    WaitPolicy,
};

struct Settings {
    cpus: Option<CpuSet>,
    slice: Option<Duration>,
    wait: WaitPolicy,
    placement: Placement,
    help: SchedParams,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            cpus: None,
            slice: Some(Duration::from_millis(1)),
            wait: WaitPolicy::For(Duration::from_micros(20)),
            placement: Placement::Classes,
            help: SchedParams::slice(Duration::from_micros(300)),
        }
    }
}

#[derive(Default)]
struct CountJobs(AtomicU64);

impl Sink for CountJobs {
    fn record(&self, event: &Event) {
        if event.kind == EventKind::Begin {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn build(settings: Settings, sink: Arc<dyn Sink>) -> Result<JobSystem, BuildError> {
    let builder: Builder = Builder::new()
        .slice(settings.slice)
        .wait_policy(settings.wait)
        .placement(settings.placement)
        .os_help(settings.help)
        .sink(sink);
    match settings.cpus {
        Some(cpus) => builder.cpus(cpus).build(),
        None => builder.build(),
    }
}

/// A turn of the game with what it holds.
struct Turn<'js> {
    frame: Frame<'js>,
    drawn: Option<Job<u32>>,
}

impl Turn<'_> {
    fn describe(&self) -> NewJob<'_, 'static> {
        self.frame.job("draw")
    }
}

fn system(cx: &Context<'_>) -> JobId {
    cx.schedule(|cx| cx.work(Nanos::from_micros(1)))
}

fn halves<'scope>(scope: &'scope Scope<'scope, '_>, halves: &'scope mut [Vec<u32>]) {
    for half in halves {
        scope.spawn(|_| half.sort_unstable());
    }
}

fn on_any<P: Platform>(cx: &Context<'_, P>) -> Nanos {
    P::fence(Ordering::SeqCst);
    cx.platform().parker().unpark();
    cx.platform().now()
}

fn why(error: &BuildError) -> Option<RefusalKind> {
    match error {
        BuildError::Thread(refused) => Some(SpawnError::kind(refused)),
        _ => None,
    }
}

fn stay_on_first<M: Machine>(machine: &M, thread: u64) -> Result<(), MaskError> {
    let first: CpuSet = machine.limits().usable().iter().take(1).collect();
    machine.set_mask(thread, &first)
}

fn lost_workers(found: &Interference) -> bool {
    let fewer = |decision: &paceline::Decision| decision.what == Interfered::Fewer;
    found.decisions.iter().any(fewer)
}

fn is_fair(params: &SchedParams) -> bool {
    let clamped = matches!(params.uclamp, Some(Uclamp { min, .. }) if min > 0);
    matches!(params.class, None | Some(Class::Fair { .. })) && !clamped
}

fn main() {
    let jobs = Arc::new(CountJobs::default());
    let js = build(Settings::default(), jobs.clone()).unwrap_or_else(|error| {
        panic!("{error} ({:?})", why(&error));
    });
    let main = js.adopt(Role::Main);
    let mut turn = Turn {
        frame: js.frame("update", Duration::from_millis(16)),
        drawn: None,
    };
    turn.drawn = Some(turn.describe().run(|_| 42));
    let drawn = turn.drawn.take().map(Job::wait);
    js.wait(js.enter(system));
    let mut lists = [vec![3, 1, 2], vec![6, 5, 4]];
    js.scope(|scope| halves(scope, &mut lists));
    assert_eq!((drawn, lists[0][0], lists[1][0]), (Some(42), 1, 4));
    drop(turn);

    let (limits, machine): (Limits, &Topology) = (js.limits(), Os.topology());
    assert!(
        limits
            .usable()
            .is_subset(&machine.present().union(&limits.usable()))
    );
    assert!(js.enter(on_any) > Nanos::ZERO && !lost_workers(&js.interference()));
    assert!(js.os_help().iter().all(|help| is_fair(&help.asked)));
    let pin = stay_on_first::<<Os as Platform>::Machine>;
    drop((ThreadSpec::default(), pin, <Os as Memory>::UNWINDS));
    drop(main);
    drop(js);
    assert_eq!(jobs.0.load(Ordering::Relaxed), 4);
    println!("hello from {} jobs", jobs.0.load(Ordering::Relaxed));
}
