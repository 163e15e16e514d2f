//! `unity-2017.3` and `unity-2021.3`: one queue and one stack for all.
//!
//! Source: a scheduled job goes into a global queue, ready or not. A worker takes from the stack, and
//! if that is empty from the queue. If all dependencies of the job are over it runs it; otherwise "the
//! job and incomplete dependencies" go onto the stack, and it tries again. Pieces of parallel jobs "can
//! end up" on the stack, too. If both are empty the worker waits for the semaphore. In 2017.3 the main
//! thread signals it: once for a single job, for a parallel one as many times as "workers can
//! potentially help".
//!
//! Ours, where the source is silent:
//! - A parallel job is one entry of the queue. The thread that finds it ready runs its first piece and pushes
//!   one *ticket* for each other piece, all by one change of the stack; a ticket is good for any piece of its
//!   job and is taken by itself. As many workers can help as there are pieces, so `min(pieces, workers)` are
//!   signalled.
//! - A job is on the stack at most once beside its tickets, or the retries of many workers would pile up
//!   copies of it.
//! - Only dependencies that have something left to start are pushed. If none had to be (they lie on the stack
//!   already, maybe below jobs that wait for them), the worker goes from one to the next until it finds one
//!   to run, or one that others run: then it has nothing to do but try again. Without this, if as many
//!   unready jobs as there are workers lay on top of the stack, they would hide for ever the jobs that they
//!   wait for.
//! - Where the main thread leaves its wait with something on the stack it signals once: workers may
//!   sleep, and it put it there.
//! - 2021.3: the main thread signals once per job, and not if a signalled worker has not found work yet; a
//!   worker that finds work and sees that there is more, while others sleep, wakes the next.
//!
//! Invariants: a job's pieces are given out by changes of its word, each once; a thread that holds an entry
//! that is neither over nor put back is awake.

use platform::{Atomic, Ordering, Padded, Platform, Poll, Polling};

use super::ring::Ring;
use super::semaphore::Semaphore;
use super::stack::Stack;
use super::{Baseline, Common, JobsBySystem};

/// Which thread wakes workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signals {
    /// 2017.3: the main thread, each of them.
    ByMain,
    /// 2021.3: the main thread one, and that one the next.
    Chained,
}

pub(super) struct Global<P: Platform> {
    common: Common<P>,
    jobs: Box<[Padded<GlobalJob<P>>]>,
    /// By ticket: its job. Tickets are the stack's nodes from the number of jobs on.
    tickets: Vec<u32>,
    /// By job: its first ticket.
    first_ticket: Vec<u32>,
    queue: Ring<P>,
    stack: Stack<P>,
    pub(super) semaphore: Semaphore<P>,
    signals: Signals,
}

/// One job, on a line of its own.
struct GlobalJob<P: Platform> {
    /// The frame (upper half; it tells the job from itself a frame ago), [`STARTED`], [`STACKED`], and the
    /// number of pieces that have not been started. The latter is 0 before the job is scheduled.
    word: P::AtomicU64,
    /// How many pieces are not over.
    left: P::AtomicU64,
}

/// Some thread has found all dependencies over.
const STARTED: u64 = 1 << 30;
/// The job is on the stack, or in the hands of a thread that took it from there.
const STACKED: u64 = 1 << 31;
const UNSTARTED: u64 = STARTED - 1;

/// The outcome of the attempt to start a piece of a job.
enum Start {
    /// This piece is the caller's.
    Piece(u32),
    /// A dependency is not over.
    NotReady,
    /// Every piece has been started.
    Nothing,
}

impl<P: Polling> Global<P> {
    pub(super) fn new(common: Common<P>, signals: Signals) -> Global<P> {
        let jobs = common.bodies.graph().jobs().len();
        let (mut tickets, mut first_ticket) = (Vec::new(), Vec::with_capacity(jobs));
        for job in 0..jobs as u32 {
            first_ticket.push((jobs + tickets.len()) as u32);
            tickets.extend((1..common.pieces(job)).map(|_| job));
        }
        let job = |_| {
            Padded(P::on_own_lines(|| GlobalJob {
                word: P::AtomicU64::new(0),
                left: P::AtomicU64::new(0),
            }))
        };
        Global {
            jobs: (0..jobs).map(job).collect(),
            queue: Ring::new(jobs),
            stack: Stack::new(jobs + tickets.len()),
            semaphore: Semaphore::new(&common.platform, common.workers),
            tickets,
            first_ticket,
            common,
            signals,
        }
    }

    /// Takes one entry and handles it. False if there is none. `woken`: the caller has taken a signal and not
    /// found anything yet.
    fn step(&self, woken: &mut bool) -> bool {
        let from_stack = self.stack.pop();
        let Some(entry) = from_stack.or_else(|| self.queue.dequeue()) else {
            return false;
        };
        self.pass_on(std::mem::take(woken));
        let (job, stacked) = match self
            .tickets
            .get((entry as usize).wrapping_sub(self.jobs.len()))
        {
            Some(&job) => (job, false),
            None => (entry, from_stack.is_some()),
        };
        match self.start(job, stacked) {
            Start::Piece(piece) => self.run(job, piece),
            Start::NotReady => self.unblock(job),
            Start::Nothing => {}
        }
        true
    }

    /// Starts a piece of the job. `stacked`: the caller took the job itself from the stack.
    fn start(&self, job: u32, stacked: bool) -> Start {
        let word = &self.jobs[job as usize].word;
        loop {
            // Acquire, partner: the Release in `schedule`, and the CAS below of the thread that found it
            // ready.
            let seen = word.load(Ordering::Acquire);
            if seen & UNSTARTED == 0 {
                if stacked {
                    // Relaxed: nothing is published with it.
                    word.fetch_and(!STACKED, Ordering::Relaxed);
                }
                return Start::Nothing;
            }
            if seen & STARTED == 0 && !self.is_ready(job) {
                if stacked {
                    self.stack.push(job);
                } else {
                    self.put_on_stack(job);
                }
                return Start::NotReady;
            }
            let mut new = (seen - 1) | STARTED;
            if stacked {
                new &= !STACKED;
            }
            // AcqRel, partner: the load above. A thread that sees STARTED sees what the dependencies left.
            let done = word.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed);
            if done.is_ok() {
                if seen & STARTED == 0 {
                    self.push_tickets(job);
                }
                return Start::Piece(self.common.pieces(job) - (seen & UNSTARTED) as u32);
            }
        }
    }

    /// One ticket for each piece but the first. They were all taken before the last frame ended, and this
    /// one does not before the caller has run its piece, so none is on the stack now.
    fn push_tickets(&self, job: u32) {
        let first = self.first_ticket[job as usize];
        let tickets = self.common.pieces(job) - 1;
        if tickets > 0 {
            self.stack.push_all(first..first + tickets);
            self.pass_on(false);
        }
    }

    /// The job was not ready and is on the stack again: sees to its dependencies.
    fn unblock(&self, job: u32) {
        let dependencies = |job: u32| self.common.deps(job);
        let startable = dependencies(job)
            .iter()
            .filter(|dep| self.is_startable(**dep));
        let pushed = startable.filter(|dep| self.put_on_stack(**dep)).count();
        if pushed > 0 {
            return self.pass_on(false);
        }
        let mut job = job;
        loop {
            let deps = dependencies(job);
            if let Some(&dep) = deps.iter().find(|dep| self.is_startable(**dep)) {
                match self.start(dep, false) {
                    Start::Piece(piece) => return self.run(dep, piece),
                    // Its dependencies stand before it in the graph: this ends.
                    Start::NotReady => job = dep,
                    Start::Nothing => {}
                }
            } else if let Some(&dep) = deps.iter().find(|dep| !self.is_over(**dep)) {
                let left = &self.jobs[dep as usize].left;
                return self.common.platform.poll(Poll::Pause, left);
            } else {
                return;
            }
        }
    }

    /// Puts a job onto the stack if it is not there; whether it was put there.
    fn put_on_stack(&self, job: u32) -> bool {
        // Relaxed: the stack publishes.
        let before = self.jobs[job as usize]
            .word
            .fetch_or(STACKED, Ordering::Relaxed);
        if before & STACKED == 0 {
            self.stack.push(job);
        }
        before & STACKED == 0
    }

    fn run(&self, job: u32, piece: u32) {
        self.common.run(job, piece..piece + 1);
        // AcqRel, partner: the load in `is_over`, which sees what all pieces left.
        self.jobs[job as usize].left.fetch_sub(1, Ordering::AcqRel);
        for &child in &self.common.children[job as usize] {
            self.schedule(child);
            self.wake(1);
        }
    }

    fn is_over(&self, job: u32) -> bool {
        // Acquire, partner: the AcqRel in `run`.
        self.jobs[job as usize].left.load(Ordering::Acquire) == 0
    }

    fn is_ready(&self, job: u32) -> bool {
        self.common.deps(job).iter().all(|&dep| self.is_over(dep))
    }

    /// Whether a piece of the job is left to start. Relaxed: `start` looks again.
    fn is_startable(&self, job: u32) -> bool {
        self.jobs[job as usize].word.load(Ordering::Relaxed) & UNSTARTED != 0
    }

    /// 2021.3: the caller has found work or made some, and wakes the next worker if there is more.
    fn pass_on(&self, woken: bool) {
        if self.signals == Signals::ByMain {
            return;
        }
        if woken {
            self.semaphore.clear();
        }
        let is_more = || !self.stack.is_empty() || !self.queue.is_empty();
        if self.semaphore.somebody_sleeps() && is_more() {
            self.semaphore.notify();
        }
    }

    /// The thread that schedules: there is something for this many workers.
    fn wake(&self, pieces: u32) {
        match self.signals {
            Signals::ByMain => {
                let count = (pieces as usize).min(self.common.workers);
                (0..count).for_each(|_| self.semaphore.signal());
            }
            Signals::Chained if self.common.workers > 0 => self.semaphore.notify(),
            Signals::Chained => {}
        }
    }
}

impl<P: Polling> Baseline for Global<P> {
    fn begin(&self, frame: u64) {
        // Relaxed, all of it: published with the first job.
        self.common.frame.store(frame, Ordering::Relaxed);
        if self.common.scheduled != JobsBySystem::ByMain {
            // The main thread waits for jobs that are not scheduled yet.
            self.jobs
                .iter()
                .for_each(|job| job.left.store(1, Ordering::Relaxed));
        }
    }

    fn schedule(&self, job: u32) {
        let pieces = self.common.pieces(job);
        let slot = &self.jobs[job as usize];
        // Relaxed: published by the word.
        slot.left.store(u64::from(pieces), Ordering::Relaxed);
        let frame = self.common.frame.load(Ordering::Relaxed) << 32;
        loop {
            // Relaxed: only the stack's mark can change in a job that is over.
            let seen = slot.word.load(Ordering::Relaxed);
            let new = frame | seen & STACKED | u64::from(pieces);
            // Release, partner: the Acquire load in `start`.
            let done = slot
                .word
                .compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed);
            if done.is_ok() {
                break;
            }
        }
        while !self.queue.enqueue(job) {
            // A cell for each job, and the queue was emptied at the end of the last frame: a thread has taken
            // an entry then and is about to free its cell.
            self.common.platform.poll(Poll::Pause, &slot.word);
        }
    }

    fn signal(&self, pieces: u32) {
        self.wake(pieces);
    }

    fn wait(&self, job: u32) {
        let left = &self.jobs[job as usize].left;
        while !self.is_over(job) {
            if !self.step(&mut false) {
                self.common.platform.poll(Poll::Pause, left);
            }
        }
        if !self.stack.is_empty() {
            self.wake(1);
        }
    }

    /// The entries that are left are of jobs that were run by way of others. None may lie there when the next
    /// frame pushes its tickets.
    fn end(&self) {
        while self.step(&mut false) {}
    }

    fn work(&self, worker: usize) {
        let mut woken = false;
        while !self.common.is_quitting() {
            if !self.step(&mut woken) {
                self.semaphore.wait(worker);
                woken = true;
            }
        }
        // An entry that is left over from the last frame counts as work, too: the worker that found one may
        // have taken back what `quit` signalled to another one.
        self.semaphore.signal();
    }

    fn quit(&self) {
        self.common.quit();
        (0..self.common.workers).for_each(|_| self.semaphore.signal());
    }
}
