//! CPUs: the threads that ran on each, its frequencies, and the times when it was online.

use event::{Cpu, Nanos, Task};

use super::dense::NOBODY;
use super::history::{Change, History};

/// In place of a thread: it is not known which one ran.
pub(crate) const UNKNOWN: u32 = NOBODY - 1;
/// In place of a thread: none ran.
pub(crate) const IDLE: u32 = NOBODY;

/// The beginning of a thread's time on a CPU; it lasts until the next one begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) begin: Nanos,
    /// The position of the thread, [`IDLE`] or [`UNKNOWN`].
    pub(crate) who: u32,
}

impl Change for Run {
    #[inline]
    fn parts(self) -> (Nanos, u32) {
        (self.begin, self.who)
    }

    #[inline]
    fn of(begin: Nanos, who: u32) -> Run {
        Run { begin, who }
    }
}

/// What had a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Who {
    /// This thread.
    Task(Task),
    /// No thread: the CPU was idle.
    Idle,
    /// No thread could have had it: no CPU that the thread was allowed on was online.
    Offline,
    /// It is not known.
    Unknown,
}

/// The timeline of a CPU.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) cpu: Cpu,
    /// From the beginning of the recording on.
    pub(crate) runs: History<Run>,
    /// Whether it is online, and since when. Before the first entry it is online if that entry says that it
    /// no longer is.
    pub(crate) online: Vec<(Nanos, bool)>,
    /// Its frequency in kHz, and since when.
    pub(crate) frequencies: Vec<(Nanos, u32)>,
    /// The highest frequency in kHz that it may have, and since when.
    pub(crate) limits: Vec<(Nanos, u32)>,
    /// From the beginning of an interrupt to the end of the outermost one.
    pub(crate) interrupts: Vec<(Nanos, Nanos)>,
    /// The times during which a thread was put aside here: no other thread of its group could run here then.
    pub(crate) closed: Vec<(Nanos, Nanos)>,
    /// Its capacity at its highest frequency; the fastest CPU has the most.
    pub(crate) capacity: Option<u32>,
    /// Its highest frequency, told or seen.
    pub(crate) max_khz: Option<u32>,
    /// The number of open interrupts, and the time since when.
    open: (u32, Nanos),
    /// The number of threads that are put aside here, and the time since when any are.
    aside: (u32, Nanos),
}

impl Lane {
    pub(super) fn new(cpu: Cpu, begin: Nanos) -> Lane {
        let mut runs = History::default();
        let who = UNKNOWN;
        runs.push(Run { begin, who });
        Lane {
            cpu,
            runs,
            online: Vec::new(),
            frequencies: Vec::new(),
            limits: Vec::new(),
            interrupts: Vec::new(),
            closed: Vec::new(),
            capacity: None,
            max_khz: None,
            open: (0, begin),
            aside: (0, begin),
        }
    }

    /// The running thread as of the latest event, and since when.
    #[inline]
    pub(super) fn now(&self) -> Run {
        self.runs.last().expect("a lane begins with a run")
    }

    #[inline]
    pub(super) fn set(&mut self, begin: Nanos, who: u32) {
        if self.now().who != who {
            self.runs.push(Run { begin, who });
        }
    }

    /// Corrects the thread that ran since the latest change.
    pub(super) fn correct(&mut self, who: u32) {
        let now = self.now();
        self.runs.correct(Run { who, ..now });
    }

    pub(super) fn interrupt(&mut self, time: Nanos, begins: bool) {
        let (open, since) = self.open;
        match (begins, open) {
            (true, 0) => self.open = (1, time),
            (true, _) => self.open.0 = open.saturating_add(1),
            (false, 0) => {}
            (false, 1) => {
                self.open.0 = 0;
                self.interrupts.push((since, time));
            }
            (false, _) => self.open.0 = open - 1,
        }
    }

    /// No interrupt lasts beyond a switch of threads, or the recording.
    #[inline]
    pub(super) fn end_interrupts(&mut self, time: Nanos) {
        if self.open.0 > 0 {
            self.open.0 = 0;
            self.interrupts.push((self.open.1, time));
        }
    }

    /// One more thread is put aside here.
    pub(super) fn put_aside(&mut self, time: Nanos) {
        let (threads, since) = self.aside;
        self.aside = (threads + 1, if threads == 0 { time } else { since });
    }

    /// One of them no longer is.
    pub(super) fn let_go(&mut self, time: Nanos) {
        let (threads, since) = self.aside;
        self.aside.0 = threads.saturating_sub(1);
        if threads == 1 {
            self.closed.push((since, time));
        }
    }

    /// Whether it was online at a time.
    pub(crate) fn is_online(&self, time: Nanos) -> bool {
        let after = self.online.partition_point(|(since, _)| *since <= time);
        match after.checked_sub(1) {
            Some(at) => self.online[at].1,
            None => self.online.first().is_none_or(|(_, online)| !online),
        }
    }

    /// Whether a thread was put aside here at a time.
    pub(crate) fn is_closed(&self, time: Nanos) -> bool {
        let after = self.closed.partition_point(|(since, _)| *since <= time);
        after
            .checked_sub(1)
            .is_some_and(|at| self.closed[at].1 > time)
    }

    /// The position of the run that holds a time.
    fn run_at(&self, time: Nanos) -> usize {
        let after = self.runs.partition_point(|begin| begin <= time);
        after.saturating_sub(1)
    }

    /// The runs, beginning with the one that holds a time.
    pub(crate) fn runs_from(&self, time: Nanos) -> impl Iterator<Item = Run> + '_ {
        self.runs.from(self.run_at(time))
    }
}
