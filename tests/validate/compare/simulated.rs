//! Programs on the simulated machine.

use std::sync::{Arc, Mutex as StdMutex};

use event::{Cpu, KernelEventKind, Nanos};
use platform::Platform;
use policy::Mask;
use sim::{FirstThread, Machine, Planned, Sim, SimConfig, SimReport};

use super::world::{Course, Mutex, Note, Program, SeenBy, Switch, Used, World};

/// How much a thread computes between two looks at the clock.
const LOOK: Nanos = Nanos::from_micros(20);

/// The simulated machine and the policy of its kernel.
#[derive(Clone, Debug)]
pub(crate) struct Simulator {
    pub(crate) machine: Arc<Machine>,
}

/// A course and the hash of all the kernel did in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Simulation {
    pub(crate) course: Course,
    pub(crate) hash: u64,
}

impl Simulator {
    /// `vm-2`, as its file says.
    pub(crate) fn vm_2() -> Simulator {
        let machine = Machine::named("vm-2").expect("it is in the library");
        Simulator {
            machine: Arc::new(machine),
        }
    }

    /// The course of a program under this policy.
    pub(crate) fn run(&self, policy: &str, program: &impl Program) -> Course {
        self.simulate(policy, program, Vec::new()).course
    }

    /// The same, with changes of the machine, and with the hash of its trace.
    ///
    /// # Panics
    /// If the program does not end, or the policy does not keep what it promises: then there is nothing
    /// to compare.
    pub(crate) fn simulate(
        &self,
        policy: &str,
        program: &impl Program,
        plan: Vec<(Nanos, Planned)>,
    ) -> Simulation {
        let config = SimConfig {
            plan,
            ..SimConfig::on(self.machine.clone(), policy, 1)
        };
        simulate(config, program)
    }

    /// Courses of a program under this policy, with ticks that are late by at most `late_max`.
    pub(crate) fn run_late(
        &self,
        policy: &str,
        program: &impl Program,
        late_max: Nanos,
    ) -> Vec<Course> {
        let course = |seed| {
            let mut config = SimConfig::on(self.machine.clone(), policy, seed);
            config.perturb.tick_late_max = late_max;
            simulate(config, program).course
        };
        (1..=10).map(course).collect()
    }
}

fn simulate(config: SimConfig, program: &impl Program) -> Simulation {
    let policy = config.policy.clone();
    let config = SimConfig {
        trace: true,
        checks: true,
        ..config
    };
    let noted = Arc::new(StdMutex::new(Vec::new()));
    let report = Sim::run_all(config, |sim| {
        let world = SimWorld(sim.clone());
        let threads = program.threads(&world);
        let threads: Vec<_> = threads.into_iter().enumerate().collect();
        noted.lock().unwrap().resize(threads.len(), Vec::new());
        let first = |(number, thread): (usize, super::world::Thread<SimWorld>)| {
            let (world, noted) = (world.clone(), noted.clone());
            FirstThread {
                name: format!("thread {number}"),
                attr: thread.attr,
                mask: Mask::of(thread.cpu.map(|cpu| Cpu(cpu as u32))),
                body: Box::new(move || {
                    let notes = (thread.body)(&world);
                    noted.lock().unwrap()[number] = notes;
                }),
            }
        };
        threads.into_iter().map(first).collect()
    });
    let report = report.expect_finished();
    assert_eq!(report.violation, None, "{policy}");
    let notes = std::mem::take(&mut *noted.lock().unwrap());
    Simulation {
        hash: report.trace_hash,
        course: course(&report, notes),
    }
}

fn course(report: &SimReport, notes: Vec<Vec<Note>>) -> Course {
    let switches = report.trace.iter().filter_map(|event| match event.what {
        KernelEventKind::Switch { next, .. } => Some(Switch {
            time: event.time,
            cpu: event.cpu.0,
            next: next.map(event::Task::index),
        }),
        _ => None,
    });
    let used = report.threads.iter().map(|thread| Used {
        cpu: thread.spent.run,
        switches: thread.voluntary + thread.involuntary,
    });
    Course {
        switches: switches.collect(),
        seen_by: SeenBy::Kernel,
        notes,
        used: used.collect(),
    }
}

/// The simulated machine, as a program sees it.
#[derive(Clone, Debug)]
pub(crate) struct SimWorld(Sim);

impl World for SimWorld {
    type Platform = Sim;

    fn platform(&self) -> &Sim {
        &self.0
    }

    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn work(&self, length: Nanos) {
        self.0.charge(length);
    }

    fn compute_until(&self, end: Nanos) {
        loop {
            let now = self.0.now();
            if now >= end {
                return;
            }
            self.0.charge(LOOK.min(end - now));
        }
    }

    fn sleep_until(&self, time: Nanos) {
        self.0.sleep_until(time);
    }

    fn call(&self) {
        self.0.call();
    }

    fn yields(&self) {
        self.0.yields();
    }

    fn mutex(&self, inherits: bool) -> Arc<dyn Mutex> {
        Arc::new(sim::sync::Mutex::new(&self.0, inherits))
    }
}

impl Mutex for sim::sync::Mutex {
    fn lock(&self) {
        sim::sync::Mutex::lock(self);
    }

    fn unlock(&self) {
        sim::sync::Mutex::unlock(self);
    }
}
