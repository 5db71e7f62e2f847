// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiles if a task_struct has start_boottime (Linux 5.5 and later), not real_start_time. */
#include <linux/sched.h>

static inline u64 question(const struct task_struct *task)
{
	return task->start_boottime;
}
