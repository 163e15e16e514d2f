//! Policy `waitfor` on the whole machine: what threads say about their waits, and what follows.

use event::{Nanos, Random};
use paceline_sim::scenario::{Phase, Ran, Scenario, run};
use paceline_sim::{Machine, SimConfig};

/// Runs the scenario on one CPU with ticks, twice; the runs have to be equal.
fn ran(policy: &str, hints: bool, threads: &str) -> Ran {
    let head = "about = \"a test\"\nmachine = \"any\"\npolicy = \"any\"\nuntil = \"2 s\"\n";
    let scenario = Scenario::parse("test", &format!("{head}{threads}")).expect("it is a scenario");
    let mut machine = Machine::ideal(1);
    machine.kernel.tick = Nanos::from_millis(4);
    let config = SimConfig {
        hints,
        checks: true,
        until: Nanos::from_secs(2),
        ..SimConfig::on(machine, policy, 1)
    };
    let first = run(&scenario, config.clone());
    assert_eq!(
        first.report.trace_hash,
        run(&scenario, config).report.trace_hash
    );
    assert_eq!(first.report.violation, None);
    first
}

fn longest(ran: &Ran, name: &str) -> Nanos {
    let named = ran.measured.iter().filter(|span| span.name == name);
    let longest = named.map(|span| span.end - span.begin).max();
    longest.expect("the span was measured")
}

/// A main thread that waits for a worker which has used much CPU time, beside hogs.
fn a_wait(wait: &str) -> String {
    let phase = match wait {
        "mutex" => r#"{ lock = "m" }, { unlock = "m" }"#.to_owned(),
        way => format!(r#"{{ wait = {{ flag = "done", by = "{way}" }} }}"#),
    };
    let worker = match wait {
        "mutex" => r#"{ lock = "m" }, { work = "40 ms" }, { unlock = "m" }"#,
        _ => r#"{ work = "40 ms" }, { set = "done" }"#,
    };
    format!(
        r#"
        [[thread]]
        name = "worker"
        phases = [{worker}]
        [[thread]]
        name = "main"
        start = "20 ms"
        phases = [{{ begin = "wait" }}, {phase}, {{ end = "wait" }}]
        [[thread]]
        name = "hog"
        count = 6
        repeat = "forever"
        phases = [{{ work = "50 ms" }}]
        "#
    )
}

/// Goal: a wait that is said, for a flag or a mutex, parked or busy, ends sooner than one that is not.
/// Method: a worker with 40 ms of work beside six hogs on one CPU; the main thread's account pays for a share
/// of it, and a busy waiter does not spend its own in vain.
#[test]
fn what_is_said_shortens_the_wait() {
    for wait in ["park", "spin", "mutex"] {
        let threads = a_wait(wait);
        let said = longest(&ran("waitfor", true, &threads), "wait");
        let silent = longest(&ran("waitfor", false, &threads), "wait");
        assert!(
            said.0 * 4 < silent.0 * 3,
            "{wait}: {said} said, {silent} silent"
        );
    }
}

/// Goal: the hogs lose no more than what the waiter was entitled to. Method: the same; each hog's CPU time
/// with the statement is at least three quarters of that without, although two threads ask for the CPU where
/// one did.
#[test]
fn others_keep_their_share() {
    let hogs = |hints| {
        let ran = ran("waitfor", hints, &a_wait("park"));
        let threads = ran.report.threads.iter();
        let hogs = threads.filter(|thread| thread.name.starts_with("hog"));
        hogs.map(|thread| thread.spent.run.0).min().unwrap_or(0)
    };
    let (said, silent) = (hogs(true), hogs(false));
    assert!(said * 4 >= silent * 3, "{said} and {silent}");
}

/// Goal: where nobody is asked to say anything, saying costs nothing and changes nothing. Method: the hash of
/// a run whose program calls `waits_for`, and of one whose does not.
#[test]
fn nothing_is_said_unless_it_is_asked_for() {
    use paceline_sim::Sim;
    let hash = |says: bool, hints: bool| {
        let config = SimConfig {
            hints,
            ..SimConfig::on(Machine::ideal(1), "waitfor", 1)
        };
        let report = Sim::run(config, |sim| {
            if says {
                sim.waits_for(&[0]);
            }
        });
        (report.trace_hash, report.now)
    };
    assert_eq!(hash(true, false), hash(false, false));
    assert_ne!(hash(true, true).1, hash(false, true).1);
}

/// Goal: source 000's scene, in thirty forms that differ a little, has no long busy wait if the main thread
/// says what it waits for; without, and under EEVDF, some have. Method: every length a tenth shorter or
/// longer and every time up to 0.3 ms earlier or later, by a seed; the longest wait.
#[test]
fn a_busy_wait_that_is_said_is_short() {
    let longest = |policy: &str, hints: bool| {
        let wait = |seed| {
            let mut scene = Scenario::named("galaxy-s22-inversion").unwrap().unwrap();
            vary(&mut scene, seed);
            let machine = Machine::named("galaxy-s22-exynos").unwrap();
            let config = SimConfig {
                hints,
                checks: true,
                plan: scene.plan(),
                until: Nanos::from_millis(20),
                ..SimConfig::on(machine, policy, seed)
            };
            let ran = run(&scene, config);
            assert_eq!(ran.report.violation, None, "seed {seed}");
            longest(&ran, "WaitForJobGroupID")
        };
        (1..31).map(wait).max().expect("there are seeds")
    };
    let said = longest("waitfor", true);
    assert!(said < Nanos::from_millis(1), "{said}");
    for policy in ["waitfor", "eevdf-6.18"] {
        let silent = longest(policy, false);
        assert!(silent > Nanos::from_millis(2), "{policy}: {silent}");
    }
}

/// The scene with other lengths and times.
fn vary(scene: &mut Scenario, seed: u64) {
    const MOST: u64 = 300_000;
    let mut random = Random::new(seed);
    for thread in &mut scene.threads {
        for phase in &mut thread.phases {
            if let Phase::Work(span) | Phase::Sleep(span) = phase {
                let length = random.within(span.least.0 * 9 / 10, span.least.0 * 11 / 10);
                (span.least, span.most) = (Nanos(length), Nanos(length));
            }
        }
    }
    let changes = scene.changes.iter_mut().map(|change| &mut change.at);
    let starts = scene
        .threads
        .iter_mut()
        .flat_map(|thread| &mut thread.start);
    for time in changes.chain(starts).filter(|time| time.0 > MOST) {
        *time = Nanos(random.within(time.0 - MOST, time.0 + MOST));
    }
}
