//! How much work the CPUs of a machine do together.

use std::collections::BTreeMap;

use super::Machine;

impl Machine {
    /// The most work that `threads` threads can do in a given time, as a multiple of what one thread alone
    /// does on the fastest CPU, at the highest frequencies. Threads of one core share it, as
    /// [`smt_percent`](super::Cluster::smt_percent) says. More threads than CPUs do no more than those.
    ///
    /// ```
    /// use paceline_sim::Machine;
    /// let machine = Machine::named("ryzen-3950x").unwrap();
    /// assert_eq!(machine.work_of_threads(16), 16.0); // One on each core.
    /// assert_eq!(machine.work_of_threads(32).round(), 19.0); // Two on each, with 60 % of it each.
    /// ```
    pub fn work_of_threads(&self, threads: usize) -> f64 {
        let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for cpu in &self.cpus {
            cores.entry(cpu.core).or_default().push(cpu.cluster);
        }
        // What each further thread of a core adds.
        let mut gains = Vec::with_capacity(self.cpus.len());
        for cpus in cores.values() {
            let cluster = &self.clusters[cpus[0] as usize];
            let alone = f64::from(cluster.capacity) / 1024.0;
            let mut before = 0.0;
            for count in 1..=cpus.len() {
                let share = match count {
                    1 => 100,
                    _ => {
                        let shares = &cluster.smt_percent;
                        shares
                            .get(count - 2)
                            .or(shares.last())
                            .copied()
                            .unwrap_or(100)
                    }
                };
                let all = alone * count as f64 * f64::from(share) / 100.0;
                gains.push(all - before);
                before = all;
            }
        }
        gains.sort_by(|a, b| b.total_cmp(a));
        gains.iter().take(threads).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: one thread more never does less, small cores come last, and more threads than CPUs add nothing.
    /// Method: all machines of the library; one of two kinds of cores.
    #[test]
    fn threads_add_up() {
        for name in Machine::library() {
            let machine = Machine::named(name).unwrap();
            let most = machine.cpus.len() + 2;
            let work: Vec<f64> = (0..=most)
                .map(|threads| machine.work_of_threads(threads))
                .collect();
            assert!(
                work.windows(2).all(|two| two[0] <= two[1]),
                "{name}: {work:?}"
            );
            assert_eq!(work[most], work[machine.cpus.len()], "{name}");
            assert!((work[1] - 1.0).abs() < 1e-9, "{name}: {work:?}");
        }
        let mut machine = Machine::ideal(4);
        let mut small = machine.clusters[0].clone();
        small.capacity = 512;
        machine.clusters.push(small);
        machine.cpus[0].cluster = 1;
        machine.cpus[1].cluster = 1;
        assert_eq!(
            [1, 2, 3, 4].map(|n| machine.work_of_threads(n)),
            [1.0, 2.0, 2.5, 3.0]
        );
    }
}
