// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /sys/kernel/mm/memory_peers/NAME/: by these files user space finds out that
 * a client is there.
 */
#include <linux/kernfs.h>
#include <linux/kobject.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "peer_server.h"

static bool peer_sysfs = true;
module_param(peer_sysfs, bool, 0644);
MODULE_PARM_DESC(peer_sysfs,
		 "Whether clients that register from now on get a directory in sysfs");

/* Under peer_memory_mutex. */
static struct kobject *peer_root;
static unsigned int peer_root_users;

struct peer_attribute {
	struct attribute attr;
	size_t offset;		/* in struct peer_stats */
};

static ssize_t peer_stat_show(const struct peer_client *client,
			      const struct attribute *attr, char *buf)
{
	const struct peer_attribute *a = container_of(attr, struct peer_attribute, attr);
	const void *stats = &client->stats;

	return sysfs_emit(buf, "%lld\n",
			  atomic64_read((const atomic64_t *)(stats + a->offset)));
}

static const struct attribute peer_version = { .name = "version", .mode = 0444 };

static ssize_t peer_attr_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	const struct peer_client *client = container_of(kobj, struct peer_client, kobj);

	if (attr == &peer_version)
		return sysfs_emit(buf, "%.*s\n", IB_PEER_MEMORY_VER_MAX - 1,
				  client->ops->version);
	return peer_stat_show(client, attr, buf);
}

#define PEER_STAT(_name) \
	static const struct peer_attribute peer_num_##_name = { \
		.attr = { .name = "num_" #_name, .mode = 0444 }, \
		.offset = offsetof(struct peer_stats, _name), \
	}

PEER_STAT(alloc_mrs);
PEER_STAT(dealloc_mrs);
PEER_STAT(reg_pages);
PEER_STAT(dereg_pages);
PEER_STAT(reg_bytes);
PEER_STAT(dereg_bytes);
PEER_STAT(free_callbacks);

static const struct attribute *const peer_attrs[] = {
	&peer_version,
	&peer_num_alloc_mrs.attr,
	&peer_num_dealloc_mrs.attr,
	&peer_num_reg_pages.attr,
	&peer_num_dereg_pages.attr,
	&peer_num_reg_bytes.attr,
	&peer_num_dereg_bytes.attr,
	&peer_num_free_callbacks.attr,
	NULL
};

static const struct sysfs_ops peer_sysfs_ops = {
	.show = peer_attr_show,
};

static void peer_client_free(struct kobject *kobj)
{
	kfree(container_of(kobj, struct peer_client, kobj));
}

const struct kobj_type peer_client_type = {
	.release = peer_client_free,
	.sysfs_ops = &peer_sysfs_ops,
};

/*
 * The kernel exports its kobject for /sys/kernel, but not that for
 * /sys/kernel/mm: a directory's kernfs node knows its kobject.
 */
static struct kobject *peer_find_mm(void)
{
	struct kernfs_node *node = kernfs_find_and_get(kernel_kobj->sd, "mm");
	struct kobject *mm = NULL;

	if (node)
		mm = kobject_get(node->priv);
	kernfs_put(node);
	return mm;
}

static int peer_root_get(void)
{
	struct kobject *mm;

	if (!peer_root) {
		mm = peer_find_mm();
		if (!mm)
			return -ENOENT;
		peer_root = kobject_create_and_add("memory_peers", mm);
		kobject_put(mm);
		if (!peer_root)
			return -ENOMEM;
	}
	peer_root_users++;
	return 0;
}

static void peer_root_put(void)
{
	if (--peer_root_users)
		return;
	kobject_put(peer_root);
	peer_root = NULL;
}

/* Asked first, because kobject_add() would print a stack trace. */
static bool peer_name_taken(const char *name)
{
	struct kernfs_node *node = kernfs_find_and_get(peer_root->sd, name);

	kernfs_put(node);
	return node;
}

static int peer_directory_add(struct peer_client *client)
{
	int err;

	if (peer_name_taken(client->ops->name))
		return -EEXIST;
	err = kobject_add(&client->kobj, peer_root, "%s", client->ops->name);
	if (err)
		return err;
	err = sysfs_create_files(&client->kobj, peer_attrs);
	if (err)
		kobject_del(&client->kobj);
	return err;
}

/* Fails for a name that is taken. */
int peer_sysfs_add(struct peer_client *client)
{
	int err;

	if (!peer_sysfs)
		return 0;
	err = peer_root_get();
	if (err)
		return err;
	err = peer_directory_add(client);
	if (err)
		peer_root_put();
	client->in_sysfs = !err;
	return err;
}

void peer_sysfs_remove(struct peer_client *client)
{
	if (!client->in_sysfs)
		return;
	kobject_del(&client->kobj);
	peer_root_put();
}

/* A directory in the way of a client; the empty name takes it away. */
int peer_sysfs_squat(const char *name)
{
	static struct kobject *squatter;
	int err;

	if (squatter) {
		kobject_put(squatter);
		peer_root_put();
		squatter = NULL;
	}
	if (!*name)
		return 0;
	err = peer_root_get();
	if (err)
		return err;
	squatter = kobject_create_and_add(name, peer_root);
	if (squatter)
		return 0;
	peer_root_put();
	return -EEXIST;
}
