/* Frames with a deadline, a trace of them, and what the job system says of itself. */
#include "example.h"

#include <string.h>

static void step(pl_context *cx, void *data) {
    (void)cx;
    ++*(int *)data;
}

/* While a picture is drawn, a sound has to be mixed sooner: of two frames in flight, the jobs of the one with
 * the earlier deadline go first, those of graphs as well. Streaming has a fourth of the workers' time, and
 * never more than one of them. */
static void two_frames(void) {
    pl_system *jobs;
    pl_frame picture, sound;
    pl_job made[3];
    int steps = 0;
    MUST(pl_system_create(
        &(pl_system_desc){.size = sizeof(pl_system_desc), .no_workers = 1, .shares = {25}, .shares_at_most = {1}}, &jobs));
    MUST(pl_frame_begin(jobs, "picture", 16666667, &picture));
    MUST(pl_frame_begin(jobs, "sound", 5000000, &sound));
    pl_job_desc job = {.size = sizeof job, .name = "draw", .body = step, .data = &steps, .frame = picture};
    MUST(pl_schedule(jobs, &job, &made[0]));
    job = (pl_job_desc){.size = sizeof job, .name = "mix", .body = step, .data = &steps, .frame = sound};
    MUST(pl_schedule(jobs, &job, &made[1]));
    job = (pl_job_desc){.size = sizeof job, .name = "stream", .body = step, .data = &steps, .lane = PL_LANE_SHARE_1};
    MUST(pl_schedule(jobs, &job, &made[2]));
    for (int i = 0; i < 3; i++)
        MUST(pl_wait(jobs, made[i]));
    pl_graph effects;
    pl_node_desc node = {.size = sizeof node, .name = "effects", .body = step, .data = &steps};
    MUST(pl_graph_create(jobs, "effects", &effects));
    MUST(pl_graph_add(jobs, effects, &node, NULL));
    MUST(pl_graph_build(jobs, effects));
    MUST(pl_graph_start_in(jobs, effects, sound, NULL));
    MUST(pl_graph_wait(jobs, effects));
    MUST(pl_frame_end(jobs, sound));
    if (pl_graph_start_in(jobs, effects, sound, NULL) == PL_UNKNOWN)
        printf("a graph that starts in it: %s\n", pl_last_error());
    MUST(pl_graph_destroy(jobs, effects));
    printf("%d steps; a job of a frame that has ended: %s\n", steps,
           pl_schedule(jobs, &(pl_job_desc){.size = sizeof job, .body = step, .frame = sound}, NULL) ==
                   PL_UNKNOWN
               ? pl_last_error()
               : "scheduled");
    MUST(pl_frame_end(jobs, picture));
    MUST(pl_system_destroy(jobs));
}

/* Where all CPUs are busy, a scheduler in user space may decide better if it knows what threads wait for.
 * Where there is none, as here, it costs nothing. */
static void hints(void) {
    pl_system *jobs;
    char text[4096];
    MUST(pl_system_create(&(pl_system_desc){.size = sizeof(pl_system_desc), .no_workers = 1, .hints = 1},
                          &jobs));
    MUST(pl_explain(jobs, text, sizeof text, NULL));
    printf("hints: %s\n", strstr(text, "No hints: ") || strstr(text, "Hints: ") ? "asked for" : "off");
    MUST(pl_system_destroy(jobs));
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
    two_frames();
    hints();
    return 0;
}
