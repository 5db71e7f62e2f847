// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * This file must compile with every kernel. If it does not, the headers or the compiler are unusable,
 * the questions fail for the same reason, and build/has/ask ends with an error. To notice every
 * broken header, this file includes all headers of the questions.
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
