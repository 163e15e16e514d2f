/* Calls on a stack that is not the thread's own, as in a fiber. It lies below the thread's. */
#define _GNU_SOURCE

#include <paceline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 1 << 20 };

static pl_system *jobs;
static pl_pin pin;
static ucontext_t home, fiber;
static unsigned ran;

static void body(pl_context *cx, void *data) {
    (void)cx;
    (void)data;
    ran++;
}

static void on_fiber(void) {
    pl_job_desc desc;
    pl_job job = 0;
    memset(&desc, 0, sizeof desc);
    desc.size = sizeof desc;
    desc.body = body;
    desc.pin = pin;
    pl_schedule(jobs, &desc, &job);
    printf("%s", pl_status_name((uint32_t)pl_wait(jobs, job)));
}

static void wait_on_a_fiber(uint32_t workers, int is_pinned) {
    pl_system_desc desc;
    void *stack = malloc(STACK);
    pl_pin here = 0;
    memset(&desc, 0, sizeof desc);
    desc.size = sizeof desc;
    desc.workers = workers;
    desc.no_workers = workers == 0;
    pl_system_create(&desc, &jobs);
    pl_pin_thread(jobs, NULL, &here);
    pin = is_pinned ? here : 0;
    getcontext(&fiber);
    fiber.uc_stack.ss_size = STACK;
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_link = &home;
    makecontext(&fiber, on_fiber, 0);
    ran = 0;
    swapcontext(&home, &fiber);
    printf(", %u ran\n", ran);
    pl_system_destroy(jobs);
    free(stack);
}

int main(void) {
    alarm(60);
    wait_on_a_fiber(0, 0);
    wait_on_a_fiber(0, 1);
    wait_on_a_fiber(1, 1);
    return 0;
}
