//! Calls of C in any order, with right and wrong arguments, against a model that says what each returns.
//!
//! The job systems have no workers, so that bodies run in calls of this thread alone and a log says when. So
//! the model knows at each moment what has ended and how. A call with one mistake returns the status of that
//! mistake; with several it returns that of one of them; without any it does what it is for, and runs what it
//! may run. At the end each body was released once.
#![allow(unsafe_code)] // Programs in C are.

mod bodies;
mod graphs;
mod jobs;
mod model;
mod names;

use std::mem::zeroed;
use std::ptr::null_mut;

use capi::pl_status::{PL_DESTROYED, PL_INVALID, PL_OK, PL_UNKNOWN};
use capi::{
    pl_poll, pl_pump, pl_status, pl_system, pl_system_create, pl_system_desc, pl_system_destroy,
};

use bodies::{Happened, Log, last_error};
use model::{Model, Outcome, Phase};

/// The most job systems of a program: each leaves some memory behind for ever.
const SYSTEMS: usize = 3;

/// Runs the calls that these bytes say.
pub(super) fn run(bytes: &[u8]) {
    let mut program = Program::new();
    let mut bytes = Bytes(bytes);
    program.create();
    while !bytes.0.is_empty() {
        program.step(&mut bytes);
    }
    for system in 1..program.systems.len() {
        program.destroy(system);
    }
    assert!(
        program.open.is_empty(),
        "never released: {:?}",
        program.open
    );
}

/// What is left to say.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(first)
    }
}

/// Which bodies a call may run.
enum MayRun {
    Nothing,
    /// These jobs, and what else is ready in the job system when none of them is: as waits do where there are
    /// no workers.
    Wait(usize, Vec<usize>),
    /// The nodes of a graph.
    Graph(usize),
    /// Whatever is ready in a job system.
    All(usize),
}

struct Program {
    model: Model,
    log: Log,
    systems: Vec<*mut pl_system>,
    /// The numbers that C has of what is in the model's lists.
    jobs: Vec<u64>,
    tokens: Vec<u64>,
    frames: Vec<u64>,
    groups: Vec<u64>,
    graphs: Vec<u64>,
    /// With the graph and the place in it.
    nodes: Vec<(usize, usize, u64)>,
    /// The bodies that were not released.
    open: Vec<Happened>,
    at_end: bool,
}

/// Numbers of nothing.
const STRANGE: [u64; 4] = [0, u64::MAX, 0x1_0000_0000, 1 << 23];

impl Program {
    fn new() -> Program {
        let mut model = Model::default();
        model.systems.push(false);
        Program {
            model,
            log: Log::default(),
            systems: vec![null_mut()],
            jobs: Vec::new(),
            tokens: Vec::new(),
            frames: Vec::new(),
            groups: Vec::new(),
            graphs: Vec::new(),
            nodes: Vec::new(),
            open: Vec::new(),
            at_end: false,
        }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.next() % 40 {
            0 => self.create(),
            1 if bytes.next().is_multiple_of(4) => {
                let system = self.system(bytes);
                self.destroy(system);
            }
            2..9 => self.schedule(bytes, false),
            9..11 => self.schedule(bytes, true),
            11 => self.run_loop(bytes),
            12 => self.combine(bytes),
            13 => self.event(bytes),
            14..16 => self.complete(bytes),
            16 => self.abandon(bytes),
            17..20 => self.add_dependency(bytes),
            20..24 => self.wait(bytes),
            24 => self.is_done(bytes),
            25 => self.poll(bytes),
            26 => self.pump(bytes),
            27 => self.make_token(bytes),
            28 => self.end_token(bytes),
            29 => self.make_frame(bytes),
            30 => self.end_frame(bytes),
            31 => self.make_group(bytes),
            32 => self.end_group(bytes),
            33 => self.make_graph(bytes),
            34..37 => self.add_node(bytes),
            37 => self.order_nodes(bytes),
            _ => self.graph_call(bytes),
        }
    }

    /// A job system, mostly one that lives.
    fn system(&self, bytes: &mut Bytes<'_>) -> usize {
        let byte = bytes.next();
        if byte < 240 {
            let alive: Vec<usize> = (1..self.systems.len())
                .filter(|&system| self.model.systems[system])
                .collect();
            if !alive.is_empty() {
                return alive[byte % alive.len()];
            }
        }
        byte % self.systems.len()
    }

    /// One of these numbers with its place, or a strange one.
    fn pick(known: &[u64], bytes: &mut Bytes<'_>) -> (u64, Option<usize>) {
        let byte = bytes.next();
        if byte >= 230 || known.is_empty() {
            return (STRANGE[byte % STRANGE.len()], None);
        }
        // The last ones are of more interest.
        let place = known.len() - 1 - byte % known.len();
        (known[place], Some(place))
    }

    /// What is wrong with a job system.
    fn wrong_system(&self, system: usize) -> Vec<pl_status> {
        match (system, self.model.systems[system]) {
            (0, _) => vec![PL_INVALID],
            (_, false) => vec![PL_DESTROYED],
            (_, true) => Vec::new(),
        }
    }

    /// What is wrong with a number, whose owner is known if it is of this kind and is not gone.
    fn wrong_number(&self, system: usize, owner: Option<usize>) -> Option<pl_status> {
        (self.model.systems[system] && owner != Some(system)).then_some(PL_UNKNOWN)
    }

    /// Checks the status of a call; whether nothing was wrong with it.
    #[track_caller]
    fn judge(&self, status: pl_status, wrong: &[pl_status]) -> bool {
        if wrong.is_empty() {
            return true;
        }
        assert!(
            wrong.contains(&status),
            "{status:?} ({}), not {wrong:?}",
            last_error()
        );
        assert!(!last_error().is_empty());
        false
    }

    /// Checks the status of a call that does all that it is for.
    #[track_caller]
    fn judge_plain(&self, status: pl_status, wrong: &[pl_status]) -> bool {
        let is_right = self.judge(status, wrong);
        assert!(!is_right || status == PL_OK, "{status:?}: {}", last_error());
        is_right
    }

    /// Brings the model to what the log says. Returns how many jobs were taken: they ran, or were called off.
    #[track_caller]
    fn follow(&mut self, may_run: &MayRun) -> usize {
        let happened = std::mem::take(&mut *self.log.borrow_mut());
        let mut taken = 0;
        for &what in &happened {
            taken += usize::from(matches!(what, Happened::Ran(_) | Happened::NodeRan(..)));
            match what {
                Happened::Ran(job) => {
                    let system = self.model.jobs[job].system;
                    let is_last =
                        |first: &[usize]| !first.iter().any(|&job| self.model.can_run(job));
                    let may = match may_run {
                        MayRun::Wait(_, first) if first.contains(&job) => true,
                        MayRun::Wait(of, first) => *of == system && is_last(first),
                        MayRun::All(of) => *of == system,
                        MayRun::Nothing | MayRun::Graph(_) => false,
                    };
                    assert!(may, "job {job} is not for this call to run");
                    self.model.ran(job);
                }
                Happened::NodeRan(graph, node) => {
                    let is_last =
                        |first: &[usize]| !first.iter().any(|&job| self.model.can_run(job));
                    let system = self.model.graphs[graph].system;
                    let may = match may_run {
                        MayRun::Graph(of) => *of == graph,
                        MayRun::All(of) => *of == system,
                        MayRun::Wait(of, first) => *of == system && is_last(first),
                        MayRun::Nothing => false,
                    };
                    let state = &mut self.model.graphs[graph];
                    assert!(may && state.phase == Phase::Started, "graph {graph} ran");
                    state.ran(node);
                }
                Happened::Released(job) => {
                    self.is_released(what);
                    taken += usize::from(self.model.released(job, self.at_end));
                }
                Happened::NodeReleased(graph, _) => {
                    self.is_released(what);
                    let phase = self.model.graphs[graph].phase;
                    let may = matches!(phase, Phase::Broken | Phase::Gone) || self.at_end;
                    assert!(may, "a node was released in a graph that is {phase:?}");
                }
            }
        }
        self.model.settle();
        taken
    }

    #[track_caller]
    fn is_released(&mut self, what: Happened) {
        let place = self.open.iter().position(|&open| open == what);
        let place = place.unwrap_or_else(|| panic!("{what:?} twice"));
        self.open.swap_remove(place);
    }

    /// A call that made nothing has released the data that it was given, and nothing else.
    #[track_caller]
    fn refused(&mut self, released: Happened) {
        let happened = std::mem::take(&mut *self.log.borrow_mut());
        assert_eq!(happened, [released]);
    }

    fn create(&mut self) {
        if self.systems.len() > SYSTEMS {
            return;
        }
        let desc = pl_system_desc {
            size: size_of::<pl_system_desc>(),
            no_workers: 1,
            // SAFETY: zero is a value of each field.
            ..unsafe { zeroed() }
        };
        let mut system = null_mut();
        // SAFETY: the description is right.
        let status = unsafe { pl_system_create(&desc, &mut system) };
        assert_eq!(status, PL_OK, "{}", last_error());
        self.systems.push(system);
        self.model.systems.push(true);
    }

    fn destroy(&mut self, system: usize) {
        let runnable = self.model.runnable(system);
        // SAFETY: null, or made; this is the only thread that calls.
        let status = unsafe { pl_system_destroy(self.systems[system]) };
        let mut wrong = self.wrong_system(system);
        if system == 0 {
            wrong = vec![PL_OK]; // Nothing to end.
        }
        if !self.judge_plain(status, &wrong) {
            return;
        }
        self.at_end = true;
        self.follow(&MayRun::All(system));
        self.at_end = false;
        self.model.systems[system] = false;
        let is_fine = |&&job: &&usize| {
            let ended = self.model.jobs[job].ended;
            !matches!(ended, Some(Outcome::Fine | Outcome::Failed))
        };
        let left: Vec<&usize> = runnable.iter().filter(is_fine).collect();
        assert!(left.is_empty(), "the end left out what could run: {left:?}");
        for graph in self
            .model
            .graphs
            .iter_mut()
            .filter(|graph| graph.system == system)
        {
            let is_over = graph.phase != Phase::Started || graph.has_run.iter().all(|&has| has);
            assert!(is_over, "the end did not wait for a graph");
            graph.phase = Phase::Gone;
        }
        for job in self
            .model
            .jobs
            .iter_mut()
            .filter(|job| job.system == system)
        {
            job.ended.get_or_insert(Outcome::Cancelled);
        }
    }

    fn poll(&mut self, bytes: &mut Bytes<'_>) {
        let (system, mut found) = (self.system(bytes), 7);
        let could = self.model.has_ready(system);
        // SAFETY: the job system is null or was made.
        let status = unsafe { pl_poll(self.systems[system], &mut found) };
        if self.judge_plain(status, &self.wrong_system(system)) {
            let taken = self.follow(&MayRun::All(system));
            assert!(taken <= 1 && found == taken as i32, "{found}, and {taken}");
            assert!(!could || taken == 1, "something was ready");
        }
    }

    fn pump(&mut self, bytes: &mut Bytes<'_>) {
        const LONG: u64 = 3_600_000_000_000;
        let (system, mut count) = (self.system(bytes), 0);
        // SAFETY: as above.
        let status = unsafe { pl_pump(self.systems[system], LONG, &mut count) };
        if self.judge_plain(status, &self.wrong_system(system)) {
            let taken = self.follow(&MayRun::All(system));
            assert_eq!(count, taken);
            assert!(!self.model.has_ready(system), "something is left");
        }
    }
}
