/* The names of enkiTS's C interface, on a job system: programs that include its TaskScheduler_c.h compile with
 * this one (-I .../include/enkits), and link with the library of paceline.h. Only a header, for C99 and C++; written
 * from what programs call, and with nothing of enkiTS in it.
 *
 * A scheduler is a group of a job system: a wait may run any of its tasks, as there. enkiNewTaskScheduler() makes
 * a job system with as many workers as numTaskThreadsToCreate says; pl_enki_scheduler_on(jobs) uses one that the
 * program has, so that there is one pool.
 *
 * Threads have numbers as there: 0 is the thread that has called enkiInitTaskScheduler..., then come the external ones,
 * then the workers, all less than enkiGetNumTaskThreads(). An external thread has its number from when it registers
 * until it says that it ends. One that is not registered may add tasks and wait: while it waits it is lent a number
 * behind the workers', and it runs none if none is left.
 *
 * A thread's calls are over before the scheduler ends, except enkiWaitForNewPinnedTasks(), enkiRunPinnedTasks() and
 * enkiDeRegisterExternalTaskThread(): they return then, and may be called after it, until the scheduler is deleted.
 *
 * What is different:
 * - Priorities 0 and 1 are the normal lane, greater ones the background. The priority of a wait is not looked at.
 * - Pinned tasks are for thread 0 and for registered external threads, and not for the workers.
 *   enkiWaitForNewPinnedTasks() runs them, too. Those that a thread leaves behind count as over without having run.
 * - There are as many numbers to lend as external threads: enkiGetNumTaskThreads() is greater by that.
 * - A set is cut by time where its parts are long enough: no part is shorter than minRange, the last one included.
 * - On a job system of the program's (pl_enki_scheduler_on) any of its threads may run tasks: enkiGetNumTaskThreads()
 *   is how many it can have, and more than it has workers.
 * - Of the callbacks for profilers only those at a wait for a task are called, waitForTaskComplete...
 * - enkiWaitForAll() is not for tasks: each is one of those that it waits for.
 */

#ifndef PACELINE_ENKITS_H
#define PACELINE_ENKITS_H

#include "../paceline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
typedef SRWLOCK pl_enki_mutex;
#else
#include <pthread.h>
#include <sys/select.h>
typedef pthread_mutex_t pl_enki_mutex;
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*enkiTaskExecuteRange)(uint32_t start, uint32_t end, uint32_t thread, void *args);
typedef void (*enkiPinnedTaskExecute)(void *args);
typedef void (*enkiCompletionFunction)(void *args, uint32_t thread);

/* What enkiGetThreadNum() says on a thread without a number, or on a worker that has run no task. */
#define ENKI_NO_THREAD_NUM 0xFFFFFFFFu

/* What can be waited for: each of the other types begins with it. */
typedef struct enkiCompletable enkiCompletable;
typedef struct enkiTaskScheduler enkiTaskScheduler;
typedef struct enkiDependency enkiDependency;

typedef void *(*enkiAllocFunc)(size_t align, size_t size, void *user, const char *file, int line);
typedef void (*enkiFreeFunc)(void *at, size_t size, void *user, const char *file, int line);

/* For the scheduler, and what can be waited for. The job system has memory of its own. */
struct enkiCustomAllocator {
    enkiAllocFunc alloc;
    enkiFreeFunc free;
    void *userData;
};

typedef void (*enkiProfilerCallbackFunc)(uint32_t thread);

struct enkiProfilerCallbacks {
    enkiProfilerCallbackFunc threadStart;
    enkiProfilerCallbackFunc threadStop;
    enkiProfilerCallbackFunc waitForNewTaskSuspendStart;
    enkiProfilerCallbackFunc waitForNewTaskSuspendStop;
    enkiProfilerCallbackFunc waitForTaskCompleteStart;
    enkiProfilerCallbackFunc waitForTaskCompleteStop;
    enkiProfilerCallbackFunc waitForTaskCompleteSuspendStart;
    enkiProfilerCallbackFunc waitForTaskCompleteSuspendStop;
};

struct enkiTaskSchedulerConfig {
    uint32_t numTaskThreadsToCreate;
    uint32_t numExternalTaskThreads;
    struct enkiProfilerCallbacks profilerCallbacks;
    struct enkiCustomAllocator customAllocator;
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

/* Thread 0, or an external one. */
struct pl_enki_seat {
    /* 0: it is not registered. */
    pl_pin pin;
    /* How many of its pinned tasks were run, and how many of them it has been told of. */
    uint32_t pinned_over, pinned_told;
    /* An event that its next pinned task completes, for all its waits for one; 0: it does not wait for one. */
    pl_job news;
};

struct enkiTaskScheduler {
    pl_system *jobs;
    int owns_jobs;
    pl_group group;
    struct enkiTaskSchedulerConfig config;
    struct enkiCustomAllocator made_by;
    /* By number: the thread that has it, or had it last; 0: none. */
    uintptr_t *number_of;
    /* Thread 0, and the external ones. */
    struct pl_enki_seat *seats;
    /* By pl_context_worker: the number of a worker plus one. */
    uint32_t *numbers;
    size_t slots;
    /* How many external threads there can be; the next worker's number; the first number to lend; how many numbers
     * there are; for how many threads a set is cut. */
    uint32_t externals, next_number, first_lent, threads, parallel;
    /* How many tasks were added and are not over, and PL_ENKI_AWAITED if somebody waits until there are none. */
    uint32_t live;
    /* Completed when there are none; how many threads wait for that. */
    pl_job nothing_left;
    uint32_t waits_for_all;
    uint32_t registered, is_ending;
    /* How many calls go on that its end waits for, and PL_ENKI_ENDED from then on. */
    uint32_t inside;
    /* For what comes after what, and for `nothing_left`. */
    pl_enki_mutex lock;
};

enum { PL_ENKI_AWAITED = 0x40000000, PL_ENKI_ENDED = 0x40000000 };

/* That one thing begins after another: an entry of the list of what comes after the one, and of what the other waits
 * for. */
struct enkiDependency {
    enkiCompletable *before, *waits;
    enkiDependency *next, *next_awaited;
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
    /* It is over when this is 0: it has run, and the thread that has scheduled it does not touch it any more. */
    uint32_t left;
    /* What a wait is for: its job; or an event, if it waits for something else. */
    pl_job awaited;
    int has_event;
    /* Of a pinned task. */
    uint32_t pinned_to;
    enkiDependency *dependents, *dependencies;
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

static inline void pl_enki_lock(enkiTaskScheduler *of) {
#ifdef _WIN32
    AcquireSRWLockExclusive(&of->lock);
#else
    pthread_mutex_lock(&of->lock);
#endif
}

static inline void pl_enki_unlock(enkiTaskScheduler *of) {
#ifdef _WIN32
    ReleaseSRWLockExclusive(&of->lock);
#else
    pthread_mutex_unlock(&of->lock);
#endif
}

/* Some fifty microseconds. */
static inline void pl_enki_nap(void) {
#ifdef _WIN32
    Sleep(1);
#else
    struct timeval time; /* Strict C has no nanosleep(). */
    time.tv_sec = 0;
    time.tv_usec = 50;
    select(0, 0, 0, 0, &time);
#endif
}

/* The interface has no errors. */
static inline void pl_enki_wrong(const char *what) {
    fprintf(stderr, "paceline: enkiTS's interface: %s\n", what);
    abort();
}

/* Only what cannot be: the job table is full, or memory is. */
static inline void pl_enki_must(pl_status status) {
    if (status != PL_OK) {
        fprintf(stderr, "paceline: enkiTS's interface: %s: %s\n", pl_status_name((uint32_t)status), pl_last_error());
        abort();
    }
}

static inline void *enkiDefaultAllocFunc(size_t align, size_t size, void *user, const char *file, int line) {
    (void)align; /* Of what is made here, none is greater than malloc's. */
    (void)user;
    (void)file;
    (void)line;
    return malloc(size);
}

static inline void enkiDefaultFreeFunc(void *at, size_t size, void *user, const char *file, int line) {
    (void)size;
    (void)user;
    (void)file;
    (void)line;
    free(at);
}

static inline void *pl_enki_new(const struct enkiCustomAllocator *with, size_t bytes) {
    void *made = with->alloc(sizeof(void *) * 2, bytes, with->userData, __FILE__, __LINE__);
    if (made == 0)
        pl_enki_wrong("no memory");
    return memset(made, 0, bytes);
}

static inline void pl_enki_free(const struct enkiCustomAllocator *with, void *at, size_t bytes) {
    if (at != 0)
        with->free(at, bytes, with->userData, __FILE__, __LINE__);
}

/* How many threads can compute at the same time: the CPUs that this process may use, and its share of them. */
static inline uint32_t pl_enki_cpus(void) {
    size_t threads = 1;
    pl_enki_must(pl_parallelism(0, &threads));
    return (uint32_t)threads;
}

/* A call that may be made while the scheduler ends: whether it has not. pl_enki_exit() follows then. */
static inline int pl_enki_enter(enkiTaskScheduler *of) {
    if ((__atomic_fetch_add(&of->inside, 1, __ATOMIC_ACQ_REL) & PL_ENKI_ENDED) == 0)
        return 1;
    __atomic_fetch_sub(&of->inside, 1, __ATOMIC_RELEASE);
    return 0;
}
/* The scheduler may be gone after it. */
static inline void pl_enki_exit(enkiTaskScheduler *of) { __atomic_fetch_sub(&of->inside, 1, __ATOMIC_RELEASE); }

/* Which one of these numbers this thread has; ENKI_NO_THREAD_NUM if none. */
static inline uint32_t pl_enki_find(enkiTaskScheduler *of, uintptr_t me, uint32_t number, uint32_t end) {
    for (; number < end; number++) {
        if (__atomic_load_n(&of->number_of[number], __ATOMIC_RELAXED) == me)
            return number;
    }
    return ENKI_NO_THREAD_NUM;
}

/* The number of this thread, if it is thread 0 or a registered external one: it has a seat. */
static inline uint32_t pl_enki_seat_of(enkiTaskScheduler *of) {
    return pl_enki_find(of, pl_enki_this_thread(), 0, of->externals + 1);
}

/* Gives this thread one of these numbers. ENKI_NO_THREAD_NUM if none is free. */
static inline uint32_t pl_enki_sit_down(enkiTaskScheduler *of, uintptr_t me, uint32_t number, uint32_t end) {
    for (; number < end; number++) {
        uintptr_t vacant = 0;
        if (__atomic_compare_exchange_n(&of->number_of[number], &vacant, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return number;
    }
    return ENKI_NO_THREAD_NUM;
}

/* The number of the thread that runs a body, less than enkiGetNumTaskThreads. */
static inline uint32_t pl_enki_number(enkiTaskScheduler *of, const pl_context *cx) {
    uintptr_t me = pl_enki_this_thread();
    uint32_t *place = &of->numbers[pl_context_worker(cx)];
    uint32_t number = __atomic_load_n(place, __ATOMIC_RELAXED), other;
    if (me == of->number_of[0])
        return 0;
    if (number != 0 && __atomic_load_n(&of->number_of[number - 1], __ATOMIC_RELAXED) == me)
        return number - 1;
    other = pl_enki_seat_of(of);
    if (other == ENKI_NO_THREAD_NUM)
        other = pl_enki_find(of, me, of->first_lent, of->threads);
    if (other != ENKI_NO_THREAD_NUM)
        return other;
    if (number == 0) {
        number = __atomic_fetch_add(&of->next_number, 1, __ATOMIC_RELAXED) + 1;
        if (number > of->first_lent)
            pl_enki_wrong("more threads run tasks than there are numbers: please report it");
        __atomic_store_n(place, number, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&of->number_of[number - 1], me, __ATOMIC_RELAXED);
    return number - 1;
}

/* The number that this thread's tasks get; ENKI_NO_THREAD_NUM if it has none. Looks through all numbers. */
static inline uint32_t enkiGetThreadNum(enkiTaskScheduler *of) {
    return pl_enki_find(of, pl_enki_this_thread(), 0, of->threads);
}

static inline void pl_enki_begin(enkiCompletable *it, uint32_t thread);

/* It will run: this, and what waits for it, is pending from now on. `has_event`: a wait cannot be for a job. Whether
 * it was not pending before. */
static inline int pl_enki_expect(enkiCompletable *it, int has_event) {
    const enkiDependency *each;
    if (__atomic_exchange_n(&it->is_pending, 1, __ATOMIC_ACQ_REL) != 0)
        return 0; /* Another one of those that it waits for was added before. */
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
    return 1;
}

/* The event of those that wait until no task is live. Too late: others were added and ended meanwhile. */
static inline void pl_enki_nothing_left(enkiTaskScheduler *of, pl_job event) {
    pl_status status = event != 0 ? pl_event_complete(of->jobs, event) : PL_OK;
    if (status != PL_TOO_LATE)
        pl_enki_must(status);
}

/* One task less is live. The scheduler may be gone then, unless this is inside. */
static inline void pl_enki_one_less(enkiTaskScheduler *of) {
    uint32_t live = __atomic_load_n(&of->live, __ATOMIC_RELAXED);
    while (live != PL_ENKI_AWAITED + 1) {
        if (__atomic_compare_exchange_n(&of->live, &live, live - 1, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return;
    }
    __atomic_fetch_add(&of->inside, 1, __ATOMIC_RELAXED); /* Seen by whoever sees that no task is live. */
    if (__atomic_sub_fetch(&of->live, 1, __ATOMIC_ACQ_REL) == PL_ENKI_AWAITED)
        pl_enki_nothing_left(of, __atomic_load_n(&of->nothing_left, __ATOMIC_ACQUIRE));
    pl_enki_exit(of);
}

/* It is over. It may be gone as soon as the first of those that come after it begins. */
static inline void pl_enki_over(enkiCompletable *it, uint32_t thread) {
    enum { AT_ONCE = 16 };
    enkiCompletable *some[AT_ONCE], **next = some;
    enkiTaskScheduler *of = it->of;
    enkiCompletionFunction post = it->post;
    void *post_args = it->post_args;
    const struct enkiCustomAllocator memory = of->config.customAllocator;
    const enkiDependency *each;
    size_t count = 0, at = 0;
    pl_job event = it->has_event ? it->awaited : 0;
    if (__atomic_load_n(&it->dependents, __ATOMIC_ACQUIRE) != 0) {
        pl_enki_lock(of);
        for (each = it->dependents; each != 0; each = each->next)
            count++;
        if (count > AT_ONCE)
            next = (enkiCompletable **)pl_enki_new(&memory, count * sizeof *next);
        for (each = it->dependents; each != 0; each = each->next)
            next[at++] = each->waits;
        pl_enki_unlock(of);
    }
    __atomic_store_n(&it->is_pending, 0, __ATOMIC_RELEASE);
    if (event != 0)
        pl_enki_must(pl_event_complete(of->jobs, event));
    for (at = 0; at < count; at++) {
        uint32_t needed = __atomic_load_n(&next[at]->needed, __ATOMIC_RELAXED);
        if (__atomic_add_fetch(&next[at]->arrived, 1, __ATOMIC_ACQ_REL) == needed)
            pl_enki_begin(next[at], thread);
    }
    if (next != some)
        pl_enki_free(&memory, next, count * sizeof *next);
    if (post != 0)
        post(post_args, thread);
    pl_enki_one_less(of);
}

/* It has run, or the thread that has scheduled it is through with it: the last one of the two goes on. */
static inline void pl_enki_leave(enkiCompletable *it, uint32_t thread) {
    if (__atomic_sub_fetch(&it->left, 1, __ATOMIC_ACQ_REL) == 0)
        pl_enki_over(it, thread);
}

static inline void pl_enki_part(pl_context *cx, size_t begin, size_t end, void *data) {
    enkiCompletable *it = (enkiCompletable *)data;
    uint32_t thread = pl_enki_number(it->of, cx), all = it->set_size, items = (uint32_t)(end - begin);
    it->run((uint32_t)begin, (uint32_t)end, thread, it->args);
    if (__atomic_add_fetch(&it->items_done, items, __ATOMIC_ACQ_REL) == all)
        pl_enki_leave(it, thread);
}

static inline void pl_enki_whole(pl_context *cx, void *data) {
    enkiCompletable *it = (enkiCompletable *)data;
    uint32_t thread = pl_enki_number(it->of, cx);
    it->run(0, it->set_size, thread, it->args);
    pl_enki_leave(it, thread);
}

/* `data` is the job's copy of the address. */
static inline void pl_enki_pinned(pl_context *cx, void *data) {
    enkiCompletable *it = *(enkiCompletable **)data;
    uint32_t thread = pl_enki_number(it->of, cx);
    *(enkiCompletable **)data = 0;
    it->run_pinned(it->args);
    it->of->seats[it->pinned_to].pinned_over++; /* That thread's, which is this one. */
    pl_enki_leave(it, thread);
}

/* The job is over. If it has not run, its thread has left, and the task is over here. */
static inline void pl_enki_released(void *data) {
    enkiCompletable *it = *(enkiCompletable **)data;
    if (it != 0)
        pl_enki_leave(it, enkiGetThreadNum(it->of));
}

/* The pin of the thread that it is for. */
static inline pl_pin pl_enki_pin(const enkiCompletable *it) {
    enkiTaskScheduler *of = it->of;
    pl_pin pin = it->pinned_to <= of->externals ? __atomic_load_n(&of->seats[it->pinned_to].pin, __ATOMIC_ACQUIRE) : 0;
    if (pin == 0)
        pl_enki_wrong("a task is pinned to a thread that is neither thread 0 nor a registered external one");
    return pin;
}

/* A task is ready for the thread with this number, which may wait for that, or the scheduler ends. */
static inline void pl_enki_tell(enkiTaskScheduler *of, uint32_t number) {
    pl_job event = __atomic_exchange_n(&of->seats[number].news, 0, __ATOMIC_SEQ_CST);
    if (event != 0)
        pl_enki_must(pl_event_complete(of->jobs, event));
}

/* All that it waits for is over. `thread` is the number of this thread. */
static inline void pl_enki_begin(enkiCompletable *it, uint32_t thread) {
    enkiTaskScheduler *of = it->of;
    uint32_t parts = of->parallel * 4, grain = it->set_size / (parts > 0 ? parts : 1) + 1;
    pl_lane lane = it->priority > 1 ? PL_LANE_BACKGROUND : PL_LANE_NORMAL;
    /* The scheduler may be gone when this one is over. */
    pl_system *jobs = of->jobs;
    int has_workers = of->parallel > 1;
    pl_job job = 0;
    if (__atomic_load_n(&it->is_pending, __ATOMIC_ACQUIRE) == 0)
        pl_enki_wrong("a task comes after itself: its dependencies are a circle");
    __atomic_store_n(&it->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&it->items_done, 0, __ATOMIC_RELAXED);
    grain = grain < it->min_range ? it->min_range : grain;
    if (it->kind == PL_ENKI_NOTHING || it->kind == PL_ENKI_ACTION || (it->kind == PL_ENKI_SET && it->set_size == 0)) {
        if (it->pre != 0)
            it->pre(it->args, thread);
        pl_enki_over(it, thread);
        return;
    }
    __atomic_store_n(&it->left, 2, __ATOMIC_RELAXED);
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
        if (it->kind == PL_ENKI_PINNED) {
            desc.body = pl_enki_pinned;
            desc.data = &it;
            desc.data_size = sizeof it;
            desc.release = pl_enki_released;
            desc.pin = pl_enki_pin(it);
        }
        desc.lane = lane;
        desc.group = of->group;
        pl_enki_must(pl_schedule(of->jobs, &desc, &job));
        if (it->kind == PL_ENKI_PINNED)
            pl_enki_tell(of, it->pinned_to);
    }
    if (!it->has_event)
        __atomic_store_n(&it->awaited, job, __ATOMIC_RELEASE);
    pl_enki_leave(it, thread);
    if (has_workers) /* Else this would run it. */
        pl_enki_must(pl_flush(jobs));
}

static inline void pl_enki_add(enkiCompletable *it) {
    if (!pl_enki_expect(it, 0))
        pl_enki_wrong("a task is added that is not complete: it was added before, or comes after one that was");
    pl_enki_begin(it, enkiGetThreadNum(it->of));
}

static inline void pl_enki_init(enkiCompletable *it, enkiTaskScheduler *of, enum pl_enki_kind kind) {
    it->of = of;
    it->kind = kind;
    it->set_size = it->min_range = 1;
}

/* Under the lock: it comes after nothing any more. */
static inline void pl_enki_cut(enkiDependency *edge) {
    enkiDependency **at;
    if (edge->before == 0)
        return;
    for (at = &edge->before->dependents; *at != edge; at = &(*at)->next)
        ;
    __atomic_store_n(at, edge->next, __ATOMIC_RELEASE);
    for (at = &edge->waits->dependencies; *at != edge; at = &(*at)->next_awaited)
        ;
    *at = edge->next_awaited;
    __atomic_fetch_sub(&edge->waits->needed, 1, __ATOMIC_RELAXED);
    edge->before = 0;
}

/* It is deleted: nothing comes after it any more, nor it after anything. */
static inline void pl_enki_delete(enkiCompletable *it) {
    enkiTaskScheduler *of;
    if (it == 0)
        return;
    of = it->of;
    pl_enki_lock(of);
    while (it->dependents != 0)
        pl_enki_cut(it->dependents);
    while (it->dependencies != 0)
        pl_enki_cut(it->dependencies);
    pl_enki_unlock(of);
    pl_enki_free(&of->config.customAllocator, it, sizeof *it);
}

/* ---- The scheduler ---- */

static inline enkiTaskScheduler *enkiNewTaskSchedulerWithCustomAllocator(struct enkiCustomAllocator with) {
    enkiTaskScheduler *made = (enkiTaskScheduler *)pl_enki_new(&with, sizeof *made);
    made->made_by = made->config.customAllocator = with;
    made->config.numTaskThreadsToCreate = pl_enki_cpus() - 1;
    made->inside = PL_ENKI_ENDED; /* Until it begins. */
#ifdef _WIN32
    InitializeSRWLock(&made->lock);
#else
    pthread_mutex_init(&made->lock, 0);
#endif
    return made;
}

static inline enkiTaskScheduler *enkiNewTaskScheduler(void) {
    struct enkiCustomAllocator usual;
    usual.alloc = enkiDefaultAllocFunc;
    usual.free = enkiDefaultFreeFunc;
    usual.userData = 0;
    return enkiNewTaskSchedulerWithCustomAllocator(usual);
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

static inline struct enkiProfilerCallbacks *enkiGetProfilerCallbacks(enkiTaskScheduler *of) {
    return &of->config.profilerCallbacks;
}

static inline uint32_t enkiGetNumTaskThreads(enkiTaskScheduler *of) { return of->threads; }

/* For tasks that go on until the scheduler ends: they are to look, and return. */
static inline int enkiGetIsShutdownRequested(enkiTaskScheduler *of) {
    return __atomic_load_n(&of->is_ending, __ATOMIC_ACQUIRE) != 0;
}
static inline int enkiGetIsRunning(enkiTaskScheduler *of) { return !enkiGetIsShutdownRequested(of); }
static inline int enkiGetIsWaitforAllCalled(enkiTaskScheduler *of) {
    return __atomic_load_n(&of->waits_for_all, __ATOMIC_ACQUIRE) != 0;
}

/* On a thread without pinned tasks it does nothing. */
static inline void enkiRunPinnedTasks(enkiTaskScheduler *of) {
    if (!pl_enki_enter(of))
        return;
    if (pl_enki_seat_of(of) != ENKI_NO_THREAD_NUM)
        pl_enki_must(pl_run_pinned_jobs(of->jobs, 0));
    pl_enki_exit(of);
}

/* Whether this thread may run tasks. `*lent` is a number that it has for that, until pl_enki_stand_up; or 0. */
static inline int pl_enki_may_run(enkiTaskScheduler *of, uint32_t *lent) {
    *lent = 0;
    if (!of->owns_jobs || enkiGetThreadNum(of) != ENKI_NO_THREAD_NUM)
        return 1;
    *lent = pl_enki_sit_down(of, pl_enki_this_thread(), of->first_lent, of->threads);
    return *lent != ENKI_NO_THREAD_NUM;
}

static inline void pl_enki_stand_up(enkiTaskScheduler *of, uint32_t lent) {
    if (lent != 0)
        __atomic_store_n(&of->number_of[lent], 0, __ATOMIC_RELEASE);
}

/* Waits for a job or an event, and runs tasks meanwhile, if this thread may. Else it may return early. */
static inline void pl_enki_wait(enkiTaskScheduler *of, pl_job job) {
    static const uint64_t HOUR = 3600ull * 1000000000ull;
    pl_status status = PL_OK;
    uint32_t lent;
    if (pl_enki_may_run(of, &lent)) {
        status = pl_group_wait(of->jobs, of->group, job);
        pl_enki_stand_up(of, lent);
    } else if (of->parallel > 1) {
        /* With a time limit a wait runs nothing here. */
        status = pl_group_wait_timeout(of->jobs, of->group, job, HOUR);
    } else {
        pl_enki_nap(); /* Only thread 0 runs tasks. */
    }
    if (status != PL_TIMEOUT && status != PL_CANCELLED) /* Cancelled: it is pinned to a thread that has left. */
        pl_enki_must(status);
}

/* Not in a task: it is one of those that this waits for. */
static inline void enkiWaitForAll(enkiTaskScheduler *of) {
    enkiRunPinnedTasks(of);
    while ((__atomic_load_n(&of->live, __ATOMIC_ACQUIRE) & ~(uint32_t)PL_ENKI_AWAITED) != 0) {
        pl_job event;
        int32_t is_over = 1;
        pl_enki_lock(of);
        event = of->nothing_left;
        if (event != 0)
            pl_enki_must(pl_is_done(of->jobs, event, &is_over));
        if (is_over) { /* There is none, or it was for those before. */
            pl_enki_must(pl_event_create(of->jobs, "enki", 1, &event));
            __atomic_store_n(&of->nothing_left, event, __ATOMIC_RELEASE);
            if ((__atomic_fetch_or(&of->live, PL_ENKI_AWAITED, __ATOMIC_ACQ_REL) & ~(uint32_t)PL_ENKI_AWAITED) == 0)
                pl_enki_nothing_left(of, event);
        }
        __atomic_fetch_add(&of->waits_for_all, 1, __ATOMIC_RELEASE);
        pl_enki_unlock(of);
        for (is_over = 0; !is_over;) {
            pl_enki_wait(of, event);
            pl_enki_must(pl_is_done(of->jobs, event, &is_over));
        }
        pl_enki_lock(of);
        __atomic_fetch_sub(&of->waits_for_all, 1, __ATOMIC_RELEASE);
        if (of->nothing_left == event) {
            __atomic_store_n(&of->nothing_left, 0, __ATOMIC_RELEASE);
            __atomic_fetch_and(&of->live, ~(uint32_t)PL_ENKI_AWAITED, __ATOMIC_ACQ_REL);
        }
        pl_enki_unlock(of);
    }
}

/* Returns when this thread has run pinned tasks since the last such call returned, or the scheduler ends. It is for
 * thread 0 and for registered external threads. */
static inline void enkiWaitForNewPinnedTasks(enkiTaskScheduler *of) {
    uint32_t number;
    if (!pl_enki_enter(of))
        return;
    number = pl_enki_seat_of(of);
    if (number != ENKI_NO_THREAD_NUM) {
        struct pl_enki_seat *seat = &of->seats[number];
        enkiRunPinnedTasks(of);
        while (seat->pinned_over == seat->pinned_told && !enkiGetIsShutdownRequested(of)) {
            /* There is one if this is in a pinned task that such a wait runs, which needs it, too. */
            pl_job event = __atomic_load_n(&seat->news, __ATOMIC_SEQ_CST);
            if (event == 0) {
                pl_enki_must(pl_event_create(of->jobs, "enki", 1, &event));
                __atomic_store_n(&seat->news, event, __ATOMIC_SEQ_CST);
            }
            enkiRunPinnedTasks(of);
            if (seat->pinned_over != seat->pinned_told || __atomic_load_n(&of->is_ending, __ATOMIC_SEQ_CST) != 0)
                pl_enki_tell(of, number);
            pl_enki_must(pl_wait(of->jobs, event));
            enkiRunPinnedTasks(of);
        }
        seat->pinned_told = seat->pinned_over;
    }
    pl_enki_exit(of);
}

static inline void pl_enki_end(enkiTaskScheduler *of) {
    const struct enkiCustomAllocator *memory = &of->config.customAllocator;
    uint32_t number;
    if (of->threads == 0)
        return;
    __atomic_store_n(&of->is_ending, 1, __ATOMIC_SEQ_CST);
    for (number = 0; number <= of->externals; number++)
        pl_enki_tell(of, number);
    enkiWaitForAll(of);
    __atomic_fetch_or(&of->inside, PL_ENKI_ENDED, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&of->inside, __ATOMIC_ACQUIRE) != PL_ENKI_ENDED)
        pl_enki_nap(); /* None of them blocks any more. */
    pl_unpin_thread(of->jobs);
    pl_enki_must(pl_group_destroy(of->jobs, of->group));
    if (of->owns_jobs) {
        pl_enki_must(pl_system_destroy(of->jobs));
        of->jobs = 0;
    }
    pl_enki_free(memory, of->numbers, of->slots * sizeof of->numbers[0]);
    pl_enki_free(memory, of->number_of, of->threads * sizeof of->number_of[0]);
    pl_enki_free(memory, of->seats, (of->externals + 1) * sizeof of->seats[0]);
    of->threads = of->externals = 0;
}

static inline void enkiInitTaskSchedulerWithConfig(enkiTaskScheduler *of, struct enkiTaskSchedulerConfig config) {
    const struct enkiCustomAllocator *memory = &of->config.customAllocator;
    size_t workers = 0;
    pl_enki_end(of);
    if (config.customAllocator.alloc == 0 || config.customAllocator.free == 0)
        config.customAllocator = of->made_by;
    of->config = config;
    if (of->jobs == 0) {
        pl_system_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.size = sizeof desc;
        desc.workers = config.numTaskThreadsToCreate;
        desc.no_workers = config.numTaskThreadsToCreate == 0;
        desc.no_spares = 1; /* A wait runs any task, so others need no further thread. */
        if (sizeof(void *) == 8)
            desc.stack_bytes = (size_t)16 << 20; /* For tasks that wait inside of tasks; unused, it costs nothing. */
        pl_enki_must(pl_system_create(&desc, &of->jobs));
        of->owns_jobs = 1;
    }
    pl_enki_must(pl_workers(of->jobs, &workers));
    pl_enki_must(pl_thread_slots(of->jobs, &of->slots));
    pl_enki_must(pl_group_create(of->jobs, "enki", &of->group));
    of->externals = config.numExternalTaskThreads;
    of->parallel = (uint32_t)workers + 1;
    /* Where the program has other jobs, threads take the places of those that they block. */
    of->first_lent = of->externals + 1 + (uint32_t)(of->owns_jobs ? workers : of->slots);
    of->threads = of->first_lent + (of->owns_jobs ? of->externals : 0);
    of->next_number = of->externals + 1;
    of->numbers = (uint32_t *)pl_enki_new(memory, of->slots * sizeof of->numbers[0]);
    of->number_of = (uintptr_t *)pl_enki_new(memory, of->threads * sizeof of->number_of[0]);
    of->seats = (struct pl_enki_seat *)pl_enki_new(memory, (of->externals + 1) * sizeof of->seats[0]);
    of->number_of[0] = pl_enki_this_thread();
    of->registered = 0;
    of->is_ending = 0;
    pl_enki_must(pl_pin_thread(of->jobs, 0, &of->seats[0].pin));
    __atomic_fetch_and(&of->inside, ~(uint32_t)PL_ENKI_ENDED, __ATOMIC_RELEASE);
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
    struct enkiCustomAllocator memory = of->made_by;
    pl_enki_end(of);
#ifndef _WIN32
    pthread_mutex_destroy(&of->lock);
#endif
    pl_enki_free(&memory, of, sizeof *of);
}

/* Gives the calling thread this number, from 1 to numExternalTaskThreads. 0: another thread has it, or there is no such
 * number. */
static inline int enkiRegisterExternalTaskThreadNum(enkiTaskScheduler *of, uint32_t number) {
    uintptr_t me = pl_enki_this_thread();
    uint32_t each;
    if (number == 0 || number > of->externals ||
        pl_enki_sit_down(of, me, number, number + 1) == ENKI_NO_THREAD_NUM)
        return 0;
    /* A number that it had without being registered. One that is lent goes back after the wait. */
    for (each = of->externals + 1; each < of->first_lent; each++) {
        uintptr_t mine = me;
        __atomic_compare_exchange_n(&of->number_of[each], &mine, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    {
        struct pl_enki_seat *seat = &of->seats[number];
        pl_pin pin = 0;
        pl_enki_must(pl_pin_thread(of->jobs, 0, &pin));
        seat->pinned_told = seat->pinned_over; /* Those of the thread before. */
        __atomic_store_n(&seat->pin, pin, __ATOMIC_RELEASE);
    }
    __atomic_fetch_add(&of->registered, 1, __ATOMIC_RELAXED);
    return 1;
}

/* The same with any number that is free. */
static inline int enkiRegisterExternalTaskThread(enkiTaskScheduler *of) {
    uint32_t number;
    for (number = 1; number <= of->externals; number++) {
        if (enkiRegisterExternalTaskThreadNum(of, number))
            return 1;
    }
    return 0;
}

static inline void enkiDeRegisterExternalTaskThread(enkiTaskScheduler *of) {
    uint32_t number;
    size_t ran;
    if (!pl_enki_enter(of))
        return;
    while ((number = pl_enki_seat_of(of)) != ENKI_NO_THREAD_NUM && number != 0) {
        pl_enki_must(pl_run_pinned_jobs(of->jobs, &ran));
        if (ran > 0)
            continue; /* Others may come after those, or they have called this function. */
        __atomic_store_n(&of->seats[number].pin, 0, __ATOMIC_RELEASE);
        pl_unpin_thread(of->jobs);
        __atomic_store_n(&of->number_of[number], 0, __ATOMIC_RELEASE);
        __atomic_fetch_sub(&of->registered, 1, __ATOMIC_RELAXED);
        break;
    }
    pl_enki_exit(of);
}

static inline uint32_t enkiGetNumRegisteredExternalTaskThreads(enkiTaskScheduler *of) {
    return __atomic_load_n(&of->registered, __ATOMIC_RELAXED);
}
static inline uint32_t enkiGetNumFirstExternalTaskThread(void) { return 1; }

/* ---- What can be waited for ---- */

static inline int enkiIsCompletableComplete(enkiTaskScheduler *of, enkiCompletable *it) {
    (void)of;
    return __atomic_load_n(&it->is_pending, __ATOMIC_ACQUIRE) == 0;
}

static inline void enkiWaitForCompletable(enkiTaskScheduler *of, enkiCompletable *it) {
    if (it == 0) { /* Runs what is there. */
        uint32_t lent;
        if (pl_enki_may_run(of, &lent)) {
            pl_enki_must(pl_poll(of->jobs, 0));
            pl_enki_stand_up(of, lent);
        }
        return;
    }
    if (enkiIsCompletableComplete(of, it))
        return;
    if (of->config.profilerCallbacks.waitForTaskCompleteStart != 0)
        of->config.profilerCallbacks.waitForTaskCompleteStart(enkiGetThreadNum(of));
    while (!enkiIsCompletableComplete(of, it)) {
        pl_job awaited = __atomic_load_n(&it->awaited, __ATOMIC_ACQUIRE);
        int32_t is_done = 1;
        if (awaited != 0)
            pl_enki_must(pl_is_done(of->jobs, awaited, &is_done));
        if (is_done)
            pl_enki_nap(); /* The thread that adds it is about to set it, or to see that it has run. */
        else
            pl_enki_wait(of, awaited);
    }
    if (of->config.profilerCallbacks.waitForTaskCompleteStop != 0)
        of->config.profilerCallbacks.waitForTaskCompleteStop(enkiGetThreadNum(of));
}

static inline void enkiWaitForCompletablePriority(enkiTaskScheduler *of, enkiCompletable *it, int most) {
    (void)most;
    enkiWaitForCompletable(of, it);
}

static inline enkiCompletable *enkiCreateCompletable(enkiTaskScheduler *of) {
    enkiCompletable *made = (enkiCompletable *)pl_enki_new(&of->config.customAllocator, sizeof *made);
    pl_enki_init(made, of, PL_ENKI_NOTHING);
    return made;
}
static inline void enkiDeleteCompletable(enkiTaskScheduler *of, enkiCompletable *it) {
    (void)of;
    pl_enki_delete(it);
}

/* ---- Sets of tasks ---- */

static inline enkiTaskSet *enkiCreateTaskSet(enkiTaskScheduler *of, enkiTaskExecuteRange run) {
    enkiTaskSet *made = (enkiTaskSet *)pl_enki_new(&of->config.customAllocator, sizeof *made);
    if (run == 0)
        pl_enki_wrong("enkiCreateTaskSet() got no function");
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
    enkiPinnedTask *made = (enkiPinnedTask *)pl_enki_new(&of->config.customAllocator, sizeof *made);
    if (run == 0)
        pl_enki_wrong("enkiCreatePinnedTask() got no function");
    pl_enki_init(&made->is, of, PL_ENKI_PINNED);
    made->is.run_pinned = run;
    made->is.pinned_to = thread;
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
    return (enkiDependency *)pl_enki_new(&of->config.customAllocator, sizeof(enkiDependency));
}

/* Not while one of the two is pending. */
static inline void enkiSetDependency(enkiDependency *edge, enkiCompletable *before, enkiCompletable *waits) {
    pl_enki_lock(before->of);
    pl_enki_cut(edge);
    edge->before = before;
    edge->waits = waits;
    edge->next = before->dependents;
    edge->next_awaited = waits->dependencies;
    __atomic_store_n(&before->dependents, edge, __ATOMIC_RELEASE);
    waits->dependencies = edge;
    __atomic_fetch_add(&waits->needed, 1, __ATOMIC_RELAXED);
    pl_enki_unlock(before->of);
}

static inline void enkiDeleteDependency(enkiTaskScheduler *of, enkiDependency *edge) {
    pl_enki_lock(of);
    pl_enki_cut(edge);
    pl_enki_unlock(of);
    pl_enki_free(&of->config.customAllocator, edge, sizeof *edge);
}

/* ---- What is called when something is over ---- */

static inline enkiCompletionAction *enkiCreateCompletionAction(enkiTaskScheduler *of, enkiCompletionFunction pre,
                                                               enkiCompletionFunction post) {
    enkiCompletionAction *made = (enkiCompletionAction *)pl_enki_new(&of->config.customAllocator, sizeof *made);
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
    if (params.pDependency == 0) {
        pl_enki_lock(action->is.of);
        pl_enki_cut(&action->is.own);
        pl_enki_unlock(action->is.of);
    } else
        enkiSetDependency(&action->is.own, (enkiCompletable *)(uintptr_t)params.pDependency, &action->is);
}
static inline enkiCompletable *enkiGetCompletableFromCompletionAction(enkiCompletionAction *action) {
    return &action->is;
}

#ifdef __cplusplus
}
#endif

#endif
