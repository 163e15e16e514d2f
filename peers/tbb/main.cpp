// `paceline-peer-tbb`: oneTBB for `paceline-bench --peers`, as a process of its own.
//
// It reads requests from standard input, one a line, and answers each with one line: `ok` and
// numbers, `failed` and why. Between requests it sleeps in that read. A request that it does not
// understand is answered with `bad request` and why, and ends it with exit code 2; the end of
// standard input ends it with 0. README.md has the requests.

#include <exception>
#include <iostream>
#include <string>

#include <oneapi/tbb/version.h>

#include "graph.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "work.hpp"

State::State() = default;

State::~State() = default;

namespace {

Reply check_chain(Request &request) {
    const auto steps = request.take("steps", 0, 100'000'000'000);
    const auto seed = request.take("seed", 0, UINT64_MAX);
    request.end();
    return {chain(steps, seed)};
}

Reply answer(Request &request, State &state) {
    const auto &command = request.command();
    if (command == "chain") {
        return check_chain(request);
    } else if (command == "spawn") {
        return spawn(request);
    } else if (command == "join") {
        return join(request);
    } else if (command == "for") {
        return loops(request);
    } else if (command == "load") {
        return load(request, std::cin, state);
    } else if (command == "graph") {
        return graph(request, state);
    } else if (command == "open") {
        return open(request, state);
    } else if (command == "submit") {
        return submit(request, state);
    } else if (command == "close") {
        return close(request, state);
    } else if (command == "frames") {
        return frames(request);
    } else if (command == "idle") {
        return idle(request);
    }
    throw BadRequest("there is no command \"" + command + "\"");
}

/// The exit code.
int serve() {
    State state;
    for (std::string line; std::getline(std::cin, line);) {
        try {
            Request request(line);
            const Reply reply = answer(request, state);
            std::string text = "ok";
            for (const auto number : reply) {
                text += ' ' + std::to_string(number);
            }
            std::cout << text << std::endl;
        } catch (const BadRequest &error) {
            std::cout << "bad request: " << error.what() << std::endl;
            return 2;
        } catch (const std::exception &error) {
            std::cout << "failed: " << error.what() << std::endl;
        }
    }
    return 0;
}

} // namespace

int main(int count, char **arguments) {
    const std::string version = TBB_runtime_version();
    if (count == 2 && arguments[1] == std::string("--version")) {
        std::cout << "oneTBB " << version << std::endl;
        return 0;
    }
    if (count > 1) {
        std::cerr << arguments[0] << ": it takes requests from standard input and no arguments but "
                  << "--version; peers/tbb/README.md has the requests" << std::endl;
        return 2;
    }
    std::ios::sync_with_stdio(false);
    std::cout << "paceline-peer 1 oneTBB " << version << std::endl;
    return serve();
}
