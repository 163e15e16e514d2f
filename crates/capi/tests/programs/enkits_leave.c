/* Threads of the program's that come and go: what they may call, with a number or without one, and what becomes of
 * their tasks and of their waits when they take leave, or when the scheduler ends. */
#include <TaskScheduler_c.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 50 };

static enkiTaskScheduler *scheduler;
static unsigned phase, runs, number, registered;

static unsigned now(const unsigned *of) { return __atomic_load_n(of, __ATOMIC_SEQ_CST); }
static void set(unsigned *to, unsigned value) { __atomic_store_n(to, value, __ATOMIC_SEQ_CST); }

static void until(unsigned value) {
    while (now(&phase) != value)
        pl_enki_nap();
}

static void begin(uint32_t workers) {
    struct enkiTaskSchedulerConfig config;
    scheduler = enkiNewTaskScheduler();
    config = enkiGetTaskSchedulerConfig(scheduler);
    config.numTaskThreadsToCreate = workers;
    config.numExternalTaskThreads = 1;
    enkiInitTaskSchedulerWithConfig(scheduler, config);
    phase = runs = number = registered = 0;
}

/* Long enough for what another thread is about to do. No count depends on that. */
static void rest(void) {
    for (int i = 0; i < 500; i++)
        pl_enki_nap();
}

static pthread_t started(void *(*body)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0)
        abort();
    return thread;
}

static void note(void *args) {
    (void)args;
    __atomic_fetch_add(&runs, 1, __ATOMIC_SEQ_CST);
}

static void note_set(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    (void)start;
    (void)end;
    (void)thread;
    note(args);
}

/* ---- A number that is lent ---- */

/* Has no pinned tasks, and takes no leave. */
static void asks(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    enkiRunPinnedTasks(scheduler);
    enkiWaitForNewPinnedTasks(scheduler);
    enkiDeRegisterExternalTaskThread(scheduler);
    registered = enkiGetNumRegisteredExternalTaskThreads(scheduler);
    number = thread == enkiGetThreadNum(scheduler) && thread < enkiGetNumTaskThreads(scheduler);
    note_set(start, end, thread, args);
}

/* Goes on until an external thread has tried to register. */
static void blocks(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    set(&phase, 1);
    until(2);
    note_set(start, end, thread, args);
}

static void waits_for(enkiTaskExecuteRange run) {
    enkiTaskSet *task = enkiCreateTaskSet(scheduler, run);
    enkiAddTaskSet(scheduler, task);
    enkiWaitForTaskSet(scheduler, task);
    enkiDeleteTaskSet(scheduler, task);
}

static void *visitor_asks(void *args) {
    waits_for(asks);
    return args;
}

static void *visitor_blocks(void *args) {
    waits_for(blocks);
    return args;
}

static void *registers(void *args) {
    until(1);
    registered = (unsigned)enkiRegisterExternalTaskThread(scheduler);
    number = enkiGetThreadNum(scheduler);
    set(&phase, 2);
    enkiDeRegisterExternalTaskThread(scheduler);
    return args;
}

/* Without workers it is the visitor that runs its task. */
static void lent(void) {
    pthread_t threads[2];
    begin(0);
    pthread_join(started(visitor_asks), NULL);
    printf("lent: %u run, %u registered, %s number\n", runs, registered, number ? "its" : "another");
    threads[0] = started(visitor_blocks);
    threads[1] = started(registers);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("meanwhile: %u registered, number %u, %u run\n", registered, number, runs);
    enkiDeleteTaskScheduler(scheduler);
}

/* ---- A thread takes leave ---- */

static void *takes_leave(void *args) {
    enkiRegisterExternalTaskThread(scheduler);
    set(&phase, 1);
    until(2);
    enkiDeRegisterExternalTaskThread(scheduler);
    return args;
}

static void *waits_for_news(void *args) {
    enkiRegisterExternalTaskThread(scheduler);
    set(&phase, 3);
    enkiWaitForNewPinnedTasks(scheduler);
    number = now(&runs);
    enkiDeRegisterExternalTaskThread(scheduler);
    return args;
}

static void *just_ends(void *args) {
    enkiRegisterExternalTaskThread(scheduler);
    set(&phase, 4);
    until(5);
    return args;
}

/* Three of its tasks, one after the other, run when it takes leave. The next thread waits for its own first one. Of one
 * that only ends a task does not run, but is over. */
static void leave(uint32_t workers) {
    enum { TASKS = 3 };
    enkiPinnedTask *tasks[TASKS];
    enkiDependency *edges[TASKS];
    enkiTaskSet *then;
    pthread_t thread;
    begin(workers);
    then = enkiCreateTaskSet(scheduler, note_set);
    for (int i = 0; i < TASKS; i++)
        tasks[i] = enkiCreatePinnedTask(scheduler, note, 1);
    for (int i = 1; i < TASKS; i++) {
        edges[i] = enkiCreateDependency(scheduler);
        enkiSetDependency(edges[i], enkiGetCompletableFromPinnedTask(tasks[i - 1]),
                          enkiGetCompletableFromPinnedTask(tasks[i]));
    }
    thread = started(takes_leave);
    until(1);
    enkiAddPinnedTask(scheduler, tasks[0]);
    set(&phase, 2);
    pthread_join(thread, NULL);
    printf("leave: %u run, %s\n", runs, enkiIsPinnedTaskComplete(scheduler, tasks[2]) ? "all" : "not all");
    if (!enkiIsPinnedTaskComplete(scheduler, tasks[2]))
        exit(1);
    for (int i = 1; i < TASKS; i++)
        enkiDeleteDependency(scheduler, edges[i]);

    runs = 0;
    thread = started(waits_for_news);
    until(3);
    rest(); /* It waits by now. */
    enkiAddPinnedTask(scheduler, tasks[0]);
    pthread_join(thread, NULL);
    printf("news: after %u\n", number);

    runs = 0;
    edges[0] = enkiCreateDependency(scheduler);
    enkiSetDependency(edges[0], enkiGetCompletableFromPinnedTask(tasks[0]), enkiGetCompletableFromTaskSet(then));
    thread = started(just_ends);
    until(4);
    enkiAddPinnedTask(scheduler, tasks[0]);
    set(&phase, 5);
    pthread_join(thread, NULL);
    enkiWaitForPinnedTask(scheduler, tasks[0]);
    enkiWaitForTaskSet(scheduler, then);
    enkiWaitForAll(scheduler);
    printf("ends: %u run\n", runs);
    enkiDeleteDependency(scheduler, edges[0]);
    enkiDeleteTaskSet(scheduler, then);
    for (int i = 0; i < TASKS; i++)
        enkiDeletePinnedTask(scheduler, tasks[i]);
    enkiDeleteTaskScheduler(scheduler);
}

/* ---- Waits for pinned tasks ---- */

static enkiPinnedTask *outer, *inner;

/* It is slow to say that the outer task is ready, until that one runs, and waits for the inner one. */
static void is_slow(void *args) {
    (void)args;
    if (now(&phase) == 1) {
        until(2);
        rest();
    }
}

static void waits_inside(void *args) {
    set(&phase, 2);
    enkiWaitForNewPinnedTasks(scheduler);
    number = now(&runs);
    note(args);
}

static void *adds(void *args) {
    until(1);
    rest();
    enkiAddPinnedTask(scheduler, outer);
    enkiAddPinnedTask(scheduler, inner);
    return args;
}

/* A wait in a pinned task that runs in such a wait: each ends. */
static void nested(void) {
    pthread_t thread;
    pl_pin pin;
    pl_pin_desc desc;
    begin(1);
    memset(&desc, 0, sizeof desc);
    desc.size = sizeof desc;
    desc.on_ready = is_slow;
    if (pl_pin_thread(scheduler->jobs, &desc, &pin) != PL_OK)
        abort();
    outer = enkiCreatePinnedTask(scheduler, waits_inside, 0);
    inner = enkiCreatePinnedTask(scheduler, note, 0);
    thread = started(adds);
    set(&phase, 1);
    enkiWaitForNewPinnedTasks(scheduler);
    printf("nested: %u, then %u\n", number, runs);
    pthread_join(thread, NULL);
    enkiWaitForAll(scheduler);
    enkiDeletePinnedTask(scheduler, outer);
    enkiDeletePinnedTask(scheduler, inner);
    pl_unpin_thread(scheduler->jobs);
    enkiDeleteTaskScheduler(scheduler);
}

static void *runs_pinned(void *args) {
    registered = (unsigned)enkiRegisterExternalTaskThread(scheduler);
    set(&phase, 1);
    while (!enkiGetIsShutdownRequested(scheduler)) {
        enkiWaitForNewPinnedTasks(scheduler);
        enkiRunPinnedTasks(scheduler);
    }
    enkiDeRegisterExternalTaskThread(scheduler);
    return args;
}

/* The scheduler ends under a thread that waits for pinned tasks. */
static void ends(void) {
    unsigned rounds = 0;
    for (; rounds < ROUNDS; rounds++) {
        pthread_t thread;
        begin(1);
        thread = started(runs_pinned);
        until(1);
        pl_enki_nap();
        enkiWaitforAllAndShutdown(scheduler);
        pthread_join(thread, NULL);
        enkiDeleteTaskScheduler(scheduler);
    }
    printf("%u schedulers ended\n", rounds);
}

/* With an argument only what begins with it. */
int main(int count, char **args) {
    const char only = count > 1 ? args[1][0] : 0;
    setvbuf(stdout, NULL, _IOLBF, 1 << 10);
    alarm(20); /* What hangs ends, and fails. */
    if (only == 0 || only == 'l')
        lent();
    for (uint32_t workers = 0; workers <= 1 && (only == 0 || only == 't'); workers++)
        leave(workers);
    if (only == 0 || only == 'n')
        nested();
    if (only == 0 || only == 'e')
        ends();
    return 0;
}
