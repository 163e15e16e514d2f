// What Jolt's steps rely on, and what can go wrong: jobs that depend on each other, barriers, too little room.
//
//     rules      a line for each rule that holds; the first that does not ends the program with 1.
//
// It needs no more of Jolt than the sources in Jolt/Core.

#include <paceline_jolt.hpp>

#include <Jolt/Core/Memory.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

using JPH::JobHandle;

namespace {

constexpr std::uint32_t MOST_WORKERS = 8;

const char *rule = "";
std::uint32_t rule_workers = 0;

void must(bool holds, const char *what) {
    if (holds)
        return;
    std::fprintf(stderr, "%s, %u workers: %s does not hold; %s\n", rule, rule_workers, what, pl_last_error());
    std::exit(1);
}

#define MUST(what) must(what, #what)

// A job system that ends with its scope.
struct job_system {
    explicit job_system(std::uint32_t workers, std::uint32_t max_jobs = 0, std::uint32_t max_threads = 0) {
        pl_system_desc desc{};
        desc.size = sizeof desc;
        desc.workers = workers;
        desc.no_workers = workers == 0;
        desc.max_jobs = max_jobs;
        desc.max_threads = max_threads;
        MUST(pl_system_create(&desc, &raw) == PL_OK);
    }
    ~job_system() {
        if (raw != nullptr)
            MUST(pl_system_destroy(raw) == PL_OK);
    }
    job_system(const job_system &) = delete;
    job_system &operator=(const job_system &) = delete;

    // Runs this as a job, and waits for it.
    void in_a_job(const std::function<void()> &body) {
        pl_job job = schedule(body);
        MUST(pl_wait(raw, job) == PL_OK);
    }

    pl_job schedule(const std::function<void()> &body) {
        pl_job job = 0;
        pl_job_desc desc{};
        desc.size = sizeof desc;
        desc.body = [](pl_context *, void *data) { (*static_cast<const std::function<void()> *>(data))(); };
        desc.data = const_cast<std::function<void()> *>(&body);
        MUST(pl_schedule(raw, &desc, &job) == PL_OK);
        return job;
    }

    pl_system *raw = nullptr;
};

// Jobs in a random order: each says which ones it comes after, and lets go of those that come after it.
class tangle {
public:
    tangle(unsigned seed, std::size_t count) : random_(seed), after_(count), before_(count), ran_(count) {
        for (std::size_t i = 1; i < count; i++)
            for (unsigned edges = random_() % 4; edges > 0; edges--) {
                std::size_t earlier = random_() % i;
                after_[i].push_back(earlier);
                before_[earlier].push_back(i);
            }
    }

    void run(pl::jolt_job_system &on) {
        JPH::JobSystem::Barrier *barrier = on.CreateBarrier();
        MUST(barrier != nullptr);
        handles_.resize(after_.size());
        // Backwards, so that each job finds the handles of those that it lets go.
        for (std::size_t i = after_.size(); i-- > 0;) {
            auto dependencies = static_cast<JPH::uint32>(after_[i].size() + 1);
            handles_[i] = on.CreateJob("tangle", JPH::Color::sRed, [this, i] { body(i); }, dependencies);
        }
        std::size_t half = handles_.size() / 2;
        barrier->AddJobs(handles_.data(), static_cast<JPH::uint>(half));
        for (std::size_t i = 0; i < half; i++)
            handles_[i].RemoveDependency();
        for (std::size_t i = half; i < handles_.size(); i++) {
            barrier->AddJob(handles_[i]);
            handles_[i].RemoveDependency();
        }
        on.WaitForJobs(barrier);
        for (std::size_t i = 0; i < ran_.size(); i++)
            MUST(ran_[i] == 1 && handles_[i].IsDone());
        on.DestroyBarrier(barrier);
        handles_.clear();
    }

private:
    void body(std::size_t at) {
        for (std::size_t earlier : after_[at])
            MUST(ran_[earlier] == 1);
        ran_[at]++;
        std::vector<JobHandle> later;
        for (std::size_t next : before_[at])
            later.push_back(handles_[next]);
        if (at % 2 == 0)
            for (const JobHandle &next : later)
                next.RemoveDependency();
        else if (!later.empty())
            JobHandle::sRemoveDependencies(later.data(), static_cast<JPH::uint>(later.size()));
    }

    std::minstd_rand random_;
    std::vector<std::vector<std::size_t>> after_, before_;
    std::vector<std::atomic<int>> ran_;
    std::vector<JobHandle> handles_;
};

void jobs_run_in_order(std::uint32_t workers) {
    job_system jobs(workers);
    pl::jolt_job_system on(jobs.raw);
    MUST(on.status() == PL_OK && on.GetMaxConcurrency() == static_cast<int>(workers) + 1);
    for (unsigned seed = 1; seed <= 20; seed++)
        tangle(seed, 1 + seed * 20).run(on);
}

void steps_may_be_jobs(std::uint32_t workers) {
    job_system jobs(workers);
    pl::jolt_job_system on(jobs.raw);
    for (unsigned seed = 1; seed <= 10; seed++)
        jobs.in_a_job([&] { tangle(seed, 100).run(on); });
}

// The barrier grows while it is awaited: by its own jobs, and by another thread.
void barriers_grow(std::uint32_t workers) {
    job_system jobs(workers);
    pl::jolt_job_system on(jobs.raw);
    for (int round = 0; round < 20; round++) {
        JPH::JobSystem::Barrier *barrier = on.CreateBarrier();
        std::atomic<int> ran{0};
        std::function<void(int)> grow = [&](int depth) {
            ran++;
            for (int i = 0; depth > 0 && i < 2; i++)
                barrier->AddJob(on.CreateJob("grow", JPH::Color::sRed, [&grow, depth] { grow(depth - 1); }));
        };
        barrier->AddJob(on.CreateJob("grow", JPH::Color::sRed, [&grow] { grow(6); }));
        std::thread other([&] {
            for (int i = 0; i < 50; i++)
                barrier->AddJob(on.CreateJob("other", JPH::Color::sRed, [&ran] { ran++; }));
        });
        on.WaitForJobs(barrier);
        other.join();
        on.WaitForJobs(barrier);
        MUST(ran == 127 + 50);
        on.DestroyBarrier(barrier);
    }
}

void jobs_without_a_barrier_run(std::uint32_t workers) {
    job_system jobs(workers);
    std::atomic<int> ran{0};
    {
        pl::jolt_job_system on(jobs.raw);
        for (int i = 0; i < 500; i++)
            on.CreateJob("alone", JPH::Color::sRed, [&ran] { ran++; });
    }
    MUST(ran == 500);
}

void there_may_be_too_many_jobs(std::uint32_t workers) {
    job_system jobs(workers);
    pl::jolt_job_system on(jobs.raw, 4);
    for (unsigned seed = 1; seed <= 5; seed++)
        tangle(seed, 300).run(on);
}

// What has no room in the job system runs at once, and so do jobs of a thread that it refuses.
void the_job_system_may_be_full(std::uint32_t workers) {
    job_system jobs(workers, 8);
    pl::jolt_job_system on(jobs.raw);
    for (unsigned seed = 1; seed <= 5; seed++)
        tangle(seed, 300).run(on);
    job_system alone(workers, 0, 1);
    pl::jolt_job_system of_one(alone.raw);
    MUST(of_one.status() == PL_OK);
    std::thread([&] { tangle(1, 300).run(of_one); }).join();
}

// There was no room for it at the beginning: it goes without the job system, also when there is room again.
void the_beginning_may_find_no_room(std::uint32_t workers) {
    job_system jobs(workers, 8);
    std::vector<pl_job> events;
    for (pl_job event = 0; pl_event_create(jobs.raw, "full", 1, &event) == PL_OK;)
        events.push_back(event);
    pl::jolt_job_system on(jobs.raw);
    MUST(on.status() == PL_FULL && on.GetMaxConcurrency() == 1);
    for (pl_job event : events)
        MUST(pl_event_complete(jobs.raw, event) == PL_OK);
    tangle(1, 300).run(on);
}

void the_job_system_may_have_ended(std::uint32_t workers) {
    job_system jobs(workers);
    pl_system *raw = jobs.raw;
    pl::jolt_job_system begun(raw);
    MUST(pl_system_destroy(raw) == PL_OK);
    jobs.raw = nullptr;
    tangle(1, 300).run(begun);
    pl::jolt_job_system late(raw);
    MUST(late.status() == PL_DESTROYED && late.GetMaxConcurrency() == 1);
    tangle(2, 300).run(late);
}

void threads_step_at_the_same_time(std::uint32_t workers) {
    job_system jobs(workers);
    pl::jolt_job_system shared(jobs.raw);
    std::vector<std::thread> threads;
    for (unsigned at = 0; at < 6; at++)
        threads.emplace_back([&, at] {
            pl::jolt_job_system own(jobs.raw);
            for (unsigned seed = 1; seed <= 5; seed++) {
                tangle(at * 10 + seed, 150).run(shared);
                tangle(at * 10 + seed, 150).run(own);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
}

void barriers_are_counted(std::uint32_t workers) {
    job_system jobs(workers);
    pl::jolt_job_system on(jobs.raw, 16, 2);
    JPH::JobSystem::Barrier *first = on.CreateBarrier(), *second = on.CreateBarrier();
    MUST(first != nullptr && second != nullptr && first != second);
    MUST(on.CreateBarrier() == nullptr);
    on.WaitForJobs(first); // It is empty.
    on.DestroyBarrier(first);
    MUST(on.CreateBarrier() == first);
    on.DestroyBarrier(first);
    on.DestroyBarrier(second);
}

// All workers are busy for as long as the steps go on: the thread that steps does all of it, and nothing else.
void busy_workers_hold_nothing_up(std::uint32_t workers) {
    if (workers == 0)
        return; // There a wait runs what there is.
    job_system jobs(workers);
    pl::jolt_job_system on(jobs.raw, 256);
    std::atomic<std::uint32_t> busy{0};
    std::atomic<bool> is_over{false}, stranger_ran{false};
    std::function<void()> hog = [&] {
        busy++;
        while (!is_over)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    };
    std::function<void()> stranger = [&] { stranger_ran = true; };
    std::vector<pl_job> others;
    for (std::uint32_t i = 0; i < workers; i++)
        others.push_back(jobs.schedule(hog));
    pl_flush(jobs.raw);
    while (busy < workers)
        std::this_thread::yield();
    others.push_back(jobs.schedule(stranger));
    for (unsigned seed = 1; seed <= 10; seed++)
        tangle(seed, 200).run(on);
    MUST(!stranger_ran);
    is_over = true;
    for (pl_job job : others)
        MUST(pl_wait(jobs.raw, job) == PL_OK);
}

struct named_rule {
    const char *name;
    void (*check)(std::uint32_t workers);
};

#define RULE(name) {#name, name}

constexpr named_rule RULES[] = {
    RULE(jobs_run_in_order),
    RULE(steps_may_be_jobs),
    RULE(barriers_grow),
    RULE(jobs_without_a_barrier_run),
    RULE(there_may_be_too_many_jobs),
    RULE(the_job_system_may_be_full),
    RULE(the_beginning_may_find_no_room),
    RULE(the_job_system_may_have_ended),
    RULE(threads_step_at_the_same_time),
    RULE(barriers_are_counted),
    RULE(busy_workers_hold_nothing_up),
};

} // namespace

int main() {
    JPH::RegisterDefaultAllocator();
    for (const named_rule &each : RULES) {
        rule = each.name;
        for (rule_workers = 0; rule_workers <= MOST_WORKERS; rule_workers++)
            each.check(rule_workers);
        std::printf("%s\n", each.name);
        std::fflush(stdout);
    }
    return 0;
}
