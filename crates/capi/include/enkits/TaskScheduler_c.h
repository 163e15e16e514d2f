/* The names of enkiTS's C interface, on a job system: programs that include its TaskScheduler_c.h compile with
 * this one (-I .../include/enkits), and link with the library of paceline.h. Only a header, for C99 and C++; written
 * from what programs call, and with nothing of enkiTS in it.
 *
 * A scheduler is a group of a job system: a wait may run any of its tasks, as there. enkiNewTaskScheduler() makes
 * a job system with as many workers as numTaskThreadsToCreate says; pl_enki_scheduler_on(jobs) uses one that the
 * program has, so that there is one pool.
 *
 * What is different:
 * - Priorities 0 and 1 are the normal lane, greater ones the background. The priority of a wait is not looked at.
 * - Pinned tasks are for thread 0, which has called enkiInitTaskScheduler..., and not for the workers.
 *   enkiWaitForNewPinnedTasks() runs them, too.
 * - External threads need no registration, and get the next number that is free.
 * - A set is cut by time where its parts are long enough: no part is shorter than minRange, the last one included.
 * - On a job system of the program's (pl_enki_scheduler_on) any of its threads may run tasks: enkiGetNumTaskThreads()
 *   is how many it can have, and more than it has workers.
 * - No profiler callbacks, and no allocator of the program's.
 */

#ifndef PACELINE_ENKITS_H
#define PACELINE_ENKITS_H

#include "../paceline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <pthread.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*enkiTaskExecuteRange)(uint32_t start, uint32_t end, uint32_t thread, void *args);
typedef void (*enkiPinnedTaskExecute)(void *args);
typedef void (*enkiCompletionFunction)(void *args, uint32_t thread);

/* What enkiGetThreadNum() says on a thread that has run no task. */
#define ENKI_NO_THREAD_NUM 0xFFFFFFFFu

/* What can be waited for: each of the other types begins with it. */
typedef struct enkiCompletable enkiCompletable;
typedef struct enkiTaskScheduler enkiTaskScheduler;
typedef struct enkiDependency enkiDependency;

struct enkiTaskSchedulerConfig {
    uint32_t numTaskThreadsToCreate;
    uint32_t numExternalTaskThreads;
};

struct enkiParamsTaskSet {
    void *pArgs;
    uint32_t setSize;
    uint32_t minRange;
    int priority;
};

struct enkiParamsPinnedTask {
    void *pArgs;
    int priority;
};

struct enkiParamsCompletionAction {
    void *pArgsPreComplete;
    void *pArgsPostComplete;
    const enkiCompletable *pDependency;
};

/* The rest of the file is how it is done, and the functions. */

enum pl_enki_kind { PL_ENKI_NOTHING, PL_ENKI_SET, PL_ENKI_PINNED, PL_ENKI_ACTION };

struct enkiTaskScheduler {
    pl_system *jobs;
    int owns_jobs;
    pl_group group;
    pl_pin pin;
    struct enkiTaskSchedulerConfig config;
    /* Thread 0, and the numbers of the others plus one, by pl_context_worker. */
    uintptr_t first_thread;
    uint32_t *numbers;
    /* By number: the thread that has it, or had it last. */
    uintptr_t *number_of;
    /* How many numbers there can be, and for how many threads a set is cut. */
    uint32_t next_number, threads, parallel;
    /* How many tasks were added and are not over; how many pinned ones were run, and how many of them thread 0 has
     * been told of. */
    uint32_t live, pinned_over, pinned_told;
    uint32_t externals, is_ending, waits_for_all;
};

/* That one thing begins after another. */
struct enkiDependency {
    enkiCompletable *before, *waits;
    enkiDependency *next;
};

struct enkiCompletable {
    enkiTaskScheduler *of;
    enum pl_enki_kind kind;
    enkiTaskExecuteRange run;
    enkiPinnedTaskExecute run_pinned;
    enkiCompletionFunction pre, post;
    void *args, *post_args;
    uint32_t set_size, min_range;
    int priority;
    /* 1 from when it is added, or something that it waits for is, until it is over. */
    uint32_t is_pending;
    uint32_t items_done;
    /* What a wait is for: its job; or an event, if it waits for something else, or something waits for it, which
     * may delete it before the thread that adds it knows the job. */
    pl_job awaited;
    int has_event;
    enkiDependency *dependents;
    uint32_t needed, arrived;
    /* Of an action: what it comes after. */
    enkiDependency own;
};

typedef struct enkiTaskSet {
    enkiCompletable is;
} enkiTaskSet;
typedef struct enkiPinnedTask {
    enkiCompletable is;
} enkiPinnedTask;
typedef struct enkiCompletionAction {
    enkiCompletable is;
} enkiCompletionAction;

static inline uintptr_t pl_enki_this_thread(void) {
#ifdef _WIN32
    return (uintptr_t)GetCurrentThreadId();
#else
    return (uintptr_t)pthread_self();
#endif
}

static inline uint32_t pl_enki_cpus(void) {
#ifdef _WIN32
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (uint32_t)info.dwNumberOfProcessors;
#else
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
#endif
}

/* Only what cannot be: the job table is full, or memory is. The interface has no errors. */
static inline void pl_enki_must(pl_status status) {
    if (status != PL_OK) {
        fprintf(stderr, "paceline: enkiTS's interface: %s: %s\n", pl_status_name(status), pl_last_error());
        abort();
    }
}

static inline void *pl_enki_new(size_t bytes) {
    void *made = calloc(1, bytes);
    if (made == 0) {
        fprintf(stderr, "paceline: enkiTS's interface: no memory\n");
        abort();
    }
    return made;
}

/* The number of the thread that runs a body, less than enkiGetNumTaskThreads. */
static inline uint32_t pl_enki_number(enkiTaskScheduler *of, const pl_context *cx) {
    uint32_t *place = &of->numbers[pl_context_worker(cx)];
    uint32_t number = __atomic_load_n(place, __ATOMIC_RELAXED);
    uintptr_t me = pl_enki_this_thread();
    if (number == 0) {
        number = 1;
        if (me != of->first_thread)
            number += __atomic_fetch_add(&of->next_number, 1, __ATOMIC_RELAXED);
        if (number > of->threads) {
            fprintf(stderr,
                    "paceline: enkiTS's interface: more than %u threads run tasks: count all that wait for tasks, beside "
                    "the first and the workers, in numExternalTaskThreads\n",
                    (unsigned)of->threads);
            abort();
        }
        __atomic_store_n(place, number, __ATOMIC_RELAXED);
    }
    if (__atomic_load_n(&of->number_of[number - 1], __ATOMIC_RELAXED) != me)
        __atomic_store_n(&of->number_of[number - 1], me, __ATOMIC_RELAXED);
    return number - 1;
}

static inline void pl_enki_begin(enkiCompletable *it, uint32_t thread);

/* It will run: this, and what waits for it, is pending from now on. `has_event`: a wait cannot be for a job. */
static inline void pl_enki_expect(enkiCompletable *it, int has_event) {
    const enkiDependency *each;
    if (__atomic_exchange_n(&it->is_pending, 1, __ATOMIC_ACQ_REL) != 0)
        return; /* Another one of those that it waits for was added before. */
    __atomic_fetch_add(&it->of->live, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&it->awaited, 0, __ATOMIC_RELAXED);
    it->has_event = has_event;
    if (has_event) {
        pl_job event = 0;
        pl_enki_must(pl_event_create(it->of->jobs, "enki", 1, &event));
        __atomic_store_n(&it->awaited, event, __ATOMIC_RELEASE);
    }
    for (each = it->dependents; each != 0; each = each->next)
        pl_enki_expect(each->waits, 1);
}

/* It is over. It may be gone as soon as the first of those that come after it begins. */
static inline void pl_enki_over(enkiCompletable *it, uint32_t thread) {
    enum { AT_ONCE = 16 };
    enkiCompletable *some[AT_ONCE], **next = some;
    enkiTaskScheduler *of = it->of;
    enkiCompletionFunction post = it->post;
    void *post_args = it->post_args;
    const enkiDependency *each;
    size_t count = 0, at = 0;
    pl_job event = it->has_event ? it->awaited : 0;
    for (each = it->dependents; each != 0; each = each->next)
        count++;
    if (count > AT_ONCE)
        next = (enkiCompletable **)pl_enki_new(count * sizeof *next);
    for (each = it->dependents; each != 0; each = each->next)
        next[at++] = each->waits;
    __atomic_store_n(&it->is_pending, 0, __ATOMIC_RELEASE);
    if (event != 0)
        pl_enki_must(pl_event_complete(of->jobs, event));
    for (at = 0; at < count; at++) {
        uint32_t needed = next[at]->needed;
        if (__atomic_add_fetch(&next[at]->arrived, 1, __ATOMIC_ACQ_REL) == needed)
            pl_enki_begin(next[at], thread);
    }
    if (next != some)
        free(next);
    if (post != 0)
        post(post_args, thread);
    __atomic_fetch_sub(&of->live, 1, __ATOMIC_RELEASE);
}

static inline void pl_enki_part(pl_context *cx, size_t begin, size_t end, void *data) {
    enkiCompletable *it = (enkiCompletable *)data;
    uint32_t thread = pl_enki_number(it->of, cx), all = it->set_size, items = (uint32_t)(end - begin);
    it->run((uint32_t)begin, (uint32_t)end, thread, it->args);
    if (__atomic_add_fetch(&it->items_done, items, __ATOMIC_ACQ_REL) == all)
        pl_enki_over(it, thread);
}

static inline void pl_enki_whole(pl_context *cx, void *data) {
    enkiCompletable *it = (enkiCompletable *)data;
    uint32_t thread = pl_enki_number(it->of, cx);
    if (it->kind == PL_ENKI_PINNED) {
        it->run_pinned(it->args);
        it->of->pinned_over++; /* Of thread 0. */
    } else
        it->run(0, it->set_size, thread, it->args);
    pl_enki_over(it, thread);
}

/* All that it waits for is over. `thread` is the number of this thread, in a task. */
static inline void pl_enki_begin(enkiCompletable *it, uint32_t thread) {
    enkiTaskScheduler *of = it->of;
    uint32_t parts = of->parallel * 4, grain = it->set_size / (parts > 0 ? parts : 1) + 1;
    pl_lane lane = it->priority > 1 ? PL_LANE_BACKGROUND : PL_LANE_NORMAL;
    int has_event = it->has_event;
    pl_job job = 0;
    __atomic_store_n(&it->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&it->items_done, 0, __ATOMIC_RELAXED);
    grain = grain < it->min_range ? it->min_range : grain;
    if (it->kind == PL_ENKI_NOTHING || it->kind == PL_ENKI_ACTION || (it->kind == PL_ENKI_SET && it->set_size == 0)) {
        if (it->pre != 0)
            it->pre(it->args, thread);
        pl_enki_over(it, thread);
        return;
    }
    if (it->kind == PL_ENKI_SET && grain < it->set_size) {
        pl_loop_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.size = sizeof desc;
        desc.name = "enki";
        desc.body = pl_enki_part;
        desc.data = it;
        desc.count = it->set_size;
        desc.grain = grain;
        desc.lane = lane;
        desc.group = of->group;
        pl_enki_must(pl_schedule_for(of->jobs, &desc, &job));
    } else {
        pl_job_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.size = sizeof desc;
        desc.name = "enki";
        desc.body = pl_enki_whole;
        desc.data = it;
        desc.lane = lane;
        desc.pin = it->kind == PL_ENKI_PINNED ? of->pin : 0;
        desc.group = of->group;
        pl_enki_must(pl_schedule(of->jobs, &desc, &job));
    }
    /* If it has an event, it may be gone already. */
    if (!has_event)
        __atomic_store_n(&it->awaited, job, __ATOMIC_RELEASE);
    pl_enki_must(pl_flush(of->jobs));
}

static inline void pl_enki_add(enkiCompletable *it) {
    pl_enki_expect(it, it->dependents != 0);
    pl_enki_begin(it, 0);
}

static inline void pl_enki_init(enkiCompletable *it, enkiTaskScheduler *of, enum pl_enki_kind kind) {
    it->of = of;
    it->kind = kind;
    it->set_size = it->min_range = 1;
}

static inline void pl_enki_cut(enkiDependency *edge) {
    enkiDependency **at;
    if (edge->before == 0)
        return;
    for (at = &edge->before->dependents; *at != 0; at = &(*at)->next) {
        if (*at == edge) {
            *at = edge->next;
            edge->waits->needed--;
            break;
        }
    }
    edge->before = 0;
}

/* It is deleted: nothing comes after it any more, nor it after anything. */
static inline void pl_enki_delete(enkiCompletable *it) {
    if (it == 0)
        return;
    while (it->dependents != 0)
        pl_enki_cut(it->dependents);
    pl_enki_cut(&it->own);
    free(it);
}

/* ---- The scheduler ---- */

static inline enkiTaskScheduler *enkiNewTaskScheduler(void) {
    enkiTaskScheduler *made = (enkiTaskScheduler *)pl_enki_new(sizeof *made);
    made->config.numTaskThreadsToCreate = pl_enki_cpus() - 1;
    return made;
}

/* One on a job system that the program has: call enkiInitTaskScheduler next. It is deleted before the job system is
 * destroyed. */
static inline enkiTaskScheduler *pl_enki_scheduler_on(pl_system *jobs) {
    enkiTaskScheduler *made = enkiNewTaskScheduler();
    made->jobs = jobs;
    return made;
}

static inline struct enkiTaskSchedulerConfig enkiGetTaskSchedulerConfig(enkiTaskScheduler *of) {
    return of->config;
}

static inline uint32_t enkiGetNumTaskThreads(enkiTaskScheduler *of) { return of->threads; }

/* The number that this thread's tasks get; ENKI_NO_THREAD_NUM if it has run none. Looks through all numbers. */
static inline uint32_t enkiGetThreadNum(enkiTaskScheduler *of) {
    uintptr_t me = pl_enki_this_thread();
    uint32_t number;
    if (of->threads > 0 && me == of->first_thread)
        return 0;
    for (number = 1; number < of->threads; number++) {
        if (__atomic_load_n(&of->number_of[number], __ATOMIC_RELAXED) == me)
            return number;
    }
    return ENKI_NO_THREAD_NUM;
}

/* For tasks that go on until the scheduler ends: they are to look, and return. */
static inline int enkiGetIsShutdownRequested(enkiTaskScheduler *of) {
    return __atomic_load_n(&of->is_ending, __ATOMIC_ACQUIRE) != 0;
}
static inline int enkiGetIsRunning(enkiTaskScheduler *of) { return !enkiGetIsShutdownRequested(of); }
static inline int enkiGetIsWaitforAllCalled(enkiTaskScheduler *of) {
    return __atomic_load_n(&of->waits_for_all, __ATOMIC_ACQUIRE) != 0;
}

static inline void enkiRunPinnedTasks(enkiTaskScheduler *of) {
    if (pl_enki_this_thread() == of->first_thread)
        pl_enki_must(pl_run_pinned_jobs(of->jobs, 0));
}

static inline void enkiWaitForAll(enkiTaskScheduler *of) {
    __atomic_fetch_add(&of->waits_for_all, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&of->live, __ATOMIC_ACQUIRE) != 0) {
        int32_t ran = 0;
        enkiRunPinnedTasks(of);
        pl_enki_must(pl_poll(of->jobs, &ran));
        if (!ran) {
            /* What is left runs on other threads: nobody completes this one, for a while. */
            pl_job rest = 0;
            pl_enki_must(pl_event_create(of->jobs, "enki", 1, &rest));
            pl_group_wait_timeout(of->jobs, of->group, rest, 50000);
            pl_enki_must(pl_event_complete(of->jobs, rest));
        }
    }
    __atomic_fetch_sub(&of->waits_for_all, 1, __ATOMIC_RELEASE);
}

/* Returns when thread 0, which is to be this one, has run pinned tasks since the last such call returned, or the
 * scheduler ends. */
static inline void enkiWaitForNewPinnedTasks(enkiTaskScheduler *of) {
    if (pl_enki_this_thread() != of->first_thread)
        return;
    enkiRunPinnedTasks(of);
    while (of->pinned_over == of->pinned_told && !enkiGetIsShutdownRequested(of)) {
        pl_job rest = 0;
        pl_enki_must(pl_event_create(of->jobs, "enki", 1, &rest));
        pl_wait_timeout(of->jobs, rest, 1000000);
        pl_enki_must(pl_event_complete(of->jobs, rest));
        enkiRunPinnedTasks(of);
    }
    of->pinned_told = of->pinned_over;
}

static inline void pl_enki_end(enkiTaskScheduler *of) {
    if (of->threads == 0)
        return;
    __atomic_store_n(&of->is_ending, 1, __ATOMIC_RELEASE);
    enkiWaitForAll(of);
    pl_unpin_thread(of->jobs);
    pl_enki_must(pl_group_destroy(of->jobs, of->group));
    if (of->owns_jobs) {
        pl_enki_must(pl_system_destroy(of->jobs));
        of->jobs = 0;
    }
    free(of->numbers);
    free(of->number_of);
    of->threads = 0;
}

static inline void enkiInitTaskSchedulerWithConfig(enkiTaskScheduler *of, struct enkiTaskSchedulerConfig config) {
    size_t slots = 0, workers = 0;
    pl_enki_end(of);
    of->config = config;
    if (of->jobs == 0) {
        pl_system_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.size = sizeof desc;
        desc.workers = config.numTaskThreadsToCreate;
        desc.no_workers = config.numTaskThreadsToCreate == 0;
        pl_enki_must(pl_system_create(&desc, &of->jobs));
        of->owns_jobs = 1;
    }
    pl_enki_must(pl_workers(of->jobs, &workers));
    pl_enki_must(pl_thread_slots(of->jobs, &slots));
    pl_enki_must(pl_group_create(of->jobs, "enki", &of->group));
    pl_enki_must(pl_pin_thread(of->jobs, 0, &of->pin));
    of->first_thread = pl_enki_this_thread();
    of->numbers = (uint32_t *)pl_enki_new(slots * sizeof of->numbers[0]);
    of->number_of = (uintptr_t *)pl_enki_new(slots * sizeof of->number_of[0]);
    of->next_number = 1;
    of->is_ending = 0;
    of->parallel = (uint32_t)workers + 1;
    /* Where the program has other jobs, threads take the places of those that they block. */
    of->threads = of->owns_jobs ? of->parallel + config.numExternalTaskThreads : (uint32_t)slots;
    if (of->threads > slots)
        of->threads = (uint32_t)slots;
}

static inline void enkiInitTaskScheduler(enkiTaskScheduler *of) {
    enkiInitTaskSchedulerWithConfig(of, of->config);
}

static inline void enkiInitTaskSchedulerNumThreads(enkiTaskScheduler *of, uint32_t threads) {
    struct enkiTaskSchedulerConfig config = of->config;
    config.numTaskThreadsToCreate = threads > 0 ? threads - 1 : 0;
    enkiInitTaskSchedulerWithConfig(of, config);
}

static inline void enkiWaitforAllAndShutdown(enkiTaskScheduler *of) { pl_enki_end(of); }

static inline void enkiDeleteTaskScheduler(enkiTaskScheduler *of) {
    pl_enki_end(of);
    free(of);
}

/* Threads need no registration; they count in numExternalTaskThreads if they wait, and so run tasks. */
static inline int enkiRegisterExternalTaskThread(enkiTaskScheduler *of) {
    __atomic_fetch_add(&of->externals, 1, __ATOMIC_RELAXED);
    return 1;
}
static inline int enkiRegisterExternalTaskThreadNum(enkiTaskScheduler *of, uint32_t number) {
    (void)number;
    return enkiRegisterExternalTaskThread(of);
}
static inline void enkiDeRegisterExternalTaskThread(enkiTaskScheduler *of) {
    __atomic_fetch_sub(&of->externals, 1, __ATOMIC_RELAXED);
}
static inline uint32_t enkiGetNumRegisteredExternalTaskThreads(enkiTaskScheduler *of) {
    return __atomic_load_n(&of->externals, __ATOMIC_RELAXED);
}
static inline uint32_t enkiGetNumFirstExternalTaskThread(void) { return 1; }

/* ---- What can be waited for ---- */

static inline int enkiIsCompletableComplete(enkiTaskScheduler *of, enkiCompletable *it) {
    (void)of;
    return __atomic_load_n(&it->is_pending, __ATOMIC_ACQUIRE) == 0;
}

static inline void enkiWaitForCompletable(enkiTaskScheduler *of, enkiCompletable *it) {
    if (it == 0) { /* Runs what is there. */
        pl_enki_must(pl_poll(of->jobs, 0));
        return;
    }
    while (!enkiIsCompletableComplete(of, it)) {
        pl_job awaited = __atomic_load_n(&it->awaited, __ATOMIC_ACQUIRE);
        if (awaited != 0) /* Else another thread is about to set it. */
            pl_enki_must(pl_group_wait(of->jobs, of->group, awaited));
    }
}

static inline void enkiWaitForCompletablePriority(enkiTaskScheduler *of, enkiCompletable *it, int most) {
    (void)most;
    enkiWaitForCompletable(of, it);
}

static inline enkiCompletable *enkiCreateCompletable(enkiTaskScheduler *of) {
    enkiCompletable *made = (enkiCompletable *)pl_enki_new(sizeof *made);
    pl_enki_init(made, of, PL_ENKI_NOTHING);
    return made;
}
static inline void enkiDeleteCompletable(enkiTaskScheduler *of, enkiCompletable *it) {
    (void)of;
    pl_enki_delete(it);
}

/* ---- Sets of tasks ---- */

static inline enkiTaskSet *enkiCreateTaskSet(enkiTaskScheduler *of, enkiTaskExecuteRange run) {
    enkiTaskSet *made = (enkiTaskSet *)pl_enki_new(sizeof *made);
    pl_enki_init(&made->is, of, PL_ENKI_SET);
    made->is.run = run;
    return made;
}
static inline void enkiDeleteTaskSet(enkiTaskScheduler *of, enkiTaskSet *set) {
    (void)of;
    pl_enki_delete(set == 0 ? 0 : &set->is);
}
static inline struct enkiParamsTaskSet enkiGetParamsTaskSet(enkiTaskSet *set) {
    struct enkiParamsTaskSet params;
    params.pArgs = set->is.args;
    params.setSize = set->is.set_size;
    params.minRange = set->is.min_range;
    params.priority = set->is.priority;
    return params;
}
static inline void enkiSetParamsTaskSet(enkiTaskSet *set, struct enkiParamsTaskSet params) {
    set->is.args = params.pArgs;
    set->is.set_size = params.setSize;
    set->is.min_range = params.minRange;
    set->is.priority = params.priority;
}
static inline void enkiSetPriorityTaskSet(enkiTaskSet *set, int priority) { set->is.priority = priority; }
static inline void enkiSetArgsTaskSet(enkiTaskSet *set, void *args) { set->is.args = args; }
static inline void enkiSetSetSizeTaskSet(enkiTaskSet *set, uint32_t size) { set->is.set_size = size; }
static inline void enkiSetMinRangeTaskSet(enkiTaskSet *set, uint32_t least) { set->is.min_range = least; }
static inline void enkiAddTaskSet(enkiTaskScheduler *of, enkiTaskSet *set) {
    (void)of;
    pl_enki_add(&set->is);
}
static inline void enkiAddTaskSetArgs(enkiTaskScheduler *of, enkiTaskSet *set, void *args, uint32_t size) {
    set->is.args = args;
    set->is.set_size = size;
    enkiAddTaskSet(of, set);
}
static inline void enkiAddTaskSetMinRange(enkiTaskScheduler *of, enkiTaskSet *set, void *args, uint32_t size,
                                          uint32_t least) {
    set->is.min_range = least;
    enkiAddTaskSetArgs(of, set, args, size);
}
static inline enkiCompletable *enkiGetCompletableFromTaskSet(enkiTaskSet *set) { return &set->is; }
static inline int enkiIsTaskSetComplete(enkiTaskScheduler *of, enkiTaskSet *set) {
    return enkiIsCompletableComplete(of, &set->is);
}
static inline void enkiWaitForTaskSet(enkiTaskScheduler *of, enkiTaskSet *set) {
    enkiWaitForCompletable(of, set == 0 ? 0 : &set->is);
}
static inline void enkiWaitForTaskSetPriority(enkiTaskScheduler *of, enkiTaskSet *set, int most) {
    (void)most;
    enkiWaitForTaskSet(of, set);
}

/* ---- Tasks of one thread ---- */

static inline enkiPinnedTask *enkiCreatePinnedTask(enkiTaskScheduler *of, enkiPinnedTaskExecute run,
                                                   uint32_t thread) {
    enkiPinnedTask *made = (enkiPinnedTask *)pl_enki_new(sizeof *made);
    if (thread != 0) {
        fprintf(stderr, "paceline: enkiTS's interface: a task pinned to thread %u: only thread 0 runs such\n",
                (unsigned)thread);
        abort();
    }
    pl_enki_init(&made->is, of, PL_ENKI_PINNED);
    made->is.run_pinned = run;
    return made;
}
static inline void enkiDeletePinnedTask(enkiTaskScheduler *of, enkiPinnedTask *task) {
    (void)of;
    pl_enki_delete(task == 0 ? 0 : &task->is);
}
static inline struct enkiParamsPinnedTask enkiGetParamsPinnedTask(enkiPinnedTask *task) {
    struct enkiParamsPinnedTask params;
    params.pArgs = task->is.args;
    params.priority = task->is.priority;
    return params;
}
static inline void enkiSetParamsPinnedTask(enkiPinnedTask *task, struct enkiParamsPinnedTask params) {
    task->is.args = params.pArgs;
    task->is.priority = params.priority;
}
static inline void enkiSetPriorityPinnedTask(enkiPinnedTask *task, int priority) { task->is.priority = priority; }
static inline void enkiSetArgsPinnedTask(enkiPinnedTask *task, void *args) { task->is.args = args; }
static inline void enkiAddPinnedTask(enkiTaskScheduler *of, enkiPinnedTask *task) {
    (void)of;
    pl_enki_add(&task->is);
}
static inline void enkiAddPinnedTaskArgs(enkiTaskScheduler *of, enkiPinnedTask *task, void *args) {
    task->is.args = args;
    enkiAddPinnedTask(of, task);
}
static inline enkiCompletable *enkiGetCompletableFromPinnedTask(enkiPinnedTask *task) { return &task->is; }
static inline int enkiIsPinnedTaskComplete(enkiTaskScheduler *of, enkiPinnedTask *task) {
    return enkiIsCompletableComplete(of, &task->is);
}
static inline void enkiWaitForPinnedTask(enkiTaskScheduler *of, enkiPinnedTask *task) {
    enkiWaitForCompletable(of, task == 0 ? 0 : &task->is);
}
static inline void enkiWaitForPinnedTaskPriority(enkiTaskScheduler *of, enkiPinnedTask *task, int most) {
    (void)most;
    enkiWaitForPinnedTask(of, task);
}

/* ---- What comes after what ---- */

static inline enkiDependency *enkiCreateDependency(enkiTaskScheduler *of) {
    (void)of;
    return (enkiDependency *)pl_enki_new(sizeof(enkiDependency));
}

/* Not while one of the two is pending. */
static inline void enkiSetDependency(enkiDependency *edge, enkiCompletable *before, enkiCompletable *waits) {
    pl_enki_cut(edge);
    edge->before = before;
    edge->waits = waits;
    edge->next = before->dependents;
    before->dependents = edge;
    waits->needed++;
}

static inline void enkiDeleteDependency(enkiTaskScheduler *of, enkiDependency *edge) {
    (void)of;
    pl_enki_cut(edge);
    free(edge);
}

/* ---- What is called when something is over ---- */

static inline enkiCompletionAction *enkiCreateCompletionAction(enkiTaskScheduler *of, enkiCompletionFunction pre,
                                                               enkiCompletionFunction post) {
    enkiCompletionAction *made = (enkiCompletionAction *)pl_enki_new(sizeof *made);
    pl_enki_init(&made->is, of, PL_ENKI_ACTION);
    made->is.pre = pre;
    made->is.post = post;
    return made;
}
static inline void enkiDeleteCompletionAction(enkiTaskScheduler *of, enkiCompletionAction *action) {
    (void)of;
    pl_enki_delete(action == 0 ? 0 : &action->is);
}
static inline struct enkiParamsCompletionAction enkiGetParamsCompletionAction(enkiCompletionAction *action) {
    struct enkiParamsCompletionAction params;
    params.pArgsPreComplete = action->is.args;
    params.pArgsPostComplete = action->is.post_args;
    params.pDependency = action->is.own.before;
    return params;
}
static inline void enkiSetParamsCompletionAction(enkiCompletionAction *action,
                                                 struct enkiParamsCompletionAction params) {
    action->is.args = params.pArgsPreComplete;
    action->is.post_args = params.pArgsPostComplete;
    if (params.pDependency == 0)
        pl_enki_cut(&action->is.own);
    else
        enkiSetDependency(&action->is.own, (enkiCompletable *)(uintptr_t)params.pDependency, &action->is);
}
static inline enkiCompletable *enkiGetCompletableFromCompletionAction(enkiCompletionAction *action) {
    return &action->is;
}

#ifdef __cplusplus
}
#endif

#endif
