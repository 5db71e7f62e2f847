/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef HOST_SCHED_H
#define HOST_SCHED_H

#include "host.h"

struct task_struct {
	s32 tgid;
	s32 pid;
	unsigned int flags;
	unsigned int uid;
	struct task_struct *group_leader;
	u64 start_boottime;
	char comm[16];
};

extern __thread struct task_struct host_task;
#define current (&host_task)
#define cond_resched() do {} while (0)
#define PF_EXITING 4
#define PF_KTHREAD 0x00200000
#define task_tgid_nr(task) ((task)->tgid)
#define task_pid_nr(task) ((task)->pid)

#endif
