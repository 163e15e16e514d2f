/* Loops over arrays: in place, and as a job with dependencies; sums without a lock. */
#include "example.h"

enum { COUNT = 100000 };

static float values[COUNT];

static void fill(pl_context *cx, size_t begin, size_t end, void *data) {
    float *to = data;
    (void)cx;
    for (size_t i = begin; i < end; i++)
        to[i] = 0.5f;
}

struct sums {
    double *of_thread; /* One for each number that pl_context_worker can return. */
};

static void add_up(pl_context *cx, size_t begin, size_t end, void *data) {
    const struct sums *sums = data;
    double sum = 0;
    for (size_t i = begin; i < end; i++)
        sum += values[i];
    sums->of_thread[pl_context_worker(cx)] += sum;
}

static void let_go(void *data) {
    (void)data; /* The job's copy of the sums: what it points to is needed until the end of main. */
    printf("the loop is gone\n");
}

int main(void) {
    pl_system *jobs;
    size_t slots, parallelism;
    double sum = 0;
    pl_job summed;

    MUST(pl_system_create(NULL, &jobs));
    MUST(pl_parallel_for(jobs, &(pl_loop_desc){.size = sizeof(pl_loop_desc),
                                               .name = "fill",
                                               .body = fill,
                                               .data = values,
                                               .count = COUNT}));
    MUST(pl_thread_slots(jobs, &slots));
    MUST(pl_parallelism(jobs, &parallelism));
    struct sums sums = {calloc(slots, sizeof(double))};
    MUST(pl_schedule_for(jobs,
                         &(pl_loop_desc){.size = sizeof(pl_loop_desc),
                                         .name = "add up",
                                         .body = add_up,
                                         .data = &sums,
                                         .data_size = sizeof sums,
                                         .release = let_go,
                                         .count = COUNT,
                                         .grain = 1000},
                         &summed));
    MUST(pl_wait(jobs, summed));
    for (size_t i = 0; i < slots; i++)
        sum += sums.of_thread[i];
    MUST(pl_system_destroy(jobs));
    free(sums.of_thread);
    printf("%.0f; one thread or more: %d\n", sum, parallelism >= 1);
    return 0;
}
