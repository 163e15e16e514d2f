//! The programs, each with what is changed about it.
//!
//! CPU 1 of the machine on which the committed recordings were made has no events out of the idle task. So
//! what sleeps there does so beside a hog that keeps that CPU busy.

use event::Nanos;
use platform::SchedParams;

/// A program.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    /// How long it is recorded.
    pub(crate) length: Nanos,
    /// Its threads.
    pub(crate) threads: Vec<Plan>,
    /// Its lock.
    pub(crate) lock: LockKind,
    /// Threads that belong to a control group, and the time that it has in 100 ms.
    pub(crate) quota: Option<Nanos>,
    /// Whether `ui` looks for the end of its job all the time.
    pub(crate) spins: bool,
}

/// A thread.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    /// What it asks the kernel for.
    pub(crate) asks: SchedParams,
    pub(crate) cpus: &'static str,
    pub(crate) does: Does,
}

/// A kind of lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LockKind {
    /// The system's, as it is.
    Plain,
    /// The same, and it lends its waiter's priority.
    Inheriting,
    /// It goes to the thread that waits for it.
    Fair,
}

/// What a thread does until the program ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    /// It works, asks `worker` for a job, waits for it, and sleeps.
    Asks { work: Nanos, sleep: Nanos },
    /// It works this long for each job.
    Works(Nanos),
    /// It works on pieces of this length, and looks for jobs between them.
    WorksBetween { piece: Nanos, job: Nanos },
    /// It works all the time.
    Hogs,
    /// It takes the lock, wakes `high` and `mid`, works with it, and sleeps.
    Holds { work: Nanos, sleep: Nanos },
    /// It takes the lock four times with hardly a break, wakes `high` at the first time, works with the lock
    /// each time, and sleeps.
    HoldsAgain { work: Nanos, sleep: Nanos },
    /// It wants the lock whenever it is woken, and works with it for this long.
    Wants { holds: Nanos },
    /// It works this long whenever it is woken.
    Bursts(Nanos),
    /// It wakes up so long after each beginning of a period, and works.
    Decodes { at: Nanos, work: Nanos },
    /// It wakes up so long after each beginning of a period, and waits for what `decoder` made.
    Shows { at: Nanos, work: Nanos },
}

/// A program as it is, and with a remedy.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    pub(crate) before: Scene,
    pub(crate) after: Scene,
}

const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn plan(name: &'static str, does: Does) -> Plan {
    Plan {
        name,
        asks: SchedParams::nice(0),
        cpus: "0",
        does,
    }
}

impl Scene {
    fn of(threads: Vec<Plan>) -> Scene {
        Scene {
            length: ms(700),
            threads,
            lock: LockKind::Plain,
            quota: None,
            spins: false,
        }
    }

    /// The same with this done to threads whose names begin so.
    fn with(&self, name: &str, change: impl Fn(&mut Plan)) -> Scene {
        let mut scene = self.clone();
        let threads = scene.threads.iter_mut();
        for plan in threads.filter(|plan| plan.name.starts_with(name)) {
            change(plan);
        }
        scene
    }

    fn asking(&self, name: &str, asks: &SchedParams) -> Scene {
        self.with(name, |plan| plan.asks = asks.clone())
    }

    fn on(&self, name: &str, cpus: &'static str) -> Scene {
        self.with(name, |plan| plan.cpus = cpus)
    }

    fn without(&self, name: &str) -> Scene {
        let mut scene = self.clone();
        scene.threads.retain(|plan| !plan.name.starts_with(name));
        scene
    }
}

/// `ui` asks `worker`, on the other CPU, for a job of 4 ms.
fn ui_and_worker() -> Vec<Plan> {
    let asks = Does::Asks {
        work: ms(1),
        sleep: ms(7),
    };
    vec![plan("ui", asks), plan("worker", Does::Works(ms(4)))]
}

fn beside_hogs(hogs: &[&'static str]) -> Scene {
    let mut threads = ui_and_worker();
    threads.extend(hogs.iter().map(|name| plan(name, Does::Hogs)));
    Scene::of(threads).on("worker", "1").on("hog", "1")
}

/// `low` holds a lock that `high` wants, and `mid` runs instead.
fn inversion(attrs: [SchedParams; 3]) -> Scene {
    let [low, mid, high] = attrs;
    let holds = Does::Holds {
        work: ms(3),
        sleep: ms(11),
    };
    let of = |name, asks, does| Plan {
        asks,
        ..plan(name, does)
    };
    Scene::of(vec![
        of("high", high, Does::Wants { holds: Nanos::ZERO }),
        of("mid", mid, Does::Bursts(ms(6))),
        of("low", low, holds),
    ])
}

/// `ui` wakes up 5 ms after the beginning of a period, and waits for what `decoder` began at 3 ms.
fn decoder(at: Nanos) -> Scene {
    let decodes = Does::Decodes { at, work: ms(6) };
    let shows = Does::Shows {
        at: ms(5),
        work: ms(1),
    };
    Scene::of(vec![plan("ui", shows), plan("decoder", decodes)])
}

/// One thread with pieces of its own and jobs of `ui` between them.
fn pieces(piece: Nanos) -> Scene {
    let [ui, worker] = ui_and_worker().try_into().expect("two threads");
    let does = Does::WorksBetween { piece, job: ms(1) };
    Scene::of(vec![ui, Plan { does, ..worker }]).on("worker", "1")
}

/// `low` takes a lock again before `high` can run, which it has woken on the other CPU.
fn taken_again() -> Scene {
    let again = Does::HoldsAgain {
        work: ms(2),
        sleep: ms(5),
    };
    let wants = Does::Wants {
        holds: Nanos::from_micros(500),
    };
    Scene::of(vec![plan("high", wants), plan("low", again)]).on("low", "1")
}

fn limited(quota: Nanos) -> Scene {
    let scene = beside_hogs(&["hog-a"]).on("", "0");
    Scene {
        quota: Some(quota),
        // A few of the waits meet the end of the quota.
        length: ms(3_000),
        ..scene
    }
}

fn pair(name: &'static str, before: &Scene, after: Scene) -> Pair {
    Pair {
        name,
        before: before.clone(),
        after,
    }
}

/// All pairs.
pub(crate) fn pairs() -> Vec<Pair> {
    let mut pairs = lock_pairs();
    pairs.extend(job_pairs());
    pairs
}

/// Pairs in which `high` waits for a lock of `low`.
fn lock_pairs() -> Vec<Pair> {
    let realtime = inversion([
        SchedParams::nice(0),
        SchedParams::fifo(20),
        SchedParams::fifo(50),
    ]);
    let fair = inversion([5, 0, -5].map(SchedParams::nice));
    let inheriting = |scene: &Scene| Scene {
        lock: LockKind::Inheriting,
        ..scene.clone()
    };
    let again = taken_again();
    let fair_lock = Scene {
        lock: LockKind::Fair,
        ..again.clone()
    };
    vec![
        pair("lock-realtime", &realtime, inheriting(&realtime)),
        pair("lock-fair", &fair, inheriting(&fair)),
        pair("hand-over", &again, fair_lock),
    ]
}

/// Pairs in which `ui` waits for a job.
fn job_pairs() -> Vec<Pair> {
    let hogs = beside_hogs(&["hog-a", "hog-b"]);
    let hog = beside_hogs(&["hog-a"]);
    let nice = hog.asking("worker", &SchedParams::nice(5));
    let together = hog.on("", "0").without("hog");
    let spinning = Scene {
        spins: true,
        ..together.clone()
    };
    let turns = hogs.with("worker", |plan| plan.does = Does::Works(ms(1)));
    let apart = hog.on("", "0-1");
    vec![
        pair("hogs-away", &hogs, hogs.without("hog")),
        pair("one-hog-away", &hogs, hogs.without("hog-b")),
        pair("nice", &nice, nice.asking("worker", &SchedParams::nice(0))),
        pair(
            "nice-hogs",
            &hogs,
            hogs.asking("hog", &SchedParams::nice(10)),
        ),
        pair(
            "round-robin",
            &hogs,
            hogs.asking("worker", &SchedParams::round_robin(10)),
        ),
        pair("wider-mask", &hog, hog.on("worker", "0-1")),
        pair("hogs-moved", &hogs, hogs.on("hog-b", "0")),
        pair("one-cpu-fewer", &apart, apart.on("", "0")),
        pair("busy-wait", &spinning, together),
        pair(
            "slice",
            &turns,
            turns.asking("worker", &SchedParams::slice(Nanos::from_micros(500))),
        ),
        pair(
            "slice-hogs",
            &turns,
            turns.asking("hog", &SchedParams::slice(ms(1))),
        ),
        pair("quota", &limited(ms(40)), limited(ms(70))),
        pair("pieces", &pieces(ms(8)), pieces(ms(2))),
        pair(
            "less-work",
            &hog,
            hog.with("worker", |plan| plan.does = Does::Works(ms(2))),
        ),
        pair("earlier", &decoder(ms(3)), decoder(ms(1))),
    ]
}
