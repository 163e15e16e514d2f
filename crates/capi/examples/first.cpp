// A first frame in C++: jobs, results, loops, exceptions, events, frames.
#include <paceline.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

using namespace std::chrono_literals;

struct no_such_file : std::runtime_error {
    using std::runtime_error::runtime_error;
};

int main() {
    pl::system jobs(2);
    std::vector<float> positions(10'000, 0.0f);
    int visible = 0;

    // A frame: a loop, and jobs after it.
    {
        auto frame = jobs.frame("update", 16ms);
        auto step = jobs.schedule_for("step", positions.size(), [&](std::size_t begin, std::size_t end) {
            for (auto i = begin; i < end; i++)
                positions[i] += 1.0f;
        });
        auto cull = jobs.schedule("cull", [&] { visible = static_cast<int>(positions[9'999]) * 100; },
                                  pl::after(step));
        auto sum = jobs.run(
            "sum", [&] { return std::accumulate(positions.begin(), positions.end(), 0.0f); },
            pl::after(step));
        jobs.wait(cull);
        std::printf("%d visible, sum %.0f, in time: %d\n", visible, jobs.wait(sum),
                    frame.remaining() <= 16ms);
    }

    // Sums without a lock: each thread has a place of its own.
    std::vector<std::size_t> items(jobs.thread_slots());
    jobs.parallel_for("count", 1'000, [&](pl::context &cx, std::size_t begin, std::size_t end) {
        items[cx.worker()] += end - begin;
    });
    std::printf("%zu items\n", std::accumulate(items.begin(), items.end(), std::size_t{0}));

    // What a body owns goes with it, in the job or on the heap, and away when it has run.
    auto owned = std::make_unique<std::string>("owned");
    auto text = jobs.run("move", [owned = std::move(owned)] { return *owned + " and moved"; });
    std::printf("%s\n", jobs.wait(std::move(text)).c_str());

    // Exceptions come out where somebody waits.
    auto load = jobs.run("load", []() -> int { throw no_such_file("level-7.map"); });
    auto draw = jobs.schedule("draw", [] { std::puts("never"); }, pl::after(load));
    try {
        jobs.wait(load);
    } catch (const no_such_file &thrown) {
        std::printf("no such file: %s\n", thrown.what());
    }
    try {
        jobs.wait(draw);
    } catch (const pl::error &thrown) {
        std::printf("%s: %s\n", pl_status_name(thrown.status()), thrown.what());
        std::printf("the wait: %s:%u\n", thrown.where().file, static_cast<unsigned>(thrown.where().line));
    }
    try {
        jobs.parallel_for("pieces", 100, [](std::size_t begin, std::size_t end) {
            if (begin <= 70 && 70 < end)
                throw std::out_of_range("piece 70");
        });
    } catch (const std::out_of_range &thrown) {
        std::printf("%s is broken\n", thrown.what());
    }

    // Events; all of several; the background.
    std::array<pl::job, 2> saved;
    {
        auto loaded = jobs.event("loaded", 2);
        saved[0] = jobs.schedule("save", [&] { std::puts("saved"); }, pl::after(loaded).background());
        loaded.complete();
        std::printf("waits: %d\n", !jobs.wait_for(saved[0], 1ms));
        loaded.complete();
        auto given_up = jobs.event("reply");
        saved[1] = jobs.schedule("reply", [] { std::puts("never"); }, pl::after(given_up));
    }
    jobs.wait(saved[0]);
    try {
        jobs.wait(jobs.combine(saved));
    } catch (const pl::error &thrown) {
        std::printf("%s\n", pl_status_name(thrown.status()));
    }

    // Work that is called off; a call that blocks.
    auto level = jobs.token();
    level.cancel();
    auto off = jobs.schedule("off", [] { std::puts("never"); }, pl::options().cancelled_by(level.child()));
    auto file = jobs.run("read", [](pl::context &cx) {
        int bytes = 0;
        cx.blocking([&] { bytes = 42; });
        return bytes;
    });
    std::printf("%d bytes, cancelled: %d\n", jobs.wait(file), level.is_cancelled());
    try {
        jobs.wait(off);
    } catch (const pl::error &thrown) {
        std::printf("%s\n", pl_status_name(thrown.status()));
    }

    // What belongs to this thread, and is made elsewhere.
    std::atomic<int> told{0};
    auto main_thread = jobs.pin_thread([&] { told++; });
    int windows = 0;
    auto mesh = jobs.schedule("load", [] {});
    auto shown = pl::after(mesh).pinned_to(main_thread.pin());
    jobs.wait(jobs.schedule("show", [&] { windows++; }, shown));
    auto again = jobs.schedule("show", [&] { windows++; }, shown);
    while (!jobs.is_done(again))
        main_thread.run_jobs();
    std::printf("%d windows, told %d times\n", windows, told.load());
    try {
        jobs.schedule_for("loop", 10, [](std::size_t, std::size_t) {}, shown);
    } catch (const pl::error &thrown) {
        std::printf("%s\n", thrown.what());
    }
    std::printf("explained: %d\n", !jobs.explain().empty() && !jobs.report().empty());
    return 0;
}
