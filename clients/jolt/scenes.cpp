// Jolt's steps, on its own thread pool and on a job system, in turns.
//
//     scenes check                     each scene on each pool, with 0 to 8 workers: SCENE POOL WORKERS HASH
//     scenes time THREADS BLOCKS STEPS so many blocks of so many steps of each scene on one and then the other
//                                      pool: POOL SCENE HASH NANOSECONDS...
//     scenes time THREADS BLOCKS STEPS POOL  the same on this pool, without the other one
//
// POOL is 0 for Jolt's thread pool, 1 for the job system, and 2 for Jolt's JobSystemSingleThreaded. The hash is of
// the places of all bodies at the end. Two scenes are of Jolt's PerformanceTest, two are of this file.

#include <paceline_jolt.hpp>

#include <Jolt/ConfigurationString.h>
#include <Jolt/Core/Factory.h>
#include <Jolt/Core/JobSystemSingleThreaded.h>
#include <Jolt/Core/JobSystemThreadPool.h>
#include <Jolt/Core/TempAllocator.h>
#include <Jolt/Physics/Body/BodyLock.h>
#include <Jolt/Physics/Collision/GroupFilterTable.h>
#include <Jolt/Physics/Constraints/SwingTwistConstraint.h>
#include <Jolt/Physics/PhysicsSystem.h>
#include <Jolt/RegisterTypes.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace JPH;
using namespace JPH::literals;
using std::unique_ptr;

#include "ConvexVsMeshScene.h"
#include "PyramidScene.h"

namespace {

constexpr int CHECKED_STEPS = 90;
constexpr int MOST_WORKERS = 8;
// So many blocks, and the worlds are made anew.
constexpr int LIFE = 11;

void must(pl_status status) {
    if (status != PL_OK) {
        std::fprintf(stderr, "%s: %s\n", pl_status_name(status), pl_last_error());
        std::exit(1);
    }
}

void lay_ground(BodyInterface &bodies) {
    BodyCreationSettings ground(new BoxShape(Vec3(100.0f, 1.0f, 100.0f)), RVec3(0.0_r, -1.0_r, 0.0_r),
                                Quat::sIdentity(), EMotionType::Static, Layers::NON_MOVING);
    bodies.CreateAndAddBody(ground, EActivation::DontActivate);
}

// Chains of capsules with limited joints, as the limbs of ragdolls are, that fall onto each other.
class ChainsScene : public PerformanceTestScene {
public:
    const char *GetName() const override { return "chains"; }

    void StartTest(PhysicsSystem &physics, EMotionQuality) override {
        BodyInterface &bodies = physics.GetBodyInterface();
        lay_ground(bodies);
        Ref<GroupFilterTable> neighbours = new GroupFilterTable(LINKS);
        for (uint i = 0; i + 1 < LINKS; i++)
            neighbours->DisableCollision(i, i + 1);
        RefConst<Shape> capsule = new CapsuleShape(0.2f, 0.12f);
        for (uint at = 0; at < CHAINS; at++) {
            Body *last = nullptr;
            for (uint i = 0; i < LINKS; i++) {
                RVec3 place(Real(at % 5) * 1.1_r + Real(i) * 0.1_r, 1.0_r + Real(at / 5) * 0.4_r + Real(i) * 0.5_r,
                            Real(at % 3) * 0.9_r);
                BodyCreationSettings link(capsule, place, Quat::sIdentity(), EMotionType::Dynamic,
                                          Layers::MOVING);
                link.mCollisionGroup = CollisionGroup(neighbours, at, i);
                Body *body = bodies.CreateBody(link);
                bodies.AddBody(body->GetID(), EActivation::Activate);
                if (last != nullptr)
                    physics.AddConstraint(joint(*last, *body));
                last = body;
            }
        }
    }

private:
    static constexpr uint CHAINS = 60, LINKS = 12;

    static TwoBodyConstraint *joint(Body &upper, Body &lower) {
        SwingTwistConstraintSettings settings;
        settings.mPosition1 = settings.mPosition2 =
            upper.GetPosition() + Vec3(0.05f, 0.25f, 0.0f);
        settings.mTwistAxis1 = settings.mTwistAxis2 = Vec3::sAxisY();
        settings.mPlaneAxis1 = settings.mPlaneAxis2 = Vec3::sAxisX();
        settings.mNormalHalfConeAngle = settings.mPlaneHalfConeAngle = 0.7f;
        settings.mTwistMinAngle = -0.3f;
        settings.mTwistMaxAngle = 0.3f;
        return settings.Create(upper, lower);
    }
};

// Many small heaps: an island each.
class VillagesScene : public PerformanceTestScene {
public:
    const char *GetName() const override { return "villages"; }

    void StartTest(PhysicsSystem &physics, EMotionQuality) override {
        BodyInterface &bodies = physics.GetBodyInterface();
        lay_ground(bodies);
        RefConst<Shape> box = new BoxShape(Vec3::sReplicate(0.5f));
        for (int at = 0; at < 100; at++)
            for (int i = 0; i < 10; i++) {
                RVec3 place(Real(at % 10) * 8.0_r - 40.0_r + Real(i % 2) * 0.3_r, 0.5_r + Real(i) * 1.02_r,
                            Real(at / 10) * 8.0_r - 40.0_r);
                BodyCreationSettings settings(box, place, Quat::sIdentity(), EMotionType::Dynamic, Layers::MOVING);
                bodies.CreateAndAddBody(settings, EActivation::Activate);
            }
    }
};

struct scene {
    const char *name;
    unique_ptr<PerformanceTestScene> what;
    EMotionQuality quality;
};

std::vector<scene> scenes() {
    std::vector<scene> all;
    all.push_back({"pyramid", std::make_unique<PyramidScene>(), EMotionQuality::Discrete});
    all.push_back({"mesh", std::make_unique<ConvexVsMeshScene>(), EMotionQuality::Discrete});
    all.push_back({"mesh-casts", std::make_unique<ConvexVsMeshScene>(), EMotionQuality::LinearCast});
    all.push_back({"chains", std::make_unique<ChainsScene>(), EMotionQuality::Discrete});
    all.push_back({"villages", std::make_unique<VillagesScene>(), EMotionQuality::Discrete});
    for (scene &each : all)
        if (!each.what->Load())
            std::exit(1);
    return all;
}

// A world with a scene in it.
class world {
public:
    explicit world(const scene &of) : scene_(of) {
        physics_.Init(10240, 0, 65536, 20480, layers_, layer_pairs_, object_pairs_);
        of.what->StartTest(physics_, of.quality);
        BodyIDVector ids;
        physics_.GetBodies(ids);
        for (BodyID id : ids) {
            BodyLockWrite lock(physics_.GetBodyLockInterfaceNoLock(), id);
            if (!lock.GetBody().IsStatic())
                lock.GetBody().SetAllowSleeping(false); // So that all steps are alike.
        }
        physics_.OptimizeBroadPhase();
    }

    ~world() { scene_.what->StopTest(physics_); }

    void step(JobSystem *on) {
        if (physics_.Update(1.0f / 60.0f, 1, &memory_, on) != EPhysicsUpdateError::None) {
            std::fprintf(stderr, "%s: a step has failed\n", scene_.name);
            std::exit(1);
        }
    }

    unsigned long long hash() {
        uint64 hash = HashBytes(nullptr, 0);
        BodyInterface &bodies = physics_.GetBodyInterfaceNoLock();
        BodyIDVector ids;
        physics_.GetBodies(ids);
        for (BodyID id : ids) {
            RVec3 at = bodies.GetPosition(id);
            Quat turned = bodies.GetRotation(id);
            hash = HashBytes(&at, 3 * sizeof(Real), hash);
            hash = HashBytes(&turned, sizeof turned, hash);
        }
        return hash;
    }

private:
    const scene &scene_;
    BPLayerInterfaceImpl layers_;
    ObjectVsBroadPhaseLayerFilterImpl layer_pairs_;
    ObjectLayerPairFilterImpl object_pairs_;
    TempAllocatorImpl memory_{32 * 1024 * 1024};
    PhysicsSystem physics_;
};

pl_system *system_with(int workers) {
    pl_system *jobs = nullptr;
    pl_system_desc desc{};
    desc.size = sizeof desc;
    desc.workers = static_cast<std::uint32_t>(workers);
    desc.no_workers = workers == 0;
    must(pl_system_create(&desc, &jobs));
    return jobs;
}

// Steps a fresh world. With `in_a_job` each step is a job of that job system.
void check_one(const scene &of, int pool, int workers, JobSystem *on, pl_system *in_a_job) {
    world stepped(of);
    std::function<void()> step = [&] { stepped.step(on); };
    for (int i = 0; i < CHECKED_STEPS; i++) {
        if (in_a_job == nullptr) {
            step();
            continue;
        }
        pl_job job = 0;
        pl_job_desc desc{};
        desc.size = sizeof desc;
        desc.name = "step";
        desc.body = [](pl_context *, void *data) { (*static_cast<std::function<void()> *>(data))(); };
        desc.data = &step;
        must(pl_schedule(in_a_job, &desc, &job));
        must(pl_wait(in_a_job, job));
    }
    std::printf("%s %d %d %016llx\n", of.name, pool, workers, stepped.hash());
    std::fflush(stdout);
}

void check() {
    for (const scene &each : scenes()) {
        JobSystemSingleThreaded single(cMaxPhysicsJobs);
        check_one(each, 2, 0, &single, nullptr);
        for (int workers = 0; workers <= MOST_WORKERS; workers++) {
            JobSystemThreadPool own(cMaxPhysicsJobs, cMaxPhysicsBarriers, workers);
            check_one(each, 0, workers, &own, nullptr);
            pl_system *jobs = system_with(workers);
            {
                pl::jolt_job_system ours(jobs);
                must(ours.status());
                check_one(each, 1, workers, &ours, nullptr);
                if (workers % 4 == 1)
                    check_one(each, 1, workers, &ours, jobs);
            }
            must(pl_system_destroy(jobs));
        }
    }
}

// A world of a scene for each pool that there is. Where a world lies in memory is worth some percent, so they take
// turns at being made first, too.
void measure_lives(const scene &of, int lives, int blocks, int steps, JobSystem *const (&pools)[2]) {
    using clock = std::chrono::steady_clock;
    unique_ptr<world> worlds[2];
    for (int half = 0; half < 2; half++)
        if (int pool = (lives + half) % 2; pools[pool] != nullptr)
            worlds[pool] = std::make_unique<world>(of);
    std::vector<long long> times[2];
    for (int block = 0; block < blocks; block++) {
        for (int half = 0; half < 2; half++) {
            int pool = (block + half) % 2; // Each goes first as often as the other.
            if (pools[pool] == nullptr)
                continue;
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            for (int i = 0; i < steps; i++) {
                auto begin = clock::now();
                worlds[pool]->step(pools[pool]);
                std::chrono::nanoseconds time = clock::now() - begin;
                if (block > 0) // The first block warms up.
                    times[pool].push_back(time.count());
            }
        }
    }
    for (int pool = 0; pool < 2; pool++) {
        if (pools[pool] == nullptr)
            continue;
        std::printf("%d %s %016llx", pool, of.name, worlds[pool]->hash());
        for (long long time : times[pool])
            std::printf(" %lld", time);
        std::printf("\n");
    }
}

void measure_on(JobSystem *const (&pools)[2], int blocks, int steps) {
    std::vector<scene> all = scenes();
    for (const scene &each : all)
        for (int lives = 0; lives * LIFE < blocks; lives++)
            measure_lives(each, lives, std::min(blocks, LIFE), steps, pools);
}

// `only` is the one pool that there is, or BOTH.
constexpr int BOTH = 2;

void measure(int threads, int blocks, int steps, int only) {
    unique_ptr<JobSystemThreadPool> own;
    if (only != 1)
        own = std::make_unique<JobSystemThreadPool>(cMaxPhysicsJobs, cMaxPhysicsBarriers, threads - 1);
    if (only == 0)
        return measure_on({own.get(), nullptr}, blocks, steps);
    pl_system *jobs = system_with(threads - 1);
    {
        pl::jolt_job_system ours(jobs);
        must(ours.status());
        measure_on({own.get(), &ours}, blocks, steps);
    }
    must(pl_system_destroy(jobs));
}

} // namespace

int main(int argc, char **argv) {
    RegisterDefaultAllocator();
    Factory::sInstance = new Factory();
    RegisterTypes();
    int code = 0;
    if (argc == 2 && std::strcmp(argv[1], "check") == 0) {
        check();
    } else if ((argc == 5 || argc == 6) && std::strcmp(argv[1], "time") == 0 && std::atoi(argv[2]) > 0) {
        measure(std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), argc == 6 ? std::atoi(argv[5]) : BOTH);
    } else {
        std::fprintf(stderr, "usage: scenes check | scenes time THREADS BLOCKS STEPS [POOL]\n");
        code = 2;
    }
    UnregisterTypes();
    delete Factory::sInstance;
    Factory::sInstance = nullptr;
    return code;
}
