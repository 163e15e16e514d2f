//! Which CPU has something to do next.
//!
//! A tournament over the CPUs, four at a time: the earliest of four plays against those of three other
//! fours, and so on. Changing one entry plays one match per level, and the earliest of all is known. Where
//! many CPUs are busy, that is done at every simulated access to memory, in an order that no branch predictor
//! knows: so there are no branches but the loop over the levels, and no more levels than needed (three for 64
//! CPUs).
//!
//! Invariant: among equal times the CPU with the lowest number wins.

use event::{Cpu, Nanos};

/// How many play in a match.
const FOUR: usize = 4;

#[derive(Debug)]
pub(super) struct Calendar {
    /// All matches: the final first, then those whose winners play in it, and so on; match m has the
    /// winners of matches 4m + 1 to 4m + 4. In the last ones, the CPUs themselves play. Who plays is a key:
    /// a time and, in its low bits, the CPU's number; so less is earlier, and among equal times has the
    /// lower number.
    matches: Vec<[u64; FOUR]>,
    /// The number of the first match of CPUs, times four: where CPU 0 plays.
    first: usize,
    earliest: u64,
    /// How many bits of a key are the CPU's.
    bits: u32,
    /// The same times in full: a key has room for years only. What is later than that counts as equal there.
    times: Vec<Nanos>,
}

impl Calendar {
    pub(super) fn new(cpus: usize) -> Calendar {
        let (mut before, mut last) = (0, 1);
        while last * FOUR < cpus {
            before += last;
            last *= FOUR;
        }
        let mut calendar = Calendar {
            matches: vec![[u64::MAX; FOUR]; before + last],
            first: before * FOUR,
            earliest: u64::MAX,
            bits: cpus.next_power_of_two().ilog2(),
            times: vec![Nanos::ZERO; cpus],
        };
        for cpu in 0..cpus {
            calendar.set(Cpu(cpu as u32), Nanos::MAX);
        }
        calendar
    }

    /// The time from which on keys do not tell times apart.
    #[inline]
    fn far(&self) -> u64 {
        u64::MAX >> self.bits
    }

    /// Something is due at this CPU then, and nothing earlier.
    #[inline]
    pub(super) fn set(&mut self, cpu: Cpu, time: Nanos) {
        if self.times[cpu.index()] == time {
            return;
        }
        self.times[cpu.index()] = time;
        let mut player = time.0.min(self.far()) << self.bits | u64::from(cpu.0);
        let mut place = self.first + cpu.index();
        loop {
            let number = place / FOUR;
            let four = &mut self.matches[number];
            four[place % FOUR] = player;
            player = four[0].min(four[1]).min(four[2].min(four[3]));
            if number == 0 {
                break;
            }
            place = number - 1;
        }
        self.earliest = player;
    }

    /// The earliest time, and whose it is.
    #[inline]
    pub(super) fn earliest(&self) -> (Nanos, Cpu) {
        let time = self.earliest >> self.bits;
        match time < self.far() {
            true => (Nanos(time), Cpu((self.earliest ^ time << self.bits) as u32)),
            false => self.far_off(),
        }
    }

    /// The earliest if nothing is due for years.
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

    /// Goal: the earliest is found whatever changes, centuries included. Method: three thousand changes by a
    /// simple generator against a search through a list, for several sizes: near times, both kinds, and times
    /// beyond what a key holds.
    #[test]
    fn the_earliest_wins_and_the_lowest_among_equals() {
        for cpus in [1usize, 2, 3, 4, 5, 16, 17, 32, 65] {
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
                calendar.set(Cpu(cpu as u32), times[cpu]);
                let least = *times.iter().min().unwrap();
                let first = times.iter().position(|&time| time == least).unwrap();
                assert_eq!(calendar.earliest(), (least, Cpu(first as u32)));
            }
        }
    }
}
