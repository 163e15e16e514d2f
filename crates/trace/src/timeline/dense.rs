//! Positions for any numbers, and lists by position.

use std::collections::HashMap;

/// Numbers below this are found in a table, others in a map.
const NEAR: u32 = 1 << 20;

/// No position.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Gives numbers positions in the order in which they come.
#[derive(Clone, Debug, Default)]
pub(super) struct Dense {
    near: Vec<u32>,
    far: HashMap<u32, u32>,
    numbers: Vec<u32>,
}

impl Dense {
    /// The position of a number that was seen.
    #[inline]
    pub(super) fn find(&self, number: u32) -> Option<u32> {
        match self.near.get(number as usize) {
            Some(&NOBODY) => None,
            Some(&position) => Some(position),
            None => self.far.get(&number).copied(),
        }
    }

    /// The position of a number.
    #[inline]
    pub(super) fn position(&mut self, number: u32) -> u32 {
        match self.find(number) {
            Some(position) => position,
            None => self.add(number),
        }
    }

    #[cold]
    fn add(&mut self, number: u32) -> u32 {
        let position = self.numbers.len() as u32;
        self.numbers.push(number);
        if number < NEAR {
            let at = number as usize;
            if at >= self.near.len() {
                self.near.resize(at + 1, NOBODY);
            }
            self.near[at] = position;
        } else {
            self.far.insert(number, position);
        }
        position
    }

    /// The numbers, by position.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }
}

/// A list for each position, all of them in one piece of memory.
#[derive(Clone, Debug)]
pub(crate) struct Grouped<T> {
    starts: Vec<usize>,
    items: Vec<T>,
}

impl<T> Default for Grouped<T> {
    fn default() -> Grouped<T> {
        Grouped {
            starts: vec![0],
            items: Vec::new(),
        }
    }
}

impl<T: Copy> Grouped<T> {
    /// Items with the position that each belongs to; the order of those of one position is kept.
    pub(super) fn new(groups: usize, pairs: &[(u32, T)]) -> Grouped<T> {
        let mut starts = vec![0; groups + 1];
        for (group, _) in pairs {
            starts[*group as usize + 1] += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let Some(&(_, any)) = pairs.first() else {
            return Grouped {
                starts,
                items: Vec::new(),
            };
        };
        let mut next = starts.clone();
        let mut items = vec![any; pairs.len()];
        for (group, item) in pairs {
            let at = &mut next[*group as usize];
            items[*at] = *item;
            *at += 1;
        }
        Grouped { starts, items }
    }

    /// The list of a position; an empty one if it has none.
    #[inline]
    pub(crate) fn of(&self, group: u32) -> &[T] {
        let group = group as usize;
        match (self.starts.get(group), self.starts.get(group + 1)) {
            (Some(&begin), Some(&end)) => &self.items[begin..end],
            _ => &[],
        }
    }
}
