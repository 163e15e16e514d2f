//! Goal: the disturbances of a scenario's file happen, as the seed says, and no others. Method: small
//! scenarios with and without a disturbance, run twice, on several seeds.

use event::{KernelEventKind, Nanos};
use paceline_sim::scenario::{Ran, Scenario, run};
use paceline_sim::{Machine, SimConfig};

/// Two threads on a CPU each that compute for 100 ms, and the lines of `more`.
fn scenario(more: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
        about = "disturbed"
        machine = "vm-2"
        policy = "eevdf-6.18"
        [[thread]]
        name = "a"
        cpus = [0]
        phases = [{{ repeat = {{ times = 100, phases = [{{ work = "1 ms" }}] }} }}]
        [[thread]]
        name = "b"
        cpus = [1]
        phases = [{{ repeat = {{ times = 100, phases = [{{ work = "1 ms" }}] }} }}]
        {more}
        "#
    );
    Scenario::parse("test", &text).map_err(|bad| bad.0)
}

fn ran(scenario: &Scenario, seed: u64) -> Ran {
    let config = SimConfig {
        plan: scenario.plan(),
        perturb: scenario.perturb,
        checks: true,
        trace: true,
        ..SimConfig::on(Machine::named("vm-2").unwrap().clone(), "eevdf-6.18", seed)
    };
    let first = run(scenario, config.clone());
    assert_eq!(first, run(scenario, config), "two runs differ");
    assert_eq!(first.report.violation, None, "{}", first.report);
    first.report.clone().expect_finished();
    first
}

/// How long both ran, beyond their work.
fn lost(ran: &Ran) -> Nanos {
    let all: u64 = ran.report.threads.iter().map(|t| t.spent.run.0).sum();
    Nanos(all - 200_000_000)
}

/// Without a disturbance the two lose the time of ticks and switches: microseconds. A host that takes a CPU
/// every 2 ms for up to 1 ms takes, of 100 ms, some 50 times half a millisecond. Other seeds steal at other
/// times.
#[test]
fn cpus_are_stolen() {
    let quiet = scenario("").unwrap();
    assert!(lost(&ran(&quiet, 1)) < Nanos::from_micros(200));
    assert_eq!(ran(&quiet, 1).report.trace, ran(&quiet, 2).report.trace);
    let stolen = scenario("[perturb]\nstolen-every = '2 ms'\nstolen-max = '1 ms'").unwrap();
    let runs = [1, 2, 3].map(|seed| ran(&stolen, seed));
    for run in &runs {
        let lost = lost(run).0 as f64 / 1e6;
        assert!((10.0..50.0).contains(&lost), "{lost:.1} ms");
    }
    assert_ne!(runs[0].report.trace_hash, runs[1].report.trace_hash);
}

/// One step in two takes up to 100 us longer: 50 of 100 steps of each, 25 us in the mean.
#[test]
fn steps_are_delayed() {
    let delayed = scenario("[perturb]\ndelay-one-in = 2\ndelay-max = '100 us'").unwrap();
    for seed in 1..4 {
        let lost = lost(&ran(&delayed, seed));
        assert!(
            (2_000_000..9_000_000).contains(&lost.0),
            "{lost} for 200 steps"
        );
    }
}

/// Ticks interrupt at other times if they are late, and not otherwise.
#[test]
fn ticks_are_late() {
    let spinners = |more: &str| {
        let text =
            format!("[[thread]]\nname = 'c'\ncpus = [0]\nphases = [{{ work = '20 ms' }}]\n{more}");
        let ran = ran(&scenario(&text).unwrap(), 1);
        let late = |event: &&event::KernelEvent| {
            matches!(
                event.what,
                KernelEventKind::Switch {
                    prev: Some(_),
                    next: Some(_),
                    ..
                }
            ) && event.time.0 % 4_000_000 > 50_000
        };
        ran.report.trace.iter().filter(late).count()
    };
    let exact = spinners("");
    let late = spinners("[perturb]\ntick-late-max = '1 ms'");
    assert!(exact <= 1 && late >= 3, "{exact} and {late}");
}

/// A deadlock is found although the host goes on taking CPUs.
#[test]
fn steals_hide_no_deadlock() {
    let text = r#"
        about = "nobody sets it"
        machine = "vm-2"
        policy = "eevdf-6.18"
        [perturb]
        stolen-every = "1 ms"
        stolen-max = "100 us"
        [[thread]]
        name = "waits"
        phases = [{ wait = { flag = "f", by = "park" } }]
    "#;
    let scenario = Scenario::parse("test", text).unwrap();
    let config = SimConfig {
        perturb: scenario.perturb,
        ..SimConfig::on(Machine::named("vm-2").unwrap().clone(), "eevdf-6.18", 1)
    };
    let ended = run(&scenario, config).report.outcome;
    assert!(
        matches!(ended, paceline_sim::Outcome::Deadlock(_)),
        "{ended:?}"
    );
}

/// A CPU that a change takes away for 30 ms at 10 ms is lost to the thread on it, and to no other.
#[test]
fn a_change_steals_a_cpu() {
    let text = "[[change]]\nat = '10 ms'\nstolen = [1]\nfor = '30 ms'";
    let ran = ran(&scenario(text).unwrap(), 1);
    let [a, b] = [0, 1].map(|thread| ran.report.threads[thread].spent.run.0 / 1_000_000);
    assert_eq!((a, b), (100, 130));
}

/// Senseless values are refused in one line that says what to do.
#[test]
fn what_makes_no_sense_is_refused() {
    for (more, word) in [
        ("[perturb]\ndelay-one-in = 2", "delay-max"),
        ("[perturb]\nstolen-max = '1 ms'", "stolen-every"),
        (
            "[perturb]\nstolen-every = '1 ms'\nstolen-max = '2 ms'",
            "more is stolen",
        ),
        ("[perturb]\nspurious = 2", "spurious-one-in"),
        ("[[change]]\nat = '1 ms'\nstolen = [0]", "`for`"),
        ("[[change]]\nat = '1 ms'\ncap = [0]", "`mhz`"),
    ] {
        let why = scenario(more).expect_err(more);
        assert!(why.contains(word) && !why.contains('\n'), "{why}");
    }
}

/// Changes that would take the last CPU are found before anything runs.
#[test]
fn one_cpu_has_to_stay() {
    let change =
        |at: u32, what: &str, cpu: u32| format!("[[change]]\nat = '{at} ms'\n{what} = [{cpu}]\n");
    let both = [change(1, "offline", 0), change(2, "offline", 1)].concat();
    let scenario_of = |text: &str| scenario(text).unwrap();
    assert_eq!(
        scenario_of(&both).leaves_no_cpu(2),
        Some(Nanos::from_millis(2))
    );
    assert_eq!(scenario_of(&both).leaves_no_cpu(3), None);
    let by_turns = [
        change(3, "offline", 1),
        change(1, "offline", 0),
        change(2, "online", 0),
    ]
    .concat();
    assert_eq!(scenario_of(&by_turns).leaves_no_cpu(2), None);
}
