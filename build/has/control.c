// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * No question: every kernel compiles this. If one does not, the questions beside it would
 * fail for the same reason, and their answers would mean nothing. It includes what they
 * include.
 */
#include <linux/dma-mapping.h>
#include <linux/kobject.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>

static inline const char *control(const struct kobject *kobject)
{
	return kobject_name(kobject);
}
