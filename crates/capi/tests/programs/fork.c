/* A child of a fork has no workers: each call says so, and none hangs. */
#define _POSIX_C_SOURCE 200809L

#include <paceline.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void body(pl_context *cx, void *data) {
    (void)cx;
    (void)data;
}

int main(void) {
    pl_system *jobs;
    pl_job job = 0, open = 0;
    pl_job_desc desc = {.size = sizeof desc, .name = "work", .body = body};
    pl_node_desc node = {.size = sizeof node, .name = "work", .body = body};
    pl_graph graph = 0;
    int status = 1;
    pl_system_create(NULL, &jobs);
    pl_schedule(jobs, &desc, &job);
    pl_wait(jobs, job);
    pl_event_create(jobs, "never", 1, &open);
    pl_graph_create(jobs, "frame", &graph);
    pl_graph_add(jobs, graph, &node, NULL);
    pl_graph_build(jobs, graph);
    pl_graph_start(jobs, graph, NULL);
    fflush(stdout);
    if (fork() == 0) {
        printf("schedule: %s\n", pl_status_name(pl_schedule(jobs, &desc, NULL)));
        printf("wait: %s\n", pl_status_name(pl_wait(jobs, open)));
        printf("why: %s\n", pl_last_error());
        printf("graph: %s\n", pl_status_name(pl_graph_wait(jobs, graph)));
        printf("destroy: %s\n", pl_status_name(pl_system_destroy(jobs)));
        printf("after: %s\n", pl_status_name(pl_wait(jobs, open)));
        fflush(stdout);
        _exit(0);
    }
    wait(&status);
    printf("parent: %d %s\n", status, pl_status_name(pl_schedule(jobs, &desc, &job)));
    printf("graph: %s\n", pl_status_name(pl_graph_wait(jobs, graph)));
    printf("waits: %s\n", pl_status_name(pl_wait(jobs, job)));
    printf("ends: %s\n", pl_status_name(pl_system_destroy(jobs)));
    return 0;
}
