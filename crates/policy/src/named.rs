//! Policies by name.

use event::Nanos;

use crate::Class;
use crate::random::{Explore, Order};
use crate::rtos::{Rtos, Rules};

/// What a policy is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How many CPUs the machine has.
    pub cpus: usize,
    /// The time between two ticks; zero if there are none.
    pub tick: Nanos,
    /// Where policies that draw lots begin.
    pub seed: u64,
}

/// A policy of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it stands for, in a line.
    pub about: &'static str,
    make: fn(Setting) -> Box<dyn Class>,
}

/// All policies, the most usual first.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: "rtos",
        about: "ThreadX: fixed priorities, the lowest number first; slices, thresholds, inheritance",
        make: |setting| Box::new(Rtos::new(rules("rtos", setting))),
    },
    Entry {
        name: "rtos-plain",
        about: "the same where locks lend no priorities",
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

fn rules(name: &'static str, setting: Setting) -> Rules {
    Rules {
        name,
        tick: setting.tick,
        ..Rules::default()
    }
}

/// The policy of this name, if there is one: one of the [`CATALOGUE`], or `pct-N` with N from 1 to 99.
///
/// ```
/// use event::Nanos;
/// let setting = policy::Setting { cpus: 2, tick: Nanos::from_millis(4), seed: 1 };
/// assert_eq!(policy::named("random", setting).unwrap().name(), "random");
/// assert!(policy::named("lottery", setting).is_none());
/// ```
pub fn named(name: &str, setting: Setting) -> Option<Box<dyn Class>> {
    let depth = name
        .strip_prefix("pct-")
        .and_then(|depth| depth.parse().ok());
    if let Some(depth @ 1..=99) = depth {
        return Some(Box::new(Explore::new(Order::Pct { depth }, setting.seed)));
    }
    let entry = CATALOGUE.iter().find(|entry| entry.name == name)?;
    Some((entry.make)(setting))
}
