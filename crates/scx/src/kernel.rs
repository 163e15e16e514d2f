//! [`Loaded`]: the BPF part in the kernel, as a [`Core`].

use std::mem::MaybeUninit;
use std::time::Instant;

use event::Nanos;
use libbpf_rs::{OpenObject, ProgramInput};
use paceline_scx::{Answer, Core, Message};

use crate::bpf::{BpfScheduler, DispatchedTask, QueuedTask, RL_CPU_ANY};
use crate::options::{Options, Part};

/// How much of the kernel's account it keeps, if it throws the scheduler out.
const DUMP: u32 = 0;

/// See the [module](self).
pub(crate) struct Loaded<'a> {
    scheduler: BpfScheduler<'a>,
    began: Instant,
    lost: u64,
}

/// What the BPF part counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelCounts {
    pub(crate) by_process: u64,
    pub(crate) by_kernel: u64,
    pub(crate) cancelled: u64,
    pub(crate) bounced: u64,
    pub(crate) congested: u64,
    pub(crate) kicks: u64,
    pub(crate) preempts: u64,
}

impl<'a> Loaded<'a> {
    /// Loads it; from then on it is in charge.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub(crate) fn load(
        object: &'a mut MaybeUninit<OpenObject>,
        options: &Options,
        name: &str,
    ) -> Result<Loaded<'a>, String> {
        let slice = options.kernel_slice().0;
        let scheduler =
            BpfScheduler::init(object, None, DUMP, false, false, true, false, slice, name)
                .map_err(|error| format!("the kernel does not take the scheduler: {error:#}"))?;
        let mut loaded = Loaded {
            scheduler,
            began: Instant::now(),
            lost: 0,
        };
        if let Some(bss) = loaded.scheduler.skel.maps.bss_data.as_mut() {
            bss.pl_asks = options.bpf == Part::Own;
            bss.pl_kicks = options.has_kicks();
        }
        Ok(loaded)
    }

    /// Whether it is time to stop: the program was told to, or the kernel has thrown the scheduler out.
    pub(crate) fn is_over(&mut self) -> bool {
        self.scheduler.exited()
    }

    /// The round is over; so many tasks are held, about which to ask again.
    pub(crate) fn rest(&mut self, held: usize) {
        self.scheduler.notify_complete(held as u64);
    }

    /// Takes the scheduler out of the kernel.
    ///
    /// # Errors
    /// Why the kernel has thrown it out, if it has.
    pub(crate) fn unload(&mut self) -> Result<(), String> {
        let report = self.scheduler.shutdown_and_report();
        report.map(|_| ()).map_err(|error| format!("{error:#}"))
    }

    pub(crate) fn counts(&mut self) -> KernelCounts {
        let it = &mut self.scheduler;
        let (kicks, preempts) = match it.skel.maps.bss_data.as_ref() {
            Some(bss) => (bss.nr_kicks, bss.nr_preempts),
            None => (0, 0),
        };
        KernelCounts {
            by_process: *it.nr_user_dispatches_mut(),
            by_kernel: *it.nr_kernel_dispatches_mut(),
            cancelled: *it.nr_cancel_dispatches_mut(),
            bounced: *it.nr_bounce_dispatches_mut(),
            congested: *it.nr_sched_congested_mut() + self.lost,
            kicks,
            preempts,
        }
    }
}

impl Core for Loaded<'_> {
    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn next(&mut self) -> Option<Message> {
        // An error is a ring that cannot be read now; what is in it is read in the next round.
        let task = self.scheduler.dequeue_task().ok()??;
        Some(message(&task))
    }

    fn answer(&mut self, answer: &Answer) {
        let task = DispatchedTask {
            pid: answer.tid,
            cpu: answer.cpu.unwrap_or(RL_CPU_ANY),
            flags: answer.flags,
            slice_ns: answer.slice,
            vtime: answer.vtime,
            enq_cnt: answer.enq_cnt,
        };
        // The ring has a place for each message's answer. If it were full, the task would be found by the
        // kernel's watchdog.
        if self.scheduler.dispatch_task(&task).is_err() {
            self.lost += 1;
        }
    }

    fn look(&mut self, wanting: &mut Vec<bool>) -> usize {
        // The program has no way to fail.
        let _ = self
            .scheduler
            .skel
            .progs
            .pl_look
            .test_run(ProgramInput::default());
        let Some(bss) = self.scheduler.skel.maps.bss_data.as_ref() else {
            return 0;
        };
        for (cpu, wanting) in wanting.iter_mut().enumerate() {
            *wanting = bss.pl_wanting.get(cpu) == Some(&1);
        }
        bss.pl_shared as usize
    }

    fn online(&mut self) -> usize {
        *self.scheduler.nr_online_cpus_mut() as usize
    }

    fn running(&mut self) -> usize {
        *self.scheduler.nr_running_mut() as usize
    }

    fn may_use(&self, tid: i32, cpu: u32) -> bool {
        // SAFETY: a set of CPUs is plain numbers, for which zero is a value.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: `set` is that large and lives through the call, and nothing else is written to.
        let failed = unsafe { libc::sched_getaffinity(tid, size, &mut set) } != 0;
        // SAFETY: the number is below that of the bits in the set.
        !failed && cpu < libc::CPU_SETSIZE as u32 && unsafe { libc::CPU_ISSET(cpu as usize, &set) }
    }

    fn is_there(&self, tid: i32) -> bool {
        // SAFETY: the call takes a number and touches no memory.
        unsafe { libc::sched_getscheduler(tid) >= 0 }
    }
}

fn message(task: &QueuedTask) -> Message {
    Message {
        tid: task.pid,
        cpu: task.cpu,
        allowed: task.nr_cpus_allowed,
        flags: task.flags,
        start: task.start_ts,
        stop: task.stop_ts,
        exec_runtime: task.exec_runtime,
        weight: task.weight,
        vtime: task.vtime,
        enq_cnt: task.enq_cnt,
    }
}
