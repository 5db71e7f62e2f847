// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions that Rust calls for the calling process and for the kernel's time. For these purposes
 * the kernel only has macros and inline functions, which Rust cannot call.
 */
#include <linux/cred.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "nvpm.h"

/*
 * Returns the user for whom registrations of the current process count. Without any privilege, a
 * user can make a user namespace, and can use thousands of subordinate user numbers in it. All
 * these numbers therefore count for the user who made the namespace. In a namespace that root made,
 * which is how container engines run containers, each number counts as a separate user, because
 * registrations of root have no bound.
 */
static kuid_t nvpm_responsible_user(void)
{
	const struct user_namespace *ns;
	kuid_t uid = current_uid();

	for (ns = current_cred()->user_ns; ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

void nvpm_current_process(struct nvpm_process *process)
{
	process->born = nvpm_task_born(current->group_leader);
	process->tgid = task_tgid_nr(current);
	process->uid = __kuid_val(nvpm_responsible_user());
}

bool nvpm_is_current(const struct nvpm_process *process)
{
	return process->tgid == task_tgid_nr(current) &&
	       process->born == nvpm_task_born(current->group_leader);
}

void nvpm_current_comm(u8 *comm)
{
	/*
	 * Another thread may change the process's name during the copy, but the last byte of the
	 * name is always zero.
	 */
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

/* Uses jiffies, because the functions that read the kernel's clocks are only for GPL modules. */
u32 nvpm_seconds(void)
{
	return jiffies / HZ;
}
