/* What another library completes: events, also such as count; waits with a time; a thread without workers. */
#include "example.h"

static void say(pl_context *cx, void *data) {
    (void)cx;
    printf("%s\n", (const char *)data);
}

static void complete(pl_context *cx, void *data) {
    MUST(pl_event_complete(pl_context_system(cx), *(pl_job *)data));
    printf("found\n");
}

int main(void) {
    pl_system *jobs;
    pl_system_desc system = {.size = sizeof system, .no_workers = 1};
    pl_job loaded, parts, drawn, early, late;
    size_t ran;
    int has_run;

    MUST(pl_system_create(&system, &jobs));
    MUST(pl_warm_up(jobs, 64));
    MUST(pl_event_create(jobs, "loaded", 1, &loaded));
    MUST(pl_event_create(jobs, "parts", 3, &parts));
    MUST(pl_schedule(jobs,
                     &(pl_job_desc){.size = sizeof(pl_job_desc),
                                    .name = "draw",
                                    .body = say,
                                    .data = "drawn",
                                    .after = (pl_job[]){loaded, parts},
                                    .after_count = 2},
                     &drawn));
    printf("before: %s\n", pl_status_name(pl_wait_timeout(jobs, drawn, 1000)));
    MUST(pl_event_complete(jobs, loaded)); /* Any thread may do this. */
    for (int i = 0; i < 3; i++)
        MUST(pl_event_complete(jobs, parts));
    MUST(pl_wait(jobs, drawn));
    printf("once more: %s\n", pl_status_name(pl_event_complete(jobs, loaded)));

    /* One job is to wait for another that was made later. */
    MUST(pl_event_create(jobs, "gate", 1, &early));
    MUST(pl_schedule(jobs,
                     &(pl_job_desc){.size = sizeof(pl_job_desc),
                                    .body = say,
                                    .data = "second",
                                    .after = &early,
                                    .after_count = 1},
                     &late));
    MUST(pl_schedule(jobs,
                     &(pl_job_desc){.size = sizeof(pl_job_desc),
                                    .body = say,
                                    .data = "first",
                                    .quiet = 1},
                     &drawn));
    MUST(pl_add_dependency(jobs, late, drawn));
    printf("a circle: %s\n", pl_status_name(pl_add_dependency(jobs, late, late)));
    MUST(pl_event_complete(jobs, early));

    /* A job completes an event: what waits for the event runs the job. */
    MUST(pl_event_create(jobs, "found", 1, &loaded));
    MUST(pl_schedule(jobs,
                     &(pl_job_desc){.size = sizeof(pl_job_desc),
                                    .body = complete,
                                    .data = &loaded,
                                    .lane = PL_LANE_BACKGROUND},
                     &early));
    MUST(pl_add_completer(jobs, loaded, early));
    MUST(pl_wait(jobs, loaded));
    printf("of a body: %s\n", pl_status_name(pl_add_completer(jobs, late, early)));

    /* Without workers the program's own thread runs jobs when it likes. */
    MUST(pl_flush(jobs));
    MUST(pl_poll(jobs, &has_run));
    MUST(pl_pump(jobs, 1000000000, &ran));
    printf("polled %d, pumped %zu\n", has_run, ran);
    MUST(pl_system_destroy(jobs));
    return 0;
}
