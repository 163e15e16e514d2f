//! Graphs: declared once, checked once, run many times.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use crate::described::{must_be, or_nothing, put, put_text};
use crate::frames::{in_frame, pl_frame};
use crate::graph::{NodePart, NodeWishes, ProgramGraph};
use crate::names::name_of;
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::{fresh_number, named, pl_system};

/// The number of a graph. Nothing else of the process has it, ever, but jobs. Zero is none.
pub type pl_graph = u64;

/// The number of a node of a graph: a job, a loop, a condition, a sync point or a nested graph. Zero is none.
pub type pl_node = u64;

impl pl_system {
    /// The graph with this number, for a call that is made in this process.
    pub(crate) fn program_graph(&'static self, graph: pl_graph) -> Answer<Arc<ProgramGraph>> {
        self.js()?;
        if graph == 0 {
            return Err(Refusal::invalid(
                "0 is no graph: make one with pl_graph_create",
            ));
        }
        if self.is_forked() {
            return Err(Refusal::new(
                pl_status::PL_FORKED,
                "this process is the child of a fork, and graphs run in its parent: make a job system here",
            ));
        }
        let known = self.lock(&self.graphs)?.get(&graph).cloned();
        known.ok_or_else(|| {
            Refusal::new(
                pl_status::PL_UNKNOWN,
                format!("{graph} is not a graph of this job system, or was destroyed"),
            )
        })
    }
}

/// Calls `f` with a graph of C.
///
/// # Safety
/// `system` was made by pl_system_create.
unsafe fn with(
    system: *mut pl_system,
    graph: pl_graph,
    f: impl FnOnce(&'static pl_system, &ProgramGraph) -> Answer,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        f(system, &*system.program_graph(graph)?)?;
        Ok(pl_status::PL_OK)
    })
}

/// Begins a graph: the same jobs in the same order, run again and again. Add its jobs (pl_graph_add), build
/// it (pl_graph_build), run it (pl_graph_run), and destroy it with pl_graph_destroy. Takes a lock and
/// allocates.
///
/// # Safety
/// `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_create(
    system: *mut pl_system,
    name: *const c_char,
    out: *mut pl_graph,
) -> pl_status {
    let status = call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        let (system, name) = unsafe { (named(system)?, name_of(name, "graph")?) };
        system.js()?;
        let number = fresh_number();
        let graph = Arc::new(ProgramGraph::new(name, number));
        system.lock(&system.graphs)?.insert(number, graph);
        // SAFETY: the caller's promise.
        unsafe { put(out, number) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}

/// Adds a sync point: all nodes that were added before it end before those that are added after it begin.
/// In a nested graph it is about the nodes of that one. Its number goes into `*out`, if that is not null.
///
/// # Safety
/// `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` is null or may be
/// written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_sync(
    system: *mut pl_system,
    graph: pl_graph,
    name: *const c_char,
    out: *mut pl_node,
) -> pl_status {
    let sync = |_: &'static pl_system, graph: &ProgramGraph| {
        // SAFETY: the caller's promise.
        let wishes = NodeWishes::of(unsafe { name_of(name, "sync") }?);
        let node = graph.add(NodePart::Sync, wishes, (&[], &[]))?;
        // SAFETY: the caller's promise.
        unsafe { put(out, node) };
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, sync) }
}

/// Ends the nested graph that was begun last.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_end_nested(system: *mut pl_system, graph: pl_graph) -> pl_status {
    let end = |_: &'static pl_system, graph: &ProgramGraph| {
        graph.declare(|declaration| declaration.end_nested())
    };
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, end) }
}

/// In a graph that is not built yet `node` comes after `before`, too. PL_CYCLE if they are the same, or one
/// is in the other; larger circles are found by pl_graph_build.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_add_dependency(
    system: *mut pl_system,
    graph: pl_graph,
    node: pl_node,
    before: pl_node,
) -> pl_status {
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, |_, graph| graph.order(node, before)) }
}

/// Checks a graph, and makes what can be run. PL_CYCLE if nodes come after each other in a circle:
/// pl_last_error() names them. If it fails, the bodies are gone, and only pl_graph_destroy is left.
/// Allocates; runs do not.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_build(system: *mut pl_system, graph: pl_graph) -> pl_status {
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, |system, graph| graph.build(system.js()?)) }
}

/// Runs a graph, and returns when all of it is over. Meanwhile the thread runs jobs of the graph, among them
/// those with `on_main`. Bodies get `data` by pl_context_run_data. If one fails, those that come after it are
/// left out, all others are run, and the status is PL_FAILED; the graph can be run again. PL_BUSY if it is
/// running. It may be called in a job. Takes short locks; allocates nothing.
///
/// # Safety
/// `system` was made by pl_system_create. `data` is what the bodies expect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_run(
    system: *mut pl_system,
    graph: pl_graph,
    data: *mut c_void,
) -> pl_status {
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, |_, graph| graph.run(data)) }
}

/// Starts a run of a graph, and returns. Workers begin at once; nodes with `on_main` wait for pl_graph_wait,
/// which has to be called before the next run. PL_BUSY if the graph is running.
///
/// # Safety
/// `system` was made by pl_system_create. `data` is what the bodies expect, until the run is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_start(
    system: *mut pl_system,
    graph: pl_graph,
    data: *mut c_void,
) -> pl_status {
    let start = |system: &'static pl_system, graph: &ProgramGraph| {
        let js = system.js()?;
        graph.start(data, |built, none| js.try_start(built, none))
    };
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, start) }
}

/// As pl_graph_start, in a frame: if several are in flight, the deadline of this one decides how urgent the
/// jobs of the run are, as for `frame` in pl_job_desc. The frame may end before the run. PL_UNKNOWN if the
/// frame is over.
///
/// # Safety
/// `system` was made by pl_system_create. `data` is what the bodies expect, until the run is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_start_in(
    system: *mut pl_system,
    graph: pl_graph,
    frame: pl_frame,
    data: *mut c_void,
) -> pl_status {
    let start = |system: &'static pl_system, graph: &ProgramGraph| {
        system.js()?;
        in_frame(system, frame, |frame| {
            graph.start(data, |built, none| frame.try_start(built, none))
        })?
    };
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, start) }
}

/// Waits for the run that pl_graph_start or pl_graph_start_in has started, and says how it went, as
/// pl_graph_run does. Meanwhile the thread runs jobs of the graph. PL_TOO_LATE if none was started, or it was
/// waited for; PL_DEADLOCK in a job of the graph.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_wait(system: *mut pl_system, graph: pl_graph) -> pl_status {
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, |_, graph| graph.wait()) }
}

/// Whether no run of a graph goes on: `*done` is 1, else 0. A run that was started has to be waited for all
/// the same. Never blocks.
///
/// # Safety
/// `system` was made by pl_system_create. `done` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_is_done(
    system: *mut pl_system,
    graph: pl_graph,
    done: *mut i32,
) -> pl_status {
    let ask = |_: &'static pl_system, graph: &ProgramGraph| {
        must_be(done, "done")?;
        // SAFETY: the caller's promise.
        unsafe { put(done, c_int::from(graph.is_done())) };
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, ask) }
}

/// The jobs of a graph that is built, in an order in which they could run: a line each, with those that it
/// comes after. `*needed` is the size of the whole with its zero byte; a smaller buffer gets the beginning.
///
/// # Safety
/// `system` was made by pl_system_create. `buffer` is null or has `size` bytes. `needed` is null or may be
/// written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_text(
    system: *mut pl_system,
    graph: pl_graph,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> pl_status {
    let tell = |_: &'static pl_system, graph: &ProgramGraph| {
        let text = graph.text()?;
        // SAFETY: the caller's promise.
        unsafe { put_text(&text, buffer, size, needed) };
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, tell) }
}

/// Ends a graph, built or not: its bodies are gone, and their data are released. PL_BUSY, and nothing else,
/// if it is running: call pl_graph_wait first. PL_UNKNOWN if there is none.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_destroy(system: *mut pl_system, graph: pl_graph) -> pl_status {
    let end = |system: &'static pl_system, known: &ProgramGraph| {
        let content = known.end()?;
        let last = system.lock(&system.graphs)?.remove(&graph);
        drop((content, last));
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(system, graph, end) }
}
