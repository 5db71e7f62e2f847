// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The files in /sys/module/nv_peer_mem/statistics show counters, clients, and how the module was
 * compiled.
 *
 * Removing a file waits until no reader is inside the module's functions. A program may still have
 * the file open after that, but its calls fail with ENODEV without calling the module, so no
 * function of this source file runs after the module was unloaded.
 *
 * This file does not use debugfs, sysfs_emit(), sysfs_create_group() and kobject_create_and_add(),
 * because only GPL modules may use them. A module that uses a proprietary driver cannot be a GPL
 * module.
 */
#include <linux/completion.h>
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "nvpm.h"

u64 nvpm_counters[NVPM_COUNTERS];

static const char *nvpm_clients[NVPM_CLIENTS];

const char *nvpm_client_name(enum nvpm_client_kind kind)
{
	return nvpm_clients[kind];
}

/* A file. Its text comes from the function @show or, if @show is NULL, is the value of @counter. */
struct nvpm_attribute {
	struct attribute attr;
	ssize_t (*show)(char *page);
	enum nvpm_counter counter;
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

static ssize_t nvpm_show_core_api(char *page)
{
	return scnprintf(page, PAGE_SIZE, "%s\n", nvpm_core_api);
}

static ssize_t nvpm_show_rust(char *page)
{
	return scnprintf(page, PAGE_SIZE, "%s\n", NVPM_RUST);
}

static ssize_t nvpm_show(struct kobject *dir, struct attribute *attr, char *page)
{
	struct nvpm_attribute *file = container_of(attr, struct nvpm_attribute, attr);

	if (file->show)
		return file->show(page);
	return scnprintf(page, PAGE_SIZE, "%llu\n", READ_ONCE(nvpm_counters[file->counter]));
}

#define NVPM_TEXT(file, shows) \
	(&((struct nvpm_attribute){ .attr = { .name = file, .mode = 0444 }, .show = shows }).attr)
#define NVPM_COUNT(file, of) \
	(&((struct nvpm_attribute){ .attr = { .name = file, .mode = 0444 }, .counter = of }).attr)

static struct attribute *nvpm_attributes[] = {
	NVPM_TEXT("clients", nvpm_show_clients),
	NVPM_TEXT("core_api", nvpm_show_core_api),
	NVPM_TEXT("rust", nvpm_show_rust),
	NVPM_COUNT("reachable_regions", NVPM_COUNT_REACHABLE_REGIONS),
	NVPM_COUNT("bytes", NVPM_COUNT_BYTES),
	NVPM_COUNT("registrations", NVPM_COUNT_REGISTRATIONS),
	NVPM_COUNT("revocations", NVPM_COUNT_REVOCATIONS),
	NVPM_COUNT("failed_no_memory", NVPM_COUNT_FAILED_NO_MEMORY),
	NVPM_COUNT("failed_not_supported", NVPM_COUNT_FAILED_NOT_SUPPORTED),
	NVPM_COUNT("failed_freed", NVPM_COUNT_FAILED_FREED),
	NVPM_COUNT("failed_driver", NVPM_COUNT_FAILED_DRIVER),
	NVPM_COUNT("failed_orphans", NVPM_COUNT_FAILED_ORPHANS),
	NVPM_COUNT("orphans", NVPM_COUNT_ORPHANS),
	NULL,
};

/* The array has three files of text, one file for each counter, and NULL at the end. */
static_assert(ARRAY_SIZE(nvpm_attributes) == 3 + NVPM_COUNTERS + 1);

static const struct attribute_group nvpm_group = {
	.attrs = nvpm_attributes,
};

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

static void nvpm_directory_put(void)
{
	kobject_put(&nvpm_directory);
	wait_for_completion(&nvpm_directory_released);
}

void nvpm_statistics_remove(void)
{
	kobject_del(&nvpm_directory);
	nvpm_directory_put();
}

int nvpm_statistics_create(const char *const names[NVPM_CLIENTS])
{
	int ret;

	memcpy(nvpm_clients, names, sizeof(nvpm_clients));
	/*
	 * Older kernels declare a pointer that is not const. The cast is safe, because these
	 * kernels do not write to the type.
	 */
	kobject_init(&nvpm_directory, (void *)&nvpm_directory_type);
	ret = kobject_add(&nvpm_directory, &THIS_MODULE->mkobj.kobj, "statistics");
	if (ret)
		nvpm_directory_put();
	return ret;
}
