//! Which CPU has something to do next.
//!
//! Where many CPUs are busy that is asked at every simulated access to memory, and the answer comes in an
//! order that no branch predictor knows. So there are no branches but the ends of loops: CPUs are in groups
//! of four, and whoever changes one looks at the others of its group and at the first of each group. What is
//! due at others does not depend on what was changed, so a processor finds that out meanwhile.
//!
//! Invariant: among equal times the CPU with the lowest number wins.

use event::{Cpu, Nanos};

/// How many CPUs are in a group, and how many groups are looked at together: all those of 32 CPUs.
const FOUR: usize = 4;
const EIGHT: usize = 8;

/// How many bits of a key are the CPU's.
const BITS: u32 = 10;
/// As many CPUs as keys can name. There is always room for all of them: then no length has to be looked at.
const CPUS_MAX: usize = 1 << BITS;
/// The time from which on keys do not tell times apart: they have room for 208 days only.
const FAR: u64 = u64::MAX >> BITS;

#[derive(Debug)]
pub(super) struct Calendar {
    earliest: u64,
    /// How many groups there are, in eights; none if one group is all.
    eights: usize,
    /// By eights of groups, the least key of each.
    firsts: [[u64; EIGHT]; CPUS_MAX / FOUR / EIGHT],
    /// By group, the keys of its CPUs: each a time and, in its low bits, the CPU's number; so less is
    /// earlier, and among equal times has the lower number.
    keys: [[u64; FOUR]; CPUS_MAX / FOUR],
    /// The same times in full.
    times: [Nanos; CPUS_MAX],
}

/// The least of them.
#[inline(always)]
fn least(keys: &[u64; FOUR]) -> u64 {
    keys[0].min(keys[1]).min(keys[2].min(keys[3]))
}

/// The least of those and `beside`.
#[inline(always)]
fn least_first(beside: u64, firsts: &[u64; EIGHT]) -> u64 {
    let [a, b, c, d, e, f, g, h] = *firsts;
    least(&[a, b, c, d]).min(least(&[e, f, g, h])).min(beside)
}

impl Calendar {
    pub(super) fn new(cpus: usize) -> Box<Calendar> {
        assert!(cpus <= CPUS_MAX, "{cpus} CPUs are more than keys can name");
        let groups = cpus.div_ceil(FOUR);
        Box::new(Calendar {
            earliest: u64::MAX,
            eights: if groups > 1 {
                groups.div_ceil(EIGHT)
            } else {
                0
            },
            firsts: [[u64::MAX; EIGHT]; CPUS_MAX / FOUR / EIGHT],
            keys: [[u64::MAX; FOUR]; CPUS_MAX / FOUR],
            times: [Nanos::MAX; CPUS_MAX],
        })
    }

    /// Something is due at this CPU then, and nothing earlier.
    #[inline]
    pub(super) fn set(&mut self, cpu: Cpu, time: Nanos) {
        if self.times[cpu.index()] != time {
            self.set_and_see(cpu, time);
        }
    }

    /// The same, and what is due at all others: a time before which nothing is. It is exact if that is not
    /// months from now.
    #[inline]
    pub(super) fn set_and_see(&mut self, cpu: Cpu, time: Nanos) -> Nanos {
        // It is less; said so that no bound is checked below.
        let number = cpu.index() % CPUS_MAX;
        self.times[number] = time;
        let key = time.0.min(FAR) << BITS | number as u64;
        let group = number / FOUR;
        let keys = &mut self.keys[group];
        keys[number % FOUR] = u64::MAX;
        let mut others = least(keys);
        keys[number % FOUR] = key;
        if self.eights > 0 {
            let beside = others;
            self.firsts[group / EIGHT][group % EIGHT] = u64::MAX;
            let eights = self.firsts.iter().take(self.eights);
            others = eights.fold(beside, least_first);
            self.firsts[group / EIGHT][group % EIGHT] = key.min(beside);
        }
        self.earliest = key.min(others);
        Nanos(others >> BITS)
    }

    /// The earliest time, and whose it is.
    #[inline]
    pub(super) fn earliest(&self) -> (Nanos, Cpu) {
        let time = self.earliest >> BITS;
        match time < FAR {
            true => (Nanos(time), Cpu((self.earliest ^ time << BITS) as u32)),
            false => self.far_off(),
        }
    }

    /// The earliest if nothing is due for months.
    #[cold]
    fn far_off(&self) -> (Nanos, Cpu) {
        let all = self.times.iter().enumerate();
        let dues = all.map(|(cpu, &time)| (time, Cpu(cpu as u32)));
        dues.min().expect("a machine has a CPU")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the earliest is found whatever changes, centuries included, and the earliest of the others.
    /// Method: three thousand changes by a simple generator against a search through a list, for several
    /// sizes: near times, both kinds, and times beyond what a key holds.
    #[test]
    fn the_earliest_wins_and_the_lowest_among_equals() {
        for cpus in [1usize, 2, 3, 4, 5, 16, 17, 32, 65, 130] {
            let mut calendar = Calendar::new(cpus);
            let mut times = vec![Nanos::MAX; cpus];
            let mut state = cpus as u64;
            for round in 0..3000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                let cpu = (state >> 33) as usize % cpus;
                times[cpu] = match (state >> 20) % 8 {
                    0 => Nanos::MAX,
                    time if round + (state >> 50) % 1000 < 2000 => Nanos(time),
                    time => Nanos((1 << 63) - 4 + time),
                };
                let others = calendar.set_and_see(Cpu(cpu as u32), times[cpu]);
                let mut beside = times.clone();
                beside.remove(cpu);
                let exact = beside.into_iter().min().unwrap_or(Nanos::MAX);
                assert_eq!(others, exact.min(Nanos(FAR)));
                let least = *times.iter().min().unwrap();
                let first = times.iter().position(|&time| time == least).unwrap();
                assert_eq!(calendar.earliest(), (least, Cpu(first as u32)));
            }
        }
    }
}
