// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * This file is no question: it compiles with every kernel. If it does not compile, the questions
 * would fail for the same reason, and their answers would mean nothing. So it includes all
 * headers of the questions.
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
