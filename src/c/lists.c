// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The directory /proc/driver/nv_peer_mem, with lists that may be longer than a page.
 *
 * Removing a file waits until no reader is inside the module's functions. A program may still have
 * the file open after that, but its calls fail without calling the module, so no function of these
 * files runs after the module was unloaded.
 */
#include <linux/errno.h>

#include "lists.h"
#include "nvpm.h"

static struct proc_dir_entry *nvpm_lists;

int nvpm_lists_create(void)
{
	nvpm_lists = proc_mkdir("driver/nv_peer_mem", NULL);
	if (!nvpm_lists)
		return -ENOMEM;
	if (nvpm_regions_create(nvpm_lists) && nvpm_pairs_create(nvpm_lists))
		return 0;
	nvpm_lists_remove();
	return -ENOMEM;
}

void nvpm_lists_remove(void)
{
	proc_remove(nvpm_lists);
}
