// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The directory /proc/driver/nv_peer_mem has two lists: `regions` with a line for each registration,
 * and `pairs` with a line for each pair of a GPU and a device whose map type is known.
 *
 * The lists are in proc and not in sysfs, because a file in sysfs has at most one page. A machine
 * with 8 GPUs and 16 devices already has more pairs than fit.
 *
 * The lists cover all users, and a line of `regions` shows addresses of a process's memory. Only a
 * user who may inspect all processes may therefore read the lists. The mode of the files admits
 * root, also in a container. The check of the capability refuses root of a container.
 *
 * Removing a file waits until no reader is inside the module's functions. A program may still have
 * the file open after that, but its calls fail without calling the module, so no function of this
 * file runs after the module was unloaded.
 */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "compat.h"
#include "nvpm.h"

/*
 * The position in the file is the key of a registration, and no other registration ever has the
 * same key. Reading continues after the key of the last line, so a reader sees each registration
 * that exists during all of the reading exactly once. The lock in Rust is held only while one
 * registration is copied.
 */
static void *nvpm_regions_from(struct seq_file *file, loff_t *pos)
{
	u64 key = nvpm_region_from(*pos, file->private);

	if (!key)
		return NULL;
	*pos = key;
	return file->private;
}

static void *nvpm_regions_start(struct seq_file *file, loff_t *pos)
{
	return *pos ? nvpm_regions_from(file, pos) : SEQ_START_TOKEN;
}

static void *nvpm_regions_next(struct seq_file *file, void *line, loff_t *pos)
{
	++*pos;
	return nvpm_regions_from(file, pos);
}

static void nvpm_regions_stop(struct seq_file *file, void *line)
{
}

/*
 * Prints a name. Escapes spaces, backslashes and all bytes that are not printable ASCII, so that a
 * name cannot end the line or control a terminal.
 */
static void nvpm_regions_name(struct seq_file *file, const u8 *name)
{
	for (; *name; name++)
		if (*name > ' ' && *name < 0x7f && *name != '\\')
			seq_putc(file, *name);
		else
			seq_printf(file, "\\%03o", *name);
}

static const char *const nvpm_region_states[] = {
	[NVPM_REGION_PINNING] = "pinning",
	[NVPM_REGION_PINNED] = "pinned",
	[NVPM_REGION_MAPPED] = "mapped",
	[NVPM_REGION_UNMAPPED] = "unmapped",
	[NVPM_REGION_REVOKING] = "revoking",
	[NVPM_REGION_REVOKED] = "revoked",
	[NVPM_REGION_ORPHANED] = "orphaned",
};

static int nvpm_regions_show(struct seq_file *file, void *line)
{
	const struct nvpm_region *region = line;

	if (line == SEQ_START_TOKEN) {
		seq_puts(file, "# process started age address length client state device name\n");
		return 0;
	}
	/* The start time of the process is in the unit of /proc/PID/stat, which is 10 ms. */
	seq_printf(file, "%d %llu %u 0x%llx %llu %s %s ", region->process.tgid,
		   region->process.born / 10000000, nvpm_seconds() - region->since,
		   region->address, region->len, nvpm_client_name(region->client),
		   nvpm_region_states[region->state]);
	if (region->domain != NVPM_NO_DEVICE)
		seq_printf(file, "%04x:%02x:%02x.%d ", region->domain, region->devfn >> 8,
			   region->devfn >> 3 & 0x1f, region->devfn & 7);
	else
		seq_puts(file, "- ");
	nvpm_regions_name(file, region->comm);
	seq_putc(file, '\n');
	return 0;
}

static const struct seq_operations nvpm_regions_ops = {
	.start = nvpm_regions_start,
	.next = nvpm_regions_next,
	.stop = nvpm_regions_stop,
	.show = nvpm_regions_show,
};

static int nvpm_regions_open(struct inode *inode, struct file *file)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return seq_open_private(file, &nvpm_regions_ops, sizeof(struct nvpm_region));
}

NVPM_PROC_FILE(nvpm_regions_file, nvpm_regions_open, seq_release_private);

void nvpm_pair_line(void *file, const u8 *uuid, struct device *dev, const char *map_type)
{
	seq_printf(file, "GPU-%pUb %s %s\n", uuid, pci_name(to_pci_dev(dev)), map_type);
}

/* All lines that a reader gets show the state at one moment. */
static int nvpm_pairs_show(struct seq_file *file, void *unused)
{
	seq_puts(file, "# gpu device map_type\n");
	nvpm_pairs_each(file);
	return 0;
}

static int nvpm_pairs_open(struct inode *inode, struct file *file)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return single_open(file, nvpm_pairs_show, NULL);
}

NVPM_PROC_FILE(nvpm_pairs_file, nvpm_pairs_open, single_release);

static struct proc_dir_entry *nvpm_lists;

int nvpm_lists_create(void)
{
	nvpm_lists = proc_mkdir("driver/nv_peer_mem", NULL);
	if (!nvpm_lists)
		return -ENOMEM;
	if (proc_create("regions", 0400, nvpm_lists, &nvpm_regions_file) &&
	    proc_create("pairs", 0400, nvpm_lists, &nvpm_pairs_file))
		return 0;
	nvpm_lists_remove();
	return -ENOMEM;
}

void nvpm_lists_remove(void)
{
	proc_remove(nvpm_lists);
}
