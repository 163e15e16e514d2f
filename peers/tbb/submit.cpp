// `open`, `submit`, `close`: one task to a pool that sleeps, by a thread that then computes. This
// is what `task_arena::enqueue` is for: the caller does not wait (Developer Reference,
// `task_arena`). The pool stays open, so that its threads are asleep and not new.

#include <atomic>
#include <memory>

#include "clock.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "work.hpp"

namespace {

/// How often the caller looks whether the task has started, once it has computed.
constexpr Nanos GLANCE = 50'000;

} // namespace

Reply open(Request &request, State &state) {
    const int threads = request.threads();
    request.end();
    if (state.pool) {
        throw BadRequest("open: close the open pool first");
    }
    state.pool = std::make_unique<Pool>(threads);
    return {};
}

Reply submit(Request &request, State &state) {
    const auto sleep = request.take("sleep", 0, 60'000'000'000);
    const auto steps = request.take("steps", 0, 100'000'000'000);
    const auto patience = request.take("patience", 1, 600'000'000'000);
    request.end();
    if (!state.pool) {
        throw BadRequest("submit: open a pool first");
    }

    // Shared with the task, which may outlive this call.
    const auto started = std::make_shared<std::atomic<Nanos>>(0);
    sleep_until(now() + sleep);
    const Nanos begin = now();
    state.pool->arena().enqueue([started] { started->store(now(), std::memory_order_release); });
    const Nanos caller = now() - begin;
    compute(steps, 1);
    while (started->load(std::memory_order_acquire) == 0) {
        if (now() - begin > patience) {
            throw std::runtime_error("the task did not start in time");
        }
        sleep_until(now() + GLANCE);
    }
    return {caller, started->load(std::memory_order_acquire) - begin};
}

Reply close(Request &request, State &state) {
    request.end();
    if (!state.pool) {
        throw BadRequest("close: no pool is open");
    }
    state.pool->close();
    state.pool.reset();
    return {};
}
