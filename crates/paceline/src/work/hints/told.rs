//! Hints that a scheduler may hear.

use std::sync::Arc;

use event::{Nanos, Task};
use hint::{ConnectError, Page, Run, Slot as HintSlot, WAITS_MAX};
use platform::{Atomic, Lane, Memory, Ordering, Os, Padded};

use crate::hooks::Hooks;
use crate::store::{LaneFlags, Ticket};

type Word = <Os as Memory>::AtomicU64;

/// Whether hints are asked for, as the builder was told.
#[derive(Default)]
pub(crate) struct HintSetting(pub(crate) bool);

impl HintSetting {
    /// Connects to the broker, if hints are asked for: `asks_environment`, to the one that the environment
    /// names. `threads`: how many thread slots there are.
    pub(crate) fn open(self, asks_environment: bool, threads: usize) -> ToldHints {
        if !self.0 {
            return ToldHints(State::Off);
        }
        let path = if asks_environment {
            hint::path()
        } else {
            hint::DEFAULT_PATH.into()
        };
        match hint::connect(&path) {
            Err(error) => ToldHints(State::Unheard(error)),
            Ok(page) => ToldHints(State::On(Box::new(Book {
                page,
                threads: (0..threads).map(|_| Padded(ToldThread::new())).collect(),
                threads_used: Word::new(0),
                clock: clock(),
                hook_is_ours: false,
            }))),
        }
    }
}

/// See the module above. Threads are named by their thread slots.
pub(crate) struct ToldHints(State);

enum State {
    Off,
    /// They were asked for, and nothing hears them.
    Unheard(ConnectError),
    On(Box<Book>),
}

/// What the threads say, as far as others of this job system read it. Relaxed, all accesses: what is said of
/// a thread that does something else by then is no mistake.
struct Book {
    page: Arc<Page<Os>>,
    threads: Box<[Padded<ToldThread>]>,
    /// The number of the first thread slot that no thread has had yet, nor has any after it.
    threads_used: Word,
    /// What the platform's time lacks of that of the system's clock.
    clock: u64,
    hook_is_ours: bool,
}

struct ToldThread {
    /// The thread's number in the kernel, 0 without a thread.
    number: Word,
    /// The innermost job that it runs.
    runs: Word,
}

impl ToldThread {
    fn new() -> ToldThread {
        ToldThread {
            number: Word::new(0),
            runs: Word::new(Ticket::NONE.0),
        }
    }
}

/// What has to be added to the platform's time to have the system's. It is the same to some microseconds for
/// ever, which is nothing to a deadline.
fn clock() -> u64 {
    let (now, monotonic) = Os.now_and_monotonic();
    monotonic.0.wrapping_sub(now.0)
}

/// The threads that run what a wait needs: one at least.
pub(crate) struct RunningThreads {
    threads: [Task; WAITS_MAX],
    count: usize,
}

/// A thread's place in the page, and what it said there.
pub(crate) struct HintLocal {
    slot: Option<HintSlot<Os>>,
    /// The jobs that it runs, the innermost last.
    runs: Vec<(Ticket, Run)>,
}

impl HintLocal {
    pub(crate) const fn new() -> HintLocal {
        HintLocal {
            slot: None,
            runs: Vec::new(),
        }
    }

    /// A wait of the thread is about to rest, while these run what it needs.
    pub(crate) fn begin_wait(&mut self, running: RunningThreads) {
        if let Some(slot) = &mut self.slot {
            slot.publish_wait(&running.threads[..running.count]);
        }
    }

    /// The thread goes on.
    pub(crate) fn end_wait(&mut self) {
        if let Some(slot) = &mut self.slot {
            slot.clear_wait();
        }
    }

    /// Says what the thread runs by now, to others here and to the scheduler.
    fn say(&mut self, told: &ToldThread) {
        let (job, run) = match self.runs.last() {
            Some(&(job, run)) => (job, Some(run)),
            None => (Ticket::NONE, None),
        };
        told.runs.store(job.0, Ordering::Relaxed);
        match (&mut self.slot, run) {
            (Some(slot), Some(run)) => slot.publish_run(run),
            (Some(slot), None) => slot.clear_run(),
            (None, _) => {}
        }
    }
}

impl ToldHints {
    fn book(&self) -> Option<&Book> {
        match &self.0 {
            State::On(book) => Some(book),
            State::Off | State::Unheard(_) => None,
        }
    }

    /// Whether there is a page.
    pub(crate) fn is_on(&self) -> bool {
        self.book().is_some()
    }

    /// The program has no hook for bodies. It gets one, so that bodies are told at all.
    pub(crate) fn take_hook(&mut self, hooks: &mut Hooks) {
        if let State::On(book) = &mut self.0 {
            book.hook_is_ours = true;
            hooks.set_job(|_, _, _| ());
        }
    }

    /// Whether the hook does nothing.
    pub(crate) fn hook_is_ours(&self) -> bool {
        self.book().is_some_and(|book| book.hook_is_ours)
    }

    /// Whether hints are heard at this moment, in a sentence; `None` if they were not asked for.
    pub(crate) fn explain(&self) -> Option<String> {
        match &self.0 {
            State::Off => None,
            State::Unheard(error) => Some(format!("No {error}.")),
            State::On(book) => Some(book.page.explain()),
        }
    }

    /// A thread with this number in the kernel has got the thread slot. For once a thread.
    pub(crate) fn arrive(&self, local: &mut HintLocal, thread: u32, number: u64) {
        let Some(book) = self.book() else { return };
        let Ok(task) = u32::try_from(number) else {
            return;
        };
        let told = &book.threads[thread as usize].0;
        told.number.store(number, Ordering::Relaxed);
        let used = u64::from(thread) + 1;
        book.threads_used.fetch_max(used, Ordering::Relaxed);
        local.slot = book.page.slot(Task(task));
    }

    /// It is about to give the slot back.
    pub(crate) fn depart(&self, local: &mut HintLocal, thread: u32) {
        let Some(book) = self.book() else { return };
        let told = &book.threads[thread as usize].0;
        told.number.store(0, Ordering::Relaxed);
        *local = HintLocal::new();
    }

    /// The thread begins to run a job of this lane and with this deadline, on top of what it runs.
    pub(crate) fn body_begins(
        &self,
        local: &mut HintLocal,
        thread: u32,
        (job, lane, deadline): (Ticket, LaneFlags, Option<Nanos>),
    ) {
        let Some(book) = self.book() else { return };
        let on_systems_clock = |deadline: Nanos| Nanos(deadline.0.wrapping_add(book.clock));
        let run = Run {
            lane: Lane::from(lane),
            deadline: deadline.map(on_systems_clock),
        };
        local.runs.push((job, run));
        local.say(&book.threads[thread as usize].0);
    }

    /// The job that it began last has ended.
    pub(crate) fn body_has_ended(&self, local: &mut HintLocal, thread: u32) {
        let Some(book) = self.book() else { return };
        local.runs.pop();
        local.say(&book.threads[thread as usize].0);
    }

    /// The other threads that run jobs that are `wanted`, `None` if there are none.
    #[inline]
    pub(crate) fn running(
        &self,
        thread: u32,
        wanted: &dyn Fn(Ticket) -> bool,
    ) -> Option<RunningThreads> {
        self.book()?.running(thread, wanted)
    }
}

impl Book {
    #[inline(never)]
    fn running(&self, thread: u32, wanted: &dyn Fn(Ticket) -> bool) -> Option<RunningThreads> {
        let mut running = RunningThreads {
            threads: [Task(0); WAITS_MAX],
            count: 0,
        };
        let used = self.threads_used.load(Ordering::Relaxed) as usize;
        for (index, Padded(told)) in self.threads.iter().enumerate().take(used) {
            let job = Ticket(told.runs.load(Ordering::Relaxed));
            if job.is_none() || index == thread as usize || !wanted(job) {
                continue;
            }
            // It may have left meanwhile: 0 is a number that readers leave out.
            let number = told.number.load(Ordering::Relaxed);
            running.threads[running.count] = Task(number as u32);
            running.count += 1;
            if running.count == WAITS_MAX {
                break;
            }
        }
        (running.count > 0).then_some(running)
    }
}
