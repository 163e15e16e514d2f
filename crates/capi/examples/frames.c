/* Frames with a deadline, a trace of them, and what the job system says of itself. */
#include "example.h"

#include <string.h>

static void step(pl_context *cx, void *data) {
    (void)cx;
    ++*(int *)data;
}

int main(int argc, char **argv) {
    pl_system *jobs;
    char text[4096];
    size_t needed, workers;
    uint64_t frames, events, lost, left;
    int steps = 0;

    MUST(pl_system_create(NULL, &jobs));
    if (argc > 1)
        MUST(pl_trace_start(jobs, argv[1]));
    for (int i = 0; i < 3; i++) {
        pl_frame frame;
        pl_job stepped;
        MUST(pl_frame_begin(jobs, "update", 16666667, &frame));
        MUST(pl_schedule(
            jobs,
            &(pl_job_desc){
                .size = sizeof(pl_job_desc), .name = "step", .body = step, .data = &steps},
            &stepped));
        MUST(pl_wait(jobs, stepped));
        MUST(pl_counter(jobs, "steps", steps));
        MUST(pl_frame_remaining(jobs, frame, &left));
        MUST(pl_frame_end(jobs, frame));
        printf("step %d, within the frame: %d\n", steps, left <= 16666667);
    }
    if (argc > 1) {
        MUST(pl_trace_finish(jobs, &events, &lost));
        printf("events: %d, lost: %d\n", events > 0, (int)lost);
    }
    MUST(pl_stat(jobs, "frames", &frames));
    MUST(pl_resize(jobs, 1));
    MUST(pl_workers(jobs, &workers));
    printf("%d frames; %d worker\n", (int)frames, (int)workers);

    MUST(pl_explain(jobs, text, sizeof text, &needed));
    printf("explained: %d\n", needed > 1 && strstr(text, "worker") != NULL);
    MUST(pl_report(jobs, text, sizeof text, &needed));
    printf("reported: %d\n", needed > 1);
    MUST(pl_stats_text(jobs, text, 8, &needed)); /* A buffer that is too small gets the beginning. */
    printf("statistics: %zu of more than 100: %d\n", strlen(text), needed > 100);
    MUST(pl_system_destroy(jobs));
    return 0;
}
