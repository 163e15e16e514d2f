//! The use of the CPU by the other threads of this process: CPU time and switches, each thread by itself.
//!
//! The clock of a process counts the thread that measures, too. Linux counts for each thread, under
//! `/proc/self/task`; other systems are not asked.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use event::Nanos;

/// The use of the CPU by threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Time on a CPU.
    pub cpu: Nanos,
    /// How often they were switched away from, of their own will or not: a thread that wakes up and
    /// sleeps again is one.
    pub switches: u64,
}

/// All threads of this process but the calling one, at one moment.
pub struct OtherThreads(HashMap<String, Used>);

impl OtherThreads {
    /// None where this is not counted.
    pub fn now() -> Option<OtherThreads> {
        let own = fs::read_link("/proc/thread-self").ok()?;
        let own = own.file_name()?.to_owned();
        let mut all = HashMap::new();
        for thread in fs::read_dir("/proc/self/task").ok()? {
            let thread = thread.ok()?;
            if thread.file_name() == own {
                continue;
            }
            // One that has ended meanwhile has no files any more.
            let Some(texts) = texts(&thread.path()) else {
                continue;
            };
            let name = thread.file_name().to_string_lossy().into_owned();
            all.insert(name, parse(&texts.0, &texts.1)?);
        }
        Some(OtherThreads(all))
    }

    /// The use since then. Threads that have ended are left out.
    pub fn since(&self, before: &OtherThreads) -> Used {
        let mut sum = Used::default();
        for (thread, now) in &self.0 {
            let then = before.0.get(thread).copied().unwrap_or_default();
            sum.cpu += now.cpu - then.cpu;
            sum.switches += now.switches.saturating_sub(then.switches);
        }
        sum
    }
}

fn texts(thread: &Path) -> Option<(String, String)> {
    let text = |file| fs::read_to_string(thread.join(file)).ok();
    Some((text("schedstat")?, text("status")?))
}

/// Reads `nanoseconds on a CPU, waiting for one, time slices` and two lines of the status.
fn parse(schedstat: &str, status: &str) -> Option<Used> {
    let cpu = schedstat.split_whitespace().next()?.parse().ok()?;
    let counted = |key: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse().ok()
    };
    let switches = counted("voluntary_ctxt_switches:")? + counted("nonvoluntary_ctxt_switches:")?;
    Some(Used {
        cpu: Nanos(cpu),
        switches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the kernel's files are read, both kinds of switches count, and garbage is not guessed
    /// at. Method: files as the kernel writes them, and some that lack a part.
    #[test]
    fn the_kernels_counts_are_read() {
        let status = "Name:\tx\nThreads:\t2\nvoluntary_ctxt_switches:\t40\n\
                      nonvoluntary_ctxt_switches:\t2\n";
        let used = Used {
            cpu: Nanos(1_234),
            switches: 42,
        };
        assert_eq!(parse("1234 99 7\n", status), Some(used));
        assert_eq!(parse("", status), None);
        assert_eq!(parse("1234 99 7\n", "Name:\tx\n"), None);
    }

    /// Goal: use is the sum over threads of their increases, new ones whole. Method: two moments of three
    /// threads, one of which ends and one begins.
    #[test]
    fn use_is_what_has_come_since() {
        let threads = |all: &[(&str, u64, u64)]| {
            let all = all.iter().map(|&(thread, cpu, switches)| {
                let cpu = Nanos(cpu);
                (thread.to_owned(), Used { cpu, switches })
            });
            OtherThreads(all.collect())
        };
        let before = threads(&[("1", 100, 5), ("2", 900, 9)]);
        let after = threads(&[("1", 150, 6), ("3", 7, 1)]);
        let expected = Used {
            cpu: Nanos(57),
            switches: 2,
        };
        assert_eq!(after.since(&before), expected);
    }

    /// Goal: another thread's sleep is seen and one's own is not looked at. Method: on the machine at
    /// hand, if it counts.
    #[test]
    #[cfg(target_os = "linux")]
    fn another_threads_sleep_is_seen() {
        let own = fs::read_link("/proc/thread-self").unwrap();
        let own = own.file_name().unwrap().to_string_lossy().into_owned();
        let before = OtherThreads::now().unwrap();
        let (other, after) = std::thread::scope(|scope| {
            let (said, hear) = std::sync::mpsc::channel();
            let (go, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                let link = fs::read_link("/proc/thread-self").unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
                said.send(link.file_name().unwrap().to_string_lossy().into_owned())
                    .unwrap();
                let _ = wait.recv();
            });
            let other = hear.recv().unwrap();
            let after = OtherThreads::now().unwrap();
            drop(go);
            (other, after)
        });
        assert!(after.0[&other].switches >= 1);
        assert!(!after.0.contains_key(&own) && !before.0.contains_key(&other));
    }
}
