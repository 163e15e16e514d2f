//! Scenarios of the library show what they are about, and every run can be repeated.

use clap::Parser;
use event::{Cpu, KernelEventKind, Nanos, Task};
use sim::scenario::Measured;
use trace::explain::{CauseKind, InversionKind, Remedy, Selection, Share, WaitKind, Who, explain};
use trace::timeline::{Options, Timeline};

use super::run::Keep;
use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: SimulateArguments,
}

fn job(line: &str) -> Job {
    let words = std::iter::once("simulate").chain(line.split(' '));
    let line = Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    line.arguments
        .job()
        .unwrap_or_else(|error| panic!("{}", error.text()))
}

fn outcome(line: &str) -> (Job, SimulationOutcome) {
    let job = job(line);
    let outcome = run::run(&job).unwrap_or_else(|error| panic!("{}", error.text()));
    (job, outcome)
}

/// Goal: text printed for a shell is taken as it was given. Method: words with and without special characters
/// of shells.
#[test]
fn words_are_quoted_for_a_shell() {
    assert_eq!(quoted("a/b-1.toml"), "a/b-1.toml");
    assert_eq!(quoted(""), "''");
    assert_eq!(quoted("two words"), "'two words'");
    assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
}

/// Goal: every scenario of the library runs and passes all checks, and a run is a function of its seed: equal
/// reports, whether or not the kernel's events are kept. Method: run each twice.
#[test]
fn every_scenario_runs_and_can_be_had_again() {
    for row in library::scenarios().rows {
        let (job, outcome) = outcome(&row[0]);
        assert_eq!(outcome.failed(), None, "{}", row[0]);
        assert!(outcome.ran.report.events > 0);
        let (again, _) = job.simulate(Keep::Kernel).unwrap();
        assert_eq!(again.report.trace.len() as u64, outcome.ran.report.events);
        assert_eq!(
            (
                again.report.trace_hash,
                again.report.threads,
                again.measured
            ),
            (
                outcome.ran.report.trace_hash,
                outcome.ran.report.threads,
                outcome.ran.measured
            ),
            "{}",
            row[0]
        );
    }
}

/// Goal: what is proposed fits the programs of a scenario: a game can have no fewer threads of a build.
/// Method: the game beside a build, whose compilers take CPUs from it.
#[test]
fn a_game_is_not_told_to_stop_a_build() {
    let (_, outcome) = outcome("game-and-build");
    let account = outcome.account.expect("it is explained");
    let program = |task: Task| account.timeline.program(task).unwrap_or("none").to_owned();
    let mut seen = 0;
    for inversion in &account.explanation.inversions {
        let Who::Task(runner) = inversion.runner else {
            continue;
        };
        let programs = [inversion.holder, runner].map(program);
        if inversion.kind == InversionKind::Preemption && programs == ["game", "build"] {
            assert!(
                !inversion.remedies.contains(&Remedy::FewerThreads),
                "{inversion:?}"
            );
            seen += 1;
        }
    }
    assert!(seen > 0);
}

/// Goal: another seed is another run where something is drawn, and the same where nothing is. Method: one
/// scenario of each kind.
#[test]
fn seeds_matter_where_something_is_drawn() {
    let hash = |line: &str| outcome(line).1.ran.report.trace_hash;
    assert_ne!(
        hash("game-and-build --seed 1"),
        hash("game-and-build --seed 2")
    );
    assert_eq!(
        hash("rtos-messages --seed 1"),
        hash("rtos-messages --seed 2")
    );
}

/// Goal: the library's first scenario is the one of source 000: the main thread burns the only CPU, for a
/// millisecond or more, while the thread it waits for could run nowhere else; and a job of 40 us waits for
/// more than 5 ms. Method: the running threads, from the kernel's events.
#[test]
fn the_inversion_of_source_000_is_shown() {
    let job = job("galaxy-s22-inversion");
    let (ran, _) = job.simulate(Keep::Kernel).unwrap();
    let task = |name: &str| {
        let threads = &ran.report.threads;
        let found = threads.iter().position(|thread| thread.name == name);
        Task(found.expect(name) as u32)
    };
    let [main, worker_2, worker_3] = ["UnityMain", "Job worker 2", "Job worker 3"].map(task);
    let span = |task: Task, name: &str| {
        let is_it = |m: &&Measured| m.thread == task.index() && m.name == name;
        let found = ran.measured.iter().find(is_it).expect(name);
        (found.begin, found.end)
    };
    let (begin, end) = span(main, "WaitForJobGroupID");
    assert!(end - begin >= Nanos::from_millis(1), "{begin} to {end}");

    // The threads that run on CPU 7, and the times at which that changes.
    let mut on_7 = Vec::new();
    for event in &ran.report.trace {
        if let (Cpu(7), KernelEventKind::Switch { next, .. }) = (event.cpu, event.what) {
            on_7.push((event.time, next));
        }
    }
    let at = |time: Nanos| on_7.iter().rfind(|(since, _)| *since <= time).unwrap().1;
    assert_eq!(at(begin), Some(main));
    let back = Nanos(8_700_000);
    assert!(on_7.iter().all(|&(time, _)| time <= begin || time >= back));
    // Worker 3 lost that CPU before, as runnable, and got none until the others came back.
    let lost = ran.report.trace.iter().rfind(|event| {
        event.time < begin
            && matches!(event.what, KernelEventKind::Switch { prev, .. } if prev == Some(worker_3))
    });
    let lost = lost.unwrap();
    let preempted = event::Left::Runnable;
    assert!(
        lost.cpu == Cpu(7)
            && matches!(lost.what, KernelEventKind::Switch { state, .. } if state == preempted)
    );
    let got = |task: Task| {
        let mut times = ran.report.trace.iter().filter(|event| {
            event.time > lost.time
                && matches!(event.what, KernelEventKind::Switch { next, .. } if next == Some(task))
        });
        times.next().unwrap().time
    };
    assert!(got(worker_3) >= back);

    let (begin, end) = span(worker_2, "small job");
    let woken = ran.report.trace.iter().rfind(|event| {
        event.time < begin
            && matches!(event.what, KernelEventKind::Waking { task, .. } if task == worker_2)
    });
    let waited = begin - woken.unwrap().time;
    assert!(waited > Nanos::from_millis(5), "{waited}");
    assert!(end - begin < Nanos::from_micros(100));
}

/// Goal: the simulation of source 000 is diagnosed correctly: UnityMain burns the only core for about 2 ms,
/// which the worker that it waits for could use; another worker, with a job of 40 us, could run for more than
/// 5 ms and has no core. Method: the recording that `--trace` writes, explained: one wait each.
#[test]
fn the_inversion_of_source_000_is_explained() {
    let job = job("galaxy-s22-inversion");
    let (ran, _) = job.simulate(Keep::Kernel).unwrap();
    let timeline = Timeline::new(recording::of(&job, &ran, None), &Options::default());
    assert!(timeline.losses().is_empty(), "{:?}", timeline.losses());
    let task = |name: &str| timeline.find(name)[0];
    let [main, worker_2, worker_3] = ["UnityMain", "Job worker 2", "Job worker 3"].map(task);

    let found = explain(&timeline, &Selection::default());
    let wait = &found.waits[0];
    assert_eq!((wait.thread, &*wait.name), (main, "WaitForJobGroupID"));
    assert_eq!(wait.sum(), wait.length());
    assert_eq!(wait.awaited.map(|awaited| awaited.thread), Some(worker_3));
    let cause = &wait.causes[0];
    assert_eq!(
        (cause.kind, cause.thread),
        (CauseKind::BusyWaitStolen, Some(worker_3))
    );
    assert!((1_500_000..2_500_000).contains(&cause.ns.0), "{}", cause.ns);
    let all = [Share {
        who: Who::Task(main),
        ns: cause.ns,
    }];
    assert_eq!(cause.by, all);
    let inversion = &found.inversions[0];
    assert_eq!(
        (inversion.wait, inversion.kind),
        (0, InversionKind::BusyWait)
    );
    assert_eq!(
        (inversion.holder, inversion.runner),
        (worker_3, Who::Task(main))
    );
    assert_eq!(
        (inversion.ns, inversion.remedies[0]),
        (cause.ns, Remedy::Park)
    );

    let of_worker_2 = Selection {
        threads: Some(vec![worker_2]),
        slices: Vec::new(),
        ..Selection::default()
    };
    let found = explain(&timeline, &of_worker_2);
    let wait = &found.waits[0];
    assert_eq!((wait.thread, wait.kind), (worker_2, WaitKind::Sleep));
    assert_eq!(wait.sum(), wait.length());
    // The CPU that it was given in between went away before it got anywhere.
    assert_eq!(wait.preemptions, Some(1));
    let could_have_run = |kind| {
        matches!(
            kind,
            CauseKind::WakeLatency | CauseKind::Preempted | CauseKind::NoCore
        )
    };
    let late = wait.causes.iter();
    let late = late.filter(|cause| cause.thread == Some(worker_2) && could_have_run(cause.kind));
    let late: u64 = late.map(|cause| cause.ns.0).sum();
    assert!((4_950_000..5_500_000).contains(&late), "{late}");
}

/// Goal: scenarios show the results of their sources. Method: the numbers of sources 002, 003 and 004 that a
/// run shows.
#[test]
fn scenarios_show_what_their_sources_say() {
    let span = |line: &str, name: &str| {
        let (_, outcome) = outcome(line);
        let found = outcome.ran.measured.iter().filter(|m| m.name == name);
        let lengths: Vec<u64> = found.map(|m| (m.end - m.begin).0).collect();
        lengths.iter().sum::<u64>() / lengths.len() as u64
    };
    let compute = span("yield-poll", "compute");
    assert!(
        (4_700_000_000..4_850_000_000).contains(&compute),
        "{compute}"
    );
    let wait = span("rtos-inversion", "wait for m");
    assert!((4_860_000..5_060_000).contains(&wait), "{wait}");
    let cycle = span("rtos-messages", "cycle");
    let tics = job("rtos-messages").machine.tic.unwrap();
    assert_eq!((tics.thousandths(Nanos(cycle)) + 500) / 1000, 1034);

    // Runs end where a thread loses its CPU or ends; there is one more of them than boundaries.
    let boundaries = |line: &str| {
        let (_, outcome) = outcome(line);
        let threads = outcome.ran.report.threads.iter();
        threads
            .map(|t| t.voluntary + t.involuntary + 1)
            .sum::<u64>()
            - 1
    };
    assert_eq!(boundaries("virtual-slice-example"), 7);
    assert_eq!(
        boundaries("virtual-slice-example --policy uniform-slice"),
        9
    );
}

/// Goal: every job system runs the same graph right on a simulated machine. Method: source 001's graph with
/// few workers, by a file each.
#[test]
fn every_job_system_runs_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    let mut took = Vec::new();
    for system in ["paceline", "unity-2017.3", "unity-2021.3", "unity-2022.2"] {
        let path = folder.path().join(format!("{system}.toml"));
        let text = format!(
            "about = 'x'\nmachine = 'ryzen-3950x'\npolicy = 'eevdf-6.6'\n[program]\nkind = 'frames'\n\
             system = '{system}'\nframes = 2\nfps = 0\n"
        );
        std::fs::write(&path, text).unwrap();
        let (_, outcome) = outcome(&format!("{} --workers 7", path.display()));
        assert_eq!(outcome.failed(), None, "{system}");
        assert_eq!(
            (outcome.told.right, outcome.ran.report.threads.len()),
            (2, 8)
        );
        took.push(
            outcome
                .told
                .frames
                .iter()
                .map(|(begin, end)| (*end - *begin).0)
                .sum::<u64>(),
        );
    }
    assert!(
        took[1..].iter().all(|&other| other > took[0]),
        "paceline is quickest: {took:?}"
    );
}

/// Goal: a simulated job system asks the kernel for help, gets it and reports it, and the command that
/// repeats the run asks, too; help without a job system to ask for it is refused. Method: frames beside four
/// threads that compute without end, with a larger share and without; a scenario without a program.
#[test]
fn a_job_system_asks_for_help() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hogs.toml");
    let text = "about = 'x'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\nuntil = '1 s'\n\
                [[thread]]\nname = 'hog'\ncount = 4\nphases = [{ work = '1 s' }]\n\
                [program]\nkind = 'frames'\nframes = 30\nfps = 60\njobs = 400\n";
    std::fs::write(&path, text).unwrap();
    let frames = |options: &str| {
        let (job, outcome) = outcome(&format!("{}{options}", path.display()));
        assert_eq!(outcome.failed(), None);
        let json = serde_json::to_value(report::json(&job, &outcome)).unwrap();
        (job.replay.clone(), json)
    };
    let (_, without) = frames("");
    assert_eq!(without["os_help"], serde_json::json!([]));
    let (replay, with) = frames(" --os-help nice,uclamp");
    assert!(
        replay.contains("--os-help nice=-10,uclamp=1024"),
        "{replay}"
    );
    let granted = |place: usize| with["os_help"][place]["granted"].as_bool();
    assert_eq!((granted(0), granted(1)), (Some(true), Some(false)));
    // Frames without help are short or long by turns, so a quantile would say where the turn is.
    let mean = |json: &serde_json::Value| json["frame_ns"]["mean"].as_u64().unwrap();
    assert!(
        3 * mean(&with) < 2 * mean(&without),
        "{} {}",
        mean(&with),
        mean(&without)
    );
    let refused = run::run(&job("rtos-messages --os-help nice"));
    let text = refused.err().expect("nobody asks").text();
    assert!(text.contains("--os-help"), "{text}");
}

/// Runs this scenario.
fn outcome_of(text: &str) -> SimulationOutcome {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    outcome(path.to_str().unwrap()).1
}

/// Goal: a job system that is told of its quota has no more threads than that pays for, and one that uses
/// less than its quota is never throttled; one that uses all of its threads' time is. Method: frames on 16
/// CPUs, at a pace with the time of two, and one after the other with that of one and a half.
#[test]
fn a_job_system_heeds_its_quota() {
    let with = |cpus: &str, frames: u32, fps: u32| {
        let text = format!(
            "about = 'a test'\nmachine = 'ryzen-5800x'\npolicy = 'eevdf-6.18'\n\
             [quota]\ncpus = {cpus}\nthreads = ['main']\n\
             [program]\nkind = 'frames'\nframes = {frames}\nfps = {fps}\njobs = 60\npiece = '20 us'\n"
        );
        let outcome = outcome_of(&text);
        let failed = outcome.failed().map(|check| check.note.clone());
        assert_eq!(failed, None, "{cpus}");
        let report = outcome.ran.report;
        assert_eq!(report.threads.len(), 2, "the main thread and a worker");
        report.quota.unwrap()
    };
    let paced = with("2.0", 20, 20);
    assert_eq!((paced.throttled_periods, paced.throttled), (0, Nanos::ZERO));
    let greedy = with("1.5", 40, 0);
    assert!(greedy.throttled_periods + 1 >= greedy.periods, "{greedy:?}");
}

/// Goal: a policy or machine that cannot enforce a quota is refused. Method: a policy and a machine of each
/// kind.
#[test]
fn a_quota_needs_a_fair_policy_and_ticks() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("scenario.toml");
    let text = "about = 'a test'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\n[quota]\ncpus = 0.5\n\
                [[thread]]\nname = 'a'\nphases = [{ work = '1 s' }]\n";
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    for (more, part) in [
        ("--policy fifo", "policy fifo"),
        ("--machine ideal-2", "no ticks"),
    ] {
        let refused = run::run(&job(&format!("{path} {more}"))).err();
        let text = refused.expect(more).text().to_owned();
        assert!(text.contains(part), "{text}");
    }
}
