//! The resident set of this process: in the first tenth of a campaign, and at its end.
//!
//! The memory that a slice leaves behind depends on what it has drawn: an allocator keeps the memory of a
//! large one. So the end is compared with the most of the first tenth, in which each combination has had a
//! turn. A leak grows nine times as long after that.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Growth that no leak is needed for: arenas of the allocator, chunks that are kept.
const GROWTH_MAX: u64 = 32 << 20;

/// Two sizes of the resident set in bytes; 0 is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// The most in the first tenth, in which each combination has had a slice.
    pub(crate) early: u64,
    pub(crate) late: u64,
}

impl Memory {
    /// A slice has ended. `is_early`: the first tenth is not over, or some combination had no slice yet.
    pub(crate) fn sample(&mut self, is_early: bool) {
        let Some(now) = resident() else { return };
        if is_early || self.early == 0 {
            self.early = self.early.max(now);
        }
        self.late = now;
    }

    /// Whether it has not grown by more than 32 MB and a tenth.
    pub(crate) fn is_flat(&self) -> bool {
        self.late <= self.early + self.early / 10 + GROWTH_MAX
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        match (self.early, self.late) {
            (0, 0) => f.write_str("–"),
            (early, late) => write!(f, "{:.0} MB, then {:.0} MB", mb(early), mb(late)),
        }
    }
}

/// The resident set in bytes, where the system says it (Linux).
pub(crate) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: growth within the allowance is flat, growth beyond it is not. Method: sizes on both sides of
    /// 32 MB and a tenth.
    #[test]
    fn growth_is_judged_by_a_tenth_and_32_mb() {
        let memory = |early: u64, late: u64| Memory {
            early: early << 20,
            late: late << 20,
        };
        assert!(memory(100, 142).is_flat());
        assert!(!memory(100, 143).is_flat());
        assert!(memory(100, 20).is_flat());
        assert!(Memory::default().is_flat());
        assert_eq!(Memory::default().to_string(), "–");
    }

    /// Goal: the size is read where there is /proc. Method: this process has one.
    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_a_size() {
        assert!(resident().is_some_and(|bytes| bytes > 1 << 20));
        let mut memory = Memory::default();
        memory.sample(true);
        memory.sample(false);
        assert!(memory.early > 0 && memory.late > 0);
    }
}
