// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an administrator reads: /sys/module/nv_peer_mem/statistics, and a line for each
 * registration in /proc/driver/nv_peer_mem/regions. What they tell is Rust's: the
 * counters, the clients, the pairs of GPU and device, the registrations.
 *
 * Removing a file waits for its readers; a file that is still open after that gives
 * ENODEV or ends. So nothing of this runs when the module is gone.
 *
 * debugfs, sysfs_emit(), sysfs_create_group() and kobject_create_and_add() are for GPL
 * modules only, which a module beside a proprietary driver cannot be.
 */
#include <linux/capability.h>
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "nvpm.h"

static const char *nvpm_clients[NVPM_CLIENTS];

/* Which of the three kinds of peer_mem.h the module was compiled with. */
#ifdef NVPM_CORE_EX
#define NVPM_CORE_API "MLNX_OFED 5.4 and later, DOCA-OFED, distributions' kernels"
#elif defined(NVPM_CORE_PRIVATE_DATA)
#define NVPM_CORE_API "MLNX_OFED 4.1 to 5.0 (4.9 LTS)"
#else
#define NVPM_CORE_API "MLNX_OFED 4.0, or 5.1 to 5.4-2"
#endif

/* sysfs: a file of the module's directory, with one of these three. */
struct nvpm_attribute {
	struct attribute attr;
	const struct nvpm_counter *counter;
	const char *text;
	ssize_t (*show)(char *page);
};

static ssize_t nvpm_show_clients(char *page)
{
	ssize_t len = 0;
	u32 i;

	for (i = 0; i < NVPM_CLIENTS; i++)
		if (nvpm_clients[i])
			len += scnprintf(page + len, PAGE_SIZE - len, "%s %s\n", nvpm_clients[i],
					 i == NVPM_REVOCABLE ? "revocable" : "persistent");
	return len;
}

struct nvpm_page {
	char *text;
	size_t len;
};

void nvpm_pair_line(void *to, const u8 *uuid, struct device *dev, const char *map_type)
{
	struct nvpm_page *page = to;

	page->len += scnprintf(page->text + page->len, PAGE_SIZE - page->len, "GPU-%pUb %s %s\n",
			       uuid, pci_name(to_pci_dev(dev)), map_type);
}

static ssize_t nvpm_show_pairs(char *text)
{
	struct nvpm_page page = { .text = text };

	nvpm_pairs_each(&page);
	return page.len;
}

static struct nvpm_attribute nvpm_files[16] = {
	{ .attr = { .name = "clients", .mode = 0444 }, .show = nvpm_show_clients },
	/* Of whoever uses the GPUs: not for containers. */
	{ .attr = { .name = "pairs", .mode = 0400 }, .show = nvpm_show_pairs },
	{ .attr = { .name = "core_api", .mode = 0444 }, .text = NVPM_CORE_API },
	{ .attr = { .name = "ground", .mode = 0444 }, .text = NVPM_RUST },
};

/* Those above; the counters follow. */
#define NVPM_TEXTS 4

static struct attribute *nvpm_attributes[ARRAY_SIZE(nvpm_files) + 1];
static const struct attribute_group nvpm_group = {
	.attrs = nvpm_attributes,
};

static ssize_t nvpm_show(struct kobject *dir, struct attribute *attr, char *page)
{
	struct nvpm_attribute *file = container_of(attr, struct nvpm_attribute, attr);

	if (file->show)
		return file->show(page);
	if (file->text)
		return scnprintf(page, PAGE_SIZE, "%s\n", file->text);
	return scnprintf(page, PAGE_SIZE, "%llu\n", READ_ONCE(file->counter->value));
}

static const struct sysfs_ops nvpm_sysfs_ops = {
	.show = nvpm_show,
};

static DECLARE_COMPLETION(nvpm_directory_released);

static void nvpm_directory_release(struct kobject *dir)
{
	complete(&nvpm_directory_released);
}

static const struct kobj_type nvpm_directory_type = {
	.release = nvpm_directory_release,
	.sysfs_ops = &nvpm_sysfs_ops,
	NVPM_FILES(nvpm_group),
};

static struct kobject nvpm_directory;

static void nvpm_sysfs_remove(void)
{
	kobject_del(&nvpm_directory);
	kobject_put(&nvpm_directory);
	wait_for_completion(&nvpm_directory_released);
}

static int nvpm_sysfs_create(const struct nvpm_counter *const *counters, u32 n_counters)
{
	struct nvpm_attribute *file = nvpm_files + NVPM_TEXTS;
	u32 i;
	int ret;

	if (n_counters > ARRAY_SIZE(nvpm_files) - NVPM_TEXTS)
		return -EINVAL;
	for (i = 0; i < n_counters; i++, file++) {
		file->attr.name = counters[i]->name;
		file->attr.mode = 0444;
		file->counter = counters[i];
	}
	for (i = 0; i < NVPM_TEXTS + n_counters; i++)
		nvpm_attributes[i] = &nvpm_files[i].attr;
	/* Only newer kernels say that they do not write to the type. */
	kobject_init(&nvpm_directory, (void *)&nvpm_directory_type);
	ret = kobject_add(&nvpm_directory, &THIS_MODULE->mkobj.kobj, "statistics");
	if (ret)
		nvpm_sysfs_remove();
	return ret;
}

/*
 * proc: the position in the file is the number of a registration. Numbers only grow, so
 * a reader that goes on behind the last one that it has seen shows each registration
 * that exists throughout exactly once. It takes Rust's lock for one registration at a time.
 */
static void *nvpm_regions_from(struct seq_file *file, loff_t *pos)
{
	u64 number = nvpm_region_from(*pos, file->private);

	if (!number)
		return NULL;
	*pos = number;
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

/* Escapes the bytes of a name that would mean something where the line is read or shown. */
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
	[NVPM_REGION_REVOKED] = "revoked",
	[NVPM_REGION_LEFT] = "left",
};

static int nvpm_regions_show(struct seq_file *file, void *line)
{
	const struct nvpm_region *region = line;

	if (line == SEQ_START_TOKEN) {
		seq_puts(file, "# process started age address length client state device name\n");
		return 0;
	}
	/* When the process started is in the units of /proc/PID/stat. */
	seq_printf(file, "%d %llu %u 0x%llx %llu %s %s ", region->process.tgid,
		   region->process.born / 10000000, nvpm_seconds() - region->since,
		   region->address, region->len, nvpm_clients[region->client],
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
	/* The file's mode keeps out users who are not root, but not root in a container. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return seq_open_private(file, &nvpm_regions_ops, sizeof(struct nvpm_region));
}

NVPM_PROC_FILE(nvpm_regions_file, nvpm_regions_open);

static struct proc_dir_entry *nvpm_proc;

static int nvpm_proc_create(void)
{
	nvpm_proc = proc_mkdir("driver/nv_peer_mem", NULL);
	if (!nvpm_proc)
		return -ENOMEM;
	if (proc_create("regions", 0400, nvpm_proc, &nvpm_regions_file))
		return 0;
	proc_remove(nvpm_proc);
	return -ENOMEM;
}

int nvpm_files_create(const char *const names[NVPM_CLIENTS],
		      const struct nvpm_counter *const *counters, u32 n_counters)
{
	int ret;

	memcpy(nvpm_clients, names, sizeof(nvpm_clients));
	ret = nvpm_proc_create();
	if (ret)
		return ret;
	ret = nvpm_sysfs_create(counters, n_counters);
	if (ret)
		proc_remove(nvpm_proc);
	return ret;
}

void nvpm_files_remove(void)
{
	nvpm_sysfs_remove();
	proc_remove(nvpm_proc);
}
