//! Runs that go on while the thread that started them does other things.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use platform::{Os, Platform};

use super::BuiltGraph;
use super::resources::Resources;
use crate::border::UserValue;
use crate::error::{ScheduleError, WaitError, or_panic};
use crate::store::LaneFlags;
use crate::work::Shared;
use crate::work::built::Run;
use crate::{Frame, JobSystem};

/// A run of a graph that was started, with the graph and its data, which [`wait`](StartedGraph::wait) gives
/// back. From [`JobSystem::start`]. If it is dropped, it waits first, unless it is dropped in one of the
/// run's own jobs: then the run goes on, and graph and data are never dropped.
///
/// ```
/// struct World {
///     ticks: u32,
/// }
/// paceline::resources! { World: Keys { ticks: u32 } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("tick");
/// graph.job("count").writes(w.ticks).run(|_, ticks| *ticks += 1);
/// let (mut graph, mut world) = (graph.build(), Box::new(World { ticks: 0 }));
/// for _ in 0..3 {
///     let started = js.start(graph, world);
///     // Workers run it meanwhile.
///     (graph, world) = started.wait();
/// }
/// assert_eq!(world.ticks, 3);
/// ```
#[must_use = "wait for it"]
pub struct StartedGraph<'js, D: Resources + Send + 'static, P: Platform = Os> {
    shared: &'js Shared<P>,
    graph: ManuallyDrop<BuiltGraph<'static, D, P>>,
    /// A box, as a pointer: its content is used through others while this is moved.
    data: NonNull<D>,
    run: Run,
}

// SAFETY: it owns the data, which may be sent, and a graph, which may be sent.
unsafe impl<D: Resources + Send + 'static, P: Platform> Send for StartedGraph<'_, D, P> {}

/// Why a run was not started, with what it would have owned; from [`JobSystem::try_start`].
///
/// ```
/// fn start_or_run(js: &paceline::JobSystem, graph: paceline::BuiltGraph<'static, ()>) {
///     match js.try_start(graph, Box::new(())) {
///         Ok(started) => drop(started.wait()),
///         Err(refused) => {
///             let paceline::NotStarted { mut graph, mut data, error } = *refused;
///             println!("{error}");
///             graph.run(&mut data);
///         }
///     }
/// }
/// let js = paceline::JobSystem::new();
/// start_or_run(&js, js.graph("frame").build());
/// ```
pub struct NotStarted<D: Resources + Send + 'static, P: Platform = Os> {
    /// The graph, which can be run.
    pub graph: BuiltGraph<'static, D, P>,
    /// The data.
    pub data: Box<D>,
    /// The reason.
    pub error: ScheduleError,
}

impl<P: Platform> JobSystem<P> {
    /// Starts a run of a graph, with data that it owns meanwhile. Workers begin at once. Jobs
    /// [for the main thread](crate::GraphJob::on_main) are run by the thread that waits. Never blocks, and
    /// allocates nothing.
    ///
    /// With borrowed data there is [`BuiltGraph::run_beside`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("simulate").run(|_| ());
    /// let started = js.start(graph.build(), Box::new(()));
    /// println!("meanwhile");
    /// started.wait();
    /// ```
    ///
    /// # Panics
    /// If the graph is that of another job system, if the data has fewer items than jobs declare, if the job
    /// table has no room for the run, or as [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn start<D: Resources + Send + 'static>(
        &self,
        graph: BuiltGraph<'static, D, P>,
        data: Box<D>,
    ) -> StartedGraph<'_, D, P> {
        or_panic(self.try_start(graph, data).map_err(|refused| refused.error))
    }

    /// As [`start`](JobSystem::start), with an error instead of a panic. It has the graph and the data.
    ///
    /// ```
    /// let js = paceline::Builder::new().max_jobs(1).build().unwrap();
    /// let mut graph = js.graph("frame");
    /// graph.job("simulate").run(|_| ());
    /// let graph = graph.build();
    /// let mut others = Vec::new();
    /// while let Ok(other) = js.job("other").try_latch(1) {
    ///     others.push(other);
    /// }
    /// let refused = js.try_start(graph, Box::new(())).err().expect("there is no room for it");
    /// others.clear();
    /// let started = js.try_start(refused.graph, refused.data);
    /// assert!(started.is_ok());
    /// ```
    ///
    /// # Errors
    /// If the data has fewer items than jobs declare, if the job table has no room for the run, if the job
    /// system has ended, or if the calling thread cannot enter it. Then nothing has run.
    ///
    /// # Panics
    /// If the graph is that of another job system; if there is no stack left to wait for it, as
    /// [`wait`](JobSystem::wait). Then nothing has run.
    #[track_caller]
    pub fn try_start<D: Resources + Send + 'static>(
        &self,
        graph: BuiltGraph<'static, D, P>,
        data: Box<D>,
    ) -> Result<StartedGraph<'_, D, P>, Box<NotStarted<D, P>>> {
        StartedGraph::begin(self.shared(), graph, data, LaneFlags::NORMAL)
    }
}

/// Runs of a frame.
impl<'js, P: Platform> Frame<'js, P> {
    /// Starts a run of a graph in this frame; as [`JobSystem::start`]. If several frames are in flight, the
    /// deadline of this one decides how urgent the jobs of the run are, as for [`job`](Frame::job). A wait
    /// for the run raises them as ever.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let (mut render, mut update) = (js.graph("render"), js.graph("update"));
    /// render.job("draw").run(|_| ());
    /// update.job("simulate").run(|_| ());
    ///
    /// let this = js.frame("this picture", Duration::from_millis(16));
    /// let next = js.frame("the next one", Duration::from_millis(33));
    /// let update = next.start(update.build(), Box::new(()));
    /// let render = this.start(render.build(), Box::new(())); // It goes first.
    /// render.wait();
    /// drop(this);
    /// update.wait();
    /// ```
    ///
    /// # Panics
    /// As [`JobSystem::start`].
    #[track_caller]
    pub fn start<D: Resources + Send + 'static>(
        &self,
        graph: BuiltGraph<'static, D, P>,
        data: Box<D>,
    ) -> StartedGraph<'js, D, P> {
        or_panic(self.try_start(graph, data).map_err(|refused| refused.error))
    }

    /// As [`start`](Frame::start), with an error instead of a panic. It has the graph and the data.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("update");
    /// graph.job("simulate").run(|_| ());
    /// let frame = js.frame("frame", Duration::from_millis(16));
    /// let started = frame.try_start(graph.build(), Box::new(()));
    /// assert!(started.is_ok());
    /// ```
    ///
    /// # Errors
    /// As [`JobSystem::try_start`].
    ///
    /// # Panics
    /// If the graph is that of another job system.
    #[track_caller]
    pub fn try_start<D: Resources + Send + 'static>(
        &self,
        graph: BuiltGraph<'static, D, P>,
        data: Box<D>,
    ) -> Result<StartedGraph<'js, D, P>, Box<NotStarted<D, P>>> {
        StartedGraph::begin(self.shared(), graph, data, self.lane())
    }
}

impl<'js, D: Resources + Send + 'static, P: Platform> StartedGraph<'js, D, P> {
    /// Begins a run. `lane`: that of its normal jobs, as its frame says; where that is the normal one it is
    /// that of the thread.
    #[track_caller]
    fn begin(
        shared: &'js Shared<P>,
        graph: BuiltGraph<'static, D, P>,
        data: Box<D>,
        lane: LaneFlags,
    ) -> Result<Self, Box<NotStarted<D, P>>> {
        graph.belongs_to(shared);
        let mut graph = graph;
        let mut data = NonNull::from(Box::leak(data));
        let run = shared.context().and_then(|cx| {
            let lane = match lane {
                LaneFlags::NORMAL => cx.lane(),
                of_frame => of_frame,
            };
            // SAFETY: the data was a box. Graph and data are owned by what is returned, which does not use
            // them before the run has been waited for. If that is forgotten, they are never used again,
            // nor do they end.
            unsafe { graph.begin(&cx, data.as_mut(), lane) }
        });
        match run {
            Ok(run) => Ok(StartedGraph {
                shared,
                graph: ManuallyDrop::new(graph),
                data,
                run,
            }),
            Err(error) => Err(Box::new(NotStarted {
                graph,
                // SAFETY: it was a box, and there is no run that uses it.
                data: unsafe { Box::from_raw(data.as_ptr()) },
                error,
            })),
        }
    }
}

impl<D: Resources + Send + 'static, P: Platform> StartedGraph<'_, D, P> {
    /// Waits for the run, and gives graph and data back. Meanwhile this thread runs jobs of the graph.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("simulate").run(|_| ());
    /// let (mut graph, _data) = js.start(graph.build(), Box::new(())).wait();
    /// graph.run(&mut ());
    /// ```
    ///
    /// # Panics
    /// With the first panic of a body, when all is over. Graph and data are dropped then. In a job of the
    /// run, which can never end before its wait: graph and data are never dropped then.
    #[track_caller]
    pub fn wait(self) -> (BuiltGraph<'static, D, P>, Box<D>) {
        let (graph, data, result) = self.try_wait();
        match result {
            Ok(()) => (graph, data),
            Err(error) => error.raise(),
        }
    }

    /// As [`wait`](StartedGraph::wait), with an error instead of a panic, and graph and data in any case.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("fail").run(|_| panic!("as planned"));
    /// let (_graph, _data, result) = js.start(graph.build(), Box::new(())).try_wait();
    /// assert!(result.is_err());
    /// ```
    ///
    /// # Panics
    /// In a job of the run, as [`wait`](StartedGraph::wait).
    #[track_caller]
    pub fn try_wait(mut self) -> (BuiltGraph<'static, D, P>, Box<D>, Result<(), WaitError>) {
        let error = or_panic(self.wait_for_run());
        // SAFETY: the run is over, and this is forgotten, so that neither is taken again.
        let (graph, data) = unsafe { self.take() };
        std::mem::forget(self);
        (graph, data, error.map_or(Ok(()), Err))
    }

    /// Whether the run is over. Never blocks, and works from any thread.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("simulate").run(|_| ());
    /// let started = js.start(graph.build(), Box::new(()));
    /// println!("over: {}", started.is_done());
    /// started.wait();
    /// ```
    pub fn is_done(&self) -> bool {
        self.graph.built.is_over(self.shared, &self.run)
    }

    /// Waits, and returns the run's failure. An error is that of a wait that cannot end; the run goes on
    /// then.
    #[track_caller]
    fn wait_for_run(&self) -> Result<Option<WaitError>, WaitError> {
        let cx = or_panic(self.shared.context_at_last());
        let built = &self.graph.built;
        match built.cycle_of_wait(&cx, &self.run) {
            Some(error) => Err(error),
            None => Ok(built.wait(&cx, &self.run)),
        }
    }

    /// # Safety
    /// The run is over, and this is called once.
    unsafe fn take(&mut self) -> (BuiltGraph<'static, D, P>, Box<D>) {
        // SAFETY: the caller's promise; the data was a box.
        unsafe {
            (
                ManuallyDrop::take(&mut self.graph),
                Box::from_raw(self.data.as_ptr()),
            )
        }
    }
}

impl<D: Resources + Send + 'static, P: Platform> Drop for StartedGraph<'_, D, P> {
    /// Waits. A panic of a body is dropped.
    fn drop(&mut self) {
        let Ok(failure) = self.wait_for_run() else {
            return; // The run uses both until it is over, and nothing frees them afterwards.
        };
        if let Some(payload) = failure.and_then(WaitError::into_payload) {
            self.shared.panics.discard(UserValue::new(payload));
        }
        // SAFETY: the run is over, and this is the drop.
        drop(unsafe { self.take() });
    }
}
