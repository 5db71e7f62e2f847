// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clients: who is registered, and which one a range of memory belongs to.
 */
#include <linux/export.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "peer_server.h"

static char *peer_generation = "g3b";
module_param(peer_generation, charp, 0644);
MODULE_PARM_DESC(peer_generation,
		 "Behaviour towards clients that register from now on: g3b (OFED 5.4-3 and later), g3a (5.1 to 5.4-2), g2 (4.1 to 5.0) or g2_40 (4.0)");

static DEFINE_MUTEX(peer_memory_mutex);
static LIST_HEAD(peer_clients);

/* Every handle that is good, until unregister is done with it. */
static DEFINE_SPINLOCK(peer_live_lock);
static LIST_HEAD(peer_live);
static DECLARE_WAIT_QUEUE_HEAD(peer_live_wait);

static_assert(sizeof(struct peer_memory_client) == 136);
static_assert(offsetof(struct peer_memory_client, acquire) == 80);
static_assert(sizeof(struct peer_memory_client_ex) == 152);
static_assert(offsetofend(struct peer_memory_client_ex, flags) == 148);

static const char *const peer_generation_names[] = {
	[PEER_G2_40] = "g2_40",
	[PEER_G2] = "g2",
	[PEER_G3A] = "g3a",
	[PEER_G3B] = "g3b",
};

static struct peer_client *peer_live_find(const void *handle)
{
	struct peer_client *client;

	lockdep_assert_held(&peer_live_lock);
	list_for_each_entry(client, &peer_live, live)
		if (client == handle)
			return client;
	return NULL;
}

/* An invalidation of one of the client's regions begins. */
struct peer_client *peer_client_enter(void *handle)
{
	struct peer_client *client;

	spin_lock(&peer_live_lock);
	client = peer_live_find(handle);
	if (client)
		client->invalidations++;
	spin_unlock(&peer_live_lock);
	return client;
}

void peer_client_leave(struct peer_client *client)
{
	spin_lock(&peer_live_lock);
	if (!--client->invalidations)
		wake_up_all(&peer_live_wait);
	spin_unlock(&peer_live_lock);
}

static unsigned int peer_client_invalidations(struct peer_client *client)
{
	unsigned int n;

	spin_lock(&peer_live_lock);
	n = client->invalidations;
	spin_unlock(&peer_live_lock);
	return n;
}

void peer_client_put(struct peer_client *client)
{
	if (refcount_dec_and_test(&client->users))
		complete(&client->unused);
}

/*
 * MLNX_OFED 4.1 to 5.0 have two functions behind the client's last operation,
 * and ask a client with the first of them only for processes that have called
 * it, which ordinary ones do not. A client that was built for later cores has
 * the size of its structure there.
 */
static bool peer_client_skipped(struct peer_client *client)
{
	const struct peer_memory_client_ex *ex;

	if (client->generation != PEER_G2)
		return false;
	ex = container_of(client->ops, struct peer_memory_client_ex, client);
	if (!ex->ex_size)
		return false;
	peer_count(PEER_SKIPPED_CLIENTS, 1);
	return true;
}

/*
 * The first client in line that says yes. A client that wants to invalidate
 * is only asked where the driver could do that.
 */
struct peer_client *peer_client_choose(unsigned long addr, size_t size,
				       bool can_invalidate, void **context)
{
	struct peer_client *client, *found = NULL;

	mutex_lock(&peer_memory_mutex);
	list_for_each_entry(client, &peer_clients, entry) {
		if (client->revocable && !can_invalidate)
			continue;
		if (peer_client_skipped(client))
			continue;
		if (peer_call_acquire(client, addr, size, context) > 0) {
			refcount_inc(&client->users);
			found = client;
			break;
		}
	}
	mutex_unlock(&peer_memory_mutex);
	return found;
}

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
	const struct peer_memory_client *ops = client->ops;
	const struct peer_memory_client_ex *ex;

	if (client->generation < PEER_G3B || !ops->version[IB_PEER_MEMORY_VER_MAX - 1])
		return false;
	ex = container_of(ops, struct peer_memory_client_ex, client);
	if (ex->ex_size < offsetofend(struct peer_memory_client_ex, flags)) {
		peer_violation(client, PEER_BAD_CLIENT,
			       "flag byte set, but ex_size is %zu", ex->ex_size);
		return false;
	}
	if (ex->flags & ~PEER_MEM_INVALIDATE_UNMAPS)
		peer_violation(client, PEER_BAD_CLIENT,
			       "unknown flags %#x", ex->flags);
	return ex->flags & PEER_MEM_INVALIDATE_UNMAPS;
}

/* What the parameter says, or less than zero. */
static int peer_current_generation(void)
{
	int generation;

	kernel_param_lock(THIS_MODULE);
	generation = sysfs_match_string(peer_generation_names, peer_generation);
	kernel_param_unlock(THIS_MODULE);
	if (generation < 0)
		pr_err("peer memory: peer_generation is none of g2_40, g2, g3a, g3b\n");
	return generation;
}

static struct peer_client *peer_client_new(const struct peer_memory_client *ops,
					   bool revocable)
{
	int generation = peer_current_generation();
	struct peer_client *client;

	if (generation < 0)
		return NULL;
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
	xa_init_flags(&client->umems, XA_FLAGS_ALLOC);
	mutex_init(&client->tickets_lock);
	init_waitqueue_head(&client->tickets_wait);
	client->next_ticket = 1;
	if (peer_switched(PEER_LATE_TICKETS)) {
		client->next_id = PEER_NO_TICKET - 2;
		client->next_ticket = PEER_NO_TICKET - 2;
	}
	return client;
}

void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback)
{
	const char *fault = peer_client_fault(peer_client);
	struct peer_client *client;

	if (fault) {
		peer_violation(NULL, PEER_BAD_CLIENT, "%s", fault);
		return NULL;
	}
	if (peer_in_call(NULL)) {
		peer_violation(NULL, PEER_REENTRY,
			       "register called from inside an operation");
		return NULL;
	}
	client = peer_client_new(peer_client, invalidate_callback);
	if (!client)
		return NULL;

	mutex_lock(&peer_memory_mutex);
	if (peer_sysfs_add(client)) {
		mutex_unlock(&peer_memory_mutex);
		kobject_put(&client->kobj);
		return NULL;
	}
	if (invalidate_callback)
		*invalidate_callback = peer_invalidate;
	spin_lock(&peer_live_lock);
	list_add_tail(&client->live, &peer_live);
	spin_unlock(&peer_live_lock);
	list_add_tail(&client->entry, &peer_clients);
	mutex_unlock(&peer_memory_mutex);

	peer_count(PEER_LIVE_CLIENTS, 1);
	return client;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

/* The client's last reference and its last invalidation are gone after this. */
static void peer_client_drain(struct peer_client *client)
{
	peer_client_put(client);
	if (!wait_for_completion_timeout(&client->unused, PEER_DEADLOCK_SECONDS * HZ)) {
		pr_warn("peer memory: unregister of %s still waits for its regions\n",
			client->ops->name);
		wait_for_completion(&client->unused);
	}
	if (peer_client_invalidations(client)) {
		peer_violation(client, PEER_UNREGISTER_EARLY,
			       "unregistered with an invalidation in flight: real servers free what that one uses");
		wait_event(peer_live_wait, !peer_client_invalidations(client));
	}
}

void ib_unregister_peer_memory_client(void *reg_handle)
{
	struct peer_client *client;

	if (peer_in_call(NULL)) {
		peer_violation(NULL, PEER_REENTRY,
			       "unregister called from inside an operation: real servers hang, here nothing was done");
		return;
	}
	mutex_lock(&peer_memory_mutex);
	spin_lock(&peer_live_lock);
	client = peer_live_find(reg_handle);
	spin_unlock(&peer_live_lock);
	/* An entry out of the list belongs to an unregister under way. */
	if (client && list_empty(&client->entry))
		client = NULL;
	if (client)
		list_del_init(&client->entry);
	mutex_unlock(&peer_memory_mutex);
	if (!client) {
		peer_violation(NULL, PEER_BAD_HANDLE,
			       "unregister of %p, which is not registered", reg_handle);
		return;
	}

	peer_client_drain(client);
	mutex_lock(&peer_memory_mutex);
	spin_lock(&peer_live_lock);
	list_del(&client->live);
	spin_unlock(&peer_live_lock);
	peer_sysfs_remove(client);
	mutex_unlock(&peer_memory_mutex);
	WARN_ON(!xa_empty(&client->umems));
	peer_count(PEER_LIVE_CLIENTS, -1);
	kobject_put(&client->kobj);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

/* As if another client of that name were there. */
int peer_client_take_name(const char *name)
{
	int err;

	mutex_lock(&peer_memory_mutex);
	err = peer_sysfs_squat(name);
	mutex_unlock(&peer_memory_mutex);
	return err;
}
