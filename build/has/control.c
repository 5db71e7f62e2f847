// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * This file must compile with every kernel. If it does not compile, the headers or the compiler are
 * unusable, and the questions would fail for the same reason, so build/has/ask ends with an error.
 * This file includes all headers of the questions, so that every broken header is noticed.
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
