/* Work that is called off, a worker that blocks, work that makes way, workers that are left to the rest. */
#include "example.h"

static pl_token level;
static volatile int has_begun;
static volatile int has_run;

static void never(pl_context *cx, void *data) {
    (void)cx;
    printf("never: %s\n", (const char *)data);
}

/* Until another job has run: a file or a device takes its time, too. */
static void block(void *data) {
    pl_system *jobs = data;
    while (!has_run)
        pl_flush(jobs);
}

static void reads(pl_context *cx, void *data) {
    (void)data;
    MUST(pl_blocking(cx, block, pl_context_system(cx)));
    printf("read\n");
}

/* A long job with a point, once in a while, at which others may go first. */
static void bakes(pl_context *cx, void *data) {
    int rested = 0;
    has_begun = 1;
    while (!rested)
        MUST(pl_checkpoint(cx, &rested));
    printf("baked, after '%s': %d\n", (const char *)data, has_run);
}

static void other(pl_context *cx, void *data) {
    (void)cx;
    (void)data;
    printf("other\n");
    has_run = 1;
}

static void told(const char *what, pl_status status) {
    printf("%s: %s", what, pl_status_name(status));
    if (status != PL_OK)
        printf(": %s", pl_last_error());
    printf("\n");
}

int main(void) {
    pl_system *jobs;
    pl_system_desc system = {.size = sizeof system, .workers = 1, .background_at_most = 1};
    pl_job_desc job = {.size = sizeof job, .name = "load", .body = never, .data = "load"};
    pl_loop_desc loop = {.size = sizeof loop, .count = 4};
    pl_token sound;
    pl_job loaded, drawn, gate, read, ran;
    int is;

    MUST(pl_system_create(&system, &jobs));
    MUST(pl_token_create(jobs, 0, &level));
    MUST(pl_token_create(jobs, level, &sound));
    MUST(pl_event_create(jobs, "gate", 1, &gate));
    job.token = sound;
    job.after = &gate;
    job.after_count = 1;
    MUST(pl_schedule(jobs, &job, &loaded));
    job = (pl_job_desc){.size = sizeof job, .name = "draw", .body = never, .data = "draw"};
    job.after = &loaded;
    job.after_count = 1;
    MUST(pl_schedule(jobs, &job, &drawn));
    MUST(pl_token_is_cancelled(jobs, sound, &is));
    printf("before: %d\n", is);
    MUST(pl_token_cancel(jobs, level));
    MUST(pl_token_is_cancelled(jobs, sound, &is));
    printf("after: %d\n", is);
    MUST(pl_event_complete(jobs, gate));
    printf("load: %s\n", pl_status_name(pl_wait(jobs, loaded)));
    printf("draw: %s\n", pl_status_name(pl_wait(jobs, drawn)));
    MUST(pl_token_destroy(jobs, sound));
    told("gone", pl_token_cancel(jobs, sound));
    told("none", pl_token_cancel(jobs, 0));
    loop.token = level;
    told("loop", pl_parallel_for(jobs, &loop));

    /* The only worker blocks; another one runs what it waits for. */
    job = (pl_job_desc){.size = sizeof job, .name = "read", .body = reads, .lane = PL_LANE_BACKGROUND};
    MUST(pl_schedule(jobs, &job, &read));
    job = (pl_job_desc){.size = sizeof job, .name = "other", .body = other, .lane = PL_LANE_BACKGROUND};
    MUST(pl_schedule(jobs, &job, &ran));
    while (!has_run) /* This thread stays out of it. */
        MUST(pl_flush(jobs));
    told("read", pl_wait(jobs, read));
    told("other", pl_wait(jobs, ran));

    /* The only worker is in the middle of something long that nobody waits for. */
    has_run = 0;
    job = (pl_job_desc){.size = sizeof job, .name = "bake", .body = bakes, .data = "other"};
    job.lane = PL_LANE_BACKGROUND;
    MUST(pl_schedule(jobs, &job, &read));
    while (!has_begun)
        MUST(pl_flush(jobs));
    job = (pl_job_desc){.size = sizeof job, .name = "other", .body = other};
    MUST(pl_schedule(jobs, &job, &ran));
    while (!has_run)
        MUST(pl_flush(jobs));
    told("bake", pl_wait(jobs, read));
    MUST(pl_system_destroy(jobs));
    return 0;
}
