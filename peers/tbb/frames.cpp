// `frames` and `idle`: a program with a frame rate, and one with nothing to do.
//
// Frames begin at the slots of an absolute schedule. One that is late for its slot begins at the
// first slot that has not passed, as in the command's own frames (commands/frames/pace.rs).

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

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

/// What the frames are, and the schedule on which they run.
class Schedule {
public:
    explicit Schedule(Request &request)
        : warmup_(request.take("warmup", 0, 10'000'000)),
          period_(request.take("period", 1, 60'000'000'000)),
          frame_(request.take("pieces", 1, 10'000'000), request.take("steps", 0, 100'000'000'000)) {}

    struct Measured {
        Nanos cpu = 0;
        std::uint64_t sum = 0;
        /// For each frame that counts how late it began, and how long it took.
        std::vector<Nanos> times;
    };

    /// Runs the frames to warm up and `count` more, on the calling thread and its pool.
    Measured run(std::uint64_t count, bool spins) {
        Measured measured;
        measured.times.reserve(2 * count);
        const auto wait_for = [spins](Nanos slot) { spins ? spin_until(slot) : sleep_until(slot); };
        Nanos cpu = process_cpu();
        Nanos slot = now();
        for (std::uint64_t index = 0; index < warmup_ + count; ++index) {
            wait_for(slot);
            if (index == warmup_) {
                cpu = process_cpu();
            }
            const Nanos begin = now();
            frame_.run();
            const Nanos end = now();
            measured.sum += frame_.take_sum();
            if (index >= warmup_) {
                measured.times.push_back(begin - slot);
                measured.times.push_back(end - begin);
            }
            slot = slot_from(slot + period_, period_, now());
        }
        // What the pool does after its last frame counts.
        wait_for(slot);
        measured.cpu = process_cpu() - cpu;
        return measured;
    }

private:
    std::uint64_t warmup_;
    Nanos period_;
    Frame frame_;
};

/// What a thread has used so far.
struct Used {
    Nanos cpu = 0;
    std::uint64_t switches = 0;
};

/// Of each thread of this process but the calling one, which is the first.
std::map<std::string, Used> other_threads() {
    std::map<std::string, Used> found;
    const auto own = std::to_string(getpid());
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
        if (task.path().filename() == own) {
            continue;
        }
        Used used;
        std::ifstream(task.path() / "schedstat") >> used.cpu;
        std::ifstream status(task.path() / "status");
        for (std::string line; std::getline(status, line);) {
            if (line.find("ctxt_switches:") != std::string::npos) {
                used.switches += std::stoull(line.substr(line.find(':') + 1));
            }
        }
        found[task.path().filename()] = used;
    }
    return found;
}

} // namespace

Reply frames(Request &request) {
    const int threads = request.threads();
    const auto count = request.take("count", 1, 10'000'000);
    const bool spins = request.take("spin", 0, 1) == 1;
    Schedule schedule(request);
    request.end();

    Schedule::Measured measured;
    Pool pool(threads);
    pool.run([&] { measured = schedule.run(count, spins); });
    pool.close();
    Reply reply{measured.cpu, measured.sum};
    reply.insert(reply.end(), measured.times.begin(), measured.times.end());
    return reply;
}

Reply idle(Request &request) {
    const int threads = request.threads();
    const auto settle = request.take("settle", 0, 60'000'000'000);
    const auto length = request.take("length", 1, 600'000'000'000);
    Schedule schedule(request);
    request.end();

    Used sum;
    Pool pool(threads);
    pool.run([&] {
        schedule.run(0, false);
        sleep_until(now() + settle);
        const auto before = other_threads();
        sleep_until(now() + length);
        for (const auto &[thread, used] : other_threads()) {
            const auto known = before.find(thread);
            const Used then = known == before.end() ? Used{} : known->second;
            sum.cpu += used.cpu - then.cpu;
            sum.switches += used.switches - then.switches;
        }
    });
    pool.close();
    return {sum.cpu, sum.switches};
}
