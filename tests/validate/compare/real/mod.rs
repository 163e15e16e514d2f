//! Programs on the machine at hand.
//!
//! Threads are pinned and given their discipline by themselves, wait at a gate until all are there, and begin
//! together. The running threads are known from the kernel's `sched_switch` ([`recorder`]); where that may
//! not be read, they are inferred from gaps in a loop that reads the clock.

mod gate;
pub(crate) mod recorder;
mod scheduler;
mod world;

use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering;

use event::Nanos;
use measure::thread_cpu;
use platform::{Os, Platform};
use workload::busy::Busy;

use self::gate::Gate;
use self::recorder::Recorder;
use self::scheduler::switches_of_this_thread;
pub(crate) use self::scheduler::{may_run_realtime, pin, tick};
use self::world::{OsWorld, Stretch};
use super::world::{Course, Note, Program, SeenBy, Switch, Thread, Used};

/// The machine at hand.
pub(crate) struct Machine {
    /// The two CPUs that programs are given.
    cpus: [u32; 2],
    busy: Busy,
    recorder: Option<Recorder>,
}

/// The results of one thread.
struct Left {
    notes: Vec<Note>,
    used: Used,
    stretches: Vec<Stretch>,
}

impl Machine {
    /// Programs run on these CPUs.
    pub(crate) fn new(cpus: [u32; 2], busy: Busy, recorder: Option<Recorder>) -> Machine {
        Machine {
            cpus,
            busy,
            recorder,
        }
    }

    /// What computes.
    pub(crate) fn busy(&self) -> Busy {
        self.busy
    }

    /// Both CPUs.
    pub(crate) fn cpus(&self) -> [u32; 2] {
        self.cpus
    }

    /// Runs a program.
    ///
    /// # Errors
    /// If the system refuses a thread's request, or loses some of the recording.
    pub(crate) fn run(&self, program: &impl Program) -> Result<Course, String> {
        self.run_beside(program, |_| ())
    }

    /// The same; `beside` is called with its beginning, on the first CPU, while it runs.
    ///
    /// # Errors
    /// As [`run`](Machine::run).
    pub(crate) fn run_beside(
        &self,
        program: &impl Program,
        beside: impl FnOnce(Nanos),
    ) -> Result<Course, String> {
        pin(&self.cpus[..1])?;
        let world = OsWorld::new(self.busy);
        let threads = program.threads(&world);
        let gate = Gate::new(threads.len());
        let left: Vec<StdMutex<Option<Left>>> =
            threads.iter().map(|_| StdMutex::default()).collect();
        let mut began = Nanos::ZERO;
        let recorded = std::thread::scope(|scope| {
            for (number, thread) in threads.into_iter().enumerate() {
                let (world, gate, left) = (world.clone(), &gate, &left[number]);
                let builder = std::thread::Builder::new().name(format!("validate-{number}"));
                let run = move || *left.lock().unwrap() = self.live(number, thread, &world, gate);
                builder
                    .spawn_scoped(scope, run)
                    .map_err(|error| format!("no thread: {error}"))?;
            }
            let ready = gate.wait_until_ready();
            let recording = match (&ready, &self.recorder) {
                (Ok(tids), Some(recorder)) if program.has_stints() => {
                    recorder.start(tids).map(Some)
                }
                _ => Ok(None),
            };
            began = Os.now();
            world.origin.store(began.0, Ordering::Relaxed);
            gate.open(ready.is_ok() && recording.is_ok());
            if ready.is_ok() {
                beside(began);
            }
            ready.and(recording)
        })?;
        let left: Option<Vec<Left>> = left
            .into_iter()
            .map(|left| left.into_inner().unwrap())
            .collect();
        let left = left.ok_or("a thread of the program did not end")?;
        let (switches, seen_by) = match recorded {
            Some(recording) => (recording.finish(began)?, SeenBy::Kernel),
            None => (from_stretches(&left), SeenBy::Gaps),
        };
        Ok(Course {
            switches,
            seen_by,
            used: left.iter().map(|left| left.used).collect(),
            notes: left.into_iter().map(|left| left.notes).collect(),
        })
    }

    /// A thread's life; `None` if it did not come to its body.
    fn live(
        &self,
        number: usize,
        thread: Thread<OsWorld>,
        world: &OsWorld,
        gate: &Gate,
    ) -> Option<Left> {
        let allowed = match thread.cpu {
            Some(cpu) => &self.cpus[cpu..=cpu],
            None => &self.cpus[..],
        };
        let prepared = scheduler::prepare(allowed, &thread.attr);
        if !gate.pass(number, prepared) {
            return None;
        }
        let (cpu, switches) = (thread_cpu(), switches_of_this_thread());
        let notes = (thread.body)(world);
        let used = Used {
            cpu: thread_cpu()
                .zip(cpu)
                .map_or(Nanos::ZERO, |(end, begin)| end - begin),
            switches: switches_of_this_thread() - switches,
        };
        Some(Left {
            notes,
            used,
            stretches: world.stretches.take(),
        })
    }
}

/// Which thread ran when, from the stretches in which each thread saw time pass without gaps.
fn from_stretches(left: &[Left]) -> Vec<Switch> {
    let of = |(number, left): (usize, &Left)| {
        let switch = move |stretch: &Stretch| Switch {
            time: stretch.begin,
            cpu: 0,
            next: Some(number),
        };
        left.stretches.iter().map(switch).collect::<Vec<_>>()
    };
    let mut switches: Vec<Switch> = left.iter().enumerate().flat_map(of).collect();
    switches.sort_by_key(|switch| switch.time);
    switches
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: stretches of several threads become one order of running threads. Method: two threads that
    /// alternate.
    #[test]
    fn stretches_become_switches() {
        let left = |stretches: &[(u64, u64)]| Left {
            notes: Vec::new(),
            used: Used::default(),
            stretches: stretches
                .iter()
                .map(|&(begin, end)| Stretch {
                    begin: Nanos(begin),
                    end: Nanos(end),
                })
                .collect(),
        };
        let switches = from_stretches(&[left(&[(0, 4), (8, 12)]), left(&[(4, 8), (12, 15)])]);
        let order: Vec<_> = switches
            .iter()
            .map(|switch| (switch.time.0, switch.next))
            .collect();
        let expected = [(0, Some(0)), (4, Some(1)), (8, Some(0)), (12, Some(1))];
        assert_eq!(order, expected);
    }
}
