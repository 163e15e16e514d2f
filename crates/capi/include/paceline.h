/*
 * Paceline, a job system for programs with deadlines.
 *
 *     pl_system *jobs;
 *     pl_job step, draw;
 *     pl_system_create(NULL, &jobs);
 *     pl_schedule(jobs, &(pl_job_desc){ .size = sizeof(pl_job_desc), .name = "step",
 *                                       .body = step_world, .data = world }, &step);
 *     pl_schedule(jobs, &(pl_job_desc){ .size = sizeof(pl_job_desc), .name = "draw",
 *                                       .body = draw_world, .data = world,
 *                                       .after = &step, .after_count = 1 }, &draw);
 *     if (pl_wait(jobs, draw) != PL_OK) puts(pl_last_error());
 *     pl_system_destroy(jobs);
 *
 * Every function that can fail returns a pl_status; pl_last_error() has the sentence. Descriptions begin
 * with their size, and zero in a field is its default, so that a program runs with later versions of the
 * library. This file is made of the library's sources: change those.
 */


#ifndef PACELINE_H
#define PACELINE_H



#include <stddef.h>
#include <stdint.h>

/** The place in the program where this stands, for `site` in descriptions. */
#define PL_HERE (&(const pl_site){ __FILE__, __LINE__ })

/** The sentence of pl_last_error() behind the place where this stands. */
#define PL_LAST_ERROR() pl_last_error_at(__FILE__, __LINE__)

/**
 * How a call went. Zero is success. pl_last_error() has a sentence for each other one.
 */
typedef enum {
  /**
   * It was done.
   */
  PL_OK = 0,
  /**
   * The time was over before the job was.
   */
  PL_TIMEOUT = 1,
  /**
   * The job's body failed: it called pl_fail.
   */
  PL_FAILED = 2,
  /**
   * The job never ran, because one that it depends on failed.
   */
  PL_CANCELLED = 3,
  /**
   * The wait could never end: the job needs the one that waits.
   */
  PL_DEADLOCK = 4,
  /**
   * The event went away without being completed.
   */
  PL_ABANDONED = 5,
  /**
   * The job failed so long ago that the reason is forgotten. When more than 4096 others have failed since,
   * it may be forgotten that it failed: then waits say PL_OK, and jobs after it run.
   */
  PL_FORGOTTEN = 6,
  /**
   * As many jobs are live as the job system may have (max_jobs), or a graph has as many as it may.
   */
  PL_FULL = 7,
  /**
   * As many threads have called as the job system may have (max_threads).
   */
  PL_TOO_MANY_THREADS = 8,
  /**
   * There is no room for a further dependency.
   */
  PL_TOO_MANY_EDGES = 9,
  /**
   * The job is ready or has started, the event is complete, the graph is built: it is too late for this.
   */
  PL_TOO_LATE = 10,
  /**
   * The dependency would close a circle, or the graph has one.
   */
  PL_CYCLE = 11,
  /**
   * The job system has ended.
   */
  PL_DESTROYED = 12,
  /**
   * This process is the child of a fork; the workers stayed with the parent.
   */
  PL_FORKED = 13,
  /**
   * No job, frame, token, group or graph of this job system has this number, or no job of this graph.
   */
  PL_UNKNOWN = 14,
  /**
   * An argument cannot be: a null pointer, a wrong size, a text that is not UTF-8.
   */
  PL_INVALID = 15,
  /**
   * The operating system refused a thread, a signal or a file.
   */
  PL_REFUSED = 16,
  /**
   * A setting of the builder, or of the environment, cannot be.
   */
  PL_SETTING = 17,
  /**
   * Waits in jobs are nested deeper than the thread's stack bears, as pl_last_error() then says. If it
   * says something else, that is a mistake in this library: please report it.
   */
  PL_INTERNAL = 18,
  /**
   * The graph is running, or is in another call at this moment.
   */
  PL_BUSY = 19,
} pl_status;

/**
 * What a body may ask while it runs: see pl_context_worker, pl_context_system, pl_context_run_data and
 * pl_fail. It is valid until the body returns, on its own thread.
 */
typedef struct pl_context pl_context;

/**
 * A job system.
 *
 * All functions may be called from any thread, and from inside of jobs, unless they say otherwise. A thread
 * needs no registration.
 */
typedef struct pl_system pl_system;

/**
 * The number of a job, of its job system. It owns nothing: there is no duty to wait for a job or to give the
 * number back, and it is never the number of another job. Zero is none. Another job system does not know it,
 * and says PL_UNKNOWN.
 */
typedef uint64_t pl_job;

/**
 * The number of an open frame. Nothing else of the process has it, ever, but jobs. Zero is none.
 */
typedef uint64_t pl_frame;

/**
 * The number of a graph. Nothing else of the process has it, ever, but jobs. Zero is none.
 */
typedef uint64_t pl_graph;

/**
 * The number of a node of a graph: a job, a loop, a condition, a sync point or a nested graph. Zero is none.
 */
typedef uint64_t pl_node;

/**
 * The number of a group of jobs. Nothing else of the process has it, ever, but jobs. Zero is none.
 */
typedef uint64_t pl_group;

/**
 * The body of a job. `data` is what the description says. It must not end by longjmp. A C++ exception that
 * leaves it ends the process.
 */
typedef void (*pl_body)(pl_context *context, void *data);

/**
 * Called once with `data` when the body is gone.
 */
typedef void (*pl_release)(void *data);

/**
 * The lane of a job: PL_LANE_NORMAL or another one of the PL_LANE_ constants.
 */
typedef uint32_t pl_lane;

/**
 * The number of a token. Nothing else of the process has it, ever, but jobs. Zero is none.
 */
typedef uint64_t pl_token;

/**
 * Names a thread that jobs are pinned to. Zero is none.
 */
typedef uint64_t pl_pin;

/**
 * A place in the program: PL_HERE in C.
 */
typedef struct {
  /**
   * The file; the text may go away after the call.
   */
  const char *file;
  /**
   * The line in it.
   */
  uint32_t line;
} pl_site;

/**
 * A job. Zero in a field is its default.
 */
typedef struct {
  /**
   * sizeof(pl_job_desc).
   */
  size_t size;
  /**
   * Its name, for errors, reports and traces; the text may go away after the call. Null: "job". Name kinds
   * of jobs, and not each job: a process keeps 16384 different texts, of names and of files, for as long
   * as it lives, and further ones are shown as "(too many names)".
   */
  const char *name;
  /**
   * What it does.
   */
  pl_body body;
  /**
   * What `body` is called with. The body runs on any thread, so the data must bear that.
   */
  void *data;
  /**
   * 0: `data` is passed as it is. Else as many bytes at `data` are copied now, and the body gets the
   * copy's address, which is a multiple of 8. Up to 40 bytes are copied into the job itself, without an
   * allocation.
   */
  size_t data_size;
  /**
   * Called once with the data when the body is gone: after it has run, if it never can, or if the call is
   * refused (for another reason than the description's size). Null: nothing is.
   */
  pl_release release;
  /**
   * The jobs that it waits for, `after_count` of them.
   */
  const pl_job *after;
  /**
   * How many jobs there are at `after`.
   */
  size_t after_count;
  /**
   * PL_LANE_NORMAL or another one.
   */
  pl_lane lane;
  /**
   * 1: wake no worker for it. It is taken when a worker looks next, at the latest after pl_flush or a
   * wait. For threads that cannot pay for a system call.
   */
  uint32_t quiet;
  /**
   * What can call it off before it begins (pl_token_create). 0: nothing.
   */
  pl_token token;
  /**
   * The thread that alone runs it (pl_pin_thread). 0: any.
   */
  pl_pin pin;
  /**
   * The frame that it belongs to (pl_frame_begin). While several frames are in flight, the jobs of the one
   * with the earliest deadline go first. 0: none.
   */
  pl_frame frame;
  /**
   * The group that it belongs to (pl_group_create): waits of the group may run it. 0: none.
   */
  pl_group group;
  /**
   * Where it is made: PL_HERE. Texts about it have the place. Null: they have its name alone.
   */
  const pl_site *site;
} pl_job_desc;

/**
 * The body of a loop: called with parts of its range, on several threads at the same time.
 */
typedef void (*pl_loop_body)(pl_context *context, size_t begin, size_t end, void *data);

/**
 * A loop over 0 .. count. Zero in a field is its default.
 */
typedef struct {
  /**
   * sizeof(pl_loop_desc).
   */
  size_t size;
  /**
   * Its name, for errors, reports and traces; the text may go away after the call. Null: "loop".
   */
  const char *name;
  /**
   * Called with parts of the range until each item was in one, on several threads at the same time.
   */
  pl_loop_body body;
  /**
   * What `body` is called with.
   */
  void *data;
  /**
   * As in pl_job_desc. The copy is one for all threads.
   */
  size_t data_size;
  /**
   * As in pl_job_desc.
   */
  pl_release release;
  /**
   * How many items there are, less than 2 to the power of 32.
   */
  size_t count;
  /**
   * The fewest items of a part; a part may have many more. A loop with fewer than twice as many is one
   * part, which one thread runs. 0: as many as suit the time that they take, which is measured.
   */
  uint32_t grain;
  /**
   * The jobs that it waits for, `after_count` of them. Not for pl_parallel_for.
   */
  const pl_job *after;
  /**
   * How many jobs there are at `after`.
   */
  size_t after_count;
  /**
   * PL_LANE_NORMAL or another one. Not for pl_parallel_for.
   */
  pl_lane lane;
  /**
   * As in pl_job_desc. Not for pl_parallel_for.
   */
  uint32_t quiet;
  /**
   * As in pl_job_desc. Not for pl_parallel_for.
   */
  pl_token token;
  /**
   * As in pl_job_desc. Not for pl_parallel_for.
   */
  pl_frame frame;
  /**
   * As in pl_job_desc. Not for pl_parallel_for.
   */
  pl_group group;
  /**
   * As in pl_job_desc.
   */
  const pl_site *site;
} pl_loop_desc;

/**
 * Says how many items a loop of a graph has in this run.
 */
typedef size_t (*pl_length)(pl_context *context, void *data);

/**
 * The body of a condition: not 0 if it holds in this run.
 */
typedef int (*pl_condition)(pl_context *context, void *data);

/**
 * A job, a loop or a condition of a graph, or a nested graph. Zero in a field is its default.
 */
typedef struct {
  /**
   * sizeof(pl_node_desc).
   */
  size_t size;
  /**
   * Its name, for errors, reports and traces; the text may go away after the call. Null: "job".
   */
  const char *name;
  /**
   * What a job does, once in each run. Of `body`, `loop_body` and `condition` one is there; of a nested
   * graph none.
   */
  pl_body body;
  /**
   * What a loop does: called with parts of its range until each item was in one, on several threads at
   * the same time.
   */
  pl_loop_body loop_body;
  /**
   * Says how many items a loop has in this run, less than 2 to the power of 32. Null: `count`.
   */
  pl_length length;
  /**
   * How many items a loop has, if there is no `length`.
   */
  size_t count;
  /**
   * The fewest items of a part of a loop, as in pl_loop_desc. 0: as many as suit the time that they take,
   * which is measured.
   */
  uint32_t grain;
  /**
   * Says whether the jobs that hang on it (`only_if`) run this time.
   */
  pl_condition condition;
  /**
   * What all these are called with. pl_context_run_data has the data of the run.
   */
  void *data;
  /**
   * As in pl_job_desc: the graph keeps a copy of so many bytes.
   */
  size_t data_size;
  /**
   * Called once with the data when the body is gone: with the graph, or if the call is refused (for
   * another reason than the description's size). Null: nothing is.
   */
  pl_release release;
  /**
   * The nodes that it comes after in each run, `after_count` of them.
   */
  const pl_node *after;
  /**
   * How many nodes there are at `after`.
   */
  size_t after_count;
  /**
   * Conditions: it runs only if all of them hold in the same run. Otherwise it counts as over, and what
   * comes after it goes on. A condition that was left out itself does not hold.
   */
  const pl_node *only_if;
  /**
   * How many conditions there are at `only_if`.
   */
  size_t only_if_count;
  /**
   * PL_LANE_NORMAL, which is that of the nested graph or of the thread that runs the graph, or another
   * one.
   */
  pl_lane lane;
  /**
   * 1: it is run by the thread that runs the graph, or that waits for the run.
   */
  uint32_t on_main;
  /**
   * As in pl_job_desc.
   */
  const pl_site *site;
} pl_node_desc;

/**
 * Called whenever a job becomes ready that is pinned to a thread. It may be called on any thread, on several
 * at the same time, and must neither wait for jobs nor end by longjmp.
 */
typedef void (*pl_ready)(void *data);

/**
 * How a thread takes jobs that are pinned to it. Zero in a field is its default.
 */
typedef struct {
  /**
   * sizeof(pl_pin_desc).
   */
  size_t size;
  /**
   * Called whenever a job of the thread becomes ready, such as to wake the loop of its window. Null:
   * nothing is.
   */
  pl_ready on_ready;
  /**
   * What `on_ready` is called with. It is used by any thread, so it must bear that.
   */
  void *data;
  /**
   * Called once with the data when `on_ready` is not going to be called any more, or if the call is
   * refused (for another reason than the description's size). Null: nothing is.
   */
  pl_release release;
} pl_pin_desc;

/**
 * How to make a job system. Zero in a field is its default.
 */
typedef struct {
  /**
   * sizeof(pl_system_desc).
   */
  size_t size;
  /**
   * Exactly this many workers. 0: as many as this process may use CPUs, less `reserve`, and one less for
   * the thread that waits. For no workers at all, set `no_workers`.
   */
  uint32_t workers;
  /**
   * 1: no workers. Waits run the jobs. `workers` is 0 then.
   */
  uint32_t no_workers;
  /**
   * How many threads of the program compute all the time and need a CPU each. 0: one, which makes the
   * frames.
   */
  uint32_t reserve;
  /**
   * How many jobs may be live at a time. 0: a million.
   */
  uint32_t max_jobs;
  /**
   * How many threads of the program may call. 0: 255.
   */
  uint32_t max_threads;
  /**
   * The bytes of a worker's stack. 0: the system's choice.
   */
  size_t stack_bytes;
  /**
   * How threads wait: "adaptive", "active" or "passive". Null: as PACELINE_WAIT says, else adaptive.
   */
  const char *wait_policy;
  /**
   * The most workers that run background jobs at a time. 0: all.
   */
  uint32_t background_at_most;
  /**
   * How much of the workers' time the lanes PL_LANE_SHARE_1 and so on get, in percent; in sum at most 99.
   * 0 for the last ones: nothing is set, which is 10 for each 100 of the others.
   */
  uint8_t shares[5];
  /**
   * The most workers that run jobs of the lanes PL_LANE_SHARE_1 and so on at a time. 0: all. A share is a
   * part of the time over a while; a limit keeps workers free of such a lane at any moment.
   */
  size_t shares_at_most[5];
  /**
   * 1: a scheduler in user space (Linux, sched_ext) is told which thread waits for which, and until when,
   * by memory that its broker gives, at /run/paceline/hints.sock or where PACELINE_HINTS says. If none
   * listens, nothing is different, and a line of pl_explain says why.
   */
  uint32_t hints;
  /**
   * How many spares there may be: further threads, each started when all workers wait in the middle of
   * jobs while other work is ready. 0: 256. At most 960.
   */
  size_t max_spares;
  /**
   * 1: no spares, and no line on the standard error output when all workers wait. `max_spares` is 0 then.
   * For programs whose waits run whatever is ready, such as those of a group that all jobs belong to.
   */
  uint32_t no_spares;
} pl_system_desc;

/**
 * What jobs are, if nothing is said: in the lane of the job that schedules them.
 */
#define PL_LANE_NORMAL 0

/**
 * Without a deadline: run when there is nothing else to do, and now and then when there is.
 */
#define PL_LANE_BACKGROUND 1

/**
 * The few jobs that a frame hangs on: run before all else.
 */
#define PL_LANE_FRAME 2

/**
 * With a share of the workers' time beside the normal lane: the first of `shares` in pl_system_desc.
 */
#define PL_LANE_SHARE_1 3

/**
 * With the second of `shares`.
 */
#define PL_LANE_SHARE_2 4

/**
 * With the third of `shares`.
 */
#define PL_LANE_SHARE_3 5

/**
 * With the fourth of `shares`.
 */
#define PL_LANE_SHARE_4 6

/**
 * With the fifth of `shares`.
 */
#define PL_LANE_SHARE_5 7

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of this library, such as "0.1.0". Valid for ever.
 */
const char *pl_version(void);

/**
 * How many workers there are now.
 *
 * Requires: `system` was made by pl_system_create. `out` may be written to.
 */
pl_status pl_workers(pl_system *system, size_t *out);

/**
 * One more than the largest number that pl_context_worker can ever return for this job system.
 *
 * Requires: `system` was made by pl_system_create. `out` may be written to.
 */
pl_status pl_thread_slots(pl_system *system, size_t *out);

/**
 * How many threads can compute at the same time, as far as this process may use the machine: CPUs, masks and
 * quotas. Of a job system it is what its last look at the machine found. With a null `system` it is a look
 * now, with some file accesses. Allocates.
 *
 * Requires: `system` is null or was made by pl_system_create. `out` may be written to.
 */
pl_status pl_parallelism(pl_system *system,
                         size_t *out);

/**
 * Changes the number of workers while everything runs. Workers that are too many leave when they have
 * nothing to do.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_resize(pl_system *system,
                    size_t workers);

/**
 * Why there are as many workers as there are, and what the job system has noticed about the machine: a line
 * each. `*needed` is the size of the whole with its zero byte; a smaller buffer gets the beginning.
 *
 * Requires: `system` was made by pl_system_create. `buffer` is null or has `size` bytes. `needed` is null or may be
 * written to.
 */
pl_status pl_explain(pl_system *system,
                     char *buffer,
                     size_t size,
                     size_t *needed);

/**
 * What the job system is doing at this moment: live jobs, what each waits for, who waits how long for what,
 * and what holds the program up. It reads a running system without stopping it. As pl_explain.
 *
 * Requires: As pl_explain.
 */
pl_status pl_report(pl_system *system,
                    char *buffer,
                    size_t size,
                    size_t *needed);

/**
 * The counter of this name since the job system was made, such as "jobs", "steals" or "wakes". Times are in
 * nanoseconds. PL_UNKNOWN if there is none of that name.
 *
 * Requires: `system` was made by pl_system_create. `name` ends with a zero byte. `out` may be written to.
 */
pl_status pl_stat(pl_system *system,
                  const char *name,
                  uint64_t *out);

/**
 * All counters, a line "name value" each. As pl_explain.
 *
 * Requires: As pl_explain.
 */
pl_status pl_stats_text(pl_system *system, char *buffer, size_t size, size_t *needed);

/**
 * Records a value of the program's, such as the number of enemies, as a track of the trace. Costs a load if
 * nothing is being recorded.
 *
 * Requires: `system` was made by pl_system_create. `name` is null or ends with a zero byte.
 */
pl_status pl_counter(pl_system *system,
                     const char *name,
                     int64_t value);

/**
 * Says that the body has failed, for this reason; it returns as usual. Waits for the job say PL_FAILED,
 * those for jobs after it PL_CANCELLED, and pl_last_error() has the job's name and the reason. Of a loop
 * the pieces that have not begun are left out. The first reason counts. Null is "failed"; bytes that are
 * not UTF-8 are replaced.
 *
 * Requires: `context` is the one that the running body was called with; `reason` is null or ends with a zero byte.
 */
pl_status pl_fail(pl_context *context,
                  const char *reason);

/**
 * The number of the thread that the body runs on, for data of which each thread has its own. It is less than
 * pl_thread_slots(), and two threads never have the same one at the same time. Costs a load. SIZE_MAX for a
 * null context.
 *
 * Requires: `context` is null, or the one that the running body was called with.
 */
size_t pl_context_worker(const pl_context *context);

/**
 * The job system that the body's job belongs to. Costs a load. Null for a null context.
 *
 * Requires: `context` is null, or the one that the running body was called with.
 */
pl_system *pl_context_system(const pl_context *context);

/**
 * The data of the run, as pl_graph_run or pl_graph_start was given them, if the body is that of a graph's
 * job. Null in other bodies. Costs a load. Null for a null context.
 *
 * Requires: `context` is null, or the one that the running body was called with.
 */
void *pl_context_run_data(const pl_context *context);

/**
 * A point in a long background job at which it makes way for more urgent jobs: the worker rests here while
 * these wait for one and none is idle, and another worker takes its place. `rested`, which may be null, is 1
 * if it has rested, else 0. Call it once in 100 us or so. Hold no lock across it that an urgent job takes.
 * In other jobs it does nothing.
 *
 * Requires: `context` is the one that the running body was called with. `rested` is null or points to an int.
 */
pl_status pl_checkpoint(pl_context *context,
                        int *rested);

/**
 * Calls `function` with `data`. It may block on something that the job system knows nothing of: a file, a
 * lock, a device. A worker lends its core to another one meanwhile, if work is ready that no other is free
 * for; to start that one for the first time is to start a thread. A C++ exception that leaves `function`
 * ends the process.
 *
 * Requires: `context` is the one that the running body was called with. `function` may be called with `data`.
 */
pl_status pl_blocking(pl_context *context,
                      void (*function)(void *data),
                      void *data);

/**
 * Makes an event: a job without a body that ends when pl_event_complete was called for it `count` times, by
 * any threads. 0 counts as 1. Jobs wait for it as for any job. An event that is never completed keeps them
 * waiting; pl_event_abandon gives it up. Takes a lock and allocates.
 *
 * Requires: `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` may be written to.
 */
pl_status pl_event_create(pl_system *system,
                          const char *name,
                          size_t count,
                          pl_job *out);

/**
 * Completes an event, or counts it down by one. What the thread has done before is visible to the jobs that
 * wait for it. PL_TOO_LATE if it is complete already. Takes a lock; wakes a worker if a job becomes ready.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_event_complete(pl_system *system,
                            pl_job event);

/**
 * Gives up an event that will not be completed: waits for it say PL_ABANDONED, and the jobs that wait for it
 * are cancelled. PL_TOO_LATE if it is complete.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_event_abandon(pl_system *system,
                           pl_job event);

/**
 * Says that `job` is going to complete `event`, itself or by what it makes. Waits for the event then run
 * that job, if it is ready, and make it as urgent as the waiter; a wait that can never end because of it
 * is PL_DEADLOCK. It changes nothing about when the event is complete. PL_INVALID if `event` has a body.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_add_completer(pl_system *system,
                           pl_job event,
                           pl_job job);

/**
 * Begins a frame that is to be over in so many nanoseconds. It is counted as missed if it is not, and a
 * trace shows it. The job system looks at the machine at this moment, now and then.
 *
 * Requires: `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` may be written to.
 */
pl_status pl_frame_begin(pl_system *system,
                         const char *name,
                         uint64_t budget_nanoseconds,
                         pl_frame *out);

/**
 * Ends a frame. It waits for nothing: wait for the frame's jobs before.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_frame_end(pl_system *system, pl_frame frame);

/**
 * How many nanoseconds a frame has left before its deadline; 0 if it is over.
 *
 * Requires: `system` was made by pl_system_create. `nanoseconds` may be written to.
 */
pl_status pl_frame_remaining(pl_system *system, pl_frame frame, uint64_t *nanoseconds);

/**
 * Begins a graph: the same jobs in the same order, run again and again. Add its jobs (pl_graph_add), build
 * it (pl_graph_build), run it (pl_graph_run), and destroy it with pl_graph_destroy. Takes a lock and
 * allocates.
 *
 * Requires: `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` may be written to.
 */
pl_status pl_graph_create(pl_system *system,
                          const char *name,
                          pl_graph *out);

/**
 * Adds a sync point: all nodes that were added before it end before those that are added after it begin.
 * In a nested graph it is about the nodes of that one. Its number goes into `*out`, if that is not null.
 *
 * Requires: `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` is null or may be
 * written to.
 */
pl_status pl_graph_sync(pl_system *system,
                        pl_graph graph,
                        const char *name,
                        pl_node *out);

/**
 * Ends the nested graph that was begun last.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_graph_end_nested(pl_system *system, pl_graph graph);

/**
 * In a graph that is not built yet `node` comes after `before`, too. PL_CYCLE if they are the same, or one
 * is in the other; larger circles are found by pl_graph_build.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_graph_add_dependency(pl_system *system,
                                  pl_graph graph,
                                  pl_node node,
                                  pl_node before);

/**
 * Checks a graph, and makes what can be run. PL_CYCLE if nodes come after each other in a circle:
 * pl_last_error() names them. If it fails, the bodies are gone, and only pl_graph_destroy is left.
 * Allocates; runs do not.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_graph_build(pl_system *system, pl_graph graph);

/**
 * Runs a graph, and returns when all of it is over. Meanwhile the thread runs jobs of the graph, among them
 * those with `on_main`. Bodies get `data` by pl_context_run_data. If one fails, those that come after it are
 * left out, all others are run, and the status is PL_FAILED; the graph can be run again. PL_BUSY if it is
 * running. It may be called in a job. Takes short locks; allocates nothing.
 *
 * Requires: `system` was made by pl_system_create. `data` is what the bodies expect.
 */
pl_status pl_graph_run(pl_system *system,
                       pl_graph graph,
                       void *data);

/**
 * Starts a run of a graph, and returns. Workers begin at once; nodes with `on_main` wait for pl_graph_wait,
 * which has to be called before the next run. PL_BUSY if the graph is running.
 *
 * Requires: `system` was made by pl_system_create. `data` is what the bodies expect, until the run is over.
 */
pl_status pl_graph_start(pl_system *system,
                         pl_graph graph,
                         void *data);

/**
 * As pl_graph_start, in a frame: if several are in flight, the deadline of this one decides how urgent the
 * jobs of the run are, as for `frame` in pl_job_desc. The frame may end before the run. PL_UNKNOWN if the
 * frame is over.
 *
 * Requires: `system` was made by pl_system_create. `data` is what the bodies expect, until the run is over.
 */
pl_status pl_graph_start_in(pl_system *system,
                            pl_graph graph,
                            pl_frame frame,
                            void *data);

/**
 * Waits for the run that pl_graph_start or pl_graph_start_in has started, and says how it went, as
 * pl_graph_run does. Meanwhile the thread runs jobs of the graph. PL_TOO_LATE if none was started, or it was
 * waited for; PL_DEADLOCK in a job of the graph.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_graph_wait(pl_system *system,
                        pl_graph graph);

/**
 * Whether no run of a graph goes on: `*done` is 1, else 0. A run that was started has to be waited for all
 * the same. Never blocks.
 *
 * Requires: `system` was made by pl_system_create. `done` may be written to.
 */
pl_status pl_graph_is_done(pl_system *system,
                           pl_graph graph,
                           int32_t *done);

/**
 * The jobs of a graph that is built, in an order in which they could run: a line each, with those that it
 * comes after. `*needed` is the size of the whole with its zero byte; a smaller buffer gets the beginning.
 *
 * Requires: `system` was made by pl_system_create. `buffer` is null or has `size` bytes. `needed` is null or may be
 * written to.
 */
pl_status pl_graph_text(pl_system *system,
                        pl_graph graph,
                        char *buffer,
                        size_t size,
                        size_t *needed);

/**
 * Ends a graph, built or not: its bodies are gone, and their data are released. PL_BUSY, and nothing else,
 * if it is running: call pl_graph_wait first. PL_UNKNOWN if there is none.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_graph_destroy(pl_system *system,
                           pl_graph graph);

/**
 * Makes a group, for jobs that belong together (`group` in their descriptions). A wait of the group,
 * pl_group_wait, may run all of its jobs. It is for gangs: jobs that wait for each other by means of their
 * own, as the solvers of physics libraries do. Such a wait has to be able to run the rest of the gang, and
 * no stranger's job. Takes a lock and allocates. Destroy it with pl_group_destroy.
 *
 * Requires: `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` may be written to.
 */
pl_status pl_group_create(pl_system *system,
                          const char *name,
                          pl_group *out);

/**
 * Forgets a group. Its jobs run on, as jobs of none. PL_UNKNOWN if there is none.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_group_destroy(pl_system *system, pl_group group);

/**
 * Whether it pays at this moment to have workers run jobs of groups that wait for each other: 1 or 0 in
 * `*are_worth`. It does not while other programs take the workers' CPUs in the middle of such jobs, so that
 * the thread that waits would be done sooner if it had run them itself. If it is 0, do their work at once
 * instead of making them. Jobs that no thread waits for within some milliseconds are better shared all the
 * same: do not ask for those.
 *
 * What workers have gained and lost in jobs of groups decides, in all groups together. After 0 they are
 * shared again to see whether it still holds: after a quarter of a second at first, and after 8 s at the
 * latest. Always 1 where the system does not count how long a thread was without a CPU. Costs a load; after
 * 0 a look at the clock, too.
 *
 * Requires: `system` was made by pl_system_create. `are_worth` may be written to.
 */
pl_status pl_groups_are_worth_sharing(pl_system *system,
                                      int32_t *are_worth);

/**
 * Makes a job, and puts its number into `*out`, if that is not null: 0 if it is refused, as in all calls
 * that make something. It runs when the jobs that it waits for have ended. If one of them has failed it
 * never runs. Wakes a worker if one sleeps; allocates for data of more than 40 bytes, and for more than 8
 * jobs to wait for.
 *
 * Requires: `system` was made by pl_system_create. `desc` points to a description whose `size`, `data_size` and
 * `after_count` are right. `out` is null or may be written to.
 */
pl_status pl_schedule(pl_system *system,
                      const pl_job_desc *desc,
                      pl_job *out);

/**
 * Makes a job without a body that ends when all these have ended, so that one number stands for many. Zeros
 * among them are left out.
 *
 * Requires: `system` was made by pl_system_create. `jobs` has `count` numbers. `out` may be written to.
 */
pl_status pl_combine(pl_system *system,
                     const pl_job *jobs,
                     size_t count,
                     pl_job *out);

/**
 * `job`, which waits for others already, waits for `before`, too. PL_TOO_LATE if it is ready, runs or is
 * over (an event holds a job back), PL_CYCLE if `before` waits for `job`.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_add_dependency(pl_system *system,
                            pl_job job,
                            pl_job before);

/**
 * Makes a loop as a job, as pl_schedule does, and puts its number into `*out`, if that is not null.
 *
 * Requires: As pl_schedule.
 */
pl_status pl_schedule_for(pl_system *system, const pl_loop_desc *desc, pl_job *out);

/**
 * Runs a loop now: the calling thread takes part, and the call returns when all is done. It makes no job.
 * Wakes workers; does not allocate, but for data of more than 40 bytes.
 *
 * Requires: `system` was made by pl_system_create. `desc` points to a description whose `size` and `data_size` are
 * right.
 */
pl_status pl_parallel_for(pl_system *system,
                          const pl_loop_desc *desc);

/**
 * Adds a job, a loop or a condition to a graph that is not built yet, and puts its number into `*out`, if
 * that is not null. Allocates.
 *
 * Requires: `system` was made by pl_system_create. `desc` points to a description whose `size`, `data_size`,
 * `after_count` and `only_if_count` are right. `out` is null or may be written to.
 */
pl_status pl_graph_add(pl_system *system,
                       pl_graph graph,
                       const pl_node_desc *desc,
                       pl_node *out);

/**
 * Begins a nested graph, and puts its number into `*out`, if that is not null. What is added until
 * pl_graph_end_nested belongs to it. What comes after it comes after all of them, and a condition, a lane
 * and `on_main` are for all of them. The description has no body.
 *
 * Requires: As pl_graph_add.
 */
pl_status pl_graph_begin_nested(pl_system *system,
                                pl_graph graph,
                                const pl_node_desc *desc,
                                pl_node *out);

/**
 * Has the calling thread run jobs whose descriptions name it (`pin`), and puts its name into `*out`: in
 * its waits outside of jobs, whether they need them or not; in a wait in the middle of a job, if that
 * needs them or is of their group (pl_group_wait); in pl_poll and in pl_run_pinned_jobs. Where there are no
 * workers, in pl_flush, too. A second call gives the same name; its `on_ready` is called instead of the
 * first one's until it is taken back. `desc` may be null. Takes a lock.
 *
 * Requires: `system` was made by pl_system_create. `desc` is null or points to a description whose `size` is right.
 * `out` may be written to.
 */
pl_status pl_pin_thread(pl_system *system,
                        const pl_pin_desc *desc,
                        pl_pin *out);

/**
 * Runs the jobs that are pinned to the calling thread and ready, as many as there are at the call, and puts
 * their number into `*out`, if that is not null. Never blocks.
 *
 * Requires: `system` was made by pl_system_create. `out` is null or may be written to.
 */
pl_status pl_run_pinned_jobs(pl_system *system,
                             size_t *out);

/**
 * Takes one pl_pin_thread of the calling thread back. After the last one, and at the end of the thread, jobs
 * that are left are called off: waits for them say PL_CANCELLED.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_unpin_thread(pl_system *system);

/**
 * A sentence about the last call of this thread that returned something other than PL_OK or PL_TIMEOUT:
 * what, which job, what to do. Empty if there was none. It is valid until the next such call of this
 * thread. Never null. Free.
 */
const char *pl_last_error(void);

/**
 * As pl_last_error, behind a place in the program, the one of the call that failed: PL_LAST_ERROR() in C.
 * It is valid until the next call of this function on this thread.
 *
 * Requires: `file` is null or ends with a zero byte.
 */
const char *pl_last_error_at(const char *file,
                             uint32_t line);

/**
 * The name of a status, such as "PL_OK"; "unknown status" for a number that is none. It is valid for ever.
 * Free.
 */
const char *pl_status_name(uint32_t status);

/**
 * Makes a job system and its workers, and puts it into `*out`: null if it is refused. With a null `desc` all
 * is by default. The environment may set more (PACELINE_WORKERS, PACELINE_TRACE and others), so what is set
 * there can be the reason of a refusal: look at the status. Starts threads, allocates.
 *
 * Requires: `desc` is null or points to a description whose `size` is right. `out` may be written to.
 */
pl_status pl_system_create(const pl_system_desc *desc,
                           pl_system **out);

/**
 * Ends a job system: runs all that is ready, drops what can never run, waits for graphs that were started,
 * writes a trace that is still being recorded, and joins the workers. Blocks. It may be called in a job of
 * the job system, which then ends after that job; PL_BUSY in a job of a graph. No call from outside of its
 * jobs may be going on, the one that made that job included: it may still be, in its thread, when the job
 * begins. From then on calls return PL_DESTROYED, those of jobs that still run, too: a program whose jobs
 * make jobs waits for them first. In the child of a fork it only forgets. Null is nothing to end.
 *
 * Requires: `system` is null or was made by pl_system_create.
 */
pl_status pl_system_destroy(pl_system *system);

/**
 * Makes a token, with which jobs can be called off (`token` in their descriptions). `parent` is 0, or a
 * token with which this one is cancelled, too. Destroy it with pl_token_destroy. Takes a lock and allocates.
 *
 * Requires: `system` was made by pl_system_create. `out` may be written to.
 */
pl_status pl_token_create(pl_system *system,
                          pl_token parent,
                          pl_token *out);

/**
 * Cancels a token. Its jobs that have not begun do not begin: waits for them say PL_CANCELLED, once the jobs
 * and events that they come after are over. Those that run may ask pl_token_is_cancelled. It cannot be taken
 * back; a second call does nothing. Takes a lock.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_token_cancel(pl_system *system,
                          pl_token token);

/**
 * Whether a token was cancelled, or one that it was made from: 1 or 0 into `*out`. Takes a lock.
 *
 * Requires: `system` was made by pl_system_create. `out` may be written to.
 */
pl_status pl_token_is_cancelled(pl_system *system, pl_token token, int32_t *out);

/**
 * Forgets a token. Nothing is called off by that; jobs that have it keep it. PL_UNKNOWN if there is none.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_token_destroy(pl_system *system,
                           pl_token token);

/**
 * Begins to record jobs, waits and frames into a file that ui.perfetto.dev and `paceline diagnose` open.
 * Starts a thread. One trace at a time.
 *
 * Requires: `system` was made by pl_system_create. `path` ends with a zero byte.
 */
pl_status pl_trace_start(pl_system *system,
                         const char *path);

/**
 * Ends the recording and writes the file. `*lost` is how many events had no room, which the file says, too.
 * PL_TOO_LATE if nothing is being recorded. Blocks while it writes.
 *
 * Requires: `system` was made by pl_system_create. `events` and `lost` are null or may be written to.
 */
pl_status pl_trace_finish(pl_system *system,
                          uint64_t *events,
                          uint64_t *lost);

/**
 * Waits until a job has ended. Meanwhile the thread runs it and the jobs that it waits for, and nothing
 * else; where there are no workers it runs others, too, when none of these is ready. Makes all jobs of this
 * thread known to the workers before. PL_FAILED or another status says why the job did not end well. In a
 * job it may be called, too; PL_DEADLOCK if the job waits for the one that calls.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_wait(pl_system *system,
                  pl_job job);

/**
 * As pl_wait, for so many nanoseconds at most: PL_TIMEOUT if the job has not ended then. A body that the
 * thread has begun to run is not broken off; there are such bodies in a job, and where there are no workers.
 * 0 does not wait, but then it may run something, too: pl_is_done only looks.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_wait_timeout(pl_system *system,
                          pl_job job,
                          uint64_t nanoseconds);

/**
 * As pl_wait, for a job of this group or another one. Meanwhile the thread may run the jobs of the group,
 * besides those that the job waits for. Takes a short lock.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_group_wait(pl_system *system,
                        pl_group group,
                        pl_job job);

/**
 * As pl_group_wait, for so many nanoseconds at most: PL_TIMEOUT if the job has not ended then. As in
 * pl_wait_timeout, a thread of the program runs nothing meanwhile, unless there are no workers.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_group_wait_timeout(pl_system *system,
                                pl_group group,
                                pl_job job,
                                uint64_t nanoseconds);

/**
 * Whether a job has ended, well or not: `*done` is 1, else 0. Costs some nanoseconds.
 *
 * Requires: `system` was made by pl_system_create. `done` may be written to.
 */
pl_status pl_is_done(pl_system *system, pl_job job, int32_t *done);

/**
 * Makes all jobs of this thread known to the workers, also those scheduled with `quiet`. Each wait does it.
 * Where there are no workers it runs all jobs that are ready.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_flush(pl_system *system);

/**
 * Runs one job that is ready, if there is one: `*ran` is 1, else 0. For a thread that has nothing else to
 * do.
 *
 * Requires: `system` was made by pl_system_create. `ran` is null or may be written to.
 */
pl_status pl_poll(pl_system *system,
                  int32_t *ran);

/**
 * Runs jobs that are ready until there are none, or until so many nanoseconds are over; `*ran` is how many.
 *
 * Requires: `system` was made by pl_system_create. `ran` is null or may be written to.
 */
pl_status pl_pump(pl_system *system,
                  uint64_t nanoseconds,
                  size_t *ran);

/**
 * Prepares for so many live jobs, so that the first call of this thread costs no more than its thousandth:
 * nothing is allocated later for jobs whose data fit into them. For audio threads, before they begin.
 *
 * Requires: `system` was made by pl_system_create.
 */
pl_status pl_warm_up(pl_system *system,
                     size_t jobs);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PACELINE_H */
