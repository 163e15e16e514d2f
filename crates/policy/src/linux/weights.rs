//! Niceness in numbers, and virtual time.
//!
//! Fair tasks share a CPU by *weight*. A task's virtual time is its CPU time divided by its weight: equal
//! virtual times are a fair division. A task of nice 0 has weight 1024, and its virtual time is real time.
//!
//! Weights: `sched_prio_to_weight` of Linux, 2.6.23 until today: 1.25 times more per step of niceness, so
//! that one step less than a competitor of equal weight means about 10 % more of the CPU.
//!
//! Virtual time is computed as Linux documents it: not by a division but by a product with the weight's
//! inverse in 32 bits, rounded down. So the sums drift from the ideal by less than one in 2^31, in
//! the same way on every machine.

use event::Nanos;

use crate::{Attr, Discipline};

/// By nice from −20 to 19.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, // −20 …
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, // −10 …
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, // 0 …
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15, // 10 …
];

/// That of nice 0: where virtual time is real time.
const NORMAL: u32 = 1024;

/// That of `SCHED_IDLE`, whatever the niceness.
const IDLE: u32 = 3;

/// A task's weight, with its inverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    weight: u32,
    /// Virtual nanoseconds per nanosecond, in units of 2^-`shift`; 32 significant bits.
    rate: u32,
    shift: u32,
}

impl Weight {
    /// By discipline and niceness. A niceness out of −20 to 19 counts as the nearer of them.
    pub(crate) fn of(attr: &Attr) -> Weight {
        match attr.discipline {
            Discipline::Idle => Weight::new(IDLE),
            _ => Weight::new(WEIGHTS[(attr.nice.clamp(-20, 19) + 20) as usize]),
        }
    }

    fn new(weight: u32) -> Weight {
        let inverse = (1 << 32) / u64::from(weight);
        let rate = u64::from(NORMAL) * inverse;
        let excess = (u64::BITS - rate.leading_zeros()).saturating_sub(u32::BITS);
        Weight {
            weight,
            rate: (rate >> excess) as u32,
            shift: 32 - excess,
        }
    }

    pub(super) fn value(self) -> i64 {
        i64::from(self.weight)
    }

    /// How much it is where a normal task's is `normal`, to the nearest whole.
    pub(crate) fn parts_of_normal(self, normal: u64) -> u64 {
        let whole = u64::from(NORMAL);
        (u64::from(self.weight) * normal + whole / 2) / whole
    }

    /// How far virtual time goes while a task of this weight runs for `time`.
    #[inline]
    pub(super) fn virtual_time(self, time: Nanos) -> i64 {
        if self.weight == NORMAL {
            return time.0 as i64;
        }
        let product = u128::from(time.0) * u128::from(self.rate);
        (product >> self.shift) as i64
    }

    /// How long a task of this weight runs until virtual time has gone on by this much, rounded up.
    pub(super) fn real_time(self, virtual_time: i64) -> Nanos {
        let weighted = virtual_time.max(0) as u128 * u128::from(self.weight);
        Nanos(weighted.div_ceil(u128::from(NORMAL)) as u64)
    }
}

/// A tunable of Linux's fair class on a machine with `cpus` CPUs: more CPUs, coarser scheduling
/// (`sched_tunable_scaling` = logarithmic, the default): 1 + log2 of the CPUs, at most 8 of which count.
pub(super) fn scaled(normal: Nanos, cpus: usize) -> Nanos {
    let factor = 1 + cpus.clamp(1, 8).ilog2();
    Nanos(normal.0 * u64::from(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: virtual time is time · 1024 / weight, never more, and less by so little that an hour's sum
    /// is off by microseconds. Method: all weights and several lengths against an exact division.
    #[test]
    fn virtual_time_is_the_quotient() {
        for weight in WEIGHTS.into_iter().chain([IDLE]) {
            let virtual_of = |time| Weight::new(weight).virtual_time(Nanos(time)) as u128;
            for time in [0, 1, 999, 1_400_000, 4_000_000, 3_600_000_000_000] {
                let exact = u128::from(time) * 1024 / u128::from(weight);
                let got = virtual_of(time);
                // Two roundings to 32 bits, the coarser one that of the inverse of a large weight.
                let off = exact * u128::from(weight) / (1 << 32) + exact / (1 << 31) + 1;
                assert!(
                    got <= exact && exact - got <= off,
                    "{weight}: {time} gave {got}"
                );
                let back = Weight::new(weight).real_time(got as i64);
                assert!(
                    u128::from(back.0.abs_diff(time)) <= (off + 1) * u128::from(weight) / 1024 + 1,
                    "{weight}: {time} came back as {back}"
                );
            }
        }
        assert_eq!(Weight::of(&Attr::nice(0)).virtual_time(Nanos(7)), 7);
    }

    /// Goal: niceness is what users expect of it. Method: the ratio per step, the ends, values beyond.
    #[test]
    fn a_step_is_a_quarter() {
        let weight = |nice| Weight::of(&Attr::nice(nice)).value();
        for nice in -20..19 {
            let percent = weight(nice) * 100 / weight(nice + 1);
            assert!((118..=131).contains(&percent), "{nice}: {percent}");
        }
        assert_eq!((weight(0), weight(5)), (1024, 335));
        assert_eq!((weight(-128), weight(127)), (88761, 15));
        let parts = |nice| Weight::of(&Attr::nice(nice)).parts_of_normal(100);
        assert_eq!([-20, -1, 0, 5, 19].map(parts), [8668, 125, 100, 33, 1]);
    }

    /// Goal: the factor is that of the documentation. Method: its table.
    #[test]
    fn tunables_grow_with_the_logarithm_of_the_cpus() {
        let factors = [1, 2, 3, 4, 7, 8, 256].map(|cpus| scaled(Nanos(1), cpus).0);
        assert_eq!(factors, [1, 2, 2, 3, 3, 4, 4]);
    }
}
