//! What of the machine the process may use at this moment: the part that changes while it runs.

use super::CpuSet;

/// A share of CPU time: `runtime` in every `period`, both in microseconds, exactly as the kernel has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Quota {
    runtime: u64,
    period: u64,
}

impl Quota {
    /// The kernel takes nothing shorter than a millisecond, for runtime and for period, and no period longer
    /// than a second (`max_cfs_quota_period` and its neighbours in kernel/sched/core.c).
    const SHORTEST: u64 = 1_000;
    const LONGEST_PERIOD: u64 = 1_000_000;
    /// What the kernel takes where only a runtime is given, in microseconds.
    #[cfg(feature = "machine")]
    pub(crate) const PERIOD: u64 = 100_000;

    /// This many microseconds of CPU time in every `period` of microseconds; `None` if no kernel would have
    /// taken these numbers.
    pub fn new(runtime: u64, period: u64) -> Option<Quota> {
        let sound = runtime >= Quota::SHORTEST
            && (Quota::SHORTEST..=Quota::LONGEST_PERIOD).contains(&period);
        sound.then_some(Quota { runtime, period })
    }

    /// As a number of CPUs: 1.5 is one and a half.
    pub fn cpus(self) -> f64 {
        self.runtime as f64 / self.period as f64
    }

    /// How many threads it takes to use it up; at least 1.
    pub fn threads(self) -> usize {
        usize::try_from(self.runtime.div_ceil(self.period)).unwrap_or(usize::MAX)
    }

    /// The smaller of both.
    #[must_use]
    pub fn min(self, other: Quota) -> Quota {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        if product(self.runtime, other.period) <= product(other.runtime, self.period) {
            self
        } else {
            other
        }
    }
}

/// What the process may use: CPUs that are online, those it is allowed on, and how much of their time.
///
/// Invariant: [`usable`](Limits::usable) is never empty if any CPU is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// CPUs that run.
    pub online: CpuSet,
    /// CPUs the process may run on, by its affinity and its cpuset; those that are offline included where the
    /// kernel names them.
    pub allowed: CpuSet,
    /// How much time of them; none if there is no limit.
    pub quota: Option<Quota>,
}

impl Limits {
    /// No limit but these CPUs.
    pub fn of(cpus: CpuSet) -> Limits {
        Limits {
            online: cpus.clone(),
            allowed: cpus,
            quota: None,
        }
    }

    /// The CPUs that are both online and allowed. Where both contradict each other, the online ones: what
    /// runs this code runs on one of them.
    pub fn usable(&self) -> CpuSet {
        let both = self.online.intersection(&self.allowed);
        match (both.is_empty(), self.online.is_empty()) {
            (false, _) => both,
            (true, false) => self.online.clone(),
            (true, true) => self.allowed.clone(),
        }
    }

    /// How many threads are worth having: the usable CPUs, cut by the quota; at least 1.
    ///
    /// A fraction is rounded up: at 1.5 CPUs a single thread would lose a third of what is granted, while two
    /// are throttled at the end of a period. (`std::thread::available_parallelism` rounds down.) And on two
    /// CPUs or more it is at least 2 whatever the quota, as in Go, so that one job that blocks does not stop
    /// everything.
    ///
    /// ```
    /// # use paceline_platform::{CpuSet, Limits, Quota};
    /// let mut limits = Limits::of(CpuSet::parse("0-7"));
    /// assert_eq!(limits.effective_parallelism(), 8);
    /// limits.quota = Quota::new(250_000, 100_000);
    /// assert_eq!(limits.effective_parallelism(), 3);
    /// ```
    pub fn effective_parallelism(&self) -> usize {
        let cpus = self.usable().len();
        let paid = self.quota.map_or(cpus, |quota| quota.threads().max(2));
        cpus.min(paid).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(online: &str, allowed: &str, quota: Option<Quota>) -> Limits {
        Limits {
            online: CpuSet::parse(online),
            allowed: CpuSet::parse(allowed),
            quota,
        }
    }

    /// Goal: sets and quota bound each other as documented, and no contradiction ends with nothing. Method: a
    /// table.
    #[test]
    fn parallelism_is_what_can_be_used() {
        let quota = |runtime| Quota::new(runtime, 100_000);
        for (online, allowed, quota, expected) in [
            ("0-7", "0-7", None, 8),
            ("0-7", "2-3,9", None, 2),
            ("0-3", "4-7", None, 4),
            ("", "4-7", None, 4),
            ("", "", None, 1),
            ("0-7", "0-7", quota(150_000), 2),
            ("0-7", "0-7", quota(50_000), 2),
            ("0", "0", quota(50_000), 1),
            ("0-7", "0-7", quota(650_000), 7),
            ("0-7", "0-7", quota(1_600_000), 8),
        ] {
            let limits = limits(online, allowed, quota);
            assert_eq!(limits.effective_parallelism(), expected, "{limits:?}");
        }
    }

    /// Goal: quotas are compared exactly, and numbers that no kernel takes are none. Method: fractions that
    /// differ in the last digit; zero, too short, too long.
    #[test]
    fn quotas_are_fractions() {
        let quota = |runtime, period| Quota::new(runtime, period).unwrap();
        let (third, less) = (quota(100_000, 300_000), quota(333_333, 1_000_000));
        assert_eq!(third.min(less), less);
        assert_eq!(less.min(third), less);
        assert_eq!(quota(150_000, 100_000).cpus(), 1.5);
        let most = usize::try_from(18_446_744_073_709_552_u64).unwrap_or(usize::MAX);
        assert_eq!(quota(u64::MAX, 1_000).threads(), most);
        for (runtime, period) in [
            (0, 100_000),
            (100_000, 0),
            (999, 100_000),
            (5_000, 2_000_000),
        ] {
            assert_eq!(Quota::new(runtime, period), None);
        }
    }
}
