// `load` and `graph`: a frame as a flow graph of `continue_node`s, built once and run every frame.
// Parallel jobs are a `parallel_for` inside their node (Developer Guide, "Use Nested Algorithms to
// Increase Scalability").
//
// The main thread's sync points are nodes as well: one follows the job it waits for and the sync
// point before; the jobs that the main thread would schedule behind it follow it. A job that has a
// predecessor in its own stretch is behind the sync point anyway and needs no edge of its own.

#include "graph.hpp"

#include <deque>
#include <sstream>
#include <string>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_for.h>

#include "clock.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "work.hpp"

namespace tbb = oneapi::tbb;
namespace flow = oneapi::tbb::flow;

namespace {

constexpr unsigned FRAME_BITS = 16;
constexpr std::uint64_t TAG = (1 << FRAME_BITS) - 1;

class FlowGraph {
public:
    /// Belongs to the arena in which it is made.
    explicit FlowGraph(JobGraph &frame) : frame_(frame), start_(graph_) {
        const auto &jobs = frame.jobs();
        for (std::uint32_t job = 0; job < jobs.size(); ++job) {
            nodes_.emplace_back(graph_, [this, job](const flow::continue_msg &) { run(job); });
        }
        for (std::uint32_t sync = 0; sync < frame.syncs().size(); ++sync) {
            const auto body = [this, sync](const flow::continue_msg &) { frame_.observe(sync); };
            nodes_.emplace_back(graph_, body);
        }
        connect();
    }

    void run_frame() {
        start_.try_put(flow::continue_msg());
        graph_.wait_for_all();
    }

private:
    using Node = flow::continue_node<flow::continue_msg>;

    void connect() {
        const auto &jobs = frame_.jobs();
        const auto &syncs = frame_.syncs();
        std::size_t sync = 0;
        std::uint32_t stretch = 0;
        for (std::uint32_t job = 0; job < jobs.size(); ++job) {
            bool is_behind = false;
            for (const auto dep : jobs[job].deps) {
                flow::make_edge(nodes_[dep], nodes_[job]);
                is_behind = is_behind || dep >= stretch;
            }
            if (!is_behind && sync == 0) {
                flow::make_edge(start_, nodes_[job]);
            } else if (!is_behind) {
                flow::make_edge(nodes_[jobs.size() + sync - 1], nodes_[job]);
            }
            for (; sync < syncs.size() && syncs[sync].after == job; ++sync) {
                auto &node = nodes_[jobs.size() + sync];
                flow::make_edge(nodes_[syncs[sync].wait_for], node);
                if (sync > 0) {
                    flow::make_edge(nodes_[jobs.size() + sync - 1], node);
                }
                stretch = job + 1;
            }
        }
    }

    void run(std::uint32_t job) {
        const auto pieces = frame_.jobs()[job].pieces;
        if (pieces == 1) {
            frame_.run(job, 0, 1);
            return;
        }
        using Range = tbb::blocked_range<std::uint32_t>;
        tbb::parallel_for(Range(0, pieces), [this, job](const Range &range) {
            frame_.run(job, range.begin(), range.end());
        });
    }

    JobGraph &frame_;
    flow::graph graph_;
    flow::broadcast_node<flow::continue_msg> start_;
    /// The jobs, then the sync points. A deque, because nodes do not move.
    std::deque<Node> nodes_;
};

/// The numbers of the next line, which has to begin with this word.
std::vector<std::uint64_t> numbers_after(const std::string &word, std::istream &lines) {
    std::string line;
    std::getline(lines, line);
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first != word) {
        throw BadRequest("load: \"" + line + "\" is not a line of " + word);
    }
    std::vector<std::uint64_t> numbers;
    for (std::string text; words >> text;) {
        numbers.push_back(number(text));
    }
    return numbers;
}

} // namespace

JobGraph::JobGraph(std::vector<Node> jobs, std::vector<SyncPoint> syncs)
    : jobs_(std::move(jobs)), syncs_(std::move(syncs)), first_{0}, sums_(jobs_.size()) {
    for (const auto &node : jobs_) {
        first_.push_back(first_.back() + node.pieces);
    }
    results_ = std::vector<Word>(first_.back());
}

void JobGraph::begin(std::uint64_t frame) {
    frame_ = frame;
    observed_ = 0;
}

void JobGraph::run(std::uint32_t job, std::uint32_t first, std::uint32_t last) {
    const auto &node = jobs_[job];
    std::uint64_t found = mix(frame_);
    for (const auto dep : node.deps) {
        found += sum_in_frame(dep);
    }
    found = mix(found);
    for (std::uint32_t piece = first; piece < last; ++piece) {
        const auto index = first_[job] + piece;
        const auto value = mix(found ^ index);
        compute(node.steps, value);
        results_[index].store(value, std::memory_order_relaxed);
    }
}

void JobGraph::observe(std::uint32_t sync) {
    observed_ = mix(observed_ ^ sum_in_frame(syncs_[sync].wait_for));
}

std::uint64_t JobGraph::sum_in_frame(std::uint32_t job) {
    const auto known = sums_[job].load(std::memory_order_relaxed);
    if ((known & TAG) == (frame_ & TAG) && known != 0) {
        return known >> FRAME_BITS;
    }
    std::uint64_t sum = 0;
    for (auto index = first_[job]; index < first_[job + 1]; ++index) {
        sum += results_[index].load(std::memory_order_relaxed);
    }
    sum >>= FRAME_BITS;
    sums_[job].store(sum << FRAME_BITS | (frame_ & TAG), std::memory_order_relaxed);
    return sum;
}

std::uint64_t JobGraph::checksum() const {
    std::uint64_t hash = observed_;
    for (const auto &result : results_) {
        hash = mix(hash ^ result.load(std::memory_order_relaxed));
    }
    return hash;
}

Reply load(Request &request, std::istream &lines, State &state) {
    const auto count = request.take("jobs", 1, 1 << 16);
    const auto sync_count = request.take("syncs", 0, 1 << 16);
    request.end();

    std::vector<Node> jobs;
    std::uint64_t pieces = 0;
    for (std::uint64_t job = 0; job < count; ++job) {
        const auto numbers = numbers_after("job", lines);
        if (numbers.size() < 2 || numbers[0] == 0 || numbers[0] > 1 << 22) {
            throw BadRequest("load: job " + std::to_string(job) + " has no pieces and steps");
        }
        pieces += numbers[0];
        Node node{static_cast<std::uint32_t>(numbers[0]), numbers[1], {}};
        for (std::size_t at = 2; at < numbers.size(); ++at) {
            if (numbers[at] >= job) {
                throw BadRequest("load: job " + std::to_string(job) + " waits for a later one");
            }
            node.deps.push_back(static_cast<std::uint32_t>(numbers[at]));
        }
        jobs.push_back(std::move(node));
    }
    if (pieces > 1 << 22) {
        throw BadRequest("load: " + std::to_string(pieces) + " pieces are too many");
    }
    std::vector<SyncPoint> syncs;
    for (std::uint64_t sync = 0; sync < sync_count; ++sync) {
        const auto numbers = numbers_after("sync", lines);
        if (numbers.size() != 2 || numbers[0] >= count || numbers[1] > numbers[0] ||
            (!syncs.empty() && numbers[0] < syncs.back().after)) {
            throw BadRequest("load: sync point " + std::to_string(sync) + " is at no place");
        }
        syncs.push_back({static_cast<std::uint32_t>(numbers[0]),
                         static_cast<std::uint32_t>(numbers[1])});
    }
    state.graph = std::make_unique<JobGraph>(std::move(jobs), std::move(syncs));
    return {};
}

Reply graph(Request &request, State &state) {
    const int threads = request.threads();
    const auto first = request.take("first", 1, 1ULL << 48);
    const auto frames = request.take("frames", 1, 1'000'000);
    request.end();
    if (!state.graph) {
        throw BadRequest("graph: load one first");
    }

    Reply reply;
    Pool pool(threads);
    pool.run([&] {
        FlowGraph flow_graph(*state.graph);
        for (std::uint64_t frame = first; frame < first + frames; ++frame) {
            state.graph->begin(frame);
            const Nanos begin = now();
            flow_graph.run_frame();
            reply.push_back(now() - begin);
            reply.push_back(state.graph->checksum());
        }
    });
    pool.close();
    return reply;
}
