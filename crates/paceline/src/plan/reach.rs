//! Which nodes of a graph come after which: a bit for each pair.

/// For each node, the nodes that come after it, directly or not.
pub(crate) struct Reach {
    words: usize,
    bits: Vec<u64>,
}

impl Reach {
    /// `order`: all nodes, each behind those that it comes after.
    #[inline]
    pub(crate) fn new(successors: &[Vec<usize>], order: &[usize]) -> Reach {
        let words = successors.len().div_ceil(64);
        let mut reach = Reach {
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

    /// Whether there is a way from one node to another.
    #[inline]
    pub(crate) fn leads(&self, from: usize, to: usize) -> bool {
        self.bits[from * self.words + to / 64] >> (to % 64) & 1 == 1
    }

    /// Whether one of the two comes after the other.
    #[inline]
    pub(crate) fn orders(&self, a: usize, b: usize) -> bool {
        self.leads(a, b) || self.leads(b, a)
    }

    /// Adds an edge between two nodes that were in no order.
    #[inline]
    pub(crate) fn add(&mut self, from: usize, to: usize) {
        let nodes = self.bits.len() / self.words.max(1);
        for node in 0..nodes {
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
        self.bits[node * self.words + next / 64] |= 1 << (next % 64);
    }
}
