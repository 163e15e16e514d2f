//! Goal: of any two frames in flight the one with the earlier deadline goes first, in whatever order they
//! began; so do runs of built graphs that they start; a wait goes before that; frames that do not overlap are
//! as if there were no such rule.
//!
//! Method: one worker of a simulated machine, under random orders of steps, that is busy while the frames'
//! jobs are made. The order in which the bodies begin is judged.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, BuiltGraph, Context, Frame, JobId, JobSystem, Lane};
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

/// A graph of jobs that note this name: two, and one after both, which says its lane.
fn graph(js: &JobSystem<Sim>, name: &'static str, order: &Order) -> BuiltGraph<'static, (), Sim> {
    let mut graph = js.graph(name);
    let body = |notes: Order| move |_: &Context<'_, Sim>| notes.lock().unwrap().push(name);
    let first = graph.job("first").run(body(order.clone()));
    let second = graph.job("second").run(body(order.clone()));
    let both = graph.job("both").after(first).after(second);
    both.lane(Lane::Normal).run(body(order.clone()));
    graph.build()
}

/// Goal: a run of a graph is in the order of the frame that starts it, with nodes that name their lane and
/// nodes that do not, also if it was started before all others. Method: three frames, the last one first.
#[test]
fn graphs_are_in_the_order_of_their_frames() {
    let order = on_one_worker(10, |sim, js, order| {
        let begin = |name, deadline| js.frame(name, millis(deadline));
        let frames = [("a", 2000), ("b", 3000), ("c", 4000)].map(|(name, at)| begin(name, at));
        let started: Vec<_> = [2, 1, 0]
            .into_iter()
            .flat_map(|at| (0..4).map(move |_| at))
            .map(|at| {
                let frame: &Frame<'_, Sim> = &frames[at];
                job(frame, frame.label(), order);
                frame.start(graph(js, frame.label(), order), Box::new(()))
            })
            .collect();
        sim.sleep_until(END);
        assert!(started.iter().all(|started| started.is_done()));
        drop(frames);
    });
    assert_eq!(order.len(), 3 * 4 * 4);
    assert!(order.is_sorted(), "{order:?}");
}

/// Goal: a graph of a frame that begins with an earlier deadline goes before what is queued; a node that says
/// the normal lane does, too. Method: as above, with the first deadline last.
#[test]
fn a_graph_of_a_frame_that_is_ahead_goes_first() {
    let order = on_one_worker(11, |sim, js, order| {
        let picture = js.frame("picture", millis(2000));
        (0..10).for_each(|_| _ = job(&picture, "picture", order));
        let sound = js.frame("sound", millis(1000));
        let later = sound.start(graph(js, "later sound", order), Box::new(()));
        let first = js.frame("first sound", millis(100));
        let at_once = first.start(graph(js, "first sound", order), Box::new(()));
        (0..5).for_each(|_| _ = job(&picture, "picture", order));
        sim.sleep_until(END);
        assert!(later.is_done() && at_once.is_done());
    });
    assert_eq!(order.len(), 21);
    assert!(
        come_first(&order, "first sound", "later sound"),
        "{order:?}"
    );
    assert!(come_first(&order, "later sound", "picture"), "{order:?}");
}

/// Goal: a wait for a run raises it. Method: the last of ten graphs of a later frame is waited for, by a
/// thread that runs none of it before the worker does.
#[test]
fn a_wait_raises_a_run_of_a_later_frame() {
    let order = on_one_worker(12, |sim, js, order| {
        let render = js.frame("render", millis(2000));
        let update = js.frame("update", millis(3000));
        (0..20).for_each(|_| _ = job(&render, "render", order));
        let start = |name| update.start(graph(js, name, order), Box::new(()));
        let others: Vec<_> = (0..9).map(|_| start("update")).collect();
        let wanted = start("wanted");
        js.in_lane(Lane::Frame, || drop(wanted));
        sim.sleep_until(END);
        assert!(others.iter().all(|started| started.is_done()));
    });
    assert!(come_first(&order, "wanted", "render"), "{order:?}");
    assert!(come_first(&order, "render", "update"), "{order:?}");
}

/// Goal: when the first frame ends, what the second had made moves up, and the third's stays behind it.
/// Method: jobs of three frames; the first one ends while all are queued, and the second makes more.
#[test]
fn the_third_frame_stays_behind_the_second() {
    let order = on_one_worker(13, |sim, js, order| {
        let begin = |name, deadline| js.frame(name, millis(deadline));
        let (a, b, c) = (begin("a", 2000), begin("b", 3000), begin("c", 4000));
        (0..5).for_each(|_| _ = job(&c, "c", order));
        (0..5).for_each(|_| _ = job(&b, "b", order));
        let gate = js.event("gate");
        for _ in 0..5 {
            let notes = order.clone();
            let held = c.job("held").after(&gate);
            held.schedule(move |_| notes.lock().unwrap().push("c"));
            let notes = order.clone();
            let held = b.job("held").after(&gate);
            held.schedule(move |_| notes.lock().unwrap().push("b"));
        }
        drop(a);
        gate.complete();
        assert_eq!(js.report().beside, 10);
        (0..5).for_each(|_| _ = job(&b, "b", order));
        sim.sleep_until(END);
    });
    assert_eq!(order.len(), 25);
    assert!(order.is_sorted(), "{order:?}");
}

/// A random program: frames with deadlines, which begin at any time, some end before the worker is free;
/// jobs of theirs that depend on each other and make others, and graphs that they start.
fn random_frames(seed: u64) {
    let mut random = Random::new(seed ^ 0xf1a3_0000);
    let names = ["a", "b", "c", "d", "e"];
    let frames = 2 + random.below(4);
    let ended = Arc::new(AtomicUsize::new(usize::MAX));
    let has_ended = ended.clone();
    // No two alike. The names are in the order of the deadlines.
    let mut unbegun: Vec<usize> = (0..frames).collect();
    for place in 1..frames {
        unbegun.swap(place, random.below(place + 1));
    }
    let order = on_one_worker(seed, move |sim, js, order| {
        let mut in_flight: Vec<(usize, Frame<'_, Sim>)> = Vec::new();
        let mut last: Vec<Vec<JobId>> = vec![Vec::new(); frames];
        let mut started = Vec::new();
        for _ in 0..10 + random.below(60) {
            if !unbegun.is_empty() && (in_flight.is_empty() || random.chance(20)) {
                let frame = unbegun.pop().unwrap();
                // All steps until the worker is free take less time than lies between two.
                let deadline = millis(1500 + 300 * frame as u64);
                in_flight.push((frame, js.frame(names[frame], deadline)));
            }
            let (frame, of) = random.pick(&in_flight);
            let (notes, name) = (order.clone(), names[*frame]);
            if random.chance(15) {
                started.push(of.start(graph(js, name, order), Box::new(())));
                continue;
            }
            let children = random.below(3);
            let after = (0..random.below(3).min(last[*frame].len()))
                .map(|_| *random.pick(&last[*frame]))
                .collect::<Vec<_>>();
            let job = of.job(name).after_all(after);
            last[*frame].push(job.schedule(move |cx: &Context<'_, Sim>| {
                notes.lock().unwrap().push(name);
                for _ in 0..children {
                    let notes = notes.clone();
                    cx.schedule(move |_| notes.lock().unwrap().push(name));
                }
            }));
        }
        if random.chance(30) {
            // The first one: the others move up while all are queued.
            let first = (0..in_flight.len()).min_by_key(|&at| in_flight[at].0);
            let (frame, _) = in_flight.remove(first.unwrap());
            has_ended.store(frame, Relaxed);
        }
        sim.sleep_until(END);
        assert!(started.iter().all(|started| started.is_done()));
    });
    // Jobs of a frame depend on no other frame's, so one of them is always ready until all have run.
    let excused = 1 + order.len() / FAIRNESS;
    let in_flight = |&frame: &usize| frame != ended.load(Relaxed);
    for name in (0..frames).filter(in_flight).map(|frame| &names[frame]) {
        let ran = order.iter().rposition(|ran| ran == name);
        let before = order[..ran.map_or(0, |last| last + 1)].iter();
        let later = before.filter(|&ran| ran > name).count();
        assert!(later <= excused, "{later} before {name}: {order:?}");
    }
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
