// What waits of programs in C++ find where jobs have failed, long ago or just now.
#include <paceline.hpp>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

int wrong = 0;

void must(bool holds, const char *what) {
    if (!holds) {
        std::printf("wrong: %s\n", what);
        wrong = 1;
    }
}

// A job that was cancelled so long ago that this is forgotten has no result.
void results_that_never_were() {
    pl::system jobs(1);
    auto bad = jobs.schedule("bad", [] { throw std::runtime_error("no"); });
    auto sum = jobs.run("sum", [] { return std::string(100, '+'); }, pl::after(bad));
    auto none = jobs.run("none", [] {}, pl::after(bad));
    for (int other = 0; other < 9000; other++)
        pl_wait(jobs.raw(), jobs.schedule("other", [] { throw 1; }).number());
    for (int which = 0; which < 2; which++) {
        try {
            which == 0 ? static_cast<void>(jobs.wait(sum)) : jobs.wait(none);
            must(false, "a job that never ran has a result");
        } catch (const pl::error &refused) {
            bool fits = refused.status() == PL_FORGOTTEN || refused.status() == PL_CANCELLED;
            must(fits, "a job that never ran was cancelled");
        }
    }
}

// The longest times are long, and those that are past are none.
void times() {
    pl::system jobs(1);
    auto group = jobs.group("g");
    auto job = jobs.schedule("job", [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
    must(jobs.wait_for(job, std::chrono::seconds::max()), "a wait for ever is long");
    auto next = jobs.schedule("next", [] {}, pl::options().in(group));
    must(group.wait_for(next, std::chrono::hours::max()), "a wait in a group is, too");
    auto gate = jobs.event("gate");
    must(!jobs.wait_for(gate, std::chrono::seconds::min()), "a time that is past is none");
    must(jobs.frame("frame", std::chrono::hours::max()).remaining().count() > 0, "a budget has no end");
}

// Each kind of wait for a result throws what the job has thrown, or returns what came out.
void results_of_groups() {
    pl::system jobs(1);
    auto group = jobs.group("g");
    auto options = pl::options().in(group);
    auto bad = jobs.run("bad", []() -> int { throw std::out_of_range("no"); }, options);
    for (int how = 0; how < 4; how++) {
        try {
            if (how == 0)
                group.wait_for(bad, std::chrono::hours(1));
            else if (how == 1)
                jobs.wait_for(bad, std::chrono::hours(1));
            else if (how == 2)
                group.wait(bad);
            else
                jobs.wait(bad);
            must(false, "a failure is thrown");
        } catch (const std::out_of_range &) {
        } catch (...) {
            must(false, "what is thrown is what the job has thrown");
        }
    }
    auto good = jobs.run("good", [] { return std::string(100, '+'); }, options);
    must(group.wait_for(good, std::chrono::hours(1)), "a result comes in time");
    must(group.wait(good).size() == 100, "and out of a wait in the group");
    auto gate = jobs.event("gate");
    auto later = jobs.run("later", [] {}, pl::after(gate));
    must(!group.wait_for(later, std::chrono::seconds(0)), "a result may be late");
    gate.complete();
    group.wait(later);
}

// A declaration that throws leaves a graph that can be built.
void declarations_that_throw() {
    pl::system jobs(1);
    auto graph = jobs.graph("outer");
    try {
        graph.nested("inner", [] { throw std::runtime_error("no"); });
        must(false, "it has thrown");
    } catch (const std::runtime_error &) {
    }
    graph.job("after it", [] {});
    graph.build();
    graph.run();
}

// What a pin has called is called as long as it is the last one, and then what the one before has called.
void pins() {
    pl::system jobs(1);
    int first = 0, second = 0;
    auto a = jobs.pin_thread([&first] { first++; });
    auto pinned = [&] { jobs.schedule("pinned", [] {}, pl::options().pinned_to(a.pin())); };
    pinned();
    {
        auto b = jobs.pin_thread([&second] { second++; });
        pinned();
    }
    pinned();
    must(first == 2 && second == 1, "each was called for its jobs");
}

#if defined(__cpp_impl_coroutine)
struct task {
    struct promise_type {
        task get_return_object() { return {}; }
        std::suspend_never initial_suspend() { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

std::atomic<int> reached{0};

task waits_in_the_middle(pl::system &jobs, pl::job bad, const pl::job &other) {
    try {
        co_await jobs.done(bad);
        must(false, "it has failed");
    } catch (const pl::error &) {
    }
    try {
        jobs.wait(other);
    } catch (const pl::error &) {
    }
    reached = 1;
}

task many(pl::system &jobs, pl::job bad, int left) {
    while (left-- > 0) {
        try {
            co_await jobs.done(bad);
        } catch (const pl::error &) {
        }
    }
    reached = 2;
}

void until(int state) {
    while (reached < state)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// A coroutine that goes on after a failure may wait for what fails with it, and go on as often as it likes.
void coroutines() {
    pl::system jobs(2);
    auto gate = jobs.event("gate");
    auto bad = jobs.schedule("bad", [] { throw std::runtime_error("no"); }, pl::after(gate));
    pl::job other;
    waits_in_the_middle(jobs, bad, other);
    other = jobs.schedule("other", [] {}, pl::after(bad));
    gate.complete();
    until(1);
    many(jobs, bad, 3000);
    until(2);
}
#else
void coroutines() {}
#endif

} // namespace

int main() {
    alarm(100);
    results_that_never_were();
    times();
    results_of_groups();
    declarations_that_throw();
    pins();
    coroutines();
    return wrong;
}
