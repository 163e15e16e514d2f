//! The items that a job declared one by one: [`Items`].

use std::fmt;
use std::marker::PhantomData;
use std::ops::Index;
use std::ptr::NonNull;

/// The items that a job declared with [`Res::each`](crate::Res::each), in the order in which it did.
///
/// ```
/// struct World {
///     scores: Vec<u32>,
/// }
/// paceline::resources! { World: Keys { scores: [u32] } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// graph.job("show").reads(w.scores.each([2, 0])).run(|_, scores| {
///     assert_eq!((scores[0], scores[1], scores.iter().sum()), (30, 10, 40));
/// });
/// graph.build().run(&mut World { scores: vec![10, 20, 30] });
/// ```
pub struct Items<'a, T> {
    /// The whole slice, of which only these items may be touched: the slice has them, and nothing writes them
    /// for `'a`.
    all: NonNull<T>,
    items: &'a [usize],
    _of: PhantomData<&'a [T]>,
}

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

// SAFETY: it is references to items.
unsafe impl<T: Sync> Send for Items<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Items<'_, T> {}

impl<'a, T> Items<'a, T> {
    /// # Safety
    /// At `all` begins a slice that has these items, and nothing writes them for `'a`.
    pub(super) unsafe fn new(all: NonNull<T>, items: &'a [usize]) -> Items<'a, T> {
        Items {
            all,
            items,
            _of: PhantomData,
        }
    }

    /// How many there are.
    ///
    /// ```
    /// # struct World { scores: [u32; 3] }
    /// # paceline::resources! { World: Keys { scores: [u32] } }
    /// # let js = paceline::JobSystem::new();
    /// # let (mut graph, w) = js.graph_of::<World>("frame");
    /// graph.job("show").reads(w.scores.each([2, 0])).run(|_, scores| assert_eq!(scores.len(), 2));
    /// # graph.build().run(&mut World { scores: [10, 20, 30] });
    /// ```
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    ///
    /// ```
    /// # struct World { scores: [u32; 3] }
    /// # paceline::resources! { World: Keys { scores: [u32] } }
    /// # let js = paceline::JobSystem::new();
    /// # let (mut graph, w) = js.graph_of::<World>("frame");
    /// graph.job("show").reads(w.scores.each([])).run(|_, scores| assert!(scores.is_empty()));
    /// # graph.build().run(&mut World { scores: [10, 20, 30] });
    /// ```
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All of them, in the order of the declaration.
    ///
    /// ```
    /// # struct World { scores: [u32; 3] }
    /// # paceline::resources! { World: Keys { scores: [u32] } }
    /// # let js = paceline::JobSystem::new();
    /// # let (mut graph, w) = js.graph_of::<World>("frame");
    /// graph.job("show").reads(w.scores.each([2, 0])).run(|_, scores| {
    ///     assert!(scores.iter().eq(&[30, 10]));
    /// });
    /// # graph.build().run(&mut World { scores: [10, 20, 30] });
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a T> + use<'a, T> {
        let all = self.all;
        // SAFETY: what the field says.
        self.items
            .iter()
            .map(move |&item| unsafe { all.add(item).as_ref() })
    }
}

impl<T> Index<usize> for Items<'_, T> {
    type Output = T;

    /// The item at this place of the declaration.
    fn index(&self, place: usize) -> &T {
        // SAFETY: as in `iter`.
        unsafe { self.all.add(self.items[place]).as_ref() }
    }
}
