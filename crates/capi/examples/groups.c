/* A gang: jobs that wait for each other by means that the job system does not see, as the solvers of physics
 * libraries do. One worker runs one of them; the thread that waits has to run the other one. */
#include "example.h"

static volatile int here[2];
static volatile int stranger_has_run;

/* Goes on when both are there. */
static void solve(pl_context *cx, void *data) {
    int self = *(const int *)data;
    (void)cx;
    here[self] = 1;
    while (!here[!self])
        pl_flush(pl_context_system(cx));
}

static void stranger(pl_context *cx, void *data) {
    (void)cx;
    (void)data;
    stranger_has_run = 1;
}

static void told(const char *what, pl_status status) {
    printf("%s: %s", what, pl_status_name(status));
    if (status != PL_OK)
        printf(": %s", pl_last_error());
    printf("\n");
}

int main(void) {
    pl_system *jobs;
    pl_system_desc system = {.size = sizeof system, .workers = 1};
    pl_job_desc job = {.size = sizeof job, .name = "solve", .body = solve};
    pl_group physics;
    pl_job gang[2], gate, other;
    int seats[2] = {0, 1};
    int32_t is_worth = 0;

    MUST(pl_system_create(&system, &jobs));
    MUST(pl_group_create(jobs, "physics", &physics));
    job.group = physics;
    for (int i = 0; i < 2; i++) {
        job.data = &seats[i];
        MUST(pl_schedule(jobs, &job, &gang[i]));
    }
    for (int i = 0; i < 2; i++)
        told("solved", pl_group_wait(jobs, physics, gang[i]));

    /* Beside programs that want all CPUs a gang may be done sooner by the thread that waits for it. */
    MUST(pl_groups_are_worth_sharing(jobs, &is_worth));
    printf("next step: %s\n", is_worth ? "shared" : "alone");

    /* A wait of the group may be for a job of another one, and has a time if it wants. */
    MUST(pl_event_create(jobs, "gate", 1, &gate));
    told("gate", pl_group_wait_timeout(jobs, physics, gate, 1000000));
    MUST(pl_event_complete(jobs, gate));
    told("gate", pl_group_wait(jobs, physics, gate));

    MUST(pl_group_destroy(jobs, physics));
    told("gone", pl_schedule(jobs, &job, NULL));
    told("none", pl_group_wait(jobs, 0, gang[0]));
    job = (pl_job_desc){.size = sizeof job, .name = "stranger", .body = stranger};
    MUST(pl_schedule(jobs, &job, &other));
    MUST(pl_wait(jobs, other));
    printf("a stranger: %d\n", stranger_has_run);
    MUST(pl_system_destroy(jobs));
    return 0;
}
