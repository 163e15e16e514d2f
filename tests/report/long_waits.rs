//! Waits that report themselves when they last.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use event::Nanos;
use paceline::Builder;
use platform::Thread;
use sim::{Outcome, Sim, SimConfig};

use super::Site;

/// The verdicts of the reports of a program, each with its time in milliseconds.
type Told = Arc<Mutex<Vec<(u64, String)>>>;

/// A hook that keeps reports, and a site that has it.
fn with_told(seed: u64, program: impl FnOnce(Site, &Told)) {
    let told = Told::default();
    let report = Sim::run(SimConfig::new(seed), |sim| {
        let (noted, clock) = (told.clone(), sim.clone());
        let js = Builder::with_platform(sim.clone())
            .workers(1)
            .stuck_after(Duration::from_secs(5))
            .on_report(move |report| {
                let verdict = super::without_places(&report.verdict.join("\n"));
                let millis = clock.time().0 / 1_000_000;
                noted.lock().unwrap().push((millis, verdict));
            })
            .build()
            .unwrap();
        let js = Arc::new(js);
        program(Site { sim, js }, &told);
    });
    report.expect_finished();
}

/// Goal: a wait is reported when it has lasted as long as it may, and then at doubling intervals, by itself;
/// waits that become long at the same time share a report; waits with a timeout are not reported, and
/// nothing is when none lasts. Method: simulated time, and what a hook is told.
#[test]
fn waits_that_last_are_reported_at_doubling_intervals() {
    for seed in 0..8 {
        with_told(seed, |site, told| {
            let gate = site.js.event("gate");
            let id = gate.id();
            let timed = site.thread("timed", move |js| {
                assert!(!js.wait_timeout(id, Duration::from_secs(7)).unwrap());
            });
            site.sleep(1_000);
            let waits = ["a", "b"].map(|name| site.thread(name, move |js| js.wait(id)));
            site.sleep(30_000);
            let times: Vec<u64> = told.lock().unwrap().iter().map(|(at, _)| *at).collect();
            assert_eq!(times, [6_000, 11_000, 21_000]);
            for (at, verdict) in told.lock().unwrap().iter() {
                let others = if *at < 7_000 {
                    "2 other threads"
                } else {
                    "1 other thread"
                };
                assert!(
                    verdict.contains(&format!(" and {others} wait up to ")),
                    "{at}: {verdict}"
                );
                let end = "for event 'gate', which is not completed";
                assert!(verdict.ends_with(end), "{at}: {verdict}");
            }
            gate.complete();
            timed.join().unwrap();
            for thread in waits {
                thread.join().unwrap();
            }
            // A wait that does not last is not reported.
            let before = told.lock().unwrap().len();
            let gate = site.js.event("gate");
            let id = gate.id();
            let short = site.thread("short", move |js| js.wait(id));
            site.sleep(4_000);
            gate.complete();
            short.join().unwrap();
            site.sleep(60_000);
            assert_eq!(told.lock().unwrap().len(), before);
        });
    }
}

/// Goal: a worker that waits inside a job reports, too, and goes on. Method: a job that waits for an event.
#[test]
fn a_wait_inside_a_job_is_reported() {
    with_told(1, |site, told| {
        let gate = site.js.event("gate");
        let id = gate.id();
        let job = site.js.job("outer").run(move |cx| {
            cx.wait(id);
            42
        });
        site.js.flush();
        site.sleep(6_000);
        let (at, verdict) = told.lock().unwrap()[0].clone();
        assert_eq!(at, 5_000);
        let wait = "worker 0 waits 5.0 s in 'outer' for event 'gate', which is not completed";
        assert_eq!(verdict, wait);
        gate.complete();
        assert_eq!(job.wait(), 42);
    });
}

/// Goal: a hook that panics, or that itself waits, changes nothing but a count. Method: a wait that is
/// reported three times, and then ends.
#[test]
fn hooks_for_reports_may_panic_and_wait() {
    let report = Sim::run(SimConfig::new(3), |sim| {
        let home = Arc::new(Mutex::new(None::<Site>));
        let asked = home.clone();
        let js = Builder::with_platform(sim.clone())
            .workers(1)
            .stuck_after(Duration::from_millis(10))
            .on_report(move |_| {
                let site = asked.lock().unwrap().clone();
                if let Some(site) = site {
                    // It uses up wake-ups that were meant for the wait around it.
                    assert_eq!(site.js.job("asked").run(|_| 1).wait(), 1);
                    crate::support::fail("on purpose");
                }
            })
            .build()
            .unwrap();
        let site = Site {
            sim,
            js: Arc::new(js),
        };
        *home.lock().unwrap() = Some(site.clone());
        let gate = site.js.event("gate");
        let id = gate.id();
        let waits = site.thread("waits", move |js| js.wait(id));
        site.sleep(75);
        gate.complete();
        waits.join().unwrap();
        assert_eq!(site.js.stats().hook_panics, 3, "after 10, 20 and 40 ms");
        home.lock().unwrap().take();
    });
    report.expect_finished();
}

/// Goal: without the setting nothing watches the time: a program that hangs rests for ever. Method: the
/// simulated machine finds that no thread can go on, at the time at which the last one came to rest; with the
/// setting it finds no such time.
#[test]
fn nothing_wakes_a_wait_that_is_not_to_be_reported() {
    let run = |after: Option<Duration>| {
        let config = SimConfig {
            until: Nanos::from_secs(100),
            ..SimConfig::new(1)
        };
        Sim::run(config, |sim| {
            let builder = Builder::with_platform(sim).workers(1).on_report(|_| ());
            let builder = match after {
                Some(time) => builder.stuck_after(time),
                None => builder,
            };
            let js = builder.build().unwrap();
            let gate = js.event("gate");
            js.wait(&gate);
        })
    };
    let off = run(None);
    assert!(matches!(off.outcome, Outcome::Deadlock(_)), "{off}");
    let on = run(Some(Duration::from_secs(1)));
    assert_eq!(on.outcome, Outcome::TimeUp, "{on}");
}
