/* What a program for enkiTS does wrong ends it with a line that says what. Each mistake is made in a process of its
 * own. */
#define _POSIX_C_SOURCE 200809L

#include <TaskScheduler_c.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void nothing(uint32_t start, uint32_t end, uint32_t thread, void *args) {
    (void)start;
    (void)end;
    (void)thread;
    (void)args;
}

static void pinned(void *args) { (void)args; }

static void without_a_function(enkiTaskScheduler *of) { enkiCreateTaskSet(of, 0); }

static void pinned_without_a_function(enkiTaskScheduler *of) { enkiCreatePinnedTask(of, 0, 0); }

static void added_twice(enkiTaskScheduler *of) {
    enkiPinnedTask *task = enkiCreatePinnedTask(of, pinned, 0);
    enkiAddPinnedTask(of, task);
    enkiAddPinnedTask(of, task);
}

static void after_itself(enkiTaskScheduler *of) {
    enkiTaskSet *first = enkiCreateTaskSet(of, nothing), *second = enkiCreateTaskSet(of, nothing);
    enkiDependency *forth = enkiCreateDependency(of), *back = enkiCreateDependency(of);
    enkiSetDependency(forth, enkiGetCompletableFromTaskSet(first), enkiGetCompletableFromTaskSet(second));
    enkiSetDependency(back, enkiGetCompletableFromTaskSet(second), enkiGetCompletableFromTaskSet(first));
    enkiAddTaskSet(of, first);
    enkiWaitForTaskSet(of, second);
}

static void pinned_to_a_worker(enkiTaskScheduler *of) {
    enkiAddPinnedTask(of, enkiCreatePinnedTask(of, pinned, enkiGetNumTaskThreads(of) - 1));
}

static void make(void (*mistake)(enkiTaskScheduler *of), uint32_t threads) {
    int status = 0;
    pid_t child;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        enkiTaskScheduler *of = enkiNewTaskScheduler();
        dup2(1, 2);
        enkiInitTaskSchedulerNumThreads(of, threads);
        mistake(of);
        printf("nothing was said\n");
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        printf("it ended with %d\n", status);
}

int main(void) {
    make(without_a_function, 1);
    make(pinned_without_a_function, 1);
    make(added_twice, 1);
    make(after_itself, 1);
    make(pinned_to_a_worker, 2);
    return 0;
}
