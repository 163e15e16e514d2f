//! What a thread is: its name, its priority, the CPUs that it may use.

use std::collections::{BTreeMap, BTreeSet};

use event::{Cpu, Nanos, Task};
use policy::Attr;
use sim::scenario::Segment;
use trace::timeline::{State, Timeline};

use super::life::Life;
use super::source::Source;
use crate::program::ProgramThread;

/// A thread that was put on a CPU so often, and never on some of them, may use only those where it was.
const SEEN_MIN: usize = 8;

/// Names by which segments tell threads apart.
pub(super) fn names(timeline: &Timeline, tasks: &[Task]) -> BTreeMap<Task, String> {
    let plain = |task: Task| {
        let name = timeline.name(task);
        let name = name.replace(|c: char| c == '#' || c.is_control(), "_");
        let words: Vec<&str> = name.split_whitespace().collect();
        match words.join(" ") {
            name if name.is_empty() || name.ends_with(" lending") => format!("thread {name}"),
            name => name,
        }
    };
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for &task in tasks {
        *count.entry(plain(task)).or_default() += 1;
    }
    let mut taken = BTreeSet::new();
    let mut names = BTreeMap::new();
    for &task in tasks {
        let mut name = plain(task);
        if count[&name] > 1 {
            name = match timeline.tid(task) {
                Some(tid) => format!("{name} ({tid})"),
                None => format!("{name} (task {})", task.0),
            };
        }
        while !taken.insert(name.clone()) {
            name = format!("{name} (task {})", task.0);
        }
        names.insert(task, name);
    }
    names
}

/// The scheduler's attributes of a thread with this priority, as Linux's kernel counts them.
pub(super) fn attr(priority: i16) -> Attr {
    match priority {
        ..0 => Attr::fifo(99),
        0..=98 => Attr::fifo((99 - priority) as u8),
        99 => Attr::fifo(1),
        100..=139 => Attr::nice((priority - 120) as i8),
        140.. => Attr::nice(19),
    }
}

/// The same as a segment.
pub(super) fn attr_segment(priority: i16) -> Segment {
    let attr = attr(priority);
    if attr.discipline.is_realtime() {
        Segment::Fifo(attr.priority)
    } else {
        Segment::Nice(attr.nice)
    }
}

/// The thread with its segments.
pub(super) fn thread(
    source: &Source<'_>,
    task: Task,
    life: Life,
    assumed: &mut Vec<String>,
) -> ProgramThread {
    let timeline = source.timeline;
    let first = timeline.priorities(task).next();
    let own = first.map_or(120, |(_, priority)| priority.own);
    let process = timeline.process(task);
    let process = process.and_then(|at| timeline.recording().processes.get(at));
    let name = source.names[&task].clone();
    ProgramThread {
        recorded_name: timeline.name(task),
        tid: timeline.tid(task),
        process: (
            process.map(|process| process.name.clone()),
            process.and_then(|process| process.pid),
        ),
        attr: attr(own),
        cpus: cpus(source, task, &name, assumed),
        first_cpu: life.first_cpu,
        segments: life.segments,
        waits: life.waits,
        put_aside: life.put_aside,
        ran: timeline.spent(task).running,
        name,
        task,
    }
}

/// The CPUs that a thread may run on; none: all of them.
fn cpus(source: &Source<'_>, task: Task, name: &str, assumed: &mut Vec<String>) -> Vec<u32> {
    let timeline = source.timeline;
    let all = timeline.cpus();
    let (allowed, is_told) = timeline.allowed(task, source.end);
    if allowed.len() >= all.len() || allowed.is_empty() {
        return Vec::new();
    }
    let numbers = |cpus: &[Cpu]| -> Vec<u32> { cpus.iter().map(|cpu| cpu.0).collect() };
    if is_told {
        return numbers(&allowed);
    }
    if let Some(cpu) = cpu_of_kernel_thread(name)
        && allowed == [Cpu(cpu)]
    {
        return vec![cpu];
    }
    let stays = source.stays[&task].windows(2);
    let placed = stays.filter(|two| {
        matches!(two[1].state, State::Running(_)) && !matches!(two[0].state, State::Running(_))
    });
    if placed.count() < SEEN_MIN {
        return Vec::new();
    }
    let cpus = numbers(&allowed);
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    assumed.push(format!(
        "{name} may run on CPU {} only: it was seen nowhere else",
        list.join(", ")
    ));
    cpus
}

/// The CPU of a kernel's thread for one CPU, by its name: "ksoftirqd/2", "kworker/2:1H".
fn cpu_of_kernel_thread(name: &str) -> Option<u32> {
    let (_, rest) = name.split_once('/')?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (number, rest) = rest.split_at(digits);
    let is_name = rest.is_empty() || rest.starts_with([':', '-', ' ']);
    number.parse().ok().filter(|_| is_name)
}

/// The priorities that a thread gave itself or was given, but for the first one and those that were lent.
pub(super) fn changes(timeline: &Timeline, task: Task) -> Vec<(Nanos, i16)> {
    let mut changes: Vec<(Nanos, i16)> = Vec::new();
    let mut before = None;
    for (since, priority) in timeline.priorities(task) {
        if before.is_some_and(|own| own != priority.own) {
            changes.push((since, priority.own));
        }
        before = Some(priority.own);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a kernel's thread for one CPU is known by its name, and a thread for any CPU is not one. Method:
    /// names of real kernels.
    #[test]
    fn a_kernel_thread_for_one_cpu_has_it_in_its_name() {
        let found = |name| cpu_of_kernel_thread(name);
        assert_eq!(found("ksoftirqd/2"), Some(2));
        assert_eq!(found("kworker/13:1H"), Some(13));
        assert_eq!(found("kworker/0:2-events"), Some(0));
        assert_eq!(found("kworker/u8:1"), None);
        assert_eq!(found("irq/23-mmc0"), Some(23));
        assert_eq!(found("main"), None);
    }

    /// Goal: each of the kernel's priorities is the attributes that have it. Method: the ends of both ranges.
    #[test]
    fn priorities_are_attributes() {
        assert_eq!(attr(0), Attr::fifo(99));
        assert_eq!(attr(98), Attr::fifo(1));
        assert_eq!(attr(100), Attr::nice(-20));
        assert_eq!(attr(139), Attr::nice(19));
        assert_eq!(attr(-1), Attr::fifo(99));
        assert_eq!(attr_segment(120), Segment::Nice(0));
        assert_eq!(attr_segment(49), Segment::Fifo(50));
    }
}
