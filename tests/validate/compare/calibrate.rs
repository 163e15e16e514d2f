//! The costs of the kernel's own operations on the machine at hand, in the simulator's terms.
//!
//! `vm-2` has the costs of one machine, and another one of the same kernel may take five times as long for a
//! wake-up. So five costs are measured first, each by a program that is about it, and the simulated machine
//! gets them. The experiments are others: the times that they report are predicted from these costs and not
//! fitted.
//!
//! Each cost goes into its program's time a known number of times. So the simulated cost is too low by the
//! difference between the times on the machine at hand and on the simulated one, divided by that number.

use event::Nanos;
use policy::Attr;
use sim::Machine;
use sim::machine::KernelSpec;

use super::experiments::PingPong;
use super::judge::median;
use super::real;
use super::simulated::Simulator;
use super::world::{Course, Note, Program, Thread, World};

/// A cost that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) what: &'static str,
    /// The cost in the machine's file.
    pub(crate) file: Nanos,
    pub(crate) measured: Nanos,
}

/// The call that the threads of [`Callers`] make.
#[derive(Clone, Copy, Debug)]
enum Callee {
    /// A call that finds nothing to do.
    Nothing,
    /// `sched_yield`: to each other, if there are two.
    Yield,
}

/// Threads that do nothing but call the kernel.
struct Callers {
    callee: Callee,
    threads: usize,
}

/// A thread's calls.
const CALLS: u64 = 20_000;

impl Program for Callers {
    fn threads<W: World>(&self, _: &W) -> Vec<Thread<W>> {
        let callee = self.callee;
        let thread = |_| {
            Thread::new(Attr::fifo(10), move |world: &W| {
                let begin = world.now();
                (0..CALLS).for_each(|_| match callee {
                    Callee::Nothing => world.call(),
                    Callee::Yield => world.yields(),
                });
                vec![Note::time("calls", world.now() - begin)]
            })
        };
        (0..self.threads).map(thread).collect()
    }
}

impl Callers {
    /// One that makes calls which find nothing to do.
    const OF_NOTHING: Callers = Callers {
        callee: Callee::Nothing,
        threads: 1,
    };

    fn that_yield(threads: usize) -> Callers {
        let callee = Callee::Yield;
        Callers { callee, threads }
    }

    /// Nanoseconds for one call.
    fn each(course: &Course, threads: u64) -> Option<f64> {
        Some(noted(course, "calls")? / (CALLS * threads) as f64)
    }
}

/// The program of wake-ups, on one CPU or across.
fn wake_ups(attr: Attr, from: usize) -> PingPong {
    PingPong {
        attr,
        from,
        gap: Nanos::from_micros(if from == 1 { 0 } else { 50 }),
        rounds: 2_000,
    }
}

fn noted(course: &Course, name: &str) -> Option<f64> {
    let times: Vec<f64> = course
        .noted(name)
        .into_iter()
        .map(|time| time as f64)
        .collect();
    median(&times)
}

/// The simulator with the costs of the machine at hand, and which these are.
///
/// # Errors
/// If a program cannot be run.
pub(crate) fn calibrate(
    machine: &real::Machine,
    simulator: &Simulator,
) -> Result<(Simulator, Vec<Cost>), String> {
    let mut fitting = Fitting {
        machine,
        simulator: simulator.clone(),
        costs: Vec::new(),
    };
    fitting.kernel(
        "a call that finds nothing to do",
        |kernel| &mut kernel.syscall,
        &Callers::OF_NOTHING,
        |course| Callers::each(course, 1),
    )?;
    fitting.kernel(
        "a yield that comes back at once",
        |kernel| &mut kernel.yields,
        &Callers::that_yield(1),
        |course| Callers::each(course, 1),
    )?;
    fitting.kernel(
        "a switch, beside the call",
        |kernel| &mut kernel.switch,
        &Callers::that_yield(2),
        |course| Callers::each(course, 2),
    )?;
    let there_and_back = wake_ups(Attr::fifo(10), 1);
    fitting.kernel(
        "waking a thread, beside the call",
        |kernel| &mut kernel.wake,
        &there_and_back,
        |course| Some(noted(course, "round")? / 2.0),
    )?;
    fitting.halt(&wake_ups(Attr::default(), 0))?;
    Ok((fitting.simulator, fitting.costs))
}

struct Fitting<'a> {
    machine: &'a real::Machine,
    simulator: Simulator,
    costs: Vec<Cost>,
}

impl Fitting<'_> {
    /// Fits one of the kernel's costs, of which each time of the program has one.
    fn kernel(
        &mut self,
        what: &'static str,
        cost: fn(&mut KernelSpec) -> &mut Nanos,
        program: &impl Program,
        time: fn(&Course) -> Option<f64>,
    ) -> Result<(), String> {
        let lacks = self.lacks(program, time)?;
        let mut kernel = self.simulator.machine.kernel;
        let file = *cost(&mut kernel);
        let measured = plus(file, lacks);
        *cost(&mut kernel) = measured;
        self.simulator.machine = Machine::clone(&self.simulator.machine)
            .with_kernel(kernel)
            .into();
        self.costs.push(Cost {
            what,
            file,
            measured,
        });
        Ok(())
    }

    /// Fits what waking up a halted CPU takes: all its sleep states by the same length.
    fn halt(&mut self, program: &PingPong) -> Result<(), String> {
        let lacks = self.lacks(program, |course| noted(course, "wake"))?;
        let mut machine = Machine::clone(&self.simulator.machine);
        let states = machine
            .clusters
            .iter_mut()
            .flat_map(|cluster| &mut cluster.idle_states);
        for (number, state) in states.enumerate() {
            let file = state.exit;
            state.exit = plus(file, lacks);
            if number == 0 {
                let what = "a CPU that has just halted begins to run";
                let measured = state.exit;
                self.costs.push(Cost {
                    what,
                    file,
                    measured,
                });
            }
        }
        self.simulator.machine = machine.into();
        Ok(())
    }

    /// How much longer the program takes on the machine at hand, in nanoseconds.
    fn lacks(
        &self,
        program: &impl Program,
        time: fn(&Course) -> Option<f64>,
    ) -> Result<f64, String> {
        let simulated = time(&self.simulator.run("eevdf-6.18", program)).ok_or("nothing noted")?;
        let real = time(&self.machine.run(program)?).ok_or("nothing noted")?;
        Ok(real - simulated)
    }
}

/// A cost plus the missing part; nothing costs less than nothing.
fn plus(cost: Nanos, lacks: f64) -> Nanos {
    Nanos((cost.0 as f64 + lacks).max(0.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each cost goes into its program's time as often as the fit assumes, so that one step is enough.
    /// Method: on `vm-2` with one cost raised by 1 µs each program takes 1 µs longer.
    #[test]
    fn costs_go_into_their_programs_once() {
        let vm_2 = Simulator::vm_2();
        let with = |kernel: KernelSpec| Simulator {
            machine: Machine::clone(&vm_2.machine).with_kernel(kernel).into(),
        };
        let kernel = vm_2.machine.kernel;
        let more = |cost: Nanos| cost + Nanos(1_000);
        let longer = |other: &Simulator, program: &dyn Fn(&Simulator) -> f64| {
            program(other) - program(&vm_2)
        };
        let calls =
            |on: &Simulator| Callers::each(&on.run("eevdf-6.18", &Callers::OF_NOTHING), 1).unwrap();
        let yields = |on: &Simulator, threads: usize| {
            let course = on.run("eevdf-6.18", &Callers::that_yield(threads));
            Callers::each(&course, threads as u64).unwrap()
        };
        let wake = |on: &Simulator| {
            let course = on.run("eevdf-6.18", &wake_ups(Attr::fifo(10), 1));
            noted(&course, "round").unwrap() / 2.0
        };
        let raised = [
            longer(
                &with(KernelSpec {
                    syscall: more(kernel.syscall),
                    ..kernel
                }),
                &calls,
            ),
            longer(
                &with(KernelSpec {
                    yields: more(kernel.yields),
                    ..kernel
                }),
                &|on| yields(on, 1),
            ),
            longer(
                &with(KernelSpec {
                    switch: more(kernel.switch),
                    ..kernel
                }),
                &|on| yields(on, 2),
            ),
            longer(
                &with(KernelSpec {
                    wake: more(kernel.wake),
                    ..kernel
                }),
                &wake,
            ),
        ];
        for raised in raised {
            assert!((990.0..=1_010.0).contains(&raised), "{raised}");
        }
        let mut machine = Machine::clone(&vm_2.machine);
        machine.clusters[0].idle_states[0].exit = more(machine.clusters[0].idle_states[0].exit);
        let slower = Simulator {
            machine: machine.into(),
        };
        let across = |on: &Simulator| {
            noted(&on.run("eevdf-6.18", &wake_ups(Attr::default(), 0)), "wake").unwrap()
        };
        let raised = longer(&slower, &across);
        assert!((990.0..=1_010.0).contains(&raised), "{raised}");
    }

    /// Goal: no cost becomes negative. Method: one that lacks less than it has, and one that has too much.
    #[test]
    fn costs_stay_costs() {
        assert_eq!(plus(Nanos(100), 50.4), Nanos(150));
        assert_eq!(plus(Nanos(100), -300.0), Nanos::ZERO);
    }
}
