//! What of the lanes C decides by descriptions and frames: which graph goes first, and how many workers a
//! lane has.

use std::ffi::{CStr, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use paceline_c::pl_status::*;
use paceline_c::*;

/// What the bodies of a test do: they count themselves, and stay until the gate is open.
#[derive(Default)]
struct Gate {
    is_in: AtomicUsize,
    is_open: AtomicUsize,
}

unsafe extern "C-unwind" fn held(_: *mut pl_context, data: *mut c_void) {
    // SAFETY: the tests below describe it with such data, which live until its job has ended.
    let gate = unsafe { &*data.cast::<Gate>() };
    gate.is_in.fetch_add(1, Ordering::SeqCst);
    while gate.is_open.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
}

/// A body of a graph that says when it ran.
struct Entry<'t> {
    name: &'static str,
    ran: &'t Mutex<Vec<&'static str>>,
}

unsafe extern "C-unwind" fn noted(context: *mut pl_context, _: *mut c_void) {
    // SAFETY: as above.
    let entry = unsafe { &*pl_context_run_data(context).cast::<Entry<'_>>() };
    entry.ran.lock().expect("no test panics").push(entry.name);
}

fn last_error() -> String {
    // SAFETY: never null, and valid until the next call.
    let text = unsafe { CStr::from_ptr(pl_last_error()) };
    text.to_string_lossy().into_owned()
}

fn system(desc: pl_system_desc) -> *mut pl_system {
    let mut system = null_mut();
    // SAFETY: the description is right.
    let status = unsafe { pl_system_create(&desc, &mut system) };
    assert_eq!(status, PL_OK, "{}", last_error());
    system
}

fn description(workers: u32) -> pl_system_desc {
    pl_system_desc {
        size: size_of::<pl_system_desc>(),
        workers,
        // SAFETY: zero is a value of each field.
        ..unsafe { zeroed() }
    }
}

/// Makes a job that is held at the gate.
fn hold(system: *mut pl_system, gate: &Gate, lane: pl_lane) -> pl_job {
    let mut job = 0;
    let desc = pl_job_desc {
        size: size_of::<pl_job_desc>(),
        lane,
        body: Some(held),
        data: std::ptr::from_ref(gate).cast_mut().cast(),
        // SAFETY: zero is a value of each field.
        ..unsafe { zeroed() }
    };
    // SAFETY: the description is right.
    let status = unsafe { pl_schedule(system, &desc, &mut job) };
    assert_eq!(status, PL_OK, "{}", last_error());
    job
}

/// Makes a graph of one job that says when it ran.
fn noting(system: *mut pl_system) -> pl_graph {
    let mut graph = 0;
    let node = pl_node_desc {
        size: size_of::<pl_node_desc>(),
        body: Some(noted),
        // SAFETY: zero is a value of each field.
        ..unsafe { zeroed() }
    };
    // SAFETY: the job system was made; the description is right.
    unsafe {
        assert_eq!(pl_graph_create(system, null(), &mut graph), PL_OK);
        assert_eq!(pl_graph_add(system, graph, &node, null_mut()), PL_OK);
        assert_eq!(pl_graph_build(system, graph), PL_OK);
    }
    graph
}

fn until(what: impl Fn() -> bool) {
    while !what() {
        thread::yield_now();
    }
}

/// Starts two graphs while the one worker is held, in the frames at these places of `frames` (the first has
/// the later deadline); which ran when it was let go.
fn order(places: [usize; 2]) -> Vec<&'static str> {
    const NAMES: [&str; 2] = ["picture", "sound"];
    let system = system(description(1));
    let (gate, ran) = (Gate::default(), Mutex::new(Vec::new()));
    let graphs = [noting(system), noting(system)];
    let entries = NAMES.map(|name| Entry { name, ran: &ran });
    let mut frames = [0; 2];
    let first = hold(system, &gate, PL_LANE_NORMAL);
    until(|| gate.is_in.load(Ordering::SeqCst) == 1);
    // SAFETY: the job system was made; the data live until the runs are over.
    unsafe {
        for (frame, seconds) in frames.iter_mut().zip([1000, 100]) {
            let status = pl_frame_begin(system, null(), seconds * 1_000_000_000, frame);
            assert_eq!(status, PL_OK);
        }
        for at in places {
            let data = (&raw const entries[at]).cast_mut().cast();
            let status = pl_graph_start_in(system, graphs[at], frames[at], data);
            assert_eq!(status, PL_OK, "{}", last_error());
        }
        gate.is_open.store(1, Ordering::SeqCst);
        // This thread runs none: a wait would raise what it waits for.
        until(|| ran.lock().expect("no body panics").len() == 2);
        for graph in graphs {
            assert_eq!(pl_graph_wait(system, graph), PL_OK);
        }
        assert_eq!(pl_wait(system, first), PL_OK);
        for frame in frames {
            assert_eq!(pl_frame_end(system, frame), PL_OK);
        }
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
    let ran = ran.lock().expect("no body panics");
    ran.clone()
}

/// Goal: of two graphs that are started in frames, that of the earlier deadline goes first. Method: both
/// orders of the calls, behind a job that holds the only worker.
#[test]
fn the_graph_of_the_earlier_frame_goes_first() {
    for places in [[0, 1], [1, 0]] {
        assert_eq!(order(places), ["sound", "picture"], "{places:?}");
    }
}

/// Goal: a frame that is over, and one that never was, is said, and the graph stays as it was. Method: both,
/// then a run.
#[test]
fn a_frame_that_is_over_starts_nothing() {
    let system = system(description(1));
    let graph = noting(system);
    let ran = Mutex::new(Vec::new());
    let entry = Entry {
        name: "ran",
        ran: &ran,
    };
    let data = (&raw const entry).cast_mut().cast();
    let mut over = 0;
    // SAFETY: the job system was made; the data live until the runs are over.
    unsafe {
        assert_eq!(pl_frame_begin(system, null(), 1, &mut over), PL_OK);
        assert_eq!(pl_frame_end(system, over), PL_OK);
        for frame in [over, 0, u64::MAX] {
            let status = pl_graph_start_in(system, graph, frame, data);
            assert_eq!(status, PL_UNKNOWN);
            assert!(last_error().contains("open frame"), "{}", last_error());
        }
        assert_eq!(pl_graph_wait(system, graph), PL_TOO_LATE);
        assert_eq!(pl_graph_run(system, graph, data), PL_OK);
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
    assert_eq!(ran.lock().expect("no body panics").len(), 1);
}

/// Goal: a lane with a share has no more workers than its limit. Method: two of its jobs are held by a gate
/// where a limit lets in one, while a worker has nothing else to do for as long as it would take to begin the
/// second one a thousand times over.
#[test]
fn a_lane_has_no_more_workers_than_its_limit() {
    let system = system(pl_system_desc {
        shares: [25, 0, 0, 0, 0],
        shares_at_most: [1, 0, 0, 0, 0],
        ..description(2)
    });
    // They outlive a failure of the test, after which bodies still look at them.
    let (streaming, other): (&Gate, &Gate) = (Box::leak(Box::default()), Box::leak(Box::default()));
    other.is_open.store(1, Ordering::SeqCst);
    let first = hold(system, streaming, PL_LANE_SHARE_1);
    until(|| streaming.is_in.load(Ordering::SeqCst) == 1);
    let second = hold(system, streaming, PL_LANE_SHARE_1);
    let last = hold(system, other, PL_LANE_NORMAL);
    let in_streaming = || streaming.is_in.load(Ordering::SeqCst);
    // Without a limit both workers may be held.
    until(|| other.is_in.load(Ordering::SeqCst) == 1 || in_streaming() == 2);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(in_streaming(), 1);
    streaming.is_open.store(1, Ordering::SeqCst);
    // SAFETY: the job system was made, and made the jobs.
    unsafe {
        for job in [first, second, last] {
            assert_eq!(pl_wait(system, job), PL_OK);
        }
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
    assert_eq!(in_streaming(), 2);
}
