//! CPUs for threads as changes: without a busy one, without the slow ones, or all.

use event::Cpu;
use replay::ProgramThread;
use sim::Machine;

/// A thread off this CPU, on others that are as fast: on a faster one it would gain for another reason.
pub(super) fn without(thread: &ProgramThread, machine: &Machine, busy: Cpu) -> Option<String> {
    let speed = capacity(machine, busy.0)?;
    mask(thread, machine, |cpu| {
        cpu != busy.0 && capacity(machine, cpu) == Some(speed)
    })
}

/// A thread on the fastest of its CPUs.
pub(super) fn fastest(thread: &ProgramThread, machine: &Machine) -> Option<String> {
    let speeds = allowed(thread, machine).filter_map(|cpu| capacity(machine, cpu));
    let most = speeds.max()?;
    mask(thread, machine, |cpu| capacity(machine, cpu) == Some(most))
}

/// A thread that may use all CPUs.
pub(super) fn wider(thread: &ProgramThread, machine: &Machine) -> Option<String> {
    let all: Vec<u32> = (0..machine.cpus.len() as u32).collect();
    let has_all = allowed(thread, machine).count() == all.len();
    (!has_all).then(|| change(thread, &all))
}

/// The CPUs that a thread may use.
fn allowed<'a>(thread: &'a ProgramThread, machine: &Machine) -> impl Iterator<Item = u32> + 'a {
    let all = 0..machine.cpus.len() as u32;
    all.filter(|cpu| thread.cpus.is_empty() || thread.cpus.contains(cpu))
}

fn capacity(machine: &Machine, cpu: u32) -> Option<u32> {
    let spec = machine.cpus.get(cpu as usize)?;
    Some(machine.clusters.get(spec.cluster as usize)?.capacity)
}

/// A thread on those of its CPUs that are kept; none if these are all of them, or no one.
fn mask(
    thread: &ProgramThread,
    machine: &Machine,
    is_kept: impl Fn(u32) -> bool,
) -> Option<String> {
    let all = allowed(thread, machine).count();
    let kept: Vec<u32> = allowed(thread, machine)
        .filter(|cpu| is_kept(*cpu))
        .collect();
    (!kept.is_empty() && kept.len() < all).then(|| change(thread, &kept))
}

/// The change, with neighbours as ranges.
fn change(thread: &ProgramThread, cpus: &[u32]) -> String {
    let ranges = cpus.chunk_by(|one, next| one + 1 == *next);
    let ranges = ranges.map(|range| match range {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    let ranges: Vec<String> = ranges.collect();
    format!("mask:{}={}", thread.name, ranges.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::made::{machine, thread};
    use super::*;

    /// Goal: a thread that is kept off a CPU stays on CPUs as fast, so that the gain is not that of a faster
    /// one; one that is kept off slow CPUs has the fast ones. Method: a machine of two fast CPUs between four
    /// slow ones, and threads that may use all of them, or some.
    #[test]
    fn masks_change_one_thing() {
        let machine = machine(&[446, 1024, 1024, 446, 446, 446]);
        let free = thread("ui");
        let off = |thread, cpu| without(thread, &machine, Cpu(cpu));
        assert_eq!(off(&free, 0).as_deref(), Some("mask:ui=3-5"));
        assert_eq!(off(&free, 4).as_deref(), Some("mask:ui=0,3,5"));
        assert_eq!(off(&free, 1).as_deref(), Some("mask:ui=2"));
        assert_eq!(off(&free, 9), None);
        assert_eq!(fastest(&free, &machine).as_deref(), Some("mask:ui=1-2"));
        assert_eq!(wider(&free, &machine), None);
        let mut bound = thread("ui");
        bound.cpus = vec![0, 1];
        assert_eq!(off(&bound, 0), None);
        assert_eq!(fastest(&bound, &machine).as_deref(), Some("mask:ui=1"));
        assert_eq!(wider(&bound, &machine).as_deref(), Some("mask:ui=0-5"));
        bound.cpus = vec![1];
        assert_eq!(fastest(&bound, &machine), None);
    }
}
