/* Forks while other threads hold what they lock for a moment: no call of a child waits for them for ever. */
#define _GNU_SOURCE

#include <paceline.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 10, SITES = 200 };

static pl_system *jobs;
static int ends;

static void body(pl_context *cx, void *data) {
    (void)cx;
    (void)data;
}

/* A job of each of two hundred places: each is noted under a lock of the process. */
static pl_status make_many(pl_system *at) {
    pl_status status = PL_OK;
    static const char *const names[] = {"a", "b", "c", "d"};
    for (unsigned line = 1; line <= SITES && status == PL_OK; line++) {
        pl_site site = {.file = "forks.c", .line = line};
        pl_job_desc desc = {.size = sizeof desc, .name = names[line % 4], .body = body, .site = &site};
        pl_job job = 0;
        status = pl_schedule(at, &desc, &job);
        if (status == PL_OK)
            status = pl_wait(at, job);
    }
    return status;
}

static void *sites(void *unused) {
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED))
        make_many(jobs);
    return unused;
}

static void *tokens(void *unused) {
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
        pl_token token = 0;
        pl_frame frame = 0;
        pl_token_create(jobs, 0, &token);
        pl_token_destroy(jobs, token);
        pl_frame_begin(jobs, "frame", 1000000, &frame);
        pl_frame_end(jobs, frame);
    }
    return unused;
}

static int is_one_of(pl_status status, pl_status other) { return status == PL_OK || status == other; }

/* A call that hangs ends the child by the alarm. */
static int child(void) {
    pl_system *own = NULL;
    pl_token token = 0;
    pl_frame frame = 0;
    int is_fine;
    alarm(60);
    is_fine = is_one_of(pl_token_create(jobs, 0, &token), PL_FORKED);
    is_fine &= is_one_of(pl_frame_begin(jobs, "frame", 1000000, &frame), PL_FORKED);
    is_fine &= pl_system_create(NULL, &own) == PL_OK && make_many(own) == PL_OK;
    is_fine &= pl_system_destroy(own) == PL_OK && pl_system_destroy(jobs) == PL_OK;
    return is_fine ? 0 : 1;
}

int main(void) {
    pthread_t threads[2];
    int fine = 0;
    if (pl_system_create(NULL, &jobs) != PL_OK)
        return 1;
    pthread_create(&threads[0], NULL, sites, NULL);
    pthread_create(&threads[1], NULL, tokens, NULL);
    for (int i = 0; i < FORKS; i++) {
        int status = 1;
        pid_t forked = fork();
        if (forked == 0)
            _exit(child());
        waitpid(forked, &status, 0);
        fine += status == 0;
    }
    __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%d of %d\n", fine, FORKS);
    return pl_system_destroy(jobs) == PL_OK ? 0 : 1;
}
