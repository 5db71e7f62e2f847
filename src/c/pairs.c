// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /proc/driver/nv_peer_mem/pairs has a line for each pair of a GPU and a device whose map type is
 * known.
 *
 * A machine with 8 GPUs and 16 devices has more lines than fit in one page, the limit of a file in
 * sysfs, so the file is in proc. All lines that a reader gets show the state at one moment.
 */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/pci.h>
#include <linux/seq_file.h>

#include "compat.h"
#include "lists.h"
#include "nvpm.h"

void nvpm_pair_line(void *file, const u8 *uuid, struct device *dev, const char *map_type)
{
	seq_printf(file, "GPU-%pUb %s %s\n", uuid, pci_name(to_pci_dev(dev)), map_type);
}

static int nvpm_pairs_show(struct seq_file *file, void *unused)
{
	seq_puts(file, "# gpu device map_type\n");
	nvpm_pairs_each(file);
	return 0;
}

static int nvpm_pairs_open(struct inode *inode, struct file *file)
{
	/* The list covers all users of the GPUs, so containers must not read it. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return single_open(file, nvpm_pairs_show, NULL);
}

NVPM_PROC_FILE(nvpm_pairs_file, nvpm_pairs_open, single_release);

bool nvpm_pairs_create(struct proc_dir_entry *directory)
{
	return proc_create("pairs", 0400, directory, &nvpm_pairs_file);
}
