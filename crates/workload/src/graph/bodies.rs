//! The bodies of a graph's jobs, and their results.
//!
//! Every piece computes for its time and then leaves one word: a hash of the frame, of itself, and of all
//! results of the jobs it depends on. A body that starts before every piece of every dependency has ended
//! finds a word of an earlier frame, leaves a wrong one, and so do all that come after it: the frame's
//! checksum is that of a serial run if and only if every edge was kept (up to accidents of 1 in 2^48). The
//! main thread's observations at its sync points go into the checksum as well.
//!
//! The results of a job are summed up once a frame, by the first body that depends on it; later ones read the
//! sum. (Reading all of them in each call moves tens of cache lines between cores per call, more than the
//! shortest pieces in use compute.) A sum that was taken too early stays wrong for the whole frame, so
//! nothing is hidden by that.
//!
//! Invariants: one frame at a time uses a `Bodies`; a frame's number differs from those before it.

use std::ops::Range;

use event::Nanos;

use super::JobGraph;
use crate::busy::Busy;
use crate::words::Words64;
use event::mix;

/// Bodies for the jobs of a graph, with preallocated results that every frame uses again.
pub struct Bodies {
    graph: JobGraph,
    places: Places,
    results: Words64,
    /// The sum of each job's results: 48 bits, and the low 16 bits of the frame it was taken in.
    sums: Words64,
    /// The frame being run.
    now: Words64,
    busy: Busy,
}

/// Where the results of each job are among those of all.
pub(super) struct Places {
    /// The first result of each job, and the number of results at the end.
    first: Vec<u32>,
}

impl Places {
    pub(super) fn of(graph: &JobGraph) -> Places {
        let mut next = 0;
        let mut first = vec![0];
        for node in graph.jobs() {
            next += node.pieces();
            first.push(next);
        }
        Places { first }
    }

    /// How many results there are.
    pub(super) fn len(&self) -> usize {
        self.first.last().map_or(0, |&end| end as usize)
    }

    /// Those of a job.
    pub(super) fn results_of(&self, job: u32) -> Range<usize> {
        let job = job as usize;
        self.first[job] as usize..self.first[job + 1] as usize
    }
}

/// Bits of a word in [`Bodies::sums`] that name the frame.
const FRAME_BITS: u32 = 16;

impl Bodies {
    /// Bodies that compute with `busy` ([`Busy::NONE`] where charging is all that work is).
    pub fn new(graph: JobGraph, busy: Busy) -> Bodies {
        let places = Places::of(&graph);
        Bodies {
            results: Words64::zeros(places.len()),
            places,
            sums: Words64::zeros(graph.jobs().len()),
            now: Words64::zeros(1),
            graph,
            busy,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &JobGraph {
        &self.graph
    }

    /// Runs these pieces of a job; a single job has piece 0. `charge` is told the length of each
    /// before it is computed.
    ///
    /// # Panics
    /// If there is no such job or piece.
    pub fn run(&self, frame: u64, job: u32, pieces: Range<u32>, charge: impl Fn(Nanos)) {
        let node = &self.graph.jobs()[job as usize];
        assert!(
            pieces.end <= node.pieces(),
            "{:?} has no pieces {pieces:?}",
            node.label
        );
        if self.now.get(0) != frame {
            self.now.set(0, frame);
        }
        let sums = node.deps.iter().map(|&dep| self.sum_in(frame, dep));
        let found = found(frame, sums);
        for piece in pieces {
            let index = self.places.first[job as usize] + piece;
            let value = mix(found ^ u64::from(index));
            charge(node.cost);
            self.busy.spin_for(node.cost, value);
            self.results.set(index as usize, value);
        }
    }

    /// The hash of a job's results, as a thread sees them that has waited for the job.
    pub fn observe(&self, job: u32) -> u64 {
        self.sum_in(self.now.get(0), job)
    }

    /// The sum of the job's results, as found by the first body that asked in this frame.
    fn sum_in(&self, frame: u64, job: u32) -> u64 {
        let tag = frame & ((1 << FRAME_BITS) - 1);
        let known = self.sums.get(job as usize);
        if known & ((1 << FRAME_BITS) - 1) == tag && known != 0 {
            return known >> FRAME_BITS;
        }
        let sum = shorten(self.results.sum(self.places.results_of(job)));
        self.sums.set(job as usize, sum << FRAME_BITS | tag);
        sum
    }

    /// Adds the observation at one more sync point to those before.
    pub fn observe_also(&self, observed: u64, job: u32) -> u64 {
        mix(observed ^ self.observe(job))
    }

    /// The checksum of the frame that has just ended, whose main thread has observed this.
    pub fn checksum(&self, observed: u64) -> u64 {
        checksum(
            observed,
            (0..self.results.len()).map(|index| self.results.get(index)),
        )
    }

    /// Runs a whole frame on this thread, without a job system, and returns its observation.
    pub fn run_serial(&self, frame: u64, charge: impl Fn(Nanos)) -> u64 {
        let mut observed = 0;
        let mut syncs = self.graph.syncs().iter().peekable();
        for (job, node) in (0u32..).zip(self.graph.jobs()) {
            self.run(frame, job, 0..node.pieces(), &charge);
            while let Some(sync) = syncs.next_if(|sync| sync.after == job) {
                observed = self.observe_also(observed, sync.wait_for);
            }
        }
        observed
    }

    /// The checksum that this frame must have, computed from the graph alone.
    pub fn expected(&self, frame: u64) -> u64 {
        let mut results = vec![0; self.results.len()];
        let mut sums = Vec::with_capacity(self.graph.jobs().len());
        for (job, node) in (0u32..).zip(self.graph.jobs()) {
            let found = found(frame, node.deps.iter().map(|&dep| sums[dep as usize]));
            let range = self.places.results_of(job);
            range
                .clone()
                .for_each(|index| results[index] = mix(found ^ index as u64));
            sums.push(sum_of(results[range].iter().copied()));
        }
        let syncs = self.graph.syncs().iter();
        let observed = syncs.fold(0, |observed, sync| {
            mix(observed ^ sums[sync.wait_for as usize])
        });
        checksum(observed, results.into_iter())
    }
}

/// The input of a body that depends on jobs whose results have these sums. Results are hashes that know their
/// place: their sum is as good as a hash of them.
#[inline]
pub(super) fn found(frame: u64, sums: impl Iterator<Item = u64>) -> u64 {
    mix(sums.fold(mix(frame), u64::wrapping_add))
}

/// The sum of a job's results.
pub(super) fn sum_of(results: impl Iterator<Item = u64>) -> u64 {
    shorten(results.fold(0, u64::wrapping_add))
}

/// As much of a sum as fits beside a frame's tag.
fn shorten(sum: u64) -> u64 {
    sum >> FRAME_BITS
}

pub(super) fn checksum(observed: u64, results: impl Iterator<Item = u64>) -> u64 {
    results.fold(observed, |hash, result| mix(hash ^ result))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Random;
    use crate::graph::Generator;

    fn bodies(seed: u64, jobs: u32) -> Bodies {
        let generator = Generator {
            seed,
            jobs,
            pieces: 1..=9,
            sync_every: 5,
            ..Generator::default()
        };
        Bodies::new(generator.generate().unwrap(), Busy::NONE)
    }

    /// Goal: a serial run has the checksum that the graph demands, frame after frame on the same results, and
    /// frames differ. Method: three frames; the charges are the work.
    #[test]
    fn serial_frames_have_the_expected_checksums() {
        let bodies = bodies(3, 60);
        let charged = std::cell::Cell::new(Nanos::ZERO);
        let charge = |length| charged.set(charged.get() + length);
        let sums = [7, 8, 9].map(|frame| bodies.checksum(bodies.run_serial(frame, charge)));
        assert_eq!(sums, [7, 8, 9].map(|frame| bodies.expected(frame)));
        assert!(sums[0] != sums[1] && sums[1] != sums[2]);
        assert_eq!(charged.get().0, 3 * bodies.graph().measure().work.0);
    }

    /// Goal: a sync point that is passed too early changes the checksum. Method: observe a job
    /// before and after it has run in the second frame.
    #[test]
    fn a_sync_point_that_does_not_wait_is_noticed() {
        let bodies = bodies(3, 60);
        bodies.run_serial(1, |_| ());
        let early = bodies.observe(5);
        let sum = bodies.checksum(bodies.run_serial(2, |_| ()));
        assert_ne!(early, bodies.observe(5));
        assert_eq!(sum, bodies.expected(2));
    }

    proptest! {
        /// Goal: the checksum is right if and only if every edge was kept. Method: all pieces in
        /// a serial order, then some swapped at random; whether a piece still has all pieces of all
        /// its dependencies before it is found out by looking.
        #[test]
        fn the_checksum_tells_whether_every_edge_was_kept(seed: u64, swaps in 0usize..4) {
            let bodies = bodies(seed, 20);
            let jobs = bodies.graph().jobs();
            bodies.run_serial(1, |_| ());
            let count = |job: u32| jobs[job as usize].pieces();
            let pieces_of = |job: u32| (0..count(job)).map(move |piece| (job, piece));
            let mut order: Vec<(u32, u32)> = (0..jobs.len() as u32).flat_map(pieces_of).collect();
            let mut random = Random::new(seed);
            for _ in 0..swaps {
                let from = random.below(order.len() as u64) as usize;
                let to = (from + random.below(12) as usize).min(order.len() - 1);
                order.swap(from, to);
            }
            let mut done = std::collections::HashSet::new();
            let mut kept = true;
            for &(job, piece) in &order {
                let deps = &jobs[job as usize].deps;
                kept &= deps.iter().all(|&dep| pieces_of(dep).all(|piece| done.contains(&piece)));
                bodies.run(2, job, piece..piece + 1, |_| ());
                done.insert((job, piece));
            }
            let syncs = bodies.graph().syncs().iter();
            let observed = syncs.fold(0, |sum, sync| bodies.observe_also(sum, sync.wait_for));
            prop_assert_eq!(bodies.checksum(observed) == bodies.expected(2), kept);
        }
    }
}
