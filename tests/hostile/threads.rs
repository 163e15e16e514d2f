//! The threads of this process as the kernel sees them: Linux's `/proc/self/task`. Other systems are not
//! asked.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

/// One thread at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Thread {
    pub(crate) id: u32,
    pub(crate) name: String,
    /// The kernel's letter: `R` runs or wants to, `S` sleeps.
    pub(crate) state: char,
    /// Time on a CPU in ns.
    pub(crate) ran: u64,
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Thread {
            id,
            name,
            state,
            ran,
        } = self;
        let ms = *ran as f64 / 1e6;
        write!(f, "thread {id} {name:<15} {state} {ms:.1} ms on a CPU")
    }
}

/// Threads that are shown one by one.
const LISTED: usize = 8;

/// A line for each of the first threads, and how many more there are in each state.
pub(crate) fn listed(threads: &[Thread]) -> Vec<String> {
    let shown = threads.iter().take(LISTED).map(ToString::to_string);
    let mut lines: Vec<String> = shown.collect();
    let mut rest = BTreeMap::new();
    for thread in threads.iter().skip(LISTED) {
        *rest.entry(thread.state).or_insert(0) += 1;
    }
    for (state, number) in rest {
        lines.push(format!("and {number} more threads in state {state}"));
    }
    lines
}

/// All threads of this process but the calling one. None without such a `/proc`.
pub(crate) fn others() -> Option<Vec<Thread>> {
    let own = fs::read_link("/proc/thread-self").ok()?;
    let own: u32 = own.file_name()?.to_str()?.parse().ok()?;
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc/self/task").ok()? {
        let path = entry.ok()?.path();
        let id: u32 = path.file_name()?.to_str()?.parse().ok()?;
        // A thread that has ended meanwhile has no files any more.
        if id != own
            && let Some(thread) = read(id, &path)
        {
            threads.push(thread);
        }
    }
    Some(threads)
}

fn read(id: u32, path: &Path) -> Option<Thread> {
    let text = |file| fs::read_to_string(path.join(file)).ok();
    let (name, state, ticks) = parse_stat(&text("stat")?)?;
    // Exact where the kernel counts it, else by ticks.
    let exact = text("schedstat").and_then(|text| text.split_whitespace().next()?.parse().ok());
    Some(Thread {
        id,
        name,
        state,
        ran: exact.unwrap_or(ticks * TICK),
    })
}

/// The length of a tick in `/proc/…/stat`, everywhere, in ns.
const TICK: u64 = 10_000_000;

/// Name, state, and user and system time in ticks, of a line `id (name) state …`; a name may hold anything.
fn parse_stat(line: &str) -> Option<(String, char, u64)> {
    let (begin, rest) = line.rsplit_once(") ")?;
    let (_, name) = begin.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let state = fields.first()?.chars().next()?;
    Some((name.to_owned(), state, number(11)? + number(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: name, state and times are found whatever the name holds. Method: a line of the kernel with an
    /// odd name, and one that is cut.
    #[test]
    fn a_line_of_stat_is_read() {
        let line = "7 (odd) name) S 1 7 7 0 -1 4194560 1 0 0 0 150 25 0 0 20 0 1 0 99 1 1 1";
        assert_eq!(parse_stat(line), Some(("odd) name".into(), 'S', 175)));
        assert_eq!(parse_stat("7 (cut) S 1 7"), None);
    }

    /// Goal: a report of many threads stays short. Method: forty of them.
    #[test]
    fn many_threads_are_few_lines() {
        let thread = |id| Thread {
            id,
            name: format!("w.{id}"),
            state: if id == 20 { 'R' } else { 'S' },
            ran: 1_500_000,
        };
        let threads: Vec<Thread> = (0..40).map(thread).collect();
        let lines = listed(&threads);
        assert_eq!(lines.len(), LISTED + 2);
        assert_eq!(lines[1], "thread 1 w.1             S 1.5 ms on a CPU");
        assert_eq!(
            lines[LISTED..],
            [
                "and 1 more threads in state R",
                "and 31 more threads in state S"
            ]
        );
    }

    /// Goal: other threads are seen with their names and whether they sleep. Method: one thread of this test
    /// that waits.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_sleeping_thread_is_seen() {
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::Builder::new().name("hostile-sleeper".into());
        let sleeper = sleeper.spawn(move || ends.recv().is_err());
        let seen = |thread: &Thread| thread.name == "hostile-sleeper" && thread.state == 'S';
        while !others().expect("Linux has it").iter().any(seen) {
            std::thread::yield_now();
        }
        drop(end);
        assert!(sleeper.expect("it starts").join().expect("it ends"));
    }
}
