// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is calling. And processes that have memory pinned revocably, and how much of it they have left
 * behind: deregistered where the driver unpins nothing, and pinned until it is freed.
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
	u32 users;
	u32 registrations;
	u64 pages;
};

static DEFINE_HASHTABLE(nvpm_processes, 6);
static DEFINE_SPINLOCK(nvpm_processes_lock);

/* With one more user, or NULL. */
static struct nvpm_process *nvpm_process_find(s32 number)
{
	struct nvpm_process *process;

	hash_for_each_possible(nvpm_processes, process, node, number) {
		if (process->number == number) {
			process->users++;
			return process;
		}
	}
	return NULL;
}

struct nvpm_process *nvpm_process_get(void)
{
	struct nvpm_process *process, *new;
	s32 number = nvpm_process();

	spin_lock(&nvpm_processes_lock);
	process = nvpm_process_find(number);
	spin_unlock(&nvpm_processes_lock);
	if (process)
		return process;

	new = kzalloc_obj(*new, GFP_KERNEL);
	if (!new)
		return NULL;
	new->number = number;
	new->users = 1;
	spin_lock(&nvpm_processes_lock);
	process = nvpm_process_find(number);
	if (!process)
		hash_add(nvpm_processes, &new->node, number);
	spin_unlock(&nvpm_processes_lock);
	if (!process)
		return new;
	kfree(new);
	return process;
}

void nvpm_process_put(struct nvpm_process *process)
{
	bool last;

	spin_lock(&nvpm_processes_lock);
	last = !--process->users;
	if (last)
		hash_del(&process->node);
	spin_unlock(&nvpm_processes_lock);
	if (last)
		kfree(process);
}

bool nvpm_process_is_calling(const struct nvpm_process *process)
{
	return process->number == nvpm_process();
}

void nvpm_process_leave(struct nvpm_process *process, s32 registrations,
			s64 pages)
{
	spin_lock(&nvpm_processes_lock);
	process->registrations += registrations;
	process->pages += pages;
	spin_unlock(&nvpm_processes_lock);
	nvpm_count(NVPM_LEFT_BEHIND, registrations);
}

bool nvpm_process_left(const struct nvpm_process *process, u32 registrations,
		       u64 pages)
{
	bool left;

	spin_lock(&nvpm_processes_lock);
	left = process->registrations >= registrations || process->pages >= pages;
	spin_unlock(&nvpm_processes_lock);
	return left;
}
