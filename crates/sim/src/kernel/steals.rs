//! Steals: the machine's host takes CPUs away, one after the other, any of them, by the seed.

use event::{Cpu, Nanos, Random};

use crate::Perturb;

/// The next steal, and how the ones after it are drawn.
#[derive(Debug)]
pub(crate) struct Steals {
    /// The mean time between two steals.
    every: Nanos,
    /// The longest steal.
    most: Nanos,
    due: Nanos,
    random: Random,
}

impl Steals {
    /// No steals.
    pub(super) fn none() -> Steals {
        Steals::new(&Perturb::default(), 0)
    }

    pub(crate) fn new(perturb: &Perturb, seed: u64) -> Steals {
        let mut steals = Steals {
            every: perturb.stolen_every,
            most: perturb.stolen_max,
            due: Nanos::ZERO,
            random: Random::new(seed),
        };
        steals.plan();
        steals
    }

    /// The time of the next steal.
    #[inline]
    pub(super) fn due(&self) -> Nanos {
        self.due
    }

    /// The steal that is due: one of `cpus` CPUs, and the length. Plans the next one.
    pub(super) fn next(&mut self, cpus: usize) -> (Cpu, Nanos) {
        let cpu = Cpu(self.random.below(cpus as u64) as u32);
        let away = Nanos(self.random.within(1, self.most.0.max(1)));
        self.plan();
        (cpu, away)
    }

    /// Uniformly up to twice the mean after the last one, so that steals follow no rhythm.
    fn plan(&mut self) {
        self.due = match self.every {
            Nanos::ZERO => Nanos::MAX,
            every => {
                let most = every.0.saturating_mul(2);
                Nanos(self.due.0.saturating_add(self.random.within(1, most)))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: steals are as frequent as the configuration says, never longer, on every CPU, and there are none
    /// where none are wanted. Method: ten thousand of them on four CPUs, whose mean is within 3 %.
    #[test]
    fn so_much_is_stolen_as_was_asked_for() {
        let perturb = Perturb {
            stolen_every: Nanos(1_000),
            stolen_max: Nanos(50),
            ..Perturb::default()
        };
        let mut steals = Steals::new(&perturb, 7);
        let mut of_cpu = [0; 4];
        for _ in 0..10_000 {
            let (cpu, away) = steals.next(4);
            of_cpu[cpu.index()] += 1;
            assert!((1..=50).contains(&away.0), "{away}");
        }
        assert!((9_700_000..10_300_000).contains(&steals.due().0));
        assert!(of_cpu.iter().all(|count| (2_300..2_700).contains(count)));
        assert_eq!(Steals::none().due(), Nanos::MAX);
    }
}
