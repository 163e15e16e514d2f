/* Box2D on a job system: the callbacks that its worlds have for tasks, answered by paceline.h. Only a header, for
 * C99 and C++. Include Box2D's header yourself; this one needs nothing of it.
 *
 *     pl_box2d physics;
 *     pl_box2d_begin(&physics, jobs);           // If it is refused, each task runs at once.
 *     b2WorldDef def = b2DefaultWorldDef();
 *     def.workerCount = physics.worker_count;
 *     def.enqueueTask = pl_box2d_enqueue;       // Box2D 3.2: tasks without a range.
 *     def.finishTask = pl_box2d_finish;
 *     def.userTaskContext = &physics;
 *     ...
 *     b2World_Step(world, 1.0f / 60.0f, 4);     // On any thread, also in a job.
 *     ...
 *     b2DestroyWorld(world);
 *     pl_box2d_end(&physics);
 *
 * A step's tasks are a gang: they wait for each other. So they are a group, and a thread that waits for one of
 * them runs the others, and no other job of the program. One pl_box2d for each world, so that a step runs no
 * other world's tasks, either; it stays where it is as long as the world. */

#ifndef PACELINE_BOX2D_H
#define PACELINE_BOX2D_H

#include "paceline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most workers that Box2D takes. */
#define PL_BOX2D_WORKERS_MAX 32

/* What the callbacks need of one world. */
typedef struct pl_box2d {
    pl_system *jobs;
    pl_group group;
    /* For workerCount of b2WorldDef: the workers, and the thread that steps the world. */
    int worker_count;
} pl_box2d;

/* Begins with a world that is to be made. */
static inline pl_status pl_box2d_begin(pl_box2d *physics, pl_system *jobs) {
    size_t workers = 0;
    pl_status status;
    physics->jobs = jobs;
    physics->group = 0;
    physics->worker_count = 1;
    status = pl_workers(jobs, &workers);
    if (status != PL_OK)
        return status;
    physics->worker_count =
        workers + 1 < PL_BOX2D_WORKERS_MAX ? (int)workers + 1 : PL_BOX2D_WORKERS_MAX;
    return pl_group_create(jobs, "box2d", &physics->group);
}

/* After the world's end. */
static inline pl_status pl_box2d_end(pl_box2d *physics) {
    return pl_group_destroy(physics->jobs, physics->group);
}

/* A task: what b2EnqueueTaskCallback gets. */
typedef struct pl_box2d_task {
    void (*run)(void *context);
    void *context;
} pl_box2d_task;

static inline void pl_box2d_run(pl_context *cx, void *data) {
    const pl_box2d_task *task = (const pl_box2d_task *)data;
    (void)cx;
    task->run(task->context);
}

/* The number of a job has 64 bits, and Box2D keeps a pointer. */
typedef char pl_box2d_needs_pointers_of_64_bits[sizeof(void *) >= sizeof(pl_job) ? 1 : -1];

/* b2EnqueueTaskCallback of Box2D 3.2. If the job table is full the task runs at once. */
static inline void *pl_box2d_enqueue(void (*run)(void *), void *context, void *user) {
    pl_box2d *physics = (pl_box2d *)user;
    pl_box2d_task task;
    pl_job_desc desc;
    pl_job job = 0;
    int32_t is_worth = 1;
    task.run = run;
    task.context = context;
    memset(&desc, 0, sizeof desc);
    desc.size = sizeof desc;
    desc.name = "box2d";
    desc.body = pl_box2d_run;
    desc.data = &task;
    desc.data_size = sizeof task;
    desc.group = physics->group;
    if (pl_groups_are_worth_sharing(physics->jobs, &is_worth) != PL_OK)
        is_worth = 1;
    /* Box2D allows to run it at once: without a group, since pl_box2d_begin was refused, without room for a job, and
     * while other programs would take the workers' CPUs in the middle of it. */
    if (physics->group == 0 || !is_worth || pl_schedule(physics->jobs, &desc, &job) != PL_OK) {
        run(context);
        return 0;
    }
    /* Box2D goes on computing, and does not wait at once. */
    pl_flush(physics->jobs);
    return (void *)(uintptr_t)job;
}

/* b2FinishTaskCallback of Box2D 3.2. */
static inline void pl_box2d_finish(void *task, void *user) {
    const uint64_t moment = 1000000;
    pl_box2d *physics = (pl_box2d *)user;
    pl_job job = (pl_job)(uintptr_t)task;
    pl_status status = task != 0 ? pl_group_wait(physics->jobs, physics->group, job) : PL_OK;
    int32_t is_done = 0;
    /* Box2D goes on as if the task had run. So a wait that is refused, because little of the stack is left, is made
     * again and again: others run the task. */
    while (status != PL_OK && pl_is_done(physics->jobs, job, &is_done) == PL_OK && !is_done) {
        status = pl_group_wait_timeout(physics->jobs, physics->group, job, moment);
        if (status != PL_OK && status != PL_TIMEOUT) {
            fprintf(stderr, "paceline: Box2D's task cannot be waited for: %s\n", pl_last_error());
            abort();
        }
    }
}

#ifdef __cplusplus
}
#endif

#endif
