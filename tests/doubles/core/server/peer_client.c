// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registers clients, finds the client for a range of memory, and shows the clients to user space in
 * the directories /sys/kernel/mm/memory_peers/NAME/.
 */
#include <linux/kernfs.h>
#include <linux/module.h>
#include <linux/sysfs.h>

#include "peer_server.h"

static char peer_generation[8] = "g3b";
module_param_string(peer_generation, peer_generation, sizeof(peer_generation), 0644);
MODULE_PARM_DESC(peer_generation,
		 "Behaviour towards clients that register from now on: g3b (OFED 5.4-3 and later), g3a (5.1 to 5.4-2) or g2 (4.1 to 5.0)");

static bool peer_sysfs = true;
module_param(peer_sysfs, bool, 0644);
MODULE_PARM_DESC(peer_sysfs,
		 "Whether clients that register from now on get a directory in sysfs");

static char peer_taken_name[IB_PEER_MEMORY_NAME_MAX + 1];
module_param_string(peer_taken_name, peer_taken_name, sizeof(peer_taken_name), 0644);
MODULE_PARM_DESC(peer_taken_name,
		 "A client of this name is refused, as if another one had its directory in sysfs");

/*
 * The clients, in the order of their registration. A thread that changes the list holds both locks.
 */
static DEFINE_MUTEX(peer_memory_mutex);
static DEFINE_SPINLOCK(peer_live_lock);
static LIST_HEAD(peer_clients);

static_assert(sizeof(struct peer_memory_client) == 136);
static_assert(offsetof(struct peer_memory_client, acquire) == 80);
static_assert(sizeof(struct peer_memory_client_ex) == 152);
static_assert(offsetofend(struct peer_memory_client_ex, flags) == 148);

/* ---- in sysfs -------------------------------------------------------------- */

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	const struct peer_client *client = container_of(kobj, struct peer_client, kobj);

	return sysfs_emit(buf, "%.*s\n", IB_PEER_MEMORY_VER_MAX - 1, client->ops->version);
}

static struct kobj_attribute peer_version = __ATTR_RO(version);

static ssize_t stat_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf);

#define PEER_STAT_ATTR(_name) \
	{ .attr = { .name = "num_" #_name, .mode = 0444 }, .show = stat_show },
static struct kobj_attribute peer_stats[] = PEER_STATS(PEER_STAT_ATTR);

static ssize_t stat_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	const struct peer_client *client = container_of(kobj, struct peer_client, kobj);

	return sysfs_emit(buf, "%lld\n", atomic64_read(&client->stats[attr - peer_stats]));
}

/*
 * Returns the directory memory_peers, which is removed with the last reference. The kernel exports
 * the kobject of /sys/kernel, but not that of /sys/kernel/mm. This function finds the latter
 * through the kernfs node of the directory, which has a pointer to its kobject.
 */
static struct kobject *peer_root_get(void)
{
	struct kernfs_node *mm = kernfs_find_and_get(kernel_kobj->sd, "mm");
	struct kernfs_node *root = kernfs_find_and_get(mm, "memory_peers");
	struct kobject *kobj;

	if (root)
		kobj = kobject_get(root->priv);
	else
		kobj = kobject_create_and_add("memory_peers", mm->priv);
	kernfs_put(root);
	kernfs_put(mm);
	return kobj;
}

/*
 * Tells whether a client has the name already. kobject_add() would print a stack trace for such a
 * name.
 */
static bool peer_name_taken(struct kobject *root, const char *name)
{
	struct kernfs_node *node = kernfs_find_and_get(root->sd, name);

	kernfs_put(node);
	return node || sysfs_streq(peer_taken_name, name);
}

/* Adds the client's files, or fails if the name is taken. The last reference removes the files. */
static int peer_sysfs_add(struct peer_client *client)
{
	const char *name = client->ops->name;
	struct kobject *root;
	int err = -EEXIST, i;

	if (!peer_sysfs)
		return 0;
	root = peer_root_get();
	if (!root)
		return -ENOMEM;
	if (!peer_name_taken(root, name))
		err = kobject_add(&client->kobj, root, "%s", name);
	kobject_put(root);
	if (!err)
		err = sysfs_create_file(&client->kobj, &peer_version.attr);
	for (i = 0; !err && i < ARRAY_SIZE(peer_stats); i++)
		err = sysfs_create_file(&client->kobj, &peer_stats[i].attr);
	return err;
}

static void peer_client_free(struct kobject *kobj)
{
	kfree(container_of(kobj, struct peer_client, kobj));
}

static const struct kobj_type peer_client_type = {
	.release = peer_client_free,
	.sysfs_ops = &kobj_sysfs_ops,
};

/* ---- the registered clients ------------------------------------------------ */

static struct peer_client *peer_live_find(const void *handle)
{
	struct peer_client *client;

	list_for_each_entry(client, &peer_clients, entry)
		if (client == handle)
			return client;
	return NULL;
}

/* Begins an invalidation of one of the client's regions. */
struct peer_client *peer_client_enter(void *handle)
{
	struct peer_client *client;

	spin_lock(&peer_live_lock);
	client = peer_live_find(handle);
	if (client)
		atomic_inc(&client->invalidations);
	spin_unlock(&peer_live_lock);
	return client;
}

void peer_client_leave(struct peer_client *client)
{
	if (atomic_dec_and_test(&client->invalidations))
		wake_up_var(&client->invalidations);
}

void peer_client_put(struct peer_client *client)
{
	if (refcount_dec_and_test(&client->users))
		complete(&client->unused);
}

static const struct peer_memory_client_ex *peer_client_ex(const struct peer_client *client)
{
	return container_of(client->ops, struct peer_memory_client_ex, client);
}

/*
 * Returns the first client that claims the memory. A client that invalidates is asked only if the
 * device's driver supports invalidation. In MLNX_OFED 4.1 to 5.0, two pointers to functions follow
 * the client's last operation. If the first pointer is not NULL, these cores ask the client only
 * about memory of processes that have requested this client, which ordinary processes do not do. A
 * client that was built for later cores has the size of its structure in the place of that pointer.
 */
struct peer_client *peer_client_choose(unsigned long addr, size_t size,
				       bool can_invalidate, void **context)
{
	struct peer_client *client, *found = NULL;

	mutex_lock(&peer_memory_mutex);
	list_for_each_entry(client, &peer_clients, entry) {
		if (client->leaving || (client->revocable && !can_invalidate))
			continue;
		if (peer_is_g2(client) && peer_client_ex(client)->ex_size) {
			peer_count(PEER_skipped_clients, 1);
			continue;
		}
		if (peer_call_acquire(client, addr, size, context) > 0) {
			refcount_inc(&client->users);
			found = client;
			break;
		}
	}
	mutex_unlock(&peer_memory_mutex);
	return found;
}

/* ---- registering and unregistering ------------------------------------------ */

static const char *peer_client_fault(const struct peer_memory_client *ops)
{
	if (!ops->acquire || !ops->get_pages || !ops->dma_map ||
	    !ops->dma_unmap || !ops->put_pages || !ops->get_page_size)
		return "an operation that servers call without asking is missing";
	if (!ops->name[0] || strnlen(ops->name, sizeof(ops->name)) == sizeof(ops->name))
		return "the name is empty or has no end";
	if (strpbrk(ops->name, "%/"))
		return "the name has a % or a /, and servers use it as format and as file name";
	if (strnlen(ops->version, IB_PEER_MEMORY_VER_MAX - 1) == IB_PEER_MEMORY_VER_MAX - 1)
		return "the version text runs into the flag byte";
	return NULL;
}

static bool peer_client_unmaps(struct peer_client *client)
{
	const struct peer_memory_client_ex *ex = peer_client_ex(client);

	if (client->generation < PEER_G3B || !client->ops->version[IB_PEER_MEMORY_VER_MAX - 1])
		return false;
	if (ex->ex_size < offsetofend(struct peer_memory_client_ex, flags)) {
		peer_violation(client, "bad_client", "flag byte set, but ex_size is %zu",
			       ex->ex_size);
		return false;
	}
	if (ex->flags & ~PEER_MEM_INVALIDATE_UNMAPS)
		peer_violation(client, "bad_client", "unknown flags %#x", ex->flags);
	return ex->flags & PEER_MEM_INVALIDATE_UNMAPS;
}

static struct peer_client *peer_client_new(const struct peer_memory_client *ops,
					   bool revocable)
{
	static const char *const names[] = {
		[PEER_G2] = "g2", [PEER_G3A] = "g3a", [PEER_G3B] = "g3b",
	};
	int generation = sysfs_match_string(names, peer_generation);
	struct peer_client *client;

	if (generation < 0) {
		pr_err("peer memory: peer_generation is none of g2, g3a, g3b\n");
		return NULL;
	}
	client = kzalloc_obj(*client);
	if (!client)
		return NULL;
	kobject_init(&client->kobj, &peer_client_type);
	client->ops = ops;
	client->revocable = revocable;
	client->generation = generation;
	client->unmaps = peer_client_unmaps(client);
	refcount_set(&client->users, 1);
	init_completion(&client->unused);
	peer_lock_init(&client->lock);
	xa_init(&client->umems);
	if (peer_switched(PEER_late_tickets))
		client->next_ticket = PEER_NO_TICKET - 2;
	else
		client->next_ticket = peer_is_g2(client);
	return client;
}

void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback)
{
	const char *fault = peer_client_fault(peer_client);
	struct peer_client *client;

	if (fault) {
		peer_violation(NULL, "bad_client", "%s", fault);
		return NULL;
	}
	if (peer_in_call(NULL)) {
		peer_violation(NULL, "reentry", "register called from inside an operation");
		return NULL;
	}
	client = peer_client_new(peer_client, invalidate_callback);
	if (!client)
		return NULL;

	mutex_lock(&peer_memory_mutex);
	if (peer_sysfs_add(client)) {
		kobject_put(&client->kobj);
		mutex_unlock(&peer_memory_mutex);
		return NULL;
	}
	if (invalidate_callback)
		*invalidate_callback = peer_invalidate;
	spin_lock(&peer_live_lock);
	list_add_tail(&client->entry, &peer_clients);
	spin_unlock(&peer_live_lock);
	mutex_unlock(&peer_memory_mutex);

	peer_count(PEER_live_clients, 1);
	return client;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *reg_handle)
{
	struct peer_client *client;

	if (peer_in_call(NULL)) {
		peer_violation(NULL, "reentry",
			       "unregister called from inside an operation: real servers hang, here nothing was done");
		return;
	}
	mutex_lock(&peer_memory_mutex);
	client = peer_live_find(reg_handle);
	if (client && client->leaving)
		client = NULL;
	if (client)
		client->leaving = true;
	mutex_unlock(&peer_memory_mutex);
	if (!client) {
		peer_violation(NULL, "bad_handle", "unregister of %p, which is not registered",
			       reg_handle);
		return;
	}

	peer_client_put(client);
	wait_for_completion(&client->unused);
	mutex_lock(&peer_memory_mutex);
	spin_lock(&peer_live_lock);
	list_del(&client->entry);
	spin_unlock(&peer_live_lock);
	if (atomic_read(&client->invalidations)) {
		peer_violation(client, "unregister_early",
			       "unregistered with an invalidation in flight: real servers free what that one uses");
		wait_var_event(&client->invalidations, !atomic_read(&client->invalidations));
	}
	WARN_ON(!xa_empty(&client->umems));
	peer_count(PEER_live_clients, -1);
	kobject_put(&client->kobj);
	mutex_unlock(&peer_memory_mutex);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);
