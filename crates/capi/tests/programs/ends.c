/* The end of a job system while its jobs make calls, and while what they leave makes some. */
#include <paceline.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ENDS = 1000, STATUSES = 32 };

static pl_system *jobs;
static pl_job other;
static unsigned counts[STATUSES], released;

static void count(pl_status status) { __atomic_fetch_add(&counts[status % STATUSES], 1, __ATOMIC_RELAXED); }

/* Makes another one like itself until that is refused. */
static void goes_on(pl_context *cx, void *data) {
    pl_job_desc next;
    (void)cx;
    memset(&next, 0, sizeof next);
    next.size = sizeof next;
    next.body = goes_on;
    next.data = data;
    count(pl_flush(jobs));
    count(pl_schedule(jobs, &next, NULL));
}

static void ends_beside_calls(void) {
    int end, job, status;
    for (end = 0; end < ENDS; end++) {
        pl_system_desc desc;
        pl_job_desc first;
        memset(&desc, 0, sizeof desc);
        desc.size = sizeof desc;
        desc.workers = 2;
        if (pl_system_create(&desc, &jobs) != PL_OK)
            return;
        memset(&first, 0, sizeof first);
        first.size = sizeof first;
        first.body = goes_on;
        for (job = 0; job < 8; job++)
            pl_schedule(jobs, &first, NULL);
        pl_flush(jobs);
        if (pl_system_destroy(jobs) != PL_OK)
            printf("not destroyed\n");
    }
    for (status = 0; status < STATUSES; status++) {
        if (counts[status] != 0)
            printf("%s\n", pl_status_name((uint32_t)status));
    }
}

static void nothing(pl_context *cx, void *data) {
    (void)cx;
    (void)data;
}

/* Is called in the end itself, which gives up the event that the job waits for. */
static void calls(void *data) {
    pl_job late;
    (void)data;
    released += pl_event_complete(jobs, other) == PL_OK;
    released += pl_event_create(jobs, "late", 1, &late) == PL_OK;
}

static void ends_with_a_release_that_calls(void) {
    pl_job gate;
    pl_job_desc desc;
    pl_system_create(NULL, &jobs);
    pl_event_create(jobs, "gate", 1, &gate);
    memset(&desc, 0, sizeof desc);
    desc.size = sizeof desc;
    desc.body = nothing;
    desc.release = calls;
    desc.after = &gate;
    desc.after_count = 1;
    pl_schedule(jobs, &desc, NULL);
    /* This event may be given up before the gate: then it is no longer one that can be completed. */
    pl_event_create(jobs, "other", 1, &other);
    printf("destroyed: %s\n", pl_status_name((uint32_t)pl_system_destroy(jobs)));
    printf("calls: %s\n", released >= 1 ? "answered" : "refused");
}

int main(void) {
    alarm(100);
    ends_beside_calls();
    ends_with_a_release_that_calls();
    return 0;
}
