//! How much of the CPUs' time nothing ran.
//!
//! A virtual CPU that is idle makes the others faster where the machine counts instructions, so frames may be
//! short, and hogs may compute as much as ever, although a scheduler leaves CPUs idle that there is work for.

use std::fs;

/// The CPUs' time since the machine was started, in ticks of /proc/stat.
pub(crate) struct CpuTime {
    idle: u64,
    all: u64,
}

impl CpuTime {
    pub(crate) fn now() -> Result<CpuTime, String> {
        let text =
            fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
        CpuTime::read(&text).ok_or_else(|| "/proc/stat has no line for all CPUs".to_owned())
    }

    fn read(text: &str) -> Option<CpuTime> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user, nice, system, idle, waiting for a disk, interrupts (two), taken by a host. What comes behind
        // is part of the first ones.
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .take(8)
            .collect();
        Some(CpuTime {
            idle: ticks.get(3)? + ticks.get(4)?,
            all: ticks.iter().sum(),
        })
    }

    /// How many thousandths of the time since then the CPUs were idle.
    pub(crate) fn idle_permille_since(&self, before: &CpuTime) -> u64 {
        let all = self.all.saturating_sub(before.all).max(1);
        1_000 * self.idle.saturating_sub(before.idle) / all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: idle time is that of all CPUs, with that for a disk, and a guest's time is not counted twice.
    /// Method: two texts as the kernel writes them, and one without the line.
    #[test]
    fn idle_time_is_read() {
        let before =
            CpuTime::read("cpu  100 0 20 300 10 1 2 7 50 0\ncpu0 50 0 10 150 5 0 1 3 25 0\n");
        let after =
            CpuTime::read("cpu  150 0 30 310 20 1 2 27 90 0\ncpu0 75 0 15 155 10 0 1 13 45 0\n");
        let (before, after) = (before.expect("a line"), after.expect("a line"));
        assert_eq!(after.idle_permille_since(&before), 200);
        assert_eq!(before.idle_permille_since(&before), 0);
        assert!(CpuTime::read("intr 1 2 3\n").is_none());
    }
}
