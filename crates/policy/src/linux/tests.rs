//! Linux's classes against measurements, by tables of what tasks do.

mod balance;
mod fair;
mod property;
mod realtime;
mod yields;

use event::Nanos;

use crate::Class;
use crate::testing::{Machine, Script};

/// 250 Hz.
const TICK: Nanos = Nanos::from_millis(4);

type Linux = Machine<Box<dyn Class>>;

/// One CPU under a policy made for `scale` CPUs, with these tasks, until `until`.
fn run(policy: &str, scale: usize, scripts: Vec<Script>, until: Nanos) -> Linux {
    let mut machine = Machine::named(policy, 1, scale, TICK);
    for script in scripts {
        machine.add(script);
    }
    machine.go(until);
    machine
}
