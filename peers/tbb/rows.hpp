// What the runner can do. Each takes its request apart, does it, and returns the numbers of the
// reply; README.md says what they are. A result that oneTBB got wrong is for the bench to notice.

#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <vector>

#include "request.hpp"

class Pool;
class JobGraph;

using Reply = std::vector<std::uint64_t>;

/// What stays between requests.
struct State {
    State();
    ~State();

    /// From `open` to `close`.
    std::unique_ptr<Pool> pool;
    /// From the last `load`.
    std::unique_ptr<JobGraph> graph;
};

Reply spawn(Request &request);
Reply join(Request &request);
Reply loops(Request &request);

/// The lines of the graph follow the request.
Reply load(Request &request, std::istream &lines, State &state);
Reply graph(Request &request, State &state);

Reply open(Request &request, State &state);
Reply submit(Request &request, State &state);
Reply close(Request &request, State &state);

Reply frames(Request &request);
Reply idle(Request &request);
