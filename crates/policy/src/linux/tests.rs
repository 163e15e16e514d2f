//! Linux's classes against what was measured, by tables of what tasks do.

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

/// One CPU under a policy that thinks there are `scale`, with these tasks, for so long.
fn run(policy: &str, scale: usize, scripts: Vec<Script>, until: Nanos) -> Linux {
    let mut machine = Machine::named(policy, 1, scale, TICK);
    scripts.into_iter().for_each(|script| {
        machine.add(script);
    });
    machine.go(until);
    machine
}
