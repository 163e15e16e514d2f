//! The experiments: each one a program or two, the quantities that are looked at, and how far apart they
//! may be. The numbers and tolerances follow the project's plan for validation; what each file predicts
//! is also tested without any real thread, as an exact law of the simulator.

mod counter;
mod determinism;
mod facade;
mod hotplug;
mod inheritance;
mod job_system;
mod line;
mod messages;
mod nice;
mod periodic;
mod ping_pong;
mod polling;
mod realtime;
mod spinners;
mod yields;

use event::Nanos;

use super::judge::Row;
use super::quiet;
use super::real;
use super::simulated::Simulator;
use super::world::{Course, Program};

pub(crate) use ping_pong::PingPong;
pub(crate) use yields::forfeit;

/// One experiment.
pub(crate) struct Experiment {
    /// By what it is chosen.
    pub(crate) id: &'static str,
    /// A description, in a line.
    pub(crate) what: &'static str,
    /// Without what it is skipped.
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn(&Lab) -> Result<Vec<Row>, String>,
}

/// The requirements of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The kernel that is simulated.
    Kernel,
    /// A machine whose CPUs no other program has: turns and waits of threads are looked at.
    Alone,
    /// A quiet machine, whose CPUs compute evenly, too: computing is timed.
    Quiet,
    /// The right to real-time threads.
    Realtime,
    /// The costs of the kernel's operations here: times of microseconds are predicted. They are measured just
    /// before, with real-time threads; without the right to them the machine file's costs have to do.
    Costs,
    /// `--hotplug`.
    Hotplug,
}

use Need::{Alone, Costs, Hotplug, Kernel, Quiet, Realtime};

/// All of them.
pub(crate) const ALL: &[Experiment] = &[
    Experiment {
        id: "V1",
        what: "two threads compute on one CPU",
        needs: &[Kernel, Alone],
        run: spinners::two,
    },
    Experiment {
        id: "V2",
        what: "three threads compute on one CPU",
        needs: &[Kernel, Alone],
        run: spinners::three,
    },
    Experiment {
        id: "V3",
        what: "two threads of different niceness on one CPU",
        needs: &[Kernel, Alone],
        run: nice::run,
    },
    Experiment {
        id: "V4",
        what: "a thread that yields all the time beside one that computes",
        needs: &[Kernel, Alone],
        run: yields::run,
    },
    Experiment {
        id: "V5",
        what: "a thread computes beside one that polls for its end (source 002)",
        needs: &[Kernel, Quiet, Realtime],
        run: polling::run,
    },
    Experiment {
        id: "V6",
        what: "yields and slices of real-time threads",
        needs: &[Kernel, Alone, Realtime],
        run: realtime::run,
    },
    Experiment {
        id: "V7",
        what: "wake-ups on one CPU and across",
        needs: &[Kernel, Quiet, Costs],
        run: ping_pong::run,
    },
    Experiment {
        id: "V8",
        what: "a thread that sleeps most of the time, beside hogs",
        needs: &[Kernel, Quiet, Costs],
        run: periodic::run,
    },
    Experiment {
        id: "V9",
        what: "priority inversion, with and without inheritance (sources 000, 003)",
        needs: &[Kernel, Alone, Realtime],
        run: inheritance::run,
    },
    Experiment {
        id: "V10",
        what: "a cache line and one or two threads",
        needs: &[Quiet],
        run: line::run,
    },
    Experiment {
        id: "V11",
        what: "jobs taken from one shared counter (source 001)",
        needs: &[Quiet],
        run: counter::run,
    },
    Experiment {
        id: "V12",
        what: "frames of the job system with 0 to 8 workers",
        needs: &[Kernel, Quiet, Costs],
        run: job_system::run,
    },
    Experiment {
        id: "V13",
        what: "a CPU goes away for 50 ms",
        needs: &[Kernel, Quiet, Hotplug],
        run: hotplug::run,
    },
    Experiment {
        id: "V14",
        what: "messages between threads of equal and of different priorities (source 003)",
        needs: &[Kernel, Quiet, Realtime, Costs],
        run: messages::run,
    },
    Experiment {
        id: "V15",
        what: "simulations are repeated",
        needs: &[],
        run: determinism::run,
    },
    Experiment {
        id: "V16",
        what: "the cost of the facade",
        needs: &[Quiet],
        run: facade::run,
    },
];

/// The means of experiments.
pub(crate) struct Lab {
    pub(crate) machine: real::Machine,
    /// The simulated machine, with the costs that were measured last.
    pub(crate) simulator: Simulator,
    /// Watches whether the machine is quiet.
    pub(crate) quiet: quiet::Quiet,
    /// Fewer and shorter runs.
    pub(crate) quick: bool,
}

impl Lab {
    /// How often something is done.
    fn times(&self, times: usize) -> usize {
        if self.quick { times.div_ceil(5) } else { times }
    }

    /// How long something takes.
    fn length(&self, length: Nanos) -> Nanos {
        if self.quick {
            Nanos(length.0 / 4)
        } else {
            length
        }
    }

    /// A program's courses on the machine at hand.
    fn measure(&self, program: &impl Program, times: usize) -> Result<Vec<Course>, String> {
        (0..self.times(times))
            .map(|_| self.quiet.piece(|| self.machine.run(program)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an id names one experiment. Method: all pairs.
    #[test]
    fn ids_are_unique() {
        for (index, experiment) in ALL.iter().enumerate() {
            assert_eq!(experiment.id, format!("V{}", index + 1));
        }
    }
}
