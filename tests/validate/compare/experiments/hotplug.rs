//! V13: a CPU goes offline for 50 ms while two threads compute. Only if asked for: it disturbs everybody
//! on the machine.

use std::fs;
use std::path::Path;
use std::time::Duration;

use event::{Cpu, Nanos};
use platform::os::guardian;
use policy::Attr;
use sim::Planned;

use super::Lab;
use crate::compare::judge::Row;
use crate::compare::world::{Course, Note, Program, Thread, World};

const AWAY_FROM: Nanos = Nanos::from_millis(50);
const AWAY_FOR: Nanos = Nanos::from_millis(50);

/// Threads on any CPU, each with so much to do.
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

fn plan() -> Vec<(Nanos, Planned)> {
    let cpu = Cpu(1);
    vec![
        (AWAY_FROM, Planned::Offline(cpu)),
        (AWAY_FROM + AWAY_FOR, Planned::Online(cpu)),
    ]
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let program = Unpinned {
        work: Nanos::from_millis(150),
    };
    let simulated = lab.simulator.simulate("eevdf-6.18", &program, plan());
    let file = format!(
        "/sys/devices/system/cpu/cpu{}/online",
        lab.machine.cpus()[1]
    );
    let set = |online: &str| fs::write(&file, online);
    set("1").map_err(|error| format!("this CPU cannot go offline: {error}"))?;
    let guardian = guardian::Guardian::new(&format!("echo 1 > {file}"), Path::new("/"));
    let _guardian = guardian.map_err(|error| error.to_string())?;
    let mut real = Vec::new();
    for _ in 0..lab.times(5) {
        let beside = |_| {
            std::thread::sleep(Duration::from(AWAY_FROM));
            // If it does not go, the time says so.
            let _ = set("0");
            std::thread::sleep(Duration::from(AWAY_FOR));
            let _ = set("1");
        };
        let course = lab
            .quiet
            .piece(|| lab.machine.run_beside(&program, beside))?;
        real.push(makespan(&course));
    }
    let what = "two threads with 150 ms of work each, one CPU away for 50 ms: until the end, ms";
    Ok(vec![Row::new(
        what,
        real,
        Some(makespan(&simulated.course)),
    )])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::simulated::Simulator;
    use policy::Placement;
    use sim::Machine;

    /// Goal: 300 ms of work on two CPUs of which one is away for 50 ms take 175 ms where the kernel looks for
    /// work for a CPU that is back, and 250 ms where it leaves idle CPUs alone. Method: `vm-2` with either
    /// placement, and a few ms for who is moved when.
    #[test]
    fn a_simulated_cpu_that_is_away_is_missed() {
        let program = Unpinned {
            work: Nanos::from_millis(150),
        };
        for (placement, least) in [(Placement::Mainline, 175.0), (Placement::Pack, 250.0)] {
            let machine = Machine::named("vm-2").unwrap().with_placement(placement);
            let simulator = Simulator {
                machine: machine.into(),
            };
            let simulated = simulator.simulate("eevdf-6.18", &program, plan());
            let makespan = makespan(&simulated.course);
            let most = least + 10.0;
            assert!(
                (least..most).contains(&makespan),
                "{placement:?}: {makespan}"
            );
        }
    }
}
