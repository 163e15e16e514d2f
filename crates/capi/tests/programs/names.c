/* Names are what lies at their address now, and nothing is read behind them: not the next page, which is closed. */
#define _DEFAULT_SOURCE

#include <paceline.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void body(pl_context *cx, void *data) {
    pl_fail(cx, data);
}

/* Whether a job of this name is told by its name, once it has failed. */
static int is_told(pl_system *jobs, const char *name) {
    char text[96];
    pl_job job;
    pl_job_desc desc = {.size = sizeof desc, .name = name, .body = body, .data = (void *)"it was to"};
    if (pl_schedule(jobs, &desc, &job) != PL_OK || pl_wait(jobs, job) != PL_FAILED)
        return 0;
    snprintf(text, sizeof text, "job '%s' failed: it was to", name);
    return strcmp(pl_last_error(), text) == 0;
}

int main(void) {
    enum { LONGEST = 40, TIMES = 3 };
    pl_system_desc desc = {.size = sizeof desc, .no_workers = 1};
    pl_system *systems[2];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int told = 0, wrong = 0;
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        return 1;
    for (int i = 0; i < 2; i++)
        pl_system_create(&desc, &systems[i]);
    for (size_t length = 1; length <= LONGEST; length++) {
        char *name = pages + page - length - 1;
        for (int time = 0; time < TIMES; time++) {
            memset(name, 'a' + time, length); /* Another text at the same address. */
            name[length] = 0;
            if (time > 0) { /* It is not a job that has the new text first. */
                pl_job event;
                pl_event_create(systems[0], name, 1, &event);
                pl_event_complete(systems[0], event);
            }
            for (int i = 0; i < 2 * TIMES; i++)
                *(is_told(systems[i % 2], name) ? &told : &wrong) += 1;
            name[length / 2] = 0; /* A shorter one. */
            *(is_told(systems[0], name) ? &told : &wrong) += 1;
        }
    }
    printf("told: %d, wrong: %d\n", told, wrong);
    for (int i = 0; i < 2; i++)
        pl_system_destroy(systems[i]);
    return 0;
}
