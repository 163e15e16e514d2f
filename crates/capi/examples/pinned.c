/* Jobs that one thread alone may run: what belongs to the main thread, such as windows. */
#include "example.h"

static int windows;

static void loads(pl_context *cx, void *data) {
    (void)cx;
    *(int *)data = 42;
}

/* Only the main thread may touch the windows, and nothing guards them. */
static void shows(pl_context *cx, void *data) {
    (void)cx;
    windows++;
    printf("window %d shows %d\n", windows, *(int *)data);
}

/* Called on any thread: what a loop of messages would be told. */
static void told(void *data) {
    ++*(int *)data;
}

static void forgets(void *data) {
    printf("told %d times\n", *(int *)data);
}

int main(void) {
    pl_system *jobs;
    pl_pin main_thread;
    int mesh = 0, times = 0;
    size_t ran;
    pl_job loaded, shown, left;
    pl_pin_desc pin = {.size = sizeof pin, .on_ready = told, .data = &times, .release = forgets};
    pl_job_desc load = {.size = sizeof load, .name = "load", .body = loads, .data = &mesh};
    pl_job_desc show = {.size = sizeof show, .name = "show", .body = shows, .data = &mesh};

    MUST(pl_system_create(NULL, &jobs));
    MUST(pl_pin_thread(jobs, &pin, &main_thread));
    MUST(pl_schedule(jobs, &load, &loaded));
    show.pin = main_thread;
    show.after = &loaded;
    show.after_count = 1;
    MUST(pl_schedule(jobs, &show, &shown));
    MUST(pl_wait(jobs, shown)); /* It runs here. */

    MUST(pl_schedule(jobs, &show, &shown));
    MUST(pl_run_pinned_jobs(jobs, &ran)); /* Once a frame, for instance. */
    printf("ran %d\n", (int)ran);

    MUST(pl_schedule(jobs, &show, &left));
    MUST(pl_unpin_thread(jobs));
    printf("left: %s\n", pl_status_name(pl_wait(jobs, left)));
    printf("again: %s", pl_status_name(pl_schedule(jobs, &show, NULL)));
    printf(": %s\n", pl_last_error());
    printf("run: %s", pl_status_name(pl_run_pinned_jobs(jobs, NULL)));
    printf(": %s\n", pl_last_error());
    MUST(pl_system_destroy(jobs));
    return 0;
}
