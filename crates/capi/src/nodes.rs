//! Jobs, loops and conditions of graphs.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use paceline::{Context, Grain};

use crate::body::{
    BodyData, BodyParts, Bound, JobFunction, LoopFunction, Taker, fail, pl_body, pl_context,
    pl_loop_body, pl_release,
};
use crate::described::{Described, array, or_nothing, put, read};
use crate::graph::{NodePart, NodeWishes, ProgramGraph, RunOfGraph};
use crate::graphs::{pl_graph, pl_node};
use crate::jobs::{PL_LANE_NORMAL, lane_of, pl_lane};
use crate::names::{name_at, pl_site};
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::{named, pl_system};

/// Says how many items a loop of a graph has in this run.
pub type pl_length =
    Option<unsafe extern "C-unwind" fn(context: *mut pl_context, data: *mut c_void) -> usize>;

/// The body of a condition: not 0 if it holds in this run.
pub type pl_condition =
    Option<unsafe extern "C-unwind" fn(context: *mut pl_context, data: *mut c_void) -> c_int>;

/// A job, a loop or a condition of a graph, or a nested graph. Zero in a field is its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pl_node_desc {
    /// sizeof(pl_node_desc).
    pub size: usize,
    /// Its name, for errors, reports and traces; the text may go away after the call. Null: "job".
    pub name: *const c_char,
    /// What a job does, once in each run. Of `body`, `loop_body` and `condition` one is there; of a nested
    /// graph none.
    pub body: pl_body,
    /// What a loop does: called with parts of its range until each item was in one, on several threads at
    /// the same time.
    pub loop_body: pl_loop_body,
    /// Says how many items a loop has in this run, less than 2 to the power of 32. Null: `count`.
    pub length: pl_length,
    /// How many items a loop has, if there is no `length`.
    pub count: usize,
    /// The fewest items of a part of a loop, as in pl_loop_desc. 0: as many as suit the time that they take,
    /// which is measured.
    pub grain: u32,
    /// Says whether the jobs that hang on it (`only_if`) run this time.
    pub condition: pl_condition,
    /// What all these are called with. pl_context_run_data has the data of the run.
    pub data: *mut c_void,
    /// As in pl_job_desc: the graph keeps a copy of so many bytes.
    pub data_size: usize,
    /// Called once with the data when the body is gone: with the graph, or if the call is refused (for
    /// another reason than the description's size). Null: nothing is.
    pub release: pl_release,
    /// The nodes that it comes after in each run, `after_count` of them.
    pub after: *const pl_node,
    /// How many nodes there are at `after`.
    pub after_count: usize,
    /// Conditions: it runs only if all of them hold in the same run. Otherwise it counts as over, and what
    /// comes after it goes on. A condition that was left out itself does not hold.
    pub only_if: *const pl_node,
    /// How many conditions there are at `only_if`.
    pub only_if_count: usize,
    /// PL_LANE_NORMAL, which is that of the nested graph or of the thread that runs the graph, or another
    /// one.
    pub lane: pl_lane,
    /// 1: it is run by the thread that runs the graph, or that waits for the run.
    pub on_main: u32,
    /// As in pl_job_desc.
    pub site: *const pl_site,
}

// SAFETY: it is repr(C), begins with its size, and zero is a value of each field.
unsafe impl Described for pl_node_desc {
    const NAME: &'static str = "pl_node_desc";
    const FIRST_SIZE: usize = size_of::<pl_node_desc>();
}

type LengthFunction = unsafe extern "C-unwind" fn(*mut pl_context, *mut c_void) -> usize;
type ConditionFunction = unsafe extern "C-unwind" fn(*mut pl_context, *mut c_void) -> c_int;

/// The functions of a loop.
#[derive(Clone, Copy)]
struct LoopFunctions {
    body: LoopFunction,
    length: Option<LengthFunction>,
    count: usize,
    grain: Grain,
}

/// Makes a part of a graph of a body, with what the graph's bodies know of its runs.
struct MakePart(Arc<RunOfGraph>);

impl Taker<JobFunction> for MakePart {
    type Made = NodePart;

    fn take<D: BodyData>(self, bound: Bound<JobFunction, D>) -> Answer<NodePart> {
        let run = self.0;
        Ok(NodePart::Job(Box::new(move |job| {
            job.run(move |cx| {
                run.enter(|run_data| {
                    // SAFETY: the program's function with the program's data, as it has described them.
                    bound.within(cx, run_data, |function, context, data| unsafe {
                        function(context, data)
                    });
                });
            })
        })))
    }
}

impl Taker<ConditionFunction> for MakePart {
    type Made = NodePart;

    fn take<D: BodyData>(self, bound: Bound<ConditionFunction, D>) -> Answer<NodePart> {
        let run = self.0;
        Ok(NodePart::Condition(Box::new(move |job| {
            job.run(move |cx| {
                run.enter(|run_data| {
                    // SAFETY: as above.
                    bound.within(cx, run_data, |function, context, data| unsafe {
                        function(context, data) != 0
                    })
                })
            })
        })))
    }
}

impl Taker<LoopFunctions> for MakePart {
    type Made = NodePart;

    fn take<D: BodyData>(self, bound: Bound<LoopFunctions, D>) -> Answer<NodePart> {
        let run = self.0;
        Ok(NodePart::Job(Box::new(move |job| {
            job.run(move |cx| run_loop(&bound, &run, cx))
        })))
    }
}

/// Runs a loop of a graph, with the length of this run.
fn run_loop<D: BodyData>(bound: &Bound<LoopFunctions, D>, run: &RunOfGraph, cx: &Context<'_>) {
    let &LoopFunctions {
        body,
        length,
        count,
        grain,
    } = bound.function();
    let count = length.map_or(count, |length| {
        run.enter(|run_data| {
            // SAFETY: the program's function with the program's data, as it has described them.
            bound.within(cx, run_data, |_, context, data| unsafe {
                length(context, data)
            })
        })
    });
    if count > u32::MAX as usize {
        fail(too_long(count));
    }
    cx.parallel_for(0..count, grain, |part, cx| {
        run.enter(|run_data| {
            // SAFETY: as above.
            bound.within(cx, run_data, |_, context, data| unsafe {
                body(context, part.start, part.end, data)
            });
        });
    });
}

fn too_long(count: usize) -> String {
    format!("a range of {count} items is too long; cut it into parts below 2^32")
}

impl pl_node_desc {
    fn parts<F>(&self, function: Option<F>) -> BodyParts<F> {
        BodyParts {
            function,
            data: self.data,
            data_size: self.data_size,
            release: self.release,
        }
    }

    /// The body, as a part of the graph.
    ///
    /// # Safety
    /// `data_size` is right.
    unsafe fn part(&self, system: &'static pl_system, run: Arc<RunOfGraph>) -> Answer<NodePart> {
        let taker = MakePart(run);
        // SAFETY: of all calls: the caller's promise.
        unsafe {
            match (self.body, self.loop_body, self.condition) {
                (Some(body), None, None) => self.parts(Some(body)).bind(system, taker),
                (None, None, Some(holds)) => self.parts(Some(holds)).bind(system, taker),
                (None, Some(body), None) => {
                    let functions = LoopFunctions {
                        body,
                        length: self.length,
                        count: self.count,
                        grain: match self.grain {
                            0 => Grain::Auto,
                            items => Grain::Items(items),
                        },
                    };
                    let parts = self.parts(Some(functions));
                    if self.length.is_none() && self.count > u32::MAX as usize {
                        return Err(Refusal::invalid(too_long(self.count)));
                    }
                    parts.bind(system, taker)
                }
                _ => {
                    drop(self.parts(None::<JobFunction>)); // Releases the data.
                    Err(Refusal::invalid(
                        "a node has one of body, loop_body and condition, and no other of them",
                    ))
                }
            }
        }
    }

    /// What is said of the node besides its body.
    ///
    /// # Safety
    /// `name` and `site` are as for [`name_at`].
    unsafe fn wishes(&self) -> Answer<NodeWishes> {
        // SAFETY: the caller's promise.
        let name = unsafe { name_at(self.name, "job", self.site) }?.name;
        let lane = lane_of(self.lane)?;
        Ok(NodeWishes {
            lane: (self.lane != PL_LANE_NORMAL).then_some(lane),
            is_on_main: self.on_main != 0,
            ..NodeWishes::of(name)
        })
    }

    /// Adds it to the graph.
    ///
    /// # Safety
    /// As pl_graph_add.
    unsafe fn add(&self, graph: &ProgramGraph, part: Answer<NodePart>) -> Answer<pl_node> {
        // SAFETY: of all three: the caller's promise.
        let (wishes, after, only_if) = unsafe {
            (
                self.wishes()?,
                array(self.after, self.after_count, "after")?,
                array(self.only_if, self.only_if_count, "only_if")?,
            )
        };
        graph.add(part?, wishes, (after, only_if))
    }
}

/// Adds a job, a loop or a condition to a graph that is not built yet, and puts its number into `*out`, if
/// that is not null. Allocates.
///
/// # Safety
/// `system` was made by pl_system_create. `desc` points to a description whose `size`, `data_size`,
/// `after_count` and `only_if_count` are right. `out` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_add(
    system: *mut pl_system,
    graph: pl_graph,
    desc: *const pl_node_desc,
    out: *mut pl_node,
) -> pl_status {
    let status = call(|| {
        let mut room = MaybeUninit::uninit();
        // SAFETY: the caller's promise.
        let desc = unsafe { read(desc, &mut room) }?;
        let released = desc.parts(Some(()));
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let graph = system.program_graph(graph)?;
        std::mem::forget(released); // The part has the data from now on.
        // SAFETY: the caller's promise.
        let part = unsafe { desc.part(system, graph.run_of()) };
        // SAFETY: the caller's promise.
        let node = unsafe { desc.add(&graph, part) }?;
        // SAFETY: the caller's promise.
        unsafe { put(out, node) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}

/// Begins a nested graph, and puts its number into `*out`, if that is not null. What is added until
/// pl_graph_end_nested belongs to it. What comes after it comes after all of them, and a condition, a lane
/// and `on_main` are for all of them. The description has no body.
///
/// # Safety
/// As pl_graph_add.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_graph_begin_nested(
    system: *mut pl_system,
    graph: pl_graph,
    desc: *const pl_node_desc,
    out: *mut pl_node,
) -> pl_status {
    let status = call(|| {
        let mut room = MaybeUninit::uninit();
        // SAFETY: the caller's promise.
        let desc = unsafe { read(desc, &mut room) }?;
        let released = desc.parts(Some(()));
        // SAFETY: the caller's promise.
        let graph = unsafe { named(system) }?.program_graph(graph)?;
        if desc.body.is_some() || desc.loop_body.is_some() || desc.condition.is_some() {
            return Err(Refusal::invalid(
                "a nested graph has no body of its own: add its jobs to it",
            ));
        }
        drop(released); // There is no body for them.
        // SAFETY: the caller's promise.
        let node = unsafe { desc.add(&graph, Ok(NodePart::Nested)) }?;
        // SAFETY: the caller's promise.
        unsafe { put(out, node) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}
