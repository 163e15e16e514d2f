//! The bodies of a graph's jobs: what they get, and loops.

use platform::Platform;

use super::node::{GraphJob, Touches};
use super::reference::{GraphNode, NodeResult};
use super::resources::Resources;
use crate::access::{Accesses, Places, declared};
use crate::api::over::{LoopData, LoopItems};
use crate::work::Context;

impl<'b, D: Resources + ?Sized, R: NodeResult, P: Platform> GraphJob<'_, 'b, D, (), R, P> {
    /// Gives the job its body, which is called once in each run. The body may keep a state of its own, and
    /// may borrow what lives longer than the graph.
    ///
    /// A job that has declared accesses has `run` with a body of two parameters: the context, and the
    /// references to what was declared.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut runs = 0;
    /// let mut graph = js.graph("frame");
    /// graph.job("count").run(|_cx| runs += 1);
    /// let mut graph = graph.build();
    /// graph.run(&mut ());
    /// graph.run(&mut ());
    /// drop(graph);
    /// assert_eq!(runs, 2);
    /// ```
    pub fn run<F>(self, mut body: F) -> R::Node
    where
        F: FnMut(&Context<'_, P>) -> R + Send + 'b,
    {
        let body = move |cx: &Context<'_, P>, _: Places<'_>| body(cx).holds();
        R::node(self.about.add(self.graph, Vec::new(), Box::new(body)))
    }
}

impl<'b, D, A, R, P> GraphJob<'_, 'b, D, Touches<A>, R, P>
where
    D: Resources + ?Sized,
    A: Accesses + Send + 'static,
    R: NodeResult,
    P: Platform,
{
    /// Gives the job its body, which is called once in each run with references to exactly what was declared:
    /// the reference itself for one access, a tuple for more.
    ///
    /// ```
    /// struct World {
    ///     left: u32,
    ///     right: u32,
    ///     sum: u32,
    /// }
    /// paceline::resources! { World: Keys { left: u32, right: u32, sum: u32 } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// let add = graph.job("add").reads(w.left).reads(w.right).writes(w.sum);
    /// add.run(|_cx, (left, right, sum)| *sum = left + right);
    /// let mut world = World { left: 40, right: 2, sum: 0 };
    /// graph.build().run(&mut world);
    /// assert_eq!(world.sum, 42);
    /// ```
    pub fn run<F>(self, mut body: F) -> R::Node
    where
        F: for<'i> FnMut(&Context<'_, P>, A::Items<'i>) -> R + Send + 'b,
    {
        let Touches(accesses) = self.accesses;
        let declared = declared(&accesses);
        let body = move |cx: &Context<'_, P>, places: Places<'_>| {
            // SAFETY: the places are those of the run, in which fields and keys agree (`places_of`). The
            // graph was checked (`DeclaredGraph::checked`): all nodes that touch what this one writes, or
            // write what it reads, come before or after it, and its own accesses do not overlap.
            let items = unsafe { accesses.items(places) };
            body(cx, items).holds()
        };
        R::node(self.about.add(self.graph, declared, Box::new(body)))
    }
}

/// An item of a loop over the data that was declared.
type ItemOf<'i, A> = <<<A as Accesses>::Items<'i> as LoopData>::Items as LoopItems>::Item;

impl<'b, D, A, P> GraphJob<'_, 'b, D, Touches<A>, (), P>
where
    D: Resources + ?Sized,
    A: Accesses + Send + 'static,
    for<'i> A::Items<'i>: LoopData,
    P: Platform,
{
    /// The job is a loop over the fields that were declared, side by side: `f` is called for each item, or
    /// for each tuple of items, by several threads. The length is that of the run's data. For more than this
    /// (chunks, sums, a grain) there is [`run`](GraphJob::run), with a body that calls [`Context::over`].
    ///
    /// ```
    /// struct World {
    ///     speeds: Vec<f32>,
    ///     positions: Vec<f32>,
    /// }
    /// paceline::resources! { World: WorldKeys { speeds: Vec<f32>, positions: Vec<f32> } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// let travel = graph.job("travel").writes(w.positions).reads(w.speeds);
    /// travel.for_each(|(position, speed)| *position += speed);
    /// let mut graph = graph.build();
    /// let mut world = World { speeds: vec![2.0], positions: vec![0.0] };
    /// graph.run(&mut world);
    /// world.speeds.push(1.0);
    /// world.positions.push(0.0);
    /// graph.run(&mut world);
    /// assert_eq!(world.positions, [4.0, 1.0]);
    /// ```
    ///
    /// # Panics
    /// The run panics if the fields have different lengths.
    pub fn for_each<F>(self, f: F) -> GraphNode
    where
        F: for<'i> Fn(ItemOf<'i, A>) + Send + Sync + 'b,
    {
        let label = self.about.label;
        self.run(move |cx: &Context<'_, P>, items: A::Items<'_>| {
            cx.over(items).labelled(label).for_each(&f);
        })
    }
}
