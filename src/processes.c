// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is calling. And processes that have left memory behind: deregistered where the
 * driver unpins nothing, and pinned until it is freed.
 */
#include <linux/hashtable.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "shim.h"

s32 nvpm_process(void)
{
	return task_tgid_nr(current);
}

s32 nvpm_thread(void)
{
	return task_pid_nr(current);
}

bool nvpm_exiting(void)
{
	return current->flags & PF_EXITING;
}

struct nvpm_process {
	struct hlist_node node;
	s32 number;
	u32 registrations;
	u64 pages;
};

static DEFINE_HASHTABLE(nvpm_processes, 6);
static DEFINE_SPINLOCK(nvpm_processes_lock);

static struct nvpm_process *nvpm_process_find(s32 number)
{
	struct nvpm_process *process;

	hash_for_each_possible(nvpm_processes, process, node, number)
		if (process->number == number)
			return process;
	return NULL;
}

void nvpm_process_leaves(s32 number, u64 pages)
{
	/* What is not counted would not be bounded. */
	struct nvpm_process *new = kzalloc_obj(*new, GFP_KERNEL | __GFP_NOFAIL);
	struct nvpm_process *process;

	spin_lock(&nvpm_processes_lock);
	process = nvpm_process_find(number);
	if (!process) {
		process = new;
		new = NULL;
		process->number = number;
		hash_add(nvpm_processes, &process->node, number);
	}
	process->registrations++;
	process->pages += pages;
	spin_unlock(&nvpm_processes_lock);
	kfree(new);
	nvpm_count(NVPM_LEFT_BEHIND, 1);
}

void nvpm_process_freed(s32 number, u64 pages)
{
	struct nvpm_process *process, *last = NULL;

	spin_lock(&nvpm_processes_lock);
	process = nvpm_process_find(number);
	process->pages -= pages;
	if (!--process->registrations) {
		hash_del(&process->node);
		last = process;
	}
	spin_unlock(&nvpm_processes_lock);
	kfree(last);
	nvpm_count(NVPM_LEFT_BEHIND, -1);
}

bool nvpm_process_left(s32 number, u32 registrations, u64 pages)
{
	const struct nvpm_process *process;
	bool left = false;

	spin_lock(&nvpm_processes_lock);
	process = nvpm_process_find(number);
	if (process)
		left = process->registrations >= registrations || process->pages >= pages;
	spin_unlock(&nvpm_processes_lock);
	return left;
}
