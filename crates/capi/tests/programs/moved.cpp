// Values that own something of the job system, assigned anew: what was there before is given back, and once.
#include <paceline.hpp>

#include <cstdlib>
#include <utility>

static void must(bool is_so) {
    if (!is_so)
        std::abort();
}

int main() {
    pl::system jobs(1);
    // An event that makes room for another one is abandoned, and what waits for it is cancelled.
    pl::event gate = jobs.event("first gate");
    pl::job first = gate;
    bool ran = false;
    pl::job behind = jobs.schedule("behind", [&ran] { ran = true; }, pl::after(gate));
    gate = jobs.event("second gate");
    must(jobs.is_done(first) && !jobs.is_done(gate));
    try {
        jobs.wait(behind);
        must(false);
    } catch (const pl::error &error) {
        must(error.status() == PL_CANCELLED && !ran);
    }
    pl::event other = std::move(gate);
    other.complete();
    jobs.wait(other);
    // To itself, as a swap may do it.
    pl::event &same = other;
    other = std::move(same);
    must(jobs.is_done(other));

    pl::token stop = jobs.token();
    stop.cancel();
    stop = jobs.token();
    must(!stop.is_cancelled());

    pl::frame frame = jobs.frame("frame", std::chrono::seconds(1));
    frame = jobs.frame("frame", std::chrono::hours(1));
    must(frame.remaining() > std::chrono::minutes(1));

    pl::group physics = jobs.group("physics");
    physics = jobs.group("physics");
    physics.wait(jobs.schedule("solve", [] {}, pl::options().in(physics)));

    {
        pl::pinned_thread here = jobs.pin_thread();
        pl::pinned_thread there = std::move(here);
        jobs.schedule("there", [] {}, pl::options().pinned_to(there.pin()));
        must(there.run_jobs() == 1);
    }

    int runs = 0;
    auto graph = jobs.graph<int>("one");
    graph.job("count", [](int &count) { count += 1; });
    graph.build();
    graph.run(runs);
    graph = jobs.graph<int>("ten");
    graph.job("count", [](int &count) { count += 10; });
    graph.build();
    graph.run(runs);
    must(runs == 11);

    jobs = pl::system(1);
    jobs.wait(jobs.schedule("on another one", [] {}));
    return 0;
}
