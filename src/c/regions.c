// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /proc/driver/nv_peer_mem/regions has a line for each registration.
 *
 * A line shows addresses of a process's memory, so only a user who may inspect all processes may
 * read the file.
 */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "compat.h"
#include "lists.h"
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
	/*
	 * The start time of the process is printed in the unit of /proc/PID/stat, which is 10 ms.
	 */
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
	/*
	 * The mode of the file admits root only, but also admits root of a container. This check
	 * refuses root of a container.
	 */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return seq_open_private(file, &nvpm_regions_ops, sizeof(struct nvpm_region));
}

NVPM_PROC_FILE(nvpm_regions_file, nvpm_regions_open, seq_release_private);

bool nvpm_regions_create(struct proc_dir_entry *directory)
{
	return proc_create("regions", 0400, directory, &nvpm_regions_file);
}
