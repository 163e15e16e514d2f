//! A graph of C: declared, then built, then run as often as the program likes.
//!
//! What is in it is taken out for a call that takes long (a build, a run, a wait), so that no lock is held
//! while code of the program runs. Meanwhile the graph is busy, and other calls are refused.

mod declaration;
mod running;

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard};

use paceline::{BuiltGraph, JobSystem, Name, NotStarted, StartedGraph};

pub(crate) use declaration::{Declaration, NodePart, NodeWishes};
pub(crate) use running::RunOfGraph;

use crate::status::{Answer, Refusal, pl_status, told};

/// A run that has begun, or the graph again.
type StartResult = Result<StartedGraph<'static, ()>, Box<NotStarted<()>>>;

/// What a graph is.
enum GraphState {
    Declared(Declaration),
    Built(Box<BuiltGraph<'static, ()>>),
    Started(Box<StartedGraph<'static, ()>>),
    /// A call has what was here.
    Busy,
    /// It could not be built, or started, as this says.
    Broken(&'static str),
}

/// A graph of the program's.
pub(crate) struct ProgramGraph {
    number: u64,
    name: Name,
    run: Arc<RunOfGraph>,
    state: Mutex<GraphState>,
}

/// A node's number is its graph's, then its place in it plus one.
const PLACE_BITS: u32 = 24;

impl ProgramGraph {
    pub(crate) fn new(name: Name, number: u64) -> ProgramGraph {
        ProgramGraph {
            number,
            name,
            run: Arc::new(RunOfGraph::new(number)),
            state: Mutex::new(GraphState::Declared(Declaration::new(name))),
        }
    }

    /// For its bodies.
    pub(crate) fn run_of(&self) -> Arc<RunOfGraph> {
        Arc::clone(&self.run)
    }

    fn state(&self) -> MutexGuard<'_, GraphState> {
        // What it holds is sound, whatever panicked under it.
        self.state
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// The number of a node at this place.
    pub(crate) fn node(&self, place: usize) -> u64 {
        self.number << PLACE_BITS | (place as u64 + 1)
    }

    /// The places of nodes, which are needed for `name`. Zeros are left out.
    fn places(&self, nodes: &[u64], count: usize, name: Name) -> Answer<Vec<usize>> {
        let there = nodes.iter().filter(|&&node| node != 0);
        there
            .map(|&node| {
                let place = (node & ((1 << PLACE_BITS) - 1)) as usize;
                let is_mine = node >> PLACE_BITS == self.number && (1..=count).contains(&place);
                is_mine.then(|| place - 1).ok_or_else(|| {
                    Refusal::new(
                        pl_status::PL_UNKNOWN,
                        format!(
                            "'{name}' names {node:#x}, which is not the number of a job of graph '{}'",
                            self.name
                        ),
                    )
                })
            })
            .collect()
    }

    /// Declares something.
    ///
    /// # Errors
    /// Those of `declare`; if the graph is built.
    pub(crate) fn declare<R>(
        &self,
        declare: impl FnOnce(&mut Declaration) -> Answer<R>,
    ) -> Answer<R> {
        match &mut *self.state() {
            GraphState::Declared(declaration) => declare(declaration),
            _ => Err(Refusal::new(
                pl_status::PL_TOO_LATE,
                format!("graph '{}' is built: nothing can be added to it", self.name),
            )),
        }
    }

    /// Adds a node that comes after these, if these conditions are true. Returns its number.
    pub(crate) fn add(
        &self,
        part: NodePart,
        wishes: NodeWishes,
        (after, only_if): (&[u64], &[u64]),
    ) -> Answer<u64> {
        let mut part = Some(part); // It outlives the lock: its end calls the program.
        let place = self.declare(|declaration| {
            let mut wishes = wishes;
            let (count, name) = (declaration.len(), wishes.name);
            wishes.after = self.places(after, count, name)?;
            wishes.only_if = self.places(only_if, count, name)?;
            declaration.add(&mut part, wishes)
        })?;
        Ok(self.node(place))
    }

    /// `node` comes after `before`, too.
    pub(crate) fn order(&self, node: u64, before: u64) -> Answer {
        self.declare(|declaration| {
            let known = |node| {
                let places =
                    self.places(&[node], declaration.len(), "pl_graph_add_dependency".into());
                places.map(|places| places.first().copied())
            };
            let (Some(node), Some(before)) = (known(node)?, known(before)?) else {
                return Err(Refusal::invalid("0 is no job of a graph"));
            };
            declaration.order(node, before)
        })
    }

    /// Takes the state out for a call, if it is one that the call is for; the graph is busy then.
    fn take<T>(
        &self,
        wanted: impl FnOnce(GraphState) -> Result<T, GraphState>,
    ) -> Result<T, Refusal> {
        let mut state = self.state();
        let taken = wanted(std::mem::replace(&mut *state, GraphState::Busy));
        taken.map_err(|other| {
            let why = self.unfit(&other);
            *state = other;
            why
        })
    }

    /// Why a call is refused that is for another state.
    fn unfit(&self, state: &GraphState) -> Refusal {
        let name = self.name;
        match state {
            GraphState::Declared(_) => Refusal::invalid(format!(
                "graph '{name}' is not built: call pl_graph_build first"
            )),
            GraphState::Broken(done) => Refusal::invalid(format!(
                "graph '{name}' could not be {done}: destroy it, and declare it anew"
            )),
            GraphState::Built(_) => Refusal::new(
                pl_status::PL_TOO_LATE,
                format!("no run of graph '{name}' was started"),
            ),
            GraphState::Started(_) => Refusal::new(
                pl_status::PL_BUSY,
                format!("graph '{name}' is running: call pl_graph_wait first"),
            ),
            GraphState::Busy => Refusal::new(
                pl_status::PL_BUSY,
                format!("graph '{name}' is in another call, which runs, builds or waits for it"),
            ),
        }
    }

    fn put(&self, state: GraphState) {
        *self.state() = state;
    }

    pub(crate) fn build(&self, js: &JobSystem) -> Answer {
        let declaration = self.take(|state| match state {
            GraphState::Declared(declaration) => Ok(declaration),
            other => Err(other),
        });
        let declaration = declaration.map_err(|why| match why.status() {
            pl_status::PL_BUSY | pl_status::PL_TOO_LATE => Refusal::new(
                pl_status::PL_TOO_LATE,
                format!("graph '{}' is built", self.name),
            ),
            _ => why,
        })?;
        let back = PutBack(self, GraphState::Broken("built"));
        let built = declaration.build(js)?;
        back.with(GraphState::Built(Box::new(built)));
        Ok(())
    }

    fn take_built(&self) -> Answer<Box<BuiltGraph<'static, ()>>> {
        self.take(|state| match state {
            GraphState::Built(built) => Ok(built),
            other => Err(other),
        })
    }

    pub(crate) fn run(&self, data: *mut c_void) -> Answer {
        let built = self.take_built()?;
        self.run.set_data(data);
        let mut back = PutBack(self, GraphState::Built(built));
        if let PutBack(_, GraphState::Built(built)) = &mut back {
            built.try_run(&mut ())?;
        }
        Ok(())
    }

    /// Starts a run by this call, of the job system or of a frame.
    pub(crate) fn start(
        &self,
        data: *mut c_void,
        start: impl FnOnce(BuiltGraph<'static, ()>, Box<()>) -> StartResult,
    ) -> Answer {
        let built = self.take_built()?;
        self.run.set_data(data);
        // Waits may be nested too deep for another one. Then the graph is gone.
        let back = PutBack(self, GraphState::Broken("started"));
        match start(*built, Box::new(())) {
            Ok(started) => {
                back.with(GraphState::Started(Box::new(started)));
                Ok(())
            }
            Err(refused) => {
                back.with(GraphState::Built(Box::new(refused.graph)));
                Err(refused.error.into())
            }
        }
    }

    pub(crate) fn wait(&self) -> Answer {
        if running::is_here(self.number) {
            return Err(Refusal::new(
                pl_status::PL_DEADLOCK,
                format!(
                    "graph '{}' is waited for in one of its own jobs, which it waits for",
                    self.name
                ),
            ));
        }
        let started = self.take(|state| match state {
            GraphState::Started(started) => Ok(started),
            other => Err(other),
        })?;
        let (built, (), result) = {
            let (built, data, result) = started.try_wait();
            (built, *data, result)
        };
        self.put(GraphState::Built(Box::new(built)));
        Ok(result?)
    }

    /// Whether no run goes on.
    pub(crate) fn is_done(&self) -> bool {
        match &*self.state() {
            GraphState::Started(started) => started.is_done(),
            GraphState::Busy => false,
            GraphState::Declared(_) | GraphState::Built(_) | GraphState::Broken(_) => true,
        }
    }

    /// Takes out what is in it, to be dropped by the caller, outside of locks.
    pub(crate) fn end(&self) -> Answer<impl Sized + use<>> {
        self.take(|state| match state {
            GraphState::Started(_) | GraphState::Busy => Err(state),
            other => Ok(other),
        })
    }

    /// Before its job system ends: waits for the run that was started. Its error is dropped.
    pub(crate) fn end_at_last(&self) -> Answer {
        if matches!(*self.state(), GraphState::Started(_)) {
            let _ = self.wait();
        }
        drop(self.end()?);
        Ok(())
    }

    /// Whether its job system cannot end now: another call has it, or this is one of its own jobs.
    pub(crate) fn must_stay(&self) -> Answer {
        let state = self.state();
        if matches!(*state, GraphState::Busy) || running::is_here(self.number) {
            return Err(self.unfit(&GraphState::Busy));
        }
        Ok(())
    }

    /// The jobs in an order in which they could run, a line each.
    pub(crate) fn text(&self) -> Answer<String> {
        match &*self.state() {
            GraphState::Built(built) => Ok(told(built)),
            other => Err(self.unfit(other)),
        }
    }
}

/// Gives a graph back what it is after a call, whatever happens in that.
struct PutBack<'g>(&'g ProgramGraph, GraphState);

impl PutBack<'_> {
    fn with(mut self, state: GraphState) {
        self.1 = state;
    }
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        self.0.put(std::mem::replace(&mut self.1, GraphState::Busy));
    }
}
