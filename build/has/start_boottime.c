// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A task's start since boot is called start_boottime (Linux 5.5), and not real_start_time. */
#include <linux/sched.h>

static inline u64 question(const struct task_struct *task)
{
	return task->start_boottime;
}
