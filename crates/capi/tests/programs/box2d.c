/* What a step of Box2D does with its callbacks: a gang that waits for each other, and a task beside it that the
 * thread finishes later. In C and in C++. */
#include <paceline_box2d.h>
#include <stdio.h>

static pl_box2d physics;
static volatile int here[3];

/* Goes on when all three are there. */
static void solve(void *context) {
    volatile int *mine = (volatile int *)context;
    *mine += 1;
    for (int i = 0; i < 3; i++)
        while (here[i] < *mine)
            pl_flush(physics.jobs);
}

static void split(void *context) { *(int *)context += 1; }

int main(void) {
    pl_system *jobs;
    pl_system_desc desc;
    int splits = 0;
    memset(&desc, 0, sizeof desc);
    desc.size = sizeof desc;
    desc.workers = 1;
    if (pl_system_create(&desc, &jobs) != PL_OK || pl_box2d_begin(&physics, jobs) != PL_OK)
        return 1;
    printf("%d threads\n", physics.worker_count);
    for (int step = 0; step < 100; step++) {
        void *beside = pl_box2d_enqueue(split, &splits, &physics);
        void *solver = pl_box2d_enqueue(solve, (void *)&here[1], &physics);
        here[2] += 1; /* With two threads there is room for two. */
        solve((void *)&here[0]);
        pl_box2d_finish(solver, &physics);
        pl_box2d_finish(beside, &physics);
        pl_box2d_finish(NULL, &physics);
    }
    printf("%d steps, %d splits\n", here[0], splits);
    if (pl_box2d_end(&physics) != PL_OK || pl_system_destroy(jobs) != PL_OK)
        return 1;
    return 0;
}
