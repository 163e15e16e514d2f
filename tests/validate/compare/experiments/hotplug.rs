//! V13: a CPU goes offline for 50 ms while two threads compute. Only if asked for: it disturbs all programs
//! on the machine.
//!
//! To take a CPU away and to bring it back takes the kernel a while, mostly on the other CPU, where the
//! threads are in the way. So each run is simulated with the times at which it was away.

use std::fs;
use std::path::Path;
use std::time::Duration;

use event::{Cpu, Nanos};
use platform::os::guardian;
use platform::{Os, Platform};
use policy::Attr;
use sim::Planned;

use super::Lab;
use crate::compare::judge::Row;
use crate::compare::world::{Course, Note, Program, Thread, World};

const AWAY_FROM: Nanos = Nanos::from_millis(50);
const AWAY_FOR: Nanos = Nanos::from_millis(50);

/// Threads on any CPU, each with this much to do.
struct Unpinned {
    work: Nanos,
}

impl Program for Unpinned {
    fn threads<W: World>(&self, _: &W) -> Vec<Thread<W>> {
        let work = self.work;
        let thread = |_| {
            let body = move |world: &W| {
                world.work(work);
                vec![Note::time("end", world.now())]
            };
            Thread::new(Attr::default(), body).on(None)
        };
        (0..2).map(thread).collect()
    }
}

fn makespan(course: &Course) -> f64 {
    course.noted("end").into_iter().max().unwrap_or(0) as f64 / 1e6
}

/// The CPU is away between these times.
fn plan((from, until): (Nanos, Nanos)) -> Vec<(Nanos, Planned)> {
    let cpu = Cpu(1);
    vec![(from, Planned::Offline(cpu)), (until, Planned::Online(cpu))]
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let program = Unpinned {
        work: Nanos::from_millis(150),
    };
    let file = format!(
        "/sys/devices/system/cpu/cpu{}/online",
        lab.machine.cpus()[1]
    );
    let set = |online: &str| fs::write(&file, online);
    set("1").map_err(|error| format!("this CPU cannot go offline: {error}"))?;
    let guardian = guardian::Guardian::new(&format!("echo 1 > {file}"), Path::new("/"));
    let _guardian = guardian.map_err(|error| error.to_string())?;
    let (mut real, mut simulated, mut away) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..lab.times(5) {
        let (course, gone) = lab.quiet.piece(|| {
            let mut gone = (Nanos::ZERO, Nanos::ZERO);
            let beside = |began: Nanos| {
                std::thread::sleep(Duration::from(AWAY_FROM));
                let from = Os.now() - began;
                // If it does not go, the time says so.
                let _ = set("0");
                std::thread::sleep(Duration::from(AWAY_FOR));
                let _ = set("1");
                gone = (from, Os.now() - began);
            };
            let course = lab.machine.run_beside(&program, beside)?;
            Ok((course, gone))
        })?;
        real.push(makespan(&course));
        away.push((gone.1 - gone.0).0 as f64 / 1e6);
        let simulation = lab.simulator.simulate("eevdf-6.18", &program, plan(gone));
        simulated.push(makespan(&simulation.course));
    }
    Ok(vec![
        Row::new(
            "a CPU is to be away for 50 ms: until it is back, ms",
            away,
            None,
        ),
        Row::medians(
            "two threads with 150 ms of work each, one CPU away for as long: until the end, ms",
            real,
            &simulated,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::simulated::Simulator;
    use policy::Placement;
    use sim::Machine;

    /// Goal: 300 ms of work on two CPUs of which one is away for 50 ms take 175 ms, and half of the three
    /// ticks that it may take until the CPU that is back is given one of two threads. Method: `vm-2` with
    /// either placement.
    #[test]
    fn a_simulated_cpu_that_is_away_is_missed() {
        let program = Unpinned {
            work: Nanos::from_millis(150),
        };
        for placement in [Placement::Mainline, Placement::Pack] {
            let machine = Machine::named("vm-2").unwrap().with_placement(placement);
            let simulator = Simulator {
                machine: machine.into(),
            };
            let simulated = simulator.simulate(
                "eevdf-6.18",
                &program,
                plan((AWAY_FROM, AWAY_FROM + AWAY_FOR)),
            );
            let makespan = makespan(&simulated.course);
            assert!(
                (175.0..187.0).contains(&makespan),
                "{placement:?}: {makespan}"
            );
        }
    }
}
