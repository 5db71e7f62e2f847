// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The process that calls, and the kernel's time: its macros and inline functions.
 */
#include <linux/cred.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "compat.h"
#include "nvpm.h"

void nvpm_current_process(struct nvpm_process *process)
{
	process->born = nvpm_task_born(current->group_leader);
	process->tgid = task_tgid_nr(current);
	process->uid = __kuid_val(current_uid());
}

void nvpm_current_comm(u8 *comm)
{
	/* The process may be changing it: its last byte stays zero. */
	memcpy(comm, current->group_leader->comm, TASK_COMM_LEN - 1);
}

s32 nvpm_current_tid(void)
{
	return task_pid_nr(current);
}

bool nvpm_current_exiting(void)
{
	return current->flags & PF_EXITING;
}

void nvpm_cond_resched(void)
{
	cond_resched();
}

/* The kernel's clocks are for GPL modules only. */
u32 nvpm_seconds(void)
{
	return jiffies / HZ;
}
