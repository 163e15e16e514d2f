//! Which nodes that touch the same items of a resource are in no order, without a look at all pairs.
//!
//! Nodes come in the order of the calls. For each range of items there is the list of those that write it, in
//! the order of the graph: any two of them are in an order, because what was in none is settled at once. So
//! the place of a further node among them is found by halving. A node that reads lies between two of them,
//! and needs no order with others that read.
//!
//! From some node on, all edges of later ones lead on: no later node comes before an earlier one. Then only
//! the last node that writes is kept, and those that read behind it: what comes after these comes after all.

use std::collections::BTreeMap;

use super::reach::Reach;
use crate::access::{AccessKind, Declared};

/// Who touches what of a resource: ranges of its items, each from its key to the next one's.
pub(super) struct Users(BTreeMap<usize, Touched>);

/// Who touches the items of a range.
#[derive(Clone)]
struct Touched {
    /// Those that write, each before the next one.
    writers: Vec<usize>,
    /// Those that read before the first one that writes, and behind each of them.
    readers: Vec<List>,
}

/// The first element of a list of [`Readers`], if it has one.
type List = Option<u32>;

/// Nodes that read, in lists. Ranges that were one may share the ends of theirs.
#[derive(Default)]
pub(super) struct Readers(Vec<(usize, List)>);

impl Readers {
    #[inline]
    fn put(&mut self, node: usize, list: List) -> List {
        self.0.push((node, list));
        Some(self.0.len() as u32 - 1)
    }
}

/// What is found out about a node and its access.
pub(super) struct Later<'a> {
    pub(super) node: usize,
    pub(super) access: &'a Declared,
    /// Nodes that are declared later may come before some that were declared earlier.
    pub(super) keeps_all: bool,
}

impl Users {
    #[inline]
    pub(super) fn new() -> Users {
        let all = Touched {
            writers: Vec::new(),
            readers: vec![None],
        };
        Users(BTreeMap::from([(0, all)]))
    }

    /// Adds an access of a node that was declared after all that are here. Calls `settle` with nodes that it
    /// collides with in no order: with so many that it comes after all others, too, if it comes after these.
    ///
    /// # Errors
    /// Those of `settle`.
    #[inline]
    pub(super) fn add<E>(
        &mut self,
        later: &Later<'_>,
        readers: &mut Readers,
        reach: &mut Reach,
        mut settle: impl FnMut(&mut Reach, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let part = later.access.part.clone();
        if part.is_empty() {
            return Ok(());
        }
        self.cut(part.start);
        self.cut(part.end);
        for range in self.0.range_mut(part) {
            range.1.add(later, readers, reach, &mut settle)?;
        }
        Ok(())
    }

    /// A range begins at this item.
    #[inline]
    fn cut(&mut self, at: usize) {
        let around = self.0.range(..=at).next_back();
        if let Some((&start, range)) = around
            && start < at
        {
            let range = range.clone();
            self.0.insert(at, range);
        }
    }
}

impl Touched {
    #[inline]
    fn add<E>(
        &mut self,
        later: &Later<'_>,
        readers: &mut Readers,
        reach: &mut Reach,
        settle: &mut impl FnMut(&mut Reach, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let node = later.node;
        let before = |&writer: &usize| reach.leads(writer, node);
        let first = self.writers.partition_point(before);
        let not_behind = |&writer: &usize| !reach.leads(node, writer);
        let unordered = self.writers[first..].partition_point(not_behind);
        let place = first + unordered;
        if unordered > 0 {
            settle(reach, self.writers[place - 1])?;
        }
        if later.access.kind == AccessKind::Reads {
            self.readers[place] = readers.put(node, self.readers[place]);
            return Ok(());
        }
        let (mut before, mut behind) = (None, None);
        let mut rest = self.readers[place];
        while let Some(at) = rest {
            let (reader, next) = readers.0[at as usize];
            rest = next;
            if reach.leads(node, reader) {
                behind = readers.put(reader, behind);
                continue;
            }
            if !reach.leads(reader, node) {
                settle(reach, reader)?;
            }
            if later.keeps_all {
                before = readers.put(reader, before);
            }
        }
        self.writers.insert(place, node);
        self.readers[place] = before;
        self.readers.insert(place + 1, behind);
        if !later.keeps_all {
            let last = self.writers.len() - 1;
            self.writers.drain(..last);
            self.readers.drain(..=last);
            self.readers.insert(0, None);
        }
        Ok(())
    }
}
