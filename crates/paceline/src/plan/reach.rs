//! Which nodes of a graph come after which: a row of bits for each node, with a column for each node that is
//! asked about.

/// For each node, those nodes with a column that come after it, directly or not.
pub(crate) struct Reach {
    /// The column of each node, if it has one.
    columns: Vec<Option<u32>>,
    words: usize,
    bits: Vec<u64>,
}

impl Reach {
    /// `order`: all nodes, each behind those that it comes after. `has_column`: the nodes that are asked
    /// about.
    #[inline]
    pub(crate) fn new(
        successors: &[Vec<usize>],
        order: &[usize],
        has_column: impl Fn(usize) -> bool,
    ) -> Reach {
        let mut count = 0;
        let columns = (0..successors.len()).map(|node| {
            has_column(node).then(|| {
                count += 1;
                count - 1
            })
        });
        let columns: Vec<Option<u32>> = columns.collect();
        let words = (count as usize).div_ceil(64);
        let mut reach = Reach {
            columns,
            words,
            bits: vec![0; words * successors.len()],
        };
        for &node in order.iter().rev() {
            for &next in &successors[node] {
                reach.take_over(node, next);
            }
        }
        reach
    }

    /// Whether there is a way from one node to another, which has a column.
    #[inline]
    pub(crate) fn leads(&self, from: usize, to: usize) -> bool {
        let Some(column) = self.columns[to] else {
            debug_assert!(false, "node {to} has no column");
            return false;
        };
        let column = column as usize;
        self.bits[from * self.words + column / 64] >> (column % 64) & 1 == 1
    }

    /// Whether one of the two, which have columns, comes after the other.
    #[inline]
    pub(crate) fn orders(&self, a: usize, b: usize) -> bool {
        self.leads(a, b) || self.leads(b, a)
    }

    /// Adds an edge between two nodes that have columns and were in no order.
    #[inline]
    pub(crate) fn add(&mut self, from: usize, to: usize) {
        for node in 0..self.columns.len() {
            if node == from || self.leads(node, from) {
                self.take_over(node, to);
            }
        }
    }

    /// What comes after `next`, and `next` itself, comes after `node`.
    #[inline]
    fn take_over(&mut self, node: usize, next: usize) {
        for word in 0..self.words {
            self.bits[node * self.words + word] |= self.bits[next * self.words + word];
        }
        if let Some(column) = self.columns[next] {
            self.bits[node * self.words + column as usize / 64] |= 1 << (column % 64);
        }
    }
}
