// A pool that is as fresh as oneTBB allows: its threads start after it and have ended when it has.
//
// oneTBB's worker threads belong to the process and not to an arena, so that a new arena alone would
// get the old threads. `finalize` waits until they have ended (Developer Reference,
// `task_scheduler_handle`); the next use starts new ones.

#pragma once

#include <new>
#include <stdexcept>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

class Pool {
public:
    /// `threads` may run tasks, the one that calls included: it has the arena's reserved slot.
    explicit Pool(int threads)
        : handle_(oneapi::tbb::attach{}),
          limit_(oneapi::tbb::global_control::max_allowed_parallelism, threads),
          arena_(threads, 1) {
        arena_.initialize();
    }

    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    /// Runs `body` as a member of the pool.
    template <typename Body>
    void run(Body body) {
        arena_.execute(body);
    }

    oneapi::tbb::task_arena &arena() {
        return arena_;
    }

    /// Ends the worker threads and waits for it; nothing of the pool may be in use.
    void close() {
        arena_.terminate();
        if (!oneapi::tbb::finalize(handle_, std::nothrow)) {
            throw std::runtime_error("oneTBB could not wait for the end of its threads");
        }
    }

private:
    oneapi::tbb::task_scheduler_handle handle_;
    oneapi::tbb::global_control limit_;
    oneapi::tbb::task_arena arena_;
};
