//! Lists by position that grow at their ends, in the order of time: the data of threads.
//!
//! There is one item for each event and more, so nothing is kept twice, not even until the end: each list is
//! a piece of memory of its own, and grows where it is.

/// A list for each position.
#[derive(Clone, Debug)]
pub(crate) struct Lists<T>(Vec<Vec<T>>);

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists(Vec::new())
    }
}

impl<T> Lists<T> {
    /// Items with the position that each belongs to; the order of those of one position is kept.
    pub(super) fn new(pairs: impl IntoIterator<Item = (u32, T)>) -> Lists<T> {
        let mut lists = Lists::default();
        for (group, item) in pairs {
            lists.push(group, item);
        }
        lists
    }

    /// Appends an item to the list of a position.
    #[inline]
    pub(super) fn push(&mut self, group: u32, item: T) {
        let group = group as usize;
        if group >= self.0.len() {
            self.0.resize_with(group + 1, Vec::new);
        }
        self.0[group].push(item);
    }

    /// The list of a position; an empty one if it has none.
    #[inline]
    pub(crate) fn of(&self, group: u32) -> &[T] {
        self.0.get(group as usize).map_or(&[], Vec::as_slice)
    }

    /// The same, to change items in it.
    #[inline]
    pub(super) fn of_mut(&mut self, group: u32) -> &mut [T] {
        self.0
            .get_mut(group as usize)
            .map_or(&mut [], Vec::as_mut_slice)
    }

    /// Every position with its list, as far as there are any.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (u32, &[T])> {
        (0..).zip(self.0.iter().map(Vec::as_slice))
    }

    /// Sorts each list, equal items as they came.
    pub(super) fn sort_each(&mut self, compare: impl Fn(&T, &T) -> std::cmp::Ordering + Copy) {
        for list in &mut self.0 {
            list.sort_by(compare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each position has its items in the order in which they came, whatever comes between. Method:
    /// three positions in turn, one without any, one beyond the end.
    #[test]
    fn lists_keep_their_order() {
        let mut lists = Lists::new([(3, 'a'), (0, 'b'), (3, 'c')]);
        lists.push(1, 'd');
        lists.of_mut(3)[0] = 'x';
        let all = [0, 1, 2, 3, 4].map(|group| lists.of(group).to_vec());
        let expected = [vec!['b'], vec!['d'], vec![], vec!['x', 'c'], vec![]];
        assert_eq!(all, expected);
        assert_eq!(lists.of_mut(9), &mut []);
        lists.sort_each(|a, b| a.cmp(b));
        let groups: Vec<_> = lists
            .groups()
            .map(|(group, list)| (group, list.len()))
            .collect();
        assert_eq!(groups, [(0, 1), (1, 1), (2, 0), (3, 2)]);
        assert_eq!(lists.of(3), ['c', 'x']);
    }
}
