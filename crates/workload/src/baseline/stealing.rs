//! `unity-2022.2`: a queue for each thread.
//!
//! Source: "array of worker threads, array of queues for jobs, array of semaphores (or futex)". A job
//! goes into the queue of the thread that schedules it. A worker takes from its own queue, then steals
//! from others; if it finds something it wakes others "conditionally", and otherwise sleeps on its own
//! futex. The main thread makes sure that one worker is awake.
//!
//! Ours, where the source is silent:
//! - A job enters a queue when its last dependency is over, that of the thread which ended it; the
//!   source's loop does not look at dependencies any more.
//! - A job enters the list of each of its dependencies when it is scheduled: a program that schedules jobs
//!   after handles has no graph beforehand.
//! - A parallel job is split into as many blocks of neighbouring pieces as there are threads, or pieces
//!   if they are fewer; each block is one entry. Read otherwise, each piece is one.
//! - Queues are of the kind of 2017.3's ([`Ring`]), oldest first for owner and thieves ("dequeue").
//! - A thief asks the queues in order, from its own on.
//! - While a worker sleeps, a thread that has taken a block looks at all queues for another one before it
//!   wakes that worker. To look at its own alone would cost less, and wake no worker for what lies elsewhere.
//! - `ShouldSleep` is always true; sleeping workers are in the word in [`Semaphore`], which only threads that
//!   fall asleep or wake others write. A wake-up is passed on as there.
//!
//! Invariants: a job enters a queue once per frame, so when a frame is over all queues are empty; closing a
//! job's list is the last access to its words, and tells all threads that it is over: the frame may end, and
//! the next one begin, at once.

use std::ops::Range;

use platform::{Atomic, Ordering, Padded, Platform, Poll, Polling};

use super::ring::Ring;
use super::semaphore::Semaphore;
use super::{Baseline, Common, JobsBySystem};

pub(super) struct Stealing<P: Platform> {
    common: Common<P>,
    /// The most blocks that a job is split into.
    most_blocks: u32,
    jobs: Box<[Padded<StealingJob<P>>]>,
    /// Links between jobs, in the order of the jobs that wait: the job that waits, and the link below it in
    /// the list of the one it waits for.
    links: Box<[Link<P>]>,
    /// By job: its first link.
    first_link: Vec<u32>,
    /// By thread; the main thread's is the last.
    queues: Box<[Ring<P>]>,
    pub(super) sleepers: Semaphore<P>,
}

/// One job, on a line of its own.
struct StealingJob<P: Platform> {
    /// How many dependencies are not over, and one for being scheduled.
    pending: P::AtomicU64,
    /// How many pieces are not over.
    left: P::AtomicU64,
    /// The jobs that wait for this one: the last link, + 1; or [`OVER`].
    waiting: P::AtomicU64,
}

/// A job's list when it takes no more jobs.
const OVER: u64 = u64::MAX;

/// One job that waits for another one.
struct Link<P: Platform> {
    job: u32,
    below: P::AtomicU64,
}

/// A block of a job's pieces, as an entry of a queue: 16 bits each.
#[derive(Clone, Copy)]
struct Block {
    job: u32,
    number: u32,
}

const _: () = assert!(crate::graph::MAX_JOBS <= 1 << 16);

impl Block {
    fn entry(self) -> u32 {
        self.job << 16 | self.number
    }

    fn of(entry: u32) -> Block {
        Block {
            job: entry >> 16,
            number: entry & 0xffff,
        }
    }
}

impl<P: Polling> Stealing<P> {
    pub(super) fn new(common: Common<P>, by_piece: bool) -> Stealing<P> {
        let graph = common.bodies.graph();
        let (mut links, mut first_link) = (Vec::new(), Vec::new());
        for job in 0..graph.jobs().len() as u32 {
            first_link.push(links.len() as u32);
            let link = || Link {
                job,
                below: P::AtomicU64::new(0),
            };
            links.extend(P::on_own_lines(|| {
                common.deps(job).iter().map(|_| link()).collect::<Vec<_>>()
            }));
        }
        let threads = common.workers + 1;
        let most_blocks = if by_piece { MAX_BLOCKS } else { threads as u32 };
        let cells = graph.jobs().iter();
        let cells = cells.map(|node| blocks(node.pieces(), most_blocks));
        let cells = cells.sum::<u32>() as usize;
        let job = |_| {
            Padded(P::on_own_lines(|| StealingJob {
                pending: P::AtomicU64::new(0),
                left: P::AtomicU64::new(0),
                waiting: P::AtomicU64::new(0),
            }))
        };
        Stealing {
            jobs: first_link.iter().map(job).collect(),
            links: links.into(),
            first_link,
            most_blocks,
            queues: (0..threads).map(|_| Ring::new(cells)).collect(),
            sleepers: Semaphore::new(&common.platform, common.workers),
            common,
        }
    }

    /// Takes a block from the thread's own queue, or steals one, and runs it. False if there is none.
    /// `woken`: the caller has taken a signal and not found anything yet.
    pub(super) fn step(&self, thread: usize, woken: &mut bool) -> bool {
        let threads = self.queues.len();
        let mut order = (thread..threads).chain(0..thread);
        let Some(entry) = order.find_map(|thread| self.queues[thread].dequeue()) else {
            return false;
        };
        if std::mem::take(woken) {
            self.sleepers.clear();
        }
        let is_more = || self.queues.iter().any(|queue| !queue.is_empty());
        if self.sleepers.somebody_sleeps() && is_more() {
            self.sleepers.notify();
        }
        self.run(Block::of(entry), thread);
        true
    }

    fn run(&self, block: Block, thread: usize) {
        let job = block.job;
        let pieces = self.pieces_of(block);
        let count = u64::from(pieces.end - pieces.start);
        self.common.run(job, pieces);
        // AcqRel, partner: itself. The thread that ends the last piece sees what all left.
        let before = self.jobs[job as usize]
            .left
            .fetch_sub(count, Ordering::AcqRel);
        if before == count {
            self.tell_those_who_wait(self.close(job), thread);
            let into = match self.common.scheduled {
                JobsBySystem::ByJobsToMain => self.common.workers,
                JobsBySystem::ByMain | JobsBySystem::ByJobs => thread,
            };
            for &child in &self.common.children[job as usize] {
                self.schedule_into(child, into);
            }
        }
    }

    /// Schedules the job, into the queue of this thread if it is ready.
    fn schedule_into(&self, job: u32, thread: usize) {
        self.wait_for_dependencies(job);
        self.one_less(job, thread);
    }

    /// Puts the job into the list of each dependency; those that are over count as told.
    fn wait_for_dependencies(&self, job: u32) {
        let first = self.first_link[job as usize];
        let deps = self.common.deps(job);
        for (link, &dep) in (first..).zip(deps) {
            let list = &self.jobs[dep as usize].waiting;
            // Relaxed: the CAS decides.
            let mut head = list.load(Ordering::Relaxed);
            while head != OVER {
                // Relaxed: published by the CAS.
                self.links[link as usize]
                    .below
                    .store(head, Ordering::Relaxed);
                let put = u64::from(link) + 1;
                // Release, partner: the swap in `close`. Acquire for the case of OVER.
                match list.compare_exchange(head, put, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => break,
                    Err(now) => head = now,
                }
            }
            if head == OVER {
                self.one_less(job, self.common.workers);
            }
        }
    }

    /// Closes the list of the jobs that wait for the job, and returns it.
    fn close(&self, job: u32) -> u64 {
        // AcqRel, partners: the CAS in `wait_for_dependencies`, the load in `wait`.
        self.jobs[job as usize].waiting.swap(OVER, Ordering::AcqRel)
    }

    fn tell_those_who_wait(&self, mut head: u64, thread: usize) {
        while let Some(link) = head.checked_sub(1) {
            let link = &self.links[link as usize];
            // Relaxed: the swap has it published. Read first: the job may be run, and be scheduled anew in
            // the next frame, as soon as it is told.
            head = link.below.load(Ordering::Relaxed);
            self.one_less(link.job, thread);
        }
    }

    /// Which queues hold something, by thread.
    #[cfg(test)]
    pub(super) fn full(&self) -> Vec<bool> {
        self.queues.iter().map(|queue| !queue.is_empty()).collect()
    }

    /// One thing less that the job waits for.
    fn one_less(&self, job: u32, thread: usize) {
        // AcqRel, partner: itself. The thread that brings it to zero sees what all dependencies left.
        let before = self.jobs[job as usize]
            .pending
            .fetch_sub(1, Ordering::AcqRel);
        if before > 1 {
            return;
        }
        for number in 0..self.blocks(job) {
            let entry = Block { job, number }.entry();
            let is_in = self.queues[thread].enqueue(entry);
            assert!(is_in, "a queue has a cell for each block of a frame");
        }
        if self.common.workers > 0 {
            self.sleepers.notify();
        }
    }

    fn blocks(&self, job: u32) -> u32 {
        blocks(self.common.pieces(job), self.most_blocks)
    }

    fn pieces_of(&self, block: Block) -> Range<u32> {
        let (pieces, blocks) = (self.common.pieces(block.job), self.blocks(block.job));
        let begin = |block: u32| (u64::from(pieces) * u64::from(block) / u64::from(blocks)) as u32;
        begin(block.number)..begin(block.number + 1)
    }
}

/// The number of blocks that `pieces` pieces are split into.
fn blocks(pieces: u32, most: u32) -> u32 {
    pieces.min(most)
}

/// A block's number has 16 bits.
const MAX_BLOCKS: u32 = 1 << 16;

impl<P: Polling> Baseline for Stealing<P> {
    fn begin(&self, frame: u64) {
        // Relaxed, all of it: published with the first job.
        self.common.frame.store(frame, Ordering::Relaxed);
        let nodes = self.common.bodies.graph().jobs();
        for (number, (job, node)) in (0u32..).zip(self.jobs.iter().zip(nodes)) {
            let deps = self.common.deps(number).len() as u64;
            job.pending.store(deps + 1, Ordering::Relaxed);
            job.left.store(node.pieces().into(), Ordering::Relaxed);
            job.waiting.store(0, Ordering::Relaxed);
        }
    }

    fn schedule(&self, job: u32) {
        self.schedule_into(job, self.common.workers);
    }

    /// A worker was woken with each job that became ready.
    fn signal(&self, _pieces: u32) {}

    fn wait(&self, job: u32) {
        let waiting = &self.jobs[job as usize].waiting;
        // Acquire, partner: the swap in `close`.
        while waiting.load(Ordering::Acquire) != OVER {
            if !self.step(self.common.workers, &mut false) {
                self.common.platform.poll(Poll::Pause, waiting);
            }
        }
    }

    fn end(&self) {}

    fn work(&self, worker: usize) {
        let mut woken = false;
        while !self.common.is_quitting() {
            if !self.step(worker, &mut woken) {
                self.sleepers.wait(worker);
                woken = true;
            }
        }
    }

    fn quit(&self) {
        self.common.quit();
        (0..self.common.workers).for_each(|_| self.sleepers.signal());
    }
}
