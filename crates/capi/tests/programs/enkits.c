/* What programs call of enkiTS: sets with ranges, what comes after what, completion actions, pinned tasks. */
#include <TaskScheduler_c.h>
#include <stdio.h>

enum { ITEMS = 10000, RUNS = 200 };

static enkiTaskScheduler *scheduler;
static unsigned seen[ITEMS];
static unsigned per_thread[64];
static unsigned out_of_bounds, short_parts, order[4], ordered, deleted, on_thread_0;

static void count(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    (void)args;
    if (end - start < 16)
        __atomic_fetch_add(&short_parts, 1, __ATOMIC_RELAXED);
    if (thread >= enkiGetNumTaskThreads(scheduler) || thread != enkiGetThreadNum(scheduler))
        __atomic_fetch_add(&out_of_bounds, 1, __ATOMIC_RELAXED);
    for (uint32_t i = start; i < end; i++)
        seen[i]++;
    per_thread[thread % 64] += end - start; /* Without a lock: a number is one thread's at a time. */
}

static void note(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    (void)start;
    (void)end;
    (void)thread;
    order[*(unsigned *)args] = __atomic_add_fetch(&ordered, 1, __ATOMIC_RELAXED);
}

static void inner(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    enkiTaskSet *set = (enkiTaskSet *)args;
    (void)start;
    (void)end;
    (void)thread;
    enkiAddTaskSet(scheduler, set);
    enkiWaitForTaskSet(scheduler, set);
}

static void end_set(void *args, uint32_t thread) {
    (void)thread;
    enkiDeleteTaskSet(scheduler, (enkiTaskSet *)args);
    __atomic_fetch_add(&deleted, 1, __ATOMIC_RELAXED);
}

static void on_first(void *args) {
    (void)args;
    on_thread_0++;
}

static void ranges(void) {
    unsigned wrong = 0, sum = 0;
    enkiTaskSet *set = enkiCreateTaskSet(scheduler, count);
    for (int run = 0; run < RUNS; run++) {
        enkiAddTaskSetMinRange(scheduler, set, NULL, ITEMS, 16);
        enkiWaitForTaskSet(scheduler, set);
        if (!enkiIsTaskSetComplete(scheduler, set))
            wrong++;
    }
    for (int i = 0; i < ITEMS; i++)
        wrong += seen[i] != RUNS;
    for (int i = 0; i < 64; i++)
        sum += per_thread[i];
    printf("ranges: %u wrong, %u out of bounds, %u short, sum %u\n", wrong, out_of_bounds, short_parts, sum);
    enkiDeleteTaskSet(scheduler, set);
}

/* 0, then 1 and 2, then 3. */
static void dependencies(void) {
    static unsigned numbers[4] = {0, 1, 2, 3};
    static const int edges[4][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
    enkiTaskSet *sets[4];
    enkiDependency *made[4];
    unsigned wrong = 0;
    for (int i = 0; i < 4; i++) {
        sets[i] = enkiCreateTaskSet(scheduler, note);
        enkiSetArgsTaskSet(sets[i], &numbers[i]);
    }
    for (int i = 0; i < 4; i++) {
        made[i] = enkiCreateDependency(scheduler);
        enkiSetDependency(made[i], enkiGetCompletableFromTaskSet(sets[edges[i][0]]),
                          enkiGetCompletableFromTaskSet(sets[edges[i][1]]));
    }
    for (int run = 0; run < RUNS; run++) {
        ordered = 0;
        enkiAddTaskSet(scheduler, sets[0]);
        enkiWaitForTaskSet(scheduler, sets[3]);
        wrong += ordered != 4 || order[0] != 1 || order[3] != 4;
    }
    printf("dependencies: %u wrong\n", wrong);
    enkiWaitForAll(scheduler);
    for (int i = 0; i < 4; i++)
        enkiDeleteDependency(scheduler, made[i]);
    for (int i = 0; i < 4; i++)
        enkiDeleteTaskSet(scheduler, sets[i]);
}

/* An action that ends the set which it comes after. */
static void actions(void) {
    static unsigned number = 0;
    enkiCompletionAction *all[RUNS];
    for (int run = 0; run < RUNS; run++) {
        enkiTaskSet *set = enkiCreateTaskSet(scheduler, note);
        struct enkiParamsCompletionAction params;
        enkiSetArgsTaskSet(set, &number);
        all[run] = enkiCreateCompletionAction(scheduler, NULL, end_set);
        params = enkiGetParamsCompletionAction(all[run]);
        params.pArgsPostComplete = set;
        params.pDependency = enkiGetCompletableFromTaskSet(set);
        enkiSetParamsCompletionAction(all[run], params);
        enkiAddTaskSet(scheduler, set);
    }
    enkiWaitForAll(scheduler);
    printf("actions: %u of %d\n", deleted, RUNS);
    for (int run = 0; run < RUNS; run++)
        enkiDeleteCompletionAction(scheduler, all[run]);
}

static void pinned(void) {
    enkiPinnedTask *task = enkiCreatePinnedTask(scheduler, on_first, 0);
    enkiAddPinnedTask(scheduler, task);
    enkiRunPinnedTasks(scheduler);
    enkiWaitForPinnedTask(scheduler, task);
    enkiAddPinnedTask(scheduler, task);
    enkiWaitForPinnedTask(scheduler, task);
    enkiAddPinnedTask(scheduler, task);
    enkiWaitForNewPinnedTasks(scheduler);
    printf("pinned: %u\n", on_thread_0);
    enkiDeletePinnedTask(scheduler, task);
}

static void nested(void) {
    enkiTaskSet *sets[8], *around[8];
    static unsigned number = 0;
    for (int i = 0; i < 8; i++) {
        sets[i] = enkiCreateTaskSet(scheduler, note);
        enkiSetArgsTaskSet(sets[i], &number);
        around[i] = enkiCreateTaskSet(scheduler, inner);
        enkiAddTaskSetArgs(scheduler, around[i], sets[i], 1);
    }
    enkiWaitForAll(scheduler);
    printf("nested: %d\n", enkiIsTaskSetComplete(scheduler, sets[7]));
    for (int i = 0; i < 8; i++) {
        enkiDeleteTaskSet(scheduler, around[i]);
        enkiDeleteTaskSet(scheduler, sets[i]);
    }
}

static void rests(void *data) {
    (void)data;
    for (volatile unsigned i = 0; i < 100000; i++)
        ;
}

static void blocks(pl_context *cx, void *data) { pl_blocking(cx, rests, data); }

/* Other jobs block workers, so further threads take their places, and run tasks. */
static void beside_others(pl_system *jobs) {
    enkiTaskSet *set = enkiCreateTaskSet(scheduler, count);
    pl_job_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.size = sizeof desc;
    desc.body = blocks;
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < 4; i++)
            pl_schedule(jobs, &desc, NULL);
        enkiAddTaskSetMinRange(scheduler, set, NULL, ITEMS, 16);
        enkiWaitForTaskSet(scheduler, set);
    }
    printf("beside others: %u out of bounds\n", out_of_bounds);
    enkiDeleteTaskSet(scheduler, set);
}

static void all(void) {
    ranges();
    dependencies();
    actions();
    pinned();
    nested();
    memset(seen, 0, sizeof seen);
    memset(per_thread, 0, sizeof per_thread);
    deleted = on_thread_0 = 0;
}

int main(void) {
    pl_system *jobs;
    pl_system_desc desc;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        scheduler = enkiNewTaskScheduler();
        enkiInitTaskSchedulerNumThreads(scheduler, threads);
        printf("%u threads\n", (unsigned)enkiGetNumTaskThreads(scheduler));
        all();
        enkiDeleteTaskScheduler(scheduler);
    }
    memset(&desc, 0, sizeof desc);
    desc.size = sizeof desc;
    desc.workers = 1;
    if (pl_system_create(&desc, &jobs) != PL_OK)
        return 1;
    scheduler = pl_enki_scheduler_on(jobs);
    enkiInitTaskScheduler(scheduler);
    printf("on the program's own: %s\n", enkiGetNumTaskThreads(scheduler) > 2 ? "any thread" : "2 threads");
    all();
    beside_others(jobs);
    enkiDeleteTaskScheduler(scheduler);
    return pl_system_destroy(jobs) == PL_OK ? 0 : 1;
}
