//! Goal: of the frames in flight the one with the earliest deadline goes first, in whatever order they began;
//! a wait goes before that; frames that do not overlap are as if there were no such rule.
//!
//! Method: one worker of a simulated machine, under random orders of steps, that is busy while the frames'
//! jobs are made. The order in which the bodies begin is judged.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, Context, Frame, JobId, JobSystem, Lane};
use sim::Sim;

use crate::support::{Random, delays, each_seed};

/// A worker takes a job from behind all others at most once in so many looks.
const FAIRNESS: usize = 61;

/// When all bodies have run.
const END: Nanos = Nanos::from_secs(2);

/// The names of the bodies, in the order in which they began.
type Order = Arc<Mutex<Vec<&'static str>>>;

/// Runs a program on one worker, which is busy for the first second.
fn on_one_worker(
    seed: u64,
    program: impl FnOnce(&Sim, &JobSystem<Sim>, &Order) + Send + 'static,
) -> Vec<&'static str> {
    let order = Order::default();
    let notes = order.clone();
    let report = Sim::run(delays(seed), move |sim| {
        let js = Builder::with_platform(sim.clone()).workers(1);
        let js = js.build().unwrap();
        js.schedule(|cx| cx.work(Nanos::from_secs(1)));
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
        program(&sim, &js, &notes);
        sim.sleep_until(END);
    });
    report.expect_finished();
    let order = order.lock().unwrap();
    order.clone()
}

fn job(frame: &Frame<'_, Sim>, name: &'static str, order: &Order) -> JobId {
    let order = order.clone();
    frame.job(name).schedule(move |cx| {
        order.lock().unwrap().push(name);
        cx.work(Nanos::from_micros(1));
    })
}

/// Whether all of `first` come before all of `then`.
fn come_first(order: &[&str], first: &str, then: &str) -> bool {
    let last = order.iter().rposition(|&name| name == first);
    last < order.iter().position(|&name| name == then)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn the_earlier_of_two_frames_goes_first() {
    let order = on_one_worker(1, |sim, js, order| {
        let render = js.frame("render", millis(2000));
        let update = js.frame("update", millis(3000));
        for _ in 0..20 {
            job(&update, "update", order);
            job(&render, "render", order);
        }
        sim.sleep_until(END);
    });
    assert_eq!(order.len(), 40);
    assert!(come_first(&order, "render", "update"), "{order:?}");
}

/// Goal: a frame with an earlier deadline than one whose jobs are queued already goes before those. Method:
/// as above, with the picture's jobs first.
#[test]
fn a_frame_that_begins_later_with_an_earlier_deadline_goes_first() {
    let order = on_one_worker(2, |sim, js, order| {
        let picture = js.frame("picture", millis(2000));
        (0..20).for_each(|_| _ = job(&picture, "picture", order));
        let sound = js.frame("sound", millis(100));
        (0..20).for_each(|_| _ = job(&sound, "sound", order));
        (0..5).for_each(|_| _ = job(&picture, "picture", order));
        sim.sleep_until(END);
    });
    assert_eq!(order.len(), 45);
    assert!(come_first(&order, "sound", "picture"), "{order:?}");
}

/// Goal: a wait for a job of the later frame brings it before all of the earlier one. Method: a thread that
/// runs nothing itself waits for the last of 20.
#[test]
fn a_wait_raises_a_job_of_a_later_frame() {
    let order = on_one_worker(3, |sim, js, order| {
        let render = js.frame("render", millis(2000));
        let update = js.frame("update", millis(3000));
        (0..20).for_each(|_| _ = job(&render, "render", order));
        (0..19).for_each(|_| _ = job(&update, "update", order));
        let wanted = job(&update, "wanted", order);
        let wait = || update.wait_timeout(wanted, Duration::from_secs(3600));
        assert!(js.in_lane(Lane::Frame, wait).unwrap());
        sim.sleep_until(END);
    });
    assert_eq!(order[0], "wanted", "{order:?}");
    assert!(come_first(&order, "render", "update"), "{order:?}");
}

/// Goal: the children of a job are where the job is, and lanes that are named are lowered, too, but not the
/// background. Method: the lanes in a report.
#[test]
fn named_lanes_are_lowered() {
    on_one_worker(4, |_, js, _| {
        let gate = js.event("gate");
        let render = js.frame("render", millis(2000));
        let update = js.frame("update", millis(3000));
        let lane = |frame: &Frame<'_, Sim>, name, lane| {
            let job = frame.job(name).lane(lane).after(&gate);
            job.schedule(|_| ());
            let report = js.report();
            report
                .jobs
                .iter()
                .find(|job| job.label.name == name)
                .unwrap()
                .lane
        };
        assert_eq!(lane(&render, "a", Lane::Frame), Lane::Frame);
        assert_eq!(lane(&update, "b", Lane::Frame), Lane::Normal);
        assert_eq!(lane(&update, "c", Lane::Background), Lane::Background);
        assert_eq!(lane(&update, "d", Lane::Share2), Lane::Share2);
        let sound = js.frame("sound", millis(100));
        assert_eq!(lane(&sound, "e", Lane::Normal), Lane::Frame);
        assert_eq!(lane(&sound, "f", Lane::Background), Lane::Background);
        assert_eq!(lane(&render, "g", Lane::Frame), Lane::Normal);
        drop((sound, render));
        assert_eq!(lane(&update, "h", Lane::Frame), Lane::Frame);
        gate.complete();
    });
}

/// Goal: when the earlier frame has ended, the jobs of the next are where normal ones are, those that were
/// ready and those that were not. Method: the lengths of the queues in a report, and all run.
#[test]
fn the_next_frame_moves_up() {
    let order = on_one_worker(5, |_, js, order| {
        let render = js.frame("render", millis(2000));
        let update = js.frame("update", millis(3000));
        let gate = js.event("gate");
        for _ in 0..10 {
            let notes = order.clone();
            job(&update, "ready", order);
            let held = update.job("held").after(&gate);
            held.schedule(move |_| notes.lock().unwrap().push("held"));
        }
        drop(render);
        gate.complete();
        assert_eq!(js.report().beside, 0);
        (0..10).for_each(|_| _ = job(&update, "new", order));
    });
    assert_eq!(order.len(), 30);
}

/// A random program: frames with deadlines, jobs of theirs that depend on each other and make others.
fn random_frames(seed: u64) {
    let mut random = Random::new(seed ^ 0xf1a3_0000);
    let names = ["a", "b", "c", "d"];
    let frames = 2 + random.below(3);
    // No two alike, so that the first one is known.
    let mut deadlines: Vec<u64> = (0..frames).map(|frame| 1500 + 10 * frame as u64).collect();
    for place in 1..frames {
        deadlines.swap(place, random.below(place + 1));
    }
    let first = (0..frames).min_by_key(|&frame| deadlines[frame]).unwrap();
    let order = on_one_worker(seed, move |sim, js, order| {
        let begin = |frame: usize| js.frame(names[frame], millis(deadlines[frame]));
        let in_flight: Vec<_> = (0..frames).map(begin).collect();
        let mut last: Vec<Vec<JobId>> = vec![Vec::new(); frames];
        for _ in 0..4 + random.below(60) {
            let frame = random.below(frames);
            let (notes, name) = (order.clone(), names[frame]);
            let children = random.below(3);
            let after = (0..random.below(3).min(last[frame].len()))
                .map(|_| *random.pick(&last[frame]))
                .collect::<Vec<_>>();
            let job = in_flight[frame].job(name).after_all(after);
            last[frame].push(job.schedule(move |cx: &Context<'_, Sim>| {
                notes.lock().unwrap().push(name);
                for _ in 0..children {
                    let notes = notes.clone();
                    cx.schedule(move |_| notes.lock().unwrap().push(name));
                }
            }));
        }
        sim.sleep_until(END);
        drop(in_flight);
    });
    // Jobs of the first frame depend on nothing else, so one of them is always ready until all have run.
    let ran = order.iter().rposition(|&name| name == names[first]);
    let others = order[..ran.map_or(0, |last| last + 1)].iter();
    let others = others.filter(|&&name| name != names[first]).count();
    let excused = 1 + order.len() / FAIRNESS;
    assert!(
        others <= excused,
        "{others} before {}: {order:?}",
        names[first]
    );
}

#[test]
fn the_earliest_deadline_goes_first() {
    each_seed(
        "overlapping::the_earliest_deadline_goes_first",
        1000,
        random_frames,
    );
}

/// A job, and another one after it, and so on.
fn follow(cx: &Context<'_, Sim>, ends: Arc<AtomicBool>) {
    cx.work(Nanos::from_micros(2));
    if !ends.load(Relaxed) {
        cx.schedule(move |cx| follow(cx, ends));
    }
}

/// Goal: later frames have a turn now and then beside an earlier one that always has work, and beside work
/// from outside. Method: jobs that follow on each other for ever in the earlier frame, a thread that
/// schedules one from outside all the time, and five jobs of the later frame.
#[test]
fn a_later_frame_has_its_turn() {
    let report = Sim::run(delays(6), move |sim| {
        let js = Builder::with_platform(sim.clone()).workers(1).build();
        let js = js.unwrap();
        let first = js.frame("first", millis(10_000));
        let later = js.frame("later", millis(20_000));
        let ends = Arc::new(AtomicBool::new(false));
        for _ in 0..4 {
            let ends = ends.clone();
            first.schedule(move |cx| follow(cx, ends));
        }
        let ids: Vec<JobId> = (0..5).map(|_| later.schedule(|_| ())).collect();
        let had_turn = (0..20_000).any(|_| {
            js.schedule(|_| ());
            sim.sleep_until(sim.time() + Nanos::from_micros(5));
            ids.iter().all(|&id| js.is_done(id))
        });
        ends.store(true, Relaxed); // The job system ends when all have run.
        assert!(had_turn, "the later frame never had its turn");
    });
    report.expect_finished();
}

/// Goal: frames one after the other change nothing. Method: the lanes and the queues in reports.
#[test]
fn frames_one_after_the_other_are_as_before() {
    let js = Builder::new().workers(1).build().unwrap();
    for _ in 0..3 {
        let frame = js.frame("frame", millis(16));
        let gate = js.event("gate");
        let job = frame.job("job").after(&gate).schedule(|_| ());
        let report = js.report();
        let live = report.jobs.iter().find(|job| job.label.name == "job");
        assert_eq!(live.unwrap().lane, Lane::Normal);
        assert_eq!((report.front, report.beside), (0, 0));
        gate.complete();
        js.wait(job);
    }
}
