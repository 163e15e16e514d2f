// A frame as a graph, and its bodies: the same as in crates/workload (graph/mod.rs, bodies.rs), so
// that a frame's checksum can be compared with the one that the bench computes from the graph.

#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

struct Node {
    std::uint32_t pieces;
    std::uint64_t steps;
    /// Earlier jobs.
    std::vector<std::uint32_t> deps;
};

/// The main thread, which has scheduled the jobs up to `after`, waits for `wait_for`.
struct SyncPoint {
    std::uint32_t after;
    std::uint32_t wait_for;
};

class JobGraph {
public:
    JobGraph(std::vector<Node> jobs, std::vector<SyncPoint> syncs);

    const std::vector<Node> &jobs() const {
        return jobs_;
    }

    const std::vector<SyncPoint> &syncs() const {
        return syncs_;
    }

    /// Sets the number of the frame that runs next; it differs from those before.
    void begin(std::uint64_t frame);

    /// Runs these pieces of a job: each computes and leaves a hash of the frame, of itself, and of
    /// all results of the jobs it depends on.
    void run(std::uint32_t job, std::uint32_t first, std::uint32_t last);

    /// The main thread passes a sync point; one at a time.
    void observe(std::uint32_t sync);

    /// Over everything that the frame has left; it is over.
    std::uint64_t checksum() const;

private:
    using Word = std::atomic<std::uint64_t>;

    std::uint64_t sum_in_frame(std::uint32_t job);

    std::vector<Node> jobs_;
    std::vector<SyncPoint> syncs_;
    /// The first result of each job, and the number of results at the end.
    std::vector<std::uint32_t> first_;
    std::vector<Word> results_;
    /// The sum of each job's results: 48 bits, and the low 16 bits of the frame it was taken in.
    std::vector<Word> sums_;
    std::uint64_t frame_ = 0;
    std::uint64_t observed_ = 0;
};
