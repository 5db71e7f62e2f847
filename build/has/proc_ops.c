// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A file of proc has a proc_ops (Linux 5.6), and not the file_operations of any file. */
#include <linux/proc_fs.h>

static const struct proc_ops operations = {
	.proc_open = NULL,
};

static inline struct proc_dir_entry *question(void)
{
	return proc_create("name", 0400, NULL, &operations);
}
