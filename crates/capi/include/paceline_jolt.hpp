// Jolt Physics on a job system: Jolt's JPH::JobSystem on paceline.h. Only a header, for C++17; it needs neither
// exceptions nor RTTI. Compile it with the definitions that Jolt was compiled with.
//
//     pl::jolt_job_system physics_jobs(jobs); // `jobs` is a pl_system *; pl::system has raw().
//     ...
//     physics.Update(1.0f / 60.0f, 1, &allocator, &physics_jobs); // On any thread, also in a job.
//
// Each of Jolt's jobs is a job of the job system as soon as nothing is left that it depends on, with the name that
// Jolt has given it. They are a group. The thread that waits for a barrier runs jobs of the group, and no other
// job of the program. So take one pl::jolt_job_system for each world that is stepped at the same time as others.
//
// Jobs that are made, queued and run allocate nothing. The exception is more live jobs than `max_jobs`, which are
// made on the heap. A wait makes one event. If the job system refuses a job (it is full, or has ended), the job
// runs at once on the thread that has queued it, as all of them do on Jolt's JobSystemSingleThreaded. So it does
// while other programs take the workers' CPUs so often that workers hold steps up.
//
// It ends after the worlds that use it, and before the job system. Its end runs or awaits what is still queued.
// Jolt wants the same floating point mode on all threads: workers have the one that the system gives a thread.

#ifndef PACELINE_JOLT_HPP
#define PACELINE_JOLT_HPP

#include "paceline.h"

#include <Jolt/Jolt.h>

#include <Jolt/Core/Color.h>
#include <Jolt/Core/FixedSizeFreeList.h>
#include <Jolt/Core/JobSystem.h>
#include <Jolt/Physics/PhysicsSettings.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace pl {

/// What Jolt's PhysicsSystem::Update takes as its job system.
class jolt_job_system : public JPH::JobSystem {
public:
    /// `max_jobs` and `max_barriers` are how many Jolt's settings say that it needs. PL_LANE_NORMAL is the lane of
    /// the job that calls Update, if one does.
    explicit jolt_job_system(pl_system *jobs, JPH::uint max_jobs = JPH::cMaxPhysicsJobs,
                             JPH::uint max_barriers = JPH::cMaxPhysicsBarriers,
                             pl_lane lane = PL_LANE_NORMAL)
        : on_{jobs, 0, 0}, lane_(lane), barriers_(new barrier[max_barriers]), max_barriers_(max_barriers) {
        free_.Init(max_jobs, max_jobs);
        std::size_t workers = 0;
        status_ = pl_group_create(jobs, "jolt", &on_.group);
        if (status_ == PL_OK)
            status_ = pl_event_create(jobs, "jolt's end", 1, &on_.end);
        if (status_ == PL_OK)
            status_ = pl_workers(jobs, &workers);
        max_concurrency_ = static_cast<int>(workers) + 1;
        for (JPH::uint i = 0; i < max_barriers; i++)
            barriers_[i].on = &on_;
    }

    /// Waits until all that was queued has run.
    ~jolt_job_system() override {
        queued_.wait(on_);
        pl_event_abandon(on_.jobs, on_.end);
        pl_group_destroy(on_.jobs, on_.group);
    }

    /// PL_OK, or why it has no place on the job system. In that case Jolt's jobs run where they are queued.
    pl_status status() const { return status_; }

    /// The workers when this was made, and the thread that waits.
    int GetMaxConcurrency() const override { return max_concurrency_; }

    JPH::JobHandle CreateJob(const char *name, JPH::ColorArg color, const JobFunction &function,
                             JPH::uint32 dependencies = 0) override {
        JPH::uint32 index = free_.ConstructObject(false, name, color, this, function, dependencies);
        job *made = index != free_list::cInvalidObjectIndex
                        ? &free_.Get(index)
                        : new job(true, name, color, this, function, dependencies);
        JPH::JobHandle handle(made); // The job may be over before this returns.
        if (dependencies == 0)
            QueueJob(made);
        return handle;
    }

    Barrier *CreateBarrier() override {
        for (JPH::uint i = 0; i < max_barriers_; i++)
            if (!barriers_[i].is_used.exchange(true, std::memory_order_acquire))
                return &barriers_[i];
        return nullptr; // As Jolt's own.
    }

    void DestroyBarrier(Barrier *of) override {
        JPH_ASSERT(static_cast<barrier *>(of)->open.is_empty());
        static_cast<barrier *>(of)->is_used.store(false, std::memory_order_release);
    }

    void WaitForJobs(Barrier *of) override { static_cast<barrier *>(of)->open.wait(on_); }

protected:
    void QueueJob(Job *queued) override {
        if (schedule(queued))
            pl_flush(on_.jobs); // Jolt goes on computing, and does not wait at once.
    }

    void QueueJobs(Job **queued, JPH::uint count) override {
        bool any = false;
        for (JPH::uint i = 0; i < count; i++)
            any |= schedule(queued[i]);
        if (any)
            pl_flush(on_.jobs);
    }

    void FreeJob(Job *freed) override {
        job *it = static_cast<job *>(freed);
        if (it->is_on_heap)
            delete it;
        else
            free_.DestructObject(it);
    }

private:
    /// Where jobs are scheduled and awaited.
    struct place {
        pl_system *jobs;
        pl_group group;
        pl_job end; // Nothing completes it: the wait for it has a time, and runs jobs where there are no workers.
    };

    /// Counts what is not over, and has one thread wait until nothing is left.
    ///
    /// Its owner may be gone as soon as the count is zero, unless a thread waits: that one waits for the event. So
    /// the thread that counts down touches it again only if its own step has found AWAITED.
    class gate {
    public:
        void add() { word_.fetch_add(1, std::memory_order_relaxed); }

        /// One is over: what it has done is visible to the thread that waits.
        void done(pl_system *jobs) {
            if (word_.fetch_sub(1, std::memory_order_acq_rel) == (AWAITED | 1))
                pl_event_complete(jobs, event_.load(std::memory_order_relaxed));
        }

        bool is_empty() const { return (word_.load(std::memory_order_acquire) & ~AWAITED) == 0; }

        void wait(const place &on) {
            while (!is_empty()) {
                pl_job event = 0;
                pl_status made = pl_event_create(on.jobs, "jolt's barrier", 1, &event);
                if (made == PL_FORKED)
                    return; // The jobs are the parent's.
                if (made != PL_OK) {
                    nap(on);
                    continue;
                }
                event_.store(event, std::memory_order_relaxed);
                if (word_.fetch_or(AWAITED, std::memory_order_acq_rel) == 0)
                    pl_event_complete(on.jobs, event); // All is over, and no thread has seen the flag.
                else
                    await(on, event);
                word_.fetch_and(~AWAITED, std::memory_order_acq_rel);
            }
        }

    private:
        static constexpr std::uint64_t AWAITED = std::uint64_t{1} << 63;

        static void await(const place &on, pl_job event) {
            std::int32_t is_done = 0;
            if (pl_group_wait(on.jobs, on.group, event) == PL_OK)
                return;
            while (pl_is_done(on.jobs, event, &is_done) == PL_OK && is_done == 0)
                nap(on);
        }

        /// For a wait that the job system has refused.
        static void nap(const place &on) {
            constexpr std::uint64_t MILLISECOND = 1000000;
            if (pl_group_wait_timeout(on.jobs, on.group, on.end, MILLISECOND) != PL_TIMEOUT)
                std::this_thread::sleep_for(std::chrono::nanoseconds(MILLISECOND));
        }

        std::atomic<std::uint64_t> word_{0};
        std::atomic<pl_job> event_{0};
    };

    /// One of Jolt's jobs.
    struct job : Job {
        template <class... Arguments>
        explicit job(bool on_heap, const char *label, Arguments &&...arguments)
            : Job(label, std::forward<Arguments>(arguments)...), name(label), is_on_heap(on_heap) {}

        const char *name;
        bool is_on_heap;
    };

    struct barrier final : Barrier {
        void AddJob(const JPH::JobHandle &handle) override {
            open.add(); // Before the job can be over.
            if (!handle.GetPtr()->SetBarrier(this))
                open.done(on->jobs); // It is over already.
        }

        void AddJobs(const JPH::JobHandle *handles, JPH::uint count) override {
            for (JPH::uint i = 0; i < count; i++)
                AddJob(handles[i]);
        }

        void OnJobFinished(Job *) override { open.done(on->jobs); }

        const place *on = nullptr;
        gate open;
        std::atomic<bool> is_used{false};
    };

    using free_list = JPH::FixedSizeFreeList<job>;

    /// The job holds a reference until its body is gone, whether it has run or not. Returns whether it is a job
    /// of the job system now; else it has run.
    bool schedule(Job *queued) {
        JPH::JobHandle until_it_ran(queued);
        if (status_ == PL_OK && is_worth_sharing()) {
            queued->AddRef();
            queued_.add();
            pl_job_desc desc{};
            desc.size = sizeof desc;
            desc.name = static_cast<job *>(queued)->name;
            desc.body = [](pl_context *, void *data) { static_cast<job *>(data)->Execute(); };
            desc.data = static_cast<job *>(queued);
            desc.release = [](void *data) {
                job *it = static_cast<job *>(data);
                auto *of = static_cast<jolt_job_system *>(it->GetJobSystem());
                it->Release();
                of->queued_.done(of->on_.jobs);
            };
            desc.lane = lane_;
            desc.group = on_.group;
            if (pl_schedule(on_.jobs, &desc, nullptr) == PL_OK)
                return true;
        }
        queued->Execute();
        return false;
    }

    /// Not while other programs would take the workers' CPUs in the middle of a step.
    bool is_worth_sharing() const {
        std::int32_t is_worth = 1;
        return pl_groups_are_worth_sharing(on_.jobs, &is_worth) != PL_OK || is_worth != 0;
    }

    place on_;
    pl_lane lane_;
    int max_concurrency_ = 1;
    pl_status status_ = PL_OK;
    free_list free_;
    std::unique_ptr<barrier[]> barriers_;
    JPH::uint max_barriers_;
    /// Those that the job system has.
    gate queued_;
};

} // namespace pl

#endif
