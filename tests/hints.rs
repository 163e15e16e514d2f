//! Goal: a scheduler in user space sees which thread waits for which, while it is so and no longer, and what
//! threads run; a job system that none hears works as ever.
//!
//! Method: a process of its own (the socket's path is in its environment) has the scheduler's memory, a
//! broker on a thread, and a job system. A thread reads as a scheduler does, until it sees what is expected,
//! and only then lets the job end that others wait for. So nothing depends on how long anything takes.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use event::Nanos;
use hint::{Segment, Shape};
use paceline::{Builder, Context, Grain, JobSystem, Lane, NewJob};
use platform::{Os, Platform};

use crate::process::{child, is_child};

/// What the process is to do.
const ROLE: &str = "PACELINE_TEST_ROLE";

fn me() -> u32 {
    u32::try_from(Os.thread_id()).unwrap()
}

/// What threads say: thread, lane of what it runs, the deadline of that, what it waits for.
type Said = (u32, Option<Lane>, Option<Nanos>, Vec<u32>);

/// A job system that is heard, and its listener.
struct Heard {
    js: JobSystem,
    hints: Segment,
    _stop: UnixStream,
}

impl Heard {
    fn new(workers: usize, slots: u32) -> Heard {
        let path = hint::path();
        let (hints, mut broker) = Segment::new(Shape { pages: 2, slots }, &path).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        std::thread::spawn(move || broker.serve(stopped.as_fd()).unwrap());
        let builder = Builder::new().hints(true).workers(workers);
        Heard {
            js: builder.build().unwrap(),
            hints,
            _stop: stop,
        }
    }

    fn said(&self) -> Vec<Said> {
        let mut said = Vec::new();
        self.hints.read(&mut |entry| {
            assert_eq!(entry.process, std::process::id());
            let waits_for = entry.waits_for.iter().map(|other| other.0).collect();
            let deadline = entry.runs.and_then(|run| run.deadline);
            let lane = entry.runs.map(|run| run.lane);
            said.push((entry.thread.0, lane, deadline, waits_for));
        });
        said
    }

    /// Returns once what this thread says is `expected`. If it never is, the process ends: its threads wait
    /// for each other.
    #[track_caller]
    fn until(&self, thread: u32, expected: impl Fn(Option<Lane>, Option<Nanos>, &[u32]) -> bool) {
        const LOOKS: usize = 200_000;
        for _ in 0..LOOKS {
            let said = self.said();
            let of_thread = said.iter().find(|(of, ..)| *of == thread);
            let is_so = match of_thread {
                Some((_, lane, deadline, waits_for)) => expected(*lane, *deadline, waits_for),
                None => expected(None, None, &[]),
            };
            if is_so {
                return;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        let (said, place) = (self.said(), Location::caller());
        println!("{place}: {thread} never says it, but: {said:?}");
        std::process::exit(1);
    }

    /// A job says `expected` of itself while it runs.
    #[track_caller]
    fn sees(&self, job: NewJob<'_, '_>, expected: impl Fn(Option<Lane>, Option<Nanos>) -> bool) {
        let gate = Gate::default();
        let job = job.schedule(gate.passes());
        self.until(gate.thread(), |runs, deadline, _| expected(runs, deadline));
        gate.open();
        self.js.wait(job);
    }
}

/// A place where a job says on which thread it is, and stays until it may go on.
#[derive(Clone, Default)]
struct Gate(Arc<(AtomicU32, AtomicBool)>);

impl Gate {
    /// Of a job.
    fn pass(&self) {
        self.0.0.store(me(), Ordering::SeqCst);
        while !self.0.1.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// A job that passes the gate.
    fn passes(&self) -> impl Fn(&Context<'_>) + Send + 'static {
        let gate = self.clone();
        move |_| gate.pass()
    }

    fn thread(&self) -> u32 {
        loop {
            match self.0.0.load(Ordering::SeqCst) {
                0 => std::thread::sleep(Duration::from_micros(100)),
                thread => return thread,
            }
        }
    }

    fn open(&self) {
        self.0.1.store(true, Ordering::SeqCst);
    }
}

/// This thread waits by `wait` for what a worker does behind the gate, and another one watches.
fn watched(heard: &Heard, gate: &Gate, lane: Lane, wait: impl FnOnce()) {
    let (waiter, worker) = (me(), gate.thread());
    assert_ne!(waiter, worker);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            // A scope's child may have been stolen: then there is its maker, too.
            heard.until(waiter, |_, _, waits_for| waits_for.contains(&worker));
            heard.until(worker, |runs, _, waits_for| {
                runs == Some(lane) && waits_for.is_empty()
            });
            gate.open();
        });
        wait();
    });
    heard.until(waiter, |runs, _, waits_for| {
        runs.is_none() && waits_for.is_empty()
    });
    heard.until(worker, |runs, _, _| runs.is_none());
}

/// Waits for a job, for one behind it, for one that a job behind it has made, for a loop, and in a job.
fn waits() {
    let heard = Heard::new(2, 63);
    let js = &heard.js;
    let gate = Gate::default();
    let job = js.job("job").schedule(gate.passes());
    watched(&heard, &gate, Lane::Normal, || js.wait(job));

    let gate = Gate::default();
    let first = js.job("first").lane(Lane::Frame).schedule(gate.passes());
    let second = js.job("second").after(first).schedule(|_| ());
    let last = js.job("last").after(second).schedule(|_| ());
    watched(&heard, &gate, Lane::Frame, || js.wait(last));

    let gate = Gate::default();
    let makes = gate.passes();
    let job = js.job("outer").schedule(move |cx| {
        cx.scope(|scope| scope.spawn(|cx| makes(cx)));
    });
    watched(&heard, &gate, Lane::Normal, || js.wait(job));

    let gate = Gate::default();
    let part = gate.clone();
    let job = js
        .job("loop")
        .schedule_for(0..1, Grain::Items(1), move |_, _| part.pass());
    watched(&heard, &gate, Lane::Normal, || js.wait(job));

    // In a job: the outer one is said again once the inner wait is over.
    let (gate, outer) = (Gate::default(), Gate::default());
    let inner = js.job("inner").schedule(gate.passes());
    let worker = gate.thread();
    let place = outer.clone();
    let job = js.job("outer").lane(Lane::Frame).schedule(move |cx| {
        place.0.0.store(me(), Ordering::SeqCst);
        cx.wait(inner);
        place.pass();
    });
    let waiter = outer.thread();
    heard.until(waiter, |runs, _, waits_for| {
        runs == Some(Lane::Frame) && waits_for == [worker]
    });
    gate.open();
    heard.until(waiter, |runs, _, waits_for| {
        runs == Some(Lane::Frame) && waits_for.is_empty()
    });
    outer.open();
    js.wait(job);
}

/// A frame's jobs have its deadline, those of the background do not, and none has one afterwards.
fn frames() {
    let heard = Heard::new(1, 63);
    let js = &heard.js;
    let seen = |lane: Lane, has_deadline: bool| {
        heard.sees(js.job("job").lane(lane), |runs, deadline| {
            runs == Some(lane) && deadline.is_some() == has_deadline
        });
    };
    seen(Lane::Normal, false);
    let frame = js.frame("frame", Duration::from_secs(1));
    seen(Lane::Normal, true);
    seen(Lane::Frame, true);
    seen(Lane::Background, false);
    drop(frame);
    seen(Lane::Normal, false);
}

/// Of frames that overlap, each has its own deadline for its jobs, whichever begins first; a job that was
/// made behind an earlier frame keeps it when that one has ended.
fn overlapping() {
    let heard = Heard::new(1, 63);
    let js = &heard.js;
    // The deadline on the system's clock, between these two.
    let framed = |budget: Duration| {
        let before = Os.now_and_monotonic().1;
        let frame = js.frame("frame", budget);
        let due = |now: Nanos| now + Nanos::from(budget);
        let after = Os.now_and_monotonic().1;
        (frame, due(before)..=due(after))
    };
    let is_in = |due: &RangeInclusive<Nanos>, deadline: Option<Nanos>| {
        // The offset between the clocks is measured once, to some microseconds.
        let slack = Nanos::from_millis(100);
        let due = *due.start() - slack..=*due.end() + slack;
        deadline.is_some_and(|deadline| due.contains(&deadline))
    };
    let (usual, usual_due) = framed(Duration::from_secs(100));
    let (later, later_due) = framed(Duration::from_secs(200));
    let (ahead, ahead_due) = framed(Duration::from_secs(50));
    for (frame, due, lane) in [
        (&usual, &usual_due, Lane::Normal),
        (&later, &later_due, Lane::Normal),
        (&ahead, &ahead_due, Lane::Frame),
    ] {
        heard.sees(frame.job("job"), |runs, deadline| {
            runs == Some(lane) && is_in(due, deadline)
        });
    }
    heard.sees(js.job("job").lane(Lane::Frame), |runs, deadline| {
        runs == Some(Lane::Frame) && is_in(&ahead_due, deadline)
    });
    let (gate, kept) = (Gate::default(), Gate::default());
    let first = js.job("first").schedule(gate.passes());
    let made = later.job("kept").after(first).schedule(kept.passes());
    drop(usual);
    gate.open();
    heard.until(kept.thread(), |runs, deadline, _| {
        runs == Some(Lane::Normal) && is_in(&later_due, deadline)
    });
    kept.open();
    js.wait(made);
}

/// A thousand threads, and slots for few: the rest are counted, and all jobs are run.
fn crowd() {
    const THREADS: usize = 1_000;
    const AT_ONCE: usize = 200;
    let heard = Heard::new(2, 63);
    for _ in 0..THREADS / AT_ONCE {
        let together = std::sync::Barrier::new(AT_ONCE);
        std::thread::scope(|threads| {
            let begun = (0..AT_ONCE).map(|_| {
                threads.spawn(|| {
                    let job = heard.js.job("job").run(|_| 1);
                    together.wait();
                    assert_eq!(job.wait(), 1);
                })
            });
            // A scope ends before its threads have given back what they had; a join waits for that.
            for thread in begun.collect::<Vec<_>>() {
                thread.join().unwrap();
            }
        });
    }
    let refused = heard.hints.read(&mut |_| ()).refused;
    let most = (THREADS - THREADS / AT_ONCE * 50) as u64;
    assert!((1..=most + 100).contains(&refused), "{refused}");
    let why = heard.js.explain().join("\n");
    let expected = format!("what 63 threads run and wait for; {refused} came that found no place.");
    assert!(why.contains(&expected), "{why}");
    // The scheduler ends; another one that comes is not heard of.
    let Heard { js, _stop, .. } = heard;
    drop(_stop);
    let says_so = || js.explain().join("\n").contains("the scheduler has ended");
    while !says_so() {
        std::thread::yield_now();
    }
    assert_eq!(js.job("answer").run(|_| 42).wait(), 42);
}

/// No scheduler listens.
fn unheard() {
    let js = Builder::new().hints(true).build().unwrap();
    assert_eq!(js.job("answer").run(|_| 42).wait(), 42);
    let why = js.explain().join("\n");
    assert!(why.contains("\nNo hints: "), "{why}");
    assert!(why.contains("no scheduler listens there"), "{why}");
    let quiet = Builder::new().build().unwrap();
    let why = quiet.explain().join("\n");
    assert!(!why.contains("hints"), "{why}");
}

/// A fork's child leaves its parent's page alone.
fn forked() {
    let heard = Heard::new(1, 63);
    let gate = Gate::default();
    let place = gate.clone();
    let job = heard.js.job("job").schedule(move |_| place.pass());
    let worker = gate.thread();
    let runs = |runs: Option<Lane>, _, _: &[u32]| runs.is_some();
    heard.until(worker, runs);
    // SAFETY: the child calls what may be called there, and ends at once.
    let process = unsafe { libc::fork() };
    if process == 0 {
        let failed = heard.js.job("job").try_schedule(|_| ()).is_ok();
        drop(heard);
        // SAFETY: nothing of the parent's is to be done here.
        unsafe { libc::_exit(i32::from(failed)) }
    }
    let mut status = -1;
    // SAFETY: the place is there, and the process is a child of this one.
    unsafe { libc::waitpid(process, &raw mut status, 0) };
    assert_eq!(status, 0);
    let said = heard.said();
    assert!(
        said.iter().any(|(thread, ..)| *thread == worker),
        "{said:?}"
    );
    gate.open();
    heard.js.wait(job);
}

#[test]
#[ignore = "part of other tests"]
fn listening_child() {
    if !is_child() {
        return;
    }
    match std::env::var(ROLE).unwrap().as_str() {
        "waits" => waits(),
        "frames" => frames(),
        "overlapping" => overlapping(),
        "crowd" => crowd(),
        "unheard" => unheard(),
        "forked" => forked(),
        role => panic!("{role}"),
    }
    println!("end: fine");
}

#[track_caller]
fn is_fine(role: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hints.sock");
    let variables = [
        (ROLE, OsStr::new(role)),
        (hint::PATH_VARIABLE, path.as_os_str()),
    ];
    let said = child("hints::listening_child", &variables);
    assert_eq!(said.line("end: ").as_deref(), Some("fine"), "{said}");
}

#[test]
fn a_scheduler_sees_which_thread_waits_for_which() {
    is_fine("waits");
}

#[test]
fn jobs_have_the_deadline_of_their_frame() {
    is_fine("frames");
}

#[test]
fn jobs_of_overlapping_frames_have_their_own_frames_deadline() {
    is_fine("overlapping");
}

#[test]
fn threads_without_a_place_are_counted_and_work() {
    is_fine("crowd");
}

#[test]
fn a_job_system_that_is_not_heard_says_so() {
    is_fine("unheard");
}

#[test]
fn a_forks_child_says_nothing() {
    is_fine("forked");
}
