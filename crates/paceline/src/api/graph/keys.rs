//! Keys: what jobs of a graph declare.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// The key of a field of `D`, of type `T`: what jobs declare. From [`JobSystem::graph_of`].
///
/// If `T` is a slice, there are keys of its items and parts, too. Jobs that touch different ones need no
/// order.
///
/// ```
/// struct World {
///     score: u32,
/// }
/// paceline::resources! { World: Keys { score: u32 } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// let score: paceline::Res<World, u32> = w.score;
/// graph.job("win").writes(score).run(|_, score| *score += 1);
/// let mut world = World { score: 41 };
/// graph.build().run(&mut world);
/// assert_eq!(world.score, 42);
/// ```
///
/// [`JobSystem::graph_of`]: crate::JobSystem::graph_of
pub struct Res<D: ?Sized, T: ?Sized> {
    number: u32,
    name: &'static str,
    _of: PhantomData<fn(&D) -> *const T>,
}

impl<D: ?Sized, T: ?Sized> Res<D, T> {
    pub(super) fn new(number: u32, name: &'static str) -> Self {
        Res {
            number,
            name,
            _of: PhantomData,
        }
    }

    pub(super) fn number(self) -> u32 {
        self.number
    }
}

impl<D: ?Sized, T: 'static> Res<D, [T]> {
    /// One item of the slice: a job that declares it gets a reference to that item.
    ///
    /// ```
    /// struct World {
    ///     scores: Vec<u32>,
    ///     best: u32,
    /// }
    /// paceline::resources! { World: Keys { scores: [u32], best: u32 } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// // These two run at the same time.
    /// let one = graph.job("one").writes(w.scores.at(0)).run(|_, score| *score += 1);
    /// let two = graph.job("two").writes(w.scores.at(1)).run(|_, score| *score += 2);
    /// let best = graph.job("best").after_all([one, two]).reads(w.scores).writes(w.best);
    /// best.run(|_, (scores, best)| *best = scores.iter().copied().max().unwrap_or(0));
    /// let mut world = World { scores: vec![0; 2], best: 0 };
    /// graph.build().run(&mut world);
    /// assert_eq!(world.best, 2);
    /// ```
    ///
    /// A run whose data has no such item is an error ([`ScheduleError::MissingItems`]), and nothing runs.
    ///
    /// [`ScheduleError::MissingItems`]: crate::ScheduleError::MissingItems
    pub fn at(self, index: usize) -> ResItem<D, T> {
        ResItem { of: self, index }
    }

    /// These items of the slice: a job that declares them gets a slice of them.
    ///
    /// ```
    /// struct World {
    ///     heights: [f32; 100],
    /// }
    /// paceline::resources! { World: Keys { heights: [f32] } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// graph.job("left").writes(w.heights.part(0..50)).for_each(|height| *height += 1.0);
    /// graph.job("right").writes(w.heights.part(50..100)).for_each(|height| *height += 2.0);
    /// let mut world = World { heights: [0.0; 100] };
    /// graph.build().run(&mut world);
    /// assert_eq!((world.heights[0], world.heights[99]), (1.0, 2.0));
    /// ```
    ///
    /// An empty part collides with nothing. One that ends before it begins is an error when the graph is
    /// built; a run whose data has fewer items is one as for [`at`](Res::at).
    pub fn part(self, items: Range<usize>) -> ResPart<D, T> {
        ResPart {
            of: self,
            start: items.start,
            end: items.end,
        }
    }

    /// Any items of the slice, for a job that reads them: it gets [`Items`](crate::Items), in this order.
    ///
    /// ```
    /// struct World {
    ///     results: Vec<u32>,
    /// }
    /// paceline::resources! { World: Keys { results: [u32] } }
    /// let js = paceline::JobSystem::new();
    /// let (mut graph, w) = js.graph_of::<World>("frame");
    /// let sum = graph.job("sum").reads(w.results.each([3, 1])).writes(w.results.at(0));
    /// sum.run(|_, (inputs, sum)| *sum = inputs.iter().sum());
    /// let mut world = World { results: vec![0, 10, 20, 30] };
    /// graph.build().run(&mut world);
    /// assert_eq!(world.results[0], 40);
    /// ```
    ///
    /// A run whose data has fewer items is an error as for [`at`](Res::at).
    pub fn each(self, items: impl IntoIterator<Item = usize>) -> ResEach<D, T> {
        ResEach {
            of: self,
            items: items.into_iter().collect(),
        }
    }
}

/// The key of an item, from [`Res::at`].
///
/// ```
/// struct World {
///     scores: Vec<u32>,
/// }
/// paceline::resources! { World: Keys { scores: [u32] } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// let first: paceline::ResItem<World, u32> = w.scores.at(0);
/// graph.job("first").writes(first).run(|_, score| *score = 1);
/// graph.build().run(&mut World { scores: vec![0] });
/// ```
pub struct ResItem<D: ?Sized, T> {
    pub(super) of: Res<D, [T]>,
    pub(super) index: usize,
}

/// The key of a part, from [`Res::part`].
///
/// ```
/// struct World {
///     scores: Vec<u32>,
/// }
/// paceline::resources! { World: Keys { scores: [u32] } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// let first: paceline::ResPart<World, u32> = w.scores.part(0..2);
/// graph.job("first").writes(first).run(|_, scores| scores.fill(1));
/// graph.build().run(&mut World { scores: vec![0; 3] });
/// ```
pub struct ResPart<D: ?Sized, T> {
    pub(super) of: Res<D, [T]>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The key of some items, from [`Res::each`].
///
/// ```
/// struct World {
///     scores: Vec<u32>,
/// }
/// paceline::resources! { World: Keys { scores: [u32] } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// let odd: paceline::ResEach<World, u32> = w.scores.each([1, 3]);
/// graph.job("odd").reads(odd).run(|_, scores| assert_eq!(scores.len(), 2));
/// graph.build().run(&mut World { scores: vec![0; 4] });
/// ```
pub struct ResEach<D: ?Sized, T> {
    pub(super) of: Res<D, [T]>,
    pub(super) items: Box<[usize]>,
}

// `derive` would ask the same of the data.
impl<D: ?Sized, T: ?Sized> Clone for Res<D, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: ?Sized, T: ?Sized> Copy for Res<D, T> {}

impl<D: ?Sized, T> Clone for ResItem<D, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: ?Sized, T> Copy for ResItem<D, T> {}

impl<D: ?Sized, T> Clone for ResPart<D, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: ?Sized, T> Copy for ResPart<D, T> {}

impl<D: ?Sized, T> Clone for ResEach<D, T> {
    fn clone(&self) -> Self {
        ResEach {
            of: self.of,
            items: self.items.clone(),
        }
    }
}

impl<D: ?Sized, T: ?Sized> fmt::Debug for Res<D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Res({}, {})", self.name, std::any::type_name::<T>())
    }
}

impl<D: ?Sized, T> fmt::Debug for ResItem<D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResItem({}, {})", self.of.name, self.index)
    }
}

impl<D: ?Sized, T> fmt::Debug for ResPart<D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResPart({}, {}..{})", self.of.name, self.start, self.end)
    }
}

impl<D: ?Sized, T> fmt::Debug for ResEach<D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResEach({}, {:?})", self.of.name, self.items)
    }
}
