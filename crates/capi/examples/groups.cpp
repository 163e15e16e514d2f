// A gang in C++: jobs that wait for each other at a barrier of their own.
#include <paceline.hpp>

#include <atomic>
#include <cstdio>
#include <vector>

using namespace std::chrono_literals;

int main() {
    pl::system jobs(2);
    pl::group physics = jobs.group("physics");
    const int members = 3; // Two workers, and the thread that waits.
    std::atomic<int> here{0};
    std::vector<pl::job> gang;
    for (int i = 0; i < members; i++) {
        gang.push_back(jobs.schedule(
            "solve",
            [&here] {
                ++here;
                while (here < members) {
                }
            },
            pl::options().in(physics)));
    }
    for (pl::job member : gang)
        physics.wait(member);
    std::printf("%d have met\n", here.load());
    // Beside programs that want all CPUs a gang may be done sooner by the thread that waits for it.
    std::printf("next step: %s\n", jobs.groups_are_worth_sharing() ? "shared" : "alone");

    pl::event gate = jobs.event("gate");
    std::printf("the gate is open: %d\n", physics.wait_for(gate, 1ms));
    gate.complete();
    std::printf("the gate is open: %d\n", physics.wait_for(gate, 1s));
    try {
        physics.wait(pl::job(12345));
    } catch (const pl::error &refused) {
        std::printf("%s\n", pl_status_name(refused.status()));
    }
    return 0;
}
