//! The machine of a measurement, as far as a reader of the numbers has to know it.
//!
//! No names of hosts or people and no paths: these descriptions are published.

use std::fmt;
use std::fs;

use platform::{Machine as _, Os};
use serde::Serialize;

/// Boot flags that change how threads are placed, preempted or put to sleep: by their beginning.
const RELEVANT_FLAGS: [&str; 16] = [
    "sched_",
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "mitigations",
    "idle=",
    "cpuidle",
    "haltpoll",
    "intel_idle",
    "processor.max_cstate",
    "intel_pstate",
    "amd_pstate",
    "preempt",
    "nosmt",
    "maxcpus",
    "threadirqs",
];

/// The machine at hand.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name for itself.
    pub model: String,
    /// CPUs this process may use.
    pub cpus: usize,
    /// How many threads can run at the same time (a quota may allow fewer than there are CPUs).
    pub parallelism: usize,
    /// The operating system and its version.
    pub kernel: String,
    /// Those boot flags that matter here.
    pub boot_flags: Vec<String>,
    /// The scheduler that `sched_ext` has put in charge, by its name for itself; none under the kernel's own.
    pub scheduler: Option<String>,
    /// The frequency governor of the first CPU; none if it cannot be read.
    pub governor: Option<String>,
}

impl Machine {
    /// The system's name for itself.
    pub fn read() -> Machine {
        let topology = Os.topology();
        let text = |path| fs::read_to_string(path).ok();
        let release = text("/proc/sys/kernel/osrelease").map(|release| release.trim().to_owned());
        let system = match std::env::consts::OS {
            "linux" => "Linux",
            other => other,
        };
        Machine {
            model: topology.model().to_owned(),
            cpus: topology.allowed().len(),
            parallelism: topology.effective_parallelism(),
            kernel: release.map_or(system.to_owned(), |release| format!("{system} {release}")),
            boot_flags: text("/proc/cmdline").map_or(Vec::new(), |line| relevant_flags(&line)),
            scheduler: scheduler_of(
                text("/sys/kernel/sched_ext/state").as_deref(),
                text("/sys/kernel/sched_ext/root/ops").as_deref(),
            ),
            governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .map(|governor| governor.trim().to_owned()),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = if self.cpus == 1 { "CPU" } else { "CPUs" };
        write!(f, "{}, {} {cpus}", self.model, self.cpus)?;
        if self.parallelism != self.cpus {
            write!(f, " ({} at a time)", self.parallelism)?;
        }
        write!(f, ", {}", self.kernel)?;
        match &self.scheduler {
            Some(name) => write!(f, ", scheduled by {name} (sched_ext)"),
            None => Ok(()),
        }
    }
}

/// The scheduler in charge, of the two files that say so. Kernels without `sched_ext` have neither.
fn scheduler_of(state: Option<&str>, ops: Option<&str>) -> Option<String> {
    match state?.trim() {
        "disabled" | "disabling" => None,
        // It is in charge, or about to be; one that has no name is one all the same.
        _ => Some(ops.map_or("", str::trim))
            .map(|name| if name.is_empty() { "?" } else { name }.to_owned()),
    }
}

/// The flags of a kernel's command line that matter. Words after `--` are for the first process.
fn relevant_flags(line: &str) -> Vec<String> {
    let flags = line.split_whitespace().take_while(|&flag| flag != "--");
    let relevant = |flag: &&str| RELEVANT_FLAGS.iter().any(|start| flag.starts_with(start));
    flags.filter(relevant).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: flags that decide about scheduling are kept, others and the first process's own are
    /// not. Method: a line with all of these.
    #[test]
    fn relevant_boot_flags_are_picked() {
        let line = "quiet sched_vcpu_pack=15 root=/dev/sda1 isolcpus=2-3 -- sched_of_init --addr 1";
        assert_eq!(relevant_flags(line), ["sched_vcpu_pack=15", "isolcpus=2-3"]);
    }

    /// Goal: a scheduler is named if one is in charge, and only then. Method: the files as kernels have them:
    /// none, one that is loaded, one that was, and one without a name.
    #[test]
    fn the_scheduler_in_charge_is_named() {
        assert_eq!(scheduler_of(None, None), None);
        let loaded = scheduler_of(Some("enabled\n"), Some("rustland_333\n"));
        assert_eq!(loaded.as_deref(), Some("rustland_333"));
        assert_eq!(scheduler_of(Some("disabled\n"), None), None);
        assert_eq!(scheduler_of(Some("disabling\n"), Some("x\n")), None);
        assert_eq!(scheduler_of(Some("enabled\n"), None).as_deref(), Some("?"));
    }

    /// Goal: the description is one line that has the parts. Method: a machine made up.
    #[test]
    fn a_machine_is_one_line() {
        let machine = Machine {
            model: "Toaster".into(),
            cpus: 4,
            parallelism: 2,
            kernel: "Linux 6.1".into(),
            boot_flags: Vec::new(),
            scheduler: None,
            governor: None,
        };
        assert_eq!(
            machine.to_string(),
            "Toaster, 4 CPUs (2 at a time), Linux 6.1"
        );
        let scheduler = Some("waitfor".into());
        assert_eq!(
            Machine {
                scheduler,
                ..machine
            }
            .to_string(),
            "Toaster, 4 CPUs (2 at a time), Linux 6.1, scheduled by waitfor (sched_ext)"
        );
        assert!(!Machine::read().to_string().contains('\n'));
    }
}
