// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who holds what: a line for each registration in /proc/driver/nv_peer_mem/regions,
 * for root to read.
 *
 * What is told of a registration stands in the registration itself, by numbers, which
 * stay true when the device or the process is gone. Putting it into the list, changing
 * it and taking it out take a lock for a moment, and no memory. A reader takes that lock
 * for one registration at a time, copies what is told and lets go. It remembers which
 * one comes next; whoever takes that one out makes it the one behind. So each
 * registration that is there all the while is shown once, however many come and go,
 * and nobody waits for a reader.
 *
 * debugfs, and the clocks of the kernel, are for GPL modules only.
 */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "compat.h"
#include "shim.h"

/* No device has this domain on PCI. */
#define NVPM_NO_DEVICE (~0u)

static LIST_HEAD(nvpm_regions);
static LIST_HEAD(nvpm_regions_readers);
static DEFINE_SPINLOCK(nvpm_regions_lock);

/* Where a reader stands, and what it saw there. */
struct nvpm_regions_reader {
	struct list_head all;
	struct list_head *next;	/* in the list of registrations, whose head is its end */
	loff_t at;	/* lines before this one */
	bool more;
	struct nvpm_region seen;
};

static struct list_head *nvpm_region_link(struct nvpm_region *region)
{
	static_assert(sizeof(region->link) == sizeof(struct list_head));
	return (struct list_head *)region->link;
}

static struct nvpm_region *nvpm_region_of(struct list_head *link)
{
	return container_of((void *)link, struct nvpm_region, link);
}

void nvpm_region_begin(struct nvpm_region *region, enum nvpm_client_kind client)
{
	struct list_head *link = nvpm_region_link(region);

	spin_lock(&nvpm_regions_lock);
	if (!link->next) {
		region->since = jiffies / HZ;
		nvpm_process(&region->process);
		region->domain = NVPM_NO_DEVICE;
		region->client = client;
		region->state = NVPM_REGION_PINNING;
		/* It may be changed meanwhile, but for the zero at its end. */
		memcpy(region->comm, current->group_leader->comm, sizeof(region->comm) - 1);
		list_add_tail(link, &nvpm_regions);
	}
	spin_unlock(&nvpm_regions_lock);
}

void nvpm_region_is(struct nvpm_region *region, enum nvpm_region_state state)
{
	spin_lock(&nvpm_regions_lock);
	region->state = state;
	spin_unlock(&nvpm_regions_lock);
}

void nvpm_region_mapped(struct nvpm_region *region, struct device *dev)
{
	struct pci_dev *pci = to_pci_dev(dev);

	spin_lock(&nvpm_regions_lock);
	region->domain = pci_domain_nr(pci->bus);
	region->place = pci->bus->number << 8 | pci->devfn;
	region->state = NVPM_REGION_MAPPED;
	spin_unlock(&nvpm_regions_lock);
}

void nvpm_region_end(struct nvpm_region *region)
{
	struct list_head *link = nvpm_region_link(region);
	struct nvpm_regions_reader *reader;

	if (!link->next)
		return;
	spin_lock(&nvpm_regions_lock);
	list_for_each_entry(reader, &nvpm_regions_readers, all)
		if (reader->next == link)
			reader->next = link->next;
	list_del(link);
	spin_unlock(&nvpm_regions_lock);
}

/* Copies what is told of the next registration, and steps over it; false at the end. */
static bool nvpm_regions_step(struct nvpm_regions_reader *reader)
{
	spin_lock(&nvpm_regions_lock);
	reader->more = reader->next != &nvpm_regions;
	if (reader->more) {
		reader->seen = *nvpm_region_of(reader->next);
		reader->next = reader->next->next;
	}
	spin_unlock(&nvpm_regions_lock);
	return reader->more;
}

static void *nvpm_regions_next(struct seq_file *file, void *line, loff_t *at)
{
	struct nvpm_regions_reader *reader = file->private;

	reader->at = ++*at;
	return nvpm_regions_step(reader) ? &reader->seen : NULL;
}

/* Where it stood, mostly; whoever wants another place gets there from the beginning. */
static void *nvpm_regions_start(struct seq_file *file, loff_t *at)
{
	struct nvpm_regions_reader *reader = file->private;
	void *line = SEQ_START_TOKEN;
	loff_t wanted = *at;

	if (wanted && wanted == reader->at)
		return reader->more ? &reader->seen : NULL;
	spin_lock(&nvpm_regions_lock);
	reader->next = nvpm_regions.next;
	spin_unlock(&nvpm_regions_lock);
	for (*at = 0; line && *at < wanted;)
		line = nvpm_regions_next(file, line, at);
	*at = wanted;
	return line;
}

static void nvpm_regions_stop(struct seq_file *file, void *line)
{
}

/* Bytes of a name that would mean something where the line is read or shown. */
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
	[NVPM_REGION_REFUSED] = "refused",
	[NVPM_REGION_PINNED] = "pinned",
	[NVPM_REGION_MAPPED] = "mapped",
	[NVPM_REGION_UNMAPPED] = "unmapped",
	[NVPM_REGION_REVOKED] = "revoked",
	[NVPM_REGION_LEFT] = "left",
};

static const char *nvpm_region_clients[NVPM_CLIENTS];

static int nvpm_regions_show(struct seq_file *file, void *line)
{
	const struct nvpm_region *region = line;

	if (line == SEQ_START_TOKEN) {
		seq_puts(file, "# process started age address length client state device name\n");
		return 0;
	}
	/* When the process started is in the units of /proc/PID/stat. */
	seq_printf(file, "%d %llu %u 0x%llx %llu %s %s ", region->process.number,
		   region->process.born / 10000000, (u32)(jiffies / HZ) - region->since,
		   region->address, region->len, nvpm_region_clients[region->client],
		   nvpm_region_states[region->state]);
	if (region->domain != NVPM_NO_DEVICE)
		seq_printf(file, "%04x:%02x:%02x.%d ", region->domain, region->place >> 8,
			   region->place >> 3 & 0x1f, region->place & 7);
	else
		seq_puts(file, "- ");
	nvpm_regions_name(file, region->comm);
	seq_putc(file, '\n');
	return 0;
}

static const struct seq_operations nvpm_regions_lines = {
	.start = nvpm_regions_start,
	.next = nvpm_regions_next,
	.stop = nvpm_regions_stop,
	.show = nvpm_regions_show,
};

static int nvpm_regions_open(struct inode *inode, struct file *file)
{
	struct nvpm_regions_reader *reader;
	int ret;

	/* The file's mode keeps out who is not root, but not root in a container. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	ret = seq_open_private(file, &nvpm_regions_lines, sizeof(*reader));
	if (ret)
		return ret;
	reader = ((struct seq_file *)file->private_data)->private;
	spin_lock(&nvpm_regions_lock);
	reader->next = nvpm_regions.next;
	list_add(&reader->all, &nvpm_regions_readers);
	spin_unlock(&nvpm_regions_lock);
	return 0;
}

static int nvpm_regions_release(struct inode *inode, struct file *file)
{
	struct nvpm_regions_reader *reader = ((struct seq_file *)file->private_data)->private;

	spin_lock(&nvpm_regions_lock);
	list_del(&reader->all);
	spin_unlock(&nvpm_regions_lock);
	return seq_release_private(inode, file);
}

NVPM_PROC_FILE(nvpm_regions_file, nvpm_regions_open, nvpm_regions_release);

static struct proc_dir_entry *nvpm_proc;

int nvpm_regions_add(const char *persistent, const char *revocable, const char *last)
{
	nvpm_region_clients[NVPM_PERSISTENT] = persistent;
	nvpm_region_clients[NVPM_REVOCABLE] = revocable;
	nvpm_region_clients[NVPM_LAST] = last;
	nvpm_proc = proc_mkdir("driver/nv_peer_mem", NULL);
	if (!nvpm_proc)
		return -ENOMEM;
	if (!proc_create("regions", 0400, nvpm_proc, &nvpm_regions_file)) {
		nvpm_regions_remove();
		return -ENOMEM;
	}
	return 0;
}

void nvpm_regions_remove(void)
{
	proc_remove(nvpm_proc);
}
