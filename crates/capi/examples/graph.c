/* A frame that is declared once, checked once and run many times, with the data of each run. */
#include "example.h"

enum { MOST = 1000 };

typedef struct world {
    float positions[MOST];
    size_t count; /* Of this frame. */
    size_t seen;
    int frame;
    int saves;
    int draws;
} world;

static size_t count(pl_context *cx, void *data) {
    (void)data;
    return ((world *)pl_context_run_data(cx))->count;
}

static void travel(pl_context *cx, size_t begin, size_t end, void *data) {
    world *w = pl_context_run_data(cx);
    const float *speed = data; /* The job's own data, of which the graph has a copy. */
    for (size_t i = begin; i < end; i++)
        w->positions[i] += *speed;
}

static void cull(pl_context *cx, void *data) {
    world *w = pl_context_run_data(cx);
    (void)data;
    w->seen = 0;
    for (size_t i = 0; i < w->count; i++)
        w->seen += w->positions[i] < 5.0f;
}

static int is_second(pl_context *cx, void *data) {
    (void)data;
    return ((world *)pl_context_run_data(cx))->frame % 2 == 0;
}

static void save(pl_context *cx, void *data) {
    (void)data;
    ((world *)pl_context_run_data(cx))->saves++;
}

static void draw(pl_context *cx, void *data) {
    world *w = pl_context_run_data(cx);
    (void)data;
    if (w->seen == 0)
        pl_fail(cx, "there is nothing to draw");
    w->draws++;
}

static void impatient(pl_context *cx, void *data) {
    pl_graph own = *(pl_graph *)data;
    pl_system *jobs = pl_context_system(cx);
    printf("in a job of it: run %s", pl_status_name(pl_graph_run(jobs, own, NULL)));
    printf(", wait %s", pl_status_name(pl_graph_wait(jobs, own)));
    printf(", destroy %s", pl_status_name(pl_graph_destroy(jobs, own)));
    printf(", end of all %s\n", pl_status_name(pl_system_destroy(jobs)));
}

static void told(const char *what, pl_status status) {
    printf("%s: %s", what, pl_status_name(status));
    if (status != PL_OK)
        printf(": %s", pl_last_error());
    printf("\n");
}

/* The sentence about a circle names all that are in it. */
static void circle(pl_system *jobs) {
    pl_graph graph;
    pl_node load, unpack;
    pl_node_desc job = {.size = sizeof job, .name = "load", .body = save};
    MUST(pl_graph_create(jobs, "level", &graph));
    MUST(pl_graph_add(jobs, graph, &job, &load));
    job = (pl_node_desc){.size = sizeof job, .name = "unpack", .body = save,
                         .after = &load, .after_count = 1};
    MUST(pl_graph_add(jobs, graph, &job, &unpack));
    MUST(pl_graph_add_dependency(jobs, graph, load, unpack));
    told("build", pl_graph_build(jobs, graph));
    told("run", pl_graph_run(jobs, graph, NULL));
    MUST(pl_graph_destroy(jobs, graph));
    told("destroy", pl_graph_destroy(jobs, graph));
}

/* What cannot be done while it runs. */
static void busy(pl_system *jobs) {
    pl_graph graph;
    pl_node_desc job = {.size = sizeof job, .name = "impatient", .body = impatient, .data = &graph};
    MUST(pl_graph_create(jobs, "busy", &graph));
    MUST(pl_graph_add(jobs, graph, &job, NULL));
    MUST(pl_graph_build(jobs, graph));
    told("too late", pl_graph_add(jobs, graph, &job, NULL));
    MUST(pl_graph_start(jobs, graph, NULL));
    told("second start", pl_graph_start(jobs, graph, NULL));
    MUST(pl_graph_wait(jobs, graph));
    told("second wait", pl_graph_wait(jobs, graph));
    MUST(pl_graph_destroy(jobs, graph));
}

int main(void) {
    static world w = {.count = MOST};
    pl_system *jobs;
    pl_system_desc system = {.size = sizeof system, .no_workers = 1};
    pl_graph frame;
    pl_node moved, culled, second;
    pl_node_desc node;
    float speed = 2.0f;
    char text[512];
    int32_t done;

    MUST(pl_system_create(&system, &jobs));
    MUST(pl_graph_create(jobs, "frame", &frame));
    node = (pl_node_desc){.size = sizeof node, .name = "simulate"};
    MUST(pl_graph_begin_nested(jobs, frame, &node, NULL));
    node = (pl_node_desc){.size = sizeof node, .name = "travel",
                          .loop_body = travel, .length = count,
                          .data = &speed, .data_size = sizeof speed};
    MUST(pl_graph_add(jobs, frame, &node, &moved));
    node = (pl_node_desc){.size = sizeof node, .name = "cull", .body = cull,
                          .after = &moved, .after_count = 1};
    MUST(pl_graph_add(jobs, frame, &node, &culled));
    MUST(pl_graph_end_nested(jobs, frame));
    node = (pl_node_desc){.size = sizeof node, .name = "second frame", .condition = is_second};
    MUST(pl_graph_add(jobs, frame, &node, &second));
    MUST(pl_graph_sync(jobs, frame, "simulated", NULL));
    node = (pl_node_desc){.size = sizeof node, .name = "save", .body = save,
                          .only_if = &second, .only_if_count = 1};
    MUST(pl_graph_add(jobs, frame, &node, NULL));
    node = (pl_node_desc){.size = sizeof node, .name = "draw", .body = draw, .on_main = 1};
    MUST(pl_graph_add(jobs, frame, &node, NULL));
    MUST(pl_graph_build(jobs, frame));
    MUST(pl_graph_text(jobs, frame, text, sizeof text, NULL));
    printf("%s\n", text);

    for (w.frame = 1; w.frame <= 3; w.frame++) {
        w.count = w.frame < 3 ? MOST : 10; /* A loop has the length of this run. */
        told("frame", pl_graph_run(jobs, frame, &w));
        printf("%d seen, position %.0f and %.0f, %d saves, %d draws\n", (int)w.seen,
               (double)w.positions[0], (double)w.positions[MOST - 1], w.saves, w.draws);
    }

    /* While it runs the thread can do something else. */
    w.positions[0] = 0;
    MUST(pl_graph_start(jobs, frame, &w));
    MUST(pl_graph_is_done(jobs, frame, &done));
    printf("done: %d\n", done);
    told("started", pl_graph_wait(jobs, frame));
    MUST(pl_graph_is_done(jobs, frame, &done));
    printf("done: %d, %d draws\n", done, w.draws);
    MUST(pl_graph_destroy(jobs, frame));

    circle(jobs);
    busy(jobs);
    MUST(pl_system_destroy(jobs));
    return 0;
}
