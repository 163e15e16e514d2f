//! What can be asked about the machine that a platform's threads run on, and of it for one of them.
//!
//! No job needs any of it. It serves the adaptation to a machine whose CPUs differ, come and go, or are
//! shared with other programs.

use event::Nanos;

use crate::{CpuSet, Limits, MaskError, RefusalKind, SchedParams, SchedParamsError, Topology};

/// Where nothing can be done, nothing is to be done.
const NO_MASKS: &str = "this machine has no CPU masks: leave its threads where they are";
const ALL_ALIKE: &str = "this machine schedules all threads alike: ask for nothing";

/// The machine below a platform: what it is, how much of it may be used, and how it schedules threads.
///
/// Only [`topology`](Machine::topology) has to be written. Each other method says by itself that nothing is
/// known, or that the machine does not do it.
///
/// A thread is named by its [`thread_id`](crate::Platform::thread_id). Where a method takes such a name, the
/// caller makes sure that the thread still lives: the system may give its name to another one.
pub trait Machine: Send + Sync + 'static {
    /// What the machine is. Detected at the first call, free from then on.
    fn topology(&self) -> &Topology;

    /// What the machine is, read anew: after CPUs came that were not there before. Costs a thousand file
    /// accesses on a real machine with many CPUs.
    fn detect(&self) -> Topology {
        self.topology().clone()
    }

    /// What the process may use at this moment: what of [`topology`](Machine::topology) can change while it
    /// runs, read anew. Costs some file accesses on a real machine: for once a second, not for once a frame.
    fn limits(&self) -> Limits {
        self.topology().limits().clone()
    }

    /// How many threads are worth having at this moment, and nothing else: what
    /// [`limits`](Machine::limits) says about it. Costs as much as that, unless the machine knows it without.
    fn parallelism(&self) -> usize {
        self.limits().effective_parallelism()
    }

    /// The CPUs on which at least one of these threads may run at this moment; `None` if the machine cannot
    /// say, or if none of them lives any more. Costs a system call a thread.
    fn allowed(&self, threads: &[u64]) -> Option<CpuSet> {
        let _ = threads;
        None
    }

    /// Restricts a thread to these CPUs. Costs a system call.
    ///
    /// # Errors
    /// If the system refuses, or cannot do this at all; the thread keeps its mask then.
    fn set_mask(&self, thread: u64, cpus: &CpuSet) -> Result<(), MaskError> {
        let _ = (thread, cpus);
        Err(MaskError::new(RefusalKind::Unsupported, NO_MASKS))
    }

    /// Sets the scheduling parameters of a thread, and returns those that undo it. With
    /// [`SchedParams::default`], which changes nothing, it returns the parameters that the thread has. Costs
    /// two system calls.
    ///
    /// # Errors
    /// If the system refuses, or cannot do this; nothing has changed then.
    fn set_sched_params(
        &self,
        thread: u64,
        how: &SchedParams,
    ) -> Result<SchedParams, SchedParamsError> {
        let _ = thread;
        Err(SchedParamsError::new(
            how,
            RefusalKind::Unsupported,
            ALL_ALIKE,
        ))
    }

    /// Whether this thread has a CPU at this moment; `None` if the machine cannot say. A thread that is
    /// neither on a CPU nor asleep is ready and waits for one. Costs some thirty microseconds on a real
    /// machine.
    fn is_on_cpu(&self, thread: u64) -> Option<bool> {
        let _ = thread;
        None
    }

    /// What the calling thread has used so far. Costs some ten microseconds on a real machine.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// The same up to when the system last looked, which it does now and then by itself (Linux: at ticks and
    /// switches). Unlike [`usage`](Machine::usage) it never makes the system look, and so never costs the
    /// caller its CPU.
    fn usage_so_far(&self) -> Usage {
        self.usage()
    }

    /// [`Usage::involuntary`] alone, for half a microsecond: what to ask often.
    fn involuntary(&self) -> Option<u64> {
        self.usage().involuntary
    }
}

/// A machine of which nothing is known but a number of CPUs: they are all alike, none ever goes, and the
/// machine refuses masks and scheduling parameters. For platforms without a machine of their own.
///
/// ```
/// # use paceline_platform::{CpuSet, Machine, Uniform};
/// let machine = Uniform::new(2);
/// assert_eq!(machine.limits().effective_parallelism(), 2);
/// assert!(machine.set_mask(1, &CpuSet::parse("0")).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Uniform {
    topology: Topology,
}

impl Uniform {
    /// A machine with so many CPUs.
    pub fn new(cpus: usize) -> Uniform {
        Uniform {
            topology: Topology::uniform(cpus),
        }
    }
}

impl Machine for Uniform {
    fn topology(&self) -> &Topology {
        &self.topology
    }
}

/// What a thread has used of the machine; `None` where the system does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on a CPU.
    pub cpu: Option<Nanos>,
    /// Time it was ready to run and did not.
    pub runnable: Option<Nanos>,
    /// Switches away from it that it did not ask for: another thread was to run. Linux counts yields here.
    pub involuntary: Option<u64>,
    /// Switches away from it because it blocked.
    pub voluntary: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a machine of which nothing is known has an answer to everything, and its answers agree. Method:
    /// each question, some of them about a thread that is none.
    #[test]
    fn a_uniform_machine_answers_everything() {
        let machine = Uniform::new(3);
        assert_eq!(machine.topology().effective_parallelism(), 3);
        assert_eq!(machine.detect().allowed(), machine.topology().allowed());
        assert_eq!(machine.limits().usable().len(), 3);
        assert_eq!(machine.parallelism(), 3);
        assert_eq!((machine.allowed(&[7]), machine.is_on_cpu(7)), (None, None));
        assert!(machine.set_mask(7, &CpuSet::parse("0")).is_err());
        assert!(
            machine
                .set_sched_params(7, &SchedParams::default())
                .is_err()
        );
        assert_eq!(machine.usage(), Usage::default());
        assert_eq!(machine.usage_so_far(), Usage::default());
        assert_eq!(machine.involuntary(), None);
    }
}
