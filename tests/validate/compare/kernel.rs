//! The kernel at hand, as far as the policies stand for one.

use std::fs;

use event::Nanos;
use policy::Placement;

use super::real;
use super::simulated::Simulator;

/// The kernel that `eevdf-6.18` stands for.
const MODELLED: (u32, u32) = (6, 18);

/// The kernel of the machine at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Its version as it says it.
    pub(crate) release: String,
    /// The time between two ticks.
    pub(crate) tick: Option<Nanos>,
    /// The slice of a fair thread that asks for none.
    pub(crate) slice: Option<Nanos>,
    /// The CPU on which it puts a woken thread.
    pub(crate) placement: Placement,
    /// Whether threads of different sessions are in groups of their own; then a program of one session
    /// competes as a whole with those of others.
    pub(crate) autogroup: bool,
}

impl Kernel {
    /// Asks the system.
    pub(crate) fn read() -> Kernel {
        let text = |file| fs::read_to_string(file).unwrap_or_default();
        let autogroup = text("/proc/sys/kernel/sched_autogroup_enabled");
        Kernel {
            release: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            tick: real::tick(),
            slice: slice_in(&text("/proc/self/sched")),
            placement: placement_in(&text("/proc/cmdline")),
            autogroup: autogroup.trim() == "1",
        }
    }

    /// Why it is not the one that is simulated, if it is not.
    pub(crate) fn differs(&self, simulator: &Simulator) -> Option<String> {
        let release = &self.release;
        let (major, minor) = MODELLED;
        if version_in(release) != Some(MODELLED) {
            return Some(format!(
                "the model is of Linux {major}.{minor}, this is {release}"
            ));
        }
        let tick = simulator.machine.kernel.tick;
        match self.tick {
            Some(own) if own == tick => None,
            Some(own) => Some(format!(
                "the model has a tick of {tick}, this kernel of {own}"
            )),
            None => Some("the kernel does not tell its tick".into()),
        }
    }
}

/// The two numbers that a version begins with.
fn version_in(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-', '+']);
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

/// The line `se.slice : 1400000` of a thread's `sched` file.
fn slice_in(text: &str) -> Option<Nanos> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("se.slice"))?;
    let (_, value) = line.split_once(':')?;
    value.trim().parse().ok().map(Nanos)
}

/// `sched_vcpu_pack` packs, unless it is 0.
fn placement_in(command_line: &str) -> Placement {
    let mut flags = command_line.split_whitespace();
    let packs = flags.find_map(|flag| flag.strip_prefix("sched_vcpu_pack="));
    match packs {
        Some(value) if value != "0" => Placement::Pack,
        _ => Placement::Mainline,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the system's files are read, and a missing value is not guessed. Method: lines as they are, and
    /// none.
    #[test]
    fn the_systems_files_are_read() {
        assert_eq!(version_in("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version_in("6.18+"), Some((6, 18)));
        assert_eq!(version_in("7"), None);
        let sched =
            "se.vruntime : 1.5\nse.slice                :              1400000\nprio : 120\n";
        assert_eq!(slice_in(sched), Some(Nanos(1_400_000)));
        assert_eq!(slice_in(""), None);
        assert_eq!(placement_in("quiet sched_vcpu_pack=15 x"), Placement::Pack);
        assert_eq!(placement_in("sched_vcpu_pack=0"), Placement::Mainline);
        assert_eq!(placement_in(""), Placement::Mainline);
    }

    /// Goal: only the modelled kernel is compared. Method: that one, another version, another tick, one that
    /// does not tell it.
    #[test]
    fn another_kernel_is_told_apart() {
        let modelled = Kernel {
            release: "6.18.44".into(),
            tick: Some(Nanos::from_millis(4)),
            slice: None,
            placement: Placement::Pack,
            autogroup: false,
        };
        let why = |kernel: Kernel| kernel.differs(&Simulator::vm_2()).unwrap_or_default();
        assert_eq!(why(modelled.clone()), "");
        let newer = why(Kernel {
            release: "6.19.0".into(),
            ..modelled.clone()
        });
        assert!(newer.contains("this is 6.19.0"), "{newer}");
        let faster = why(Kernel {
            tick: Some(Nanos::from_millis(1)),
            ..modelled.clone()
        });
        assert!(faster.contains("this kernel of 1.000 ms"), "{faster}");
        let silent = why(Kernel {
            tick: None,
            ..modelled
        });
        assert!(silent.contains("does not tell"), "{silent}");
    }

    /// Goal: the machine at hand says what it is. Method: read it; a tick is a hundredth to a thousandth of a
    /// second on every Linux.
    #[test]
    fn this_kernel_can_be_read() {
        let kernel = Kernel::read();
        assert!(version_in(&kernel.release).is_some(), "{kernel:?}");
        let tick = kernel.tick.expect("Linux tells");
        assert!(
            (Nanos::from_millis(1)..=Nanos::from_millis(10)).contains(&tick),
            "{tick}"
        );
    }
}
