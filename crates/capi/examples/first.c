/* A first frame: jobs that depend on each other, and a wait. */
#include "example.h"

struct world {
    int positions, visible;
};

static void integrate(pl_context *cx, void *data) {
    struct world *world = data;
    (void)cx;
    world->positions = 1000;
}

static void cull(pl_context *cx, void *data) {
    struct world *world = data;
    (void)cx;
    world->visible = world->positions / 4;
}

/* Small data go into the job itself: no allocation, and nothing to keep alive. */
struct greeting {
    char text[24];
    int times;
};

static void greet(pl_context *cx, void *data) {
    const struct greeting *greeting = data;
    (void)cx;
    printf("%s %d\n", greeting->text, greeting->times);
}

int main(void) {
    pl_system *jobs;
    pl_system_desc system = {.size = sizeof system, .workers = 2};
    struct world world = {0, 0};
    struct greeting hello = {"hello", 1};
    pl_job integrated, culled, greeted, all, saved;
    int done;

    MUST(pl_system_create(&system, &jobs));
    MUST(pl_schedule(jobs,
                     &(pl_job_desc){.size = sizeof(pl_job_desc),
                                    .name = "integrate",
                                    .body = integrate,
                                    .data = &world},
                     &integrated));
    MUST(pl_schedule(jobs,
                     &(pl_job_desc){.size = sizeof(pl_job_desc),
                                    .name = "cull",
                                    .body = cull,
                                    .data = &world,
                                    .after = &integrated,
                                    .after_count = 1},
                     &culled));
    MUST(pl_wait(jobs, culled));
    printf("%d of %d are visible\n", world.visible, world.positions);

    MUST(pl_schedule(jobs,
                     &(pl_job_desc){.size = sizeof(pl_job_desc),
                                    .name = "greet",
                                    .body = greet,
                                    .data = &hello,
                                    .data_size = sizeof hello},
                     &greeted));
    hello.times = 2; /* The job has its own copy. */
    MUST(pl_schedule(jobs,
                     &(pl_job_desc){.size = sizeof(pl_job_desc),
                                    .name = "save",
                                    .body = integrate,
                                    .data = &world,
                                    .lane = PL_LANE_BACKGROUND},
                     &saved));
    MUST(pl_combine(jobs, (pl_job[]){greeted, culled, saved}, 3, &all));
    MUST(pl_wait(jobs, all));
    MUST(pl_is_done(jobs, saved, &done));
    printf("done: %d\n", done);
    MUST(pl_system_destroy(jobs));
    return 0;
}
