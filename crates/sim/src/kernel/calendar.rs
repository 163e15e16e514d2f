//! Which CPU has something to do next.
//!
//! Where many CPUs are busy this is asked at every simulated access to memory, and the answers come in an
//! order that no branch predictor knows. So the only branches are the ends of loops. CPUs are in groups of
//! four. A change of one CPU looks at the others of its group and at the first of each group. The times of
//! the other groups do not depend on the change, so a processor finds them meanwhile.
//!
//! Invariant: among equal times the CPU with the lowest number wins.

use event::{Cpu, Nanos};

/// The number of CPUs in a group, and the number of groups that are compared together: all those of 32 CPUs.
const FOUR: usize = 4;
const EIGHT: usize = 8;

/// The number of bits of a key that hold the CPU.
const BITS: u32 = 10;
/// The number of CPUs that keys can name. There is always room for all of them, so no length has to be
/// checked.
const CPUS_MAX: usize = 1 << BITS;
/// From this time on keys do not tell times apart: they have room for 208 days only.
const FAR: u64 = u64::MAX >> BITS;

#[derive(Debug)]
pub(super) struct Calendar {
    earliest: u64,
    /// The number of groups, divided by eight; zero if there is only one group.
    eights: usize,
    /// The least key of each group, in rows of eight groups.
    firsts: [[u64; EIGHT]; CPUS_MAX / FOUR / EIGHT],
    /// By group, the keys of its CPUs: each a time and, in its low bits, the CPU's number. So a smaller key
    /// is an earlier time, and among equal times a lower number.
    keys: [[u64; FOUR]; CPUS_MAX / FOUR],
    /// The same times without the limit of the keys.
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

    /// The next event of this CPU is at this time.
    #[inline]
    pub(super) fn set(&mut self, cpu: Cpu, time: Nanos) {
        if self.times[cpu.index()] != time {
            self.set_and_see(cpu, time);
        }
    }

    /// As [`set`](Calendar::set). Returns a time before which no other CPU has an event; it is exact if it is
    /// not months from now.
    #[inline]
    pub(super) fn set_and_see(&mut self, cpu: Cpu, time: Nanos) -> Nanos {
        // The number is less anyway; saying so here avoids the checks of bounds below.
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

    /// The earliest time and its CPU.
    #[inline]
    pub(super) fn earliest(&self) -> (Nanos, Cpu) {
        let time = self.earliest >> BITS;
        if time < FAR {
            (Nanos(time), Cpu((self.earliest ^ time << BITS) as u32))
        } else {
            self.far_off()
        }
    }

    /// The earliest event if none is due for months.
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

    /// Goal: the earliest event is found whatever changes, centuries included, and the earliest of the other
    /// CPUs. Method: three thousand changes by a simple generator against a search through a list, for
    /// several sizes: near times, both kinds, and times beyond the range of a key.
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
