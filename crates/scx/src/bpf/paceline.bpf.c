/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Paceline's BPF part: that of scx_rustland_core, used as a library, with other answers to three questions.
 * What the core lacks for a policy that holds tasks back, and what it costs, is in the README.
 *
 * - Who runs next (dispatch). The process is asked when messages have come, or when it holds tasks and a CPU
 *   has lost its own and has nothing to run. The core asks it again and again as long as it holds any.
 * - What a wake-up does (enqueue). If no CPU idles, the CPU on which the task was queued is interrupted, so
 *   that a decision need not wait for the end of a slice.
 * - What CPUs have nothing to run (look), for the process.
 */
#include <scx/common.bpf.h>

/* The core's operations become plain functions, core_rustland_*, and its own table goes. */
#pragma push_macro("BPF_STRUCT_OPS")
#pragma push_macro("BPF_STRUCT_OPS_SLEEPABLE")
#pragma push_macro("SCX_OPS_DEFINE")
#undef BPF_STRUCT_OPS
#undef BPF_STRUCT_OPS_SLEEPABLE
#undef SCX_OPS_DEFINE
#define BPF_STRUCT_OPS(name, args...) static __always_inline core_##name(args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) static __always_inline core_##name(args)
#define SCX_OPS_DEFINE(name, ...)
#include "main.bpf.c"
#pragma pop_macro("SCX_OPS_DEFINE")
#pragma pop_macro("BPF_STRUCT_OPS_SLEEPABLE")
#pragma pop_macro("BPF_STRUCT_OPS")

/* Both are set by the process once it has loaded this. */
volatile bool pl_asks; /* Our rule of asking the process, and not the core's. */
volatile bool pl_kicks; /* A wake-up interrupts. */

/* Which CPUs have nothing to run; written by pl_look() for the process. */
volatile u8 pl_wanting[MAX_CPUS];
volatile u64 pl_shared; /* Tasks that wait for any CPU. */
volatile u64 nr_kicks, nr_preempts;

/* The task that runs on each CPU; 0: none, or the process. */
static volatile u32 pl_running[MAX_CPUS];
/* A CPU has lost its task since the process was asked last. */
static volatile u8 pl_lost[MAX_CPUS];
/* A CPU had nothing to run while the process was busy elsewhere. */
static volatile u32 pl_again;

static bool pl_index(s32 cpu)
{
	return cpu >= 0 && cpu < MAX_CPUS;
}

SEC("syscall")
int pl_look(void *unused)
{
	s32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		if (!pl_index(cpu))
			break;
		pl_wanting[cpu] = !pl_running[cpu] && !scx_bpf_dsq_nr_queued(cpu_to_dsq(cpu));
	}
	pl_shared = scx_bpf_dsq_nr_queued(SHARED_DSQ);
	return 0;
}

s32 BPF_STRUCT_OPS(pl_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return core_rustland_select_cpu(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(pl_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	core_rustland_enqueue(p, enq_flags);
	if (!pl_kicks || is_usersched_task(p) || !(enq_flags & SCX_ENQ_WAKEUP))
		return;
	cpu = scx_bpf_task_cpu(p);
	if (pl_index(cpu) && pl_running[cpu]) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		__sync_fetch_and_add(&nr_kicks, 1);
	}
}

/* As the core's, and a task that may interrupt does. */
static long pl_handle(struct bpf_dynptr *dynptr, void *context)
{
	const struct dispatched_task_ctx *task = bpf_dynptr_data(dynptr, 0, sizeof(*task));
	struct task_struct *p;
	s32 cpu;

	if (!task)
		return 0;
	dispatch_task(task);
	if (task->flags & SCX_ENQ_PREEMPT) {
		cpu = task->cpu;
		if (cpu == RL_CPU_ANY) {
			p = bpf_task_from_pid(task->pid);
			if (!p)
				return 0;
			cpu = scx_bpf_task_cpu(p);
			bpf_task_release(p);
		}
		if (pl_index(cpu) && pl_running[cpu]) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
			__sync_fetch_and_add(&nr_preempts, 1);
		}
	}
	return !!scx_bpf_dispatch_nr_slots();
}

/* Whether the process has to be asked before this CPU runs something else. */
static bool pl_has_to_ask(s32 cpu, const struct task_struct *prev)
{
	bool has;

	if (test_and_clear_usersched_needed() || bpf_ringbuf_query(&queued, BPF_RB_AVAIL_DATA) > 0)
		return true;
	if (!nr_scheduled)
		return false;
	if (pl_again)
		return true;
	has = scx_bpf_dsq_nr_queued(cpu_to_dsq(cpu)) || scx_bpf_dsq_nr_queued(SHARED_DSQ);
	if (has)
		return false;
	/* Its task sleeps, or has come to the end of its slice and is no message yet. */
	return pl_lost[cpu] || (prev && is_queued(prev) && !is_usersched_task(prev));
}

void BPF_STRUCT_OPS(pl_dispatch, s32 cpu, struct task_struct *prev)
{
	bpf_user_ringbuf_drain(&dispatched, pl_handle, NULL, BPF_RB_NO_WAKEUP);
	if (!pl_asks || !pl_index(cpu)) {
		core_rustland_dispatch(cpu, prev);
		return;
	}
	if (pl_has_to_ask(cpu, prev)) {
		if (scx_bpf_dsq_move_to_local(SCHED_DSQ, 0)) {
			pl_lost[cpu] = 0;
			pl_again = 0;
			return;
		}
		/* It runs elsewhere, and looks again once it is done. */
		pl_again = 1;
	}
	if (scx_bpf_dsq_move_to_local(cpu_to_dsq(cpu), 0) ||
	    scx_bpf_dsq_move_to_local(SHARED_DSQ, 0))
		return;
	/* Nobody else: the task goes on. */
	if (prev && is_queued(prev) && (!is_usersched_task(prev) || usersched_has_pending_tasks()))
		scx_bpf_task_set_slice(prev, slice_ns);
}

void BPF_STRUCT_OPS(pl_runnable, struct task_struct *p, u64 enq_flags)
{
	core_rustland_runnable(p, enq_flags);
}

void BPF_STRUCT_OPS(pl_started, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);

	core_rustland_running(p);
	if (pl_index(cpu) && !is_usersched_task(p))
		pl_running[cpu] = p->pid;
}

void BPF_STRUCT_OPS(pl_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);

	core_rustland_stopping(p, runnable);
	if (pl_index(cpu) && !is_usersched_task(p)) {
		pl_running[cpu] = 0;
		pl_lost[cpu] = 1;
	}
}

void BPF_STRUCT_OPS(pl_enable, struct task_struct *p)
{
	core_rustland_enable(p);
}

s32 BPF_STRUCT_OPS(pl_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return core_rustland_init_task(p, args);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(pl_init)
{
	return core_rustland_init();
}

void BPF_STRUCT_OPS(pl_exit, struct scx_exit_info *ei)
{
	core_rustland_exit(ei);
}

/* Named as the core's, which is how its Rust part finds it. */
SCX_OPS_DEFINE(rustland,
	       .select_cpu		= (void *)pl_select_cpu,
	       .enqueue			= (void *)pl_enqueue,
	       .dispatch		= (void *)pl_dispatch,
	       .runnable		= (void *)pl_runnable,
	       .running			= (void *)pl_started,
	       .stopping		= (void *)pl_stopping,
	       .enable			= (void *)pl_enable,
	       .init_task		= (void *)pl_init_task,
	       .init			= (void *)pl_init,
	       .exit			= (void *)pl_exit,
	       .timeout_ms		= 5000,
	       .dispatch_max_batch	= MAX_DISPATCH_SLOT,
	       .name			= "paceline");
