//! Graphs of C against a model of them, and what no careful program does with them.

use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use paceline_c::pl_status::*;
use paceline_c::*;
use proptest::prelude::*;

/// What a node of the model is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Job,
    /// With as many items as the run says, times this.
    Loop(u8),
    Condition,
    Sync,
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    /// Earlier nodes, by numbers that are taken modulo their count.
    after: Vec<u8>,
    only_if: Option<u8>,
    is_on_main: bool,
}

/// What is done in a run.
#[derive(Clone, Debug)]
struct RunPlan {
    /// Bits: the conditions that hold, and the nodes that fail.
    holds: u32,
    fails: u32,
    length: u8,
    is_started: bool,
}

/// How a node ends in a run.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Ran,
    Failed,
    /// A condition that it hangs on does not hold.
    Skipped,
    /// What it comes after has failed.
    LeftOut,
}

/// The data of a run: what bodies are told, and what they note.
struct RunData {
    plan: RunPlan,
    clock: AtomicUsize,
    /// For each node when it began and ended, by the clock, and how many items it had.
    begun: Vec<AtomicUsize>,
    ended: Vec<AtomicUsize>,
    items: Vec<AtomicUsize>,
}

impl RunData {
    fn new(nodes: usize, plan: &RunPlan) -> RunData {
        let zeros = || (0..nodes).map(|_| AtomicUsize::new(0)).collect();
        RunData {
            plan: plan.clone(),
            clock: AtomicUsize::new(1),
            begun: zeros(),
            ended: zeros(),
            items: zeros(),
        }
    }

    fn now(&self) -> usize {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

/// The data of a node's body, which the library owes a release of.
struct BodyOf {
    node: usize,
    factor: u8,
    open: Arc<AtomicUsize>,
}

unsafe extern "C-unwind" fn release(data: *mut c_void) {
    // SAFETY: it was a box, and comes back once.
    let body = unsafe { Box::from_raw(data.cast::<BodyOf>()) };
    body.open.fetch_sub(1, Ordering::SeqCst);
}

/// # Safety
/// The context and the data are those of a body of this file.
unsafe fn here<'a>(context: *mut pl_context, data: *mut c_void) -> (&'a RunData, &'a BodyOf) {
    // SAFETY: the caller's promise.
    unsafe { (&*pl_context_run_data(context).cast(), &*data.cast()) }
}

unsafe extern "C-unwind" fn job(context: *mut pl_context, data: *mut c_void) {
    // SAFETY: as there.
    let (run, body) = unsafe { here(context, data) };
    run.begun[body.node].store(run.now(), Ordering::SeqCst);
    run.items[body.node].fetch_add(1, Ordering::SeqCst);
    if run.plan.fails >> body.node & 1 == 1 {
        // SAFETY: the context of this body.
        unsafe { pl_fail(context, c"as planned".as_ptr()) };
    }
    run.ended[body.node].store(run.now(), Ordering::SeqCst);
}

unsafe extern "C-unwind" fn condition(context: *mut pl_context, data: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { job(context, data) };
    // SAFETY: as above.
    let (run, body) = unsafe { here(context, data) };
    c_int::from(run.plan.holds >> body.node & 1 == 1)
}

unsafe extern "C-unwind" fn length(context: *mut pl_context, data: *mut c_void) -> usize {
    // SAFETY: as above.
    let (run, body) = unsafe { here(context, data) };
    run.begun[body.node].store(run.now(), Ordering::SeqCst);
    run.ended[body.node].store(run.now(), Ordering::SeqCst);
    usize::from(run.plan.length) * usize::from(body.factor)
}

unsafe extern "C-unwind" fn part(
    context: *mut pl_context,
    begin: usize,
    end: usize,
    data: *mut c_void,
) {
    // SAFETY: as above.
    let (run, body) = unsafe { here(context, data) };
    run.items[body.node].fetch_add(end - begin, Ordering::SeqCst);
    run.ended[body.node].fetch_max(run.now(), Ordering::SeqCst);
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let kind = prop_oneof![
        5 => Just(Kind::Job),
        2 => (0..4_u8).prop_map(Kind::Loop),
        2 => Just(Kind::Condition),
        1 => Just(Kind::Sync),
    ];
    let after = prop::collection::vec(any::<u8>(), 0..3);
    let node = (
        kind,
        after,
        prop::option::weighted(0.3, any::<u8>()),
        prop::bool::weighted(0.2),
    );
    let node = node.prop_map(|(kind, after, only_if, is_on_main)| Node {
        kind,
        after,
        only_if,
        is_on_main,
    });
    prop::collection::vec(node, 1..14)
}

fn runs() -> impl Strategy<Value = Vec<RunPlan>> {
    // Few nodes fail: what comes after one that does is left out.
    let fails = (any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(a, b, c)| a & b & c);
    let run = (
        any::<u32>(),
        prop_oneof![Just(0), fails],
        any::<u8>(),
        any::<bool>(),
    );
    let run = run.prop_map(|(holds, fails, length, is_started)| RunPlan {
        holds,
        fails,
        length,
        is_started,
    });
    prop::collection::vec(run, 1..5)
}

/// The edges of a graph, as the model has them.
struct Model {
    nodes: Vec<Node>,
    /// For each node those that it comes after, and the conditions among them that it hangs on.
    after: Vec<Vec<usize>>,
    only_if: Vec<Option<usize>>,
}

impl Model {
    fn new(nodes: &[Node]) -> Model {
        let mut after: Vec<Vec<usize>> = Vec::new();
        let mut only_if = Vec::new();
        let mut sync = None;
        for (at, node) in nodes.iter().enumerate() {
            let mut before: Vec<usize> = sync.into_iter().collect();
            let mut hangs_on = None;
            if node.kind == Kind::Sync {
                before.extend(sync.unwrap_or(0)..at);
                sync = Some(at);
            } else if at > 0 {
                before.extend(node.after.iter().map(|&earlier| usize::from(earlier) % at));
                let condition = node.only_if.map(|earlier| usize::from(earlier) % at);
                hangs_on = condition.filter(|&at| nodes[at].kind == Kind::Condition);
                before.extend(hangs_on);
            }
            after.push(before);
            only_if.push(hangs_on);
        }
        Model {
            nodes: nodes.to_vec(),
            after,
            only_if,
        }
    }

    /// Whether `to` comes after `from`, at whatever distance.
    fn leads(&self, from: usize, to: usize) -> bool {
        from == to
            || self.after[to]
                .iter()
                .any(|&before| self.leads(from, before))
    }

    /// How each node ends.
    fn ends(&self, plan: &RunPlan) -> Vec<End> {
        let mut ends: Vec<End> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let mut before = self.after[at].iter().map(|&before| ends[before]);
            let holds =
                |condition: usize| ends[condition] == End::Ran && plan.holds >> condition & 1 == 1;
            let end = if before.any(|end| matches!(end, End::Failed | End::LeftOut)) {
                End::LeftOut
            } else if !self.only_if[at].is_none_or(holds) {
                End::Skipped
            } else if plan.fails >> at & 1 == 1 && matches!(node.kind, Kind::Job | Kind::Condition)
            {
                End::Failed
            } else {
                End::Ran
            };
            ends.push(end);
        }
        ends
    }
}

fn last_error() -> String {
    // SAFETY: never null, and valid until the next call.
    unsafe { CStr::from_ptr(pl_last_error()) }
        .to_string_lossy()
        .into_owned()
}

fn system(workers: u32) -> *mut pl_system {
    let desc = pl_system_desc {
        size: size_of::<pl_system_desc>(),
        workers,
        no_workers: u32::from(workers == 0),
        // SAFETY: zero is a value of each field.
        ..unsafe { zeroed() }
    };
    let mut system = null_mut();
    // SAFETY: the description is right.
    assert_eq!(unsafe { pl_system_create(&desc, &mut system) }, PL_OK);
    system
}

fn graph(system: *mut pl_system) -> pl_graph {
    let mut graph = 0;
    // SAFETY: the job system was made.
    let status = unsafe { pl_graph_create(system, c"random".as_ptr(), &mut graph) };
    assert_eq!(status, PL_OK);
    graph
}

fn description() -> pl_node_desc {
    // SAFETY: zero is a value of each field.
    let mut desc: pl_node_desc = unsafe { zeroed() };
    desc.size = size_of::<pl_node_desc>();
    desc
}

/// Declares the model's graph. Returns the numbers of its nodes.
fn declare(
    system: *mut pl_system,
    graph: pl_graph,
    model: &Model,
    open: &Arc<AtomicUsize>,
) -> Vec<pl_node> {
    let mut numbers: Vec<pl_node> = Vec::new();
    for (at, node) in model.nodes.iter().enumerate() {
        let name = CString::new(format!("n{at}")).expect("no zero");
        let mut number = 0;
        if node.kind == Kind::Sync {
            // SAFETY: the job system was made.
            let status = unsafe { pl_graph_sync(system, graph, name.as_ptr(), &mut number) };
            assert_eq!(status, PL_OK, "{}", last_error());
            numbers.push(number);
            continue;
        }
        let after: Vec<pl_node> = model.after[at].iter().map(|&at| numbers[at]).collect();
        let only_if: Vec<pl_node> = model.only_if[at].iter().map(|&at| numbers[at]).collect();
        let factor = match node.kind {
            Kind::Loop(factor) => factor,
            Kind::Job | Kind::Condition | Kind::Sync => 1,
        };
        open.fetch_add(1, Ordering::SeqCst);
        let body = BodyOf {
            node: at,
            factor,
            open: Arc::clone(open),
        };
        let is_loop = matches!(node.kind, Kind::Loop(_));
        let desc = pl_node_desc {
            name: name.as_ptr(),
            body: (node.kind == Kind::Job).then_some(job),
            loop_body: is_loop.then_some(part),
            length: is_loop.then_some(length),
            condition: (node.kind == Kind::Condition).then_some(condition),
            data: Box::into_raw(Box::new(body)).cast(),
            release: Some(release),
            after: after.as_ptr(),
            after_count: after.len(),
            only_if: only_if.as_ptr(),
            only_if_count: only_if.len(),
            on_main: u32::from(node.is_on_main),
            ..description()
        };
        // SAFETY: the description is right.
        let status = unsafe { pl_graph_add(system, graph, &desc, &mut number) };
        assert_eq!(status, PL_OK, "{}", last_error());
        numbers.push(number);
    }
    numbers
}

/// Runs the graph once, and compares with the model.
fn run(system: *mut pl_system, graph: pl_graph, model: &Model, plan: &RunPlan) {
    let run = RunData::new(model.nodes.len(), plan);
    let data = (&raw const run).cast_mut().cast();
    // SAFETY: the data are what the bodies expect, and live until the run is over.
    let status = unsafe {
        if plan.is_started {
            assert_eq!(
                pl_graph_start(system, graph, data),
                PL_OK,
                "{}",
                last_error()
            );
            pl_graph_wait(system, graph)
        } else {
            pl_graph_run(system, graph, data)
        }
    };
    let ends = model.ends(plan);
    let fails = ends.contains(&End::Failed);
    assert_eq!(status == PL_FAILED, fails, "{status:?}: {ends:?}");
    assert!(fails || status == PL_OK, "{}", last_error());
    if fails {
        let failed = |at: usize| last_error().contains(&format!("job 'n{at}' failed: as planned"));
        let named = ends
            .iter()
            .enumerate()
            .any(|(at, &end)| end == End::Failed && failed(at));
        assert!(named, "{}", last_error());
    }
    for (at, node) in model.nodes.iter().enumerate() {
        let [begun, ended, items] =
            [&run.begun, &run.ended, &run.items].map(|all| all[at].load(Ordering::SeqCst));
        let expected = match (ends[at], node.kind) {
            (End::Skipped | End::LeftOut, _) | (_, Kind::Sync) => 0,
            (_, Kind::Loop(factor)) => usize::from(plan.length) * usize::from(factor),
            (_, Kind::Job | Kind::Condition) => 1,
        };
        assert_eq!(items, expected, "node {at} of {ends:?}");
        for &before in &model.after[at] {
            let before = run.ended[before].load(Ordering::SeqCst);
            assert!(
                begun == 0 || before < begun,
                "{at} began before what it comes after"
            );
        }
        assert!(begun <= ended);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Goal: a graph of C does in each run what it was declared to do, and nothing else, and its bodies are
    /// released once, with it. Method: random graphs, on workers and without; each run, with conditions that
    /// hold or not, jobs that fail and loops of some length, against the model.
    #[test]
    fn runs_are_as_the_model_says(nodes in nodes(), runs in runs(), workers in 0..3_u32) {
        let (system, open) = (system(workers), Arc::new(AtomicUsize::new(0)));
        let graph = graph(system);
        let model = Model::new(&nodes);
        let bodies = model.nodes.iter().filter(|node| node.kind != Kind::Sync).count();
        declare(system, graph, &model, &open);
        // SAFETY: the job system was made.
        prop_assert_eq!(unsafe { pl_graph_build(system, graph) }, PL_OK, "{}", last_error());
        for plan in &runs {
            run(system, graph, &model, plan);
        }
        prop_assert_eq!(open.load(Ordering::SeqCst), bodies, "none is released before the end");
        // SAFETY: as above.
        unsafe {
            if runs.len() % 2 == 0 {
                prop_assert_eq!(pl_graph_destroy(system, graph), PL_OK);
                prop_assert_eq!(open.load(Ordering::SeqCst), 0);
                prop_assert_eq!(pl_graph_run(system, graph, null_mut()), PL_UNKNOWN);
            }
            prop_assert_eq!(pl_system_destroy(system), PL_OK);
        }
        prop_assert_eq!(open.load(Ordering::SeqCst), 0, "each is released once");
    }

    /// Goal: a circle is found, whichever nodes are in it, and nothing else is taken for one; bodies are
    /// released when a graph cannot be built. Method: one more edge anywhere in a random graph; the model
    /// says whether it leads back.
    #[test]
    fn circles_are_found(nodes in nodes(), edge in any::<[u8; 2]>()) {
        let (system, open) = (system(0), Arc::new(AtomicUsize::new(0)));
        let graph = graph(system);
        let model = Model::new(&nodes);
        let numbers = declare(system, graph, &model, &open);
        let [node, before] = edge.map(|number| usize::from(number) % nodes.len());
        // SAFETY: the job system was made.
        let (ordered, built) = unsafe {
            let (node, before) = (numbers[node], numbers[before]);
            let ordered = pl_graph_add_dependency(system, graph, node, before);
            (ordered, pl_graph_build(system, graph))
        };
        let later = nodes[node.max(before)].kind;
        if node == before {
            prop_assert_eq!(ordered, PL_CYCLE);
            prop_assert_eq!(built, PL_OK, "it was not added");
        } else if later == Kind::Sync {
            prop_assert_eq!(ordered, PL_INVALID);
            prop_assert_eq!(built, PL_OK, "it was not added");
        } else if model.leads(node, before) {
            prop_assert_eq!((ordered, built), (PL_OK, PL_CYCLE));
            for at in [node, before] {
                prop_assert!(last_error().contains(&format!("'n{at}'")), "{}", last_error());
            }
            prop_assert_eq!(open.load(Ordering::SeqCst), 0);
        } else {
            prop_assert_eq!((ordered, built), (PL_OK, PL_OK));
        }
        // SAFETY: as above.
        unsafe {
            prop_assert_eq!(pl_graph_destroy(system, graph), PL_OK);
            prop_assert_eq!(pl_system_destroy(system), PL_OK);
        }
        prop_assert_eq!(open.load(Ordering::SeqCst), 0);
    }
}

unsafe extern "C-unwind" fn nothing(_: *mut pl_context, _: *mut c_void) {}

unsafe extern "C-unwind" fn counted(data: *mut c_void) {
    // SAFETY: the tests below pass such a pointer.
    unsafe { &*data.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

/// A job with a name, whose data count how often they were released.
fn right(released: &AtomicUsize) -> pl_node_desc {
    pl_node_desc {
        name: c"right".as_ptr(),
        body: Some(nothing),
        data: std::ptr::from_ref(released).cast_mut().cast(),
        release: Some(counted),
        ..description()
    }
}

/// Goal: a description that cannot be is refused, and its data are released. Method: each mistake.
#[test]
fn wrong_descriptions_are_refused() {
    let system = system(0);
    let mine = graph(system);
    let released = AtomicUsize::new(0);
    let right = right(&released);
    let mistakes: [fn(&mut pl_node_desc); 7] = [
        |desc| desc.body = None,
        |desc| desc.loop_body = Some(part),
        |desc| desc.condition = Some(condition),
        |desc| desc.lane = 8,
        |desc| desc.name = c"\xff".as_ptr(),
        |desc| desc.after_count = 1,
        |desc| {
            (desc.body, desc.count) = (None, 1 << 32);
            desc.loop_body = Some(part);
        },
    ];
    for (place, mistake) in mistakes.iter().enumerate() {
        let (mut wrong, mut out) = (right, 0);
        mistake(&mut wrong);
        // SAFETY: what is wrong is what is tested.
        let status = unsafe { pl_graph_add(system, mine, &wrong, &mut out) };
        assert_eq!((status, out), (PL_INVALID, 0), "{place}");
        assert!(!last_error().is_empty());
        assert_eq!(released.load(Ordering::SeqCst), place + 1);
    }
    // A wrong size is refused before anything else is looked at.
    let short = pl_node_desc { size: 8, ..right };
    // SAFETY: as above.
    unsafe {
        assert_eq!(pl_graph_add(system, mine, &short, null_mut()), PL_INVALID);
        assert_eq!(pl_graph_add(system, mine, null(), null_mut()), PL_INVALID);
        assert_eq!(pl_graph_create(system, null(), null_mut()), PL_INVALID);
        assert_eq!(pl_system_destroy(system), PL_OK);
        assert_eq!(pl_graph_run(system, mine, null_mut()), PL_DESTROYED);
    }
    assert_eq!(released.load(Ordering::SeqCst), mistakes.len());
}

/// Goal: numbers of other graphs, of graphs of other job systems and of nothing are told from those of this
/// one. Method: each of them, as a graph, as what a job comes after and as a condition.
#[test]
fn strange_numbers_are_refused() {
    let (system, other_system) = (system(0), system(0));
    let (mine, other) = (graph(system), graph(other_system));
    let released = AtomicUsize::new(0);
    let right = right(&released);
    let (mut node, mut foreign) = (0, 0);
    let add = |graph, desc: &pl_node_desc| {
        // SAFETY: the description is right but for its numbers, which are what is tested.
        unsafe { pl_graph_add(system, graph, desc, null_mut()) }
    };
    // SAFETY: as above.
    unsafe {
        assert_eq!(pl_graph_add(system, mine, &right, &mut node), PL_OK);
        let status = pl_graph_add(other_system, other, &right, &mut foreign);
        assert_eq!(status, PL_OK);
    }
    for (graph, expected) in [(0, PL_INVALID), (other, PL_UNKNOWN), (u64::MAX, PL_UNKNOWN)] {
        assert_eq!(add(graph, &right), expected);
    }
    for strange in [foreign, node + 1, 1] {
        let mut desc = right;
        (desc.after, desc.after_count) = (&strange, 1);
        assert_eq!(add(mine, &desc), PL_UNKNOWN);
        assert!(last_error().contains("'right'") && last_error().contains("'random'"));
        // SAFETY: as above.
        let ordered = unsafe { pl_graph_add_dependency(system, mine, node, strange) };
        assert_eq!(ordered, PL_UNKNOWN);
    }
    let mut desc = right;
    (desc.only_if, desc.only_if_count) = (&node, 1);
    assert_eq!(add(mine, &desc), PL_INVALID, "it is no condition");
    // SAFETY: as above.
    unsafe {
        let ordered = pl_graph_add_dependency(system, mine, node, 0);
        assert_eq!(ordered, PL_INVALID);
        assert_eq!(released.load(Ordering::SeqCst), 7);
        for system in [system, other_system] {
            assert_eq!(pl_system_destroy(system), PL_OK);
        }
    }
    assert_eq!(released.load(Ordering::SeqCst), 9);
}

/// Goal: nested graphs begin and end in pairs, and what is in each other has no order. Method: each mistake.
#[test]
fn nested_graphs_are_pairs() {
    let system = system(0);
    let mine = graph(system);
    let plain = pl_node_desc {
        name: c"outer".as_ptr(),
        ..description()
    };
    let (mut outer, mut inner) = (0, 0);
    // SAFETY: the descriptions are right.
    unsafe {
        assert_eq!(pl_graph_end_nested(system, mine), PL_INVALID);
        let bodied = pl_node_desc {
            body: Some(nothing),
            ..plain
        };
        assert_eq!(
            pl_graph_begin_nested(system, mine, &bodied, null_mut()),
            PL_INVALID
        );
        assert_eq!(
            pl_graph_begin_nested(system, mine, &plain, &mut outer),
            PL_OK
        );
        let inside = pl_node_desc {
            name: c"inner".as_ptr(),
            body: Some(nothing),
            ..description()
        };
        let circle = pl_node_desc {
            after: &outer,
            after_count: 1,
            ..inside
        };
        assert_eq!(pl_graph_add(system, mine, &circle, null_mut()), PL_CYCLE);
        assert!(last_error().contains("'inner'") && last_error().contains("'outer'"));
        assert_eq!(pl_graph_add(system, mine, &inside, &mut inner), PL_OK);
        assert_eq!(
            pl_graph_add_dependency(system, mine, outer, inner),
            PL_CYCLE
        );
        assert_eq!(
            pl_graph_add_dependency(system, mine, inner, outer),
            PL_CYCLE
        );
        let mut depth = 1;
        while pl_graph_begin_nested(system, mine, &plain, null_mut()) == PL_OK {
            depth += 1;
        }
        assert_eq!(depth, 64);
        assert_eq!(pl_graph_build(system, mine), PL_INVALID);
        assert!(last_error().contains("has no end"));
        assert_eq!(pl_graph_build(system, mine), PL_INVALID);
        assert_eq!(pl_graph_add(system, mine, &inside, null_mut()), PL_TOO_LATE);
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
}

/// What a body waits for.
struct Gate {
    is_in: AtomicUsize,
    is_open: AtomicUsize,
}

unsafe extern "C-unwind" fn held(context: *mut pl_context, _: *mut c_void) {
    // SAFETY: the test below runs it with such data.
    let gate = unsafe { &*pl_context_run_data(context).cast::<Gate>() };
    gate.is_in.store(1, Ordering::SeqCst);
    while gate.is_open.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
}

impl Gate {
    fn new(is_open: usize) -> Gate {
        Gate {
            is_in: AtomicUsize::new(0),
            is_open: AtomicUsize::new(is_open),
        }
    }

    fn address(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn wait_until_in(&self) {
        while self.is_in.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    }

    fn open(&self) {
        self.is_open.store(1, Ordering::SeqCst);
    }
}

/// A graph of one job that is held at a gate, and its job system with one worker.
fn gated() -> (*mut pl_system, pl_graph) {
    let system = system(1);
    let mine = graph(system);
    let body = pl_node_desc {
        body: Some(held),
        ..description()
    };
    // SAFETY: the description is right.
    unsafe {
        assert_eq!(pl_graph_add(system, mine, &body, null_mut()), PL_OK);
        assert_eq!(pl_graph_build(system, mine), PL_OK);
    }
    (system, mine)
}

fn is_done(system: *mut pl_system, graph: pl_graph) -> i32 {
    let mut is_done = 7;
    // SAFETY: the job system was made.
    let status = unsafe { pl_graph_is_done(system, graph, &mut is_done) };
    assert_eq!(status, PL_OK);
    is_done
}

/// Goal: a graph is declared, then built, then run. Method: calls that are too early and too late.
#[test]
fn calls_have_their_time() {
    let (system, built) = gated();
    let early = graph(system);
    // SAFETY: the job system was made.
    unsafe {
        assert_eq!(pl_graph_run(system, early, null_mut()), PL_INVALID);
        assert_eq!(pl_graph_start(system, early, null_mut()), PL_INVALID);
        assert_eq!(pl_graph_wait(system, early), PL_INVALID);
        let text = pl_graph_text(system, early, null_mut(), 0, null_mut());
        assert_eq!(text, PL_INVALID);
        assert_eq!(pl_graph_build(system, built), PL_TOO_LATE);
        let sync = pl_graph_sync(system, built, null(), null_mut());
        assert_eq!(sync, PL_TOO_LATE);
        assert_eq!(pl_graph_wait(system, built), PL_TOO_LATE);
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
}

/// Goal: while a started graph runs, calls that would disturb the run are refused and change nothing. Method:
/// a body that is held at a gate; then a run that the end of the job system waits for.
#[test]
fn a_started_graph_is_left_alone() {
    let (system, mine) = gated();
    let (gate, open) = (Gate::new(0), Gate::new(1));
    // SAFETY: the data live until the runs are over.
    unsafe {
        assert_eq!(pl_graph_start(system, mine, gate.address()), PL_OK);
        gate.wait_until_in();
        assert_eq!(pl_graph_run(system, mine, null_mut()), PL_BUSY);
        assert_eq!(pl_graph_start(system, mine, null_mut()), PL_BUSY);
        assert_eq!(pl_graph_destroy(system, mine), PL_BUSY);
        assert_eq!(is_done(system, mine), 0);
        gate.open();
        assert_eq!(pl_graph_wait(system, mine), PL_OK);
        assert_eq!(is_done(system, mine), 1);
        assert_eq!(pl_graph_wait(system, mine), PL_TOO_LATE);
        assert_eq!(pl_graph_start(system, mine, open.address()), PL_OK);
        assert_eq!(pl_system_destroy(system), PL_OK);
        assert_eq!(open.is_in.load(Ordering::SeqCst), 1);
        assert_eq!(pl_graph_destroy(system, mine), PL_DESTROYED);
    }
}

/// Goal: as above, for a run in a call. Method: the call is another thread's.
#[test]
fn a_graph_in_a_call_is_left_alone() {
    let (system, mine) = gated();
    let gate = Arc::new(Gate::new(0));
    let (address, data) = (system as usize, Arc::clone(&gate));
    let thread = std::thread::spawn(move || {
        // SAFETY: the data live until the run is over.
        unsafe { pl_graph_run(address as *mut pl_system, mine, data.address()) }
    });
    gate.wait_until_in();
    // SAFETY: the job system was made.
    unsafe {
        assert_eq!(pl_graph_run(system, mine, null_mut()), PL_BUSY);
        assert_eq!(pl_graph_wait(system, mine), PL_BUSY);
        assert_eq!(pl_graph_destroy(system, mine), PL_BUSY);
        assert_eq!(pl_system_destroy(system), PL_BUSY);
        assert_eq!(is_done(system, mine), 0);
        gate.open();
        assert_eq!(thread.join().expect("it does not panic"), PL_OK);
        assert_eq!(is_done(system, mine), 1);
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
}

/// Goal: a start that finds no room leaves the graph as it was. Method: a job system of one job.
#[test]
fn a_full_job_system_refuses_a_start() {
    let desc = pl_system_desc {
        size: size_of::<pl_system_desc>(),
        no_workers: 1,
        max_jobs: 1,
        // SAFETY: zero is a value of each field.
        ..unsafe { zeroed() }
    };
    let (mut system, mut event) = (null_mut(), 0);
    // SAFETY: the descriptions are right.
    unsafe {
        assert_eq!(pl_system_create(&desc, &mut system), PL_OK);
        let mine = graph(system);
        let body = pl_node_desc {
            body: Some(nothing),
            ..description()
        };
        assert_eq!(pl_graph_add(system, mine, &body, null_mut()), PL_OK);
        assert_eq!(pl_graph_build(system, mine), PL_OK);
        let mut last = 0;
        while pl_event_create(system, null(), 1, &mut event) == PL_OK {
            last = event;
        }
        assert_eq!(pl_graph_start(system, mine, null_mut()), PL_FULL);
        assert_eq!(pl_graph_run(system, mine, null_mut()), PL_FULL);
        assert_eq!(pl_graph_wait(system, mine), PL_TOO_LATE);
        assert_eq!(pl_event_complete(system, last), PL_OK);
        assert_eq!(pl_graph_start(system, mine, null_mut()), PL_OK);
        assert_eq!(pl_graph_wait(system, mine), PL_OK);
        assert_eq!(pl_system_destroy(system), PL_OK);
    }
}
