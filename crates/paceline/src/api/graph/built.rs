//! A graph that is built: its runs.

use std::sync::Arc;

use platform::{Os, Platform};

use super::NodeKind;
use super::resources::{Field, Resources, places_of};
use crate::ScheduleError;
use crate::access::{NeededItems, Place};
use crate::error::WaitError;
use crate::plan::CheckedGraph;
use crate::store::{Label, LaneFlags, Ticket};
use crate::work::built::{Built, Run};
use crate::work::{Context, Shared};

/// A graph that was built once, from [`GraphBuilder::build`](crate::GraphBuilder::build), and runs as often
/// as it is told to.
///
/// A run allocates nothing and adds no edge. A job of it costs a claim and its share of a subtraction, and an
/// edge one subtraction. As many workers are woken as there is work for. Two runs of one graph exclude each
/// other, because a run has the graph to itself (`&mut`); graphs of their own may run at the same time.
///
/// If a body panics, the jobs that come after it are not run, all others are, and the run raises the panic.
/// After that the graph can be run again.
///
/// `to_string` lists the jobs in an order in which they could run, each with those that it comes after.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let mut graph = js.graph("frame");
/// let input = graph.job("input").run(|_| ());
/// graph.job("draw").after(input).run(|_| ());
/// let mut graph = graph.build();
/// for _ in 0..60 {
///     graph.run(&mut ());
/// }
/// assert!(graph.to_string().contains("draw, after input"));
/// ```
pub struct BuiltGraph<'b, D: Resources + ?Sized, P: Platform = Os> {
    pub(super) shared: Arc<Shared<P>>,
    /// In an `Arc` so that it stays where it is, and may be used through another pointer while this is moved.
    pub(super) built: Arc<Built<'b, P>>,
    pub(super) fields: Vec<Field>,
    /// What the data of each run has to have.
    needed: Vec<NeededItems>,
    pub(super) shape: Shape,
    pub(super) _data: std::marker::PhantomData<fn(&mut D)>,
}

/// What is told about a graph.
pub(super) struct Shape {
    pub(super) label: Label,
    pub(super) nodes: Vec<NodeFacts>,
    pub(super) checked: CheckedGraph,
}

/// What is told about a node.
#[derive(Clone, Copy)]
pub(super) struct NodeFacts {
    pub(super) label: Label,
    pub(super) kind: NodeKind,
    pub(super) is_on_main: bool,
}

impl<'b, D: Resources + ?Sized, P: Platform> BuiltGraph<'b, D, P> {
    pub(super) fn new(
        shared: Arc<Shared<P>>,
        built: Built<'b, P>,
        fields: Vec<Field>,
        needed: Vec<NeededItems>,
        shape: Shape,
    ) -> Self {
        BuiltGraph {
            shared,
            built: Arc::new(built),
            fields,
            needed,
            shape,
            _data: std::marker::PhantomData,
        }
    }

    /// Runs the graph on this data. Returns when all is over. Meanwhile this thread runs jobs of the graph,
    /// among them those [for the main thread](crate::GraphJob::on_main), and may block.
    ///
    /// ```
    /// struct World {
    ///     ticks: u32,
    /// }
    /// paceline::resources! { World: Keys { ticks: u32 } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("tick");
    /// graph.job("count").writes(w.ticks).run(|_, ticks| *ticks += 1);
    /// let mut graph = graph.build();
    /// let mut worlds = [World { ticks: 0 }, World { ticks: 10 }];
    /// for world in &mut worlds {
    ///     graph.run(world);
    /// }
    /// assert_eq!(worlds.map(|world| world.ticks), [1, 11]);
    /// ```
    ///
    /// # Panics
    /// With the first panic of a body, when all is over. Where [`try_run`](BuiltGraph::try_run) gives another
    /// error.
    #[track_caller]
    pub fn run(&mut self, data: &mut D) {
        if let Err(error) = self.try_run(data) {
            error.raise();
        }
    }

    /// As [`run`](BuiltGraph::run), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// let load = graph.job("load").run(|_| panic!("no such file"));
    /// graph.job("draw").after(load).run(|_| unreachable!());
    /// let mut graph = graph.build();
    /// let error = graph.try_run(&mut ()).unwrap_err();
    /// assert!(error.to_string().ends_with("panicked: no such file"));
    /// assert!(graph.try_run(&mut ()).is_err()); // It can be run again.
    /// ```
    ///
    /// # Errors
    /// The first panic of a body. If the data has fewer items than jobs declare, if the job system has ended,
    /// if its job table has no room for the run, or if the calling thread cannot enter it: then nothing has
    /// run.
    pub fn try_run(&mut self, data: &mut D) -> Result<(), WaitError> {
        self.outside(|this, cx| this.run_with(cx, data, || ()))
            .map(drop)
    }

    /// As [`run`](BuiltGraph::run), from a job: for a graph inside another one, with data of its own.
    ///
    /// ```
    /// struct Physics {
    ///     steps: u32,
    /// }
    /// struct World {
    ///     physics: Physics,
    /// }
    /// paceline::resources! { Physics: PhysicsKeys { steps: u32 } }
    /// paceline::resources! { World: WorldKeys { physics: Physics } }
    ///
    /// let js = paceline::JobSystem::new();
    /// let (mut inner, p) = js.graph_of::<Physics>("physics");
    /// inner.job("step").writes(p.steps).run(|_, steps| *steps += 1);
    /// let mut inner = inner.build();
    ///
    /// let (mut outer, w) = js.graph_of::<World>("frame");
    /// outer.job("physics").writes(w.physics).run(move |cx, physics| {
    ///     (0..4).for_each(|_| inner.run_in(cx, physics));
    /// });
    /// let mut world = World { physics: Physics { steps: 0 } };
    /// outer.build().run(&mut world);
    /// assert_eq!(world.physics.steps, 4);
    /// ```
    ///
    /// # Panics
    /// As [`run`](BuiltGraph::run); and if the context is that of another job system.
    #[track_caller]
    pub fn run_in(&mut self, cx: &Context<'_, P>, data: &mut D) {
        if let Err(error) = self.try_run_in(cx, data) {
            error.raise();
        }
    }

    /// As [`run_in`](BuiltGraph::run_in), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("fail").run(|_| panic!("as planned"));
    /// let mut graph = graph.build();
    /// let failed = js.enter(|cx| graph.try_run_in(cx, &mut ()).is_err());
    /// assert!(failed);
    /// ```
    ///
    /// # Errors
    /// As [`try_run`](BuiltGraph::try_run).
    ///
    /// # Panics
    /// If the context is that of another job system.
    #[track_caller]
    pub fn try_run_in(&mut self, cx: &Context<'_, P>, data: &mut D) -> Result<(), WaitError> {
        assert!(
            std::ptr::eq(cx.shared, &*self.shared),
            "this graph belongs to another job system than the job that runs it"
        );
        self.run_with(cx, data, || ())
    }

    /// Runs the graph, and calls `beside` on this thread meanwhile: workers begin at once. When `beside` has
    /// returned, this thread runs jobs of the graph, too.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("simulate").run(|_| ());
    /// let mut graph = graph.build();
    /// let shown = graph.run_beside(&mut (), || "the last frame");
    /// assert_eq!(shown, "the last frame");
    /// ```
    ///
    /// # Panics
    /// With the panic of `beside`, or else as [`run`](BuiltGraph::run); when all is over in any case.
    #[track_caller]
    pub fn run_beside<R>(&mut self, data: &mut D, beside: impl FnOnce() -> R) -> R {
        match self.outside(|this, cx| this.run_with(cx, data, beside)) {
            Ok(result) => result,
            Err(error) => error.raise(),
        }
    }

    /// Calls `run` in the job system, which does not end meanwhile.
    fn outside<R>(
        &mut self,
        run: impl FnOnce(&mut Self, &Context<'_, P>) -> Result<R, WaitError>,
    ) -> Result<R, WaitError> {
        let shared = self.shared.clone();
        let visit = shared.ending.visit().ok_or(ScheduleError::ShutDown)?;
        let cx = shared.context()?;
        let result = run(self, &cx);
        drop(visit);
        shared.end_if_deferred(&cx);
        result
    }

    fn run_with<R>(
        &mut self,
        cx: &Context<'_, P>,
        data: &mut D,
        beside: impl FnOnce() -> R,
    ) -> Result<R, WaitError> {
        let places = self.places(data)?;
        // SAFETY: no run is in progress, since this has the graph to itself and runs end in this call. The
        // places are those of `data`, which is borrowed until then.
        let (result, error) = unsafe { self.built.run(cx, places, beside)? };
        match error {
            None => Ok(result),
            Some(error) => Err(error),
        }
    }

    /// The places of the data for a run. They have all items that jobs declare.
    fn places(&mut self, data: &mut D) -> Result<Vec<Place>, ScheduleError> {
        // SAFETY: as in `run_with`: no run is in progress.
        let mut places = unsafe { self.built.take_places() };
        places_of(data, &self.fields, &mut places);
        for needed in &self.needed {
            let len = places[needed.resource as usize].len;
            if len < needed.items.end {
                return Err(ScheduleError::MissingItems(Box::new(needed.missing(len))));
            }
        }
        Ok(places)
    }

    /// Checks that this graph is that of a job system.
    #[track_caller]
    pub(super) fn belongs_to(&self, shared: &Shared<P>) {
        assert!(
            std::ptr::eq(shared, &*self.shared),
            "this graph belongs to another job system"
        );
    }

    /// Begins a run, which goes on until it has been waited for. `lane`: that of jobs that say none.
    ///
    /// # Safety
    /// Until then the graph is not used for anything else, and the data lives and is touched by nothing else.
    pub(super) unsafe fn begin(
        &mut self,
        cx: &Context<'_, P>,
        data: &mut D,
        lane: LaneFlags,
    ) -> Result<Run, ScheduleError> {
        let places = self.places(data)?;
        // SAFETY: the caller's promise.
        unsafe { self.built.start(cx, places, Ticket::NONE, lane) }
    }
}
