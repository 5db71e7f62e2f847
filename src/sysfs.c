// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an administrator reads under /sys/module/nv_peer_mem/statistics: the
 * clients, the kind of RDMA core that they are for, and figures.
 *
 * Removing the directory waits for whoever reads one of its files; a file that
 * is still open after that gives ENODEV. So nothing of this runs when the
 * module is gone.
 *
 * sysfs_emit(), sysfs_create_group() and kobject_create_and_add() are for GPL
 * modules only, which a module beside a proprietary driver cannot be.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "shim.h"

struct nvpm_file {
	struct kobj_attribute attribute;
	atomic64_t value;
};

static ssize_t nvpm_figure_show(struct kobject *dir,
				struct kobj_attribute *attribute, char *buf)
{
	struct nvpm_file *file = container_of(attribute, struct nvpm_file, attribute);

	return scnprintf(buf, PAGE_SIZE, "%llu\n", (u64)atomic64_read(&file->value));
}

#define NVPM_FIGURE(figure, file)					\
	[figure] = {							\
		.attribute = __ATTR(file, 0444, nvpm_figure_show, NULL)	\
	}

static struct nvpm_file nvpm_figures[] = {
	NVPM_FIGURE(NVPM_REGIONS, regions),
	NVPM_FIGURE(NVPM_BYTES, bytes),
	NVPM_FIGURE(NVPM_REGISTRATIONS, registrations),
	NVPM_FIGURE(NVPM_REVOCATIONS, revocations),
	NVPM_FIGURE(NVPM_FAILED_NO_MEMORY, failed_no_memory),
	NVPM_FIGURE(NVPM_FAILED_NOT_SUPPORTED, failed_not_supported),
	NVPM_FIGURE(NVPM_FAILED_FREED, failed_freed),
	NVPM_FIGURE(NVPM_FAILED_DRIVER, failed_driver),
	NVPM_FIGURE(NVPM_FAILED_LEFT_BEHIND, failed_left_behind),
	NVPM_FIGURE(NVPM_LEFT_BEHIND, left_behind),
};

void nvpm_count(enum nvpm_figure figure, u64 by)
{
	atomic64_add(by, &nvpm_figures[figure].value);
}

/* Which of the three kinds of peer_mem.h the module was compiled with. */
#ifdef NVPM_CORE_EX
#define NVPM_CORE_API "MLNX_OFED 5.4 and later, DOCA-OFED, distributions' kernels"
#elif defined(NVPM_CORE_PRIVATE_DATA)
#define NVPM_CORE_API "MLNX_OFED 4.1 to 5.0 (4.9 LTS)"
#else
#define NVPM_CORE_API "MLNX_OFED 4.0, or 5.1 to 5.4-2"
#endif

static ssize_t core_api_show(struct kobject *dir,
			     struct kobj_attribute *attribute, char *buf)
{
	return scnprintf(buf, PAGE_SIZE, "%s\n", NVPM_CORE_API);
}

static struct kobj_attribute nvpm_core_api = __ATTR_RO(core_api);

static const char *nvpm_clients_text;

static ssize_t clients_show(struct kobject *dir,
			    struct kobj_attribute *attribute, char *buf)
{
	return scnprintf(buf, PAGE_SIZE, "%s\n", nvpm_clients_text);
}

static struct kobj_attribute nvpm_clients = __ATTR_RO(clients);

static ssize_t ground_show(struct kobject *dir,
			   struct kobj_attribute *attribute, char *buf)
{
	return scnprintf(buf, PAGE_SIZE, "%s\n", NVPM_GROUND);
}

static struct kobj_attribute nvpm_ground = __ATTR_RO(ground);

static ssize_t pairs_show(struct kobject *dir,
			  struct kobj_attribute *attribute, char *buf)
{
	return nvpm_pairs_text(buf, PAGE_SIZE);
}

static struct kobj_attribute nvpm_pairs = __ATTR_RO(pairs);

static struct attribute *nvpm_attributes[] = {
	&nvpm_clients.attr,
	&nvpm_pairs.attr,
	&nvpm_core_api.attr,
	&nvpm_ground.attr,
	&nvpm_figures[NVPM_REGIONS].attribute.attr,
	&nvpm_figures[NVPM_BYTES].attribute.attr,
	&nvpm_figures[NVPM_REGISTRATIONS].attribute.attr,
	&nvpm_figures[NVPM_REVOCATIONS].attribute.attr,
	&nvpm_figures[NVPM_FAILED_NO_MEMORY].attribute.attr,
	&nvpm_figures[NVPM_FAILED_NOT_SUPPORTED].attribute.attr,
	&nvpm_figures[NVPM_FAILED_FREED].attribute.attr,
	&nvpm_figures[NVPM_FAILED_DRIVER].attribute.attr,
	&nvpm_figures[NVPM_FAILED_LEFT_BEHIND].attribute.attr,
	&nvpm_figures[NVPM_LEFT_BEHIND].attribute.attr,
	NULL
};

static const struct attribute_group nvpm_group = {
	.attrs = nvpm_attributes,
};

static ssize_t nvpm_show(struct kobject *dir, struct attribute *attribute, char *buf)
{
	struct kobj_attribute *file = container_of(attribute, struct kobj_attribute, attr);

	return file->show(dir, file, buf);
}

static const struct sysfs_ops nvpm_ops = {
	.show = nvpm_show,
};

static DECLARE_COMPLETION(nvpm_directory_gone);

static void nvpm_directory_release(struct kobject *dir)
{
	complete(&nvpm_directory_gone);
}

static const struct kobj_type nvpm_directory_type = {
	.release = nvpm_directory_release,
	.sysfs_ops = &nvpm_ops,
	NVPM_FILES(nvpm_group),
};

static struct kobject nvpm_directory;

int nvpm_sysfs_add(const char *clients)
{
	int ret;

	nvpm_clients_text = clients;
	/* Only newer kernels say that they do not write to it. */
	kobject_init(&nvpm_directory, (void *)&nvpm_directory_type);
	ret = kobject_add(&nvpm_directory, &THIS_MODULE->mkobj.kobj, "statistics");
	if (ret)
		nvpm_sysfs_remove();
	return ret;
}

void nvpm_sysfs_remove(void)
{
	kobject_del(&nvpm_directory);
	kobject_put(&nvpm_directory);
	wait_for_completion(&nvpm_directory_gone);
}
