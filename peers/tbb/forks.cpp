// `spawn`, `join` and `for`: many small tasks, as the Developer Guide has them: `task_group`,
// `parallel_invoke`, and loops over a `blocked_range` with the default partitioner.

#include <atomic>
#include <functional>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/task_group.h>

#include "clock.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "work.hpp"

namespace tbb = oneapi::tbb;

namespace {

template <typename Body>
void spawn_all(std::uint64_t jobs, const Body &body) {
    tbb::task_group group;
    for (std::uint64_t job = 0; job < jobs; ++job) {
        group.run(body);
    }
    group.wait();
}

std::uint64_t fibonacci(std::uint64_t n) {
    if (n < 2) {
        return n;
    }
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    tbb::parallel_invoke([&] { a = fibonacci(n - 1); }, [&] { b = fibonacci(n - 2); });
    return a + b;
}

std::uint64_t sum(std::uint64_t items, std::uint64_t steps) {
    using Range = tbb::blocked_range<std::uint64_t>;
    const auto part = [steps](const Range &range, std::uint64_t sum) {
        for (auto item = range.begin(); item != range.end(); ++item) {
            compute(steps, item);
            sum += item;
        }
        return sum;
    };
    return tbb::parallel_reduce(Range(0, items), std::uint64_t{0}, part, std::plus<>());
}

} // namespace

Reply spawn(Request &request) {
    const int threads = request.threads();
    const auto jobs = request.take("jobs", 1, 100'000'000);
    const auto repeats = request.take("repeats", 1, 1'000'000);
    request.end();

    Nanos time = 0;
    std::atomic<std::uint64_t> count{0};
    Pool pool(threads);
    pool.run([&] {
        spawn_all(jobs, [&count] { count.fetch_add(1, std::memory_order_relaxed); });
        const Nanos begin = now();
        for (std::uint64_t repeat = 0; repeat < repeats; ++repeat) {
            spawn_all(jobs, [] {});
        }
        time = now() - begin;
    });
    pool.close();
    return {time, count.load()};
}

/// Calls `once` on a fresh pool, then that many times again, timed: the time, the first result, the sum of
/// the others.
template <class Once> Reply repeated(int threads, std::uint64_t repeats, Once once) {
    Nanos time = 0;
    std::uint64_t first = 0;
    std::uint64_t results = 0;
    Pool pool(threads);
    pool.run([&] {
        first = once();
        const Nanos begin = now();
        for (std::uint64_t repeat = 0; repeat < repeats; ++repeat) {
            results += once();
        }
        time = now() - begin;
    });
    pool.close();
    return {time, first, results};
}

Reply join(Request &request) {
    const int threads = request.threads();
    const auto n = request.take("n", 0, 45);
    const auto repeats = request.take("repeats", 1, 1'000'000);
    request.end();
    return repeated(threads, repeats, [n] { return fibonacci(keep(n)); });
}

Reply loops(Request &request) {
    const int threads = request.threads();
    const auto items = request.take("items", 1, 100'000'000);
    const auto steps = request.take("steps", 0, 1'000'000'000);
    const auto repeats = request.take("repeats", 1, 1'000'000);
    request.end();
    return repeated(threads, repeats, [=] { return sum(keep(items), steps); });
}
