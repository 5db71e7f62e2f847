// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiles if proc_create() expects a proc_ops (Linux 5.6 and later), not a file_operations. */
#include <linux/proc_fs.h>

static const struct proc_ops operations = {
	.proc_open = NULL,
};

static inline struct proc_dir_entry *question(void)
{
	return proc_create("name", 0400, NULL, &operations);
}
