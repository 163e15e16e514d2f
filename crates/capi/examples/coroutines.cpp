// Coroutines that wait for jobs hold no thread meanwhile (C++20).
#include <paceline.hpp>

#include <cstdio>

// The least that a coroutine needs: it runs at once, and nobody waits for it but by an event.
struct detached {
    struct promise_type {
        detached get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

static detached level(pl::system &jobs, pl::event &ended) {
    int bytes = 0;
    auto load = jobs.schedule("load", [&] { bytes = 1024; });
    co_await jobs.done(load);
    std::printf("loaded %d bytes\n", bytes);
    co_await jobs.done(load); // It has ended, which is no reason to wait.
    auto broken = jobs.schedule("decode", [] { throw std::runtime_error("no picture"); });
    try {
        co_await jobs.done(broken);
    } catch (const pl::error &thrown) {
        std::printf("%s\n", thrown.what());
    }
    ended.complete();
}

int main() {
    pl::system jobs;
    auto ended = jobs.event("level");
    level(jobs, ended);
    jobs.wait(ended);
    std::puts("ended");
    return 0;
}
