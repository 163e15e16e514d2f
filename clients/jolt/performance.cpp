// Jolt's own PerformanceTest, unmodified, on a job system: only what it calls its thread pool is another one.

#include <paceline_jolt.hpp>

#include <Jolt/Core/JobSystemThreadPool.h>

#include <cstdio>
#include <cstdlib>

namespace {

void must(pl_status status) {
    if (status != PL_OK) {
        std::fprintf(stderr, "%s: %s\n", pl_status_name(status), pl_last_error());
        std::exit(1);
    }
}

struct JobsOfPaceline {
    explicit JobsOfPaceline(JPH::uint workers) {
        pl_system_desc desc{};
        desc.size = sizeof desc;
        desc.workers = workers;
        desc.no_workers = workers == 0;
        must(pl_system_create(&desc, &jobs));
    }

    ~JobsOfPaceline() { must(pl_system_destroy(jobs)); }

    pl_system *jobs = nullptr;
};

// A job system that ends after Jolt's face of it.
class PoolOfPaceline : JobsOfPaceline, public pl::jolt_job_system {
public:
    PoolOfPaceline(JPH::uint max_jobs, JPH::uint max_barriers, JPH::uint workers)
        : JobsOfPaceline(workers), pl::jolt_job_system(jobs, max_jobs, max_barriers) {
        must(status());
    }
};

} // namespace

#define JobSystemThreadPool PoolOfPaceline
#include "PerformanceTest.cpp"
