//! Policies under the simulated kernel: the results of their own tests on a clock without costs hold on the
//! whole machine, too.

use event::{KernelEventKind, Nanos};
use paceline_sim::scenario::{Scenario, run};
use paceline_sim::{Machine, SimConfig, SimReport};

/// Runs threads, described in TOML, on an ideal CPU.
fn on_one_cpu(policy: &str, threads: &str) -> SimReport {
    on(Machine::ideal(1), policy, threads)
}

/// The same with ticks.
fn on_one_cpu_at_250_hz(policy: &str, threads: &str) -> SimReport {
    let mut machine = Machine::ideal(1);
    machine.kernel.tick = Nanos::from_millis(4);
    on(machine, policy, threads)
}

fn on(machine: Machine, policy: &str, threads: &str) -> SimReport {
    let head = "about = \"a test\"\nmachine = \"ideal-1\"\npolicy = \"any\"\n";
    let scenario = Scenario::parse("test", &format!("{head}{threads}")).expect("it is a scenario");
    let mut config = SimConfig::on(machine, policy, 1);
    config.trace = true;
    config.checks = true;
    config.until = scenario.until.unwrap_or(config.until);
    let report = run(&scenario, config.clone()).report;
    let again = run(&scenario, config).report;
    assert_eq!(report.trace_hash, again.trace_hash);
    assert_eq!(report.violation, None);
    report
}

/// The stints in order, each with its thread and length; A is the scenario's first thread.
fn stints(report: &SimReport) -> Vec<(char, Nanos)> {
    let mut stints: Vec<(char, Nanos)> = Vec::new();
    let mut running = None;
    for event in &report.trace {
        if let KernelEventKind::Switch { next, .. } = event.what {
            if let Some((task, from)) = running {
                stints.push((char::from(b'A' + task), event.time - from));
            }
            running = next.map(|task| (task.0 as u8, event.time));
        }
    }
    stints
}

/// Goal: the two orders printed in source 004, on the whole machine. Method: its example; A comes back by a
/// sleep that ends within the first burst.
#[test]
fn the_orders_of_source_004() {
    let threads = r#"
        [[thread]]
        name = "A"
        slice = "1 ms"
        phases = [{ work = "1 ms" }, { sleep = "3 ms" }, { work = "1 ms" }]
        [[thread]]
        name = "B"
        slice = "3 ms"
        phases = [{ work = "3 ms" }]
        [[thread]]
        name = "C"
        count = 2
        slice = "6 ms"
        phases = [{ work = "6 ms" }]
    "#;
    let orders = [
        ("uniform-slice", "ABBCCDDABCCDDCCDD", 9),
        ("virtual-slice", "ABBCCCDABCCCDDDDD", 7),
    ];
    for (policy, expected, boundaries) in orders {
        let stints = stints(&on_one_cpu(policy, threads));
        let letters = stints
            .iter()
            .map(|(letter, time)| letter.to_string().repeat((time.0 / 1_000_000) as usize));
        assert_eq!(letters.collect::<String>(), expected, "{policy}");
        assert_eq!(stints.len() - 1, boundaries, "{policy}");
    }
}

/// Goal: source 003's shares of a block of 5 µs are exact on the whole machine. Method: four threads that
/// never block, four blocks.
#[test]
fn the_shares_of_source_003() {
    let thread = |percent: u32| {
        format!(
            "[[thread]]\nname = \"p{percent}\"\npercent = {percent}\nrepeat = \"forever\"\n\
             phases = [{{ work = \"1 ms\" }}]\n"
        )
    };
    let threads: String = [25, 10, 10, 55].map(thread).concat();
    let report = on_one_cpu("rtos", &format!("until = \"20001 ns\"\n{threads}"));
    let block = [('A', 1250), ('B', 500), ('C', 500), ('D', 2750)];
    let expected: Vec<_> = (0..4).flat_map(|_| block).collect();
    let stints = stints(&report);
    let got: Vec<_> = stints.iter().map(|(who, time)| (*who, time.0)).collect();
    assert_eq!(got[..16], expected);
}

/// Goal: source 003's priority inversion: a thread with a bad priority holds the mutex, one in the middle
/// computes, the best one waits. It waits for both with priorities that cannot be inherited, else only for
/// the mutex. Method: 5 ms of work under the mutex, 300 ms in the middle; the time at which the best one
/// ends.
#[test]
fn inheritance_bounds_the_inversion() {
    let threads = |inheriting: &str| {
        format!(
            r#"
            inheriting-mutexes = [{inheriting}]
            [[thread]]
            name = "low"
            priority = 30
            phases = [{{ lock = "m" }}, {{ work = "5 ms" }}, {{ unlock = "m" }}]
            [[thread]]
            name = "middle"
            priority = 20
            start = "1 ms"
            phases = [{{ work = "300 ms" }}]
            [[thread]]
            name = "high"
            priority = 10
            start = "1 ms"
            phases = [{{ lock = "m" }}, {{ work = "1 ms" }}, {{ unlock = "m" }}]
            "#
        )
    };
    let cases = [
        ("rtos", "\"m\"", 6),
        ("rtos", "", 306),
        ("rtos-plain", "\"m\"", 306),
        ("rtos-unique", "\"m\"", 306),
    ];
    for (policy, inheriting, expected) in cases {
        let report = on_one_cpu(policy, &threads(inheriting));
        let high = report.threads.iter().find(|thread| thread.name == "high");
        let ended = high.expect("it is in the report").ended;
        assert_eq!(
            ended,
            Nanos::from_millis(expected),
            "{policy} [{inheriting}]"
        );
    }
}

/// Goal: inheritance works between real-time threads of Linux and does nothing between fair ones.
/// Method: L (10) works for 5 ms under a lock, M (20) is a hog of 300 ms, H (30) wants the lock:
/// measured on Linux 6.18 were 304.0 ms without inheritance, 4.96 with. The same with nice 19, 0 and −10
/// and 6 ms of work: L has 1 ms alone, then a tick, and then waits until M has had its 68 times as much,
/// with inheritance and without.
#[test]
fn inheritance_under_linux() {
    let threads = |inheriting: &str, work: u64, attrs: &[String; 3]| {
        let [low, middle, high] = attrs;
        format!(
            r#"
            inheriting-mutexes = [{inheriting}]
            [[thread]]
            name = "low"
            {low}
            phases = [{{ lock = "m" }}, {{ work = "{work} ms" }}, {{ unlock = "m" }}]
            [[thread]]
            name = "middle"
            {middle}
            start = "1 ms"
            phases = [{{ work = "300 ms" }}]
            [[thread]]
            name = "high"
            {high}
            start = "1 ms"
            phases = [{{ lock = "m" }}, {{ work = "1 us" }}, {{ unlock = "m" }}]
            "#
        )
    };
    let fifo = ["priority = 10", "priority = 20", "priority = 30"]
        .map(|priority| format!("discipline = \"fifo\"\n{priority}"));
    let nice = ["nice = 19", "nice = 0", "nice = -10"].map(str::to_owned);
    let high_ended = |policy: &str, inheriting: &str, work: u64, attrs: &[String; 3]| {
        let report = on_one_cpu_at_250_hz(policy, &threads(inheriting, work, attrs));
        let high = report.threads.iter().find(|thread| thread.name == "high");
        high.expect("it is in the report").ended
    };
    for policy in ["fifo", "eevdf-6.18", "eevdf-6.6", "cfs-4.12"] {
        let micros = |inheriting| high_ended(policy, inheriting, 5, &fifo).0 / 1000;
        assert_eq!((micros("\"m\""), micros("")), (5_001, 305_001), "{policy}");
    }
    for policy in ["eevdf-6.18", "eevdf-6.6", "cfs-4.12"] {
        let with = high_ended(policy, "\"m\"", 6, &nice);
        assert_eq!(with, high_ended(policy, "", 6, &nice), "{policy}");
        assert!(with > Nanos::from_millis(250), "{policy}: {with}");
    }
}

/// Goal: the whole machine has Linux's ticks: stints of 4.000 ms of two spinners, 12 and 4 ms of nice 0 and
/// 5, 100 ms under RR. Method: the most frequent stint of each thread in 2 s.
#[test]
fn stints_under_linux() {
    let spinners = |nice: i8| {
        format!(
            r#"
            until = "2 s"
            [[thread]]
            name = "A"
            phases = [{{ work = "5 s" }}]
            [[thread]]
            name = "B"
            nice = {nice}
            phases = [{{ work = "5 s" }}]
            "#
        )
    };
    let cases = [
        ("eevdf-6.18", 0, [4, 4]),
        ("eevdf-6.6", 0, [4, 4]),
        ("eevdf-6.18", 5, [12, 4]),
        ("rr", 0, [100, 100]),
    ];
    for (policy, nice, expected) in cases {
        let report = on_one_cpu_at_250_hz(policy, &spinners(nice));
        let stints = stints(&report);
        for (name, expected) in ['A', 'B'].into_iter().zip(expected) {
            let mine = stints.iter().filter(|(who, _)| *who == name);
            let count = mine.clone().count();
            let usual = mine.filter(|(_, time)| *time == Nanos::from_millis(expected));
            assert!(
                usual.count() * 10 >= count * 8,
                "{policy}, {nice}: {stints:?}"
            );
        }
    }
}
