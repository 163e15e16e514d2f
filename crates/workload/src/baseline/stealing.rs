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
//! - A parallel job is split into as many blocks of neighbouring pieces as there are threads, or pieces
//!   if they are fewer; each block is one entry.
//! - Queues are of the kind of 2017.3's ([`Ring`]), oldest first for owner and thieves ("dequeue").
//! - A thief asks the queues in order, from its own on.
//! - `ShouldSleep` is always true; who is asleep is told by the word in [`Semaphore`], which only those
//!   who fall asleep or wake others write. A wake-up is passed on as there.
//!
//! Invariant: a job enters a queue once per frame, so when a frame is over all queues are empty.

use std::ops::Range;

use platform::{Atomic, Ordering, Padded, Platform, Poll};

use super::ring::Ring;
use super::semaphore::Semaphore;
use super::{Baseline, Common};

pub(super) struct Stealing<P: Platform> {
    common: Common<P>,
    jobs: Box<[Padded<Job<P>>]>,
    /// By job: those that wait for it.
    successors: Vec<Vec<u32>>,
    /// By thread; the main thread's is the last.
    queues: Box<[Ring<P>]>,
    pub(super) sleepers: Semaphore<P>,
}

/// One job, on a line of its own.
struct Job<P: Platform> {
    /// How many dependencies are not over, and one for being scheduled.
    pending: P::AtomicU64,
    /// How many pieces are not over.
    left: P::AtomicU64,
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

impl<P: Platform> Stealing<P> {
    pub(super) fn new(common: Common<P>) -> Stealing<P> {
        let graph = common.bodies.graph();
        let mut successors = vec![Vec::new(); graph.jobs().len()];
        for (job, node) in (0u32..).zip(graph.jobs()) {
            node.deps
                .iter()
                .for_each(|&dep| successors[dep as usize].push(job));
        }
        let threads = common.workers + 1;
        let most_blocks = graph
            .jobs()
            .iter()
            .map(|node| blocks(node.pieces(), threads));
        let most_blocks = most_blocks.sum::<u32>() as usize;
        let job = |_| {
            Padded(P::on_own_lines(|| Job {
                pending: P::AtomicU64::new(0),
                left: P::AtomicU64::new(0),
            }))
        };
        Stealing {
            jobs: successors.iter().map(job).collect(),
            successors,
            queues: (0..threads).map(|_| Ring::new(most_blocks)).collect(),
            sleepers: Semaphore::new(&common.platform, common.workers),
            common,
        }
    }

    /// Takes a block from the thread's own queue, or steals one, and runs it. False if there is none.
    /// `woken`: the caller has taken a signal and not found anything yet.
    fn step(&self, thread: usize, woken: &mut bool) -> bool {
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
        // AcqRel, partner: itself and the load in `wait`. Who ends the last piece sees what all left.
        let before = self.jobs[job as usize]
            .left
            .fetch_sub(count, Ordering::AcqRel);
        if before == count {
            let successors = self.successors[job as usize].iter();
            successors.for_each(|&successor| self.one_less(successor, thread));
        }
    }

    /// One thing less that the job waits for.
    fn one_less(&self, job: u32, thread: usize) {
        // AcqRel, partner: itself. Who brings it to zero sees what all dependencies left.
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
        blocks(self.common.pieces(job), self.queues.len())
    }

    fn pieces_of(&self, block: Block) -> Range<u32> {
        let (pieces, blocks) = (self.common.pieces(block.job), self.blocks(block.job));
        let begin = |block: u32| (u64::from(pieces) * u64::from(block) / u64::from(blocks)) as u32;
        begin(block.number)..begin(block.number + 1)
    }
}

/// How many blocks so many pieces are split into.
fn blocks(pieces: u32, threads: usize) -> u32 {
    pieces.min(threads as u32)
}

impl<P: Platform> Baseline for Stealing<P> {
    fn begin(&self, frame: u64) {
        // Relaxed, all of it: published with the first job.
        self.common.frame.store(frame, Ordering::Relaxed);
        let nodes = self.common.bodies.graph().jobs();
        for (job, node) in self.jobs.iter().zip(nodes) {
            job.pending
                .store(node.deps.len() as u64 + 1, Ordering::Relaxed);
            job.left.store(u64::from(node.pieces()), Ordering::Relaxed);
        }
    }

    fn schedule(&self, job: u32) {
        self.one_less(job, self.common.workers);
    }

    fn wait(&self, job: u32) {
        let left = &self.jobs[job as usize].left;
        // Acquire, partner: the AcqRel in `run`.
        while left.load(Ordering::Acquire) != 0 {
            if !self.step(self.common.workers, &mut false) {
                self.common.platform.poll(Poll::Pause, left);
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
