/* What programs for enkiTS do that takes care: tasks that wait for tasks, external threads, things that are deleted as
 * soon as they may be, an allocator. */
#include <TaskScheduler_c.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

enum { RUNS = 1000, LEVELS = 14 };

static enkiTaskScheduler *scheduler;
static unsigned wrong, items, pinned_runs, deleted, refused, levels, deepest;
static uint32_t numbers[2];

static void add_items(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    (void)args;
    if (thread >= enkiGetNumTaskThreads(scheduler) || thread != enkiGetThreadNum(scheduler))
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&items, end - start, __ATOMIC_RELAXED);
}

static void waits_for_child(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    enkiTaskSet *child = enkiCreateTaskSet(scheduler, add_items);
    (void)start;
    (void)end;
    (void)args;
    enkiAddTaskSetArgs(scheduler, child, NULL, 64);
    enkiWaitForTaskSet(scheduler, child);
    enkiDeleteTaskSet(scheduler, child);
    if (thread != enkiGetThreadNum(scheduler))
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

/* Five systems of a frame, of which each waits for a set of its own. */
static void frames(void) {
    enkiTaskSet *systems[5];
    items = 0;
    for (int i = 0; i < 5; i++)
        systems[i] = enkiCreateTaskSet(scheduler, waits_for_child);
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < 5; i++)
            enkiAddTaskSet(scheduler, systems[i]);
        for (int i = 0; i < 5; i++)
            enkiWaitForTaskSet(scheduler, systems[i]);
    }
    for (int i = 0; i < 5; i++)
        enkiDeleteTaskSet(scheduler, systems[i]);
    printf("frames: %u items, %u wrong\n", items, wrong);
}

static void splits(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    enkiTaskSet *halves[2];
    uint32_t left = *(uint32_t *)args, lefts[2];
    (void)start;
    (void)end;
    (void)thread;
    deepest = ++levels > deepest ? levels : deepest;
    for (int i = 0; i < 2 && left > 0; i++) {
        lefts[i] = left > (uint32_t)i ? left - 1 - (uint32_t)i : 0;
        halves[i] = enkiCreateTaskSet(scheduler, splits);
        enkiAddTaskSetArgs(scheduler, halves[i], &lefts[i], 1);
    }
    for (int i = 0; i < 2 && left > 0; i++) {
        enkiWaitForTaskSet(scheduler, halves[i]);
        enkiDeleteTaskSet(scheduler, halves[i]);
    }
    levels--;
}

/* Waits nest as deep as tasks are inside of tasks, and not as there are tasks. */
static void recursion(void) {
    uint32_t all = LEVELS;
    enkiTaskSet *set = enkiCreateTaskSet(scheduler, splits);
    enkiAddTaskSetArgs(scheduler, set, &all, 1);
    enkiWaitForTaskSet(scheduler, set);
    enkiDeleteTaskSet(scheduler, set);
    printf("recursion: %s\n", deepest <= 2 * LEVELS ? "as deep as it is" : "too deep");
}

static void on_first(void *args) {
    (void)args;
    pinned_runs++;
}

/* A task that waits for what comes after a task of the first thread, which may be in another wait. */
static void waits_for_pinned(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    enkiTaskSet *first = enkiCreateTaskSet(scheduler, add_items), *last = enkiCreateTaskSet(scheduler, add_items);
    enkiPinnedTask *between = enkiCreatePinnedTask(scheduler, on_first, 0);
    enkiDependency *edges[2];
    (void)start;
    (void)end;
    (void)thread;
    (void)args;
    edges[0] = enkiCreateDependency(scheduler);
    edges[1] = enkiCreateDependency(scheduler);
    enkiSetDependency(edges[0], enkiGetCompletableFromTaskSet(first), enkiGetCompletableFromPinnedTask(between));
    enkiSetDependency(edges[1], enkiGetCompletableFromPinnedTask(between), enkiGetCompletableFromTaskSet(last));
    enkiAddTaskSet(scheduler, first);
    enkiWaitForTaskSet(scheduler, last);
    enkiDeleteDependency(scheduler, edges[0]);
    enkiDeleteDependency(scheduler, edges[1]);
    enkiDeleteTaskSet(scheduler, first);
    enkiDeletePinnedTask(scheduler, between);
    enkiDeleteTaskSet(scheduler, last);
}

static void pinned_in_tasks(void) {
    enkiTaskSet *sets[2];
    pinned_runs = 0;
    for (int i = 0; i < 2; i++)
        sets[i] = enkiCreateTaskSet(scheduler, waits_for_pinned);
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < 2; i++)
            enkiAddTaskSet(scheduler, sets[i]);
        for (int i = 0; i < 2; i++)
            enkiWaitForTaskSet(scheduler, sets[i]);
    }
    for (int i = 0; i < 2; i++)
        enkiDeleteTaskSet(scheduler, sets[i]);
    printf("pinned in tasks: %u\n", pinned_runs);
}

struct deletion {
    enkiTaskSet *set;
    enkiCompletionAction *action;
    enkiDependency *edge;
};

/* Deletes a set, the action that comes after it, and what led to it. */
static void delete_all(void *args, uint32_t thread) {
    struct deletion *these = (struct deletion *)args;
    (void)thread;
    if (these->edge != NULL)
        enkiDeleteDependency(scheduler, these->edge);
    enkiDeleteTaskSet(scheduler, these->set);
    enkiDeleteCompletionAction(scheduler, these->action);
    free(these);
    __atomic_fetch_add(&deleted, 1, __ATOMIC_RELAXED);
}

static struct deletion *delete_after(enkiTaskSet *set) {
    struct deletion *these = (struct deletion *)calloc(1, sizeof *these);
    struct enkiParamsCompletionAction params;
    these->set = set;
    these->action = enkiCreateCompletionAction(scheduler, NULL, delete_all);
    params = enkiGetParamsCompletionAction(these->action);
    params.pArgsPostComplete = these;
    params.pDependency = enkiGetCompletableFromTaskSet(set);
    enkiSetParamsCompletionAction(these->action, params);
    return these;
}

/* Two sets, one after the other's action: both actions delete what they belong to, at the same time. */
static void deletions(void) {
    deleted = 0;
    for (int run = 0; run < RUNS; run++) {
        enkiTaskSet *one = enkiCreateTaskSet(scheduler, add_items), *other = enkiCreateTaskSet(scheduler, add_items);
        struct deletion *first = delete_after(one), *second = delete_after(other);
        second->edge = enkiCreateDependency(scheduler);
        enkiSetDependency(second->edge, enkiGetCompletableFromCompletionAction(first->action),
                          enkiGetCompletableFromTaskSet(other));
        enkiAddTaskSet(scheduler, one);
    }
    enkiWaitForAll(scheduler);
    printf("deletions: %u\n", deleted);
}

static void on_external(void *args) { numbers[1] = enkiGetThreadNum((enkiTaskScheduler *)args); }

static enkiTaskSet *handed_over;

/* Is registered; waits, is refused a second number, runs a task of its own, and hands sets over that are deleted as soon
 * as they are complete. */
static void *external(void *args) {
    enkiTaskSet *set = enkiCreateTaskSet(scheduler, waits_for_child);
    (void)args;
    refused = !enkiRegisterExternalTaskThread(scheduler);
    numbers[0] = enkiGetThreadNum(scheduler);
    refused += !enkiRegisterExternalTaskThread(scheduler);
    for (int run = 0; run < RUNS / 10; run++) {
        enkiAddTaskSet(scheduler, set);
        enkiWaitForTaskSet(scheduler, set);
    }
    enkiDeleteTaskSet(scheduler, set);
    __atomic_store_n(&pinned_runs, 1, __ATOMIC_RELEASE);
    enkiWaitForNewPinnedTasks(scheduler);
    enkiDeRegisterExternalTaskThread(scheduler);
    for (int run = 0; run < RUNS; run++) {
        enkiTaskSet *next = enkiCreateTaskSet(scheduler, add_items);
        enkiAddTaskSet(scheduler, next);
        __atomic_store_n(&handed_over, next, __ATOMIC_RELEASE);
        while (__atomic_load_n(&handed_over, __ATOMIC_ACQUIRE) != NULL)
            pl_enki_nap();
    }
    return NULL;
}

/* Is not registered, and waits. */
static void *visitor(void *args) {
    enkiTaskSet *set = enkiCreateTaskSet(scheduler, add_items);
    (void)args;
    for (int run = 0; run < RUNS; run++) {
        enkiAddTaskSetArgs(scheduler, set, NULL, 64);
        enkiWaitForTaskSet(scheduler, NULL); /* Runs something, if it may. */
        if (run % 100 == 0) {
            enkiWaitForAll(scheduler);
            if (!enkiIsTaskSetComplete(scheduler, set))
                __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        }
        enkiWaitForTaskSet(scheduler, set);
    }
    enkiDeleteTaskSet(scheduler, set);
    return NULL;
}

static void externals(void) {
    pthread_t threads[3];
    enkiPinnedTask *task = enkiCreatePinnedTask(scheduler, on_external, 1);
    struct enkiParamsPinnedTask params = enkiGetParamsPinnedTask(task);
    params.pArgs = scheduler;
    enkiSetParamsPinnedTask(task, params);
    items = pinned_runs = 0;
    pthread_create(&threads[0], NULL, external, NULL);
    while (__atomic_load_n(&pinned_runs, __ATOMIC_ACQUIRE) == 0)
        enkiWaitForTaskSet(scheduler, NULL);
    pthread_create(&threads[1], NULL, visitor, NULL);
    pthread_create(&threads[2], NULL, visitor, NULL);
    enkiAddPinnedTask(scheduler, task);
    enkiWaitForPinnedTask(scheduler, task);
    for (int run = 0; run < RUNS; run++) {
        enkiTaskSet *set;
        while ((set = __atomic_load_n(&handed_over, __ATOMIC_ACQUIRE)) == NULL)
            enkiWaitForTaskSet(scheduler, NULL);
        while (!enkiIsTaskSetComplete(scheduler, set))
            enkiWaitForTaskSet(scheduler, NULL);
        enkiDeleteTaskSet(scheduler, set);
        __atomic_store_n(&handed_over, (enkiTaskSet *)NULL, __ATOMIC_RELEASE);
    }
    pthread_join(threads[0], NULL);
    for (int i = 1; i < 3; i++)
        pthread_join(threads[i], NULL);
    enkiDeletePinnedTask(scheduler, task);
    printf("externals: numbers %u and %u, %u refused, %u items, %u wrong\n", numbers[0], numbers[1], refused, items,
           wrong);
}

static void sleeps(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    struct timespec time;
    (void)start;
    (void)end;
    (void)thread;
    time.tv_sec = 0;
    time.tv_nsec = 100000000;
    nanosleep(&time, NULL);
    if (args != NULL)
        enkiAddPinnedTask(scheduler, (enkiPinnedTask *)args);
}

/* How often threads of this process went to rest while a task slept. */
static long rests(int for_pinned) {
    struct rusage before, after;
    enkiTaskSet *set = enkiCreateTaskSet(scheduler, sleeps);
    enkiPinnedTask *task = enkiCreatePinnedTask(scheduler, on_first, 0);
    getrusage(RUSAGE_SELF, &before);
    enkiAddTaskSetArgs(scheduler, set, for_pinned ? task : NULL, 1);
    if (for_pinned)
        enkiWaitForNewPinnedTasks(scheduler);
    else
        enkiWaitForAll(scheduler);
    getrusage(RUSAGE_SELF, &after);
    enkiWaitForAll(scheduler);
    enkiDeleteTaskSet(scheduler, set);
    enkiDeletePinnedTask(scheduler, task);
    return after.ru_nvcsw - before.ru_nvcsw;
}

static unsigned allocations, waits;

static void *counted_alloc(size_t align, size_t size, void *user, const char *file, int line) {
    (void)align;
    (void)file;
    (void)line;
    __atomic_fetch_add((unsigned *)user, 1, __ATOMIC_RELAXED);
    return malloc(size);
}

static void counted_free(void *at, size_t size, void *user, const char *file, int line) {
    (void)size;
    (void)file;
    (void)line;
    __atomic_fetch_sub((unsigned *)user, 1, __ATOMIC_RELAXED);
    free(at);
}

static void wait_begins(uint32_t thread) {
    (void)thread;
    __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
}

int main(void) {
    for (uint32_t workers = 0; workers <= 3; workers++) {
        struct enkiTaskSchedulerConfig config;
        struct enkiCustomAllocator counted;
        counted.alloc = counted_alloc;
        counted.free = counted_free;
        counted.userData = &allocations;
        scheduler = enkiNewTaskSchedulerWithCustomAllocator(counted);
        config = enkiGetTaskSchedulerConfig(scheduler);
        config.numTaskThreadsToCreate = workers;
        config.numExternalTaskThreads = 1;
        config.profilerCallbacks.waitForTaskCompleteStart = wait_begins;
        enkiInitTaskSchedulerWithConfig(scheduler, config);
        printf("%u workers\n", (unsigned)workers);
        frames();
        if (workers == 0)
            recursion();
        pinned_in_tasks();
        deletions();
        if (workers > 0) {
            long all = rests(0), pinned = rests(1);
            externals();
            printf("rests: %s, %s\n", all < 200 ? "few" : "many", pinned < 200 ? "few" : "many");
        }
        enkiWaitforAllAndShutdown(scheduler);
        enkiWaitForAll(scheduler); /* There is nothing to wait for. */
        enkiDeleteTaskScheduler(scheduler);
    }
    printf("left: %u, %s\n", allocations, waits > 0 ? "waits were told" : "no waits were told");
    return 0;
}
