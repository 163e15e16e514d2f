//! Which CPU has something to do next.
//!
//! A tournament tree over the CPUs: each leaf is the earliest time at which something is due there, each
//! inner node the earlier of its two children, the left one on a tie. Changing a leaf touches one node per
//! level, and the earliest of all is at the root, so it costs nothing to look at, which is done at every
//! simulated access to memory.
//!
//! Invariant: among equal times the CPU with the lowest number wins.

use event::{Cpu, Nanos};

#[derive(Debug)]
pub(super) struct Calendar {
    /// A complete binary tree: node 1 is the root, the children of n are 2n and 2n + 1, the leaves begin
    /// at `leaves`. Each holds the earliest time below it and whose it is.
    nodes: Vec<(Nanos, Cpu)>,
    leaves: usize,
}

impl Calendar {
    pub(super) fn new(cpus: usize) -> Calendar {
        // Two at least, so that the root is no leaf.
        let leaves = cpus.next_power_of_two().max(2);
        let mut nodes = vec![(Nanos::MAX, Cpu(0)); 2 * leaves];
        for leaf in 0..leaves {
            nodes[leaves + leaf].1 = Cpu(leaf as u32);
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node];
        }
        Calendar { nodes, leaves }
    }

    /// Something is due at this CPU then, and nothing earlier.
    #[inline]
    pub(super) fn set(&mut self, cpu: Cpu, time: Nanos) {
        let leaf = self.leaves + cpu.index();
        if self.nodes[leaf].0 == time {
            return;
        }
        self.nodes[leaf].0 = time;
        let mut node = leaf / 2;
        while node > 0 {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            self.nodes[node] = if right.0 < left.0 { right } else { left };
            node /= 2;
        }
    }

    /// The earliest time, and whose it is.
    #[inline]
    pub(super) fn earliest(&self) -> (Nanos, Cpu) {
        self.nodes[1]
    }

    /// The earliest time of all other CPUs.
    #[inline]
    pub(super) fn earliest_but(&self, cpu: Cpu) -> Nanos {
        let mut node = self.leaves + cpu.index();
        let mut earliest = Nanos::MAX;
        while node > 1 {
            earliest = earliest.min(self.nodes[node ^ 1].0);
            node /= 2;
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the earliest is found whatever changes. Method: two thousand changes by a simple generator
    /// against a search through a list, for several sizes.
    #[test]
    fn the_earliest_wins_and_the_lowest_among_equals() {
        for cpus in [1usize, 2, 3, 5, 32, 33] {
            let mut calendar = Calendar::new(cpus);
            let mut times = vec![Nanos::MAX; cpus];
            let mut state = cpus as u64;
            for _ in 0..2000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                let cpu = (state >> 33) as usize % cpus;
                times[cpu] = match (state >> 20) % 8 {
                    0 => Nanos::MAX,
                    time => Nanos(time),
                };
                calendar.set(Cpu(cpu as u32), times[cpu]);
                let least = *times.iter().min().unwrap();
                let first = times.iter().position(|&time| time == least).unwrap();
                assert_eq!(calendar.earliest(), (least, Cpu(first as u32)));
                let others = times.iter().enumerate().filter(|(other, _)| *other != cpu);
                let least = others.map(|(_, time)| *time).min().unwrap_or(Nanos::MAX);
                assert_eq!(calendar.earliest_but(Cpu(cpu as u32)), least);
            }
        }
    }
}
