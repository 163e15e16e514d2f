//! Policies by name.

use event::Nanos;

use crate::ops::rustland::{Constants, Rustland, capped, merged, pre333, pre333_all};
use crate::ops::{
    Ext, Model, Promises, WaitFor, uniform_slice, uniform_slice_least, virtual_slice, waitfor,
};
use crate::random::{Explore, Order};
use crate::rtos::{Rtos, Rules};
use crate::{Class, linux};

/// The machine that a policy is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How many CPUs the machine has.
    pub cpus: usize,
    /// The time between two ticks; zero if there are none.
    pub tick: Nanos,
    /// The seed of policies that draw lots.
    pub seed: u64,
}

/// A policy of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its model, in a line.
    pub about: &'static str,
    make: fn(Setting) -> Box<dyn Class>,
}

/// All policies, the most usual first.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: "eevdf-6.18",
        about: "Linux 6.18: earliest eligible virtual deadline first; a yield forfeits the rest of the slice",
        make: linux::eevdf_6_18,
    },
    Entry {
        name: "eevdf-6.18-hrtick",
        about: "the same with HRTICK, as some builds have it: a timer ends slices, and not the next tick",
        make: linux::eevdf_6_18_hrtick,
    },
    Entry {
        name: "eevdf-6.6",
        about: "Linux 6.6, the first with EEVDF: a yield postpones the deadline and nothing else",
        make: linux::eevdf_6_6,
    },
    Entry {
        name: "cfs-4.12",
        about: "Linux 4.12: the Completely Fair Scheduler; a yield asks to be skipped once",
        make: linux::cfs_4_12,
    },
    Entry {
        name: "fifo",
        about: "Linux, all tasks SCHED_FIFO: the highest priority runs until it blocks or yields",
        make: linux::fifo,
    },
    Entry {
        name: "rr",
        about: "Linux, all tasks SCHED_RR: the highest priority runs, equals take turns of 100 ms",
        make: linux::rr,
    },
    Entry {
        name: "rtos",
        about: "ThreadX: fixed priorities, the lowest number first; slices, thresholds, inheritance",
        make: |setting| Box::new(Rtos::new(rules("rtos", setting))),
    },
    Entry {
        name: "rtos-plain",
        about: "the same, and no mutex inherits",
        make: |setting| {
            Box::new(Rtos::new(Rules {
                inherits: false,
                ..rules("rtos-plain", setting)
            }))
        },
    },
    Entry {
        name: "rtos-unique",
        about: "the same where no two threads may have one priority, so that none can be inherited",
        make: |setting| {
            Box::new(Rtos::new(Rules {
                max_threads_per_priority: Some(1),
                ..rules("rtos-unique", setting)
            }))
        },
    },
    Entry {
        name: "rustland-pre333",
        about: "scx_rustland 0.0.7: a process decides; slices shrink with the queue",
        make: |setting| scx(pre333, setting),
    },
    Entry {
        name: "rustland-pre333-all",
        about: "the same with slices by all tasks that wait for a CPU, as source 004's text says",
        make: |setting| scx(pre333_all, setting),
    },
    Entry {
        name: "rustland-333",
        about: "scx_rustland with the virtual slices of source 004, as merged",
        make: |setting| scx(merged, setting),
    },
    Entry {
        name: "rustland-333-capped",
        about: "the same a day later, with a limit on slices",
        make: |setting| scx(capped, setting),
    },
    Entry {
        name: "waitfor",
        about: "a process decides; fair, and a task that says it waits pays for what it waits for",
        make: |setting| {
            let constants = waitfor::WaitForConstants::default();
            let model = Model::kicking(constants.slice, setting.tick);
            Box::new(Ext::new(WaitFor::new(constants), model))
        },
    },
    Entry {
        name: "virtual-slice",
        about: "source 004's rule, idealised: slices from what tasks promise, in bursts",
        make: |_| Box::new(Ext::new(virtual_slice(Promises::default()), Model::ideal())),
    },
    Entry {
        name: "uniform-slice",
        about: "the baseline of source 004: the same bursts, 2 ms for every task",
        make: |_| Box::new(Ext::new(uniform_slice(Promises::default()), Model::ideal())),
    },
    Entry {
        name: "uniform-slice-least",
        about: "the same with 1 ms, the least slice of virtual-slice",
        make: |_| {
            let rule = uniform_slice_least(Promises::default());
            Box::new(Ext::new(rule, Model::ideal()))
        },
    },
    Entry {
        name: "random",
        about: "any ready task goes on at every step, by a seed: looks for errors in programs",
        make: |setting| Box::new(Explore::new(Order::Random, setting.seed)),
    },
    Entry {
        name: "pct-3",
        about: "random priorities with two changes: for errors of depth three; any depth goes",
        make: |setting| Box::new(Explore::new(Order::Pct { depth: 3 }, setting.seed)),
    },
];

fn scx(make: impl Fn(Constants) -> Rustland, setting: Setting) -> Box<dyn Class> {
    let constants = Constants::default();
    let model = Model::scx(constants.slice, setting.tick);
    Box::new(Ext::new(make(constants), model))
}

fn rules(name: &'static str, setting: Setting) -> Rules {
    Rules {
        name,
        tick: setting.tick,
        ..Rules::default()
    }
}

/// Policies that differ by a number.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Their names: the number is in the place of the N at the end.
    pub name: &'static str,
    /// Their model, in a line.
    pub about: &'static str,
    /// The largest number. The least is 1.
    pub most: u64,
    make: fn(u64, Setting) -> Box<dyn Class>,
}

/// The longest slice that a name can have, in microseconds.
const SLICE_MAX: u64 = 1_000_000;

/// All families.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "rustland-pre333-N",
        about: "rustland-pre333 with slices of at least N microseconds; from 5000 on none shrinks",
        most: SLICE_MAX,
        make: |micros, setting| {
            let with_least = |constants| {
                pre333(Constants {
                    slice_min: Nanos::from_micros(micros),
                    ..constants
                })
            };
            scx(with_least, setting)
        },
    },
    Family {
        name: "virtual-slice-N",
        about: "virtual-slice with slices of at least N microseconds",
        most: SLICE_MAX,
        make: |micros, _| {
            let unit = Nanos::from_micros(micros);
            let promises = Promises {
                unit,
                ..Promises::default()
            };
            Box::new(Ext::new(virtual_slice(promises), Model::ideal()))
        },
    },
    Family {
        name: "uniform-slice-N",
        about: "uniform-slice with slices of N microseconds",
        most: SLICE_MAX,
        make: |micros, _| {
            let uniform = Nanos::from_micros(micros);
            let promises = Promises {
                uniform,
                ..Promises::default()
            };
            Box::new(Ext::new(uniform_slice(promises), Model::ideal()))
        },
    },
    Family {
        name: "pct-N",
        about: "random priorities that change so often: for errors of depth N",
        most: 99,
        make: |depth, setting| {
            let depth = depth as u32;
            Box::new(Explore::new(Order::Pct { depth }, setting.seed))
        },
    },
];

impl Family {
    /// The family of the policy of this name, and the number in it.
    fn of(name: &str) -> Option<(&'static Family, u64)> {
        FAMILIES.iter().find_map(|family| {
            let number = name.strip_prefix(family.name.trim_end_matches('N'))?;
            let number = number.parse().ok()?;
            (1..=family.most)
                .contains(&number)
                .then_some((family, number))
        })
    }
}

/// The policy of this name, if there is one: one of the [`CATALOGUE`], or of the [`FAMILIES`].
///
/// ```
/// use event::Nanos;
/// let setting = paceline_policy::Setting { cpus: 2, tick: Nanos::from_millis(4), seed: 1 };
/// assert_eq!(paceline_policy::named("random", setting).unwrap().name(), "random");
/// assert!(paceline_policy::named("uniform-slice-500", setting).is_some());
/// assert!(paceline_policy::named("lottery", setting).is_none());
/// ```
pub fn named(name: &str, setting: Setting) -> Option<Box<dyn Class>> {
    match CATALOGUE.iter().find(|entry| entry.name == name) {
        Some(entry) => Some((entry.make)(setting)),
        None => Family::of(name).map(|(family, number)| (family.make)(number, setting)),
    }
}

/// What the policy of this name models, in a line, if there is one.
///
/// ```
/// assert!(paceline_policy::about("pct-7").unwrap().contains("random"));
/// assert!(paceline_policy::about("pct-0").is_none());
/// ```
pub fn about(name: &str) -> Option<&'static str> {
    match CATALOGUE.iter().find(|entry| entry.name == name) {
        Some(entry) => Some(entry.about),
        None => Family::of(name).map(|(family, _)| family.about),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every policy of the catalogue can be had, under its name. Method: each entry is made, and asked
    /// for its name; those that explore by depth say the family's.
    #[test]
    fn each_policy_has_the_name_it_is_listed_under() {
        let setting = Setting {
            cpus: 2,
            tick: Nanos::from_millis(4),
            seed: 1,
        };
        for entry in CATALOGUE {
            let class = named(entry.name, setting).expect(entry.name);
            let family = entry.name.starts_with("pct-").then_some("pct");
            assert_eq!(class.name(), family.unwrap_or(entry.name));
        }
    }

    /// Goal: a rule can be had with a slice of its own. Method: the three that have one, and names that are
    /// none: no slice, one of more than a second, one of a rule that takes none.
    #[test]
    fn a_slice_can_be_in_the_name() {
        let setting = Setting {
            cpus: 2,
            tick: Nanos::from_millis(4),
            seed: 1,
        };
        let is_one = |name: &str| named(name, setting).is_some();
        for rule in ["virtual-slice", "uniform-slice", "rustland-pre333"] {
            assert!(is_one(&format!("{rule}-5000")), "{rule}");
            assert!(
                !is_one(&format!("{rule}-0")) && !is_one(&format!("{rule}-1000001")),
                "{rule}"
            );
        }
        assert!(!is_one("rustland-333-5000"));
    }
}
