// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who holds what: a line for each registration in /proc/driver/nv_peer_mem/regions,
 * for root to read.
 *
 * What is told of a registration is a record of 64 bytes, in pages that have room for
 * 63. Making one, changing it and giving it back take a lock for a moment; memory is
 * needed once for each page. A reader takes that lock for one record at a time, copies
 * it and lets go: it remembers a place, page and number, and as long as it stands in a
 * page that page stays. So each registration that is there all the while is shown once,
 * however many come and go, and nobody waits for a reader.
 *
 * debugfs, and the clocks of the kernel, are for GPL modules only.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "compat.h"
#include "shim.h"

#define NVPM_COMM_SIZE 16

/* By numbers, which stay true when the device or the process is gone. */
struct nvpm_region {
	u64 address;
	u64 len;
	u64 since;	/* in jiffies */
	struct nvpm_process process;
	u32 domain;	/* the device's address on PCI */
	u16 place;
	u8 client:3;
	u8 state:4;
	u8 has_device:1;
	u8 number;	/* in its page */
	char comm[NVPM_COMM_SIZE];
};

#define NVPM_REGIONS_OF_PAGE 63

struct nvpm_regions_page {
	struct list_head all;	/* in the order in which readers go */
	struct list_head room;	/* empty in a page that is full */
	u64 used;	/* a bit for each record */
	u32 readers;
	struct nvpm_region regions[NVPM_REGIONS_OF_PAGE];
};

static_assert(sizeof(struct nvpm_region) == 64);
static_assert(sizeof(struct nvpm_regions_page) <= 4096);

#define NVPM_ALL_USED ((1ull << NVPM_REGIONS_OF_PAGE) - 1)

static LIST_HEAD(nvpm_regions_all);
static LIST_HEAD(nvpm_regions_room);
static DEFINE_SPINLOCK(nvpm_regions_lock);

static struct nvpm_regions_page *nvpm_regions_page_of(struct nvpm_region *region)
{
	struct nvpm_region *first = region - region->number;

	return container_of(first, struct nvpm_regions_page, regions[0]);
}

/* Takes out a page that nobody needs. The last one with room stays: somebody will. */
static struct nvpm_regions_page *nvpm_regions_unneeded(struct nvpm_regions_page *page)
{
	if (page->used || page->readers ||
	    list_is_singular(&nvpm_regions_room))
		return NULL;
	list_del(&page->all);
	list_del(&page->room);
	return page;
}

/* Puts a record into a page with room; NULL if there is none. */
static struct nvpm_region *nvpm_regions_put(const struct nvpm_region *new)
{
	struct nvpm_regions_page *page;
	struct nvpm_region *region;
	u8 number;

	if (list_empty(&nvpm_regions_room))
		return NULL;
	page = list_first_entry(&nvpm_regions_room, struct nvpm_regions_page, room);
	number = __ffs64(~page->used);
	region = &page->regions[number];
	*region = *new;
	region->number = number;
	page->used |= 1ull << number;
	if (page->used == NVPM_ALL_USED)
		list_del_init(&page->room);
	return region;
}

struct nvpm_region *nvpm_region_begin(u64 address, u64 len,
				     enum nvpm_client_kind client)
{
	struct nvpm_region new = {
		.address = address,
		.len = len,
		.since = jiffies,
		.client = client,
		.state = NVPM_REGION_PINNING,
	};
	struct nvpm_regions_page *page;
	struct nvpm_region *region;

	/* It may be changed meanwhile, but for the zero at its end. */
	memcpy(new.comm, current->group_leader->comm, NVPM_COMM_SIZE - 1);
	nvpm_process(&new.process);
	spin_lock(&nvpm_regions_lock);
	region = nvpm_regions_put(&new);
	spin_unlock(&nvpm_regions_lock);
	if (region)
		return region;

	page = kzalloc_obj(*page, GFP_KERNEL);
	if (!page)
		return NULL;
	spin_lock(&nvpm_regions_lock);
	list_add_tail(&page->all, &nvpm_regions_all);
	list_add_tail(&page->room, &nvpm_regions_room);
	region = nvpm_regions_put(&new);
	spin_unlock(&nvpm_regions_lock);
	return region;
}

void nvpm_region_process(const struct nvpm_region *region, struct nvpm_process *process)
{
	/* It does not change, so no lock is needed. */
	*process = region->process;
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
	region->has_device = true;
	region->state = NVPM_REGION_MAPPED;
	spin_unlock(&nvpm_regions_lock);
}

void nvpm_region_end(struct nvpm_region *region)
{
	struct nvpm_regions_page *page = nvpm_regions_page_of(region);

	spin_lock(&nvpm_regions_lock);
	if (page->used == NVPM_ALL_USED)
		list_add(&page->room, &nvpm_regions_room);
	page->used &= ~(1ull << region->number);
	page = nvpm_regions_unneeded(page);
	spin_unlock(&nvpm_regions_lock);
	kfree(page);
}

/* Where a reader stands, and what it saw there. */
struct nvpm_regions_reader {
	struct nvpm_regions_page *page;
	loff_t at;	/* lines before this one */
	struct nvpm_region seen;
};

/* Steps to the first record in or behind @page from @number on; false at the end. */
static bool nvpm_regions_step(struct nvpm_regions_reader *reader,
			      struct nvpm_regions_page *page, u32 number)
{
	struct nvpm_regions_page *before = reader->page, *unneeded = NULL;
	u64 rest = 0;

	spin_lock(&nvpm_regions_lock);
	if (!page && !list_empty(&nvpm_regions_all))
		page = list_first_entry(&nvpm_regions_all, struct nvpm_regions_page, all);
	while (page) {
		rest = page->used & (~0ull << number);
		if (rest)
			break;
		number = 0;
		page = list_is_last(&page->all, &nvpm_regions_all) ?
			NULL : list_next_entry(page, all);
	}
	if (page)
		reader->seen = page->regions[__ffs64(rest)];
	if (page != before) {
		if (page)
			page->readers++;
		if (before && !--before->readers)
			unneeded = nvpm_regions_unneeded(before);
	}
	reader->page = page;
	spin_unlock(&nvpm_regions_lock);
	kfree(unneeded);
	return page;
}

static void *nvpm_regions_next(struct seq_file *file, void *line, loff_t *at)
{
	struct nvpm_regions_reader *reader = file->private;
	bool more;

	if (line == SEQ_START_TOKEN)
		more = nvpm_regions_step(reader, NULL, 0);
	else
		more = nvpm_regions_step(reader, reader->page, reader->seen.number + 1);
	reader->at = ++*at;
	return more ? &reader->seen : NULL;
}

/* Where it stood, mostly; whoever wants another place gets there from the beginning. */
static void *nvpm_regions_start(struct seq_file *file, loff_t *at)
{
	struct nvpm_regions_reader *reader = file->private;
	void *line = SEQ_START_TOKEN;
	loff_t wanted = *at;

	if (wanted && wanted == reader->at)
		return reader->page ? &reader->seen : NULL;
	for (*at = 0; line && *at < wanted;)
		line = nvpm_regions_next(file, line, at);
	*at = wanted;
	return line;
}

static void nvpm_regions_stop(struct seq_file *file, void *line)
{
}

/* Bytes of a name that would mean something where the line is read or shown. */
static void nvpm_regions_name(struct seq_file *file, const char *name)
{
	for (; *name; name++)
		if (*name > ' ' && *name < 0x7f && *name != '\\')
			seq_putc(file, *name);
		else
			seq_printf(file, "\\%03o", (u8)*name);
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
	seq_printf(file, "%d %llu %llu 0x%llx %llu %s %s ", region->process.number,
		   region->process.born / 10000000, (jiffies - region->since) / HZ,
		   region->address, region->len, nvpm_region_clients[region->client],
		   nvpm_region_states[region->state]);
	if (region->has_device)
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
	return seq_open_private(file, &nvpm_regions_lines,
				sizeof(struct nvpm_regions_reader));
}

static int nvpm_regions_release(struct inode *inode, struct file *file)
{
	struct nvpm_regions_reader *reader = ((struct seq_file *)file->private_data)->private;
	struct nvpm_regions_page *unneeded = NULL;

	spin_lock(&nvpm_regions_lock);
	if (reader->page && !--reader->page->readers)
		unneeded = nvpm_regions_unneeded(reader->page);
	spin_unlock(&nvpm_regions_lock);
	kfree(unneeded);
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

void nvpm_regions_forget(void)
{
	struct nvpm_regions_page *page, *next;

	spin_lock(&nvpm_regions_lock);
	list_for_each_entry_safe(page, next, &nvpm_regions_all, all)
		kfree(page);
	INIT_LIST_HEAD(&nvpm_regions_all);
	INIT_LIST_HEAD(&nvpm_regions_room);
	spin_unlock(&nvpm_regions_lock);
}
