/* What can go wrong, and what the library says. */
#include "example.h"

static void load(pl_context *cx, void *data) {
    (void)data;
    pl_fail(cx, "no such file: level-7.map");
}

static void draw(pl_context *cx, void *data) {
    (void)cx;
    (void)data;
    printf("never\n");
}

static void piece(pl_context *cx, size_t begin, size_t end, void *data) {
    (void)data;
    if (begin <= 70 && 70 < end)
        pl_fail(cx, "piece 70 is broken");
}

static void wait_for_oneself(pl_context *cx, void *data) {
    pl_system *jobs = pl_context_system(cx);
    printf("inside: %s\n", pl_status_name(pl_wait(jobs, *(pl_job *)data)));
}

static void told(const char *what, pl_status status) {
    printf("%s: %s: %s\n", what, pl_status_name(status), pl_last_error());
}

int main(void) {
    pl_system *jobs;
    pl_job loaded, drawn, given_up, never;
    pl_job_desc job = {.size = sizeof job, .name = "load", .body = load, .site = PL_HERE};
    pl_loop_desc loop = {.size = sizeof loop, .body = piece, .count = 100};

    printf("version %s\n", pl_version());
    MUST(pl_system_create(&(pl_system_desc){.size = sizeof(pl_system_desc), .workers = 1}, &jobs));
    MUST(pl_schedule(jobs, &job, &loaded));
    job = (pl_job_desc){
        .size = sizeof job, .name = "draw", .body = draw, .after = &loaded, .after_count = 1,
        .site = PL_HERE};
    MUST(pl_schedule(jobs, &job, &drawn));
    told("load", pl_wait(jobs, loaded));
    told("draw", pl_wait(jobs, drawn));
    printf("at %s\n", PL_LAST_ERROR());
    printf("at %s\n", pl_last_error_at("elsewhere.c", 7));
    told("loop", pl_parallel_for(jobs, &loop));

    MUST(pl_event_create(jobs, "reply", 1, &given_up));
    MUST(pl_event_abandon(jobs, given_up));
    told("event", pl_wait(jobs, given_up));

    /* A job that waits for itself is told so, and goes on. */
    MUST(pl_event_create(jobs, "gate", 1, &given_up));
    job = (pl_job_desc){.size = sizeof job,
                        .name = "self",
                        .body = wait_for_oneself,
                        .data = &never,
                        .after = &given_up,
                        .after_count = 1};
    MUST(pl_schedule(jobs, &job, &never));
    MUST(pl_event_complete(jobs, given_up));
    MUST(pl_wait(jobs, never));

    /* Mistakes are statuses. */
    job.size = 0;
    told("size", pl_schedule(jobs, &job, NULL));
    told("null", pl_schedule(jobs, NULL, NULL));
    told("number", pl_wait(jobs, 12345678901234));
    MUST(pl_system_destroy(jobs));
    told("after the end", pl_wait(jobs, loaded));
    return 0;
}
