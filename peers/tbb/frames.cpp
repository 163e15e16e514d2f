// `frames` and `idle`: a program with a frame rate, and one with nothing to do.
//
// Frames begin at the slots of an absolute schedule. One that is late for its slot begins at the
// first slot that has not passed, as in the command's own frames (commands/frames/pace.rs).

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <unistd.h>

#include <oneapi/tbb/parallel_for.h>

#include "clock.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "work.hpp"

namespace tbb = oneapi::tbb;

namespace {

/// A frame's pieces: each a chain from its own seed, the results kept to be summed up.
class Frame {
public:
    Frame(std::uint64_t pieces, std::uint64_t steps) : steps_(steps), results_(pieces) {}

    /// Runs all pieces and returns when they are over.
    void run() {
        using Range = tbb::blocked_range<std::size_t>;
        tbb::parallel_for(Range(0, results_.size()), [this](const Range &range) {
            for (auto piece = range.begin(); piece != range.end(); ++piece) {
                results_[piece] = chain(steps_, piece + 1);
            }
        });
    }

    /// The sum of the results; a piece that is not run again does not count again.
    std::uint64_t take_sum() {
        std::uint64_t sum = 0;
        for (auto &result : results_) {
            sum += result;
            result = 0;
        }
        return sum;
    }

private:
    std::uint64_t steps_;
    std::vector<std::uint64_t> results_;
};

/// The first slot that has not passed, from `slot` on.
Nanos slot_from(Nanos slot, Nanos period, Nanos time) {
    if (time <= slot) {
        return slot;
    }
    const Nanos late = time - slot;
    return slot + (late + period - 1) / period * period;
}

/// Context switches so far of each thread of this process.
std::map<std::string, std::uint64_t> switches() {
    std::map<std::string, std::uint64_t> found;
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(task.path() / "status");
        std::uint64_t count = 0;
        for (std::string line; std::getline(status, line);) {
            if (line.find("ctxt_switches:") != std::string::npos) {
                count += std::stoull(line.substr(line.find(':') + 1));
            }
        }
        found[task.path().filename()] = count;
    }
    return found;
}

} // namespace

Reply frames(Request &request) {
    const int threads = request.threads();
    const auto count = request.take("count", 1, 10'000'000);
    const auto warmup = request.take("warmup", 0, 10'000'000);
    const auto period = request.take("period", 1, 60'000'000'000);
    const auto pieces = request.take("pieces", 1, 10'000'000);
    const auto steps = request.take("steps", 0, 100'000'000'000);
    const bool spins = request.take("spin", 0, 1) == 1;
    request.end();

    Reply reply{0, 0};
    reply.reserve(2 + 2 * count);
    std::uint64_t sum = 0;
    Pool pool(threads);
    pool.run([&] {
        Frame frame(pieces, steps);
        const auto wait_for = [spins](Nanos slot) { spins ? spin_until(slot) : sleep_until(slot); };
        Nanos cpu = 0;
        Nanos slot = now();
        for (std::uint64_t index = 0; index < warmup + count; ++index) {
            wait_for(slot);
            if (index == warmup) {
                cpu = process_cpu();
            }
            const Nanos begin = now();
            frame.run();
            const Nanos end = now();
            sum += frame.take_sum();
            if (index >= warmup) {
                reply.push_back(begin - slot);
                reply.push_back(end - begin);
            }
            slot = slot_from(slot + period, period, now());
        }
        // What the pool does after its last frame counts.
        wait_for(slot);
        reply[0] = process_cpu() - cpu;
    });
    pool.close();
    reply[1] = sum;
    return reply;
}

Reply idle(Request &request) {
    const int threads = request.threads();
    const auto pieces = request.take("pieces", 1, 10'000'000);
    const auto steps = request.take("steps", 0, 100'000'000'000);
    const auto settle = request.take("settle", 0, 60'000'000'000);
    const auto length = request.take("length", 1, 600'000'000'000);
    request.end();

    const auto own = std::to_string(getpid());
    std::uint64_t of_workers = 0;
    std::uint64_t of_caller = 0;
    Nanos cpu = 0;
    Pool pool(threads);
    pool.run([&] {
        Frame(pieces, steps).run();
        sleep_until(now() + settle);
        const auto before = switches();
        const Nanos begin = process_cpu();
        sleep_until(now() + length);
        cpu = process_cpu() - begin;
        for (const auto &[thread, count] : switches()) {
            const auto known = before.find(thread);
            const auto more = count - (known == before.end() ? 0 : known->second);
            (thread == own ? of_caller : of_workers) += more;
        }
    });
    pool.close();
    return {cpu, of_workers, of_caller};
}
