//! Nesting: slices in slices, bodies in waits in bodies.

use event::Nanos;

use super::dense::NOBODY;
use super::lists::Lists;

/// Something with a beginning and an end.
pub(crate) trait Extent: Copy {
    /// Its beginning and its end.
    fn extent(&self) -> (Nanos, Nanos);
}

/// Lists in the order of beginnings, outer things first, and for each thing the one around it.
#[derive(Clone, Debug)]
pub(crate) struct Nested<T> {
    lists: Lists<T>,
    /// In the order of the lists' items: the position, in its list, of the one around it.
    outer: Lists<u32>,
}

impl<T> Default for Nested<T> {
    fn default() -> Nested<T> {
        Nested {
            lists: Lists::default(),
            outer: Lists::default(),
        }
    }
}

/// The things that a time lies inside of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Inside<T> {
    /// The innermost thing that holds the time, if there is one.
    pub(crate) innermost: Option<T>,
    /// The latest time before at which something began or ended.
    pub(crate) since: Nanos,
}

impl<T: Extent> Nested<T> {
    pub(super) fn new(lists: Lists<T>) -> Nested<T> {
        let mut outer = Lists::default();
        let mut open: Vec<(u32, Nanos)> = Vec::new();
        for (group, list) in lists.groups() {
            open.clear();
            for (at, thing) in (0..).zip(list) {
                let (begin, end) = thing.extent();
                while open.last().is_some_and(|(_, end)| *end <= begin) {
                    open.pop();
                }
                outer.push(group, open.last().map_or(NOBODY, |(at, _)| *at));
                open.push((at, end));
            }
        }
        Nested { lists, outer }
    }

    /// The list of a position.
    pub(crate) fn of(&self, group: u32) -> &[T] {
        self.lists.of(group)
    }

    /// Every position with its list.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (u32, &[T])> {
        self.lists.groups()
    }

    /// All things that the instant just before a time lies inside of, the innermost first.
    pub(crate) fn around(&self, group: u32, time: Nanos) -> Vec<T> {
        let (list, outer) = (self.lists.of(group), self.outer.of(group));
        let mut at = list
            .partition_point(|thing| thing.extent().0 < time)
            .wrapping_sub(1);
        let mut around = Vec::new();
        while let Some(thing) = list.get(at) {
            if thing.extent().1 >= time {
                around.push(*thing);
            }
            at = outer.get(at).map_or(usize::MAX, |&outer| match outer {
                NOBODY => usize::MAX,
                outer => outer as usize,
            });
        }
        around
    }

    /// The things that the instant just before a time lies inside of.
    pub(crate) fn before(&self, group: u32, time: Nanos) -> Inside<T> {
        let (list, outer) = (self.lists.of(group), self.outer.of(group));
        let mut at = list
            .partition_point(|thing| thing.extent().0 < time)
            .wrapping_sub(1);
        let mut since = Nanos::ZERO;
        while let Some(thing) = list.get(at) {
            let (begin, end) = thing.extent();
            if end >= time {
                return Inside {
                    innermost: Some(*thing),
                    since: since.max(begin),
                };
            }
            since = since.max(end);
            at = outer.get(at).map_or(usize::MAX, |&outer| match outer {
                NOBODY => usize::MAX,
                outer => outer as usize,
            });
        }
        Inside {
            innermost: None,
            since,
        }
    }
}
